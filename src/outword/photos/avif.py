"""What an AVIF will take, told from its boxes and from the headers of its streams, before it is read whole.

libavif decodes a frame in the size that its stream says, whatever the boxes say, and scales it afterwards: so both
sizes count. The same holds for tiles, for masks, and for the first frame of an animation.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import IO, NamedTuple

from outword.errors import ImageError
from outword.photos import av1
from outword.photos.av1 import Frames
from outword.photos.boxes import AGAIN, Boxes, Items, number
from outword.photos.headers import PARTS
from outword.photos.plan import Plan, check_made_of

_AROUND = 1.5  # bytes that a decoder takes for each byte of its frames
_RESULT = 8  # bytes a pixel that the result takes on its way to Pillow
_MOST_ITEMS = 10_000  # libavif seeks each among all of them
_MOST_RUNS = 100 * PARTS  # chunks of an animation times runs of them, which libavif seeks likewise
_TRACK = (b"mdia", b"minf", b"stbl")  # where a track says where its frames are
_SAMPLE = 78  # bytes of a sample's description before its boxes


class Track(NamedTuple):
    """A film, or the mask of one: the size that it says, and its first frame."""

    width: int
    height: int
    config: bytes
    first: list[tuple[int, int]]


def plan(file: IO[bytes]) -> Plan:
    """The size of the image that libavif gives, and what its frames take."""
    boxes = Boxes(file)
    top = boxes.top(b"ftyp", b"meta", b"moov")
    brand = top.get(b"ftyp", b"")[:4]
    if b"moov" in top:
        tracks = [_track(boxes, body) for body in boxes.at(top[b"moov"], b"trak")]
        films = [track for track in tracks if track is not None]
        if brand == b"avis" or (films and brand != b"avif"):
            return _plan_of_tracks(boxes, films)
    if b"meta" not in top:
        raise ImageError("damaged image", hint=AGAIN)
    return _plan_of_items(boxes, top[b"meta"])


def _plan_of_items(boxes: Boxes, meta: bytes) -> Plan:
    items = Items.of(boxes, meta)
    streams = _Streams(boxes, meta, items)
    _add_derived(items)
    pixels = items.total(lambda image: max(items.pixels(image), streams.frames(image).pixels))
    size = items.total(lambda image: streams.frames(image).bytes)
    return _plan(items.size(), pixels, size, clear=bool(items.masks))


def _plan_of_tracks(boxes: Boxes, tracks: list[Track]) -> Plan:
    pixels = size = 0
    for track in tracks:
        frames = av1.frames_of(_reader(boxes, track.first), _length(track.first), boxes.step, track.config)
        pixels += max(frames.pixels, track.width * track.height)
        size += frames.bytes
    sizes = [(track.width, track.height) for track in tracks]
    return _plan(max(sizes, default=(0, 0)), pixels, size, clear=len(tracks) > 1)


def _plan(size: tuple[int, int], pixels: int, frame_bytes: int, *, clear: bool) -> Plan:
    check_made_of(size, pixels)
    return Plan(*size, clear, working=int(_AROUND * frame_bytes) + _RESULT * size[0] * size[1])


def _add_derived(items: Items) -> None:
    """Count as parts of the main images those of which others are made together with them, which libavif may prefer."""
    main = set(items.main)
    for one, others in list(items.parts.items()):
        if one not in main and main.intersection(others):
            extra = [other for other in others if other not in main]
            items.parts[items.main[0]] += extra


class _Streams:
    """The streams of the images in a file."""

    def __init__(self, boxes: Boxes, meta: bytes, items: Items) -> None:
        self._boxes, self._items = boxes, items
        found: dict[bytes, bytes] = {}
        for name, body in boxes.inside(meta[4:]):
            if name in found and name in (b"iloc", b"iinf", b"idat", b"pitm", b"iprp"):
                raise ImageError("damaged image", hint=AGAIN)
            found[name] = body
        self._data = found.get(b"idat", b"")
        self._coded = _coded(boxes, found.get(b"iinf", b""))
        self._places = dict(_places(boxes, found.get(b"iloc", b"")))
        if len({*self._coded, *self._places, *items.sizes}) > _MOST_ITEMS:
            raise ImageError(f"too many images in it: over {_MOST_ITEMS:,}", hint=AGAIN)
        self._known: dict[int, Frames] = {}

    def frames(self, image: int) -> Frames:
        """The frames of one image; none where it is made of others."""
        if image not in self._coded or image not in self._places:
            return Frames()
        if image not in self._known:
            within, extents = self._places[image]
            read = _reader(self._boxes, extents, self._data if within else None)
            config = max((found[4:] for found in self._items.configs.get(image, ())), key=len, default=b"")
            self._known[image] = av1.frames_of(read, _length(extents), self._boxes.step, config)
        return self._known[image]


def _coded(boxes: Boxes, body: bytes) -> set[int]:
    """The numbers of the images that are streams."""
    found = set[int]()
    for name, entry in boxes.inside(body[6 if body[:1] == b"\0" else 8 :]):
        if name == b"infe" and entry[0] >= 2:
            wide = entry[0] > 2
            kind = entry[10:14] if wide else entry[8:12]
            if kind == b"av01":
                found.add(number(entry, 4, wide))
    return found


def _places(boxes: Boxes, body: bytes) -> Iterator[tuple[int, tuple[bool, list[tuple[int, int]]]]]:
    """The number of each image, whether it lies within the box "idat", and where its pieces begin and how long they are."""
    if not body:
        return
    version, sizes = body[0], body[4:6]
    if version > 2 or len(sizes) < 2:
        raise struct.error("places of an unknown kind")
    of_offset, of_length, of_base = sizes[0] >> 4, sizes[0] & 15, sizes[1] >> 4
    of_index = sizes[1] & 15 if version else 0
    cursor = _Cursor(body, 6)
    for _ in range(cursor.take(4 if version == 2 else 2)):
        image = cursor.take(4 if version == 2 else 2)
        within = bool(version) and cursor.take(2) & 15 == 1
        cursor.take(2)
        base, count = cursor.take(of_base), cursor.take(2)
        boxes.step(1 + count)
        extents = []
        for _ in range(count):
            cursor.take(of_index)
            start = base + cursor.take(of_offset)
            length = cursor.take(of_length)
            extents.append((start, length or max(0, boxes.size - start)))
        yield image, (within, extents)


class _Cursor:
    """Numbers that follow one another."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def take(self, count: int) -> int:
        """A number of so many bytes."""
        if self._at + count > len(self._data):
            raise struct.error("a box ends too early")
        self._at += count
        return int.from_bytes(self._data[self._at - count : self._at], "big")


