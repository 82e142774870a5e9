"""Exact mining on the CPU: float32 products find the candidates, float64 decides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from outword.base.reports import Steps
from outword.errors import InputError
from outword.maths.kernels.threads import parallel_for
from outword.maths.numerics import Array

BLOCK_ROWS = 1024
FEWEST_WORDS = 4096  # below, float64 products of all with all are as quick
SAMPLED = 16  # one word in so many tells where a word's nearest begin
CELLS = 1 << 22  # of a float64 product that a thread holds at a time
SEARCH_SHARE = 0.85  # of the work, for the progress bar

Floats = NDArray[np.floating]
Indices = NDArray[np.integer]
Found = tuple[NDArray[np.uint16], NDArray[np.int32], NDArray[np.float32]]  # row in its block, neighbour, cosine


def neighbour_density(words: Floats, alpha: int, *, block: int = BLOCK_ROWS, progress: Steps | None = None) -> Array:
    """Sum of squared distances `2 - 2 cos` of each row to its `alpha` nearest other rows, exactly.

    Float32 products find candidates (see `_Search`), whose cosines are then computed in float64, each by itself, and
    the alpha largest summed in order, so that blocks and threads change nothing. Words for which that fails, and few
    words, are compared with all others in float64; there blocks change the last digits. `block` words are compared with
    as many at a time; `progress` is told the share of the work done, in words.
    """
    n_words, block = len(words), min(block, 1 << 16)
    lengths = np.sqrt(np.einsum("ij,ij->i", words, words, dtype=np.float64))
    if not lengths.all():
        raise InputError(f"words must have no zero row, row {int(np.argmin(lengths))} is zero", hint="drop that row")
    blocks = [slice(start, min(start + block, n_words)) for start in range(0, n_words, block)]
    sums = np.full(n_words, np.nan)
    search = _Search(words, lengths, alpha, blocks) if _worthwhile(n_words, words.shape[1], alpha) else None
    begins = SEARCH_SHARE if search else 0.0

    def report(share: float) -> None:
        if progress:
            progress(round(n_words * share), n_words)

    if search:
        search.run(lambda share: report(SEARCH_SHARE * share))

    def finish(number: int) -> None:
        rows = blocks[number]
        for row, near in search.candidates(number) if search else ():
            sums[row] = _sum_over(words, lengths, row, near, alpha)
        left = rows.start + np.flatnonzero(np.isnan(sums[rows]))
        size = max(1, CELLS // n_words)
        for some in (left[start : start + size] for start in range(0, len(left), size)):
            sums[some] = _sums_over_all(words, lengths, some, alpha)

    parallel_for(finish, range(len(blocks)), lambda done: report(begins + (1 - begins) * done / len(blocks)))
    return sums


class _Search:
    """Candidates for the alpha nearest of each word, from float32 products of the upper triangle.

    A sample gives each word a cosine that alpha others should reach (`_sample_rank`). Tiles of the product serve their
    rows and their columns; what reaches that cosine is kept. A float32 cosine of unit rows is off by at most
    `e = (dim + 4) 2^-24`, so that the alpha nearest are within `2 e` of the alpha-th largest that was found. Where that
    is not above the word's cosine, or ties would fill the memory, the word has no candidates.

    Extra memory: a float32 copy of the words, and 10 bytes a find, about 3 kB a word for alpha = 100.
    """

    def __init__(self, words: Floats, lengths: Array, alpha: int, blocks: list[slice]) -> None:
        self._unit = np.empty(words.shape, np.float32)
        for rows in blocks:
            self._unit[rows] = words[rows] / lengths[rows, None]
        self._alpha, self._blocks = alpha, blocks
        self._slack = 2 * (words.shape[1] + 4) * 2.0**-24
        self._least = np.empty(len(words), np.float32)
        self._found: list[list[Found]] = [[] for _ in blocks]

    def run(self, report: Callable[[float], None]) -> None:
        """Look at the sample, then at all pairs; `report` is told the share of the tiles that is done."""
        n_words = len(self._unit)
        chosen = np.random.default_rng(0).permutation(n_words)[: n_words // SAMPLED]
        sample, rank = self._unit[chosen], _sample_rank(len(chosen), self._alpha / n_words)

        def estimate(rows: slice) -> None:
            cosines = self._unit[rows] @ sample.T
            cosines.partition(len(sample) - rank, axis=1)
            least = cosines[:, len(sample) - rank]
            ties = np.count_nonzero(cosines >= least[:, None], axis=1) > 4 * rank
            self._least[rows] = np.where(ties, np.inf, least)

        parallel_for(estimate, self._blocks)
        tiles = list(combinations_with_replacement(range(len(self._blocks)), 2))
        parallel_for(self._tile, tiles, lambda done: report(done / len(tiles)))

    def _tile(self, place: tuple[int, int]) -> None:
        above, left = place
        rows, columns = self._blocks[above], self._blocks[left]
        cosines = self._unit[rows] @ self._unit[columns].T
        self._keep(above, cosines, cosines >= self._least[rows, None], columns.start)
        if above != left:
            self._keep(left, cosines, cosines >= self._least[columns], rows.start, turned=True)

    def _keep(
        self, number: int, cosines: NDArray[np.float32], near: NDArray[np.bool_], start: int, turned: bool = False
    ) -> None:
        cells = np.flatnonzero(near)
        row, column = np.divmod(cells, cosines.shape[1])
        word, other = (column, row) if turned else (row, column)
        self._found[number].append((word.astype(np.uint16), (start + other).astype(np.int32), cosines.ravel()[cells]))

    def candidates(self, number: int) -> Iterator[tuple[int, Indices]]:
        """Words of a block, each with those others among which its alpha nearest are; what was found is let go."""
        rows, alpha = self._blocks[number], self._alpha
        found, self._found[number] = self._found[number], []
        word, other, cosine = (np.concatenate(part) for part in zip(*found, strict=True))
        others = other - rows.start != word
        word, other, cosine = word[others], other[others], cosine[others]
        order = np.argsort(word, kind="stable")
        ends = np.cumsum(np.bincount(word, minlength=rows.stop - rows.start))
        for row, of in enumerate(np.split(order, ends[:-1]), start=rows.start):
            near = cosine[of]
            if len(near) < alpha:
                continue
            least = np.partition(near, len(near) - alpha)[len(near) - alpha] - self._slack
            if least > self._least[row]:
                yield row, other[of[near >= least]]


def _worthwhile(n_words: int, dim: int, alpha: int) -> bool:
    """Whether there are many words, and what is found needs no more than 256 MB or a float64 copy of the words."""
    rank = _sample_rank(n_words // SAMPLED, alpha / n_words)
    return n_words >= FEWEST_WORDS and 10 * SAMPLED * rank <= max((1 << 28) / n_words, 8 * dim)


def _sample_rank(size: int, share: float) -> int:
    """Which largest of a sample lies below the largest `share` of all, for all but one word in ten thousand.

    >>> _sample_rank(4375, 100 / 70_000)
    18
    """
    mean = size * share
    return min(size, ceil(mean + 3 * sqrt(mean) + 4))


def _sum_over(words: Floats, lengths: Array, row: int, near: Indices, alpha: int) -> float:
    """The sum for one word over the nearest of some others; einsum adds up each product in the same order."""
    unit = words[row].astype(np.float64) / lengths[row]
    cosines = np.einsum("ij,j->i", words[near].astype(np.float64), unit) / lengths[near]
    return 2 * alpha - 2 * float(np.sort(cosines)[-alpha:].sum())


def _sums_over_all(words: Floats, lengths: Array, rows: Indices, alpha: int) -> Array:
    """The sums for some words over the nearest of all others."""
    n_words, step = len(words), max(1, CELLS // words.shape[1])
    unit = words[rows].astype(np.float64) / lengths[rows, None]
    cosines = np.empty((len(rows), n_words))
    for columns in (slice(start, start + step) for start in range(0, n_words, step)):
        np.matmul(unit, words[columns].astype(np.float64).T, out=cosines[:, columns])
    cosines /= lengths
    cosines[np.arange(len(rows)), rows] = -np.inf
    cosines.partition(n_words - alpha, axis=1)
    return np.asarray(2 * alpha - 2 * np.sort(cosines[:, n_words - alpha :], axis=1).sum(axis=1))
