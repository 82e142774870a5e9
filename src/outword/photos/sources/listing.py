"""Text files that list photos: a path or URL a line, relative to the current folder; read line by line."""

from __future__ import annotations

import os
from collections.abc import Iterator

from outword.errors import ImageError
from outword.photos.sources import filesystems
from outword.photos.sources.base import Kind, Piece, TableOptions, UnreadableSource

SUFFIX = (".txt", ".lst", ".list")
LONGEST = 1 << 16  # bytes of a line
_BOM = b"\xef\xbb\xbf"


def _pieces(path: str, options: TableOptions) -> Iterator[str | Piece]:
    """The lines as they are, blank ones left out."""
    try:
        with filesystems.open_file(path, buffer=1 << 20) as file:
            if file.read(3) != _BOM:
                file.seek(0)
            while line := file.readline(LONGEST):
                if len(line) == LONGEST and line[-1:] != b"\n":
                    yield UnreadableSource(path, f"the line at byte {file.tell() - LONGEST} is no path")
                    while line and line[-1:] != b"\n":
                        line = file.readline(LONGEST)
                elif line.strip():
                    yield os.fsdecode(line.rstrip(b"\r\n"))
    except ImageError as error:
        yield UnreadableSource(path, error.message)


KIND = Kind(filesystems.named(SUFFIX), _pieces)
