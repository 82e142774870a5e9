"""Blocked matrix products in float64: memory stays O(block), results do not depend on the block size."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from outword.numerics import Array, log_sum_exp, unit_rows

BLOCK_ROWS = 256
BLOCK_COLUMNS = 8192
Progress = Callable[[int, int], None]


def grouped_logsumexp(images: Array, bank: Array, offsets: NDArray[np.integer], *, block: int = BLOCK_ROWS) -> Array:
    """`log sum exp` of `images @ bank.T` over runs of columns; the matrix is never held whole.

    Args:
        images: (n_images, dim), already divided by the temperature.
        bank: (n_columns, dim), unit rows; the members of a group are neighbours.
        offsets: (n_groups + 1,), where each group begins, and where the last one ends.
        block: how many images are held at a time.

    Returns:
        (n_images, n_groups) float64.
    """
    out = np.empty((len(images), len(offsets) - 1))
    for start in range(0, len(images), block):
        logits = images[start : start + block] @ bank.T
        for group, (first, last) in enumerate(pairwise(offsets)):
            out[start : start + block, group] = log_sum_exp(logits[:, first:last])
    return out


def neighbour_density(
    words: NDArray[np.floating],
    alpha: int,
    *,
    block: int = BLOCK_ROWS,
    progress: Progress | None = None,
) -> Array:
    """Sum of squared distances `2 - 2 cos` of each row to its `alpha` nearest other rows, exactly.

    Products are divided by the lengths, so that neither a float64 copy of `words` nor the T x T matrix is ever held:
    the extra memory is `8 * block * T` bytes and a block of columns.

    Args:
        words: (n_words, dim), any length but zero.
        alpha: how many neighbours; self is not one of them.
        block: how many rows are compared with all others at a time.
        progress: called with (rows done, rows in all) after each block.
    """
    n_words = len(words)
    lengths = np.sqrt(np.einsum("ij,ij->i", words, words, dtype=np.float64))
    sums = np.empty(n_words)
    cosines = np.empty((min(block, n_words), n_words))
    for start in range(0, n_words, block):
        rows = unit_rows(words[start : start + block], "words")
        near = cosines[: len(rows)]
        for first in range(0, n_words, BLOCK_COLUMNS):
            columns = slice(first, first + BLOCK_COLUMNS)
            np.matmul(rows, words[columns].astype(np.float64).T, out=near[:, columns])
        near /= lengths
        near[np.arange(len(rows)), start + np.arange(len(rows))] = -np.inf
        near.partition(n_words - alpha, axis=1)
        sums[start : start + block] = 2 * alpha - 2 * near[:, n_words - alpha :].sum(axis=1)
        if progress:
            progress(min(start + block, n_words), n_words)
    return sums
