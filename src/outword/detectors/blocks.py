"""Rows in blocks, so that fitting never holds a matrix of all images against all classes."""

from __future__ import annotations

from collections.abc import Iterator

from outword.detectors.base import CELLS


def blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Slices of rows, so many at a time that a matrix of them with `width` columns stays small.

    >>> list(blocks(5, CELLS // 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 6, None)]
    """
    size = max(1, CELLS // max(1, width))
    for start in range(0, n_rows, size):
        yield slice(start, start + size)
