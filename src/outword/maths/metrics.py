"""AUROC, AUPR and FPR at a given TPR, from (id_scores, ood_scores); higher means more in-distribution."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from outword.errors import InputError, ParameterError
from outword.maths.numerics import Array

__all__ = ["aupr", "auroc", "fpr_at_tpr", "threshold_at_tpr"]

Positive = Literal["id", "ood"]


def scores(values: ArrayLike, name: str) -> Array:
    """The scores as float64, (n_images,); raise where there are none, where one is NaN, or where they are no vector."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) == 0 or np.isnan(array).any():
        raise InputError(
            f"{name} must be a non-empty one-dimensional array without NaN, got shape {array.shape}",
            hint="score at least one image, and leave out the rows with an error",
        )
    return array


def _both(id_scores: ArrayLike, ood_scores: ArrayLike, positive: Positive) -> tuple[Array, Array]:
    """(positives, negatives), oriented so that positives should be the larger ones."""
    inside, outside = scores(id_scores, "id_scores"), scores(ood_scores, "ood_scores")
    if positive not in ("id", "ood"):
        raise ParameterError(f'positive must be "id" or "ood", got {positive!r}', hint="the paper's convention is id")
    return (inside, outside) if positive == "id" else (-outside, -inside)


def auroc(id_scores: ArrayLike, ood_scores: ArrayLike) -> float:
    """Probability that an ID score is above an OOD score; ties count one half.

    >>> auroc([3.0, 2.0], [1.0, 2.0])
    0.875
    """
    inside, outside = _both(id_scores, ood_scores, "id")
    inside, outside = np.sort(inside), np.sort(outside)  # sorted keys are found much faster, too
    below = np.searchsorted(outside, inside, side="left")
    not_above = np.searchsorted(outside, inside, side="right")
    return float((below + not_above).mean() / (2 * len(outside)))


def aupr(id_scores: ArrayLike, ood_scores: ArrayLike, *, positive: Positive = "id") -> float:
    """Average precision, `sum_k (R_k - R_{k-1}) P_k` over distinct thresholds.

    >>> aupr([3.0, 2.0], [1.0])
    1.0
    """
    good, bad = _both(id_scores, ood_scores, positive)
    thresholds, counts = np.unique(good, return_counts=True)
    true = np.cumsum(counts[::-1])[::-1]
    false = len(bad) - np.searchsorted(np.sort(bad), thresholds, side="left")
    return float((counts * (true / (true + false))).sum() / len(good))


def fpr_at_tpr(id_scores: ArrayLike, ood_scores: ArrayLike, tpr: float = 0.95, *, positive: Positive = "id") -> float:
    """Share of negatives accepted at the highest threshold that accepts at least `tpr` of the positives.

    `positive="id"` (this paper, MCM, NegLabel, CSP): OOD accepted when 95 % of ID is accepted.
    `positive="ood"` (OpenOOD v1.5, pytorch-ood): ID rejected when 95 % of OOD is caught. The two differ: name yours.

    The rule for the threshold matters, too, where positives are few. MCM's released code, and what descends from it,
    takes the share nearest to `tpr`, be it below, and of the thresholds with that share the lowest: 8 points more at 50
    positives in `benchmarks/fpr95.py`, 0.01 at 50,000.

    >>> fpr_at_tpr([1.0, 2.0, 3.0, 4.0], [0.0, 1.5, 2.5, 0.5], tpr=0.75)
    0.25
    """
    good, bad = _both(id_scores, ood_scores, positive)
    return float((bad >= threshold_at_tpr(good, tpr)).mean())


def threshold_at_tpr(id_scores: ArrayLike, tpr: float) -> float:
    """The highest threshold `t` for which at least `tpr` of the scores are `>= t`.

    >>> threshold_at_tpr([1.0, 2.0, 3.0, 4.0], 0.75)
    2.0
    """
    values = scores(id_scores, "id_scores")
    place = len(values) - accepted(tpr, len(values))
    return float(np.partition(values, place)[place])


def accepted(tpr: float, n: int) -> int:
    """The least number of `n` scores that is at least `tpr` of them.

    >>> accepted(0.95, 20), accepted(0.95, 21)
    (19, 20)
    """
    if not 0 < tpr <= 1:
        raise ParameterError(f"tpr must be above 0 and at most 1, got {tpr}", hint="0.95 is usual")
    return int(np.ceil(tpr * n * (1 - 1e-12)))  # 0.07 * 100 is 7.000000000000001 in binary
