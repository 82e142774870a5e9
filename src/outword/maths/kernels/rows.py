"""Rows that do not feel their company: what is computed for one is the same bits alone, in a list and at any place.

BLAS picks its inner loops by the shape of a product, and they add up in different orders: one row goes another way than
two, a small product another way than a large one, the rows that do not fill a tile another way than those that do. So
products are given shapes for which the way of a row is always the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outword.maths.kernels.threads import blas, parallel_for
from outword.maths.numerics import Array

BLOCK = 24  # rows of a block: whole tiles for inner loops of 2, 4, 6, 8, 12 and 24 rows
TILE = 8  # rows of a product come in multiples of this, if its columns come in multiples of `WIDTH`
WIDTH = 16
SMALL = 10**6  # multiplications up to which OpenBLAS takes a product for small


def in_blocks(work: Callable[[NDArray[Any]], Array], rows: NDArray[Any], out: Array) -> Array:
    """Put `work(rows)` into `out`, always `BLOCK` rows at a time, on all cores; the last block is filled up.

    `work` gives as many results as rows, each from its own row, and may be called from several threads.
    """

    def do(start: int) -> None:
        part = rows[start : start + BLOCK]
        out[start : start + BLOCK] = work(_filled(part, BLOCK))[: len(part)]

    with blas:
        parallel_for(do, range(0, len(rows), BLOCK))
    return out


def product(rows: NDArray[np.floating], columns: NDArray[np.floating]) -> NDArray[np.floating]:
    """`rows @ columns`, for many columns, which come in multiples of `WIDTH`: quick for one row and for many.

    In float64 a row is the same bits in any company, with all inner loops of OpenBLAS for x86; in float32 those for
    AVX2 round by the place of a row.
    """
    most = TILE * columns.size
    step = TILE * (1 + SMALL // most) if most else 1
    with blas:
        return np.asarray((_filled(rows, -(-len(rows) // step) * step) @ columns)[: len(rows)])


def whole_width(n_columns: int) -> int:
    """The next multiple of `WIDTH`.

    >>> whole_width(17)
    32
    """
    return -(-n_columns // WIDTH) * WIDTH


def _filled(rows: NDArray[Any], size: int) -> NDArray[Any]:
    """So many rows; the last one is repeated, since it is valid input where zeros may not be."""
    return rows if len(rows) == size else rows[np.minimum(np.arange(size), len(rows) - 1)]
