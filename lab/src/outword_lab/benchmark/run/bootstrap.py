"""How sure a figure is: AUROC and FPR95 of bootstrap samples of the images, paired between methods."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword.base.checks import whole_number
from outword.base.files import sha256_bytes
from outword.maths.metrics import accepted, scores
from outword.maths.numerics import Array

TPR = 0.95
LEVEL = 0.95  # of intervals
TOGETHER = 1 << 16  # draws that are looked at together: more would leave the processor's cache
SMALL = 1 << 20  # draws of a set that are kept for the next method, in 8 bytes each
KEPT = 8  # sets of which they are


def resampled(
    inside: ArrayLike,
    outside: Mapping[str, ArrayLike],
    *,
    rows: ArrayLike | None = None,
    n_all: int | None = None,
    n_samples: int = 1000,
    seed: int = 0,
) -> dict[str, Array]:
    """AUROC and FPR95 of bootstrap samples, by OOD set.

    A sample draws as many ID images as there are, with replacement, and as many of each OOD set (Efron 1979). What is
    drawn depends on the seed, the name of the set and the number of its images alone: sample r has the same ID images
    for every OOD set, and the same images for every method that scores them in the same order. So methods are compared
    pair by pair, and figures may be averaged over sets sample by sample.

    Where only some of the ID images were scored (`rows` of `n_all`), such as the half that a run did not fit on,
    samples are drawn from all of them, and count for those that were scored. So runs with different halves have the
    same samples, too, and may be averaged.

    Gives (n_samples, 2) for each OOD set: AUROC and FPR95 with ID as the positives, as `outword.metrics` has them.

    >>> resampled([2.0, 3.0], {"far": [0.0, 1.0]}, n_samples=2)["far"]
    array([[1., 0.],
           [1., 0.]])
    """
    whole_number("n_samples", n_samples, hint="1000 is usual")
    whole_number("seed", seed, least=0, hint="0 is the default")
    own = scores(inside, "inside")
    sets = {name: _Placed(own, scores(one, f"outside[{name!r}]")) for name, one in outside.items()}
    scored = np.arange(len(own)) if rows is None else np.asarray(rows, np.int64)
    n_id = len(own) if rows is None or n_all is None else n_all
    chosen = scored[np.argsort(own, kind="stable")]  # the ID images that were scored, the lowest first
    starts = np.unique(np.sort(own), return_index=True)[1]  # where in that order each distinct score begins
    block = max(1, TOGETHER // max(n_id, *(one.n for one in sets.values()), 1))
    draws = {name: _counts(seed, name, one.n, n_samples, block) for name, one in sets.items()}
    found = {name: np.empty((n_samples, 2)) for name in sets}
    for number, drawn in enumerate(_counts(seed, None, n_id, n_samples, block)):
        counts, first = drawn[:, chosen], number * block
        for row in np.flatnonzero(~counts.any(axis=1)).tolist():
            counts[row] = _drawn_again(seed, first + row, n_id, chosen)
        below = np.zeros((len(counts), len(own) + 1), np.int64)  # below[:, i]: how many drawn are among the lowest i
        np.cumsum(counts, axis=1, out=below[:, 1:])
        thresholds = _thresholds(below, starts)
        for name, one in sets.items():
            found[name][first : first + block] = one.figures(next(draws[name]), below, thresholds)
    return found


def _thresholds(below: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the highest score begins that accepts enough ID images of each sample, (n_samples,)."""
    missed = np.array([total - accepted(TPR, total) for total in below[:, -1].tolist()])
    enough = below[:, starts] <= missed[:, None]
    return np.asarray(starts[enough.sum(axis=1) - 1])


def _counts(seed: int, name: str | None, n: int, n_samples: int, block: int) -> Iterator[NDArray[np.int64]]:
    """How often each of `n` images is drawn, `block` samples at a time, (block, n); without a name, of the ID set.

    It is the same for all methods, and is kept where it is small.
    """
    if n * n_samples > SMALL:
        return _draw(seed, name, n, n_samples, block)
    whole = _all_counts(seed, name, n, n_samples)
    return (whole[first : first + block] for first in range(0, n_samples, block))


@lru_cache(maxsize=KEPT)
def _all_counts(seed: int, name: str | None, n: int, n_samples: int) -> NDArray[np.int64]:
    return next(_draw(seed, name, n, n_samples, n_samples))


def _draw(seed: int, name: str | None, n: int, n_samples: int, block: int) -> Iterator[NDArray[np.int64]]:
    rng = _rng(seed, f"ood/{name}", n)
    for first in range(0, n_samples, block):
        samples = range(first, min(first + block, n_samples))
        rngs = (_rng(seed, f"id/{sample}", n) if name is None else rng for sample in samples)
        yield np.stack([_drawn(one, n) for one in rngs])


def _drawn(rng: np.random.Generator, n: int) -> NDArray[np.int64]:
    """How often each of `n` images is drawn in one sample."""
    return np.bincount(rng.integers(n, size=n), minlength=n)


