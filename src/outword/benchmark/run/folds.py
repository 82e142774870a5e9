"""Nested validation: photos in folds, methods fitted without some of them, and what a choice among methods is worth.

A procedure looks at some folds and gives a detector: it scores each photo by every method as fitted without the photo's
fold, takes the method with the best AUROC, cuts its scores, and fits it on all of these folds. What the procedure is
worth is told by giving it four folds and judging the photos of the fifth, five times; the detector is what it gives for
all five. So no photo is judged by a method, a choice or a cut that it had a part in. That takes each method fitted
without one fold, and without two: 15 fits, and one in the end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from outword.benchmark.run.catalogue import own_found
from outword.benchmark.run.compare import INSIDE, SEED, Tell, none_applies
from outword.benchmark.run.measure import Cell
from outword.benchmark.run.photos import Indices, Photos
from outword.benchmark.run.results import Place
from outword.benchmark.run.task import Task
from outword.detector.calibration import calibrated
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
from outword.vectors.wild import Report
from outword.words.labels import Label

FOLDS = 5
SAMPLES = 200  # of the bootstrap
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
    def of(cls, flags: Flags, moves: Array) -> Share:
        """The share that is true, with all that is left open: by the photos that were judged, and by the cut.

        The one is the interval of Clopper and Pearson (`share_bounds`). The other is how the share moves with cuts from
        other photos, `moves`, of which 5 % lie on either side. The distances are squared and added (MOVER; Zou and
        Donner 2008).
        """
        n, count = len(flags), int(flags.sum())
        value, (low, high), (down, up) = count / n, share_bounds(n, count), np.quantile(moves, [0.05, 0.95])
        least = value - math.hypot(value - low, min(down, 0.0))
        return cls(value, max(0.0, least), min(1.0, value + math.hypot(high - value, max(up, 0.0))), n)

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


class Dealt:
    """Photos dealt into folds: one after the other, those of a class together, so that each fold has its share."""

    def __init__(self, labels: dict[str, Label], inside: IdImages, outside: Photos) -> None:
        self._labels, self._fit_on, self._outside = labels, inside, outside
        n = len(inside.vectors)
        by_class = np.arange(n) if inside.classes is None else np.argsort(inside.classes, kind="stable")
        folds = np.empty(n, np.int64)
        folds[by_class] = np.arange(n) % FOLDS
        self._folds = folds, np.arange(len(outside.vectors)) % FOLDS
        self._inside = Photos(own_found(INSIDE, []), [*map(str, range(n))], inside.vectors, [])
        self._cache: LabelCache = {}

    def trials(self, recipes: Mapping[str, Recipe], report: Report, tell: Tell) -> list[Trial]:
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
            return dict.fromkeys(outs, self._scores(name, recipe, frozenset(range(FOLDS)), report))
        runs = {}
        for done, out in enumerate(outs):
            report(name, done, len(outs))
            runs[out] = self._scores(name, recipe, out, report)
        return runs

    def _scores(self, name: str, recipe: Recipe, out: Out, report: Report) -> tuple[Array, Array]:
        """Scores of a method as fitted without the photos of some folds: of these, and of all of other things."""
        held = np.isin(self._folds[0], [*out])
        rows, rest = np.flatnonzero(held), np.flatnonzero(~held)
        fit_on = self._fit_on.some(rest, [*self._labels]) if len(rest) else None
        place, task = Place(INSIDE, recipe.encoder.name, "", name), Task(self._labels, rows, fit_on)
        with blas:  # so that no sum hangs on the number of threads
            measured = Cell(place, recipe, task, self._inside, [self._outside]).measure(self._cache, report)
        inside = np.full(len(held), np.nan)
        inside[rows] = measured.inside(self._outside.name)
        return inside, measured.outside(self._outside.name)

    def calibrated(self, best: Trial, tpr: float | None, report: Report) -> tuple[Detector, list[str]]:
        """The method fitted on all photos, with a cut by their scores as long as it had not seen them; and warnings."""
        fit_on = self._fit_on if Need.ID_IMAGES in best.recipe.wants else None
        with blas:
            made = prepare(best.recipe, self._labels, id_images=fit_on, report=report, label_cache=self._cache)
            detector = made.finish(report=report)
        inside, outside = (dict(enumerate(scores.tolist())) for scores in best.unseen())
        others = {-1 - place: score for place, score in outside.items()}  # under keys of their own
        detector.calibration_, warnings = calibrated(inside, others, tpr, "quantile", detector.reference_scores)
        return detector, warnings


def best_of(tried: Sequence[Trial], without: int | None = None) -> Trial:
    """The method that ranks the photos best, all or those of all folds but one; among equals the first."""
    return max(tried, key=lambda trial: auroc(*trial.unseen(without)))


def expected(best: Trial, choices: Sequence[Trial], tpr: float | None) -> tuple[Share, Share]:
    """TPR and TNR to be expected of the best method, by what was chosen without each fold."""
    (own, others), (own_moves, others_moves) = _judged(choices, tpr), _moves(best, tpr)
    return Share.of(own, own_moves), Share.of(others, others_moves)


def _judged(choices: Sequence[Trial], tpr: float | None) -> tuple[Flags, Flags]:
    """Which verdicts are right, by the method that was chosen without a photo's fold, with a cut from the others."""
    right: list[tuple[Flags, Flags]] = []
    for fold, trial in enumerate(choices):
        (inside, outside), cut = trial.held_out(fold), _cut(*trial.unseen(fold), tpr)
        right.append((inside >= cut, outside < cut))
    own, others = map(np.concatenate, zip(*right, strict=True))
    return own, others


def _cut(inside: Array, outside: Array, tpr: float | None) -> float:
    """The threshold that `calibrated` finds."""
    return balanced_cut(outside, inside) if tpr is None else fit_threshold(inside, tpr, others=outside).value


def _moves(best: Trial, tpr: float | None) -> tuple[Array, Array]:
    """How TPR and TNR move with cuts from bootstrap samples of the photos, (n_samples,) each (Efron 1979)."""
    rng, (inside, outside) = np.random.default_rng(SEED), best.unseen()
    drawn = ((rng.choice(inside, len(inside)), rng.choice(outside, len(outside))) for _ in range(SAMPLES))
    cuts = np.array([_cut(inside, outside, tpr), *(_cut(*some, tpr) for some in drawn)])
    own, others = (np.searchsorted(np.sort(scores), cuts) / len(scores) for scores in (inside, outside))
    return own[0] - own[1:], others[1:] - others[0]
