"""Saved detectors and files: whole or not at all, checked when read, refused with a reason."""

import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from outword.base.cache import cache_dir
from outword.base.files import sha256_bytes, sha256_file, whole_file
from outword.detector import artifact
from outword.detector.artifact import Saved
from outword.errors import ArtifactError

SAVED = Saved(
    {"method": {"name": "mcm"}}, {"labels": np.eye(2, dtype=np.float32)}, ["cat", "ü x"], ["dog"], ["cat", "ü x"], []
)


def test_round_trip(tmp_path):
    path = artifact.save(tmp_path / "a.outword", SAVED)
    back = artifact.load(path)
    for name in artifact.TEXTS:
        assert getattr(back, name) == getattr(SAVED, name)
    assert back.card["method"] == {"name": "mcm"}
    np.testing.assert_array_equal(back.arrays["labels"], SAVED.arrays["labels"])
    texts = ["labels.txt", "rows.txt", "vectors.safetensors", "vocabulary.txt", "wild.txt"]
    assert sorted(os.listdir(path)) == ["detector.json", *texts]
    assert os.listdir(tmp_path) == ["a.outword"]


def zipped(path, entries, **options):
    with zipfile.ZipFile(path, "w", **options) as file:
        for name, data in entries:
            file.writestr(name, data)
    return path


def test_a_zip_file_of_a_detector_is_read_like_its_folder(tmp_path):
    path = tmp_path / "a.outword.zip"
    path.write_bytes(artifact.zipped(SAVED, "detector.outword"))
    assert artifact.load(path).labels == SAVED.labels
    files = artifact.contents(SAVED)
    again = [(f"b/{name}", data) for name, data in files.items()]
    around = [("b/", b""), ("__MACOSX/b/labels.txt", b"of macOS"), ("../../evil.txt", b"x"), ("b/readme.md", b"hello")]
    by_hand = zipped(tmp_path / "b.zip", [*again, *around], compression=zipfile.ZIP_DEFLATED)
    assert artifact.load(by_hand).labels == SAVED.labels
    assert artifact.load(zipped(tmp_path / "c.zip", files.items())).wild == SAVED.wild  # in no folder
    assert sorted(os.listdir(tmp_path)) == ["a.outword.zip", "b.zip", "c.zip"]


def test_a_zip_file_that_is_no_detector_is_refused(tmp_path):
    files = artifact.contents(SAVED)

    def load(entries, **options):
        with pytest.raises(ArtifactError) as error:
            artifact.load(zipped(tmp_path / "x.zip", entries, **options))
        return error.value.message

    assert "x.zip is not a saved detector: it has no detector.json" in load([("../detector.txt", b"")])
    assert "x.zip has no wild.txt" in load([pair for pair in files.items() if pair[0] != "wild.txt"])
    assert f"{os.sep}wild.txt has changed" in load([*{**files, "wild.txt": b"cat"}.items()])
    assert "more than one detector" in load([(f"{folder}/{name}", files[name]) for folder in "ab" for name in files])
    with pytest.warns(UserWarning, match="Duplicate name"):
        assert "more than one detector" in load([*files.items(), ("wild.txt", b"")])
    bomb = {**files, "wild.txt": b"0" * (30 << 20)}
    assert "would unpack to 31,4" in load(bomb.items(), compression=zipfile.ZIP_DEFLATED)
    whole = zipped(tmp_path / "x.zip", files.items()).read_bytes()
    for broken in (b"", b"PK", whole[:-40], whole[:-6] + b"\xff" * 4 + b"\0\0", whole.replace(b"cat", b"cow")):
        (tmp_path / "x.zip").write_bytes(broken)
        with pytest.raises(ArtifactError, match=r"x\.zip is not a saved detector"):
            artifact.load(tmp_path / "x.zip")


def test_a_zip_entry_that_says_less_than_it_holds_stops_there(tmp_path):
    files = {**artifact.contents(SAVED), "wild.txt": b"0" * (30 << 20)}
    path = zipped(tmp_path / "x.zip", files.items(), compression=zipfile.ZIP_DEFLATED)
    size = (30 << 20).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(size, (4).to_bytes(4, "little")))
    with pytest.raises(ArtifactError, match=r"x\.zip"):
        artifact.load(path)


