"""HEIC, by pillow-heif, which is an extra: a module of its own, since few need it.

An image may be made of others: a grid of tiles, an overlay, with a mask beside it. What would be decoded is reckoned
from the boxes first. That the sizes in them are true, libheif sees to, which decodes no image larger than it says;
of one that says nothing it does not.
"""

from __future__ import annotations

from typing import IO

from PIL.ImageFile import ImageFile

from outword.base.extras import require
from outword.photos.boxes import Boxes, Items, damaged, kinds_of, places_of, unique
from outword.photos.plan import Plan, check_made_of

_BYTES = 10  # that decoding takes for each pixel, besides the result


def plan(file: IO[bytes]) -> Plan:
    """The size of the main image, and what it takes with all that it is made of."""
    boxes = Boxes(file)
    meta = boxes.top(b"meta", b"moov").get(b"meta", b"")
    if len(meta) < 4:
        raise damaged()
    items = Items.of(boxes, meta)
    found = boxes.once(meta[4:], b"iinf", b"iloc")
    kinds = unique(kinds_of(boxes, found.get(b"iinf", b"")))
    streams = items.check_kept(boxes, kinds, unique(places_of(boxes, found.get(b"iloc", b""))))

    def pixels(image: int) -> int:
        if image not in items.sizes:  # libheif would decode it in whatever size its stream says
            raise damaged("a part of it has no size")
        return items.pixels(image)

    decoded = items.total(pixels)
    width, height = items.size()
    check_made_of((width, height), decoded)
    return Plan(width, height, bool(items.masks), working=_BYTES * max(decoded, width * height) + streams)


def open_heif(file: IO[bytes]) -> ImageFile:
    """The main image of a file, whose pixels are still to be decoded; libheif turns it as it is to be turned."""
    file.seek(0)
    image: ImageFile = require("pillow_heif").HeifImageFile(file)
    image.working_bytes = _BYTES * image.width * image.height  # type: ignore[attr-defined]
    return image
