"""Files and folders that appear whole or not at all, JSON of unknown origin, and the sha256 of what is in files."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import IO, Any, TypeVar

from outword.base.locks import lock, release
from outword.errors import ArtifactError, InputError, OutwordError

ABANDONED = 86400.0  # seconds without a change after which a scratch folder is no one's, where locks do not tell
DEEPEST = 64  # levels of JSON; ours have six
LONGEST_LINE, MOST_IN_LINES = 16 << 20, 16 << 30  # bytes of `read_lines`
TRIES = 10  # looks at a folder that another process may be replacing
_SCRATCH = re.compile(r"\.outword-[0-9a-f]{8}-[0-9a-f]{16}")
_ours: set[Path] = set()  # scratch folders of this process that may be there still
T = TypeVar("T")
PathLike = str | os.PathLike[str]


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


def parse_json(text: str | bytes) -> Any:
    """What a JSON text says; `ValueError` where it is none, or is nested or has digits without end."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level = [found]
    for _ in range(DEEPEST):
        tables = [node.values() if isinstance(node, dict) else node for node in level if isinstance(node, dict | list)]
        level = [node for table in tables for node in table]
        if not level:
            return found
    raise ValueError("it is nested too deeply")


def read_small(file: Path | IO[bytes], most: int) -> bytes:
    """What a file has, or what is open; `ValueError` over `most` bytes, since a device or a pipe may have no end."""
    with file.open("rb") if isinstance(file, Path) else nullcontext(file) as opened:
        data = opened.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it has more than {most >> 20} MB")
    return data


