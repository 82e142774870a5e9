"""One cell of a table of methods: a recipe is fitted, and scores the ID set and every OOD set as one artifact."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from outword.base.reports import Report, quiet
from outword.choosing.photos import Indices, Photos
from outword.detector.detector import Detector
from outword.detector.fitting import LabelCache, prepare
from outword.detector.judge import judge, judge_chunk
from outword.detector.recipe import Recipe
from outword.encoders.base import Vectors
from outword.errors import InputError
from outword.maths.methods import Need, VectorDetector
from outword.maths.methods.needs import from_pixels, of_photo
from outword.maths.metrics import aupr, auroc, fpr_at_tpr
from outword.maths.numerics import Array
from outword.vectors.id_images import IdImages
from outword.vectors.reader import STORED, read
from outword.vectors.source import find_source
from outword.words.labels import Label

Scores = dict[str, Array]  # "id" (or "id/NAME", where each OOD set has its own) and "ood/NAME"


@dataclass(frozen=True)
class Figures:
    """What a method does on the ID set and one OOD set, as `outword.metrics` has it."""

    auroc: float
    aupr_id: float  # with ID as the positives
    aupr_ood: float
    fpr95_id: float
    fpr95_ood: float
    fit_seconds: float  # of the method itself on vectors
    score_seconds: float  # of ID and OOD together


@dataclass(frozen=True)
class Measured:
    """A fitted method and its scores."""

    detector: Detector
    scores: Scores
    score_seconds: Mapping[str, float]  # of its `score` on the ID set and an OOD set together, by OOD set
    rows: Indices  # which photos of the ID set it scored
    fit_seconds: float  # of its own `fit`

    def inside(self, ood: str) -> Array:
        """ID scores beside an OOD set."""
        return self.scores["id"] if "id" in self.scores else self.scores[f"id/{ood}"]

    def outside(self, ood: str) -> Array:
        """Scores of an OOD set."""
        return self.scores[f"ood/{ood}"]

    def figures(self, ood: str) -> Figures:
        """The figures of an OOD set: the only place where they are asked for."""
        own, others = self.inside(ood), self.outside(ood)
        return Figures(
            auroc=auroc(own, others),
            aupr_id=aupr(own, others, positive="id"),
            aupr_ood=aupr(own, others, positive="ood"),
            fpr95_id=fpr_at_tpr(own, others, positive="id"),
            fpr95_ood=fpr_at_tpr(own, others, positive="ood"),
            fit_seconds=self.fit_seconds,
            score_seconds=self.score_seconds[ood],
        )


@dataclass(frozen=True)
class Cell:
    """A method to be measured."""

    recipe: Recipe
    labels: Mapping[str, Label]  # with their own prompt, if any
    inside: Photos
    rows: Indices  # of the ID set, to score
    outside: Sequence[Photos]
    id_images: IdImages | None = None  # that methods are fitted on which look at some
    seed: int = 0  # of everything that is drawn by chance
    by_hand: Mapping[Need, Any] = field(default_factory=dict)  # what was handed over for photos

    def measure(self, label_cache: LabelCache | None = None, report: Report = quiet) -> Measured:
        """Fit the method and let it score; `label_cache` is for cells with the same labels and encoder."""
        fit_on = self.id_images if Need.ID_IMAGES in self.recipe.wants else None
        prepared = prepare(self.recipe, self.labels, id_images=fit_on, report=report, label_cache=label_cache)
        started = time.perf_counter()
        detector = prepared.fit()
        fit_seconds = time.perf_counter() - started + prepared.seconds
        for need, given in self.by_hand.items():
            detector = detector.handed(need, given)
        return Measured(detector, *self._score(detector), self.rows, fit_seconds)

    def _score(self, detector: Detector) -> tuple[Scores, dict[str, float]]:
        """Scores of all sets, and seconds of the ID set with an OOD set: one stream for a method that learns."""
        scores, seconds, rows, scorer = Scores(), dict[str, float](), self.rows, detector.scorer
        started = time.perf_counter()
        if not scorer.sees_order:
            scores["id"] = _set_scores(detector, self.inside, rows)
        own = time.perf_counter() - started
        for photos in self.outside:
            started = time.perf_counter()
            if scorer.sees_order:
                streamed = stream_scores(scorer, self.inside.vectors[rows], photos.vectors, self.seed)
                scores[f"id/{photos.name}"], scores[f"ood/{photos.name}"] = streamed
            else:
                scores[f"ood/{photos.name}"] = _set_scores(detector, photos)
            seconds[photos.name] = own + time.perf_counter() - started
        return scores, seconds


def stream_scores(scorer: VectorDetector, inside: Vectors, outside: Vectors, seed: int) -> tuple[Array, Array]:
    """ID and OOD scores of a method that learns from the images that it scores: one stream, shuffled by the seed."""
    images = np.concatenate([inside, outside])
    order = np.random.default_rng(seed).permutation(len(images))
    scores = np.empty(len(images))
    scorer.reset()
    scores[order] = scorer.score(images[order])
    scorer.reset()
    return scores[: len(inside)], scores[len(inside) :]


def _set_scores(detector: Detector, photos: Photos, rows: Indices | slice = slice(None)) -> Array:
    """Scores of some photos of a set, by their vectors.

    For a method that looks at more of a photo than its vector, the photos are read once more.
    """
    wants = detector.scorer.wants()
    if not of_photo(wants):
        return detector.scorer.score(photos.vectors[rows])
    if from_pixels(wants):
        return _scores_of_photos(detector, photos)[rows]
    vectors, names = photos.vectors[rows], np.array(photos.paths, object)[rows].tolist()
    parts = (slice(start, start + STORED) for start in range(0, len(names), STORED))  # little else is in memory
    return np.concatenate([np.zeros(0), *(judge(detector, vectors[at], 0, names=names[at]).scores for at in parts)])


def _scores_of_photos(detector: Detector, photos: Photos) -> Array:
    """Scores of all photos of a set, which are decoded again."""
    encoder, wanted, found = detector.encoder, frozenset(photos.paths), dict[str, float]()
    source = find_source(photos.given, encoder, only=wanted.__contains__)
    for chunk in read(source.jobs(), encoder.loader, encoder.chunk):
        _, judged = judge_chunk(detector, chunk, top=0)
        if judged:
            found |= zip([photo.name for photo in chunk.good], judged.scores.tolist(), strict=True)
    if lost := wanted - found.keys():
        raise InputError(
            f"{len(lost):,} photos of {photos.name} could be read before, and cannot any more",
            hint="see that nothing changes them during the run",
        )
    return np.array([found[path] for path in photos.paths])
