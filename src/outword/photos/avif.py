"""The memory that an AVIF will take, estimated from its boxes and the headers of its streams, before it is read whole.

libavif decodes a frame in the size that its stream says, whatever the boxes say, and scales it afterwards: so both
sizes count. The same holds for tiles, for masks, and for the first frame of an animation.
"""

from __future__ import annotations

import struct
from typing import IO, NamedTuple

from outword.errors import ImageError
from outword.photos import av1
from outword.photos.av1 import Frames
from outword.photos.boxes import AGAIN, Boxes, Items, damaged, kinds_of, length_of, number, places_of, unique
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
    """The size of the image that libavif gives, and what its frames take.

    Of an animation and a photo in one file, the first brand says which one counts; where it does not, both do here.
    """
    boxes = Boxes(file)
    top = boxes.top(b"ftyp", b"meta", b"moov")
    brand = top.get(b"ftyp", b"")[:4]
    images = _Images(boxes, top[b"meta"]) if b"meta" in top else None
    plans = []
    if b"moov" in top and brand != b"avif":
        plans.append(_plan_of_tracks(boxes, top[b"moov"]))
    if images and brand != b"avis":
        plans.append(_plan_of_images(images))
    if not plans:
        raise damaged()
    largest = max(plans, key=lambda found: found.width * found.height)
    clear = any(found.clear for found in plans)
    return largest._replace(clear=clear, working=max(found.working for found in plans))


def _plan_of_images(images: _Images) -> Plan:
    items = images.items
    images.add_derived()
    pixels = items.total(lambda image: max(items.pixels(image), images.frames(image).pixels))
    size = items.total(lambda image: images.frames(image).bytes)
    return _plan(items.size(), pixels, size, clear=bool(items.masks))


def _plan_of_tracks(boxes: Boxes, movie: bytes) -> Plan:
    found = [_track(boxes, body) for body in boxes.at(movie, b"trak")]
    tracks = [track for track in found if track is not None]
    pixels = size = 0
    for track in tracks:
        frames = av1.frames_of(_reader(boxes, track.first), length_of(track.first), boxes.step, track.config)
        pixels += max(frames.pixels, track.width * track.height)
        size += frames.bytes
    sizes = [(track.width, track.height) for track in tracks]
    return _plan(max(sizes, default=(0, 0)), pixels, size, clear=len(tracks) > 1)


def _plan(size: tuple[int, int], pixels: int, frame_bytes: int, *, clear: bool) -> Plan:
    check_made_of(size, pixels)
    return Plan(*size, clear, working=int(_AROUND * frame_bytes) + _RESULT * size[0] * size[1])


class _Images:
    """The images in a file and their streams, as a box "meta" describes them; `ImageError` for very many."""

    def __init__(self, boxes: Boxes, meta: bytes) -> None:
        self._boxes, self.items = boxes, Items.of(boxes, meta)
        found = boxes.once(meta[4:], b"pitm", b"iinf", b"iloc", b"iprp", b"idat")
        self._data = found.get(b"idat", b"")
        self._kinds = unique(kinds_of(boxes, found.get(b"iinf", b"")))
        self._places = unique(places_of(boxes, found.get(b"iloc", b"")))
        if len(self.items.named | {*self._kinds, *self._places}) > _MOST_ITEMS:
            raise ImageError(f"too many images: over {_MOST_ITEMS:,}", hint=AGAIN)
        self.items.check_kept(boxes, self._kinds, self._places)
        self._known: dict[int, Frames] = {}

    def add_derived(self) -> None:
        """Count as parts of a main image what libavif takes to give it more bits."""
        main, parts = set(self.items.main), self.items.parts
        for one, others in list(parts.items()):
            if self._kinds.get(one) == b"sato" and main.intersection(others):
                parts[self.items.main[0]] += [other for other in others if other not in main]

    def frames(self, image: int) -> Frames:
        """The frames of one image; none where it is made of others."""
        if self._kinds.get(image) != b"av01" or image not in self._places:
            return Frames()
        if image not in self._known:
            place = self._places[image]
            read = _reader(self._boxes, place.extents, self._data if place.within else None)
            configs = [found[4:] for found in self.items.configs.get(image, ())]
            config = max(configs, key=len, default=b"")
            self._known[image] = av1.frames_of(read, length_of(place.extents), self._boxes.step, config)
        return self._known[image]


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
    for meta in boxes.at(body, b"meta"):
        _Images(boxes, meta)
    tables = boxes.at(body, *_TRACK)
    if len(tables) > 1:
        raise damaged()
    if not tables:
        return None
    table = boxes.once(tables[0], b"stsd", b"stsz", b"stsc", b"stco", b"co64")
    described = boxes.once(table.get(b"stsd", b"")[8:])
    if b"av01" not in described:
        return None
    if b"stco" in table and b"co64" in table:
        raise damaged()
    config = boxes.once(described[b"av01"][_SAMPLE:]).get(b"av1C", b"")[4:]
    return Track(width, height, config, _first(boxes, table))


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
