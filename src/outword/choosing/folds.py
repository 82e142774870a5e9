"""Nested validation: photos in folds, methods fitted without some of them, and what a choice among methods is worth.

The choice. Photos are dealt into five folds, every method scores each photo as fitted without its fold, and the one
with the best AUROC is taken. What the choice costs is seen by making it five times with four folds, and judging the
photos of the fifth. That takes each method fitted without one fold, and without two: 15 fits.

The threshold. The chosen method is fitted again, each time without a twentieth of the photos, so that it is nearly what
it will be; the threshold comes from the scores of the photos that were left out. In the end it is fitted on all.

What to expect. Photos of other things are never fitted on, so the detector itself scores them, as it scores new ones.
Photos of the classes are counted by the scores that the threshold came from. See `expected` for the intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from outword.base.reports import Report, Say
from outword.choosing.cell import Cell
from outword.choosing.compare import INSIDE, none_applies
from outword.choosing.photos import Indices, Photos, numbered
from outword.detector.calibration import threshold_from_scores
from outword.detector.detector import Detector
from outword.detector.fitting import LabelCache, prepare
from outword.detector.recipe import Recipe
from outword.errors import OutwordError
from outword.maths.kernels.threads import blas
from outword.maths.methods import DETECTORS, Need
from outword.maths.metrics import auroc
from outword.maths.numerics import Array
from outword.maths.reference import balanced_cut
from outword.maths.thresholds import fit_threshold, share_bounds
from outword.vectors.id_images import IdImages
from outword.words.labels import Label

FOLDS = 5
PARTS = 20  # of the photos that a threshold comes from
LEVEL = 0.9  # of intervals
Out = frozenset[int]  # folds that a method was fitted without
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Share:
    """A share of some photos, and where it lies for all photos like them with 90 % confidence."""

    value: float
    low: float
    high: float
    n: int  # photos that were counted

    @classmethod
    def of(cls, flags: Flags, mean: float, lost: float = 0.0, shift: float = 0.0, chosen: int = 1) -> Share:
        """The share of photos that are judged right, less what the choice of the method has lost.

        The interval is that of Clopper and Pearson (`share_bounds`), with one photo fewer below, since the threshold
        was set at one of them. `lost` moves its lower end, and `shift` the end on that side: by so much the share may
        move as the method is fitted on more photos. `mean` is the value before anything was lost. With several methods
        `chosen`, the interval holds for all of them at once (Bonferroni).
        """
        n, count = len(flags), int(flags.sum())
        confidence = 1 - (1 - LEVEL) / chosen
        low = share_bounds(n, max(count - 1, 0), confidence)[0] - lost + min(shift, 0.0)
        high = share_bounds(n, count, confidence)[1] + max(shift, 0.0)
        low, high = max(0.0, low), min(1.0, high)
        value = min(max(mean - lost, low), high)
        return cls(value, low, high, n)

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f})"


@dataclass(frozen=True)
class Candidate:
    """What a method does on photos that neither it nor its cut had seen."""

    name: str
    auroc: float
    tpr: float
    tnr: float


@dataclass(frozen=True)
class Trial:
    """A method, and its scores of the photos of some folds as it was fitted without these."""

    name: str
    recipe: Recipe
    folds: tuple[Indices, Indices]  # of each photo of the classes, and of other things
    runs: Mapping[Out, tuple[Array, Array]]  # NaN for the photos that it was fitted on

    def held_out(self, fold: int, without: int | None = None) -> tuple[Array, Array]:
        """Scores of the photos of a fold, by the method as fitted without that and perhaps another one."""
        scores = self.runs[frozenset({fold} if without is None else {fold, without})]
        inside, outside = (own[of == fold] for own, of in zip(scores, self.folds, strict=True))
        return inside, outside

    def unseen(self, without: int | None = None) -> tuple[Array, Array]:
        """Scores of all photos, or of all but a fold's, each by the method as fitted without its fold (and that)."""
        scores = [self.held_out(fold, without) for fold in range(FOLDS) if fold != without]
        inside, outside = map(np.concatenate, zip(*scores, strict=True))
        return inside, outside

    def candidate(self, tpr: float | None) -> Candidate:
        """What it does alone."""
        inside, outside = _judged([self] * FOLDS, tpr)
        return Candidate(self.name, auroc(*self.unseen()), float(inside.mean()), float(outside.mean()))


