"""Pillow's TIFF reader, less what it does after decoding; a module of its own, since few need it.

libtiff gets the bytes of a file, not the file: it would map it into memory, and if somebody else cuts it meanwhile, as
a copy or a download in place does, the system ends the process with SIGBUS.
"""

from __future__ import annotations

import ctypes
import io
import logging
from typing import IO, Any

from PIL import _imaging
from PIL.ImageFile import ImageFile
from PIL.TiffImagePlugin import TiffImageFile

from outword.photos.strips import check_strips

ORIENTATION = 0x0112
BLOCK = 1 << 20  # bytes of pixels, if they are not compressed, that are read at a time, or a row


class Tiff(TiffImageFile):
    """A TIFF whose other pages are left alone, and that is not turned: Pillow walks them all, and turns a copy."""

    fp: IO[bytes]
    strip_cost = 0  # bytes that it takes to decode a strip or tile, if the image is compressed

    @property
    def in_memory(self) -> bool:
        """Whether its file is in memory already."""
        return isinstance(self.fp, io.BytesIO)

    def check(self, size: int) -> None:
        """Refuse strips that ask for more than they are; `size` is the number of bytes of the file."""
        self._bytes = size
        if self.use_load_libtiff:
            self.strip_cost = check_strips(self.fp, size)

    def load(self) -> Any:
        """Decode the pixels, of a compressed image from its bytes in memory."""
        if self.tile and self.use_load_libtiff:
            self._fetch()
        elif self.tile:
            self._block = min(_most(self.tile[0]), max(BLOCK, self.decodermaxblock))
        return super().load()

    def load_read(self, count: int) -> bytes:
        """Some of the pixels that are not compressed; Pillow asks for all up to the next strip, wherever that is."""
        return self.fp.read(min(count, self._block))

    def _fetch(self) -> None:
        """Read the file into memory; one that has been cut since it was opened is a truncated image."""
        if self.in_memory:
            return
        self.fp.seek(0)
        data = self.fp.read(self._bytes)
        if len(data) < self._bytes:
            raise EOFError
        self.fp = io.BytesIO(data)

    def load_prepare(self) -> None:
        """Make the canvas, without a warning of Pillow's about its size."""
        self.im = _imaging.new(self.mode, self._tile_size)
        ImageFile.load_prepare(self)

    def load_end(self) -> None:
        """Keep the pixels as they lie in the file, and how they are to be turned."""
        self._size = self._tile_size
        self.orientation = self.tag_v2.get(ORIENTATION, 1)
        self.fp = None  # type: ignore[assignment]  # its bytes are not needed any more


def _most(tile: Any) -> int:
    """Bytes that a strip or tile has at most, without compression."""
    left, top, right, bottom = tile[1]
    rows, stride = int(bottom - top), int(tile[3][1])
    return rows * max(8 * int(right - left), stride)


def _silence() -> bool:
    """Keep libtiff from writing to stderr, where a damaged fax gets a line for each of its rows.

    Its functions are looked up in what Pillow was linked with, and set once for the process, as Pillow does with
    warnings. Where they cannot be reached, as on Windows, where they are a part of Pillow, libtiff writes.
    """
    try:
        library = ctypes.CDLL(_imaging.__file__)
        setters = [library.TIFFSetErrorHandler, library.TIFFSetErrorHandlerExt]
    except (AttributeError, OSError, TypeError):
        return False
    for setter in setters:
        setter.argtypes, setter.restype = [ctypes.c_void_p], ctypes.c_void_p
        setter(None)
    return True


SILENT = _silence()
logging.getLogger("PIL.TiffImagePlugin").addHandler(logging.NullHandler())  # what it logs is in the error, too
