"""`zoc` from end to end: words from a file and from a callable, here and where they cannot come along."""

import json

import numpy as np
import pytest

import outword
from conftest import LABELS, PHOTOS, call, lay_out, rows_of
from outword.errors import ImageError, InputError, ParameterError
from outword.maths.metrics import auroc
from outword.vectors.embed import embed

NAMES = ("cat", "coffee", "rocket", "clock", "grass", "brick")
FILES = [PHOTOS / f"{name}.jpg" for name in NAMES]


@pytest.fixture(scope="module")
def zoc():
    return outword.fit(LABELS, method="zoc")


@pytest.fixture
def place(zoc, tmp_path):
    zoc.save(tmp_path / "zoc.outword")
    return tmp_path / "zoc.outword"


@pytest.fixture
def words(tmp_path):
    """Words for all photos but the last; those of the first two are ID names, and a thing."""
    path = tmp_path / "words.jsonl"
    lines = [{"path": name.name, "words": [f"{name.stem}", "Tabby_Cat", "wall"]} for name in FILES[:-1]]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def by_hand(zoc, photo, words):
    (x,), t = zoc.encoder.encode_images([photo]).astype(np.float64), zoc.encoder.temperature
    labels, named = (
        zoc.encoder.encode_texts([f"This is a photo of a {word}" for word in some]) for some in (LABELS, words)
    )
    mass = [np.exp(some @ x / t).sum() for some in (labels, named)]
    return -mass[1] / sum(mass)


def test_score_explain_and_calibrate_with_a_file(place, words, zoc, tmp_path):
    told = call("score", place, *FILES, "--words-per-image", words)
    *rows, last = rows_of(told.stdout)
    for row, photo in zip(rows, FILES, strict=False):
        wanted = by_hand(zoc, photo, [photo.stem, "wall"])
        assert float(row["score"]) == pytest.approx(wanted, rel=1e-4, abs=1e-6)
        assert (row["verdict"], row["error"]) == ("uncalibrated", "")
    assert (last["error"], last["score"]) == (f"no words for it in {words}", "")
    call("score", place, *FILES, "--words-per-image", words, "--strict", code=1)
    lines = call("explain", place, *FILES[-3:], "--words-per-image", words, "--json", "--top", 50)
    *found, lack = [json.loads(line) for line in lines.stdout.splitlines()]
    assert lack == {"path": str(FILES[-1]), "error": f"no words for it in {words}"}
    assert [{word for word, _ in one["words"]} for one in found] == [{"clock", "wall"}, {"grass", "wall"}]
    assert sum(share for _, share in found[0]["words"]) == pytest.approx(-found[0]["score"])
    assert sum(share for _, share in (*found[0]["words"], *found[0]["labels"])) == pytest.approx(1)
    told = call("calibrate", place, *FILES, "--words-per-image", words, "-o", tmp_path / "c", "--tpr", "0.8")
    assert "no words for it" in told.stderr
    assert outword.load(tmp_path / "c").calibration_.n_photos == 5
    out = tmp_path / "kept"
    call("filter", *FILES, "--detector", tmp_path / "c", "-o", out, "--as", "list", "--words-per-image", words)
    assert 3 <= len((out / "kept.txt").read_text().splitlines()) <= 5


def test_a_store_gives_what_photos_give(place, words, zoc, tmp_path):
    embed(zoc.encoder, FILES, tmp_path / "store")
    plain, stored = (
        {row["path"]: (row["score"], row["words"], row["error"]) for row in rows_of(told.stdout)}
        for told in (call("score", place, *some, "--words-per-image", words) for some in (FILES, [tmp_path / "store"]))
    )
    assert len(plain) == len(FILES)
    assert stored == plain


def test_a_run_in_parts_goes_on_with_the_same_words_only(place, words, tmp_path):
    call("score", place, *FILES, "-o", f"{tmp_path}/scores/", "--words-per-image", words)
    call("score", place, *FILES, "-o", f"{tmp_path}/scores/", "--words-per-image", words)
    words.write_text(words.read_text().replace("wall", "floor"))
    told = call("score", place, *FILES, "-o", f"{tmp_path}/scores/", "--words-per-image", words, code=2)
    assert "another" in told.stderr


def test_what_lacks_is_one_line(place, words, zoc, saved, tmp_path):
    lack = "zoc needs words per image: pass --words-per-image FILE, in Python detector.with_words(callable)"
    for verb in ("score", "explain", "calibrate"):
        assert lack in call(verb, place, *FILES, code=2).stderr
    for ask in (zoc.score, zoc.predict):
        with pytest.raises(InputError, match="zoc needs words per image: pass"):
            ask(FILES)
    assert "does not look at words per image" in call("score", saved, *FILES, "--words-per-image", words, code=2).stderr
    words.write_text(words.read_text() + "{\n")
    assert f"{words}, line 6 is no JSON" in call("score", place, *FILES, "--words-per-image", words, code=2).stderr
    assert call("explain", place, "--audit").stderr.strip() == "zoc has no wild words: there is nothing to list"
    with pytest.raises(InputError, match=r"a callable, got 'words.jsonl'"):
        zoc.with_words("words.jsonl")


