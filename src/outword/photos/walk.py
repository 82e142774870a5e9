"""The image files behind paths: folders, searched in a stable order, and glob patterns."""

from __future__ import annotations

import glob
import heapq
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, suppress
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, TypeVar

from outword.base.files import PathLike
from outword.errors import InputError
from outword.photos.formats import SUFFIXES
from outword.photos.passed_over import PassedOver

Place = TypeVar("Place")

NAMES = 200_000  # of a folder that are in memory
PARTS = 256  # of a glob pattern, between slashes
ANY_DEPTH = 2  # "**" in a glob pattern: each goes through all folders below each folder that the one before it found
_new_file = partial(tempfile.TemporaryFile, "w+", encoding="utf-8", errors="surrogatepass", newline="\n")


def find_images(paths: Iterable[PathLike]) -> Iterator[Path]:
    """Yield the files behind `paths`: files as given, folders recursively, glob patterns expanded.

    From a folder come the image files by their suffix, sorted, hidden ones left out; symlinked folders are not
    entered. A pattern is expanded only where no file has that very name; `**` stands for any depth. What cannot be used
    is yielded too, so that it becomes an error row: a missing path, a pattern without a match, a folder that cannot be
    listed, a folder named like an image. At most `NAMES` names of a folder are in memory, the rest is on disk.
    """
    for given in paths:
        for path in expand(Path(given)):
            yield from files_in(path)


def expand(path: Path) -> Iterator[Path]:
    """Yield what a glob pattern matches, sorted within each folder; any other path, or one without a match, itself."""
    if os.path.lexists(path) or not glob.has_magic(str(path)):
        yield path
        return
    found = _expand(Path(path.anchor), glob_parts(path.parts[1 if path.anchor else 0 :]))
    yield next(found, path)
    yield from found


def glob_parts(parts: Iterable[str]) -> tuple[str, ...]:
    """The parts of a glob pattern, without a `**` behind another, which adds nothing; too many are an `InputError`.

    >>> glob_parts(["a", "**", "**", "*.jpg"])
    ('a', '**', '*.jpg')
    """
    kept = tuple(part for before, part in pairwise(["", *parts]) if not before == part == "**")
    for what, count, most in (("parts", len(kept), PARTS), ('"**"', kept.count("**"), ANY_DEPTH)):
        if count > most:
            told = f"a glob pattern may have at most {most} {what}, got {count}"
            raise InputError(told, hint='"**" stands for any depth by itself')
    return kept


def files_in(path: Path, suffixes: Collection[str] = SUFFIXES, passed_over: PassedOver | None = None) -> Iterator[Path]:
    """Yield a file as it is, a folder as the files in it with one of the suffixes; the others may be counted."""
    if path.suffix.lower() in SUFFIXES or not os.path.isdir(path):  # noqa: PTH112  # one that cannot be a path is none
        return iter([path])
    below = partial(_below, suffixes=suffixes, passed_over=passed_over)
    return (found for found, entered in tree(path, below) if not entered)


def tree(top: Any, below: Callable[[Any], Iterable[tuple[Place, bool]]]) -> Iterator[tuple[Place, bool]]:
    """Yield all places from a folder down, each with whether it is a folder that is entered; `below` lists such a one.

    There is no recursion in it, as folders may be deeper than Python's stack.
    """
    levels: list[Iterator[tuple[Place, bool]]] = [iter([(top, True)])]  # of each, the places still to come
    while levels:
        for place, entered in levels[-1]:
            yield place, entered
            if entered:
                levels.append(iter(below(place)))
                break
        else:
            levels.pop()


def _expand(base: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """Yield the paths under `base` that match the parts of a glob pattern, sorted within each folder."""
    if not parts:
        yield base
        return
    head, rest = parts[0], parts[1:]
    if head == "**":
        for folder, entered in tree(base, _below) if rest else [(base, True)]:
            if entered:
                yield from _expand(folder, rest)
    elif glob.has_magic(head):
        with suppress(OSError):
            for _, name in _sorted(base, apart=False):
                if fnmatchcase(name, head):
                    yield from _expand(base / name, rest)
    elif os.path.lexists(base / head):
        yield from _expand(base / head, rest)


def _below(
    folder: Path, suffixes: Collection[str] = (), passed_over: PassedOver | None = None
) -> Iterator[tuple[Path, bool]]:
    """The files with one of the suffixes in a folder, then the folders; one that cannot be listed counts as a file."""
    try:
        for is_entered, name in _sorted(folder, apart=True):
            if is_entered or (suffix := _suffix(name)) in suffixes:
                yield folder / name, is_entered
            elif passed_over is not None:
                passed_over.add(suffix)
    except OSError:
        yield folder, False


def _sorted(folder: Path, *, apart: bool) -> Iterator[tuple[bool, str]]:
    """The names in a folder, sorted, hidden ones left out; `apart` puts folders that are to be entered last, with True.

    Symlinked folders and folders named like an image are not entered. Each `NAMES` names are a temporary file.
    """
    runs: list[Iterable[tuple[bool, str]]] = []
    with ExitStack() as files:
        with os.scandir(folder) as found:
            names = (
                (apart and entry.is_dir(follow_symlinks=False) and _suffix(entry.name) not in SUFFIXES, entry.name)
                for entry in found
                if entry.name[0] != "."
            )
            while run := sorted(islice(names, NAMES)):
                runs.append(run if len(run) < NAMES else _spilled(run, files))
        yield from heapq.merge(*runs)


def _suffix(name: str) -> str:
    """The suffix of a name; where there is none, its last letter, which is none either."""
    return name[name.rfind(".") :].lower()  # `Path` takes many times as long


def _spilled(run: list[tuple[bool, str]], files: ExitStack) -> Iterator[tuple[bool, str]]:
    """Names that were written to a file, a line each; a null, which no name has, is the end of a line in a name."""
    file = files.enter_context(_new_file())
    file.writelines(f"{is_entered:d}{name}".replace("\n", "\0") + "\n" for is_entered, name in run)
    file.seek(0)
    return ((line[0] == "1", line[1:-1].replace("\0", "\n")) for line in file)
