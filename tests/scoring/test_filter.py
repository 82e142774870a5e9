"""`outword filter`: what is kept, under which names, how a run goes on, and what is refused."""

import csv
import io
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import fsspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import outword
from conftest import LABELS, PHOTOS, call
from helpers.archives import photo, write_arrow, write_parquet, write_tar
from helpers.bad_images import encoded, picture
from helpers.pages import HOSTILE, Page
from outword.base.files import _machine
from outword.base.prediction import Prediction, cells
from outword.encoders.reading import Span
from outword.errors import InputError
from outword.photos.sources import filesystems
from outword.photos.sources.tar import Tar
from outword.photos.twins import Twins
from outword.scoring import filtering as clean
from outword.scoring import runs
from outword.scoring.filtering import Images, Judged, Tally, claimed, copy_kept, folder_names, link_kept, safe_name
from outword.scoring.page import Borderline, Card, StreamingHistogram, Summary, write_page
from outword.scoring.parts import Parts
from outword.vectors.source import Source

CHOSEN = ["cat", "coffee", "raccoon", "brick", "gravel"]  # of the demo; the first two are in, the others out
ODD = ["../x", "a/b", "a_b", "A b", "CON", "nul.txt", "x" * 300, "\u00e9" * 200, "a\nb\x00\x1b", "", " ", "...", ".new"]
ODD += ["\u202egpj", "\udce9", "~", "-rf", "C:\\x", "tabby cat", "..\\..\\x", "con.", "."]


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A folder with sub-folders, with a file that is no image in it."""
    folder = tmp_path_factory.mktemp("source") / "photos"
    (folder / "more").mkdir(parents=True)
    for name in CHOSEN:
        shutil.copy(PHOTOS / f"{name}.jpg", folder / "more" if name in ("cat", "gravel") else folder)
    (folder / "bad.jpg").write_bytes(b"no image")
    return folder


@pytest.fixture(scope="module")
def judge(detector, tmp_path_factory):
    path = tmp_path_factory.mktemp("judge") / "pets.outword"
    detector.save(path)
    return path


@pytest.fixture(scope="module")
def done(photos, judge, tmp_path_factory):
    """A run that was not disturbed."""
    folder = tmp_path_factory.mktemp("done") / "kept"
    call("filter", photos, "--detector", judge, "-o", folder)
    return folder


@pytest.fixture(scope="module")
def fitted(photos, tmp_path_factory):
    """A run on class names, and what it said."""
    folder = tmp_path_factory.mktemp("fitted")
    (folder / "labels.txt").write_text("\n".join(LABELS))
    return folder / "kept", call("filter", photos, "--labels", folder / "labels.txt", "-o", folder / "kept")


def table(text):
    lines = list(csv.DictReader(io.StringIO(text)))
    return {line["label"] or line["photos"]: int(line["number"]) for line in lines}


def tree(folder):
    """All files below a folder with their content; of links, where they lead."""
    return {
        str(path.relative_to(folder)): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def contents(folder):
    return sorted(path.read_bytes() for path in (folder / "images").rglob("*") if path.is_file())


def original(*names):
    return sorted((PHOTOS / f"{name}.jpg").read_bytes() for name in names)


def test_what_is_in_is_kept(photos, fitted):
    kept, result = fitted
    counts = table(result.stdout)
    assert list(counts) == [*LABELS, "left out", "error"] and result.stdout == (kept / "counts.csv").read_text()
    assert (counts["tabby cat"], counts["espresso"]) == (1, 1)
    assert (sum(counts[label] for label in LABELS), counts["left out"]) == (2, 3)
    assert f"kept 2 of 6 images, 1 error, in {kept}" in result.stderr
    assert "unrelated photos" in result.stderr
    assert (kept / "kept.txt").read_text().splitlines() == [str(photos / "coffee.jpg"), str(photos / "more/cat.jpg")]
    found = {path.parent.name: path for path in (kept / "images").rglob("*.jpg")}
    assert {label: path.name[:-20] for label, path in found.items()} == {"tabby_cat": "cat-", "espresso": "coffee-"}
    assert contents(kept) == original("cat", "coffee")
    assert sorted(os.listdir(kept)) == sorted(clean.NAMES - {clean.DUPLICATES})
    again = call("score", kept / "detector.outword", kept / "kept.txt").stdout
    assert [line["verdict"] for line in csv.DictReader(io.StringIO(again))] == ["in"] * 2


@pytest.mark.parametrize("raw", [[], ["--raw-csv"]])
def test_names_that_are_formulas_or_no_text(judge, tmp_path, monkeypatch, raw):
    monkeypatch.chdir(tmp_path)
    names = ["=1+1.jpg", os.fsdecode(b"caf\xe9.jpg"), "caf\\xe9.jpg"]
    for name, shown in zip(names, ["cat", "coffee", "cat"], strict=True):
        shutil.copy(PHOTOS / f"{shown}.jpg", name)
    call("filter", *names, "--detector", judge, "-o", "kept", *raw)
    assert os.fsdecode(Path("kept/kept.txt").read_bytes()).splitlines() == names
    assert contents(tmp_path / "kept") == original("cat", "cat", "coffee")
    rows = csv.DictReader(io.StringIO(Path("kept/scores/part-000000-0000.csv").read_bytes().decode()))
    assert [row["path"] for row in rows] == ["=1+1.jpg" if raw else "'=1+1.jpg", "caf\\xe9.jpg", "caf\\x5cxe9.jpg"]


def test_counts_have_no_formulas():
    tally = Tally(["=1+1", "a"])
    assert tally.csv() == "photos,label,number\nkept,'=1+1,0\nkept,a,0\nleft out,,0\nerror,,0\n"
    assert tally.csv(raw=True) == "photos,label,number\nkept,=1+1,0\nkept,a,0\nleft out,,0\nerror,,0\n"


def test_second_run_makes_nothing_again(photos, fitted, tmp_path, monkeypatch):
    labels, (kept, first) = tmp_path / "labels.txt", fitted
    labels.write_text("\n".join(LABELS))
    before, places = tree(kept), {path: path.stat().st_ino for path in (kept / "images").rglob("*.jpg")}
    monkeypatch.setattr("outword.detector.fitting.fit", None)
    monkeypatch.setattr("outword.scoring.stream.judge_chunks", lambda detector, chunks: [pytest.fail() for _ in chunks])
    second = call("filter", photos, "--labels", labels, "-o", kept)
    assert second.stdout == first.stdout and tree(kept) == before
    assert {path: path.stat().st_ino for path in places} == places
    labels.write_text("\n".join(LABELS[::-1]))
    assert "was made for other labels" in call("filter", photos, "--labels", labels, "-o", kept, code=2).stderr
    labels.write_text("\n".join([f"{LABELS[0]}: a sleeping cat", *LABELS[1:]]))
    assert "was made for other labels" in call("filter", photos, "--labels", labels, "-o", kept, code=2).stderr
    labels.write_text("\n".join(LABELS))
    other = call("filter", photos, "--labels", labels, "-o", kept, "--encoder", "clip-rn50", code=2).stderr
    assert "was made with the encoder mini, not clip-rn50" in other
    assert tree(kept) == before


def test_scores_are_those_of_the_verb_score(photos, judge, done, tmp_path):
    call("score", judge, photos, "-o", f"{tmp_path}/scores/", "--format", "csv")
    assert tree(tmp_path / "scores") == tree(done / "scores")


def made_source(kind, folder):
    """The chosen photos as another kind of source."""
    data = {name: (PHOTOS / f"{name}.jpg").read_bytes() for name in CHOSEN}
    path = folder / f"all.{kind.partition('-')[0]}"
    if kind == "tar":
        write_tar(path, {f"../{name}.jpg": content for name, content in data.items()})
    elif kind == "parquet":
        write_parquet(path, [(content, f"{name}.jpg") for name, content in data.items()], rows=2)
    elif kind == "parquet-bytes":
        write_parquet(path, list(data.values()), rows=2)
    else:
        path.write_text("\n".join(str(PHOTOS / f"{name}.jpg") for name in CHOSEN))
    return path


@pytest.mark.parametrize("kind", ["tar", "parquet", "parquet-bytes", "txt"])
def test_any_source(kind, judge, tmp_path):
    source, kept = made_source(kind, tmp_path), tmp_path / "kept"
    result = call("filter", source, "--detector", judge, "-o", kept)
    assert "kept 2 of 5 images, 0 errors" in result.stderr
    assert contents(kept) == original("cat", "coffee")
    assert all(path.suffix == ".jpg" for path in (kept / "images").rglob("*") if path.is_file())
    assert len((kept / "kept.txt").read_text().splitlines()) == 2
    assert (kept / "borderline.html").read_text().count("<img ") == 5
    before = tree(kept)
    next((kept / "images").rglob("*.jpg")).unlink()
    call("filter", source, "--detector", judge, "-o", kept)
    assert tree(kept) == before


def test_store_is_a_source(photos, judge, tmp_path):
    call("embed", photos, "-o", tmp_path / "store")
    call("filter", tmp_path / "store", "--detector", judge, "-o", tmp_path / "kept")
    assert contents(tmp_path / "kept") == original("cat", "coffee")
    write_tar(tmp_path / "a.tar", {"cat.jpg": (PHOTOS / "cat.jpg").read_bytes()})
    call("embed", tmp_path / "a.tar", "-o", tmp_path / "packed")
    refused = call("filter", tmp_path / "packed", "--detector", judge, "-o", tmp_path / "none", code=2).stderr
    assert "a.tar/cat.jpg lies in an archive" in refused and "filter the photos themselves" in refused
    call("filter", tmp_path / "packed", "--detector", judge, "-o", tmp_path / "none", "--as", "list")
    assert (tmp_path / "none" / "kept.txt").read_text() == f"{tmp_path}/a.tar/cat.jpg\n"


class Killed(Exception):
    pass


def killing(monkeypatch, owner, name, after):
    """Have a function raise when it is called for the time `after`, counted from 0."""
    real, calls = getattr(owner, name), []

    def called(*args, **options):
        calls.append(name)
        if len(calls) > after:
            raise Killed
        return real(*args, **options)

    monkeypatch.setattr(owner, name, called)


@pytest.mark.parametrize(
    ("where", "name", "after"),
    [
        (Parts, "add", 0),
        (Parts, "finish", 0),
        (Images, "_put", 0),
        (Images, "_put", 1),
        (Path, "replace", 3),
        (Tally, "add", 3),
        (Tally, "csv", 0),
        (runs, "write_page", 0),
    ],
)
def test_killed_run_goes_on(photos, judge, done, tmp_path, monkeypatch, where, name, after):
    kept = tmp_path / "kept"
    with monkeypatch.context() as patch:
        killing(patch, where, name, after)
        with pytest.raises(Killed):
            call("filter", photos, "--detector", judge, "-o", kept)
    left = kept / f".outword-{_machine()}-0123456789abcdef"  # of a kill -9
    left.mkdir()
    (left / "new").write_bytes(b"half")
    if (kept / "images").is_dir():
        (kept / "images" / ".new").write_bytes(b"half")
    call("filter", photos, "--detector", judge, "-o", kept)
    assert tree(kept) == tree(done)
    assert sorted(os.listdir(kept)) == sorted(os.listdir(done))


def twice(folder):
    """Photos that are there twice: as copies, saved once more, and in a tar; and the list of the others."""
    for name in ("cat", "coffee", "raccoon"):
        shutil.copy(PHOTOS / f"{name}.jpg", folder / f"1-{name}.jpg")
        shutil.copy(PHOTOS / f"{name}.jpg", folder / f"=2-{name}.jpg")
    Image.open(PHOTOS / "cat.jpg").resize((600, 400)).save(folder / "3-cat.webp", quality=70)
    (folder / "bad.jpg").write_bytes(b"")
    write_tar(folder / "a.tar", {f"{name}.jpg": (PHOTOS / f"{name}.jpg").read_bytes() for name in ("coffee", "gravel")})
    return [str(folder / "1-cat.jpg"), str(folder / "1-coffee.jpg")]


@pytest.mark.parametrize("how", ["copy", "list"])
def test_duplicates_are_dropped_and_listed(judge, tmp_path, how):
    folder, kept = tmp_path / "photos", tmp_path / "kept"
    folder.mkdir()
    first = twice(folder)
    arguments = ["filter", folder, folder / "a.tar", folder / "1-cat.jpg", "--detector", judge, "-o", kept, "--as", how]
    result = call(*arguments, "--drop-duplicates")
    assert (kept / "kept.txt").read_text().splitlines() == first
    assert "kept 2 of 11 images, 1 error," in result.stderr and "; 5 were the same as others" in result.stderr
    dropped = list(csv.DictReader(io.StringIO((kept / "duplicates.csv").read_text())))
    names = ["3-cat.webp", "=2-cat.jpg", "=2-coffee.jpg", "a.tar/coffee.jpg", "1-cat.jpg"]
    assert [row["path"] for row in dropped] == [str(folder / name) for name in names]
    assert [row["same_as"] for row in dropped] == [first[n] for n in (0, 0, 1, 1, 0)]
    assert how == "list" or contents(kept) == original("cat", "coffee")
    counts = {what: number for what, number in table(result.stdout).items() if number}
    assert counts == {"tabby cat": 1, "espresso": 1, "left out": 3, "duplicate": 5, "error": 1}
    before = tree(kept)
    assert call(*arguments, "--drop-duplicates").stdout == result.stdout and tree(kept) == before
    assert "drop_duplicates differ" in call(*arguments, code=2).stderr


@pytest.mark.parametrize(("where", "name"), [(Twins, "first"), (Tally, "csv")])
def test_killed_run_that_drops_duplicates_goes_on(judge, tmp_path, monkeypatch, where, name):
    (tmp_path / "photos").mkdir()
    first = twice(tmp_path / "photos")
    arguments = ["filter", tmp_path / "photos", "--detector", judge, "-o", tmp_path / "kept", "--drop-duplicates"]
    with monkeypatch.context() as patch:
        killing(patch, where, name, 0)
        with pytest.raises(Killed):
            call(*arguments)
    call(*arguments)
    assert (tmp_path / "kept" / "kept.txt").read_text().splitlines() == first
    assert contents(tmp_path / "kept") == original("cat", "coffee")


def test_duplicates_among_photos_of_a_store(judge, tmp_path):
    (tmp_path / "photos").mkdir()
    first = twice(tmp_path / "photos")
    call("embed", tmp_path / "photos", "-o", tmp_path / "store")
    call(
        "filter", tmp_path / "store", "--detector", judge, "-o", tmp_path / "kept", "--drop-duplicates", "--as", "link"
    )
    assert sorted((tmp_path / "kept" / "kept.txt").read_text().splitlines()) == first
    assert len(list((tmp_path / "kept" / "images").rglob("*.*"))) == 2


def test_links_and_then_copies(photos, judge, done, tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    monkeypatch.chdir(photos.parent)
    call("filter", "photos", "--detector", judge, "-o", kept, "--as", "link")
    links = [path for path in (kept / "images").rglob("*") if path.is_symlink()]
    assert sorted(str(path.readlink()) for path in links) == [str(photos / "coffee.jpg"), str(photos / "more/cat.jpg")]
    before = tree(kept)
    call("filter", "photos", "--detector", judge, "-o", kept, "--as", "link")
    assert tree(kept) == before
    originals = tree(photos)
    call("filter", "photos", "--detector", judge, "-o", kept)  # a copy must not be written through a link
    assert not any(path.is_symlink() for path in links) and contents(kept) == original("cat", "coffee")
    call("filter", "photos", "--detector", judge, "-o", kept, "--as", "link")
    assert tree(kept) == before and tree(photos) == originals


def test_what_cannot_be_linked(judge, tmp_path):
    tar, kept = made_source("tar", tmp_path), tmp_path / "kept"
    for source in (tar, "s3://bucket/photos", f"{tar.parent}/{{none,{tar.stem}}}.tar"):
        refused = call("filter", source, "--detector", judge, "-o", kept, "--as", "link", code=2).stderr
        assert "cannot be linked" in refused and "--as copy" in refused and not kept.exists()
    parquet = made_source("parquet", tmp_path)
    assert "cannot be linked" in call("filter", parquet, "--detector", judge, "-o", kept, "--as", "link", code=2).stderr
    assert "5 rows are there already" in call("filter", parquet, "--detector", judge, "-o", kept).stderr
    assert contents(kept) == original("cat", "coffee")


def test_list_alone(photos, judge, done, tmp_path):
    call("filter", photos, "--detector", judge, "-o", tmp_path / "kept", "--as", "list")
    expected = {name: data for name, data in tree(done).items() if not name.startswith("images")}
    assert tree(tmp_path / "kept") == expected


@pytest.mark.parametrize("how", ["copy", "link"])
def test_photo_that_is_gone_is_told(judge, tmp_path, how):
    for name in ("cat", "coffee"):
        shutil.copy(PHOTOS / f"{name}.jpg", tmp_path)
    listed, kept = tmp_path / "photos.txt", tmp_path / "kept"
    listed.write_text(f"{tmp_path}/cat.jpg\n{tmp_path}/coffee.jpg\n")
    call("filter", listed, "--detector", judge, "-o", kept, "--as", "list")
    (tmp_path / "cat.jpg").unlink()
    result = call("filter", listed, "--detector", judge, "-o", kept, "--as", how)
    assert f"no {how} of '{tmp_path}/cat.jpg': no such file" in result.stderr
    assert "1 of the kept could not be read any more" in result.stderr
    assert table(result.stdout)["tabby cat"] == 1
    assert contents(kept) == original("coffee")


def test_options_are_strict(photos, judge, tmp_path):
    kept = tmp_path / "kept"
    assert "got neither" in call("filter", photos, "-o", kept, code=2).stderr
    assert "got both" in call("filter", photos, "-o", kept, "--labels", judge, "--detector", judge, code=2).stderr
    assert "--engine ray" in call("filter", photos, "--detector", judge, "-o", kept, "--address", "x", code=2).stderr
    assert "no label list" in call("filter", photos, "--labels", tmp_path / "none", "-o", kept, code=2).stderr
    assert "make it first" in call("filter", photos, "--detector", judge, "-o", tmp_path / "no" / "kept", code=2).stderr
    call("filter", photos, "--detector", judge, code=2)
    call("filter", photos, "--detector", judge, "-o", kept, "--as", "move", code=2)
    assert not kept.exists()


@pytest.mark.parametrize("method", ["mcm", "adaneg"])
def test_detector_that_cannot_filter(photos, tmp_path, words_file, method, no_reference):
    path, kept = tmp_path / "odd.outword", tmp_path / "kept"
    words = {"corpus": words_file, "miner": "all"} if method == "adaneg" else {}
    outword.fit(LABELS, method=method, **words).save(path)
    refused = call("filter", photos, "--detector", path, "-o", kept, code=2).stderr
    hint = "hint: outword calibrate DETECTOR PHOTOS..." if method == "mcm" else "hint: use a detector of another method"
    assert hint in refused and not (kept / "counts.csv").exists()


def test_calibrated_detector_decides(photos, judge, tmp_path):
    strict, kept = tmp_path / "strict.outword", tmp_path / "kept"
    cups = [PHOTOS / "coffee.jpg", *(tmp_path / f"{quality}.jpg" for quality in (92, 94, 96, 98))]
    for path in cups[1:]:  # the same photo counts once
        Image.open(cups[0]).save(path, quality=int(path.stem))
    call("calibrate", judge, *cups, "--tpr", "1", "-o", strict)
    result = call("filter", photos, "--detector", strict, "-o", kept)
    assert "uncalibrated" not in result.stderr and contents(kept) == original("coffee")
    refused = call("filter", photos, "--detector", judge, "-o", kept, code=2).stderr
    assert "output of another run: detector differ" in refused


@pytest.mark.parametrize("name", ["notes.md", "images", "kept.txt"])
def test_folder_with_something_else_is_refused(photos, judge, tmp_path, name):
    (tmp_path / "kept" / name).mkdir(parents=True)
    refused = call("filter", photos, "--detector", judge, "-o", tmp_path / "kept", code=2).stderr
    assert f"not of a run of this kind ({name})" in refused and os.listdir(tmp_path / "kept") == [name]


def test_file_is_no_folder(photos, judge, tmp_path):
    (tmp_path / "kept").write_bytes(b"x")
    assert "is no folder" in call("filter", photos, "--detector", judge, "-o", tmp_path / "kept", code=2).stderr


def test_output_in_the_source_is_refused(photos, judge, monkeypatch):
    monkeypatch.chdir(photos)
    for source, kept in [
        (".", "kept"),
        (photos, "more/kept"),
        ("*", "kept"),
        ("**/*.jpg", "more/kept"),
        (photos / "m*" / "*", "more/kept"),
        (photos, "."),
    ]:
        assert "taken for more of the source" in call("filter", source, "--detector", judge, "-o", kept, code=2).stderr
    assert not list(photos.rglob("kept*"))


def test_output_beside_the_source_is_fine(photos, judge, tmp_path, monkeypatch):
    shutil.copytree(photos, tmp_path / "photos")
    monkeypatch.chdir(tmp_path / "photos")
    call("filter", "*.jpg", "--detector", judge, "-o", "kept")
    assert contents(Path("kept")) == original("coffee")


def test_one_run_at_a_time(photos, judge, tmp_path):
    kept = tmp_path / "kept"
    with claimed(kept):
        assert "another run is writing" in call("filter", photos, "--detector", judge, "-o", kept, code=2).stderr
    assert not kept.exists()
    assert call("filter", photos, "--detector", judge, "-o", kept).exit_code == 0


def test_wrong_column_does_not_spoil_the_folder(judge, tmp_path):
    source, kept = made_source("parquet", tmp_path), tmp_path / "kept"
    assert "it has: image" in call("filter", source, "--detector", judge, "-o", kept, "--column", "img", code=2).stderr
    call("filter", source, "--detector", judge, "-o", kept, "--column", "image")
    assert contents(kept) == original("cat", "coffee")


def test_nothing_found(judge, tmp_path):
    (tmp_path / "empty").mkdir()
    result = call("filter", tmp_path / "empty", "--detector", judge, "-o", tmp_path / "kept", code=1)
    assert (
        table(result.stdout) == dict.fromkeys([*LABELS, "left out", "error"], 0) and "no images found" in result.stderr
    )
    assert (tmp_path / "kept" / "kept.txt").read_bytes() == b""


@pytest.mark.skipif(os.name != "posix", reason="names with line breaks")
def test_path_that_cannot_be_listed(judge, tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in ("a\nb.jpg", b"\xe9.jpg".decode(errors="surrogateescape"), " c.jpg"):
        shutil.copy(PHOTOS / "cat.jpg", folder / name)
    result = call("filter", folder, "--detector", judge, "-o", tmp_path / "kept")
    assert "a\\nb.jpg' is kept, but cannot stand in kept.txt" in result.stderr
    assert "1 kept photo is not in kept.txt" in result.stderr
    listed = (tmp_path / "kept" / "kept.txt").read_bytes().splitlines()
    assert listed == [os.fsencode(folder / " c.jpg"), os.fsencode(folder) + b"/\xe9.jpg"]
    assert contents(tmp_path / "kept") == original("cat", "cat", "cat")
    scored = call("score", judge, tmp_path / "kept" / "kept.txt")
    assert "2 images: 2 in" in scored.stderr


# What follows does without an encoder: rows are made up.


def fill(folder, source, record_of):
    """The parts of a source, with a record for each name."""
    parts = Parts(folder, "csv", {})
    with parts:
        number = -1
        for number, piece in enumerate(source.pieces()):
            rows = [record_of(os.fspath(item)) for item in piece.items(contents=False)]
            parts.add(Span(number, piece.name, piece.version(), 0, True), rows)
        parts.finish(number + 1)
    return parts


CAT = ["cat"]


def kept_row(path, label="cat", score=1.0):
    return Prediction(str(path), score=score, verdict="in", label=label, nearest=label)


def test_labels_and_names_stay_inside(tmp_path):
    images = Images(tmp_path / "kept" / "images", ODD)
    data = encoded(picture(), "PNG")
    for label in ODD:
        for name in (*ODD, *(f"{name}.PNG" for name in ODD)):
            row = cells(kept_row(name, label))
            assert images.wants(row)
            images.copy(row, data)
            assert not images.wants(row)
    folders = list((tmp_path / "kept" / "images").iterdir())
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(folders) == len(ODD) == len({path.name.casefold() for path in folders})
    assert len(files) == 2 * len(ODD) ** 2
    assert all(path.parent.parent == tmp_path / "kept" / "images" and path.suffix == ".png" for path in files)
    assert {path.read_bytes() for path in files} == {data}


@given(st.text(st.characters(exclude_categories=[])))
def test_safe_name_is_a_name(text):
    name = safe_name(text)
    assert name == safe_name(name) or clean._DEVICE.fullmatch(name[1:]) or name == "_"
    assert 0 < len(name.encode()) <= clean.LONGEST + 1
    assert name[0] != "." and name[-1] not in ". " and name.isprintable() and not set(name) & set('/\\:*?"<>|')


@given(st.lists(st.sampled_from([*ODD, "a b", "a  b", "A_B", "\u00c9" * 200]), unique=True))
def test_labels_have_folders_of_their_own(labels):
    names = folder_names(labels)
    assert list(names) == labels
    assert len({name.casefold() for name in names.values()}) == len(labels)


def test_copies_of_every_kind_of_piece(tmp_path, monkeypatch):
    monkeypatch.setattr(clean, "PART", 2)
    for n in range(5):
        (tmp_path / f"{n}.png").write_bytes(photo(n))
    write_tar(tmp_path / "a.tar", {f"x/{n}.png": photo(10 + n) for n in range(4)})
    write_tar(tmp_path / "out.tar", {f"{n}.png": photo(20 + n) for n in range(3)})
    write_parquet(tmp_path / "b.parquet", [photo(30 + n) for n in range(7)], labels=[n % 2 for n in range(7)])

    def record_of(path):
        is_out = "out.tar" in path or path.endswith("1.png")
        return Prediction(path, score=0.0, verdict="out", nearest="cat") if is_out else kept_row(path)

    source = Source([[str(tmp_path / name) for name in ("*.png", "a.tar", "out.tar", "b.parquet", "4.png")]])
    parts = fill(tmp_path / "scores", source, record_of)
    reads, read = [], Tar.items
    monkeypatch.setattr(
        Tar, "items", lambda self, skip=0: reads.append((Path(self.path).name, skip)) or read(self, skip)
    )
    images = Images(tmp_path / "images", CAT)
    done = [row["path"] for row, error in copy_kept(source, Judged(parts), images) if not error]
    kept = [row["path"] for row in parts.rows() if row["verdict"] == "in"]
    assert done == kept[:-1]  # the file that is there twice is copied once
    wanted = sorted(photo(n) for n in [0, 2, 3, 4, 10, 12, 13, *range(30, 37)])
    assert contents(tmp_path) == wanted
    assert list(copy_kept(source, Judged(parts), images)) == []
    assert reads == [("a.tar", 0)]  # nothing of the other is kept, and a second run has nothing to read
    for lost in (tmp_path / "a.tar" / "x" / "2.png", tmp_path / "3.png"):
        Path("".join(images._place(cells(kept_row(lost))))).unlink()
    list(copy_kept(source, Judged(parts), images))
    assert contents(tmp_path) == wanted and reads[1:] == [("a.tar", 2)]


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_of_a_table_of_urls_only_what_is_kept_is_fetched(tmp_path, monkeypatch, name):
    memory = fsspec.filesystem("memory")
    urls = [f"memory://u/{n}.png" for n in range(9)]
    for n, url in enumerate(urls):
        memory.pipe_file(url, photo(n))
    (write_parquet if name == "t.parquet" else write_arrow)(tmp_path / name, urls, column="path")
    source = Source([[str(tmp_path / name)]])
    out = Prediction("", score=0.0, verdict="out", nearest="cat")
    kept = {urls[2], urls[7]}
    parts = fill(tmp_path / "scores", source, lambda path: kept_row(path) if path in kept else replace(out, path=path))
    read, read_file = [], filesystems.read_file
    monkeypatch.setattr(filesystems, "read_file", lambda path: read.append(path) or read_file(path))
    images = Images(tmp_path / "images", CAT)
    try:
        copied = [row["path"] for row, _ in copy_kept(source, Judged(parts), images)]
        assert copied == [urls[2], urls[7]] == sorted(read)
        assert contents(tmp_path) == sorted([photo(2), photo(7)])
        Path("".join(images._place(cells(kept_row(urls[2]))))).unlink()
        assert [row["path"] for row, _ in copy_kept(source, Judged(parts), images)] == [urls[2]] and len(read) == 3
    finally:
        memory.rm("/u", recursive=True)


def test_wrong_size_is_copied_again(tmp_path):
    for n in range(3):
        (tmp_path / f"{n}.png").write_bytes(photo(n))
    source = Source([[str(tmp_path / "*.png")]])
    parts = fill(tmp_path / "scores", source, kept_row)
    images = Images(tmp_path / "images", CAT)
    assert len(list(copy_kept(source, Judged(parts), images))) == 3
    half, empty, _ = sorted((tmp_path / "images").rglob("*.png"))
    half.write_bytes(b"half")
    empty.write_bytes(b"")
    assert [Path(row["path"]).name for row, _ in copy_kept(source, Judged(parts), images)] == ["0.png", "1.png"]
    assert contents(tmp_path) == sorted(map(photo, range(3)))


@pytest.mark.parametrize("kind", ["files", "tar", "fewer", "pieces"])
def test_source_that_changed_is_told(tmp_path, kind):
    write_tar(tmp_path / "a.tar", {f"{n}.png": photo(n) for n in range(3)})
    for n in range(3):
        (tmp_path / f"{n}.png").write_bytes(photo(n))
    source = Source([[str(tmp_path / ("a.tar" if kind in ("tar", "fewer") else "*.png"))]])
    parts = fill(tmp_path / "scores", source, kept_row)
    if kind == "files":
        (tmp_path / "1.png").unlink()
        source = Source(source.groups)  # of the next run, which lists it anew
    elif kind == "pieces":
        source = Source([[*source.groups[0], str(tmp_path / "a.tar")]])
    else:
        names = ["0.png", "x.png", "2.png"] if kind == "tar" else ["0.png", "1.png"]
        write_tar(tmp_path / "a.tar", {name: photo(n) for n, name in enumerate(names)})
    with pytest.raises(InputError, match="has changed since it was scored"):
        list(copy_kept(source, Judged(parts), Images(tmp_path / "images", CAT)))


def test_links_need_files(tmp_path):
    write_tar(tmp_path / "a.tar", {"0.png": photo(0)})
    parts = fill(tmp_path / "scores", Source([[str(tmp_path / "a.tar")]]), kept_row)
    with pytest.raises(InputError, match="cannot be linked"):
        list(link_kept(Judged(parts), Images(tmp_path / "images", CAT)))
    assert not (tmp_path / "images").exists()


def card(score, path="a.jpg", **changes):
    verdict = "in" if score >= 0.5 else "out"
    values = {"score": score, "verdict": verdict, "nearest": "cat"} | changes
    return Card(cells(Prediction(path, **values)))


@given(st.lists(st.integers(0, 20)), st.integers(1, 5))
def test_borderline_is_what_is_nearest(scores, limit):
    sample = Borderline(limit)
    for place, score in enumerate(scores):
        sample.add(card(score / 20, str(place)))
    ranked = sorted(enumerate(scores), key=lambda pair: abs(pair[1] - 9.5))
    inside = [str(place) for place, score in ranked if score >= 10][:limit]
    outside = [str(place) for place, score in ranked if score < 10][:limit]
    assert [shown.row["path"] for shown in sample.cards()] == inside + outside
    assert sample.counts.total() == len(scores)


def test_borderline_page(tmp_path):
    sample = Borderline(limit=2)
    for number in range(10):
        sample.add(card(number / 10, f"{HOSTILE}{number}", nearest=HOSTILE, words=((HOSTILE, 0.5),)))
    sample.add(Card(cells(Prediction(HOSTILE, error=HOSTILE))))
    sample.illustrate(lambda paths: dict.fromkeys(paths, b"jpeg"))
    write_page(tmp_path / "p.html", sample, title=HOSTILE, summary=Summary([HOSTILE, "cat"], "mini", "debiased", 0.45))
    text = (tmp_path / "p.html").read_text()
    page = Page(text)
    assert not {"script", "link", "iframe", "form", "object"} & set(page.tags) and page.tags.count("img") == 4
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    shown = "".join(page.texts)
    assert "In (2 of 5)" in shown and "Out (2 of 5)" in shown and "Errors (1)" in shown
    assert "Showing 4 of 10 scored images: those nearest to the threshold on either side." in shown
    assert "Histogram of 10 scores" in text


def test_borderline_stays_small():
    sample = Borderline(limit=3)
    scores = np.random.default_rng(0).normal(size=20_000)
    for score in scores:
        sample.add(card(float(score)))
    assert [len(heap) for heap in sample._heaps] == [3, 3]
    middles, counts = sample.scores.values()
    assert len(middles) <= 4096 and counts.sum() == len(scores)
    width = np.diff(middles).min()
    assert np.abs(np.repeat(middles, counts) - np.sort(scores)).max() <= width / 2


@given(st.lists(st.floats(-1e6, 1e6), max_size=40), st.integers(2, 9))
def test_spread_keeps_its_count(scores, most):
    counted = StreamingHistogram(most)
    for score in [*scores, float("nan"), float("inf")]:
        counted.add(score)
    middles, counts = counted.values()
    assert counts.sum() == len(scores) and len(middles) <= max(most, 2)
    if len(set(scores)) <= most:
        assert np.repeat(middles, counts).tolist() == sorted(scores)


def test_a_label_with_its_kind_is_not_taken_for_another_label(tmp_path):
    labels = ["cat", "cat (Egyptian cat)"]
    (tmp_path / "labels.json").write_text(json.dumps(labels))
    detector = outword.fit(labels)
    found = detector.predict(PHOTOS / "cat.jpg")[0]
    told = call("filter", PHOTOS / "cat.jpg", "--labels", tmp_path / "labels.json", "-o", tmp_path / "kept")
    assert found.verdict == "in"
    assert table(told.stdout) == {**{label: int(label == found.label) for label in labels}, "left out": 0, "error": 0}
