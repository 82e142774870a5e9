"""Photos on their way to a decoder beside a device: plain JPEGs as they are in their files, all else as pixels.

This much is done without the device, and without torch, so that other processes can do it, too.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple

from outword.encoders.base import Pixels
from outword.encoders.loader import Loader
from outword.errors import ImageError, OutwordError, ParameterError
from outword.photos.ahead import attempt
from outword.photos.decode import MAX_PIXELS, Blob, ImageLike, check_size
from outword.photos.plain_jpeg import MOST_BYTES, PlainJpeg, plain_jpeg

VARIABLE = "OUTWORD_DECODER"  # of the environment: which decoder is to make pixels of plain JPEGs
ON_NODES = ("pillow", "nvjpeg")  # decoders of a run that is spread over processes
PACKED = 512 << 10  # bytes of a file that waits for its decoder; thousands do, and larger ones would fill the memory


def decoder_on_nodes() -> str:
    """The decoder of a run that is spread: all nodes have the same, so that it is named, and Pillow by default."""
    asked = os.environ.get(VARIABLE) or ON_NODES[0]
    if asked not in ON_NODES:
        message = f"{VARIABLE} must be {' or '.join(ON_NODES)} for a run that is spread, got {asked!r}"
        raise ParameterError(message, hint="nvjpeg where all scorers have a GPU with hardware for JPEG")
    return asked


class Packed(NamedTuple):
    """A plain JPEG as it is in its file."""

    data: bytes
    header: PlainJpeg


@dataclass(frozen=True)
class Packer(Loader):
    """What loads photos for a decoder that is elsewhere: which photo is left packed is told from the photo alone."""

    def load(self, images: Sequence[ImageLike]) -> list[Any]:
        """Each image packed or, by Pillow, as pixels; or what is wrong with it."""
        return self._packed(images, PACKED)

    def load_one(self, image: ImageLike, *, max_pixels: int = MAX_PIXELS, large: bool = True) -> Any:
        """One image packed or, by Pillow, as pixels; or `ImageError`."""
        return self._one_packed(image, PACKED, max_pixels, large)

    def _one_packed(self, image: ImageLike, most: int, max_pixels: int, large: bool) -> Packed | Pixels:
        data, header = _plain(image, most)
        if header is None:
            return self.see(image, max_pixels=max_pixels, large=large).pixels
        check_size(header.width, header.height, max_pixels)
        return Packed(data, header)

    def _packed(self, images: Sequence[ImageLike], most: int) -> list[Any]:
        """The same, where so many bytes are the most that a plain JPEG may have."""
        with self._reading:  # more threads that read would only wait for Python's lock, and keep it from the others
            read = [(image, *_plain(image, most)) for image in images]
        return [Packed(data, header) if header else self._by_pillow(image, data) for image, data, header in read]

    def gather(self, loaded: Sequence[Any]) -> tuple[Any, list[ImageError | None]]:
        """What was loaded as it is: the decoder's loader gathers it."""
        return list(loaded), [None] * len(loaded)

    def _by_pillow(self, image: ImageLike, data: bytes) -> Pixels | OutwordError:
        return attempt(self, data if data and not isinstance(image, Blob) else image)

    @cached_property
    def _reading(self) -> Lock:
        return Lock()


def _plain(image: ImageLike, most: int) -> tuple[bytes, PlainJpeg | None]:
    """The bytes of a plain JPEG of so many bytes at most, and its header, else None; b"" for what was not read."""
    data = _read(image)
    return data, plain_jpeg(data) if len(data) <= most else None


def _read(image: ImageLike) -> bytes:
    """The bytes of a file that may be a plain JPEG; b"" for what is to be read otherwise, or cannot be."""
    if isinstance(image, Blob):
        return image.data if isinstance(image.data, bytes) else b""
    if isinstance(image, bytes):
        return image
    if not isinstance(image, str | os.PathLike):
        return b""
    with suppress(OSError, ValueError):  # Pillow's way will say what is wrong
        file = os.open(os.fspath(image), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe would wait for its writer
        try:
            found = os.fstat(file)
            if stat.S_ISREG(found.st_mode) and found.st_size <= MOST_BYTES:
                return os.read(file, found.st_size + 1)
        finally:
            os.close(file)
    return b""
