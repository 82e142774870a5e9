"""`outword calibrate`: the same photo once, and photos of other things."""

import json
import shutil

import pytest

import outword
from conftest import PHOTOS, call, rows_of
from outword.detector.saving import zipped


@pytest.fixture(scope="module")
def ranked(detector):
    """Seven photos with their scores, the lowest first."""
    photos = sorted(PHOTOS.glob("*.jpg"))[:7]
    return sorted(zip(detector.score(photos), photos, strict=True))


@pytest.fixture
def mine(ranked):
    """All but the second lowest."""
    return [path for place, (_, path) in enumerate(ranked) if place != 1]


def test_the_same_photo_counts_once(saved, mine, tmp_path):
    value = call("calibrate", saved, *mine, "--tpr", "0.5").stdout
    for number in range(2):
        shutil.copy(mine[3], tmp_path / f"{number}.jpg")
    result = call("calibrate", saved, *mine, *tmp_path.glob("*.jpg"), "--tpr", "0.5")
    assert result.stdout == value
    assert "2 of 8 photos are there more than once, and count once" in result.stderr
    assert outword.load(saved).calibration_.n_photos == 6
    told = call("calibrate", saved, *tmp_path.glob("*.jpg"), code=2).stderr
    assert "at least 5 readable ID photos, got 1" in told


def test_stores_and_files_are_the_same_photos(saved, mine, tmp_path):
    call("embed", *mine, "-o", tmp_path / "store")
    told = call("calibrate", saved, tmp_path / "store", *mine).stderr
    assert "6 of 12 photos are there more than once" in told


def test_photos_of_other_things_stay_out_as_far_as_the_tpr_allows(saved, mine, ranked):
    result = call("calibrate", saved, *mine, "--not", ranked[1][1], "--tpr", "0.5", "--json")
    found = json.loads(result.stdout)
    assert (found["n_photos"], found["n_others"]) == (6, 1)
    assert "0 of 1 photos of other things are accepted" in result.stderr
    assert ranked[1][0] < found["value"] < ranked[2][0]
    assert found["value"] + found["margin"] == pytest.approx(ranked[2][0])  # though half of them would be enough
    assert "and 1 of other things" in outword.load(saved).calibration_.told


def test_where_the_tpr_lets_them_in_the_one_that_keeps_them_out_is_told(saved, mine, ranked):
    told = call("calibrate", saved, *mine, "--not", ranked[1][1], "--tpr", "0.9").stderr
    assert "1 of 1 photos of other things are accepted" in told
    assert "hint: --tpr 0.71 keeps them all out" in told  # 5 of 6 + 1
    for method in ("quantile", "conformal"):
        again = call("calibrate", saved, *mine, "--not", ranked[1][1], "--tpr", "0.71", "--method", method).stderr
        assert "0 of 1 photos of other things are accepted" in again


def test_sides_that_contradict_each_other(saved, mine, tmp_path):
    told = call("calibrate", saved, *mine, "--not", mine[0], code=2).stderr
    assert "1 photo is both among those of the classes and among those of other things" in told
    (tmp_path / "broken.jpg").write_bytes(b"none")
    told = call("calibrate", saved, *mine, "--not", tmp_path / "broken.jpg", code=2).stderr
    assert "left out" in told and "no photo of --not can be read" in told
    assert outword.load(saved).calibration_ is None


def test_photos_that_look_like_none_of_the_classes(saved, mine, detector):
    strange = int((detector.thresholds.p_values(detector.score(mine)) > 0.05).sum())
    result = call("calibrate", saved, *mine, "--tpr", "1", "--json")
    assert strange > 1 and f"warning: {strange} of your 6 photos look like none of your classes" in result.stderr
    found, known = json.loads(result.stdout), detector.thresholds.reference_scores
    assert (found["fpr"], found["n_reference"]) == ((known >= found["value"]).mean(), len(known))
    assert f"it lets in {found['fpr']:.0%} of {len(known):,} unrelated photos" in result.stderr
    told = call("calibrate", saved, *mine, "--tpr", "0.1", "--json")  # one of them is a cat
    assert "it lets in" not in told.stderr and json.loads(told.stdout)["fpr"] < 0.1


def test_a_calibrated_detector_keeps_its_p_values(saved, mine, tmp_path):
    before = rows_of(call("score", saved, mine[0]).stdout)[0]
    call("calibrate", saved, *mine)
    after = rows_of(call("score", saved, mine[0]).stdout)[0]
    assert (before["basis"], after["basis"]) == ("reference", "calibrated")
    assert (before["p"], before["score"]) == (after["p"], after["score"]) and before["p"]
    assert before["threshold"] != after["threshold"]


