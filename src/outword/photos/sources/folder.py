"""Folders, searched for image files and Parquet tables, and plain files."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path, PurePosixPath

from outword.errors import ImageError
from outword.photos.formats import SUFFIXES
from outword.photos.passed_over import PassedOver
from outword.photos.sources import filesystems
from outword.photos.sources.base import Kind, Piece, TableOptions, UnreadableSource
from outword.photos.walk import files_in, tree

TAKEN = SUFFIXES | {".parquet"}


def _pieces(path: str, options: TableOptions) -> Iterator[str | Piece]:
    """A file as it is, a folder as what is in it: sorted, its own files before those of the folders in it.

    Hidden files, tars and lists are left out; tars often lie beside what was unpacked from them.
    """
    if not filesystems.is_remote(path):
        yield from map(os.fspath, files_in(Path(path), TAKEN, options.passed_over))
        return
    try:
        image = PurePosixPath(filesystems.ending(path)).suffix in SUFFIXES
        is_file = not path.endswith("/") and (image or filesystems.is_file(path))
    except ImageError as error:
        yield UnreadableSource(path, error.message)
        return
    top = path.rstrip("/")
    found = tree(top, partial(below, top=top, suffixes=TAKEN, passed_over=options.passed_over))
    yield from [path] if is_file else (place for place, entered in found if not entered)


def below(
    folder: str, *, top: str, suffixes: Collection[str] = (), passed_over: PassedOver | None = None
) -> Iterator[tuple[str | Piece, bool]]:
    """The files with one of the suffixes in a remote folder, then the folders, for `tree` from `top` on.

    What cannot be listed, or is too deep, is a piece with an error; without suffixes, a folder that is gone is not.
    """
    folders = []
    try:
        for name, is_folder in filesystems.scan(folder):
            if is_folder:  # whatever its name: in a bucket a photo may be called the same
                folders.append(f"{folder}/{name}")
            elif (suffix := PurePosixPath(filesystems.ending(name)).suffix) in suffixes:
                yield f"{folder}/{name}", False
            elif passed_over is not None:
                passed_over.add(suffix)
    except ImageError as error:
        if suffixes or not isinstance(error, filesystems.Missing):
            yield UnreadableSource(folder, error.message), False
    too_deep = folder.count("/") - top.count("/") >= filesystems.DEPTH
    for path in sorted(folders):  # a server may sort them with the "/" behind them
        yield (UnreadableSource(path, filesystems.TOO_DEEP), False) if too_deep else (path, True)


KIND = Kind(lambda path: True, _pieces)
