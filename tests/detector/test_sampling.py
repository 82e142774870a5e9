"""Photos as their own reference: which are looked at, what is cut, and that every way to run it agrees."""

import json
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
from PIL import Image

import outword
from conftest import PHOTOS, call, contents, six_digits
from helpers.archives import photo, write_parquet, write_tar
from helpers.cards import a_card, a_meaning
from helpers.stopped import stopped
from helpers.uncut import imagined, uncut, write_store
from outword import scoring
from outword.detector import sampling
from outword.detector.batches import Batch, Smallest, is_wanted, look, read_batch
from outword.detector.cuts import named_like_labels, with_cut
from outword.detector.detector import Detector
from outword.detector.sampling import choose, look_at
from outword.detectors import MCM
from outword.encoders import Encoder
from outword.errors import InputError
from outword.maths.imagined import Sight
from outword.maths.methods.grounded import Grounded
from outword.maths.thresholds import by_hand, fit_reference
from outword.scoring.parts import MANIFEST
from outword.scoring.rows import read_rows
from outword.scoring.stream import open_source
from outword.vectors.embed import embed
from outword.vectors.vocabulary import Vocabulary

SIGHT = {"gain": 0.2, "noise": 1.0, "level": 5.0, "spread": 1.0}
AXES = {"cat": (1, 0.2, 0.2), "brick": (0.2, 1, 0.2), "tree": (0.2, 0.2, 1)}


class Colours(Encoder):
    """The mean colour of a photo as a vector; counts what it encodes."""

    name, dim, temperature, prompts, licence, source = "colours", 3, 0.1, "paper", "none", "this file"
    fingerprint, min_side = "ef" * 32, 0

    def __init__(self, batch_size=16):
        self.batch_size, self.seen = batch_size, 0

    def preprocess(self, image):
        return np.asarray(image.convert("RGB").resize((2, 2)))

    def encode_pixels(self, pixels):
        self.seen += len(pixels)
        return unit(pixels.mean(axis=(1, 2)).astype(np.float32) + 1)

    def encode_texts(self, texts):
        raise NotImplementedError


def unit(rows):
    rows = np.array(rows, np.float32)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def made(encoder=None, scorer=None):
    """A detector of cats, with a vocabulary and no cut."""
    encoder, axes = encoder or Colours(), unit([*AXES.values()])
    scorer = scorer or Grounded(temperature=0.1).fit(labels=axes[:1], wild=axes[1:])
    of_encoder = {"encoder": "colours", "fingerprint": encoder.fingerprint, "temperature": 0.1}
    card = a_card("grounded", **of_encoder, meanings=(a_meaning("cat"),))
    names = Vocabulary([*AXES], axes.astype(np.float16))
    wild = [] if scorer.wild_ is None else ["brick", "tree"]
    made = {"scorer": scorer, "labels": ["cat"], "rows": ["cat"], "wild": wild, "card": card}
    return Detector(**made, find_encoder=lambda: encoder, vocabulary=names)


def colours(axis, n, seed=0):
    noise = np.random.default_rng(seed).normal(0, 25, (n, 3))
    return np.clip(180 * np.array(AXES[axis]) + noise, 0, 255).astype(np.uint8)


def paint(folder, **counts):
    """So many small photos of about the colour of each name."""
    folder.mkdir()
    for seed, (axis, n) in enumerate(counts.items()):
        for number, colour in enumerate(colours(axis, n, seed)):
            Image.new("RGB", (4, 4), tuple(colour.tolist())).save(folder / f"{axis}{number:03}.png")
    return folder


def hashed(name):
    return sha256(name.encode()).hexdigest()


def written(detector, source, output, **options):
    said = []
    scoring.run(detector, source, output, say=said.append, **options)
    return said


