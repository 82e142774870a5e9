"""The cache: what is made once and kept on disk, each entry with a hash that is checked whenever it is read.

An entry is a file of arrays (`outword.base.arrays`), a folder of them, or a saved detector, whose card has the hashes
of its files. What is damaged counts as not there, and is made anew. Entries appear whole or not at all, so that several
processes may share a cache.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from outword.base.files import is_scratch, sweep
from outword.errors import ParameterError

VARIABLE = "OUTWORD_CACHE_MB"
DEFAULT = 4000  # megabytes
MB = 1_000_000


@dataclass(frozen=True)
class Kind:
    """A folder of the cache.

    Attributes:
        about: what its entries are.
        most: how many there may be, if that is bounded apart from their bytes.
        remade: whether an entry that is gone is made anew, at no other cost than time. What is not is neither evicted
            nor counted, and goes only when somebody names the kind.
    """

    about: str
    most: int | None = None
    remade: bool = True


KINDS = {
    "corpus": Kind("vectors of the words of a corpus"),
    "ranking": Kind("the words of a corpus in order of rank"),
    "mined": Kind("mined words with their vectors"),
    "names": Kind("vectors of names and kinds"),
    "detectors": Kind("detectors of --labels", most=16),  # one for mini has 14 MB
    "learning": Kind("unfinished runs that learn prompts", remade=False),
    "no": Kind("unfinished runs of train-no", remade=False),
    "reference": Kind("your own references (outword reference)", remade=False),
}


class Entry(NamedTuple):
    """A file or folder of the cache: its bytes, and when it was last written or used, in seconds."""

    path: Path
    bytes: int
    used: float


def cache_dir() -> Path:
    """Where the cache is: $OUTWORD_CACHE, else outword in $XDG_CACHE_HOME or ~/.cache."""
    if own := os.environ.get("OUTWORD_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "outword"


def cache_limit() -> int:
    """How many bytes the cache may have: $OUTWORD_CACHE_MB megabytes, else 4,000."""
    given = os.environ.get(VARIABLE) or str(DEFAULT)
    if not re.fullmatch("[0-9]{1,9}", given):
        raise ParameterError(f"{VARIABLE} must be a whole number of megabytes, got {given!r}", hint="leave it out")
    return int(given) * MB


def not_kept(error: Exception) -> str:
    """The warning where the cache cannot be written: the work is done again next time."""
    return f"the cache cannot be written ({error}); set OUTWORD_CACHE to a folder that can"


def touch(path: Path) -> None:
    """Note that an entry was used: those that were not for longest are the first to go."""
    with suppress(OSError):
        os.utime(path)


def entries(kind: str) -> list[Entry]:
    """The entries of a kind, those used least recently first."""
    folder = cache_dir() / kind
    with suppress(OSError):
        paths = [path for path in folder.iterdir() if not is_scratch(path.name)]
        found = [entry for path in paths if (entry := _entry(path))]
        return sorted(found, key=lambda entry: (entry.used, entry.path))
    return []


def trim(kept: Path) -> None:
    """Remove the entries that were used least recently, as far as there are too many; `kept` stays in any case."""
    limit = cache_limit()
    counted: list[Entry] = []
    for name, kind in KINDS.items():
        found = entries(name) if kind.remade else []
        over = max(0, len(found) - kind.most) if kind.most else 0
        for entry in found[:over]:
            _remove(entry.path)
        counted += found[over:]
    total = sum(entry.bytes for entry in counted)
    for entry in sorted(counted, key=lambda entry: entry.used):
        if total <= limit:
            return
        if entry.path != kept:
            _remove(entry.path)
            total -= entry.bytes


def clear(kinds: Sequence[str] = ()) -> list[Entry]:
    """Remove the entries of some kinds, by default of all that are made anew when they are gone; gives what went.

    What another process is writing stays, and appears when it is whole.
    """
    removed = []
    for kind in kinds or [name for name, kind in KINDS.items() if kind.remade]:
        sweep(cache_dir() / kind)
        removed += [entry for entry in entries(kind) if _remove(entry.path)]
    return removed


def _entry(path: Path) -> Entry | None:
    """An entry with its size and time; None where another process has just removed it."""
    try:
        return Entry(path, sum(one.lstat().st_size for one in _tree(path)), path.lstat().st_mtime)
    except OSError:
        return None


def _tree(path: Path) -> Iterator[Path]:
    """A path and, of a folder, all that is in it."""
    yield path
    if path.is_dir() and not path.is_symlink():
        yield from path.rglob("*")


def _remove(path: Path) -> bool:
    """Remove an entry, and say whether it is gone; another process may be removing the same."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    except OSError:
        return False
    return not os.path.lexists(path)
