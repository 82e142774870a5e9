"""The boxes of ISO files, which HEIC and AVIF are made of: which images are in a file, and what they are made of.

What describes a file is bounded in bytes, and a walk over it in steps: few bytes can name the same tile thousands of
times, or put a box into a box without end.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple, TypeVar

from outword.errors import ImageError
from outword.photos.headers import check_kept

MOST_BYTES = 1 << 20  # of the box that says what is in a file; those of phones have some kilobytes
STEPS = 1 << 16  # boxes, images, references and places that are read of a file; a photo of 700 tiles has some 5,000
SHARED = 16 << 20  # bytes of all streams beyond those of the file: equal tiles may be kept once
NESTED = 8  # images that are made of others that are made of others
AGAIN = "open it in a viewer and save it again"


def damaged(what: str = "") -> ImageError:
    """The error about a file whose boxes contradict each other."""
    return ImageError(f"damaged image: {what}" if what else "damaged image", hint=AGAIN)


Value = TypeVar("Value")
_IMAGES = frozenset({b"hvc1", b"av01", b"grid", b"iovl", b"iden", b"tmap", b"sato", b"jpeg", b"avc1", b"hev1"})


class Boxes:
    """A file of boxes, and how many steps may still be taken in it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._left = STEPS
        self.size = file.seek(0, 2)

    def step(self, count: int = 1) -> None:
        """Count steps; `ImageError` where there were too many."""
        self._left -= count
        if self._left < 0:
            raise ImageError(f"too many boxes: over {STEPS:,} parts", hint=AGAIN)

    def read(self, at: int, count: int) -> bytes:
        """Bytes of the file; fewer where it ends."""
        self._file.seek(min(at, self.size))
        return self._file.read(count)

    def top(self, *names: bytes) -> dict[bytes, bytes]:
        """What the boxes of these names have that lie in no other; `ImageError` for one that is there twice.

        What follows the last box is left alone: some cameras put something of their own there.
        """
        found: dict[bytes, bytes] = {}
        at = 0
        while at < self.size:
            self.step()
            try:
                name, head, length = _head(self.read(at, 16), self.size - at)
            except struct.error:
                break
            if name in names:
                self._check_top(at, length)
                if name in found:
                    raise damaged("two boxes describe what is in it")
                found[name] = self.read(at + head, length - head)
            at += length
        return found

    def _check_top(self, at: int, length: int) -> None:
        if at + length > self.size:
            raise EOFError
        if length > MOST_BYTES:
            many = f"the box that describes its images has {length:,} bytes, over {MOST_BYTES:,}"
            raise ImageError(f"too large: {many}", hint=AGAIN)

    def inside(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The boxes that follow one another in a box, by name, and what they have."""
        at = 0
        while at < len(data):
            self.step()
            try:
                name, head, length = _head(data[at : at + 16], len(data) - at)
            except struct.error:
                raise damaged() from None
            if at + length > len(data):
                raise damaged()
            yield name, data[at + head : at + length]
            at += length

    def once(self, data: bytes, *names: bytes) -> dict[bytes, bytes]:
        """What the boxes in a box have, by name; those of `names` are there once at most."""
        found: dict[bytes, bytes] = {}
        for name, body in self.inside(data):
            if name in found and name in names:
                raise damaged()
            found[name] = body
        return found

    def at(self, data: bytes, *path: bytes) -> list[bytes]:
        """What the boxes have that lie at a path of names."""
        found = [data]
        for wanted in path:
            found = [body for one in found for name, body in self.inside(one) if name == wanted]
        return found


class Place(NamedTuple):
    """Where a stream lies."""

    within: bool  # the box "idat", not the file
    extents: list[tuple[int, int]]  # where its pieces begin, and how long they are


@dataclass
class Items:
    """The images in a file, by number: which are the main ones, what they have, and what they are made of."""

    main: list[int] = field(default_factory=list)
    sizes: dict[int, tuple[int, int]] = field(default_factory=dict)  # the largest that each has, before it is cropped
    crops: dict[int, int] = field(default_factory=dict)  # pixels that are cut out; a liar cuts out more than there are
    configs: dict[int, list[bytes]] = field(default_factory=lambda: defaultdict(list))  # "av1C"
    parts: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))  # tiles, layers, masks
    about: Counter[int] = field(default_factory=Counter)  # how many images each is about: EXIF, XMP
    colours: Counter[int] = field(default_factory=Counter)  # bytes of the colour profiles of each
    masks: set[int] = field(default_factory=set)  # images that are masks of others
    named: set[int] = field(default_factory=set)  # all that anything is said of

    @classmethod
    def of(cls, boxes: Boxes, meta: bytes) -> Items:
        """What the box "meta" says; `struct.error` where it ends too early."""
        found = cls()
        for name, body in boxes.inside(meta[4:]):
            if name == b"pitm":
                found.main.append(number(body, 4, wide=body[0] > 0))
            elif name == b"iref":
                found._take_references(boxes, body)
            elif name == b"iprp":
                found._take_properties(boxes, body)
        return found

    def _take_references(self, boxes: Boxes, body: bytes) -> None:
        """Which images are made of which, and which are masks of others."""
        wide = body[0] > 0
        step = 4 if wide else 2
        for name, reference in boxes.inside(body[4:]):
            one, count = number(reference, 0, wide), number(reference, step, wide=False)
            boxes.step(count)
            if len(reference) != 2 + step * (1 + count):  # libavif follows the count, libheif the length
                raise damaged()
            others = [number(reference, step + 2 + step * place, wide) for place in range(count)]
            self.named.update([one, *others])
            if name == b"dimg":
                self.parts[one] += others
            elif name == b"cdsc":
                self.about[one] += count
            elif name == b"auxl":
                self.masks.add(one)
                for other in others:
                    self.parts[other].append(one)

    def _take_properties(self, boxes: Boxes, body: bytes) -> None:
        """The properties, which are in a list, and which image has which place of it."""
        (listed,) = boxes.at(body, b"ipco")
        properties = list(boxes.inside(listed))
        for owned in boxes.at(body, b"ipma"):
            for image, place in _owned(boxes, owned):
                if 0 < place <= len(properties):
                    self._take_property(image, *properties[place - 1])

    def _take_property(self, image: int, name: bytes, body: bytes) -> None:
        self.named.add(image)
        if name == b"ispe":
            width, height = struct.unpack_from(">II", body, 4)
            self.sizes[image] = max(self.sizes.get(image, (0, 0)), (width, height), key=_area)
        elif name == b"clap":
            across, parts_across, down, parts_down = struct.unpack_from(">4I", body)
            area = -(-across // max(1, parts_across)) * -(-down // max(1, parts_down))
            self.crops[image] = max(self.crops.get(image, 0), area)
        elif name == b"colr":
            self.colours[image] += len(body)
        elif name == b"av1C":
            self.configs[image].append(body)

    def check_kept(self, boxes: Boxes, kinds: dict[int, bytes], places: dict[int, Place]) -> int:
        """Refuse streams that come to more than the file, and much besides pixels; returns the bytes of all streams.

        What is about several images is read once for each of them, and so are profiles, but for those of tiles.
        """
        lengths = {one: length_of(place.extents) for one, place in places.items()}
        total = sum(lengths.values())
        if total > boxes.size + SHARED:
            raise damaged(f"its streams come to {total:,} bytes, the file to {boxes.size:,}")
        tiles = {one for parts in self.parts.values() for one in parts}
        kept = sum(count for one, count in self.colours.items() if one not in tiles)
        others = [one for one in lengths if self.about[one] or kinds.get(one) not in _IMAGES]
        check_kept(kept + sum(lengths[one] * max(1, self.about[one]) for one in others))
        return total

    def size(self) -> tuple[int, int]:
        """Width and height of the main image, the largest of them where there are several."""
        sizes = [self.sizes.get(image, (0, 0)) for image in self.main]
        return max(sizes, key=_area, default=(0, 0))

    def pixels(self, image: int) -> int:
        """How many pixels an image has, as it says itself."""
        return max(_area(self.sizes.get(image, (0, 0))), self.crops.get(image, 0))

    def total(self, each: Callable[[int], int]) -> int:
        """The sum of `each` over the main image and all that it is made of, as often as it is made of it."""
        known: dict[int, int] = {}
        return sum(self._total(image, each, known, NESTED) for image in self.main)

    def _total(self, image: int, each: Callable[[int], int], known: dict[int, int], depth: int) -> int:
        if depth == 0:
            raise damaged("it is made of itself, or nested too deeply")
        if image not in known:
            parts = sum(self._total(part, each, known, depth - 1) for part in self.parts.get(image, ()))
            known[image] = each(image) + parts
        return known[image]


def number(data: bytes, at: int, wide: bool) -> int:
    """The number of an image, of four bytes or two."""
    found: Any = struct.unpack_from(">I" if wide else ">H", data, at)[0]
    return int(found)


def kinds_of(boxes: Boxes, body: bytes) -> Iterator[tuple[int, bytes]]:
    """The number of each image, or of what else lies in a file, and its kind."""
    for name, entry in boxes.inside(body[6 if body[:1] == b"\0" else 8 :]):
        if name == b"infe":
            wide = entry[0] > 2
            yield number(entry, 4, wide), entry[10:14] if wide else entry[8:12]


def places_of(boxes: Boxes, body: bytes) -> Iterator[tuple[int, Place]]:
    """The number of each image, and where it lies."""
    if not body:
        return
    version, sizes = body[0], body[4:6]
    if version > 2 or len(sizes) < 2:
        raise damaged()
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
        yield image, Place(within, extents)


class _Cursor:
    """Numbers that follow one another."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def take(self, count: int) -> int:
        """A number of so many bytes."""
        if self._at + count > len(self._data):
            raise damaged()
        self._at += count
        return int.from_bytes(self._data[self._at - count : self._at], "big")


def length_of(extents: list[tuple[int, int]]) -> int:
    """Bytes of the pieces of a stream, all together."""
    return sum(length for _, length in extents)


def unique(pairs: Iterable[tuple[int, Value]]) -> dict[int, Value]:
    """What is said of each image; `ImageError` where it is said twice, since readers differ in which counts."""
    found: dict[int, Value] = {}
    for one, value in pairs:
        if one in found:
            raise damaged("it says twice what an image is")
        found[one] = value
    return found


def _owned(boxes: Boxes, body: bytes) -> Iterator[tuple[int, int]]:
    """Images, and the places of the properties that they have, from 1 on."""
    wide = body[0] > 0
    step = 2 if body[3] & 1 else 1
    (images,) = struct.unpack_from(">I", body, 4)
    at = 8
    for _ in range(images):
        image, count = number(body, at, wide), body[at + (4 if wide else 2)]
        boxes.step(1 + count)
        at += 5 if wide else 3
        for place in range(at, at + step * count, step):
            yield image, body[place] & 127 if step == 1 else number(body, place, wide=False) & 0x7FFF
        at += step * count


def _area(size: tuple[int, int]) -> int:
    return size[0] * size[1]


def _head(start: bytes, rest: int) -> tuple[bytes, int, int]:
    """The name of a box, how long its head is, and how long all of it; there is so much left for it."""
    size, name = struct.unpack_from(">I4s", start)
    head = 8
    if size == 1:
        (size,) = struct.unpack_from(">Q", start, 8)
        head = 16
    size = size or rest
    if size < head:
        raise struct.error("a box is shorter than its head")
    return name, head, size