def test_a_batch_cuts_itself_and_says_so(tmp_path):
    photos, detector = paint(tmp_path / "photos", cat=30, brick=60, tree=60), made()
    said = written(detector, photos, tmp_path / "a.jsonl", html=tmp_path / "a.html")
    rows = list(read_rows(tmp_path / "a.jsonl", "jsonl"))
    assert said[0].startswith(
        "no reference for colours and these classes: the cut lets in 5% of 120 of these photos that look like none of "
        "your classes; how many unrelated photos get in is not known, and there is no p; a photo is in if its score is "
    )
    assert len(said) == 1 and {row["basis"] for row in rows} == {"batch"}
    assert "lets in 5% of 120 photos of this batch" in (tmp_path / "a.html").read_text()
    others = [row for row in rows if "cat" not in row["path"].rpartition("/")[2]]
    assert sum(row["verdict"] == "in" for row in others) == 6 and all(row["p"] is None for row in rows)
    assert sum(row["verdict"] == "in" for row in rows) >= 30
    slow = sorted(row["score"] for row in others)[-7]
    assert slow < rows[0]["threshold"] <= np.nextafter(slow, np.inf)
    assert [one.score for one in detector.predict(sorted(photos.iterdir()))] == [row["score"] for row in rows]
    assert detector.basis == "formula" and detector.predict([*photos.iterdir()][:99])[0].basis == "formula"


def test_few_photos_are_judged_by_the_natural_cut(tmp_path):
    photos, detector = paint(tmp_path / "photos", cat=20, brick=79), made()
    said = written(detector, photos, tmp_path / "a.jsonl")
    assert said == [
        "no reference for colours and these classes, and 99 photos are too few to find a cut from (100); uncalibrated: "
        f"a photo is in if its score is {detector.threshold:.4g} or more "
        "(the score's natural cut, not fitted to any photos)"
    ]
    rows = list(read_rows(tmp_path / "a.jsonl", "jsonl"))
    assert {(row["basis"], row["threshold"], row["p"]) for row in rows} == {("formula", detector.threshold, None)}
    assert detector.encoder.seen == 99  # nothing is encoded twice for nothing
    plain = made(scorer=MCM(temperature=0.1).fit(unit([AXES["cat"]])))
    with pytest.raises(InputError, match="no threshold"):
        scoring.filter(plain, photos, tmp_path / "kept", how="list")
    assert written(plain, photos, tmp_path / "b.csv")[0].endswith("no threshold before it is calibrated")
    paint(tmp_path / "more", tree=40)
    assert scoring.filter(plain, [photos, tmp_path / "more"], tmp_path / "kept", how="list").rows == 139


def test_a_cut_that_is_known_stays(tmp_path):
    photos = paint(tmp_path / "photos", brick=100)
    for detector in (made().with_threshold(by_hand(1.0)), with_cut(made(), fit_reference([1.0]), [1.0])):
        assert not is_wanted(detector)
        written(detector, photos, tmp_path / "a.csv")
        assert detector.encoder.seen == 100
    assert not is_wanted(replace(made(), vocabulary=None))


def test_where_the_rule_bends():
    def vectors(n_cats, n_others):
        return unit(np.concatenate([colours("cat", n_cats), colours("brick", n_others, 1)]).astype(float) + 1)

    detector = made()
    for n_cats, n_others, warning in [
        (100, 100, ""),
        (300, 100, "75% of these photos look like your classes: the cut bends there"),
        (0, 200, "0% of these photos look like your classes, and one in twenty of the others gets in"),
    ]:
        found = look(detector, vectors(n_cats, n_others))
        assert found.warning.startswith(warning) and bool(found.warning) == bool(warning)
        assert (found.cut.n_reference, found.like) == (n_others, n_cats / (n_cats + n_others))
    few = look(detector, vectors(200, 49))
    assert few.cut is None and few.applied(detector) is detector and not few.warning
    assert "49 of 249 photos that look like none of your classes are too few to find a cut from (50)" in few.told("x")
    photos = [Image.new("RGB", (2, 2), tuple(c.tolist())) for c in [*colours("cat", 200), *colours("tree", 50)]]
    with pytest.warns(UserWarning, match="80% of these photos look like"):
        assert detector.predict(photos)[0].basis == "batch"


def test_named_in_blocks_as_one_by_one(detector):
    x = np.random.default_rng(0).normal(size=(600, detector.encoder.dim)).astype(np.float32)
    one_by_one = [named_like_labels(detector, row[None])[0] for row in x[::50]]
    assert named_like_labels(detector, x)[::50].tolist() == one_by_one


def test_the_smallest_names_in_any_order():
    names = [f"{n}.jpg" for n in range(500)]
    slow = sorted(names, key=hashed)[:20]
    for seed in range(3):
        chosen = Smallest[int](20)
        for name in np.random.default_rng(seed).permutation(names + names).tolist():
            chosen.add(name, len(name))
        assert chosen.items() == [(name, len(name)) for name in slow] and len(chosen) == 20
        assert len(chosen._values) == 20


