"""Scoring on the CPU: products in blocks, exponentials and sums while they are in the cache, on all cores."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from outword.maths.kernels.evidence import NUMPY, Evidence, Owners, evidence, words_in
from outword.maths.kernels.rows import TILE, WIDTH, product, whole_width
from outword.maths.kernels.threads import parallel_for, workers
from outword.maths.numerics import Array

BLOCK_ROWS = 1024  # images at a time; fewer, and BLAS spends its time on packing the bank again
FEWEST_ROWS = 64  # in a block; fewer images stay on the calling thread
CELLS = 1 << 20  # logits that a thread keeps for evidence: 8 MB stay in the cache
PIECE = 4096  # columns of a product; a longer group is summed in pieces

Floats = NDArray[np.floating]
Indices = NDArray[np.integer]


class Bank:
    """Text vectors in groups, ready to be scored against; what it is made of is told at `kernels.make_bank`.

        log_masses(x)_g = log sum_{u in group g} e^{x.u / temperature}

    Logits are exponentiated as they are, which saves the pass over them that a maximum takes. Where a sum then leaves
    the range of the type, that image and group is done again, with its own maximum.

    In float32 the mean m of the bank is taken out first, `x.u = x.(u - m) + x.m`, which is exact and leaves smaller
    numbers to round. With r the largest `|u - m|`, log masses of a unit x are off by at most
    `(dim + 4) 2^-24 r / temperature + 1e-5`; on CLIP's scale, 0.01, they are off by about 1e-5. In float64 the mean
    stays, and the bound is `(dim + 4) 2^-53 / temperature + 1e-14`. Images scored together do not change a result by a
    bit in float64 (`outword.maths.kernels.rows`), and by no more than that rounding in float32.

    >>> Bank(np.eye(2), np.arange(3)).log_masses(np.array([[0.6, 0.8]]))
    array([[0.6, 0.8]])
    """

    def __init__(
        self,
        vectors: Array,
        offsets: Indices,
        *,
        temperature: float = 1.0,
        precision: str = "float64",
        first: int = 1,
        owners: Owners | None = None,
        peak: bool = False,
    ) -> None:
        self._temperature, self._owners, self._peak = temperature, owners, peak
        self._centre = np.mean(vectors, axis=0, dtype=np.float64) if precision == "float32" else None
        rest = np.zeros((WIDTH, np.shape(vectors)[1]))  # the last columns of a product that is not whole without them
        self._vectors = np.concatenate([vectors if self._centre is None else vectors - self._centre, rest])
        self._vectors = self._vectors.astype(precision, copy=False)
        pieces = [np.arange(first, last, PIECE) for first, last in pairwise(offsets)]
        self._cuts = np.append(np.concatenate(pieces), offsets[-1])
        self._groups = np.cumsum([0, *map(len, pieces[:-1])])
        self._runs = _runs(self._cuts, PIECE)
        self._first, self._n_labels, self._before = first, offsets[1], offsets[min(first, len(pieces))]
        cuts = self._cuts[self._cuts >= self._before]
        of_piece = np.searchsorted(offsets, cuts[:-1], side="right")
        self._words = words_in(cuts, of_piece, offsets[-1] - self._before)

    def log_masses(self, images: Floats, *, block: int = BLOCK_ROWS) -> Array:
        """See `kernels.Bank`; in float64. `block` is the largest number of images held at a time."""
        out = np.empty((len(images), len(self._groups) + self._peak))

        def score(rows: slice) -> None:
            masses, shift = self._masses(images[rows])
            out[rows] = masses if shift is None else masses + shift

        parallel_for(score, row_blocks(len(images), block))
        return out

    def evidence(self, images: Floats, top: int, *, cells: int = CELLS) -> tuple[Array, Evidence]:
        """Log masses, and the `top` labels and words, from one product; `cells` logits are held by each thread."""
        n = len(images)
        n_labels = len(self._owners.offsets) - 1 if self._owners else self._n_labels
        labels, kinds, words = (
            np.empty((n, min(top, size)), np.int64) for size in (n_labels, n_labels, self._words.total)
        )
        found = Evidence(labels, np.empty(labels.shape), kinds, words, np.empty(words.shape))
        out = np.empty((n, len(self._groups) + self._peak))

        def judge(rows: slice) -> None:
            part = images[rows]
            logits = np.empty((len(part), self._cuts[-1]), self._vectors.dtype)
            masses, shift = self._masses(part, logits)
            out[rows] = masses if shift is None else masses + shift
            labels, words = logits[:, : self._n_labels], logits[:, self._before :]
            best = np.maximum.reduceat(words, self._words.starts, axis=1) if self._words.total else words
            of_groups = np.concatenate([masses[:, :1], masses[:, self._first : len(self._groups)]], axis=1)
            told = evidence(NUMPY, labels, words, best, of_groups, self._words, top, self._owners)
            for whole, of_part in zip(found, told, strict=True):
                whole[rows] = of_part

        parallel_for(judge, row_blocks(n, max(TILE, cells // int(self._cuts[-1]))))
        return out, found

    def _masses(self, images: Floats, kept: Floats | None = None) -> tuple[Array, Array | None]:
        """Log masses (and peak) without the mean of the bank, and what it adds to all; logits go to `kept`."""
        scaled = np.asarray(images, dtype=np.float64) / self._temperature
        rows = scaled.astype(self._vectors.dtype, copy=False)
        peak = np.full((len(rows), 1), -np.inf) if self._peak else None
        masses = np.concatenate([self._log_sums(rows, cuts, kept, peak) for cuts in self._runs], axis=1)
        if len(self._groups) < len(self._cuts) - 1:
            masses = np.logaddexp.reduceat(masses, self._groups, axis=1)
        if peak is not None:
            masses = np.concatenate([masses, peak], axis=1)
        return masses, None if self._centre is None else (scaled @ self._centre)[:, None]

    def _log_sums(self, rows: Floats, cuts: NDArray[np.int64], kept: Floats | None, peak: Array | None) -> Array:
        """Log sums over the pieces between `cuts`; labels among them raise `peak`, (n_images, 1)."""
        width, starts = cuts[-1] - cuts[0], cuts[:-1] - cuts[0]
        columns = self._vectors[cuts[0] : cuts[0] + whole_width(width)].T
        logits = product(rows, columns)[:, :width]
        if kept is not None:
            kept[:, cuts[0] : cuts[-1]] = logits
        if peak is not None and cuts[0] < self._n_labels:
            np.maximum(peak, logits[:, : self._n_labels - cuts[0]].max(axis=1, keepdims=True), out=peak)
        with np.errstate(over="ignore", divide="ignore"):
            sums = np.add.reduceat(np.exp(logits, out=logits), starts, axis=1)
            found = np.log(sums, dtype=np.float64)
        limits = np.finfo(sums.dtype)
        lost = (sums < limits.tiny / limits.eps**2) | (sums > limits.max)  # below, terms that count have vanished
        if lost.any():
            again = lost.any(axis=1)
            found[lost] = _shifted_log_sums(product(rows[again], columns)[:, :width], starts)[lost[again]]
        return found


def row_blocks(n_rows: int, most: int) -> list[slice]:
    """Equal blocks of at most so many rows, as many for each core; few rows are one block."""
    if n_rows <= min(FEWEST_ROWS, most):
        return [slice(0, n_rows)] if n_rows else []
    cores = workers()
    shares = cores * -(-n_rows // (cores * most))
    size = min(max(-(-n_rows // shares), FEWEST_ROWS), most)
    return [slice(start, start + size) for start in range(0, n_rows, size)]


def _runs(cuts: NDArray[np.int64], width: int) -> list[NDArray[np.int64]]:
    """`cuts` in runs that span at most `width` columns, or one piece; each begins where the last one ends.

    >>> _runs(np.array([0, 3, 5, 9]), 5)
    [array([0, 3, 5]), array([5, 9])]
    """
    runs, first = [], 0
    while first < len(cuts) - 1:
        last = max(first + 1, int(np.searchsorted(cuts, cuts[first] + width, side="right")) - 1)
        runs.append(cuts[first : last + 1])
        first = last
    return runs


def _shifted_log_sums(logits: Floats, starts: NDArray[np.int64]) -> Array:
    tops = np.maximum.reduceat(logits, starts, axis=1)
    logits -= np.repeat(tops, np.diff(starts, append=logits.shape[1]), axis=1)
    sums = np.add.reduceat(np.exp(logits, out=logits), starts, axis=1)
    return np.log(sums, dtype=np.float64) + tops
