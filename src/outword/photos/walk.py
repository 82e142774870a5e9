"""The image files behind paths: folders, searched in a stable order, and glob patterns."""

from __future__ import annotations

import glob
import heapq
import os
import tempfile
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import IO, TypeAlias

from outword.errors import InputError
from outword.photos.formats import SUFFIXES

Entry: TypeAlias = tuple[str, bool]  # a name in a folder, and whether it is a folder

NAMES = 200_000  # of a folder that are in memory
PARTS = 256  # of a glob pattern, between slashes
ANY_DEPTH = 2  # "**" in a glob pattern: each goes through all folders below each folder that the one before it found


def find_images(paths: Iterable[str | os.PathLike[str]], *, suffixes: Collection[str] = SUFFIXES) -> Iterator[Path]:
    """Yield the files behind `paths`: files as given, folders recursively, glob patterns expanded.

    From a folder come the files with one of the suffixes, sorted, hidden ones left out; symlinked folders are not
    entered. A pattern is expanded only where no file has that very name; `**` stands for any depth. What cannot be used
    is yielded too, so that it becomes an error row: a missing path, a pattern without a match, a folder that cannot be
    listed, a folder named like an image. At most `NAMES` names of a folder are in memory, the rest is on disk.
    """
    for given in paths:
        for path in expand(Path(given)):
            yield from files_in(path, suffixes)


def expand(path: Path) -> Iterator[Path]:
    """Yield what a glob pattern matches, sorted within each folder; any other path, or one without a match, itself."""
    if os.path.lexists(path) or not glob.has_magic(str(path)):
        yield path
        return
    matched = False
    for match in _expand(Path(path.anchor), glob_parts(path.parts[1 if path.anchor else 0 :])):
        matched = True
        yield match
    if not matched:
        yield path


def glob_parts(parts: Iterable[str]) -> tuple[str, ...]:
    """The parts of a glob pattern, without a `**` behind another, which adds nothing; too many are an `InputError`.

    >>> glob_parts(["a", "**", "**", "*.jpg"])
    ('a', '**', '*.jpg')
    """
    kept = tuple(part for before, part in pairwise(["", *parts]) if not before == part == "**")
    for what, count, most in (("parts", len(kept), PARTS), ('"**"', kept.count("**"), ANY_DEPTH)):
        if count > most:
            raise InputError(
                f"a glob pattern may have at most {most} {what}, got {count}",
                hint='"**" stands for any depth by itself',
            )
    return kept


def files_in(path: Path, suffixes: Collection[str] = SUFFIXES) -> Iterator[Path]:
    """Yield a file as it is, a folder as the files in it with one of the suffixes."""
    if path.suffix.lower() in SUFFIXES or not is_folder(path):
        yield path
        return
    for folder, names in _tree(path):
        if names is None:
            yield folder
        else:
            yield from (folder / name for name, _ in names if _suffix(name) in suffixes)


def _expand(base: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """Yield the paths under `base` that match the parts of a glob pattern, sorted within each folder."""
    if not parts:
        yield base
        return
    head, rest = parts[0], parts[1:]
    if head == "**":
        folders = (folder for folder, _ in _tree(base)) if rest else [base]
        for folder in folders:
            yield from _expand(folder, rest)
    elif glob.has_magic(head):
        for _, names in _tree(base, depth=1):
            for name, _ in names or []:
                if fnmatchcase(name, head):
                    yield from _expand(base / name, rest)
    elif os.path.lexists(base / head):
        yield from _expand(base / head, rest)


def _tree(top: Path, depth: int | None = None) -> Iterator[tuple[Path, Iterable[Entry] | None]]:
    """Yield each folder from `top` down with the sorted entries in it, or None where it cannot be listed.

    Hidden entries are left out; symlinked folders and folders named like an image are not entered.
    """
    level: list[tuple[Iterator[Path], _Entries]] = [(iter([top]), _Entries())]  # of each, the folders still to come
    try:
        while level:
            folder = next(level[-1][0], None)
            if folder is None:
                level.pop()[1].close()
                continue
            entries = _Entries()
            level.append((entries.folders(folder) if len(level) != depth else iter([]), entries))
            yield folder, entries if entries.read(folder) else None
    finally:
        for _, entries in level:
            entries.close()


def _suffix(name: str) -> str:
    return name[name.rfind(".") :].lower()  # `Path` takes many times as long


class _Entries:
    """The names in a folder, sorted, each with whether it is a folder; those over `NAMES` are in a temporary file."""

    def __init__(self) -> None:
        self._names: list[Entry] = []
        self._file: IO[bytes] | None = None
        self._runs: list[tuple[int, int]] = []  # where they begin and end in the file; each is sorted

    def __iter__(self) -> Iterator[Entry]:
        runs = [self._run(start, end) for start, end in self._runs]
        return heapq.merge(self._names, *runs) if runs else iter(self._names)

    def read(self, folder: Path) -> bool:
        """List a folder; False if that cannot be done."""
        try:
            with os.scandir(folder) as found:
                for entry in found:
                    if entry.name[0] != ".":
                        self._names.append((entry.name, entry.is_dir(follow_symlinks=False)))
                    if len(self._names) >= NAMES:
                        self._spill()
        except OSError:
            self._names.clear()
            self._runs.clear()
            return False
        self._names.sort()
        return True

    def folders(self, folder: Path) -> Iterator[Path]:
        """The folders that are to be entered."""
        for name, is_folder in self:
            if is_folder and _suffix(name) not in SUFFIXES:
                yield folder / name

    def close(self) -> None:
        """Remove the temporary file."""
        if self._file:
            self._file.close()

    def _spill(self) -> None:
        self._file = self._file or tempfile.TemporaryFile()  # noqa: SIM115  # `close` closes it
        lines = (os.fsencode(name) + b"/" * is_folder + b"\0" for name, is_folder in sorted(self._names))
        start = self._file.seek(0, os.SEEK_END)
        self._file.write(b"".join(lines))
        self._runs.append((start, self._file.tell()))
        self._names.clear()

    def _run(self, start: int, end: int) -> Iterator[Entry]:
        rest = b""
        while start < end and self._file:
            self._file.seek(start)
            block = self._file.read(min(end - start, 1 << 16))
            start += len(block)
            *names, rest = (rest + block).split(b"\0")
            yield from ((os.fsdecode(name.rstrip(b"/")), name.endswith(b"/")) for name in names)


def is_folder(path: Path) -> bool:
    """Whether a path is that of a folder; one that cannot be looked at, or cannot be a path, is none."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False