def test_what_is_looked_at_of_many_photos(tmp_path, monkeypatch):
    photos = paint(tmp_path / "photos", brick=200, tree=100)
    monkeypatch.setattr(sampling, "most_wanted", lambda detector: 120)
    expected = sorted(map(str, photos.iterdir()), key=hashed)[:120]
    detector = made()
    assert [name for name, _ in choose(open_source(detector, [photos]), 120).items()] == expected
    found = look_at(detector, open_source(detector, [photos]))
    assert (found.n_photos, detector.encoder.seen) == (120, 120)
    other = look_at(made(Colours(batch_size=3)), open_source(detector, [photos / "*.png"]))
    assert other.table() == found.table()


def test_archives_are_looked_into_so_far(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sampling, "ARCHIVES", 3)
    monkeypatch.setattr(sampling, "INSIDE", 150)
    shards = [f"{number}.tar" for number in range(5)]
    for number, name in enumerate(shards):
        inside = {f"{n:02}.png": photo(100 * number + n) for n in range(90)}
        write_tar(tmp_path / name, {**inside, "07.png": b""})
    opened = sorted(shards, key=hashed)[:3]
    detector = made()
    chosen = {name for name, _ in choose(open_source(detector, ["*.tar"])).items()}
    assert chosen == {f"{name}/{n:02}.png" for name in opened for n in range(50)}
    found = look_at(detector, open_source(detector, reversed(shards)))
    assert found.n_photos == detector.encoder.seen == 150 - 3


def test_all_kinds_of_sources_together(tmp_path):
    photos, detector = paint(tmp_path / "photos", cat=40, brick=60), made()
    (photos / "bad.png").write_bytes(b"")
    write_tar(tmp_path / "a.tar", {f"{n}.png": photo(n) for n in range(70)})
    write_parquet(tmp_path / "t.parquet", [photo(n) for n in range(50)], rows=7)
    embed(detector.encoder, sorted(paint(tmp_path / "kept", tree=30).iterdir()), tmp_path / "s")
    detector.encoder.seen = 0
    given = [photos, tmp_path / "a.tar", tmp_path / "s", tmp_path / "t.parquet", photos]
    found = look_at(detector, open_source(detector, given))
    assert (found.n_photos, detector.encoder.seen) == (250, 220)


@pytest.fixture(params=[uncut, imagined])
def plain(request, detector, tmp_path):
    """A saved detector that the photos asked about make the cut of, and two stores for it."""
    bare = request.param(detector)
    bare.save(tmp_path / "plain.outword")
    return tmp_path / "plain.outword", *(write_store(tmp_path / f"s{n}", bare, 90, seed=n) for n in range(2))


def test_a_run_that_is_killed_goes_on_with_its_cut(plain, tmp_path, monkeypatch):
    call("score", *plain, "-o", f"{tmp_path}/whole/")
    call("score", *plain, "-o", tmp_path / "file.csv")
    told = contents(tmp_path / "whole")
    about = json.loads(told[MANIFEST].splitlines()[0])
    rows = [row for n in range(2) for row in read_rows(tmp_path / "whole" / f"part-00000{n}-0000.csv", "csv")]
    assert rows == list(read_rows(tmp_path / "file.csv", "csv")) and len(rows) == 182
    (found,) = {(row["basis"], row["threshold"]) for row in rows if not row["error"]}
    settled = read_batch(about["batch"]).applied(outword.load(plain[0]))
    assert found == (settled.basis, six_digits(settled.threshold)) and about["batch"]["n_photos"] == 180
    assert settled.basis in ("batch", "imagined") and settled.threshold != outword.load(plain[0]).threshold
    for number in (0, 2):  # before the manifest, and before the second part
        there = ("score", *plain, "-o", f"{tmp_path}/{number}/")
        with stopped("outword.scoring.parts:write_synced", number, *there) as process:
            process.kill()
        with monkeypatch.context() as patch:
            if number:
                patch.setattr(scoring.runs, "look_at", None)
            call(*there)
        assert contents(tmp_path / str(number)) == told


