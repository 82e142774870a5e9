"""Which files are plain JPEGs: those that fast decoders take, told from the header, before any of them sees a byte.

Plain is what cameras and the web have most: 8-bit baseline JPEG, grey or YCbCr, in one scan, whole, of ordinary size.
Everything else, and whatever looks odd, is left to Pillow (`outword.photos.decode`), which knows all of JPEG and says
what is wrong with a file.
"""

from __future__ import annotations

from typing import NamedTuple

from outword.photos.decode import LARGE, exif_orientation

LEAST = 32  # pixels a side: hardware treats the edges of smaller ones otherwise than Pillow
MOST_BYTES = 16 << 20  # of a file; those that take longer go through Pillow, one at a time if need be
SEGMENTS = 64  # before the pixels; photos have about ten
_FRAME, _SCAN = 0xC0, 0xDA
_KNOWN = frozenset({_FRAME, 0xC4, _SCAN, 0xDB, 0xDD, *range(0xE0, 0xF0), 0xFE})  # markers of segments in a plain JPEG
_EXIF, _ADOBE = b"Exif\0\0", b"Adobe"
_END = b"\xff\xd9"


class PlainJpeg(NamedTuple):
    """What the header of a plain JPEG says: its size as it is stored, and how it is to be turned, 1 to 8 as in EXIF."""

    width: int
    height: int
    orientation: int


def plain_jpeg(data: bytes) -> PlainJpeg | None:
    """What the header says if `data` is a plain JPEG of at most `LARGE` pixels; None for all else."""
    if data[:3] != b"\xff\xd8\xff" or len(data) > MOST_BYTES:
        return None
    try:
        return _plain(data)
    except IndexError:  # it ends within its header
        return None


def _plain(data: bytes) -> PlainJpeg | None:
    at, size, orientation = 2, None, 0
    for _ in range(SEGMENTS):
        if data[at] != 0xFF:
            return None
        marker, length = data[at + 1], data[at + 2] << 8 | data[at + 3]
        if marker not in _KNOWN or length < 2:
            return None  # what has no length behind it, or nobody knows, could hide another image
        start, at = at + 4, at + 2 + length
        if marker == _SCAN:
            if size is None or data[start] != size[2] or length != 6 + 2 * size[2]:
                return None  # a scan of some of the components: others follow
            if not data.endswith(_END) and data.find(_END, at) < 0:  # FF D9 cannot stand within the pixels
                return None
            return PlainJpeg(size[0], size[1], orientation or 1)
        if marker == _FRAME:
            size = _size(data, start) if size is None else None
            if size is None:
                return None
        elif marker == 0xE1 and data.startswith(_EXIF, start):
            if orientation:
                return None  # which of the two counts?
            orientation = exif_orientation(data[start:at])
            if not 1 <= orientation <= 8:
                return None
        elif marker == 0xEE and data.startswith(_ADOBE, start) and data[start + 11] != 1:
            return None  # its colours are not YCbCr
    return None


def _size(data: bytes, start: int) -> tuple[int, int, int] | None:
    """Width, height and number of components of a frame; None where it is not plain."""
    height, width = data[start + 1] << 8 | data[start + 2], data[start + 3] << 8 | data[start + 4]
    bits, components = data[start], data[start + 5]
    sampled = [(data[start + 6 + 3 * n], data[start + 7 + 3 * n]) for n in range(min(components, 3))]
    usual = components == 1 or sampled in _SAMPLED
    if bits != 8 or not usual or min(width, height) < LEAST or width * height > LARGE:
        return None
    return width, height, components


# Of Y, Cb and Cr: the number that a component goes by, and its sampling; 4:4:4, 4:2:2 and 4:2:0
_SAMPLED = [[(1, luma), (2, 0x11), (3, 0x11)] for luma in (0x11, 0x21, 0x22)]
