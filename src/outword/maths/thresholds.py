"""Thresholds: from ID photos (quantile, split conformal, balanced), unrelated photos, marks, or by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from outword.base.records import read_record
from outword.base.terms import Basis
from outword.errors import InputError, ParameterError
from outword.maths.metrics import scores as checked
from outword.maths.metrics import threshold_at_tpr
from outword.maths.numerics import Array
from outword.maths.reference import FPR, balanced_cut, lower_cut, reference_cut, share_let_in

CalibrationMethod = Literal["quantile", "conformal"]
ReferenceMethod = Literal["reference", "batch"]
FEWEST = 5
MARGIN = 1e-3  # of the range of the scores
WIDE = 0.1  # the share of the reference above which a threshold of the user's own is said to let much in


@dataclass(frozen=True)
class Threshold:
    """A threshold and where it comes from; an image is `in` when its score is at least `value`."""

    value: float  # minus infinity accepts everything
    method: CalibrationMethod | ReferenceMethod | Literal["imagined", "balanced", "marks", "hand"]
    tpr: float | None  # the target share of ID images to accept; of marks, balanced and pseudo-ID, the share accepted
    n_photos: int  # of the classes, that it was fitted on; of a reference, its pseudo-ID photos
    low: float  # with 90 % confidence, the true TPR at this threshold lies between `low` ...
    high: float  # ... and `high`
    n_others: int = 0  # photos of other things that it was fitted on
    margin: float = 0.0  # how far `value` lies under the score that it was found at, as devices round by the batch
    fpr: float | None = None  # the share of the reference that it lets in, where there is one
    target_fpr: float | None = None  # the share that was asked for; None where both errors are balanced
    n_reference: int = 0  # photos of the reference that show none of the classes
    n_asked: int = 0  # photos asked about that refined an imagined threshold

    @property
    def basis(self) -> Basis:
        """What it rests on: "calibrated" where someone brought photos or a number, else what it was estimated from."""
        return self.method if self.method in ("reference", "imagined", "batch") else "calibrated"

    @property
    def told(self) -> str:
        """How it was found, in words."""
        if self.method == "hand":
            return "set by hand"
        if self.method == "imagined":
            refined = f", refined by {self.n_asked:,} of the photos asked about" if self.n_asked else ""
            return f"from {self.n_photos:,} photos imagined from names{refined}"
        if self.method == "marks":
            return f"from marks: {self.n_photos} of the classes, {self.n_others} of other things"
        if self.method == "balanced":
            return f"both errors equal on {self.n_photos:,} photos of the classes and {self.n_others:,} of other things"
        if self.method in get_args(ReferenceMethod):
            whose = "unrelated photos" if self.method == "reference" else "photos of this batch that look unrelated"
            if self.target_fpr is None:
                counts = f"{self.n_reference:,} unrelated and {self.n_photos:,} labelled reference photos"
                return f"both errors equal on {counts}"
            unknown = "" if self.method == "reference" else "; how many unrelated photos get in is not known"
            return f"lets in {100 * self.target_fpr:.3g}% of {self.n_reference:,} {whose}{unknown}"
        others = f" and {self.n_others} of other things" if self.n_others else ""
        return f"{self.method} at a TPR of {self.tpr:.0%} from {self.n_photos} photos{others}"

    @property
    def warning(self) -> str:
        """What the user should know: that there are few photos, or that much of the reference gets in; else empty."""
        if self.basis != "calibrated":
            return ""
        wide = self.fpr is not None and self.fpr > WIDE
        much = f"it lets in {self.fpr:.0%} of {self.n_reference:,} unrelated photos" if wide else ""
        return "; ".join(filter(None, [self._uncertain, much]))

    @property
    def _uncertain(self) -> str:
        """What few photos leave open; empty when the interval is narrower than 0.1."""
        if self.method == "hand":
            return ""
        if self.value == -math.inf and self.tpr is not None:
            need = math.ceil(1 / (1 - self.tpr)) - 1 if self.tpr < 1 else 0
            advice = f"bring at least {need} photos" if need else "a tpr of 1 can promise nothing less"
            return f"{self.n_photos} photos cannot guarantee a TPR of {self.tpr}: everything is accepted; {advice}"
        if self.high - self.low < 0.1:
            return ""
        if not self.n_photos:
            return "no photo of the classes is among them: nothing is known of how many of those it accepts"
        return (
            f"{self.n_photos} photo{'s leave' if self.n_photos > 1 else ' leaves'} the threshold uncertain: "
            f"the true TPR lies between {self.low:.2f} and {self.high:.2f} with 90 % confidence"
        )


def fit_threshold(
    scores: ArrayLike, tpr: float | None = 0.95, method: CalibrationMethod = "quantile", others: ArrayLike = ()
) -> Threshold:
    """The threshold that accepts a share `tpr` of ID images, from the scores of at least five ID photos.

    * "quantile": the highest threshold that accepts `tpr` of the photos given.
    * "conformal": the k-th smallest score with `k = floor((n + 1) (1 - tpr))`. For a new ID image exchangeable with
      the n photos, `P(score >= threshold) >= tpr`, for every n and every distribution (split conformal prediction;
      Vovk et al. 2005; for OOD detection Bates et al. 2023). The probability is over photos and image together.

    Both lie under that by a margin, a thousandth of the range of the scores, but no more than half of the way to the
    next lower score: a photo whose score decided is accepted again on a device that rounds otherwise in another batch.

    With `others`, scores of photos of other things, `tpr` holds as before, as few of the others are accepted as that
    allows, and then as many of the photos as possible: the threshold may be lower, as long as no other one gets in.
    A `tpr` of None balances both errors instead (`fit_balanced`).

    >>> fit_threshold([1.0, 2.0, 3.0, 4.0, 5.0], tpr=0.8).value
    1.996
    >>> fit_threshold([1.0, 2.0, 3.0, 4.0, 5.0], tpr=0.8, method="conformal").value
    0.996
    >>> fit_threshold([1.0, 2.0, 3.0, 4.0, 5.0], tpr=0.4, others=[-2.0, 2.5, 9.0]).value  # 9 cannot be kept out
    2.989
    """
    values = np.sort(np.asarray(scores, dtype=np.float64))
    n = len(values)
    if values.ndim != 1 or n < FEWEST or np.isnan(values).any():
        raise InputError(
            f"calibration needs at least {FEWEST} readable ID photos, got {n}", hint="bring more ID photos"
        )
    if tpr is None:
        return fit_balanced(values, others)
    if method == "quantile":
        value = threshold_at_tpr(values, tpr)
        rank = int((values < value).sum()) + 1
    elif method == "conformal":
        if not 0 < tpr <= 1:
            raise ParameterError(f"tpr must be above 0 and at most 1, got {tpr}", hint="0.95 is usual")
        rank = math.floor((n + 1) * (1 - tpr) + 1e-9)
        value = float(values[rank - 1]) if rank else -math.inf
    else:
        raise ParameterError(f'method must be "quantile" or "conformal", got {method!r}', hint='use "quantile"')
    low, high = tpr_interval(n, rank) if rank else (1.0, 1.0)
    margin = _margin(values, value)
    found = Threshold(value - margin, method, tpr, n, low, high, margin=margin)
    return _lowered(found, value, values, checked(others, "others")) if np.size(others) else found


def _lowered(found: Threshold, highest: float, values: Array, others: Array) -> Threshold:
    """See `fit_threshold`: the lowest of the sorted scores that lets no more of the others in than the highest does."""
    if highest == -math.inf:
        return replace(found, n_others=len(others))
    kept_out = others[others < highest].max(initial=-math.inf)
    score = float(values[values > kept_out][0])
    margin = _margin(np.sort(np.concatenate([values, others])), score)
    low, high = share_bounds(len(values), int((values >= score).sum()))
    return replace(found, value=score - margin, margin=margin, low=low, high=high, n_others=len(others))


def _margin(ordered: Array, value: float) -> float:
    """See `fit_threshold`; scores that are all equal have none."""
    below = ordered[ordered < value]
    gap = (value - below[-1]) / 2 if len(below) else math.inf
    return float(min(MARGIN * (ordered[-1] - ordered[0]), gap)) if math.isfinite(value) else 0.0


def fit_marks(inside: ArrayLike, outside: ArrayLike, cut: float | None) -> Threshold:
    """The threshold that fits marks best: scores of photos that were said to show a class, and to show none.

    It makes the fewest mistakes on the marked photos. Among equals it is as near as can be to `cut`, the threshold
    before. If that has to move, it goes to the middle between the two marked scores around it, where there are two.
    `low` and `high` are those of a threshold that was chosen before the photos were seen (Clopper and Pearson 1934),
    so they promise a little too much. One mark in all is enough.

    >>> fit_marks([3.0, 4.0], [1.0], cut=0.5).value
    2.0
    """
    good, bad = (np.sort(np.asarray(side, dtype=np.float64)) for side in (inside, outside))
    if good.ndim != 1 or bad.ndim != 1 or not len(good) + len(bad) or not np.isfinite([*good, *bad]).all():
        raise InputError(
            f"marks must be finite scores, one at least, got {good.size} inside and {bad.size} outside",
            hint="mark a photo as yours or as not yours",
        )
    value = _fewest_mistakes(good, bad, cut)
    n, accepted = len(good), int((good >= value).sum())
    return Threshold(value, "marks", accepted / n if n else None, n, *share_bounds(n, accepted), len(bad))


def fit_balanced(inside: ArrayLike, outside: ArrayLike) -> Threshold:
    """The threshold with equal errors (`balanced_cut`) on photos of the classes and of other things.

    `low` and `high` are those of a threshold that was chosen before the photos were seen (Clopper and Pearson 1934),
    so they promise a little too much.

    >>> fit_balanced([3.0, 4.0, 5.0], [0.0, 1.0]).told
    'both errors equal on 3 photos of the classes and 2 of other things'
    """
    good, bad = checked(inside, "inside"), checked(outside, "outside")
    value = balanced_cut(bad, good)
    n, accepted = len(good), int((good >= value).sum())
    return Threshold(value, "balanced", accepted / n, n, *share_bounds(n, accepted), len(bad))


def share_bounds(n: int, accepted: int, confidence: float = 0.9) -> tuple[float, float]:
    """Where the true share lies, by default with 90 % confidence, of photos that are accepted as so many of n are.

    The interval of Clopper and Pearson (1934): it holds whatever the share is.

    >>> np.round(share_bounds(20, 20), 2).tolist()
    [0.86, 1.0]
    """
    tail = (1 - confidence) / 2
    low = _beta_quantile(n, n - accepted + 1, tail) if accepted else 0.0
    return low, _beta_quantile(n, n - accepted, 1 - tail) if accepted < n else 1.0


def _fewest_mistakes(good: Array, bad: Array, cut: float | None) -> float:
    """See `fit_marks`: between two neighbouring scores, all thresholds make the same mistakes."""
    edges = np.unique(np.concatenate([good, bad]))
    lows, highs = np.append(-np.inf, edges), np.append(edges, np.inf)  # a threshold t with low < t <= high
    mistakes = np.searchsorted(good, highs) + len(bad) - np.searchsorted(bad, highs)
    start = float(np.median(edges)) if cut is None else max(cut, float(edges[0]) - 1)  # minus infinity is lowest
    away = np.maximum(0, np.maximum(lows - start, start - highs))
    best = int(np.lexsort((away, mistakes))[0])
    low, high = float(lows[best]), float(highs[best])
    if cut is not None and (low < cut or math.isinf(low)) and cut <= high:
        return cut
    if math.isinf(low):
        return high
    return float(np.nextafter(low, math.inf)) if math.isinf(high) else low + (high - low) / 2


def fit_reference(
    reference: ArrayLike, pseudo: ArrayLike = (), fpr: float | None = None, method: ReferenceMethod = "reference"
) -> Threshold:
    """The threshold that the scores of unrelated photos give, and of pseudo-ID photos where there are any.

    Without `fpr` it is the lower of the cut that balances both errors and the one that lets in 0.05 of the reference
    (`lower_cut`); with `fpr`, or without pseudo-ID photos, it lets at most that share of the reference in, 0.05 unless
    said otherwise (`reference_cut`). `target_fpr` is None where both errors are balanced. `fpr` and `tpr` are then what
    it lets in of either: what is to be expected of photos like these, and nothing of others. Of a batch nothing is to
    be expected, as photos were left out of it by what they look like: its `fpr` is None.

    Args:
        reference: (n,), scores of photos that show none of the classes.
        pseudo: (m,), what photos of the classes would score, as far as that can be known without one.
        fpr: the share of the reference to let in.
        method: where the reference comes from: "batch" is the photos that are to be judged.

    >>> fit_reference([0.0, 1.0, 2.0], [0.5, 1.5]).told
    'both errors equal on 3 unrelated and 2 labelled reference photos'
    """
    unrelated, named = np.asarray(reference, dtype=np.float64), np.asarray(pseudo, dtype=np.float64)
    target: float | None = FPR if fpr is None else fpr
    if fpr is None and len(named):
        value, balanced = lower_cut(unrelated, named)
        target = None if balanced else FPR
    else:
        value = reference_cut(unrelated, FPR if fpr is None else fpr)
    tpr = share_let_in(named, value) if len(named) else None
    plain = Threshold(value, method, tpr, len(named), 0.0, 1.0, target_fpr=target)
    let_in = share_let_in(unrelated, value) if method == "reference" else None
    return replace(plain, fpr=let_in, n_reference=len(unrelated))


def measured(threshold: Threshold, reference: ArrayLike | None) -> Threshold:
    """The same threshold with the share of the reference that it lets in, which `warning` then looks at.

    >>> measured(by_hand(2.0), [1.0, 2.0, 3.0, 4.0]).warning
    'it lets in 75% of 4 unrelated photos'
    """
    if reference is None:
        return threshold
    return replace(threshold, fpr=share_let_in(reference, threshold.value), n_reference=np.size(reference))


def by_hand(value: float) -> Threshold:
    """A threshold that someone chose; nothing is known of its TPR.

    >>> by_hand(1.5).told
    'set by hand'
    """
    if not math.isfinite(value):
        raise ParameterError(f"threshold must be a finite number, got {value}", hint="choose one among the scores")
    return Threshold(float(value), "hand", None, 0, 0.0, 1.0)


def read_threshold(stored: Mapping[str, Any]) -> Threshold:
    """A threshold from the table that a saved detector has of it; `ValueError` or `TypeError` where it is none."""
    accepts_all = "value" in stored and stored["value"] is None
    found = read_record(Threshold, {**stored, "value": 0.0} if accepts_all else stored, "calibration")
    fitted = found.method in get_args(CalibrationMethod)
    if (fitted and found.tpr is None) or not 0 <= (found.tpr or 0) <= 1:
        raise ValueError("tpr must be a share between 0 and 1")
    if (found.basis in ("reference", "imagined") and found.fpr is None) or not 0 <= (found.fpr or 0) <= 1:
        raise ValueError("fpr must be a share between 0 and 1")
    if (
        not 0 <= (found.target_fpr or 0) < 1
        or min(found.n_photos, found.n_others, found.n_reference, found.n_asked) < 0
    ):
        raise ValueError("target_fpr must be a share under 1, and numbers of photos must not be negative")
    return replace(found, value=-math.inf) if accepts_all else found


def tpr_interval(n: int, rank: int) -> tuple[float, float]:
    """Where the true TPR lies, with 90 % confidence, when the threshold is the `rank`-th smallest of `n` ID scores.

    For continuous scores the TPR follows Beta(n - rank + 1, rank), whatever the distribution of the scores.
    """
    tail = (1 - 0.9) / 2
    return _beta_quantile(n, rank, tail), _beta_quantile(n, rank, 1 - tail)


def _beta_quantile(n: int, rank: int, probability: float) -> float:
    """Quantile of Beta(n - rank + 1, rank): the TPR p at which P(Binomial(n, p) > n - rank) = probability."""
    terms = [(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1), k) for k in range(n - rank + 1, n + 1)]
    low, high = 0.0, 1.0
    for _ in range(60):
        p = (low + high) / 2
        below = sum(math.exp(c + k * math.log(p) + (n - k) * math.log1p(-p)) for c, k in terms)
        low, high = (p, high) if below < probability else (low, p)
    return (low + high) / 2
