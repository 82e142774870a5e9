"""Runs from Python: what is written, how they go on, what they tell, and what is refused."""

import io
import re
import shutil

import pytest

from conftest import PHOTOS, call, contents
from outword import scoring
from outword.errors import ImageError, InputError, ParameterError
from outword.scoring.rows import read_rows


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in ("cat", "gravel"):
        shutil.copy(PHOTOS / f"{name}.jpg", folder)
    (folder / "bad.jpg").write_bytes(b"")
    return folder


def test_run_gives_what_the_verb_writes(detector, saved, photos, tmp_path):
    call("score", saved, photos, "-o", tmp_path / "verb.csv")
    told, seen = io.BytesIO(), []
    totals = scoring.run(detector, photos, tmp_path / "run.csv", report=lambda *progress: seen.append(progress))
    assert (tmp_path / "run.csv").read_bytes() == (tmp_path / "verb.csv").read_bytes()
    assert [(task, done) for task, done, _ in seen] == [("score", 3)]  # a chunk
    assert totals == scoring.run(detector, [photos]) == scoring.run(detector, photos, told, format="jsonl")
    assert (totals.rows, totals.counts["error"], told.getvalue().count(b"\n")) == (3, 1, 3)


def test_run_in_parts_goes_on(detector, photos, tmp_path):
    said = []
    sources, output = [photos / "cat.jpg", photos], f"{tmp_path}/scores/"

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scoring.run(detector, sources, output, report=stop)
    totals = scoring.run(detector, sources, output, html=tmp_path / "page.html", say=said.append)
    before = contents(tmp_path / "scores")
    assert totals == scoring.run(detector, sources, output, say=said.append) and totals.rows == 4
    assert said[-1] == "4 rows are there already" and contents(tmp_path / "scores") == before
    assert (tmp_path / "page.html").read_text().count("data:image/jpeg") == 3


def test_filter_gives_the_tally(detector, photos, tmp_path):
    tally = scoring.filter(detector, photos, tmp_path / "kept", how="list")
    assert (tally.rows, tally.kept.total(), tally.errors, tally.missed) == (3, 1, 1, 0)
    assert (tmp_path / "kept" / "kept.txt").read_text() == f"{photos}/cat.jpg\n"
    assert len(list(read_rows(tmp_path / "kept" / "scores" / "part-000000-0000.csv", "csv"))) == 3


def test_what_is_refused(detector, photos, tmp_path):
    with pytest.raises(ImageError, match=r"bad\.jpg': empty file"):
        scoring.run(detector, photos, tmp_path / "a.csv", strict=True)
    with pytest.raises(InputError, match="lies in"):
        scoring.run(detector, photos, f"{photos}/out/")
    with pytest.raises(ParameterError, match='unknown engine "rey"'):
        scoring.run(detector, photos, engine="rey")
    with pytest.raises(ParameterError, match='unknown format "xls"'):
        scoring.run(detector, photos, format="xls")
    with pytest.raises(ParameterError, match='unknown way to keep photos "move"'):
        scoring.filter(detector, photos, tmp_path / "kept", how="move")
    assert [path.name for path in tmp_path.iterdir()] == ["photos"]


def test_one_image_is_no_images(saved, tmp_path):
    told = call("score", saved, PHOTOS / "cat.jpg", "-o", tmp_path / "one.csv").stderr
    cut, *counts = told.splitlines()
    assert re.fullmatch(r"a photo is in if its score is -3\.\d* or more \(lets in 5% of 3,\d* unrelated photos\)", cut)
    assert counts == ["1 image: 1 in"]
