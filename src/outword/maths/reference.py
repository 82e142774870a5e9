"""Scores of photos that show none of the classes, the reference: p-values, and cuts that look at it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword.errors import ParameterError
from outword.maths.metrics import scores as checked
from outword.maths.numerics import Array

FPR = 0.05  # one unrelated photo in twenty gets in


def p_values(scores: ArrayLike, reference: ArrayLike) -> Array:
    """How unusual each score would be among unrelated photos: `p = (1 + #{i : r_i >= s}) / (n + 1)`.

    Guaranteed: for a photo that is exchangeable with the n reference photos, `P(p <= a) <= a` for every a, every n and
    every distribution of scores, ties included. The probability is over the reference and the photo together: with
    one reference at hand, the share of unrelated photos with `p <= a` lies around a, by about `sqrt(a (1 - a) / n)`
    (Vovk et al. 2005). The p-values of several photos share one reference, so they are dependent (Bates et al. 2023):
    each by itself keeps the promise, and no count of them has a promise of its own.

    Not guaranteed: for photos of another kind than the reference; for photos that were chosen by looking at their
    scores; and where the method, its parameters or the labels were chosen by what they do on the reference. A small p
    speaks against "this is an unrelated photo like those", and is not the probability that it is one.

    Args:
        scores: (n_images,), higher means more in-distribution.
        reference: (n,), sorted ascending; with none of them every p is 1.

    >>> p_values([0.5, 2.0, 9.0], [1.0, 2.0, 3.0])
    array([1.  , 0.75, 0.25])
    """
    known = np.asarray(reference, dtype=np.float64)
    below = np.searchsorted(known, np.asarray(scores, dtype=np.float64), side="left")
    return np.asarray((1 + len(known) - below) / (len(known) + 1))


def ladder(reference: ArrayLike, most: int = 48) -> list[tuple[float, float]]:
    """At most so many scores of the reference with their p-values: scores rise, p falls in about even ratios.

    For an axis on which unrelated photos do not crowd; between two of them a straight line in log p will do.

    >>> ladder([1.0, 2.0, 3.0, 4.0], most=2)
    [(1.0, 1.0), (0.4, 4.0)]
    """
    known = np.sort(np.asarray(reference, dtype=np.float64))
    known = known[np.isfinite(known)]
    if not len(known):
        return []
    ranks = np.geomspace(1, len(known), most).round().astype(int)
    scores = np.unique(known[len(known) - ranks])
    return list(zip(p_values(scores, known).tolist(), scores.tolist(), strict=True))


def look_unrelated(scores: ArrayLike, reference: ArrayLike) -> NDArray[np.bool_]:
    """Whether each photo scores like an unrelated one: more than a share of 0.05 of those score as high (`p_values`).

    >>> look_unrelated([0.0, 99.0], np.arange(40.0))
    array([ True, False])
    """
    return p_values(scores, reference) > FPR


def share_let_in(reference: ArrayLike, cut: float) -> float:
    """The share of some scores, one at least, that is at least `cut`.

    >>> share_let_in([1.0, 2.0, 3.0, 4.0], 3.0)
    0.5
    """
    return float((checked(reference, "reference") >= cut).mean())


def reference_cut(reference: ArrayLike, fpr: float = FPR) -> float:
    """The smallest cut that lets at most a share `fpr` of the reference in; scores that are at least the cut are in.

    It is the next number above the highest score that has to stay out, so scores that are equal stay out together. A
    new photo that is exchangeable with the n of the reference gets in with a probability of at most
    `(floor(fpr n) + 1) / (n + 1)`; see `p_values` for what that says.

    >>> round(reference_cut([1.0, 2.0, 3.0, 4.0], 0.25), 6)
    3.0
    """
    values = np.sort(checked(reference, "reference"))
    if not 0 <= fpr < 1:
        raise ParameterError(f"fpr must be at least 0 and under 1, got {fpr}", hint="0.05 is usual")
    let_in = math.floor(fpr * len(values) * (1 + 1e-12))  # 0.29 * 100 is 28.999999999999996 in binary
    return float(np.nextafter(values[-1 - let_in], np.inf))


def lower_cut(reference: ArrayLike, pseudo: ArrayLike, fpr: float = FPR) -> tuple[float, bool]:
    """The lower of `balanced_cut` and `reference_cut`, and whether it is the balanced one.

    So no more photos of the classes are kept out than a share `fpr` of let in reference photos asks for: where both
    errors would be smaller than that, the balanced cut is stricter than anybody needs, since the photos that it was
    made with are of other labels than the user's. Where the errors are larger, they are balanced.

    >>> lower_cut([0.0, 1.0, 2.0, 3.0], [7.0, 8.0], fpr=0.25)
    (2.0000000000000004, False)
    >>> lower_cut([0.0, 1.0, 2.0, 3.0], [0.5, 7.0], fpr=0.25)  # half of both are wrong from 1 to 2
    (1.5, True)
    """
    balanced, allowed = balanced_cut(reference, pseudo), reference_cut(reference, fpr)
    return (balanced, True) if balanced <= allowed else (allowed, False)


def balanced_cut(reference: ArrayLike, pseudo: ArrayLike) -> float:
    """The cut with equal errors: the share of the reference let in is the share of pseudo-ID photos kept out.

    The one falls with the cut and the other rises. Where they are equal between two scores, all cuts between these
    are, and the middle is taken: of two sides that do not overlap, the middle of the gap. Where they cross at a score
    without being equal, that score, or the number above it, is the cut, whichever leaves the smaller difference. So
    scores that change by some amount move the cut by no more than that.

    >>> balanced_cut([0.0, 1.0, 2.0], [4.0, 5.0])
    3.0
    >>> balanced_cut([0.0, 1.0, 2.0, 5.0], [3.0, 4.0, 6.0, 7.0])  # one of four is wrong on both sides
    3.5
    """
    outside, inside = np.sort(checked(reference, "reference")), np.sort(checked(pseudo, "pseudo"))
    edges = np.unique(np.concatenate([outside, inside]))
    # cuts above one edge and up to the next make the same mistakes; they are counted in whole numbers, without rounding
    let_in = (len(outside) - np.searchsorted(outside, edges)) * len(inside)
    kept_out = np.searchsorted(inside, edges) * len(outside)
    surplus = np.append(let_in - kept_out, -len(inside) * len(outside))  # falls; the last is that of cuts above all
    low, high = edges[np.flatnonzero(surplus > 0)[-1]], edges[np.flatnonzero(surplus < 0)[0] - 1]
    if low < high:
        return float(low + (high - low) / 2)
    at = int(np.searchsorted(edges, low))
    return float(low if surplus[at] <= -surplus[at + 1] else np.nextafter(low, np.inf))
