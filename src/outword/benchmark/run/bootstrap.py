"""How sure a figure is: AUROC and FPR95 of bootstrap samples of the images, paired between methods."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword.base.checks import whole_number
from outword.base.files import sha256_bytes
from outword.maths.metrics import accepted, scores
from outword.maths.numerics import Array

TPR = 0.95
LEVEL = 0.95  # of intervals


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
    values, ranks = np.unique(scores(inside, "inside"), return_inverse=True)
    sets = {name: _Placed(values, scores(one, f"outside[{name!r}]")) for name, one in outside.items()}
    places = _places(ranks, rows, n_all)
    rngs = {name: _rng(seed, f"ood/{name}", one.n) for name, one in sets.items()}
    found = {name: np.empty((n_samples, 2)) for name in sets}
    for sample in range(n_samples):
        drawn = _drawn(places, _rng(seed, f"id/{sample}", len(places)))
        counts = np.bincount(drawn, minlength=len(values))
        below = np.concatenate(([0], np.cumsum(counts)))  # below[i]: how many drawn ID scores are less than values[i]
        missed = len(drawn) - accepted(TPR, len(drawn))
        threshold = int(np.searchsorted(below, missed, side="right")) - 1  # the highest that accepts enough
        for name, one in sets.items():
            found[name][sample] = one.figures(rngs[name].integers(one.n, size=one.n), below, threshold)
    return found


def _places(ranks: NDArray[np.int64], rows: ArrayLike | None, n_all: int | None) -> NDArray[np.int64]:
    """The rank of each ID image, -1 for those that were not scored."""
    if rows is None:
        return ranks
    places = np.full(len(ranks) if n_all is None else n_all, -1, np.int64)
    places[np.asarray(rows, np.int64)] = ranks
    return places


def _drawn(places: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Ranks of the images of a sample that were scored; a sample without any is drawn again."""
    while True:
        drawn = places[rng.integers(len(places), size=len(places))]
        if (scored := drawn[drawn >= 0]).size:
            return scored


class _Placed:
    """The scores of an OOD set, by the number of distinct ID scores that are less, or not greater."""

    def __init__(self, values: Array, outside: Array) -> None:
        self.n = len(outside)
        self._less = np.searchsorted(values, outside, side="left")
        self._not_greater = np.searchsorted(values, outside, side="right")

    def figures(self, drawn: NDArray[np.int64], below: NDArray[np.int64], threshold: int) -> tuple[float, float]:
        """AUROC and FPR95 of the OOD images that were drawn."""
        less, not_greater = self._less[drawn], self._not_greater[drawn]
        pairs = int(below[-1]) * self.n
        lost = int(below[less].sum()) + int(below[not_greater].sum())  # a tie is lost by half
        return 1 - lost / (2 * pairs), np.count_nonzero(not_greater > threshold) / self.n


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


def seeds_resampled(samples: ArrayLike) -> Array:
    """Mean over seeds, (n_samples, ...), of figures of each seed in each bootstrap sample, (n_seeds, n_samples, ...).

    Each sample draws as many seeds as there are, with replacement. What is drawn depends on the number of seeds and
    samples alone, so that methods stay paired.

    >>> seeds_resampled([[0.5, 0.75]])
    array([0.5 , 0.75])
    """
    values = np.asarray(samples, np.float64)
    n_seeds, n_samples = values.shape[:2]
    drawn = np.random.default_rng(n_seeds).integers(n_seeds, size=(n_seeds, n_samples))
    return np.asarray(values[drawn, np.arange(n_samples)].mean(axis=0))


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
