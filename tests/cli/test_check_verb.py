"""`outword check` as people use it: wrong folders, duplicates, unreadable files, exit codes; odd folders."""

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image

import outword
from conftest import PHOTOS, call, rows_of
from outword import functions
from outword.errors import InputError, ParameterError


def crops(name, folder, number):
    """Several photos of the same thing, each different enough to be no duplicate."""
    folder.mkdir(parents=True, exist_ok=True)
    with Image.open(PHOTOS / f"{name}.jpg") as photo:
        width, height = photo.size
        for place in range(number):
            left, up = (place % 3) * width // 12, (place // 3) * height // 12
            crop = photo.crop((left, up, left + 5 * width // 6, up + 5 * height // 6))
            crop = crop if place % 2 else crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
            crop.convert("RGB").save(folder / f"{name}{place}.png")


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """Three classes; a coffee among the clocks, one photo in two folders, a broken file and one beside the folders."""
    folder = tmp_path_factory.mktemp("check") / "train"
    crops("cat", folder / "cat", 6)
    crops("clock", folder / "clock" / "old", 6)
    crops("coffee", folder / "coffee", 7)
    (folder / "coffee" / "coffee6.png").rename(folder / "clock" / "wrong.png")
    shutil.copy(folder / "cat" / "cat0.png", folder / "coffee" / "again.png")
    (folder / "cat" / "broken.jpg").write_bytes(b"none")
    shutil.copy(PHOTOS / "brick.jpg", folder)
    return folder


def test_what_is_wrong_is_listed_with_what_it_seems_to_be(train):
    result = call("check", train)
    rows = {Path(row["path"]).name: row for row in rows_of(result.stdout)}
    assert set(rows) == {"wrong.png", "again.png", "broken.jpg"}
    wrong, again, broken = rows["wrong.png"], rows["again.png"], rows["broken.jpg"]
    assert (wrong["label"], wrong["finding"], wrong["suggestion"]) == ("clock", "another class", "coffee")
    assert float(wrong["sure"]) > 0.5
    assert (again["finding"], again["suggestion"], again["label"]) == ("duplicate", "cat", "coffee")
    assert Path(again["same_as"]).name == "cat0.png"
    assert (broken["finding"], broken["label"], broken["sure"]) == ("unreadable", "cat", "") and broken["error"]
    assert "1 photo in no class folder: not checked" in result.stderr
    assert "21 photos of 3 classes: 1 duplicate, 1 another class, 1 unreadable" in result.stderr


@pytest.fixture(scope="module")
def checked(train):
    return outword.check(train)


@pytest.mark.parametrize(("limit", "code"), [("3", 0), ("2", 1), ("20%", 0), ("14%", 1), ("0", 1)])
def test_the_exit_code_tells_whether_there_is_too_much(train, checked, monkeypatch, limit, code):
    monkeypatch.setattr(outword, "check", lambda *_, **__: checked, raising=False)
    result = call("check", train, "--max-wrong", limit, code=code)
    assert len(rows_of(result.stdout)) == 3  # the list is printed all the same
    assert (f"and {limit} may be" in result.stderr) == bool(code)


@pytest.mark.parametrize("limit", ["1.5", "101%", "-1", "many", "nan"])
def test_a_limit_is_a_share_or_a_number(train, limit):
    assert "--max-wrong must be" in call("check", train, f"--max-wrong={limit}", code=2).stderr


def test_json_and_the_page(train, tmp_path):
    page = tmp_path / "page.html"
    rows = [
        json.loads(line) for line in call("check", train, "--json", "--html", page, "--sure", 0).stdout.splitlines()
    ]
    assert len(rows) == 21 and all(row["looks_like"] for row in rows[:20])
    assert [row["sure"] for row in rows[1:20]] == sorted((row["sure"] for row in rows[1:20]), reverse=True)
    assert page.read_text().count("<img") == 20


def test_in_python(checked, train, monkeypatch):
    assert [Path(one.path).name for one in checked] == ["again.png", "wrong.png", "broken.jpg"]
    assert checked.counts == {"cat": 7, "clock": 7, "coffee": 7}
    assert (checked.n_beside, checked.by_finding) == (1, {"duplicate": 1, "another class": 1, "unreadable": 1})
    assert checked.share == pytest.approx(3 / 21)
    monkeypatch.setattr(outword, "check", lambda *_, **__: checked, raising=False)
    assert call("check", train, "-0").stdout == "".join(f"{one.path}\0" for one in checked)
    with pytest.raises(ParameterError, match="sure must be a number of at least 0"):
        functions.check(train, sure=2)


def test_folders_named_by_number_and_in_camel_case(tmp_path):
    for folder, name in {"n02123045": "cat", "CoffeeMug": "coffee", "n04548280": "clock"}.items():
        crops(name, tmp_path / folder, 2)
    found = outword.check(tmp_path)
    assert found.counts == {"coffee mug": 2, "tabby": 2, "wall clock": 2} and found.n_beside == 0


@pytest.mark.filterwarnings("default")
def test_odd_folders(tmp_path):
    assert "is not a folder" in call("check", tmp_path / "nowhere", code=2).stderr
    assert "no class folders" in call("check", tmp_path, code=2).stderr
    (tmp_path / "cat").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "no images found" in call("check", tmp_path, code=1).stderr
    (tmp_path / "cat" / "broken.jpg").write_bytes(b"none")
    result = call("check", tmp_path, code=1)
    assert "the image could not be judged" in result.stderr
    assert [row["finding"] for row in rows_of(result.stdout)] == ["unreadable"]
    shutil.copy(PHOTOS / "cat.jpg", tmp_path / "cat")
    (tmp_path / "dog").symlink_to(tmp_path, target_is_directory=True)  # another loop
    result = call("check", tmp_path)  # one photo of one class
    assert "warning: there is no photo in the folder of dog" in result.stderr
    assert [row["finding"] for row in rows_of(result.stdout)] == ["unreadable"]
    (tmp_path / "a |").mkdir()
    with pytest.raises(InputError, match="a name is missing"):
        outword.check(tmp_path)