def marks(path, *rows, head="path,mark"):
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def test_marks_say_which_photos_are_of_the_classes_and_which_are_not(saved, mine, ranked, tmp_path, monkeypatch):
    given = ["--tpr", "0.5", "--json"]
    by_hand = call("calibrate", saved, *mine, "--not", ranked[1][1], *given).stdout
    rows = [*(f"photos/{path.name},0.5,in" for path in mine), f"{ranked[1][1]},,out", "of-no-mark.jpg,1,"]
    file = marks(tmp_path / "marks.csv", *rows, head="\ufeffpath,score,mark")
    assert call("calibrate", saved, PHOTOS, "--marks", file, *given).stdout == by_hand
    monkeypatch.chdir(PHOTOS)  # the marks say more of the path than `./cat.jpg` does
    assert call("calibrate", saved, ".", "--marks", file, *given).stdout == by_hand
    packed = tmp_path / "d.zip"
    packed.write_bytes(zipped(outword.load(saved), "d.outword"))
    told = call("calibrate", packed, PHOTOS, "--marks", file, code=2).stderr
    assert "d.zip stays as it is" in told and "-o NAME.outword" in told
    assert call("calibrate", packed, PHOTOS, "--marks", file, *given, "-o", tmp_path / "e.outword").stdout == by_hand


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "path,mark\nno-such.jpg,in\ncat.jpg,in\n",
            "1 of 2 marked photos are not among the photos given: 'no-such.jpg'",
        ),
        ("path,mark\ncat.jpg,yes\n", "must be in or out, got 'yes' for 'cat.jpg'"),
        ("path,mark\ncat.jpg,in\ncat.jpg,out\n", "'cat.jpg' is marked in and out"),
        ("path,mark\ncat.jpg,in\nphotos/cat.jpg,out\n", "marked in and out: "),
        ("path,mark\ncat.jpg,\n", "there are no marks"),
        ("cat.jpg,in\n", "there are no marks"),
        ("photo,mark\ncat.jpg,in\n", "lack the columns path and mark"),
        ("path,mark\n/,in\n", "not among the photos given"),
        ("", "there are no marks"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
def test_marks_that_cannot_be_used_are_refused_with_the_reason(saved, tmp_path, content, message):
    file = tmp_path / "marks.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in call("calibrate", saved, PHOTOS, "--marks", file, code=2).stderr


def test_a_mark_that_may_be_of_two_photos_is_refused(saved, mine, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        shutil.copy(mine[0], tmp_path / folder / "=x.jpg")
    file = marks(tmp_path / "marks.csv", "'=x.jpg,in")
    told = call("calibrate", saved, tmp_path / "a", tmp_path / "b", "--marks", file, code=2).stderr
    assert "the mark '=x.jpg' may be of" in told
    told = call("calibrate", saved, tmp_path / "a", "--marks", file, code=2).stderr
    assert "at least 5 readable ID photos, got 1" in told
    assert "and --not too" in call("calibrate", saved, PHOTOS, "--marks", file, "--not", PHOTOS, code=2).stderr


def test_it_says_what_was_written_and_what_has_changed(saved, mine, tmp_path):
    before = outword.load(saved).threshold
    result = call("calibrate", saved, *mine, "--tpr", "1", "-o", tmp_path / "new.outword")
    cut = f"{float(result.stdout):.4g} or more (it was {before:.4g})"
    told = f"new.outword: a photo is in if its score is {cut}: 6 of your 6 photos"
    assert told in result.stderr and outword.load(saved).threshold == before
    result = call("calibrate", saved, *mine, "--tpr", "0.1")
    assert f"{saved}: a photo is in if its score is" in result.stderr and "1 of your 6 photos is in\n" in result.stderr


def test_marks_of_photos_in_a_column(saved, mine, ranked, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    photos = [{"bytes": path.read_bytes(), "path": path.name} for _, path in ranked]
    others = [{**photo, "path": f"other-{photo['path']}"} for photo in photos]
    parquet.write_table(pyarrow.table({"front": photos, "back": others}), tmp_path / "t.parquet")
    names = [
        json.loads(line)["path"]
        for line in call(
            "score", saved, tmp_path / "t.parquet", "--column", "back", "--format", "jsonl"
        ).stdout.splitlines()
    ]
    file = marks(
        tmp_path / "marks.csv", *(f"{name},{mark}" for name, mark in zip(names, ["out", *["in"] * 6], strict=True))
    )
    args = ["calibrate", saved, tmp_path / "t.parquet", "--marks", file, "--column"]
    assert call(*args, "back").stdout and "not among the photos given" in call(*args, "front", code=2).stderr


def test_what_is_not_read_is_said_once(saved, ranked, tmp_path):
    for _, path in ranked:
        shutil.copy(path, tmp_path)
    (tmp_path / "notes.mov").touch()
    rows = [f"{path.name},{'in' if place else 'out'}" for place, (_, path) in enumerate(ranked)]
    told = call("calibrate", saved, tmp_path, "--marks", marks(tmp_path / "marks.csv", *rows)).stderr
    assert told.count("are not read") == 1
