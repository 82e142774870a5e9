"""What an image file will cost, told from its header before a pixel is decoded, and what is refused for it.

Few bytes can ask for gigabytes or for minutes. `check_parts` walks the parts that a file is made of, before Pillow
does; `check_proportion` and `check_scans` look at what Pillow read of the header; `decoding_cost` says how much memory
it will take to decode the rest.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from typing import IO

from PIL.ImageFile import ImageFile

from outword.errors import ImageError

PARTS = 200_000  # chunks, segments, blocks, strips or tags of a file at most: Pillow goes through them one by one
MAX_SCANS = 32  # of a JPEG; those of cameras and the web have at most about ten
MAX_SCANNED = 1 << 31  # pixels times scans of a JPEG: each scan goes over all pixels
MAX_PROGRESSIVE = 128 << 20  # bytes of a JPEG of several scans, which is decoded at some 30 MB a second
FREE = 16 << 20  # pixels that an image may have whatever its bytes; a larger one must have bytes for them
PROPORTION = 500  # bytes of plain pixels that a byte of a larger file may stand for; scans and photos have 2 to 100
MAX_RAW = 800 << 20  # bytes of plain pixels of an image, which are what decoding takes its time for
MAX_RAW_PNG = 400 << 20  # the same of a PNG, which takes twice as long
MAX_SLOW = 2 << 20  # values that Pillow decodes in Python, a million a second: BMP in run lengths, PPM of odd maximum

PIXEL_BYTES = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16L": 2, "I;16B": 2, "I;16N": 2}  # in Pillow's memory; others: 4
_BITS = {"1": 1, "L": 8, "P": 8, "LA": 16, "PA": 16, "RGB": 24, "YCbCr": 24, "LAB": 24}  # in a file; others: by memory
_WHOLE = {"WEBP": 12, "AVIF": 14}  # bytes a pixel that these decoders take besides the result
_SLOW = frozenset({"bmp_rle", "ppm", "ppm_plain"})
_WINDOW = 1 << 16
_SCAN = 0xDA
_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]", re.DOTALL)
_AGAIN = "open it in a viewer and save it again"


def check_parts(file: IO[bytes], kind: str) -> int:
    """Refuse a file, which is left at its beginning, of too many parts; returns how many scans it has, if a JPEG, or 0.

    `kind` is the name of its format (see `outword.photos.formats`).
    """
    look = _LOOKS.get(kind)
    try:
        return look(file) if look else 0
    except struct.error:
        return 0  # it ends too early, which Pillow will say
    finally:
        file.seek(0)


def check_proportion(image: ImageFile, size: int) -> None:
    """Refuse a canvas that is out of all proportion to the bytes of its file, or would take too long."""
    pixels = image.width * image.height
    raw = pixels * _bits(image) // 8
    told = f"{image.width} x {image.height} pixels"
    if pixels > FREE and raw > PROPORTION * size:
        told = f"{told} are {raw:,} bytes unpacked, over {PROPORTION} times the {size:,} of the file"
        raise ImageError(f"out of proportion: {told}", hint=_AGAIN)
    if raw > (most := MAX_RAW_PNG if image.format == "PNG" else MAX_RAW):
        raise ImageError(f"too large: {told} are {raw:,} bytes unpacked, over {most:,}", hint="shrink it first")
    bands = len(image.getbands())
    if image.tile and image.tile[0][0] in _SLOW and pixels * bands > MAX_SLOW:
        told = f"{image.format} of this kind with {pixels * bands:,} values is over {MAX_SLOW:,}"
        raise ImageError(f"too slow to decode: {told}", hint="save it as PNG first")


def check_scans(image: ImageFile, scans: int, size: int) -> None:
    """Refuse a JPEG whose scans take too long."""
    pixels = image.width * image.height
    most = min(MAX_SCANS, max(1, MAX_SCANNED // max(1, pixels)))
    if scans > most:
        told = f"{scans} is over {most} for {image.width} x {image.height} pixels"
        raise ImageError(f"too many scans: {told}", hint=_AGAIN)
    if scans > 1 and size > MAX_PROGRESSIVE:
        raise ImageError(f"too large: {size:,} bytes in several scans is over {MAX_PROGRESSIVE:,}", hint=_AGAIN)


def coefficients(image: ImageFile) -> int:
    """Bytes that libjpeg keeps of a JPEG of several scans: two for each value of each component."""
    layers = [(int(h), int(v)) for _, h, v, _ in getattr(image, "layer", [])] or [(1, 1)]
    most = max(h for h, _ in layers) * max(v for _, v in layers)
    return 2 * image.width * image.height * sum(h * v for h, v in layers) // max(1, most)


def decoding_cost(image: ImageFile, size: int) -> int:
    """Bytes that Pillow takes to decode an opened image, the result included, given the bytes of its file."""
    pixels = image.width * image.height
    cost = pixels * (PIXEL_BYTES.get(image.mode, 4) + _WHOLE.get(image.format or "", 0))
    if image.format == "TIFF" and image.tile[0][0] == "libtiff":
        cost += size + _strip(image)  # libtiff gets the file in memory
    elif len(image.tile) > 1:
        cost += 2 * _strip(image)
    elif image.format in _WHOLE:
        cost += 2 * size
    if working := getattr(image, "working_bytes", 0):  # of readers of ours that hold the file in memory
        cost += working + 2 * size
    return cost


def is_raw(file: IO[bytes]) -> bool:
    """Whether a TIFF, which is left at its beginning, is the RAW file of a camera.

    It is a DNG, its first image is what a sensor saw, or that is a preview of others that lie elsewhere.
    """
    try:
        order = "<" if file.read(2) == b"II" else ">"
        magic, where = struct.unpack(order + "HI", file.read(6))
        file.seek(where)
        (tags,) = struct.unpack(order + "H", file.read(2))
        found = file.read(12 * tags)
        entry, short = struct.Struct(order + "HHI4s"), struct.Struct(order + "H")
        values = {
            tag: short.unpack_from(value)[0] if kind == 3 else struct.unpack(order + "I", value)[0]
            for tag, kind, _, value in entry.iter_unpack(found[: len(found) // 12 * 12])
        }
    except struct.error:
        return False  # it ends too early, which its reader will say
    finally:
        file.seek(0)
    preview = values.get(_SUBFILE, 0) & 1 and _SUBFILES in values
    return magic == 42 and (_DNG in values or values.get(_COLOURS) in _OF_SENSORS or bool(preview))


def _bits(image: ImageFile) -> int:
    """Bits of a pixel in the file."""
    bits = _BITS.get(image.mode, 8 * PIXEL_BYTES.get(image.mode, 4))
    packed = str(image.tile[0][3]) if image.tile else ""
    return 2 * bits if ";16" in packed and not image.mode.startswith("I") else bits


def long_row(image: ImageFile) -> int:
    """Bytes of a row in the file, where it is not compressed and longer than what Pillow reads at a time; else 0."""
    if not image.tile or image.tile[0][0] != "raw":
        return 0
    row = image.width * _bits(image) // 8
    return row if row > image.decodermaxblock else 0


def _strip(image: ImageFile) -> int:
    """Bytes that libtiff takes to decode a strip or a tile: as our reader has reckoned, else of its pixels."""
    if reckoned := getattr(image, "strip_cost", 0):
        return int(reckoned)
    tags = getattr(image, "tag_v2", {})
    width, rows = tags.get(322, image.width), tags.get(323, tags.get(278, image.height))
    area = min(width, 2 * image.width) * min(rows, 2 * image.height)
    return int(area) * max(32, _bits(image)) // 8


def _too_many(what: str) -> ImageError:
    return ImageError(f"too many {what}: over {PARTS:,}", hint=_AGAIN)


def _png(file: IO[bytes]) -> int:
    """Chunks: a length, a name, the data, a checksum."""
    file.seek(8)
    for _ in range(PARTS):
        length, name = struct.unpack(">I4s", file.read(8))
        if name == b"IEND":
            return 0
        file.seek(length + 4, 1)
    raise _too_many("chunks")


def _gif(file: IO[bytes]) -> int:
    """Extensions before the first frame, each of blocks that begin with their length and end with an empty one."""
    flags = file.read(11)[10:]
    file.seek(13 + (3 << ((flags[0] & 7) + 1) if flags and flags[0] & 128 else 0))
    blocks = 0
    while file.read(1) == b"!":
        file.seek(1, 1)
        while length := file.read(1) + b"\0":
            blocks += 1
            if blocks > PARTS:
                raise _too_many("blocks")
            if length[0] == 0:
                break
            file.seek(length[0], 1)
    return 0


def _tiff(file: IO[bytes]) -> int:
    """The tags of the first directory: each has a number, a type, and a count of values that may lie anywhere."""
    order = "<" if file.read(2) == b"II" else ">"
    big = file.read(2) in (b"+\0", b"\0+")
    where, count, entry = (struct.Struct(order + code) for code in ("4xQ Q HHQ8x" if big else "I H HHI4x").split())
    file.seek(where.unpack(file.read(where.size))[0])
    (tags,) = count.unpack(file.read(count.size))
    if tags > PARTS:
        raise _too_many("tags")
    found = file.read(tags * entry.size)
    used = 0
    for _, kind, values in entry.iter_unpack(found[: len(found) // entry.size * entry.size]):
        used += values * _TIFF_BYTES.get(kind, 1)
        if values > PARTS and kind not in _TIFF_TEXT:
            raise _too_many("values of a tag")
    if used > file.seek(0, 2) + _WINDOW:  # they lie over each other, and Pillow reads them all
        raise ImageError(f"damaged image: its tags come to {used:,} bytes, more than the file has", hint=_AGAIN)
    return 0


def _jpeg(file: IO[bytes]) -> int:
    """Count the scans of a JPEG, up to its end; cameras put thumbnails before that, and films after it."""
    scans = 0
    for number, marker in enumerate(_markers(file)):
        scans += marker == _SCAN
        if number >= PARTS:
            raise _too_many("segments")
        if marker == 0xD9:
            break
    return scans


def _markers(file: IO[bytes]) -> Iterator[int]:
    """The markers of a JPEG, in order.

    A marker is FF and a byte; most have the length of what follows behind them. After that, within the pixels of a
    scan, FF only comes before 00 and D0 to D7.
    """
    start, window = 2, b""  # where the window begins in the file
    place = 0  # where to go on within it
    while True:
        found = _MARKER.search(window, place)
        if found and found.end() + 2 <= len(window):
            yield window[found.end() - 1]
            place = found.end() + int.from_bytes(window[found.end() : found.end() + 2], "big")
            if place < len(window):
                continue
        else:
            place = found.start() if found else max(place, len(window) - 1)
        start += place
        file.seek(start)
        place, window = 0, file.read(_WINDOW)
        if len(window) < 4:
            return


_SUBFILE, _COLOURS, _SUBFILES, _DNG = 254, 262, 330, 50706  # tags of a TIFF
_OF_SENSORS = frozenset({32803, 34892})  # colours: one a pixel, by its place; or of a sensor, and not corrected
_TIFF_TEXT = frozenset({1, 2, 6, 7})  # types whose values stay bytes; those of others become Python's numbers
_TIFF_BYTES = {3: 2, 4: 4, 5: 8, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}  # of a value, by type
_LOOKS: dict[str, Callable[[IO[bytes]], int]] = {"Jpeg": _jpeg, "Png": _png, "Gif": _gif, "Tiff": _tiff}
