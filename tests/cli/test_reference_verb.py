"""`outword reference` as people use it."""

import json
import shutil

import pytest

from conftest import PHOTOS, call
from outword.encoders import get_encoder
from outword.vectors import reference
from outword.vectors.reference import find_reference, kept_path


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("OUTWORD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(reference, "FEWEST", 5)


@pytest.fixture
def photos(tmp_path):
    """Six photos, one of them twice, and a file that is none."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for path in sorted(PHOTOS.glob("*.jpg"))[:6]:
        shutil.copy(path, folder)
    shutil.copy(folder / "brick.jpg", folder / "wall.jpg")
    (folder / "broken.jpg").write_bytes(b"none")
    return folder


def test_what_there_is_before_anyone_brings_photos():
    source = "3,109 photos: ImageNet's validation set (two a class), textures, scenes, screenshots and codes"
    assert call("reference").stdout == f"mini: 3,109 photos, from {source}\n"
    told = json.loads(call("reference", "--json").stdout)
    assert (told["encoder"], told["photos"]) == ("mini", 3109)


def test_photos_of_the_users_own_take_the_place_of_what_is_shipped(photos, tmp_path):
    encoder = get_encoder("mini")
    shipped = find_reference(encoder)
    result = call("reference", photos)
    assert result.stdout.strip() == str(kept_path(encoder.fingerprint))
    assert "left out" in result.stderr and "broken.jpg" in result.stderr
    counts = "the reference has 6 photos; left out: 1 seen already, 1 that cannot be read"
    assert counts in result.stderr
    assert "from now on, fits with mini use it, and not the one that is shipped" in result.stderr
    assert call("reference").stdout == "mini: 6 photos, from photos\n"
    assert len(find_reference(encoder)) == 6
    kept_path(encoder.fingerprint).unlink()
    assert find_reference(encoder).fingerprint == shipped.fingerprint


def test_as_json(photos):
    told = json.loads(call("reference", photos, "--json").stdout)
    assert told["fingerprint"] == find_reference(get_encoder("mini")).fingerprint
    counts = {"photos": 6, "read": 7, "repeats": 1, "unreadable": 1, "spare": 0}
    assert {key: told[key] for key in counts} == counts


def test_an_encoder_without_one(monkeypatch):
    monkeypatch.setattr(reference, "shipped_path", kept_path)
    result = call("reference")
    assert result.stdout == "" and "mini has no reference. hint: name a folder" in result.stderr
    assert json.loads(call("reference", "--json").stdout) == {"encoder": "mini", "photos": 0}


def test_too_few_photos_change_nothing(photos):
    told = call("reference", photos / "brick.jpg", photos / "wall.jpg", code=2).stderr
    assert "at least 5 different photos that can be read, got 1 (1 more were repeats, 0 could not be read)" in told
    assert not kept_path(get_encoder("mini").fingerprint).exists()
