"""Folders, searched for image files and Parquet tables, and plain files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from outword.errors import ImageError
from outword.photos.formats import SUFFIXES
from outword.photos.sources import filesystems
from outword.photos.sources.base import Kind, Piece, TableOptions, UnreadableSource
from outword.photos.walk import files_in

TAKEN = SUFFIXES | {".parquet"}


def _pieces(path: str, options: TableOptions) -> Iterator[str | Piece]:
    """A file as it is, a folder as what is in it: sorted, its own files before those of the folders in it.

    Hidden files, tars and lists are left out; tars often lie beside what was unpacked from them.
    """
    if not filesystems.is_remote(path):
        yield from map(os.fspath, files_in(Path(path), TAKEN))
        return
    try:
        image = PurePosixPath(filesystems.ending(path)).suffix in SUFFIXES
        is_file = not path.endswith("/") and (image or filesystems.is_file(path))
    except ImageError as error:
        yield UnreadableSource(path, error.message)
        return
    yield from [path] if is_file else _tree(path.rstrip("/"))


def _tree(top: str) -> Iterator[str | Piece]:
    """The files below a remote folder."""
    pending = [top]
    while pending:
        folder = pending.pop()
        below = []
        if folder.count("/") - top.count("/") > filesystems.DEPTH:
            yield UnreadableSource(folder, filesystems.TOO_DEEP)
            continue
        try:
            for name, is_folder in filesystems.scan(folder):
                if is_folder:  # whatever its name: in a bucket a photo may be called the same
                    below.append(f"{folder}/{name}")
                elif PurePosixPath(filesystems.ending(name)).suffix in TAKEN:
                    yield f"{folder}/{name}"
        except ImageError as error:
            yield UnreadableSource(folder, error.message)
        pending += sorted(below, reverse=True)  # a server may sort them with the "/" behind them


KIND = Kind(lambda path: True, _pieces)
