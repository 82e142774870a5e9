"""Pillow's PNG reader, less the texts that it keeps and most of what it reads behind the pixels."""

from __future__ import annotations

from PIL.PngImagePlugin import PngImageFile

from outword.photos.headers import PNG_PIXELS, png_chunks

EXIF_AS_TEXT = "Raw profile type exif"
_TEXTS = frozenset({b"tEXt", b"zTXt", b"iTXt"})


class Png(PngImageFile):
    """A PNG that keeps no text but the one that is EXIF, and that passes over what it has no use for."""

    def _open(self) -> None:
        super()._open()
        texts = [name for name, value in self.info.items() if isinstance(value, str) and name != EXIF_AS_TEXT]
        for name in texts:
            del self.info[name]
        self.png.im_text.clear()  # type: ignore[union-attr]
        self.png.save_rewind()  # type: ignore[union-attr]

    def load_end(self) -> None:
        """Read how it is to be turned, where that stands behind the pixels.

        Pillow reads everything there, each chunk in one piece, and what is left of the pixels.
        """
        seen = False
        for name, where, length in png_chunks(self.fp):  # type: ignore[arg-type]
            seen = seen or name in PNG_PIXELS
            if not seen:
                continue
            if name == b"fcTL" and self.is_animated:
                break  # what follows is the next frame
            if name == b"eXIf" or (name in _TEXTS and self._is_exif(where)):
                self.fp.seek(where)  # type: ignore[union-attr]
                self.png.call(name, where, length)  # type: ignore[union-attr]

    def _is_exif(self, where: int) -> bool:
        """Whether a text is one that older tools keep EXIF in."""
        self.fp.seek(where)  # type: ignore[union-attr]
        key = EXIF_AS_TEXT.encode() + b"\0"
        return self.fp.read(len(key)) == key  # type: ignore[union-attr]
