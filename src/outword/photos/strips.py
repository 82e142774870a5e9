"""What the strips or tiles of a compressed TIFF make libtiff do, reckoned from its tags before one is decoded.

Each strip has a place and a number of bytes in the file, and is decoded whole. Few bytes can stand for many strips that
all lie in the same place; a tile can be larger than the image; and a strip may be a JPEG of many scans.
"""

from __future__ import annotations

import io
import math
import struct
from typing import IO, NamedTuple

from outword.errors import ImageError
from outword.photos import headers

SHARED = 16 << 20  # bytes of all strips beyond those of the file: some writers keep equal tiles once
MAX_LZMA = 128 << 20  # bytes of strips in LZMA, which are decoded at some 25 MB a second
_JPEG_ROWS = 65_535  # the most that a JPEG can have
_HEAD = 2048  # bytes of a JPEG that are read before all of it is
_WEBP_BYTES = 12  # that libwebp takes for a pixel
_AGAIN = "open it in a viewer and save it again"

_WIDTH, _LENGTH, _BITS, _COMPRESSION, _COLOURS, _FILL = 256, 257, 258, 259, 262, 266
_SAMPLES, _ROWS, _PLANES, _TILE_WIDTH, _TILE_LENGTH = 277, 278, 284, 322, 323
_PLACES, _LENGTHS = (273, 324), (279, 325)  # of strips, and of tiles: for libtiff that is the same
_TYPES = {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i", 13: "I", 16: "Q", 17: "q", 18: "Q"}  # of whole numbers
_OLD_JPEG, _JPEG, _LZMA, _ZSTD, _WEBP = 6, 7, 34925, 50000, 50001
_YCBCR = 6


class Tags:
    """The whole numbers in the first directory of a TIFF, as libtiff reads them.

    Pillow reads them in another way: of a tag that is there twice it takes the last and libtiff the first, and they
    differ in the types that they know. What libtiff sees decides what an image costs.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        file.seek(0)
        self._order = "<" if file.read(2) == b"II" else ">"
        big = file.read(2) in (b"+\0", b"\0+")
        where, count, entry = (struct.Struct(self._order + code) for code in (_BIG if big else _CLASSIC))
        file.seek(where.unpack(file.read(where.size))[0])
        found = file.read(count.unpack(file.read(count.size))[0] * entry.size)
        self._entries: dict[int, tuple[int, int, bytes]] = {}
        for number, kind, values, value in entry.iter_unpack(found[: len(found) // entry.size * entry.size]):
            self._entries.setdefault(number, (kind, values, value))

    def __contains__(self, number: int) -> bool:
        return number in self._entries

    def number(self, number: int, default: int) -> int:
        """The value of a tag that has exactly one, else `default`: libtiff gives up on others, or passes over them."""
        _, count, _ = self._entries.get(number, (0, 0, b""))
        values = self.numbers(number, 1) if count == 1 else ()
        return values[0] if values else default

    def numbers(self, number: int, most: int) -> tuple[int, ...]:
        """The values of a tag, so many at most."""
        kind, count, value = self._entries.get(number, (0, 0, b""))
        code = _TYPES.get(kind)
        if code is None:
            return ()
        wanted = min(count, most)
        one = struct.calcsize("=" + code)
        if wanted > headers.PARTS:
            raise ImageError(f"too many values of a tag: over {headers.PARTS:,}", hint=_AGAIN)
        if count * one > len(value):  # they do not fit into the directory, which says where they are
            self._file.seek(struct.unpack(self._order + ("I" if len(value) == 4 else "Q"), value)[0])
            value = self._file.read(wanted * one)
        return struct.unpack(f"{self._order}{wanted}{code}", value[: wanted * one])

    def last(self, numbers: tuple[int, int]) -> int:
        """The tag that comes last, of two that mean the same."""
        found = [number for number in self._entries if number in numbers]
        return found[-1] if found else numbers[0]


class Strips(NamedTuple):
    """The strips or tiles of an image.

    Args:
        places: where each begins in the file.
        lengths: bytes of each in the file.
        number: how many there are by the size of the image.
        width: pixels of one.
        rows: rows of one.
        bits: of a pixel of one.
        tiled: whether they are tiles, which are decoded whole however small the image is.
    """

    places: tuple[int, ...]
    lengths: tuple[int, ...]
    number: int
    width: int
    rows: int
    bits: int
    tiled: bool

    @classmethod
    def of(cls, tags: Tags, size: int) -> Strips:
        """By the tags of a file of `size` bytes."""
        width, height = tags.number(_WIDTH, 0), tags.number(_LENGTH, 0)
        samples, rows = tags.number(_SAMPLES, 1), tags.number(_ROWS, height)
        planes = samples if tags.number(_PLANES, 1) == 2 else 1
        tiled = _TILE_WIDTH in tags or _TILE_LENGTH in tags
        if tiled:
            across, down = tags.number(_TILE_WIDTH, width), tags.number(_TILE_LENGTH, rows)
        else:
            across, down = width, min(rows, height)
        number = planes * math.ceil(width / across) * math.ceil(height / down)
        places = tags.numbers(tags.last(_PLACES), number)
        lengths = tags.numbers(tags.last(_LENGTHS), number)
        if not any(lengths):  # libtiff then takes all of the file for one strip
            lengths = (size,)
        bits = max(tags.numbers(_BITS, samples), default=1)
        in_file = [max(0, min(length, size - place)) for place, length in zip(places, lengths, strict=False)]
        return cls(places, tuple(in_file), number, across, down, bits * samples // planes, tiled)


def check_strips(file: IO[bytes], size: int) -> int:
    """Refuse a compressed TIFF whose strips ask for too much; returns the bytes that it takes to decode one of them.

    Args:
        file: the file; where it is left does not matter.
        size: how many bytes it has.
    """
    tags = Tags(file)
    strips = Strips.of(tags, size)
    compression = max(tags.numbers(_COMPRESSION, 1), default=1)  # some have it for each sample
    used = sum(strips.lengths)
    if used > size + SHARED:
        told = f"its strips come to {used:,} bytes, the file to {size:,}"
        raise ImageError(f"damaged image: {told}", hint=_AGAIN)
    _check_tiles(strips, size)
    if compression == _LZMA and used > MAX_LZMA:
        raise ImageError(f"too large: {used:,} bytes in LZMA is over {MAX_LZMA:,}", hint="save it as PNG first")
    samples = tags.number(_SAMPLES, 1)
    if compression == _OLD_JPEG and tags.number(_PLANES, 1) == 2 and strips.number > samples:
        raise ImageError("old JPEG in a TIFF, in planes of several strips, is not read", hint=_AGAIN)
    kept = _check_scans(file, strips, samples) if compression == _JPEG else 0
    return kept + _strip_cost(strips, tags, compression)


def _check_tiles(strips: Strips, size: int) -> None:
    """Refuse tiles that are larger than the image and out of all proportion to the bytes of the file."""
    if not strips.tiled:
        return
    pixels = strips.number * strips.width * strips.rows
    raw = pixels * strips.bits // 8
    if pixels > headers.FREE and raw > headers.PROPORTION * size:
        told = f"tiles that are {raw:,} bytes unpacked, over {headers.PROPORTION} times the file"
        raise ImageError(f"out of proportion: {told}", hint=_AGAIN)
    if raw > headers.MAX_RAW:
        told = f"tiles that are {raw:,} bytes unpacked, over {headers.MAX_RAW:,}"
        raise ImageError(f"too large: {told}", hint="shrink it first")


def _check_scans(file: IO[bytes], strips: Strips, samples: int) -> int:
    """Refuse strips in JPEG whose scans take too long, all of them together; returns what libjpeg keeps of one."""
    most = scanned = used = 0
    for place, length in zip(strips.places[: strips.number], strips.lengths, strict=False):
        file.seek(place)
        rows, plain = _frame(file.read(min(length, _HEAD)))
        if plain:
            continue
        scans = headers.check_parts(Part(file, place, length), "Jpeg")  # type: ignore[arg-type]
        if scans < 2:
            continue
        pixels = strips.width * max(strips.rows, rows)
        most = max(most, pixels)
        scanned += scans * pixels
        used += length
        if scans > headers.MAX_SCANS:
            raise ImageError(f"too many scans: {scans} in a strip is over {headers.MAX_SCANS}", hint=_AGAIN)
        if scanned > headers.MAX_SCANNED:
            raise ImageError(f"too many scans: over {headers.MAX_SCANNED:,} pixels in those of all strips", hint=_AGAIN)
    if used > headers.MAX_PROGRESSIVE:
        raise ImageError(f"too large: {used:,} bytes in several scans is over {headers.MAX_PROGRESSIVE:,}", hint=_AGAIN)
    return 2 * most * samples


def _frame(head: bytes) -> tuple[int, bool]:
    """The rows of a JPEG, and whether it is of the usual kind: its first scan has all components, and is the only one.

    Where it does not say so in the usual places, it may have as many rows as there can be, and is not of that kind.
    """
    at, rows, components = 2, _JPEG_ROWS, 0
    while at + 10 <= len(head) and head[at] == 0xFF:
        marker, length = head[at + 1], head[at + 2] << 8 | head[at + 3]
        if marker == 0xDA:
            return rows, 0 < components <= head[at + 4]
        if marker in _FRAMES:
            rows = head[at + 5] << 8 | head[at + 6]
            components = head[at + 9] if marker in _SEQUENTIAL else 0
        elif marker not in _TABLES:
            break
        at += 2 + length
    return rows, False


def _strip_cost(strips: Strips, tags: Tags, compression: int) -> int:
    """Bytes that it takes to decode a strip."""
    pixels = strips.width * strips.rows
    cost = pixels * max(32, strips.bits) // 8
    if compression in (_LZMA, _ZSTD):  # what has been decoded, to copy from
        cost += pixels * strips.bits // 8
    elif compression == _WEBP:
        cost += pixels * _WEBP_BYTES
    if tags.number(_COLOURS, 0) == _YCBCR or compression == _OLD_JPEG:  # once more, as RGB
        cost += 4 * pixels
    if tags.number(_FILL, 1) == 2:  # a copy with the bits turned round
        cost += max(strips.lengths, default=0)
    return cost


class Part(io.RawIOBase):
    """Some bytes of a file, as a file."""

    def __init__(self, file: IO[bytes], start: int, length: int) -> None:
        self._file, self._start, self._length, self._at = file, start, length, 0

    def seekable(self) -> bool:
        """It is."""
        return True

    def readable(self) -> bool:
        """It is."""
        return True

    def seek(self, where: int, whence: int = 0) -> int:
        """Go to a place, from its beginning, from here or from its end."""
        self._at = max(0, where + (0, self._at, self._length)[whence])
        return self._at

    def tell(self) -> int:
        """Where it is read next."""
        return self._at

    def read(self, count: int = -1) -> bytes:
        """So many bytes at most, or all that are left."""
        left = max(0, self._length - self._at)
        self._file.seek(self._start + self._at)
        data = self._file.read(min(count, left) if count >= 0 else left)
        self._at += len(data)
        return data


_CLASSIC, _BIG = ("I", "H", "HHI4s"), ("4xQ", "Q", "HHQ8s")  # place, number and shape of the entries
# Markers of a JPEG that say how large it is, those of images in one scan, and those before its pixels
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_SEQUENTIAL = frozenset({0xC0, 0xC1})
_TABLES = frozenset({0xC4, 0xDB, 0xDD, 0xFE, *range(0xE0, 0xF0)})