@dataclass(frozen=True)
class Final:
    """The threshold of the chosen method, the scores that it came from, and those by the method in the end."""

    inside: Array  # of photos of the classes, each by the method as fitted without its part
    outside: Array  # of other things, by the same methods
    in_the_end: Array  # of other things, by the method as fitted on all photos of the classes
    cut: float


class Dealt:
    """Photos dealt into folds: one after the other, those of a class together, so that each fold has its share."""

    def __init__(self, labels: dict[str, Label], inside: IdImages, outside: Photos) -> None:
        self._labels, self._fit_on, self._outside = labels, inside, outside
        n = len(inside.vectors)
        by_class = np.arange(n) if inside.classes is None else np.argsort(inside.classes, kind="stable")
        self._folds = _dealt(by_class, FOLDS), np.arange(len(outside.vectors)) % FOLDS
        parts = min(PARTS, n)
        self._parts = _dealt(by_class, parts), np.arange(len(outside.vectors)) % parts
        self._inside = numbered(INSIDE, inside.vectors)
        self._cache: LabelCache = {}

    def trials(self, recipes: Mapping[str, Recipe], report: Report, tell: Say) -> list[Trial]:
        """Every method that can be fitted and gives scores, in the order of the list of methods."""
        found, order = list[Trial](), [*DETECTORS]
        for name, recipe in recipes.items():
            try:
                trial = Trial(name, recipe, self._folds, self._runs(name, recipe, report))
                auroc(*trial.unseen())  # no score is NaN
            except OutwordError as error:
                tell(f"left out: {name}: {error.message}")
            else:
                found.append(trial)
        if not found:
            raise none_applies()
        return sorted(found, key=lambda trial: order.index(trial.recipe.method))

    def _runs(self, name: str, recipe: Recipe, report: Report) -> dict[Out, tuple[Array, Array]]:
        """The scores of a method; one that looks at no photos is fitted once for all."""
        outs = [frozenset(some) for size in (1, 2) for some in combinations(range(FOLDS), size)]
        if Need.ID_IMAGES not in recipe.wants:
            report(name, 0, 1)
            return dict.fromkeys(outs, self._scores(recipe, np.ones(len(self._folds[0]), bool), report))
        runs = {}
        for done, out in enumerate(outs):
            report(name, done, len(outs))
            runs[out] = self._scores(recipe, np.isin(self._folds[0], [*out]), report)
        return runs

    def _scores(self, recipe: Recipe, held: Flags, report: Report) -> tuple[Array, Array]:
        """Scores of a method as fitted without some of the photos: of these, and of all of other things."""
        rows, rest = np.flatnonzero(held), np.flatnonzero(~held)
        fit_on = self._fit_on.some(rest, [*self._labels]) if len(rest) else None
        with blas:  # so that no sum hangs on the number of threads
            cell = Cell(recipe, self._labels, self._inside, rows, [self._outside], fit_on)
            measured = cell.measure(self._cache, report)
        inside = np.full(len(held), np.nan)
        inside[rows] = measured.inside(self._outside.name)
        return inside, measured.outside(self._outside.name)

    def _unseen(self, best: Trial, report: Report) -> tuple[Array, Array]:
        """Scores of all photos, each by the method as fitted without its part."""
        if Need.ID_IMAGES not in best.recipe.wants:
            return best.unseen()
        own, others = self._parts
        parts = int(own.max()) + 1
        inside, outside = np.empty(len(own)), np.empty(len(others))
        for part in range(parts):
            report(f"{best.name}: threshold", part, parts)
            scored = self._scores(best.recipe, own == part, report)
            inside[own == part] = scored[0][own == part]
            outside[others == part] = scored[1][others == part]
        return inside, outside

    def calibrated(self, best: Trial, tpr: float | None, report: Report) -> tuple[Detector, Final, list[str]]:
        """The method fitted on all photos, with a cut by their scores as long as it had not seen them; and warnings."""
        unseen = self._unseen(best, report)
        fit_on = self._fit_on if Need.ID_IMAGES in best.recipe.wants else None
        with blas:
            made = prepare(best.recipe, self._labels, id_images=fit_on, report=report, label_cache=self._cache)
            detector = made.finish(report=report)
            in_the_end = detector.scorer.score(self._outside.vectors)
        inside, outside = (scores.tolist() for scores in unseen)
        threshold, warnings = threshold_from_scores(inside, outside, tpr, "quantile", detector.reference_scores)
        detector.calibration_ = threshold
        told = [warning for warning in warnings if warning != threshold.warning]
        return detector, Final(*unseen, in_the_end, threshold.value), told


