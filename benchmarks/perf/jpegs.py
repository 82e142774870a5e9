"""Any number of JPEG files of one size, cut out of photos."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import outword
from outword.photos.decode import open_image
from outword.photos.walk import find_images

PHOTOS = Path(outword.__file__).parent / "demo" / "photos"
WIDTH, HEIGHT = 500, 375
MARGIN = 1.3  # a photo is brought to so many times that size before it is cut
DISTINCT = 10_000  # more files than these are further names of them: they cost as much to read, and no disk


def write_jpegs(folder: Path, count: int, photos: Path = PHOTOS, distinct: int = DISTINCT) -> list[Path]:
    """Cuttings of 500 x 375 pixels of the photos below a folder, each at another place, and further names of them."""
    files = [folder / f"{i:06d}.jpg" for i in range(count)]
    different = files[:distinct]
    sources = list(find_images([photos]))
    room = [int((MARGIN - 1) * WIDTH), int((MARGIN - 1) * HEIGHT)]
    corners = np.random.default_rng(0).integers(room, size=(len(different), 2)).tolist()
    for first, source in enumerate(sources[: len(different)]):
        photo = open_image(source).resize((int(MARGIN * WIDTH), int(MARGIN * HEIGHT)))
        for i in range(first, len(different), len(sources)):
            left, top = corners[i]
            photo.crop((left, top, left + WIDTH, top + HEIGHT)).save(files[i], quality=90)
    for i in range(distinct, count):
        files[i].hardlink_to(files[i % distinct])
    return files