def _length(extents: list[tuple[int, int]]) -> int:
    return sum(length for _, length in extents)


def _reader(boxes: Boxes, extents: list[tuple[int, int]], data: bytes | None = None) -> av1.Read:
    """How to read a stream that lies in pieces, in the file or in `data`."""

    def read(at: int, count: int) -> bytes:
        boxes.step(len(extents))
        found = b""
        for start, length in extents:
            if 0 <= at < length:
                place, most = start + at, min(count - len(found), length - at)
                found += boxes.read(place, most) if data is None else data[place : place + most]
            at = at - length if at >= length else 0
            if len(found) >= count:
                break
        return found

    return read


def _track(boxes: Boxes, body: bytes) -> Track | None:
    """A track of AV1; None for another."""
    width = height = 0
    for head in boxes.at(body, b"tkhd"):
        width, height = (side >> 16 for side in struct.unpack_from(">II", head, 88 if head[0] else 76))
    tables = [dict(boxes.inside(table)) for table in boxes.at(body, *_TRACK)]
    if len(tables) != 1:
        return None
    described = dict(boxes.inside(tables[0].get(b"stsd", b"")[8:]))
    if b"av01" not in described:
        return None
    config = dict(boxes.inside(described[b"av01"][_SAMPLE:])).get(b"av1C", b"")[4:]
    return Track(width, height, config, _first(boxes, tables[0]))


def _first(boxes: Boxes, table: dict[bytes, bytes]) -> list[tuple[int, int]]:
    """Where the first frame lies; `ImageError` where there are very many."""
    wide = b"co64" in table
    chunks = table.get(b"co64", table.get(b"stco", b""))
    runs, sizes = table.get(b"stsc", b""), table.get(b"stsz", b"")
    size, _ = struct.unpack_from(">II", sizes, 4)
    if not size:
        (size,) = struct.unpack_from(">I", sizes, 12)
    (start,) = struct.unpack_from(">Q" if wide else ">I", chunks, 8)
    many, of_runs = (number(body, 4, wide=True) for body in (chunks, runs))
    boxes.step(of_runs)
    each = max((number(runs, 12 + 12 * run, wide=True) for run in range(of_runs)), default=0)
    if many * of_runs > _MOST_RUNS or many * each > PARTS:
        raise ImageError(f"too many frames: over {PARTS:,}", hint=AGAIN)
    return [(start, size)]
