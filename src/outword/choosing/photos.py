"""A set of photos as vectors in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from outword.base.files import PathLike
from outword.base.reports import Say, quiet
from outword.encoders.base import Vectors
from outword.vectors.same_photo import different, known_by

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Photos:
    """The photos of a set that could be read."""

    name: str  # of the set
    paths: list[str]  # or names inside an archive
    vectors: Vectors  # (n_photos, dim), unit rows
    unreadable: list[tuple[str, str]] = field(default_factory=list)  # path and reason of those that could not be read
    digests: Sequence[bytes] = ()  # sha256 of their files, in the same order
    given: Sequence[PathLike] = ()  # where they come from, as `outword.vectors.source.find_source` takes it

    @cached_property
    def known(self) -> list[tuple[int | None, int]]:
        """The hashes of each photo (`outword.vectors.same_photo`)."""
        return known_by(self.digests or [b""] * len(self.vectors), self.vectors)


def numbered(name: str, vectors: Vectors) -> Photos:
    """Vectors as a set whose photos have numbers for names."""
    return Photos(name, [*map(str, range(len(vectors)))], vectors)


def once(photos: Sequence[tuple[int | None, int]], tell: Say = quiet) -> Indices:
    """The rows of different photos, given by the hashes of contents and vectors, in the order of their contents."""
    ordered = sorted(range(len(photos)), key=lambda row: (photos[row][0] or 0, row))
    places = different(photos[row] for row in ordered)
    if repeats := len(photos) - len(places):
        tell(f"{repeats:,} of {len(photos):,} photos are there more than once, and count once")
    return np.array(ordered, np.int64)[places]
