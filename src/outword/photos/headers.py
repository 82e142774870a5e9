"""What an image file will cost, estimated from its header before a pixel is decoded, and what is refused for it.

Few bytes can ask for gigabytes or for minutes. `check_parts` walks the parts that a file is made of, before Pillow
does; `check_proportion` and `check_scans` check what Pillow read of the header; `decoding_cost` says how much memory
it will take to decode the rest.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

from PIL.ImageFile import ImageFile

from outword.errors import ImageError

PARTS = 200_000  # chunks, segments, blocks, strips or tags of a file at most: Pillow goes through them one by one
FEW = 1 << 20  # bytes of the tags of a TIFF that nobody counts
KEPT = 16 << 20  # bytes of a PNG that are not pixels, or of a JPEG before them: Pillow reads them all, and keeps most
MAX_EXIF = 256  # segments of a JPEG with EXIF, which Pillow joins one by one, copying all that it has
MAX_PACKED = 100  # texts and colour profiles of a PNG that are packed: Pillow unpacks each, to up to 1 MiB
MAX_COMMENT = 1 << 20  # bytes of the comments of a GIF, which some versions of Pillow put together one by one
MAX_SCANS = 32  # of a JPEG that is put together from several; those of cameras and the web have at most about ten
MAX_SCANNED = 1 << 31  # pixels times scans of a JPEG: each scan goes over all pixels
MAX_ARITHMETIC = 8 << 20  # pixels times scans of a JPEG in arithmetic coding, which goes on long after its bytes end
MAX_PROGRESSIVE = 128 << 20  # bytes of a JPEG of several scans, which is decoded at some 30 MB a second
LONG = 1 << 16  # pixels a side from which on an image may be all rows, or all one row
FREE = 16 << 20  # pixels that an image may have whatever its bytes; a larger one must have bytes for them
PROPORTION = 500  # bytes of plain pixels that a byte of a larger file may stand for; scans and photos have 2 to 100
MAX_RAW = 800 << 20  # bytes of plain pixels of an image, which are what decoding takes its time for
MAX_RAW_PNG = 400 << 20  # the same of a PNG, which takes twice as long
MAX_SLOW = 2 << 20  # values that Pillow decodes in Python, a million a second: BMP in run lengths, PPM of odd maximum

PIXEL_BYTES = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16L": 2, "I;16B": 2, "I;16N": 2}  # in Pillow's memory; others: 4
_BITS = {"1": 1, "L": 8, "P": 8, "LA": 16, "PA": 16, "RGB": 24, "YCbCr": 24, "LAB": 24}  # in a file; others: by memory
_WHOLE = {"WEBP": 12, "AVIF": 14}  # bytes a pixel that these decoders take besides the result
_PLACE = 8  # bytes of the place of a row
_SLOW = frozenset({"bmp_rle", "ppm", "ppm_plain"})
PNG_PIXELS = frozenset({b"IDAT", b"fdAT"})
_PACKED = frozenset({b"iCCP", b"zTXt", b"iTXt"})
_CHUNK = re.compile(rb"\w{4}")  # what Pillow takes for the name of a chunk
_WINDOW = 1 << 16
_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})  # markers of segments with the size and the components
_PROGRESSIVE = frozenset({0xC2, 0xC6, 0xCA, 0xCE})
_ARITHMETIC = frozenset({0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF})
_END, _SCAN = 0xD9, 0xDA
_EXIF = b"Exif\0\0"
_UNKNOWN = frozenset({0xC8, 0xDE, 0xDF, *range(0xF0, 0xFE)})  # markers at which libjpeg gives up
_MARKER = re.compile(rb"\xff[\xc0-\xcf\xd9-\xfe]")  # that has a length, or is the end; all others have nothing
_COMMENT, _APPLICATION = b"\xfe", b"\xff"  # extensions of a GIF
_HEAD = 8  # bytes of a segment that are read, its length among them
_AGAIN = "open it in a viewer and save it again"


def check_parts(file: IO[bytes], kind: str) -> int:
    """Refuse a file, which is left at its beginning, of too many parts or too much besides pixels.

    `kind` is the name of its format (see `outword.photos.formats`). Returns how many scans a JPEG is put together from;
    0 for one whose pixels come as they are read, and for all else.
    """
    check = _CHECKS.get(kind)
    try:
        return check(file) if check else 0
    except struct.error:
        return 0  # it ends too early, which Pillow will say
    finally:
        file.seek(0)


def check_proportion(image: ImageFile, size: int) -> None:
    """Refuse a canvas that is out of all proportion to the bytes of its file, or would take too long."""
    pixels = image.width * image.height
    most = MAX_RAW_PNG if image.format == "PNG" else MAX_RAW
    check_unpacked(image.width, image.height, pixels * _bits(image) // 8, size, most)
    bands = len(image.getbands())
    if image.tile and image.tile[0][0] in _SLOW and pixels * bands > MAX_SLOW:
        told = f"{image.format} of this kind with {pixels * bands:,} values is over {MAX_SLOW:,}"
        raise ImageError(f"too slow to decode: {told}", hint="save it as PNG first")


def check_unpacked(width: int, height: int, raw: int, size: int, most: int | None = None) -> None:
    """Refuse an image of so many bytes unpacked: too many of them, or too many for the bytes of its file."""
    told = f"{width} x {height} pixels"
    if width * height > FREE and raw > PROPORTION * size:
        told = f"{told} are {raw:,} bytes unpacked, over {PROPORTION} times the {size:,} of the file"
        raise ImageError(f"out of proportion: {told}", hint=_AGAIN)
    most = MAX_RAW if most is None else most
    if raw > most:
        raise ImageError(f"too large: {told} are {raw:,} bytes unpacked, over {most:,}", hint="shrink it first")


def check_scans(image: ImageFile, scans: int) -> None:
    """Refuse a JPEG whose scans take too long."""
    pixels = image.width * image.height
    most = min(MAX_SCANS, max(1, MAX_SCANNED // max(1, pixels)))
    if scans > most:
        told = f"{scans} is over {most} for {image.width} x {image.height} pixels"
        raise ImageError(f"too many scans: {told}", hint=_AGAIN)


def coefficients(image: ImageFile) -> int:
    """Bytes that libjpeg keeps of a JPEG that is put together from scans: two for each value of each component.

    A component has whole blocks of 8 x 8 values, as many as its sampling asks for in both directions.
    """
    layers = [(max(1, h), max(1, v)) for _, h, v, _ in getattr(image, "layer", [])] or [(1, 1)]
    across, down = max(h for h, _ in layers), max(v for _, v in layers)
    kept = 0
    for h, v in layers:
        wide = _up(_up(image.width * h, 8 * across) // (8 * across), h)
        high = _up(_up(image.height * v, 8 * down) // (8 * down), v)
        kept += 128 * wide * high
    return kept


def decoding_cost(image: ImageFile, size: int) -> int:
    """Bytes that Pillow takes to decode an opened image, the result included, given the bytes of its file."""
    pixels = image.width * image.height
    cost = pixels * PIXEL_BYTES.get(image.mode, 4) + rows_cost(image.size)
    working = getattr(image, "working_bytes", 0)  # of readers of ours that hold the file in memory
    if working or image.format in _WHOLE:
        cost += whole_cost(pixels, image.format or "", working, size) - 4 * pixels
    elif image.format == "TIFF" and image.tile[0][0] == "libtiff":
        cost += _strip(image)
        if not getattr(image, "in_memory", False):
            cost += size  # libtiff gets the bytes of the file
    elif len(image.tile) > 1:
        cost += 2 * _strip(image)
    if image.format == "PNG" and max(image.size) > LONG:  # a row, and the one before it
        cost += image.width * _bits(image) // 4
    return cost


def rows_cost(size: tuple[int, int]) -> int:
    """Bytes of a canvas besides its pixels, where it is long, and may be turned: Pillow notes where each row is."""
    return _PLACE * max(size) if max(size) > LONG else 0


def whole_cost(pixels: int, form: str, working: int, size: int) -> int:
    """The same of a file that its reader holds in memory, where a pixel of the result takes four bytes."""
    return 4 * pixels + max(pixels * _WHOLE.get(form.upper(), 0), working) + 2 * size


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


def _up(number: int, step: int) -> int:
    """The first multiple of `step` that is not below `number`."""
    return -(-number // step) * step


def _too_many(what: str) -> ImageError:
    return ImageError(f"too many {what}: over {PARTS:,}", hint=_AGAIN)


def png_chunks(file: IO[bytes]) -> Iterator[tuple[bytes, int, int]]:
    """The chunks of a PNG up to its end, or as far as they are whole: a name, where the data are, and how long."""
    end = file.seek(0, 2)
    place = 8
    for _ in range(PARTS):
        file.seek(place)
        head = file.read(8)
        name = head[4:]
        if name == b"IEND" or not _CHUNK.fullmatch(name):
            return
        length = int.from_bytes(head[:4], "big")
        yield name, place + 8, min(length, end - place - 8)
        place += length + 12
    raise _too_many("chunks")


def _png(file: IO[bytes]) -> int:
    """Pillow reads the pixels in pieces, and all other chunks whole."""
    kept = packed = 0
    for name, _, length in png_chunks(file):
        if name not in PNG_PIXELS:
            kept += length
            check_kept(kept)
        packed += name in _PACKED
        if packed > MAX_PACKED:
            raise ImageError(f"too many texts: over {MAX_PACKED} that may be packed", hint=_AGAIN)
    return 0


def _bmp(file: IO[bytes]) -> int:
    """Pillow reads a header of any length."""
    file.seek(14)
    check_kept(*struct.unpack("<I", file.read(4)))
    return 0


def check_kept(kept: int) -> None:
    """Refuse a file that has so many bytes besides pixels, if they are too many."""
    if kept > KEPT:
        raise ImageError(f"too large: what it has besides pixels is over {KEPT:,} bytes", hint=_AGAIN)


def _gif(file: IO[bytes]) -> int:
    """What Pillow goes through before the first frame."""
    flags = file.read(11)[10:]
    file.seek(13 + (3 << ((flags[0] & 7) + 1) if flags and flags[0] & 128 else 0))
    comments = 0
    for number, length in enumerate(_before_frame(file)):
        comments += length
        if number >= PARTS:
            raise _too_many("blocks")
        if comments > MAX_COMMENT:
            raise ImageError(f"too large: its comments are over {MAX_COMMENT:,} bytes", hint=_AGAIN)
    return 0


def _before_frame(file: IO[bytes]) -> Iterator[int]:
    """The blocks of extensions, and the bytes between, which belong to nothing: how much of a comment each has."""
    while (start := file.read(1)) not in (b"", b",", b";"):
        yield 0
        if start == b"!":
            kind = file.read(1)
            for block in _blocks(file, kind):
                yield len(block) if kind == _COMMENT else 0


def _blocks(file: IO[bytes], kind: bytes) -> Iterator[bytes]:
    """The blocks of an extension, up to an empty one; in all but comments, Pillow goes on where the first is empty."""
    block = _block(file)
    if kind != _COMMENT:
        yield block
        if kind == _APPLICATION and block.startswith(b"NETSCAPE2.0"):
            yield _block(file)
        block = _block(file)
    while block:
        yield block
        block = _block(file)


def _block(file: IO[bytes]) -> bytes:
    length = file.read(1) or b"\0"
    return file.read(length[0])


def tiff_kept(file: IO[bytes]) -> int:
    """Bytes that Pillow takes for the tags of a TIFF, where they are many; it reads them twice to open it.

    Layers of an image editor are among them. The file is left at its beginning.
    """
    try:
        used = _tiff_tags(file)
    except struct.error:
        return 0  # it ends too early, which Pillow will say
    finally:
        file.seek(0)
    return 2 * used if used > FEW else 0


def _tiff(file: IO[bytes]) -> int:
    _tiff_tags(file)
    return 0


def _tiff_tags(file: IO[bytes]) -> int:
    """Bytes of the tags in the first directory: each has a type, and a count of values that may lie anywhere."""
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
    return used


def _jpeg(file: IO[bytes]) -> int:
    """How many scans libjpeg puts an image together from, up to its end; 0 if it gives pixels as it reads them.

    It puts together progressive images, and those whose first scan lacks a component. Of the others it decodes the
    first scan and no more. What is before the first scan Pillow reads, byte by byte where there is no segment.
    """
    scans = 0
    before = _BeforeScans()
    frame = _Frame(0, 0, 0, 0)
    for number, (marker, start, end, head) in enumerate(_segments(file)):
        if number >= PARTS:
            raise _too_many("segments")
        if scans == 0:
            before.add(start, end)
        if marker in _UNKNOWN:
            raise ImageError("damaged image", hint=_AGAIN)
        if scans == 0:
            before.check_content(marker, head)
        if marker in _FRAMES:
            frame = _Frame(marker, *struct.unpack_from(">3xHHB", head))
        elif marker == _SCAN:
            scans += 1
            frame.check(scans)
            if scans == 1 and frame.is_whole(head[2]):
                return 0
        elif marker == _END and scans:
            break  # before a scan it ends a file of tables only, behind which libjpeg looks for the image
    if scans == 0:
        size = file.seek(0, 2)
        before.add(size, size)
    return scans


class _BeforeScans:
    """What a JPEG has before its first scan, up to the end of a segment, and bytes that lie between segments."""

    def __init__(self) -> None:
        self._end = 2
        self._loose = 0
        self._exifs = 0
        self._frames = 0

    def add(self, start: int, end: int) -> None:
        """Add the next segment; `ImageError` where there is too much."""
        self._loose += start - self._end
        self._end = end
        if self._loose > PARTS:
            raise _too_many("bytes between segments")
        check_kept(end)

    def check_content(self, marker: int, head: bytes) -> None:
        """Refuse too many segments of EXIF, and a second frame, at which libjpeg gives up."""
        self._exifs += head[2:] == _EXIF
        if self._exifs > MAX_EXIF:
            raise ImageError(f"too many segments of EXIF: over {MAX_EXIF}", hint=_AGAIN)
        self._frames += marker in _FRAMES
        if self._frames > 1:
            raise ImageError("damaged image", hint=_AGAIN)


class _Frame(NamedTuple):
    """What a JPEG says of its image before the first scan; the marker says how it is coded."""

    marker: int
    height: int
    width: int
    components: int

    def is_whole(self, components: int) -> bool:
        """Whether a scan of so many components is all that libjpeg decodes of the image."""
        return self.marker not in _PROGRESSIVE and components >= self.components

    def check(self, scans: int) -> None:
        """Refuse arithmetic coding of much: a few bytes may stand for any number of values."""
        done = self.width * self.height * scans
        if self.marker in _ARITHMETIC and done > MAX_ARITHMETIC:
            told = f"{done:,} pixels in arithmetic coding, all scans counted, is over {MAX_ARITHMETIC:,}"
            raise ImageError(f"too slow to decode: {told}", hint=_AGAIN)


class _Segment(NamedTuple):
    """A part of a JPEG: its marker, where it starts, where it ends, and what follows the marker."""

    marker: int
    start: int
    end: int
    head: bytes


def _segments(file: IO[bytes]) -> Iterator[_Segment]:
    """The segments of a JPEG as libjpeg finds them, in order.

    A marker is FF, or several, and a byte that is neither 0 nor FF. That is so within the pixels of a scan, too,
    whether libjpeg decodes them to their end or not. Markers up to BF and from D0 to D8 have nothing behind them, and
    are not given; the others have a length, and so many bytes less two, in which no marker counts.
    """
    start = 2
    while True:
        _check_scanned(start)
        file.seek(start)
        window = file.read(_WINDOW)
        last = len(window) < _WINDOW
        place = 0
        while found := _MARKER.search(window, place):
            at = found.end()
            if at + _HEAD > len(window) and not last:
                break
            _check_scanned(start + at)
            head = window[at : at + _HEAD].ljust(_HEAD, b"\0")
            marker = window[at - 1]
            place = at if marker == _END else at + max(2, head[0] << 8 | head[1])
            yield _Segment(marker, start + at - 2, start + place, head)
        if last:
            return
        start += found.start() if found else max(place, len(window) - 1)


def _check_scanned(place: int) -> None:
    if place > MAX_PROGRESSIVE:
        raise ImageError(f"too large: its scans have over {MAX_PROGRESSIVE:,} bytes", hint=_AGAIN)


_SUBFILE, _COLOURS, _SUBFILES, _DNG = 254, 262, 330, 50706  # tags of a TIFF
_OF_SENSORS = frozenset({32803, 34892})  # colours: one a pixel, by its place; or of a sensor, and not corrected
_TIFF_TEXT = frozenset({1, 2, 6, 7})  # types whose values stay bytes; those of others become Python's numbers
_TIFF_BYTES = {3: 2, 4: 4, 5: 8, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}  # of a value, by type
_CHECKS: dict[str, Callable[[IO[bytes]], int]] = {"Jpeg": _jpeg, "Png": _png, "Gif": _gif, "Tiff": _tiff, "Bmp": _bmp}