def promised(detector: Detector, tpr: Share) -> str:
    """Give the threshold the interval of its TPR that counts the choice of the method, too; returns its warning."""
    assert detector.calibration_ is not None
    detector.calibration_ = replace(detector.calibration_, low=tpr.low, high=tpr.high)
    return detector.calibration_.warning


def _dealt(order: Indices, hands: int) -> Indices:
    """Which hand each photo is dealt to, one after the other in this order."""
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order)) % hands
    return found


def best_of(tried: Sequence[Trial], without: int | None = None) -> Trial:
    """The method that ranks the photos best, all or those of all folds but one; among equals the first."""
    return max(tried, key=lambda trial: auroc(*trial.unseen(without)))


def expected(best: Trial, choices: Sequence[Trial], final: Final, tpr: float | None) -> tuple[Share, Share]:
    """TPR and TNR to be expected of the best method with its threshold, with 90 % intervals.

    TNR is counted on the scores in the end, TPR on those that the threshold came from. Both know of

    * the photos, which are few (Clopper and Pearson 1934);
    * the choice: what the methods that were chosen without a fold do worse on its photos than the best method, with
      thresholds from the other folds, is lost; and TNR holds for all methods that were chosen at once;
    * TPR alone of the photos that the method is fitted on in the end, and that it lacked before: it may move as it does
      from three fifths of the photos to four, which is more than from nineteen twentieths to all.
    """
    inside, outside = final.inside >= final.cut, final.in_the_end < final.cut
    pairs = zip(_judged([best] * FOLDS, tpr), _judged(choices, tpr), strict=True)
    lost = [max(0.0, float(alone.mean() - chosen.mean())) for alone, chosen in pairs]
    beyond = 0 if tpr is None else 1  # a threshold at the k-th highest of n scores accepts k / (n + 1) on average
    mean = int(inside.sum()) / (len(inside) + beyond)
    own = Share.of(inside, mean, lost[0], _shift(best, tpr))
    chosen = {trial.name for trial in (best, *choices)}
    return own, Share.of(outside, float(outside.mean()), lost[1], chosen=len(chosen))


def _judged(choices: Sequence[Trial], tpr: float | None) -> tuple[Flags, Flags]:
    """Which verdicts are right, by the method that was chosen without a photo's fold, with a cut from the others."""
    right: list[tuple[Flags, Flags]] = []
    for fold, trial in enumerate(choices):
        (inside, outside), cut = trial.held_out(fold), _cut(*trial.unseen(fold), tpr)
        right.append((inside >= cut, outside < cut))
    own, others = map(np.concatenate, zip(*right, strict=True))
    return own, others


def _cut(inside: Array, outside: Array, tpr: float | None) -> float:
    """The threshold that `threshold_from_scores` finds."""
    return balanced_cut(outside, inside) if tpr is None else fit_threshold(inside, tpr, others=outside).value


def _shift(best: Trial, tpr: float | None) -> float:
    """How TPR moves at the same threshold, as the method is fitted on four folds in place of three."""
    moved = []
    for fold in range(FOLDS):
        cut = _cut(*best.unseen(fold), tpr)
        before = [best.held_out(fold, other)[0] >= cut for other in range(FOLDS) if other != fold]
        moved.append((best.held_out(fold)[0] >= cut).mean() - np.mean(before))
    return float(np.mean(moved))