def read_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file that may be large; `ValueError` at one without end, or where there are too many bytes."""
    total = 0
    with path.open("rb") as file:
        while line := file.readline(LONGEST_LINE + 1):
            total += len(line)
            if len(line) > LONGEST_LINE:
                raise ValueError(f"a line has more than {LONGEST_LINE >> 20} MB")
            if total > MOST_IN_LINES:
                raise ValueError(f"it has more than {MOST_IN_LINES >> 30} GB")
            yield line


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary path; the file takes the name `path` when the block ends, and is removed if it fails.

    A file that is replaced keeps its mode. A link is followed, and what is no regular file (a pipe, a terminal) is
    written to directly.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        yield path
        return
    with _scratch(path) as scratch:
        temporary = scratch / "new"
        temporary.touch()
        yield temporary
        _keep_mode(path, temporary)
        temporary.replace(path)


def check_outputs(*names: PathLike | None) -> None:
    """Raise unless the files can be written: a folder that is there, a name that is no folder, no name twice."""
    given = [Path(name).resolve() for name in names if name]
    if len(set(given)) < len(given):
        raise InputError(f"the outputs must be different files, got {given[0]} twice", hint="choose another name")
    for name in names:
        if name and not Path(name).resolve().parent.is_dir():
            raise InputError(f"{Path(name).parent} is not a folder", hint="make it first")
        if name and Path(name).is_dir():
            raise InputError(f"{name} is a folder", hint="name a file")


def free_folder(path: PathLike, *, card: str, names: Collection[str], what: str) -> Path:
    """Where a folder may be written: `path` if it is free or holds `card` and nothing but `names`; else raise."""
    target = Path(path).resolve()
    if not target.parent.is_dir():
        raise ArtifactError(f"{target.parent} is not a folder", hint="make it first")
    for _ in range(TRIES):  # another process may be replacing it between two looks
        with suppress(FileNotFoundError):
            if not target.exists() or ((target / card).is_file() and {p.name for p in target.iterdir()} <= set(names)):
                return target
        time.sleep(0.01)
    raise ArtifactError(
        f"{target} exists and is not {what}, or holds other files too", hint="choose another name, or remove it"
    )


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """Give an empty folder; it takes the name `target` when the block ends, and is removed if it fails.

    What has the name is replaced, in one step where the system can do that: ask `free_folder` first. The folder, and
    files in it that were there before, keep their modes.
    """
    with _scratch(target) as scratch:
        new = scratch / "new"
        new.mkdir()
        yield new
        for path in (*new.iterdir(), new):
            _keep_mode(target / path.relative_to(new), path)
        _take_place(new, target, scratch / "old")


def read_folder(folder: Path, read: Callable[[Path], T]) -> T:
    """What `read(folder)` gives of one folder, old or new, where another process is replacing it."""
    for _ in range(TRIES - 1):
        before = _state(folder)
        try:
            found = read(folder)
            if _state(folder) == before:
                return found
        except (OutwordError, OSError):
            if before is not None and _state(folder) == before:
                raise
        if before is None:
            sweep(folder.absolute().parent)
        time.sleep(0.01)
    return read(folder)


def sweep(folder: Path) -> None:
    """Remove what killed processes left in a folder; what others are writing stays.

    A process holds a lock on what it writes, and the system takes it away when the process ends, however that is. Only
    on the machine where it was made does a lock tell for sure: what came from another one, or lies where there are no
    locks (some network shares, Windows), goes when nothing has changed in it for a day.
    """
    left = []
    with suppress(OSError), os.scandir(folder) as entries:
        left = [folder / entry.name for entry in entries if is_scratch(entry.name)]
    for scratch in left:
        with suppress(OSError):  # in use, of another user, or swept by another process
            _sweep(scratch)


def clear_ours() -> None:
    """Remove the scratch folders of this process, which ends: signals may have stopped it at any step.

    Another thread may still be at work in one. So each takes another name first: from then on nothing that lies in it
    can become a file or a folder that people see, and what it replaced goes back.
    """
    for folder in list(_ours):
        gone = _new_name(folder.parent)
        _ours.add(gone)
        with suppress(OSError):
            folder.rename(gone)
            _clear(gone)
        _ours.difference_update((folder, gone))


atexit.register(clear_ours)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ours.clear)  # a child has none yet


_sweep_once = lru_cache(maxsize=1024)(sweep)  # once a process: thousands of files may go to a folder of thousands


def is_scratch(name: str) -> bool:
    """Whether a name is that of a folder in which a process, perhaps a killed one, makes files and folders whole."""
    return bool(_SCRATCH.fullmatch(name))


@contextmanager
def _scratch(target: Path) -> Iterator[Path]:
    """An empty folder beside `target`, for this process alone; it is gone when the block ends.

    Nobody asked for that folder: an error of the system that names it, or what is in it, names `target` instead.
    """
    _sweep_once(target.parent)
    try:
        folder, handle = _made(target.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from error
    try:
        yield folder
    except OSError as error:
        if str(error.filename or "").startswith(str(folder)):
            raise OSError(error.errno, error.strerror, str(target)) from error
        raise
    finally:  # where a signal stops this, `clear_ours` does it at the end of the process
        _clear(folder)
        _ours.discard(folder)
        release(handle)


def _made(parent: Path) -> tuple[Path, int | None]:
    """A new scratch folder, and the lock on it; another process may sweep it away before it is locked."""
    while True:
        folder = _new_name(parent)
        _ours.add(folder)  # before it is there: a signal may come after any step
        try:
            folder.mkdir(0o700)
        except OSError:
            _ours.discard(folder)
            raise
        with suppress(BlockingIOError, FileNotFoundError):
            handle = lock(folder)
            if folder.exists():
                return folder, handle
            release(handle)
        _ours.discard(folder)


def _new_name(parent: Path) -> Path:
    """A name for a scratch folder that no other one has."""
    return parent / f".outword-{_machine()}-{secrets.token_hex(8)}"


def _sweep(scratch: Path) -> None:
    handle = lock(scratch)
    try:
        ours = handle is not None and scratch.name.startswith(f".outword-{_machine()}-")
        if not ours and time.time() - max(p.stat().st_mtime for p in (scratch, *scratch.rglob("*"))) < ABANDONED:
            return
        _clear(scratch)
    finally:
        release(handle)


def _clear(scratch: Path) -> None:
    """Remove a scratch folder; what was moved away, and not replaced, goes back first."""
    for old in (scratch / "old").glob("*"):
        if not os.path.lexists(scratch.parent / old.name):
            old.rename(scratch.parent / old.name)
    shutil.rmtree(scratch, ignore_errors=True)


@cache
def _machine() -> str:
    """Eight digits for this machine since it was started."""
    try:
        name = Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:
        name = platform.node().encode()
    return sha256_bytes(name)[:8]


def _keep_mode(old: Path, new: Path) -> None:
    with suppress(FileNotFoundError):
        new.chmod(stat.S_IMODE(old.stat().st_mode))


def _state(folder: Path) -> tuple[int, int, int] | None:
    """What tells a folder from another one that takes its name; None where there is none."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns


def _take_place(new: Path, target: Path, away: Path) -> None:
    """Give `new` the name `target`, in the place of what is there; another process may be doing the same.

    Where the system cannot swap names, what is there moves to `away` first. If this process is killed before the new
    folder has the name, the old one comes back from there (see `sweep`).
    """
    for _ in range(100):
        with suppress(OSError):  # the other process moved it away, or was there first
            if target.exists():
                if _swap(new, target):
                    return
                shutil.rmtree(away, ignore_errors=True)  # of the try before; another one has replaced it
                away.mkdir()
                target.rename(away / target.name)
            new.rename(target)
            return
        time.sleep(0.01)
    raise ArtifactError(f"{target} is in use by another process", hint="try again")


def _swap(one: Path, other: Path) -> bool:
    """Exchange the names of two folders in one step; False where the system, or the file system, cannot."""
    import ctypes

    here, swap, a, b = -100, 2, os.fsencode(one), os.fsencode(other)  # AT_FDCWD; RENAME_EXCHANGE and RENAME_SWAP
    calls = {"Linux": ("renameat2", (here, a, here, b, swap)), "Darwin": ("renamex_np", (a, b, swap))}
    if platform.system() not in calls:
        return False
    name, arguments = calls[platform.system()]
    call = getattr(ctypes.CDLL(None), name, None)  # an old C library has none
    return call is not None and bool(call(*arguments) == 0)
