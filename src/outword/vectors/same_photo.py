"""When two photos are the same one: where their files have the same content, or their vectors are the same.

This is the one rule for photos that count once: where a threshold is found, a reference is made, or a method is chosen.
It also tells which photos a method was fitted on, so that no threshold is set on them: a method knows those, and scores
them higher than others of the same classes, so that a threshold which accepts 95 % of them may accept none of the
others.

A photo is known by two hashes, each the first 8 bytes of a sha256: that of its file, and that of its vector, which is
all that there is of an array. What only looks the same, such as a photo that was shrunk, is another photo here
(`outword.photos.twins`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from outword.maths.numerics import UNIT_TOLERANCE, blocks, unit_rows

Hashes = NDArray[np.uint64]  # sorted, each once
Known: TypeAlias = "Iterable[int | None]"  # the hashes of one photo; None for a file that there is not


def short(sha256: bytes) -> int:
    """The part of a sha256 that is kept.

    >>> short(bytes(31) + b"1"), short(b"1" + bytes(31))
    (0, 49)
    """
    return int.from_bytes(sha256[:8], "little")


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


def known_by(digests: Sequence[bytes], vectors: NDArray[np.floating]) -> list[tuple[int | None, int]]:
    """The hashes of each photo: that of its file, by the sha256 of that, b"" for no file; and that of its vector.

    >>> [file for file, _ in known_by([b"", b"1" + bytes(31)], np.eye(2))]
    [None, 49]
    """
    files = [short(digest) if digest else None for digest in digests]
    return list(zip(files, hashes_of_vectors(vectors), strict=True))


def collected(*hashes: Known) -> Hashes:
    """All of them, for `any_of`; 16 bytes a photo that has both."""
    return np.unique(np.fromiter((one for one in chain(*hashes) if one is not None), np.uint64))


def any_of(hashes: Iterable[int | None], known: Hashes) -> bool:
    """Whether one of some hashes is known.

    >>> any_of([7, None], collected([3], [7])), any_of([8], collected([3], [7]))
    (True, False)
    """
    asked = np.array([one for one in hashes if one is not None], np.uint64)
    places = np.searchsorted(known, asked)
    return any(place < len(known) and known[place] == one for place, one in zip(places, asked, strict=True))


def first_of_each(photos: Iterable[Known]) -> list[int]:
    """For each photo the place of the first one that is the same: its own place, where it is new.

    >>> first_of_each([(1, 11), (2, 12), (1, 11), (3, 12), (None, 13)])
    [0, 1, 0, 1, 4]
    """
    known: dict[int, int] = {}
    places = []
    for place, photo in enumerate(photos):
        hashes = [one for one in photo if one is not None]
        first = min((known[one] for one in hashes if one in known), default=place)
        for one in hashes:
            known.setdefault(one, first)
        places.append(first)
    return places


def different(photos: Iterable[Known]) -> list[int]:
    """The places of the photos that are not the same as one before them.

    >>> different([(1, 11), (2, 12), (1, 11), (3, 12)])
    [0, 1]
    """
    return [place for place, first in enumerate(first_of_each(photos)) if place == first]
