"""Photos to learn from, as vectors: each as it is or in random crops, and their patches; encoded once."""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from outword.base.reports import Report, quiet
from outword.encoders import Encoder
from outword.encoders.base import Pixels, Vectors
from outword.encoders.loader import Loader
from outword.errors import InputError, ParameterError
from outword.vectors.id_images import IdImages
from outword.vectors.reader import read
from outword.vectors.same_photo import short
from outword.vectors.source import find_source

AREA, SHAPE = (0.08, 1.0), 4 / 3  # of a crop: its share of the photo, and its longer side over the shorter, at most
FINER = 4  # how much larger a photo is decoded for crops than for itself
GIGABYTE = 1e9


@dataclass(frozen=True)
class Views:
    """What is kept of photos."""

    vectors: Vectors  # (n_photos, n_views, dim)
    patches: NDArray[np.float16] | None  # (n_photos, n_views, n_patches, dim)


@dataclass(frozen=True)
class Crops:
    """Random crops of a photo, half of them mirrored, as an encoder wants its pixels: (count, height, width, 3).

    They are drawn by the seed and the photo itself, so that neither its place nor its company matters.
    """

    preprocess: Callable[[Image.Image], Pixels]
    side: int
    count: int
    seed: int

    def __call__(self, image: Image.Image) -> Pixels:
        """The crops of an RGB image."""
        rng = np.random.default_rng([self.seed, zlib.crc32(image.tobytes())])
        found = []
        for _ in range(self.count):
            crop = image.resize((self.side,) * 2, Image.Resampling.BICUBIC, box=crop_box(*image.size, rng))
            mirrored = crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if rng.random() < 0.5 else crop
            found.append(self.preprocess(mirrored))
        return np.stack(found)


def crop_box(width: int, height: int, rng: np.random.Generator) -> tuple[float, float, float, float]:
    """A part of an image: 8 to 100 % of its area, 3:4 to 4:3 in shape; after ten that do not fit, the middle square."""
    for _ in range(10):
        area = width * height * rng.uniform(*AREA)
        shape = math.exp(rng.uniform(-math.log(SHAPE), math.log(SHAPE)))
        w, h = math.sqrt(area * shape), math.sqrt(area / shape)
        left, top = rng.random() * (width - w), rng.random() * (height - h)
        if w <= width and h <= height:
            return left, top, left + w, top + h
    side = min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    return left, top, left + side, top + side


def encode_views(
    encoder: Encoder,
    photos: IdImages,
    folder: Path,
    *,
    crops: int = 0,
    seed: int = 0,
    budget: float | None = None,
    report: Report = quiet,
) -> Views:
    """The photos as vectors: themselves, or `crops` random crops of each.

    With a `budget`, in gigabytes, also the vectors of patches, in float16. They are written to files in `folder`, which
    can be larger than memory, chunk by chunk; what is there already is not encoded again. What patches will take is
    known and told before the first photo is read.
    """
    if not crops and budget is None:
        return Views(photos.vectors[:, None], None)
    shape = (len(photos.vectors), max(1, crops))
    rows = {path: row for row, path in enumerate(photos.paths)}
    source = find_source(photos.given, encoder, only=lambda path: path in rows and not done[rows[path]])
    if source.stores or not rows:
        which = source.stores[0].path if source.stores else "what was given"
        raise InputError(f"{which} has vectors and no photos, to take patches or crops from", hint="name the photos")
    task, parts = "encoding photos to learn from", None
    _make(folder)
    if budget is not None:
        grey = np.array(encoder.preprocess(Image.new("RGB", (encoder.min_side,) * 2)))
        each = encoder.encode_patches(grey[None])[1].shape[1:]
        task = _affordable(math.prod((*shape, *each)) * 2 / GIGABYTE, budget)
        parts = _array(folder / "patches.npy", np.float16, (*shape, *each))
    vectors = _array(folder / "vectors.npy", np.float32, (*shape, encoder.dim))
    arrays = [vectors] if parts is None else [vectors, parts]
    done = _array(folder / "done.npy", np.uint64, shape[:1])  # a hash of what each photo has become, else 0
    _forget_changed(done, arrays)
    view = Crops(encoder.preprocess, encoder.min_side, crops, seed) if crops else encoder.preprocess
    loader = Loader(view, encoder.min_side * (FINER if crops else 1))
    report(task, int(np.count_nonzero(done)), len(rows))
    for chunk in read(source.jobs(), loader, max(1, encoder.chunk // shape[1])):
        good = [rows[photo.name] for photo in chunk.good]
        if good:
            pixels = chunk.values.reshape(-1, *chunk.values.shape[-3:])
            some = (encoder.encode_pixels(pixels),) if parts is None else encoder.encode_patches(pixels)
            for array, values in zip(arrays, some, strict=False):
                array[good] = values.reshape(len(good), *array.shape[1:])
                array.flush()
            done[good] = [_hash(arrays, row) for row in good]
            done.flush()
        report(task, int(np.count_nonzero(done)), len(rows))
    if not done.all():
        raise InputError(
            f"{photos.paths[int(done.argmin())]!r} could be read before, and cannot any more",
            hint="see that nothing changes the photos",
        )
    return Views(vectors, parts)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        told = f"patches and crops are kept in the cache, which cannot be written ({error})"
        raise InputError(told, hint="set OUTWORD_CACHE to a folder that can") from None


def _affordable(takes: float, budget: float) -> str:
    """What is said of patches that take so many gigabytes; an error if that is more than the budget."""
    if takes > budget:
        raise ParameterError(
            f"the patches of these photos take {takes:.3g} GB of disk, and the budget is {budget:g}",
            hint=f"take fewer shots or crops, or set budget={math.ceil(takes)} (--set budget={math.ceil(takes)})",
        )
    return f"encoding patches, {takes:.2g} GB on disk"


def _forget_changed(done: NDArray[np.uint64], arrays: Sequence[NDArray[Any]]) -> None:
    """Count photos as not done whose content is not what their hash says."""
    for row in np.flatnonzero(done).tolist():
        if done[row] != _hash(arrays, row):
            done[row] = 0


def _hash(arrays: Sequence[NDArray[Any]], row: int) -> int:
    """A hash of what a photo has become, by which a killed run knows it again; never 0."""
    content = b"".join(array[row].tobytes() for array in arrays)
    return short(hashlib.sha256(content).digest()) or 1


def _array(path: Path, dtype: type, shape: tuple[int, ...]) -> Any:
    """An array in a file: as it is there, if it fits, else anew and zero."""
    with suppress(OSError, ValueError):
        found = np.load(path, mmap_mode="r+")
        if found.shape == shape and found.dtype == dtype:
            return found
    return np.lib.format.open_memmap(path, "w+", dtype, shape)
