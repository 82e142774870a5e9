"""`outword cache`: what it says, and what it removes."""

import json

import numpy as np
import pytest

from conftest import call
from outword.base.arrays import write_arrays
from outword.base.cache import KINDS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache with an entry of each kind."""
    monkeypatch.setenv("OUTWORD_CACHE", str(tmp_path / "cache"))
    for kind in KINDS:
        write_arrays(tmp_path / "cache" / kind / "a", {"x": np.zeros(100_000, np.uint8)})
    return tmp_path / "cache"


def test_what_there_is(folder):
    lines = call("cache").stdout.splitlines()
    assert lines[0] == f"{folder}, at most 4,000 MB"
    assert [line.split()[:3] for line in lines[2:]] == [[kind, "1", "0.1"] for kind in KINDS]


def test_as_json(folder):
    found = json.loads(call("cache", "--json", "mined").stdout)
    size = (folder / "mined" / "a").stat().st_size
    sizes = {"entries": 1, "bytes": size}
    assert found == {"path": str(folder), "limit_bytes": 4_000_000_000, "kinds": {"mined": sizes}}
    cleared = json.loads(call("cache", "--json", "mined", "--clear").stdout)
    assert cleared["removed"] == sizes and cleared["kinds"] == {"mined": {"entries": 0, "bytes": 0}}


def test_clearing(folder):
    result = call("cache", "--clear")
    assert result.stderr == "removed 5 entries, 0.5 MB\n"
    assert sorted(path.parent.name for path in folder.glob("*/*")) == ["learning", "no", "reference"]
    assert call("cache", "reference", "--clear").stderr == "removed 1 entry, 0.1 MB\n"
    assert not list(folder.glob("reference/*"))


def test_a_cache_that_is_not_there_yet(tmp_path, monkeypatch):
    monkeypatch.setenv("OUTWORD_CACHE", str(tmp_path / "none"))
    assert call("cache", "--clear").stderr == "removed 0 entries, 0.0 MB\n"
    assert not (tmp_path / "none").exists()


def test_a_limit_that_is_no_number(folder, monkeypatch):
    monkeypatch.setenv("OUTWORD_CACHE_MB", "much")
    assert "error: OUTWORD_CACHE_MB must be a whole number" in call("cache", code=2).stderr