def test_a_callable_sees_names_pixels_and_vectors(zoc, tmp_path):
    seen = []

    def source(photos):
        seen.extend(photos)
        return [ImageError("not this one") if "rocket" in photo.name else ["wall"] for photo in photos]

    named = zoc.with_words(source)
    records = named.predict([*FILES, "missing.jpg"])
    assert [record.error for record in records] == ["", "", "not this one", "", "", "", "no such file"]
    assert [photo.name for photo in seen] == [str(path) for path in FILES]
    assert all(photo.pixels.dtype == np.uint8 and photo.pixels.shape[2] == 3 for photo in seen)
    np.testing.assert_array_equal(np.stack([photo.vector for photo in seen]), zoc.encoder.encode_images(FILES))
    assert records[0].score == named.score(FILES[:1])[0] == named.explain(FILES[0]).score
    with pytest.raises(ImageError, match=r"rocket.jpg': not this one"):
        named.score(FILES)
    with pytest.raises(ImageError, match=r"rocket.jpg': not this one"):
        named.explain(FILES[2])
    seen.clear()
    from_array = named.explain(np.zeros((64, 64, 3), np.uint8))
    assert seen[0].name == "photos[0]" and [word for word, _ in from_array.words] == ["wall"]
    assert zoc.by_hand == {}
    named.save(tmp_path / "d")
    assert outword.load(tmp_path / "d").by_hand == {}


def test_a_file_of_other_photos_is_a_run_of_errors(place, words):
    words.write_text('{"path": "other.jpg", "words": ["wall"]}\n')
    rows = rows_of(call("score", place, *FILES, "--words-per-image", words, code=1).stdout)
    assert [row["error"] for row in rows] == [f"no words for it in {words}"] * len(FILES)
    source = outword.read_words_per_image(words)
    assert all(record.error for record in outword.load(place).with_words(source).predict(FILES))
    told = call("explain", place, *FILES, "--words-per-image", words, code=1).stderr
    assert "none of 6 images could be judged" in told


def test_nobody_names_anything(zoc):
    assert zoc.with_words(lambda photos: [[] for _ in photos]).score(FILES).tolist() == [0.0] * len(FILES)


def test_compare_and_bench(words, tmp_path):
    lay_out(tmp_path / "data", {"id/tabby cat": ["cat"], "id/espresso": ["coffee"], "ood/far": ["rocket", "clock"]})
    data, labels = tmp_path / "data", tmp_path / "labels.txt"
    labels.write_text("tabby cat\nespresso\n")
    sets = ["--id", data / "id", "--ood", data / "ood" / "far", "--methods", "zoc,mcm", "--json"]
    rows = json.loads(call("compare", labels, *sets, "--words-per-image", words).stdout)
    made = outword.fit(["tabby cat", "espresso"], method="zoc").with_words(outword.read_words_per_image(words))
    inside, outside = (made.score(sorted(data.glob(pattern))) for pattern in ("id/*/*", "ood/far/*"))
    assert {row["method"]: row["auroc"] for row in rows}["zoc"] == auroc(inside, outside)
    told = call("compare", labels, *sets)
    assert "left out: zoc: zoc needs words per image: pass --words-per-image FILE" in told.stderr
    words.write_text(words.read_text().replace("rocket.jpg", "other.jpg"))
    told = call("compare", labels, *sets, "--words-per-image", words)
    assert "left out: zoc: " in told.stderr and "rocket.jpg': no words for it in" in told.stderr
    told = call("bench", "folder", "--data", data, "-o", tmp_path / "b", "--methods", "zoc,mcm", "--seeds", 1)
    assert "zoc needs words per image" in told.stdout + told.stderr


def test_a_service_and_a_cluster_say_that_they_cannot(place, words):
    pytest.importorskip("fastapi")
    told = call("serve", place, "--port", 0, code=2)
    assert "zoc needs words per image, and requests have none" in told.stderr
    pytest.importorskip("ray")
    told = call("score", place, *FILES, "--engine", "ray", "--words-per-image", words, code=2)
    assert "zoc needs words per image, which do not come along to other processes" in told.stderr


def test_words_without_a_method_that_wants_them(saved, words, tmp_path):
    with pytest.raises(ParameterError, match="grounded does not look at words per image"):
        from outword.cli.options import with_file

        with_file(outword.load(saved), words)
