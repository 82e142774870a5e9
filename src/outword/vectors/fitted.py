"""Which photos a method was fitted on, told by hashes, so that no threshold is set on them.

A method knows the photos that it was fitted on, and scores them higher than others of the same classes: a threshold
that accepts 95 % of them may accept none of the others. A photo is known by two hashes, each the first 8 bytes of a
sha256: that of its file, and that of its vector, for what comes as an array.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from outword.base.processors import usable_cpus
from outword.errors import OutwordError
from outword.maths.numerics import UNIT_TOLERANCE, blocks, unit_rows
from outword.photos.ahead import decode_ahead
from outword.photos.decode import ImageLike, read_hashed

Image = TypeVar("Image", bound=ImageLike)
Hashes = NDArray[np.uint64]  # sorted, each once
AHEAD = 64  # files that are read ahead


def short(sha256: bytes) -> int:
    """The part of a sha256 that is kept.

    >>> short(bytes(31) + b"1"), short(b"1" + bytes(31))
    (0, 49)
    """
    return int.from_bytes(sha256[:8], "little")


def hashes_of_files(images: Iterable[Image]) -> Iterator[tuple[Image, int | None]]:
    """Each image with the hash of its file's content, in order; None for what is no file, or cannot be read."""
    for image, found in decode_ahead(images, _of_file, workers=usable_cpus(), ahead=AHEAD):
        yield image, None if isinstance(found, OutwordError) else found


def hashes_of_vectors(vectors: NDArray[np.floating]) -> list[int]:
    """The hash of each row (n, dim), as a unit vector in float32.

    >>> hashes_of_vectors(np.array([[3.0, 4.0]])) == hashes_of_vectors(np.array([[0.6, 0.8]], np.float32))
    True
    """
    found: list[int] = []
    for some in blocks(len(vectors), vectors.shape[1]):
        rows = unit_rows(vectors[some], "images", UNIT_TOLERANCE).astype("<f4") + np.float32(0)  # of two zeros, one
        found += [short(hashlib.sha256(row.data).digest()) for row in rows]
    return found


def collected(*hashes: Iterable[int]) -> Hashes:
    """All of them, for `any_of`; 16 bytes a photo that has both."""
    return np.unique(np.fromiter(chain(*hashes), np.uint64))


def any_of(hashes: Iterable[int | None], known: Hashes) -> bool:
    """Whether one of some hashes is known.

    >>> any_of([7, None], collected([3], [7])), any_of([8], collected([3], [7]))
    (True, False)
    """
    asked = np.array([one for one in hashes if one is not None], np.uint64)
    places = np.searchsorted(known, asked)
    return any(place < len(known) and known[place] == one for place, one in zip(places, asked, strict=True))


def _of_file(image: ImageLike) -> int | None:
    if isinstance(image, bytes):
        return short(hashlib.sha256(image).digest())
    if not isinstance(image, str | os.PathLike):
        return None
    return short(read_hashed(image)[0])
