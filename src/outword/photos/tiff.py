"""Pillow's TIFF reader, less what it does after decoding; a module of its own, since few need it."""

from __future__ import annotations

from PIL import _imaging
from PIL.ImageFile import ImageFile
from PIL.TiffImagePlugin import TiffImageFile

ORIENTATION = 0x0112


class Tiff(TiffImageFile):
    """A TIFF whose other pages are left alone, and that is not turned: Pillow walks them all, and turns a copy."""

    def load_prepare(self) -> None:
        """Make the canvas, without a warning of Pillow's about its size."""
        self.im = _imaging.new(self.mode, self._tile_size)
        ImageFile.load_prepare(self)

    def load_end(self) -> None:
        """Keep the pixels as they lie in the file, and how they are to be turned."""
        self._size = self._tile_size
        self.orientation = self.tag_v2.get(ORIENTATION, 1)
