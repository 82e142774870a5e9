"""`outword find` as people use it: tables, CSV, JSON, paths, pages; bad input."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import outword
from conftest import PHOTOS, call, rows_of
from outword.errors import ParameterError
from outword.scoring import finding


@pytest.fixture
def photos(tmp_path):
    """Five photos, one of them twice, and one that is broken."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in ("cat", "clock", "coffee", "brick", "raccoon"):
        shutil.copy(PHOTOS / f"{name}.jpg", folder)
    shutil.copy(PHOTOS / "clock.jpg", folder / "watch.jpg")
    (folder / "broken.jpg").write_bytes(b"none")
    return folder


def test_the_best_photos_come_first_as_csv(photos):
    result = call("find", "cat", photos, "--top", 2)
    first, second = rows_of(result.stdout)
    assert (first["phrase"], first["rank"], Path(first["path"]).name, first["verdict"]) == ("cat", "1", "cat.jpg", "in")
    assert float(first["score"]) > float(second["score"])
    assert float(first["p"]) < float(second["p"])
    assert "broken.jpg" in result.stderr


def test_several_phrases_and_what_is_the_same(photos):
    rows = [json.loads(line) for line in call("find", "cat, clock", photos, "--top", 3, "--json").stdout.splitlines()]
    assert [(row["phrase"], row["rank"]) for row in rows] == [(of, n) for of in ("cat", "clock") for n in (1, 2, 3)]
    clocks = rows[3:5]
    assert [Path(row["path"]).name for row in clocks] == [
        "clock.jpg",
        "watch.jpg",
    ]  # equal scores: in the order of files
    assert clocks[1]["notes"] == [f"the same as {clocks[0]['path']}"]


def test_paths_for_pipes(photos):
    plain = call("find", "cat, clock", photos, "--top", 1, "--paths").stdout
    assert [Path(line).name for line in plain.splitlines()] == ["cat.jpg", "clock.jpg"]
    assert call("find", "cat, clock", photos, "--top", 1, "-0").stdout == plain.replace("\n", "\0")


def test_a_line_end_in_a_path_needs_a_null(photos):
    odd = photos / "a\ncat.jpg"
    (photos / "cat.jpg").rename(odd)
    lines = call("find", "cat", photos, "--top", 1, "--paths")
    assert lines.stdout == "" and "1 path is left out, as it has a line break: use -0" in lines.stderr
    assert call("find", "cat", photos, "--top", 1, "-0").stdout == f"{odd}\0"


def test_a_store_gives_the_same_without_encoding(photos, tmp_path, monkeypatch):
    expected = rows_of(call("find", "cat, clock", photos, "--top", 3).stdout)
    call("embed", photos, "-o", tmp_path / "photos.store")
    monkeypatch.setattr("outword.encoders.mini.encoder.Mini.encode_pixels", None)
    found = rows_of(call("find", "cat, clock", tmp_path / "photos.store", "--top", 3).stdout)
    assert [(row["path"], row["phrase"]) for row in found] == [(row["path"], row["phrase"]) for row in expected]
    assert np.allclose([float(row["score"]) for row in found], [float(row["score"]) for row in expected], atol=1e-4)


def test_files_and_the_page(photos, tmp_path):
    page, rows = tmp_path / "page.html", tmp_path / "rows.csv"
    assert call("find", "cat", photos, "--top", 2, "-o", rows, "--html", page).stdout == ""
    assert len(rows_of(rows.read_text())) == 2
    html = page.read_text()
    assert html.count("<img") == 2 and "cat.jpg" in html and "<script" not in html


@pytest.mark.filterwarnings("default")
def test_a_phrase_that_the_encoder_does_not_know_is_warned_of(photos):
    told = call("find", "quasiparticle", photos, "--top", 1).stderr
    assert 'mini knows "quasiparticle" not at all' in told and "--encoder clip-vit-b-16" in told


def test_the_same_whatever_the_chunks_and_no_more_than_the_best_in_memory(photos, monkeypatch):
    whole = outword.find("cat", photos, top=2)
    held = []
    add = finding._Best.add

    def watched(self, *args):
        add(self, *args)
        held.append(len(self.heap))

    monkeypatch.setattr(finding._Best, "add", watched)
    monkeypatch.setattr("outword.encoders.mini.encoder.Mini.chunk", 1)
    parts = outword.find(["cat"], [photos], top=2)
    assert [match.path for match in whole] == [match.path for match in parts] == parts.paths
    assert len(held) == 6 and max(held) == 2
    assert (whole.n_photos, whole.n_unreadable) == (7, 1)


def test_bad_input(tmp_path, photos):
    assert "there is nothing at" in call("find", "cat", tmp_path / "nowhere", code=1).stderr
    (tmp_path / "empty").mkdir()
    assert "no images found" in call("find", "cat", tmp_path / "empty", code=1).stderr
    assert "choose one of them" in call("find", "cat", photos, "--json", "--paths", code=2).stderr
    assert "-o must end in" in call("find", "cat", photos, "-o", tmp_path / "x.xlsx", code=2).stderr
    assert "labels" in call("find", "", photos, code=2).stderr
    with pytest.raises(ParameterError, match="top must be a whole number of at least 1, got 0"):
        outword.find("cat", photos, top=0)
