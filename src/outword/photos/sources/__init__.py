"""Where photos come from: files, folders, lists, tars, tables and datasets, here or behind URLs.

What an archive calls its photos is not trusted. Such a name only ever becomes the part of an item's name that follows
the archive's own path: it is cleaned (`base.inner`), never joined to a folder and never opened. Paths that are listed,
in a text file or in a table, are what the user asked for, and are opened.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import chain, groupby, islice
from pathlib import Path

from outword.base.files import PathLike
from outword.errors import ImageError
from outword.photos.decode import read_bytes
from outword.photos.passed_over import PassedOver
from outword.photos.sources import filesystems, folder, huggingface, listing, tables, tar
from outword.photos.sources.base import (
    PART,
    SOURCES,
    Files,
    Item,
    Kind,
    Piece,
    TableOptions,
    UnreadableSource,
    unfiled,
)
from outword.photos.sources.patterns import matches

__all__ = ["Files", "Item", "find_items", "find_names", "find_pieces", "is_source", "read_items", "without_suffix"]

KINDS: tuple[Kind, ...] = (
    tar.KIND,
    tables.PARQUET,
    tables.ARROW,
    listing.KIND,
    huggingface.KIND,
    folder.KIND,
)
"""The kinds of sources; the first that takes a path is the one that reads it."""

ARCHIVES = tuple(suffix for kind in KINDS for suffix in kind.suffixes)
_is_archive = filesystems.named(ARCHIVES)


def find_pieces(
    given: Iterable[PathLike], *, column: str | None = None, passed_over: PassedOver | None = None
) -> Iterator[Piece]:
    """Yield the photos behind paths and URLs in pieces, lazily and in a stable order.

    - A tar, plain or compressed, gives the image files in it.
    - A Parquet or Arrow file, or a folder that `datasets.Dataset.save_to_disk` wrote, gives its rows.
    - A `.txt`, `.lst` or `.list` file gives what it lists: a path or URL a line, of a photo or an archive.
    - Any other folder gives the image files and the Parquet files below it; no tars, which often lie beside what was
      unpacked from them.
    - What a kind of another package takes, `SOURCES`, gives what that reads: `world:near` photos of a rendered world.
    - Braces, `{00..99}` and `{a,b}`, and glob patterns are expanded where no file has that very name.

    All of this may be behind a URL. What cannot be read becomes an item with an error; a remote place that does not
    answer is an `UnreachableError`.

    Args:
        given: paths and URLs.
        column: of tables, the one with the images; without it that is `image`, else the only one that is a struct of
            `bytes` and `path`, else `path`. It has the bytes of images, or paths and URLs. A table that has no such
            column is an `InputError` if it was named, and an item with an error if it was found in a folder or a list.
        passed_over: where the files of folders are counted that are not taken, because of their names.
    """
    return _gathered(_resolved(given, TableOptions(column, strict=True, passed_over=passed_over)))


def find_items(given: Iterable[PathLike], *, column: str | None = None) -> Iterator[Item]:
    """Yield the photos of all pieces, in order."""
    return chain.from_iterable(piece.items() for piece in find_pieces(given, column=column))


def find_names(given: Iterable[PathLike], *, column: str | None = None) -> Iterator[str]:
    """The names of the items that `find_items` yields, without the photos; damage is passed over."""
    for piece in _gathered(_resolved(given, TableOptions(column))):
        for item in piece.items(contents=False):
            if isinstance(item, Path) or not isinstance(item.data, ImageError):
                yield os.fspath(item)


def is_source(path: PathLike) -> bool:
    """Whether a file is taken for one that holds or lists photos, by its name; a folder is not."""
    return _is_archive(os.fspath(path)) or listing.KIND.takes(os.fspath(path))


def without_suffix(name: str) -> str:
    """The name of an archive or a list without what tells its kind.

    >>> without_suffix("places.tar.gz")
    'places'
    """
    return name[: -max(len(suffix) for suffix in (*ARCHIVES, *listing.SUFFIX) if name.lower().endswith(suffix))]


def read_items(names: Iterable[str], *, column: str | None = None) -> Iterator[tuple[str, bytes | ImageError]]:
    """Yield photos by the names that they had, with their content, in any order.

    Each archive is read once, and only as far as need be; one photo is in memory at a time, of remote ones some more.
    """
    plain: list[str] = []
    inside: defaultdict[str, set[str]] = defaultdict(set)
    is_file = cache(filesystems.is_file)  # many names have the same archive
    for name in dict.fromkeys(names):
        archive = _set_of(name) if unfiled(name) else _archive_of(name, is_file)
        inside[archive].add(name) if archive else plain.append(name)
    for name, item in zip(plain, Files(tuple(plain)).items(), strict=True):
        yield name, _content(item)
    for archive, wanted in inside.items():
        pieces = _gathered(_resolved([archive], TableOptions(column)))
        for item in chain.from_iterable(piece.find(wanted) for piece in pieces):
            if os.fspath(item) in wanted:
                wanted.remove(os.fspath(item))
                yield os.fspath(item), _content(item)
            if not wanted:
                break
        for name in sorted(wanted):
            yield name, ImageError("no such file in the archive")


def _resolved(given: Iterable[PathLike], options: TableOptions) -> Iterator[str | Piece]:
    """What is behind paths: pieces, and the names of plain files."""
    for path in given:
        text = os.fspath(path)
        if filesystems.is_remote(text):
            filesystems.check_packages(text)
        else:
            text = os.fspath(Path(path))
        try:
            for match in matches(text):
                yield from _entries(match, options) if isinstance(match, str) else [match]
        except ImageError as error:
            yield UnreadableSource(text, error.message)


def _entries(path: str, options: TableOptions) -> Iterator[str | Piece]:
    for entry in _kind(path).pieces(path, options):
        if not isinstance(entry, str) or not (_is_archive(entry) or unfiled(entry)):
            yield entry
        else:  # in a list or a folder
            yield from _kind(entry).pieces(entry, replace(options, strict=False))


def _kind(path: str) -> Kind:
    return next(kind for kind in chain(KINDS[:-1], SOURCES.values(), KINDS[-1:]) if kind.takes(path))


def _gathered(entries: Iterable[str | Piece]) -> Iterator[Piece]:
    """The pieces, with plain files between them in runs."""
    for is_file, run in groupby(entries, lambda entry: isinstance(entry, str)):
        while is_file and (paths := tuple(entry for entry in islice(run, PART) if isinstance(entry, str))):
            yield Files(paths)
        yield from (entry for entry in run if isinstance(entry, Piece))


def _set_of(name: str) -> str:
    """The set that a photo is of which lies in no file: "world:near" of "world:near/turtle/000.png"."""
    return name.partition("/")[0]


def _archive_of(name: str, is_file: Callable[[str], bool]) -> str | None:
    """The first part of a name that is the path of an archive."""
    for end in (match.start() for match in re.finditer(r"[/\\]", name)):
        with suppress(ImageError):
            if name[:end].lower().endswith(ARCHIVES) and is_file(name[:end]):
                return name[:end]
    return None


def _content(item: Item) -> bytes | ImageError:
    try:
        return read_bytes(item)
    except ImageError as error:
        return error
