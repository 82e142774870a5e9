"""The cache: a hash in each entry, entries that are evicted or removed, and what goes wrong on disks."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from outword.base import arrays, cache
from outword.base.arrays import read_arrays, write_arrays
from outword.base.cache import KINDS, cache_dir, clear, entries, trim
from outword.base.files import whole_file
from outword.errors import ParameterError

ARRAYS = {"words": np.frombuffer(b"cat\ndog", np.uint8), "vectors": np.arange(6, dtype=np.float32).reshape(2, 3)}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A cache that has nothing yet."""
    monkeypatch.setenv("OUTWORD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def kept(kind, name, size=100, used=None):
    path = cache_dir() / kind / name
    write_arrays(path, {"x": np.zeros(size, np.uint8)})
    if used is not None:
        os.utime(path, (used, used))
    return path


def test_what_is_read_is_what_was_written(folder):
    write_arrays(folder / "mined" / "a", ARRAYS)
    found = read_arrays(folder / "mined" / "a")
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
    assert read_arrays(folder / "mined" / "b") is None


def test_no_flipped_bit_is_believed(folder):
    path = folder / "mined" / "a"
    write_arrays(path, ARRAYS)
    data = path.read_bytes()
    for place in range(len(data)):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :])
        found = read_arrays(path)
        same = found is not None and all(np.array_equal(found[name], ARRAYS[name]) for name in ARRAYS)
        assert found is None or same, place  # a blank of the header may have become a tab


@pytest.mark.parametrize("cut", [0, 5, 40, -1])
def test_half_an_entry_is_none(folder, cut):
    path = folder / "mined" / "a"
    write_arrays(path, ARRAYS)
    path.write_bytes(path.read_bytes()[:cut])
    assert read_arrays(path) is None


def test_an_entry_under_another_name_or_without_a_hash_is_none(folder):
    write_arrays(folder / "mined" / "a", ARRAYS)
    (folder / "mined" / "a").rename(folder / "mined" / "b")
    assert read_arrays(folder / "mined" / "b") is None
    arrays.save_file(ARRAYS, folder / "mined" / "c")
    assert read_arrays(folder / "mined" / "c") is None


def test_those_used_least_recently_go_where_there_is_too_much(folder, monkeypatch):
    monkeypatch.setattr(cache, "MB", 1000)
    monkeypatch.setenv("OUTWORD_CACHE_MB", "2")
    old, used, other = (kept(kind, kind, 500, used=number) for number, kind in enumerate(("mined", "names", "corpus")))
    reference = kept("reference", "r", 5000, used=0)
    assert read_arrays(old) is not None  # now it was used last
    new = kept("ranking", "new", 500)
    assert [path.exists() for path in (old, used, other, new, reference)] == [True, False, True, True, True]
    monkeypatch.setenv("OUTWORD_CACHE_MB", "0")
    trim(new)
    assert [path.exists() for path in (old, other, new, reference)] == [False, False, True, True]


@pytest.mark.parametrize("value", ["-1", "1.5", "much", "9" * 40])
def test_a_limit_that_is_no_number(monkeypatch, value):
    monkeypatch.setenv("OUTWORD_CACHE_MB", value)
    with pytest.raises(ParameterError, match="OUTWORD_CACHE_MB must be a whole number of megabytes"):
        cache.cache_limit()


def test_clearing_leaves_what_nobody_can_make_again(folder):
    for kind in KINDS:
        kept(kind, "a")
    assert {entry.path.parent.name for entry in clear()} == {name for name, kind in KINDS.items() if kind.remade}
    assert [kind for kind in KINDS if entries(kind)] == ["learning", "no", "reference"]
    assert len(clear(["reference"])) == 1 and not entries("reference")
    assert clear() == []


def test_clearing_leaves_what_another_is_writing(folder):
    kept("mined", "a")
    with whole_file(folder / "mined" / "b") as temporary:
        temporary.write_bytes(b"half")
        assert [entry.path.name for entry in clear()] == ["a"]
        temporary.write_bytes(b"whole")
    assert (folder / "mined" / "b").read_bytes() == b"whole"


def test_entries_that_another_process_removes_meanwhile(folder, monkeypatch):
    kept("mined", "a")
    monkeypatch.setattr(Path, "lstat", lambda path: (_ for _ in ()).throw(FileNotFoundError(path)))
    assert entries("mined") == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_disk_that_is_full_or_read_only_is_a_warning(folder, monkeypatch, code):
    def fails(*args):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(arrays, "save_file", fails)
    with pytest.warns(UserWarning, match=r"the cache cannot be written \(.*\); set OUTWORD_CACHE"):
        write_arrays(folder / "mined" / "a", ARRAYS)
    assert not list(folder.rglob("*a"))


def test_a_read_only_entry_is_read(folder, monkeypatch):
    write_arrays(folder / "mined" / "a", ARRAYS)
    monkeypatch.setattr(os, "utime", lambda *args: (_ for _ in ()).throw(PermissionError()))
    assert read_arrays(folder / "mined" / "a") is not None


def test_processes_that_write_and_clear_at_once(folder):
    """Each reads what it has written, or nothing where another one has cleared it: never anything else."""
    script = """if True:
        import sys
        import numpy as np
        from outword.base.arrays import read_arrays, write_arrays
        from outword.base.cache import cache_dir, clear
        for step in range(40):
            path = cache_dir() / "mined" / str(step % 3)
            write_arrays(path, {"x": np.full(1000, step % 3)})
            found = read_arrays(path)
            assert found is None or (found["x"] == step % 3).all()
            if step % 10 == 5:
                clear()
    """
    running = [subprocess.Popen([sys.executable, "-W", "error", "-c", script]) for _ in range(2)]
    assert [one.wait(60) for one in running] == [0, 0]
    assert not list(folder.rglob(".outword-*"))
