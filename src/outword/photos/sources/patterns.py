"""Braces and globs: one path that stands for many, here or behind a URL."""

from __future__ import annotations

import glob
import math
import os
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from itertools import product
from pathlib import Path, PurePosixPath

from outword.errors import ImageError, InputError
from outword.photos.formats import SUFFIXES
from outword.photos.sources import filesystems
from outword.photos.sources.base import Piece, TableOptions, UnreadableSource, unfiled
from outword.photos.sources.folder import below
from outword.photos.walk import expand, glob_parts, tree

MOST = 1_000_000  # paths that one with braces may stand for
DIGITS = 18  # of a number in braces
_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"[0-9]+\.\.[0-9]+(\.\.[0-9]+)?")
Words = tuple[int, Iterable[str]]  # what one pair of braces stands for, and how many they are


def matches(path: str) -> Iterator[str | Piece]:
    """What a path stands for: braces first, then globs; itself where a file has that very name, or nothing matches.

    What a remote folder fails to tell is an `UnreadableSource`. A pattern that stands for too many is an `InputError`.
    """
    groups = _groups(path)
    for one in [path] if len(groups) == 1 or filesystems.exists(path) else _expanded(path, groups):
        yield from _globbed(one)


def is_there(path: str) -> bool:
    """Whether there is anything of this machine behind a path or pattern; of what is remote that is not asked.

    What lies in no file is asked of its kind, which says what is wrong (`unfiled`).
    """
    if filesystems.is_remote(path):
        return True
    if kind := unfiled(path):
        strict = TableOptions(strict=True)
        return all([*kind.pieces(match, strict)] for match in matches(path) if isinstance(match, str))
    return any(os.path.lexists(match) for match in matches(path) if isinstance(match, str))


def check_there(paths: Iterable[str]) -> None:
    """Raise `InputError` if there is nothing of this machine behind some of the paths or patterns."""
    if missing := [path for path in paths if not is_there(path)]:
        more = f", and at {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise InputError(f"there is nothing at {missing[0]}{more}", hint="check the path")


def braced(path: str) -> Iterator[str]:
    """The paths that braces stand for, as WebDataset and the shell have them; numbers keep their zeros.

    They are counted first: more than `MOST` are an `InputError`.

    >>> list(braced("{a,b}/{08..10}.tar"))
    ['a/08.tar', 'a/09.tar', 'a/10.tar', 'b/08.tar', 'b/09.tar', 'b/10.tar']
    """
    return _expanded(path, _groups(path))


def _expanded(path: str, groups: list[Words]) -> Iterator[str]:
    count = math.prod(number for number, _ in groups)
    if count > MOST:
        told = f"{count:,}" if count < 10**DIGITS else f"about 10^{math.log10(count):.0f}"
        told = f'the braces of "{path[:80]}" stand for {told} paths, and may for {MOST:,}'
        raise InputError(told, hint="use a glob pattern, or a text file with a path a line")
    return map("".join, product(*(words for _, words in groups)))


def _groups(path: str) -> list[Words]:
    """The parts of a path, in order: what braces stand for, and the text between them."""
    groups: list[Words] = []
    at = 0
    for found in _BRACES.finditer(path):
        if words := _words(found[1]):
            groups += [(1, [path[at : found.start()]]), words]
            at = found.end()
    return [*groups, (1, [path[at:]])]


def _words(inside: str) -> Words | None:
    """What braces around a text stand for; None if for nothing but themselves."""
    if "," in inside:
        return inside.count(",") + 1, inside.split(",")
    return _range(*inside.split("..")) if _RANGE.fullmatch(inside) else None


def _range(first: str, last: str, step: str = "1") -> Words:
    longest = max(map(len, (first, last, step)))
    if longest > DIGITS:
        raise InputError(f"a number in braces may have {DIGITS} digits, got {longest}", hint="use a glob pattern")
    padded = any(len(end) > 1 and end[0] == "0" for end in (first, last))
    width = max(len(first), len(last)) if padded else 0
    start, stop, by = int(first), int(last), int(step) or 1
    numbers = range(start, stop + 1, by) if start <= stop else range(start, stop - 1, -by)
    return len(numbers), (f"{number:0{width}}" for number in numbers)


def _globbed(path: str) -> Iterator[str | Piece]:
    if not filesystems.is_remote(path):
        yield from map(os.fspath, expand(Path(path)))
        return
    if not has_magic(path) or filesystems.exists(path):
        yield path
        return
    parts = path.rstrip("/").split("/")
    fixed = next(number for number, part in enumerate(parts) if has_magic(part))
    found = _below("/".join(parts[:fixed]), glob_parts(parts[fixed:]))
    yield next(found, path)
    yield from found


def is_pattern(path: str) -> bool:
    """Whether a path may stand for others by a glob pattern or braces."""
    return has_magic(path) or len(_groups(path)) > 1


def has_magic(path: str) -> bool:
    """Whether it is a glob pattern."""
    return "*" in path if path.startswith(("http:", "https:")) else glob.has_magic(path)  # "?" comes before a query


def _below(base: str, parts: tuple[str, ...]) -> Iterator[str | Piece]:
    """The remote paths under `base` that match the parts of a pattern, in the order that `walk.expand` has."""
    if not parts:
        yield base
        return
    head, rest = parts[0], parts[1:]
    try:
        if head == "**":
            for folder, _ in tree(base, partial(below, top=base)) if rest else [(base, True)]:
                yield from _below(folder, rest) if isinstance(folder, str) else [folder]
        elif is_pattern(head):
            photos = not rest and PurePosixPath(head).suffix.lower() in SUFFIXES  # "*.jpg" means no folder
            for name, is_folder in filesystems.scan(base):
                if fnmatchcase(name, head) and (not photos if is_folder else not rest):
                    end = "/" * (is_folder and not rest)  # a photo may be called the same
                    yield from _below(f"{base}/{name}{end}", rest)
        elif rest or filesystems.exists(f"{base}/{head}"):
            yield from _below(f"{base}/{head}", rest)
    except filesystems.Missing:
        return
    except ImageError as error:
        yield UnreadableSource(base, error.message)
