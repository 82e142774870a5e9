"""One cell of a benchmark: a recipe is fitted, and scores the ID set and every OOD set as one artifact."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from outword._version import __version__
from outword.base.files import sha256_bytes
from outword.base.reports import Report, quiet
from outword.benchmark.run.bootstrap import interval, resampled
from outword.benchmark.run.photos import Indices, Photos, below
from outword.benchmark.run.results import Place, Row, Worst, commit, versions
from outword.benchmark.run.task import Task
from outword.detector.card import Card
from outword.detector.detector import Detector
from outword.detector.fitting import LabelCache, prepare
from outword.detector.judge import judge, judge_chunk
from outword.detector.recipe import Recipe
from outword.encoders.base import Vectors
from outword.errors import InputError
from outword.maths.methods import DETECTORS, Need, VectorDetector
from outword.maths.methods.needs import from_pixels, of_photo
from outword.maths.metrics import aupr, auroc, fpr_at_tpr, threshold_at_tpr
from outword.maths.numerics import Array
from outword.vectors.id_images import IdImages
from outword.vectors.reader import STORED, read
from outword.vectors.source import find_source

WORST = 6  # images of the ID set, and of each OOD set, that are told as the worst
UNKNOWN = (math.nan, math.nan)  # an interval that was not asked for
Scores = dict[str, Array]  # "id" (or "id/NAME", where each OOD set has its own) and "ood/NAME"


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


@dataclass(frozen=True)
class Cell:
    """A method to be measured."""

    place: Place  # where its rows belong
    recipe: Recipe
    task: Task  # labels, which ID photos are scored, and what is fitted on
    inside: Photos
    outside: Sequence[Photos]
    seed: int = 0  # of everything that is drawn by chance
    drawn: bool = False  # whether labels or photos of the task were drawn by the seed
    samples: int = 0  # of the bootstrap; without any, intervals are NaN
    by_hand: Mapping[Need, Any] = field(default_factory=dict)  # what was handed over for photos

    @property
    def chance(self) -> bool:
        """Whether the figures depend on the seed."""
        return self.drawn or self.recipe.seed_matters

    @property
    def id_images(self) -> IdImages | None:
        """The photos that the method is fitted on; None if it looks at none."""
        return self.task.id_images if Need.ID_IMAGES in self.recipe.wants else None

    @cached_property
    def config(self) -> dict[str, Any]:
        """All that the figures hang on but the OOD set, with fingerprints; a row is found again by it."""
        recipe, encoder, corpus, found = self.recipe, self.recipe.encoder, self.recipe.corpus, self.id_images
        return {
            "outword": __version__,
            "method": {
                "name": recipe.method,
                "parameters": dict(recipe.params),
                "needs": [need.value for need in recipe.wants],
                "sees_order": DETECTORS[recipe.method].sees_order,
                "on_vectors": dict(recipe.on_vectors),
            },
            "miner": corpus and {"name": recipe.miner, "parameters": dict(recipe.miner_params)},
            "prompts": asdict(recipe.prompts),
            "corpus": corpus and {"name": corpus.name, "fingerprint": corpus.fingerprint, "words": len(corpus)},
            "keep_label_words": recipe.keep_label_words,
            "kinds": recipe.kinds,
            "encoder": {
                "name": encoder.name,
                "fingerprint": encoder.fingerprint,
                "options": dict(encoder.options),
                **recipe.offer_versions,
                "precision": getattr(encoder, "precision", None),
            },
            "id_images": found and {"count": len(found.vectors), "fingerprint": found.fingerprint},
            "id": {
                "name": self.inside.name,
                "fingerprint": self.inside.fingerprint,
                "scored": len(self.task.rows),
                "rows": sha256_bytes(self.task.rows.tobytes()),
            },
            "labels": {"count": len(self.task.labels), "fingerprint": self.task.fingerprint},
            "seed": self.seed,
            "samples": self.samples,
        }

    @cached_property
    def keys(self) -> dict[str, str]:
        """The key of each OOD set's row."""
        place = asdict(self.place)
        parts = {one.name: [place, self.config, one.name, one.fingerprint] for one in self.outside}
        return {name: sha256_bytes(json.dumps(part, sort_keys=True).encode()) for name, part in parts.items()}

    @property
    def name(self) -> str:
        """What the file with the scores is called."""
        return sha256_bytes("".join(self.keys.values()).encode())[:16]

    def measure(self, label_cache: LabelCache | None = None, report: Report = quiet) -> Measured:
        """Fit the method and let it score; `label_cache` is for cells with the same labels and encoder."""
        prepared = prepare(
            self.recipe, self.task.labels, id_images=self.id_images, report=report, label_cache=label_cache
        )
        started = time.perf_counter()
        detector = prepared.fit()
        fit_seconds = time.perf_counter() - started + prepared.seconds
        for need, given in self.by_hand.items():
            detector = detector.handed(need, given)
        return Measured(detector, *self._score(detector), self.task.rows, fit_seconds)

    def _score(self, detector: Detector) -> tuple[Scores, dict[str, float]]:
        """Scores of all sets, and seconds of the ID set with an OOD set: one stream for a method that learns."""
        scores, seconds, rows, scorer = Scores(), dict[str, float](), self.task.rows, detector.scorer
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

    def rows(self, measured: Measured) -> tuple[list[Row], dict[str, Array]]:
        """A row for each OOD set, and the bootstrap samples of all sets, which the intervals come from."""
        boot = self._resampled(measured) if self.samples else {}
        return [self._row(measured, photos, boot.get(photos.name)) for photos in self.outside], boot

    def _resampled(self, measured: Measured) -> dict[str, Array]:
        """AUROC and FPR95 of bootstrap samples, by OOD set."""
        draw = partial(resampled, rows=measured.rows, n_all=len(self.inside.paths), n_samples=self.samples)
        outside = {photos.name: measured.outside(photos.name) for photos in self.outside}
        if "id" in measured.scores:
            return draw(measured.scores["id"], outside)
        return {name: draw(measured.inside(name), {name: scores})[name] for name, scores in outside.items()}

    def _row(self, measured: Measured, photos: Photos, boot: Array | None) -> Row:
        own, others = measured.inside(photos.name), measured.outside(photos.name)
        auroc_ci, fpr95_ci = (UNKNOWN, UNKNOWN) if boot is None else (interval(boot[:, 0]), interval(boot[:, 1]))
        return Row(
            key=self.keys[photos.name],
            cell=self.name,
            **asdict(self.place),
            seed=self.seed,
            chance=self.chance,
            ood=photos.name,
            n_id=len(own),
            n_ood=len(others),
            unread_id=len(self.inside.unreadable),
            unread_ood=len(photos.unreadable),
            auroc=auroc(own, others),
            aupr_id=aupr(own, others, positive="id"),
            aupr_ood=aupr(own, others, positive="ood"),
            fpr95_id=fpr_at_tpr(own, others, positive="id"),
            fpr95_ood=fpr_at_tpr(own, others, positive="ood"),
            auroc_ci=auroc_ci,
            fpr95_ci=fpr95_ci,
            fit_seconds=measured.fit_seconds,
            score_seconds=measured.score_seconds[photos.name],
            config={
                **self.config,
                "ood": {"name": photos.name, "fingerprint": photos.fingerprint},
                "learned": measured.detector.scorer.in_use(),
                "learned_from": _learned_from(measured.detector.card),
            },
            versions=versions(),
            commit=commit(),
        )

    def worst(self, measured: Measured, root: Path | None) -> list[Worst]:
        """The ID images with the lowest scores, and of each OOD set the highest of those that 95 % TPR would accept.

        Each comes with the label and the words that speak for it, and its path below the data root.
        """
        own = measured.inside(self.outside[0].name)
        lowest = np.argsort(own, kind="stable")[:WORST]
        parts = [(self.inside, measured.rows[lowest], own[lowest])]
        for photos in self.outside:
            others = measured.outside(photos.name)
            highest = np.argsort(-others, kind="stable")[:WORST]
            accepted = highest[others[highest] >= threshold_at_tpr(measured.inside(photos.name), 0.95)]
            parts.append((photos, accepted, others[accepted]))
        found: list[Worst] = []
        for photos, rows, scores in parts:
            judged = judge(measured.detector, photos.vectors[rows], scores=scores) if len(rows) else ()
            told = (photos.name, photos is self.inside)
            for row, score, one in zip(rows, scores.tolist(), judged, strict=True):
                found.append(Worst(below(photos.paths[row], root), *told, score, one.label, list(one.words)))
        return found


def _learned_from(card: Card) -> dict[str, Any] | None:
    """What prompts were learned from, as the card of an artifact says; None for a method that learns none."""
    if card.learned is None:
        return None
    return {**card.learned, "id_images": asdict(card.id_images) if card.id_images else None}


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
    source = find_source(photos.found.paths, encoder, only=wanted.__contains__)
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
