"""Which files are plain JPEGs: those that fast decoders take, decided by the header, before any of them sees a byte.

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
_FRAME, _SCAN, _APP1, _APP14 = 0xC0, 0xDA, 0xE1, 0xEE
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


class _Segment(NamedTuple):
    """A part of a header: its marker, where its content begins, and where it ends."""

    marker: int
    start: int
    end: int


def _plain(data: bytes) -> PlainJpeg | None:
    segments = _segments(data)
    frames = [segment for segment in segments if segment.marker == _FRAME]
    exifs = [segment for segment in segments if segment.marker == _APP1 and data.startswith(_EXIF, segment.start)]
    if len(frames) != 1 or len(exifs) > 1 or any(_has_other_colours(data, segment) for segment in segments):
        return None
    size = _size(data, frames[0].start)
    if size is None or not _is_whole_scan(data, segments[-1], size[2]):
        return None
    orientation = 1
    for exif in exifs:
        orientation = exif_orientation(data[exif.start : exif.end])
    return PlainJpeg(size[0], size[1], orientation) if 1 <= orientation <= 8 else None


def _segments(data: bytes) -> list[_Segment]:
    """The segments up to the first scan; none where one is odd.

    What has no length behind its marker, or is not known, could hide another image.
    """
    found: list[_Segment] = []
    at = 2
    while len(found) < SEGMENTS and data[at] == 0xFF:
        marker, length = data[at + 1], data[at + 2] << 8 | data[at + 3]
        if marker not in _KNOWN or length < 2:
            return []
        found.append(_Segment(marker, at + 4, at + 2 + length))
        if marker == _SCAN:
            return found
        at += 2 + length
    return []


def _has_other_colours(data: bytes, segment: _Segment) -> bool:
    """Whether a segment is Adobe's, and says that the colours are not YCbCr."""
    return segment.marker == _APP14 and data.startswith(_ADOBE, segment.start) and data[segment.start + 11] != 1


def _is_whole_scan(data: bytes, scan: _Segment, components: int) -> bool:
    """Whether a scan has all components, so that none follows, and ends; FF D9 cannot stand within the pixels."""
    if data[scan.start] != components or scan.end - scan.start != 4 + 2 * components:
        return False
    return data.endswith(_END) or data.find(_END, scan.end) >= 0


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