def test_another_cut_is_another_run(plain, detector, tmp_path):
    saved, *stores = plain
    call("score", saved, *stores, "-o", f"{tmp_path}/out/")
    cut = read_batch(json.loads((tmp_path / "out" / MANIFEST).read_text().splitlines()[0])["batch"])
    detector.save(tmp_path / "other.outword")
    refused = call("score", tmp_path / "other.outword", *stores, "-o", f"{tmp_path}/out/", code=2).stderr
    assert "holds the output of another run: detector differ" in refused
    kept = scoring.filter(outword.load(saved), stores, tmp_path / "kept", how="list")
    again = read_batch(json.loads((tmp_path / "kept" / "scores" / MANIFEST).read_text().splitlines()[0])["batch"])
    assert again.table() == cut.table() and 18 <= kept.kept.total() < 180


def test_a_fixed_threshold_is_another_run(detector, tmp_path):
    made = imagined(detector)
    made.save(tmp_path / "d")
    store = write_store(tmp_path / "s", made, 40)
    call("score", tmp_path / "d", store, "-o", f"{tmp_path}/out/")
    fixed = call("score", tmp_path / "d", store, "-o", tmp_path / "a.csv", "--fixed-threshold")
    assert "refined" not in fixed.stderr and made.how_cut in fixed.stderr
    found = {(row["basis"], row["threshold"]) for row in read_rows(tmp_path / "a.csv", "csv") if not row["error"]}
    assert found == {("imagined", six_digits(made.threshold))}
    refused = call("score", tmp_path / "d", store, "-o", f"{tmp_path}/out/", "--fixed-threshold", code=2).stderr
    assert "holds the output of another run: fixed differ" in refused
    scores = {row["score"] for row in read_rows(tmp_path / "a.csv", "csv")}
    assert scores == {row["score"] for row in read_rows(tmp_path / "out" / "part-000000-0000.csv", "csv")}


def test_where_no_photo_can_be_read_the_threshold_stays(detector, tmp_path):
    made = imagined(detector)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "bad.png").write_bytes(b"")
    found = look_at(made, open_source(made, [tmp_path / "photos"]))
    assert found.n_photos == 0 and found.applied(made).threshold == made.threshold
    assert found.told("mini") == "no reference for mini: the threshold is from photos imagined from names"


def test_one_photo_gets_the_same_threshold_in_every_way(detector, tmp_path):
    made = imagined(detector)
    photo = PHOTOS / "cat.jpg"
    written(made, photo, tmp_path / "a.csv", html=tmp_path / "a.html")
    (row,) = read_rows(tmp_path / "a.csv", "csv")
    (record,) = made.predict(photo)
    assert (row["threshold"], row["basis"], row["p"]) == (
        six_digits(record.threshold),
        "imagined",
        six_digits(record.p),
    )
    assert (row["score"], row["label"]) == (six_digits(record.score), record.label)
    assert record.threshold != made.threshold
    page = (tmp_path / "a.html").read_text()
    assert record.fits in page and " of imagined unrelated photos; " in record.fits
    assert "from 1,200 photos imagined from names, refined by 1 of the photos asked about" in page


@pytest.mark.parametrize(
    "changes",
    [{"like": 2}, {"n_photos": -1}, {"cut": {"value": 1}}, {"sight": {"gain": 1}}, {"sight": {**SIGHT, "noise": 0}}],
)
def test_a_manifest_that_was_tampered_with(plain, tmp_path, changes):
    saved, *stores = plain
    call("score", saved, *stores, "-o", f"{tmp_path}/out/")
    manifest = tmp_path / "out" / MANIFEST
    first, _, rest = manifest.read_text().partition("\n")
    about = json.loads(first)
    about["batch"] |= changes
    manifest.write_text(json.dumps(about) + "\n" + rest)
    told = call("score", saved, *stores, "-o", f"{tmp_path}/out/", code=2).stderr
    assert "the cut that the run was begun with cannot be read" in told and "choose another folder" in told


def test_a_table_comes_back():
    batch = Batch(200, 0.25, fit_reference([1.0, 2.0, 1 / 3], method="batch"))
    back = read_batch(json.loads(json.dumps(batch.table())))
    assert back.table() == batch.table() and back.cut == batch.cut
    sharp = Batch(3, sight=Sight(**{**SIGHT, "level": 1 / 3}))
    assert read_batch(json.loads(json.dumps(sharp.table()))).sight == sharp.sight
