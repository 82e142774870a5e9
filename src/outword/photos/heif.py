"""HEIC, by pillow-heif, which is an extra: a module of its own, since few need it.

A file is made of boxes, and an image may be made of others: a grid of tiles, an overlay, with a mask beside it. Few
bytes can name the same tile thousands of times, so what would be decoded is reckoned from the boxes first. That the
sizes in them are true, libheif sees to, which decodes no image larger than it says.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from PIL.ImageFile import ImageFile

from outword.base.extras import require
from outword.errors import ImageError
from outword.photos.headers import FREE, PARTS

MOST_META = 16 << 20  # bytes of the boxes that tell what is in a file; those of phones have some kilobytes
_BYTES = 10  # that decoding takes for each pixel, besides the result
_WIDER = 4  # times the pixels of an image that its tiles and its mask may have
_NESTED = 8  # images that are made of others that are made of others
_AGAIN = "open it in a viewer and save it again"


def open_heif(file: IO[bytes]) -> ImageFile:
    """The main image of a file, whose pixels are still to be decoded; libheif turns it as it is to be turned."""
    decoded = _Items.of(_meta(file)).decoded()
    file.seek(0)
    image: ImageFile = require("pillow_heif").HeifImageFile(file)
    pixels = image.width * image.height
    if decoded > _WIDER * pixels + FREE:
        told = f"{image.width} x {image.height} pixels are made of {decoded:,}"
        raise ImageError(f"out of proportion: {told}", hint=_AGAIN)
    image.working_bytes = _BYTES * max(decoded, pixels)  # type: ignore[attr-defined]
    return image


class _Items(NamedTuple):
    """The images in a file, by number: which are the main ones, their pixels, and what they are made of."""

    main: list[int]
    pixels: dict[int, int]
    parts: dict[int, list[int]]

    @classmethod
    def of(cls, meta: bytes) -> _Items:
        """What the boxes say; `struct.error` where they end too early."""
        found = cls([], {}, defaultdict(list))
        for name, body in _boxes(meta[4:]):
            if name == b"pitm":
                found.main.append(_number(body, 4, wide=body[0] > 0))
            elif name == b"iref":
                found.take_references(body)
            elif name == b"iprp":
                found.take_sizes(body)
        return found

    def take_references(self, body: bytes) -> None:
        """Which images are made of which, and which are masks of others."""
        wide = body[0] > 0
        step = 4 if wide else 2
        for name, reference in _boxes(body[4:]):
            one, count = _number(reference, 0, wide), _number(reference, step, wide=False)
            others = [_number(reference, step + 2 + step * place, wide) for place in range(count)]
            if name == b"dimg":
                self.parts[one] += others
            elif name == b"auxl":
                for other in others:
                    self.parts[other].append(one)

    def take_sizes(self, body: bytes) -> None:
        """The sizes, which are in a list, and which image has which place of it."""
        kinds = dict(_boxes(body))
        sizes = [
            struct.unpack_from(">II", size, 4) if name == b"ispe" else (0, 0) for name, size in _boxes(kinds[b"ipco"])
        ]
        for name, owned in _boxes(body):
            if name == b"ipma":
                for image, place in _owned(owned):
                    width, height = sizes[place - 1] if 0 < place <= len(sizes) else (0, 0)
                    self.pixels[image] = max(self.pixels.get(image, 0), width * height)

    def decoded(self) -> int:
        """How many pixels are decoded for the main image, those of its parts and of its mask too."""
        known: dict[int, int] = {}
        return sum(self._decoded(image, known, _NESTED) for image in self.main)

    def _decoded(self, image: int, known: dict[int, int], depth: int) -> int:
        if depth == 0:
            raise ImageError("damaged image: it is made of itself, or nested too deeply", hint=_AGAIN)
        if image not in known:
            parts = sum(self._decoded(part, known, depth - 1) for part in self.parts.get(image, ()))
            known[image] = self.pixels.get(image, 0) + parts
        return known[image]


def _owned(body: bytes) -> Iterator[tuple[int, int]]:
    """Images, and the places of what they have, from 1 on."""
    wide, step = body[0] > 0, 2 if body[3] & 1 else 1
    (images,) = struct.unpack_from(">I", body, 4)
    at = 8
    for _ in range(images):
        image, count = _number(body, at, wide), body[at + (4 if wide else 2)]
        at += 5 if wide else 3
        for place in range(at, at + step * count, step):
            yield image, body[place] & 127 if step == 1 else _number(body, place, wide=False) & 0x7FFF
        at += step * count


def _meta(file: IO[bytes]) -> bytes:
    """What the box "meta" has."""
    end = file.seek(0, 2)
    at, found = 0, list[bytes]()
    for _ in range(PARTS):
        if at >= end:
            break
        file.seek(at)
        name, head, size = _head(file.read(16), end - at)
        if name == b"meta":
            if size > MOST_META:
                raise ImageError(f"too large: {size:,} bytes tell what is in it, over {MOST_META:,}", hint=_AGAIN)
            file.seek(at + head)
            found.append(file.read(size - head))
        at += size
    if len(found) != 1 or len(found[0]) < 4:
        raise ImageError("damaged image", hint=_AGAIN)
    return found[0]


def _boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The boxes that follow one another, by name, and what they have."""
    at = 0
    while at < len(data):
        name, head, size = _head(data[at : at + 16], len(data) - at)
        if at + size > len(data):
            raise struct.error("a box is longer than what it lies in")
        yield name, data[at + head : at + size]
        at += size


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


def _number(data: bytes, at: int, wide: bool) -> int:
    number: Any = struct.unpack_from(">I" if wide else ">H", data, at)[0]
    return int(number)