def test_a_detector_is_replaced_and_nothing_else_is(tmp_path):
    artifact.save(tmp_path / "a", SAVED)
    artifact.save(tmp_path / "a", replace(SAVED, labels=["one"]))
    assert artifact.load(tmp_path / "a").labels == ["one"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(ArtifactError, match="is not a saved detector"):
        artifact.save(tmp_path / "mine", SAVED)
    assert (tmp_path / "mine" / "thesis.tex").exists()
    with pytest.raises(ArtifactError, match="is not a folder"):
        artifact.save(tmp_path / "no" / "a", SAVED)


@pytest.mark.parametrize("name", ["labels.txt", "rows.txt", "wild.txt", "vectors.safetensors"])
def test_a_changed_or_missing_file_is_refused(tmp_path, name):
    path = artifact.save(tmp_path / "a", SAVED)
    (path / name).write_bytes((path / name).read_bytes() + b"x")
    with pytest.raises(ArtifactError, match=f"{name} has changed"):
        artifact.load(path)
    (path / name).unlink()
    with pytest.raises(ArtifactError, match=f"has no {name}"):
        artifact.load(path)


def test_a_changed_card_is_refused(tmp_path):
    path = artifact.save(tmp_path / "a", SAVED)
    card = json.loads((path / "detector.json").read_text())
    (path / "detector.json").write_text(json.dumps({**card, "method": {"name": "msp"}}))
    with pytest.raises(ArtifactError, match="has changed"):
        artifact.load(path)
    (path / "detector.json").write_text(json.dumps({**card, "schema": 99}))
    with pytest.raises(ArtifactError, match="schema 99, newer than 2") as error:
        artifact.load(path)
    assert error.value.hint == "upgrade outword"
    before = {name: card["files"][name] for name in ("labels.txt", "wild.txt", "vectors.safetensors")}
    (path / "detector.json").write_text(json.dumps({**card, "schema": 1, "files": before}))
    with pytest.raises(ArtifactError, match="schema 1, older than 2") as error:
        artifact.load(path)
    assert error.value.hint == "fit it again"
    for text in ("", "{", "[]", "null", '{"schema": "x"}'):
        (path / "detector.json").write_text(text)
        with pytest.raises(ArtifactError, match="cannot be read"):
            artifact.load(path)


def test_vectors_that_are_no_vectors(tmp_path):
    path = artifact.save(tmp_path / "a", SAVED)
    (path / "vectors.safetensors").write_bytes(b"junk")
    card = json.loads((path / "detector.json").read_text())
    card["files"]["vectors.safetensors"] = sha256_file(path / "vectors.safetensors")
    card["fingerprint"] = artifact._fingerprint(card)
    (path / "detector.json").write_text(json.dumps(card))
    with pytest.raises(ArtifactError, match="cannot be read"):
        artifact.load(path)


def test_no_detector_there(tmp_path):
    with pytest.raises(ArtifactError, match=r"has no detector\.json"):
        artifact.load(tmp_path)


def test_a_failed_save_leaves_the_old_one(tmp_path):
    artifact.save(tmp_path / "a", SAVED)
    with pytest.raises(UnicodeEncodeError):
        artifact.save(tmp_path / "a", replace(SAVED, labels=["\ud800"]))
    assert artifact.load(tmp_path / "a").labels == SAVED.labels
    assert os.listdir(tmp_path) == ["a"]


def test_whole_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "x.txt"
    with pytest.raises(RuntimeError), whole_file(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert os.listdir(tmp_path) == []
    with whole_file(path) as temporary:
        temporary.write_text("all")
    assert path.read_text() == "all"
    assert sha256_file(path) == sha256_bytes(b"all")


def test_two_writers_at_once(tmp_path):
    script = (
        "import sys, numpy as np; from outword.detector import artifact;"
        "saved = artifact.Saved({}, {'a': np.zeros(5)}, [sys.argv[2]], [], [], []);"
        "[artifact.save(sys.argv[1], saved) for _ in range(30)]"
    )
    target = str(tmp_path / "a")
    runs = [
        subprocess.Popen([sys.executable, "-c", script, target, name], stderr=subprocess.PIPE) for name in ("x", "y")
    ]
    errors = [run.communicate()[1].decode() for run in runs]
    assert errors == ["", ""]
    assert artifact.load(target).labels in (["x"], ["y"])
    assert os.listdir(tmp_path) == ["a"]


def test_a_place_that_is_never_free(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(OSError))
    monkeypatch.setattr("time.sleep", lambda _: None)
    with pytest.raises(ArtifactError, match="in use by another process"):
        artifact.save(tmp_path / "a", SAVED)


def test_cache_dir(monkeypatch):
    monkeypatch.setenv("OUTWORD_CACHE", "/here")
    assert cache_dir() == Path("/here")
    monkeypatch.delenv("OUTWORD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_dir() == Path("/xdg/outword")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == Path.home() / ".cache" / "outword"
