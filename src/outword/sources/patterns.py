"""Braces and globs: one path that stands for many, here or behind a URL."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from outword.errors import ImageError
from outword.images import SUFFIXES, expand
from outword.sources import places
from outword.sources.base import Broken, Piece

_BRACES = re.compile(r"\{(?:([^{}]*,[^{}]*)|(\d+)\.\.(\d+)(?:\.\.(\d+))?)\}")


def matches(path: str) -> Iterator[str | Piece]:
    """What a path stands for: braces first, then globs; itself where a file has that very name, or nothing matches.

    What a remote folder fails to tell is a `Broken` piece.
    """
    if not _BRACES.search(path) or places.exists(path):
        yield from _globbed(path)
        return
    for one in braced(path):
        yield from _globbed(one)


def braced(path: str) -> Iterator[str]:
    """The paths that braces stand for, as WebDataset and the shell have them; numbers keep their zeros.

    >>> list(braced("{a,b}/{08..10}.tar"))
    ['a/08.tar', 'a/09.tar', 'a/10.tar', 'b/08.tar', 'b/09.tar', 'b/10.tar']
    """
    found = _BRACES.search(path)
    if not found:
        yield path
        return
    listed, first, last, step = found.groups()
    words = iter(listed.split(",")) if first is None else _range(first, last, int(step or 1) or 1)
    for word in words:
        yield from (f"{path[: found.start()]}{rest}" for rest in braced(word + path[found.end() :]))


def _range(first: str, last: str, step: int) -> Iterator[str]:
    padded = any(len(end) > 1 and end[0] == "0" for end in (first, last))
    width = max(len(first), len(last)) if padded else 0
    start, stop = int(first), int(last)
    numbers = range(start, stop + 1, step) if start <= stop else range(start, stop - 1, -step)
    return (f"{number:0{width}}" for number in numbers)


def _globbed(path: str) -> Iterator[str | Piece]:
    if not places.is_remote(path):
        yield from map(os.fspath, expand(Path(path)))
        return
    if not _is_pattern(path) or places.exists(path):
        yield path
        return
    parts = path.rstrip("/").split("/")
    fixed = next(number for number, part in enumerate(parts) if _is_pattern(part))
    matched = False
    for match in _below("/".join(parts[:fixed]), parts[fixed:]):
        matched = True
        yield match
    if not matched:
        yield path


def _is_pattern(path: str) -> bool:
    return "*" in path if path.startswith(("http:", "https:")) else glob.has_magic(path)  # "?" comes before a query


def _below(base: str, parts: list[str]) -> Iterator[str | Piece]:
    """The remote paths under `base` that match the parts of a pattern, in the order that `images.expand` has."""
    if not parts:
        yield base
        return
    head, rest = parts[0], parts[1:]
    try:
        if head == "**":
            yield from _below(base, rest)
            for folder in _folders(base) if rest else []:
                yield from _below(folder, parts)
        elif _is_pattern(head):
            photos = not rest and PurePosixPath(head).suffix.lower() in SUFFIXES  # "*.jpg" means no folder
            for name, is_folder in places.scan(base):
                if fnmatchcase(name, head) and (not photos if is_folder else not rest):
                    end = "/" * (is_folder and not rest)  # a photo may be called the same
                    yield from _below(f"{base}/{name}{end}", rest)
        elif rest or places.exists(f"{base}/{head}"):
            yield from _below(f"{base}/{head}", rest)
    except places.Missing:
        return
    except ImageError as error:
        yield Broken(base, error.message)


def _folders(base: str) -> list[str]:
    return [f"{base}/{name}" for name in sorted(name for name, is_folder in places.scan(base) if is_folder)]