def _drawn_again(seed: int, sample: int, n: int, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often the ID images that were scored are drawn, where the first draw of a sample had none of them."""
    rng = _rng(seed, f"id/{sample}", n)
    while True:
        if (counts := _drawn(rng, n)[chosen]).any():
            return counts


class _Placed:
    """The scores of an OOD set, by how many ID scores are less, or not greater."""

    def __init__(self, inside: Array, outside: Array) -> None:
        self.n, ranked = len(outside), np.sort(inside)
        self._less = np.searchsorted(ranked, outside, side="left")
        self._not_greater = np.searchsorted(ranked, outside, side="right")

    def figures(self, counts: NDArray[np.int64], below: NDArray[np.int64], thresholds: NDArray[np.int64]) -> Array:
        """AUROC and FPR95 of some samples, (n_samples, 2), by how often each image is drawn in them."""
        lost = np.einsum("ij,ij->i", counts, below[:, self._less] + below[:, self._not_greater])  # a tie: by half
        passed = np.einsum("ij,ij->i", counts, self._not_greater > thresholds[:, None])
        return np.stack([1 - lost / (2 * below[:, -1] * self.n), passed / self.n], axis=1)


def _rng(seed: int, name: str, n: int) -> np.random.Generator:
    """A generator that depends on what is drawn from, and on no score."""
    return np.random.default_rng(int(sha256_bytes(f"{seed}/{n}/{name}".encode()), 16))


def interval(values: ArrayLike) -> tuple[float, float]:
    """The percentile interval of bootstrap samples: as many lie below it as above it, and 95 % of them within.

    >>> np.round(interval(range(201)), 9).tolist()
    [5.0, 195.0]
    """
    low, high = np.quantile(scores(values, "values"), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def seeds_resampled(samples: ArrayLike, n_pairs: int | None = None) -> Array:
    """Mean over seeds, (n_samples, ...), of figures of each seed in each bootstrap sample, (n_seeds, n_samples, ...).

    Each sample draws as many seeds as there are, with replacement. What is drawn depends on the number of seeds and
    samples alone, so that methods stay paired. Few seeds drawn so differ too little from each other: with `n_pairs`,
    the number of intervals that are to hold at once, what the seeds do is stretched (`seed_stretch`).

    >>> seeds_resampled([[0.5, 0.75]])
    array([0.5 , 0.75])
    """
    values = np.asarray(samples, np.float64)
    n_seeds, n_samples = values.shape[:2]
    drawn = np.random.default_rng(n_seeds).integers(n_seeds, size=(n_seeds, n_samples))
    means = np.asarray(values[drawn, np.arange(n_samples)].mean(axis=0))
    if n_pairs is None or n_seeds == 1:
        return means
    middle = values.mean(axis=0)
    return np.asarray(middle + seed_stretch(n_seeds, n_pairs) * (means - middle))


@lru_cache(maxsize=64)
def seed_stretch(n_seeds: int, n_pairs: int) -> float:
    """By how much resampled seeds deviate too little: `sqrt(n / (n - 1)) t / z`, for n seeds.

    The root makes up for the variance, which resampling understates; t and z are the quantiles of Student's (with n - 1
    degrees of freedom) and of the normal distribution that `n_pairs` intervals of 95 % want at once (Bonferroni).

    >>> [round(seed_stretch(n, 1), 2) for n in (2, 5, 100)]
    [9.17, 1.58, 1.02]
    """
    share = 1 - (1 - LEVEL) / (2 * n_pairs)
    return math.sqrt(n_seeds / (n_seeds - 1)) * _t_quantile(share, n_seeds - 1) / NormalDist().inv_cdf(share)


def _t_quantile(share: float, freedom: int) -> float:
    """The quantile above the median of Student's distribution: with x = sqrt(freedom) tan a, its tail is an integral.

    P(X > x) is proportional to the integral of cos(a)^(freedom - 1) from arctan(x / sqrt(freedom)) to pi / 2.
    """
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    steps = (np.arange(2000) + 0.5) / 2000
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        start = (low + high) / 2
        tail = scale * (math.pi / 2 - start) * float((np.sin((math.pi / 2 - start) * steps) ** (freedom - 1)).mean())
        low, high = (start, high) if tail > 1 - share else (low, start)
    return math.sqrt(freedom) * math.tan((low + high) / 2)


def half_widths(samples: ArrayLike) -> Array:
    """Half the widths of intervals for the differences of all pairs of methods that hold all at once, (n, n).

    Each is `c se_ij`, where se_ij is the standard deviation of the difference over bootstrap samples, and c the 95 %
    quantile of the largest |difference - its mean| / se_ij of all pairs (the max statistic; Westfall and Young 1993).
    Whichever methods are picked after looking at the figures, the best and the next, say, their interval holds.
    `samples` has a figure of each method in each bootstrap sample, (n, n_samples), paired between methods.

    >>> half_widths([[0.0, 1.0], [0.0, 0.0]]).round(2)
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    values = np.asarray(samples, np.float64)
    off = values - values.mean(axis=1, keepdims=True)
    pairs = off[:, None] - off[None]  # (n, n, n_samples)
    errors = np.asarray(pairs.std(axis=2))
    shares = np.abs(pairs) / np.where(errors > 0, errors, 1)[:, :, None]
    return np.asarray(errors * np.quantile(shares.max(axis=(0, 1)), LEVEL))
