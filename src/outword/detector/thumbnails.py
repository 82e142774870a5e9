"""Small pictures of photos, for pages and notebooks: a file is read when it is shown; of pixels a few are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TypeAlias, TypeVar

import numpy as np
from PIL import Image

from outword.base.processors import usable_cpus
from outword.errors import ImageError, OutwordError
from outword.photos.ahead import decode_ahead
from outword.photos.decode import ROOM, Blob, ImageLike, thumbnail, with_image

SIDE = 96  # pixels of the long side of a thumbnail in a notebook
ON_PAGE = 160  # the same on a page
SKETCH = 4 * SIDE  # the same, at most, of what is kept of pixels
LOOKS = ("exif", "transparency")  # what an image is turned and laid on white by; profiles and texts may be large
Kept: TypeAlias = "ImageLike | None"
Name = TypeVar("Name")


def sketches(photos: Iterable[Kept]) -> Iterator[Kept]:
    """What thumbnails can be made of later, cheaply: paths, files in memory as they are, of pixels only some.

    So a list of large arrays is not held for as long as what was said of it. What is kept of photos in memory comes to
    `ROOM` and one photo at most; the rest are None, as those are that need no thumbnail.
    """
    room = ROOM
    for photo in photos:
        kept = _sketch(photo) if room > 0 or _weight(photo) == 0 else None
        room -= _weight(kept)
        yield kept


def thumbnails(photos: Iterable[tuple[Name, Kept | ImageError]], side: int = SIDE) -> Iterator[tuple[Name, bytes]]:
    """JPEG bytes of named photos, as `sketches` keeps them, in order; b"" for what cannot be read any more."""
    threads = usable_cpus()
    views = decode_ahead(photos, partial(_view, side), workers=threads, ahead=2 * threads, weigh=_weight_of_named)
    for (name, _), view in views:
        yield name, b"" if isinstance(view, OutwordError) else view


def _view(side: int, named: tuple[Name, Kept | ImageError]) -> bytes:
    _, photo = named
    if photo is None or isinstance(photo, ImageError):
        return b""
    return with_image(photo, partial(thumbnail, side=side), min_side=side)


def _weight_of_named(named: tuple[Name, Kept | ImageError]) -> int:
    _, photo = named
    return 0 if isinstance(photo, ImageError) else _weight(photo)


def _sketch(photo: Kept) -> Kept:
    """Every so many-th pixel, as a copy: the photo itself may be gone by then, or another one in the same memory."""
    if isinstance(photo, np.ndarray):
        step = -(-max(photo.shape[:2]) // SKETCH)
        return photo[::step, ::step].copy()
    if isinstance(photo, Image.Image):
        step = -(-max(photo.size) // SKETCH)
        small = photo.resize((-(-photo.width // step), -(-photo.height // step)), Image.Resampling.NEAREST)
        small.info = {key: value for key, value in small.info.items() if key in LOOKS}
        return small
    return photo


def _weight(photo: Kept) -> int:
    """Bytes of memory; none for a path."""
    if isinstance(photo, np.ndarray):
        return photo.nbytes
    if isinstance(photo, Image.Image):
        return 4 * photo.width * photo.height
    data = photo.data if isinstance(photo, Blob) else photo
    return len(data) if isinstance(data, bytes) else 0
