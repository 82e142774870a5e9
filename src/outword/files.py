"""Files and folders that appear whole or not at all, and the sha256 of what is in them."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from outword.errors import ArtifactError


def sha256_bytes(data: bytes) -> str:
    """Hexadecimal sha256 of `data`."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """Hexadecimal sha256 of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; it takes the name `path` when the block ends, and is removed if it fails.

    A link is followed, and what is no regular file (a pipe, a terminal) is written to directly.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        yield path
        return
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    temporary.touch(exist_ok=False)
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def free_folder(path: str | os.PathLike[str], *, card: str, names: Collection[str], what: str) -> Path:
    """Where a folder may be written: `path` if it is free or holds `card` and nothing but `names`; else raise."""
    target = Path(path).resolve()
    if not target.parent.is_dir():
        raise ArtifactError(f"{target.parent} is not a folder", hint="make it first")
    for _ in range(10):  # another process may be replacing it between two looks
        with suppress(FileNotFoundError):
            if not target.exists() or ((target / card).is_file() and {p.name for p in target.iterdir()} <= set(names)):
                return target
        time.sleep(0.01)
    raise ArtifactError(
        f"{target} exists and is not {what}, or holds other files too", hint="choose another name, or remove it"
    )


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """Give an empty folder beside `target`; it takes that name when the block ends, and is removed if it fails.

    What has the name is replaced: ask `free_folder` first.
    """
    scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        new = scratch / "new"
        new.mkdir()
        yield new
        _take_place(new, target, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _take_place(new: Path, target: Path, scratch: Path) -> None:
    """Give `new` the name `target`, moving away what is there; another process may be doing the same."""
    old = scratch / "old"
    for _ in range(100):
        try:
            if target.exists():
                target.rename(old)
            new.rename(target)
            return
        except OSError:  # the other process moved it away, or was there first: put ours back and look again
            if old.exists():
                shutil.rmtree(old) if target.exists() else old.rename(target)
            time.sleep(0.01)
    raise ArtifactError(f"{target} is in use by another process", hint="try again")


def cache_dir() -> Path:
    """Where encoded corpora and rankings are kept: $OUTWORD_CACHE, else outword in $XDG_CACHE_HOME or ~/.cache."""
    if own := os.environ.get("OUTWORD_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "outword"
