"""Small pictures of photos, for notebooks: a file is read when it is shown; of pixels in memory a few are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TypeAlias

import numpy as np
from PIL import Image

from outword.base.processors import usable_cpus
from outword.errors import OutwordError
from outword.photos.ahead import decode_ahead
from outword.photos.decode import ROOM, Blob, ImageLike, thumbnail, with_image

SIDE = 96  # pixels of the long side of a thumbnail
SKETCH = 4 * SIDE  # the same, at most, of what is kept of pixels
LOOKS = ("exif", "transparency")  # what an image is turned and laid on white by; profiles and texts may be large
Kept: TypeAlias = "ImageLike | None"


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


def thumbnails(kept: Iterable[Kept]) -> list[bytes]:
    """JPEG bytes of what `sketches` kept; b"" for a file that is gone, or can be read no more, and for None."""
    threads = usable_cpus()
    views = decode_ahead(kept, _view, workers=threads, ahead=2 * threads)
    return [b"" if isinstance(view, OutwordError) else view for _, view in views]


def _view(photo: Kept) -> bytes:
    return b"" if photo is None else with_image(photo, partial(thumbnail, side=SIDE), min_side=SIDE)


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
