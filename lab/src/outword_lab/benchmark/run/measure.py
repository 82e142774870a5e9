"""One cell of a benchmark: a recipe is fitted, and scores the ID set and every OOD set as one artifact."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from outword._version import __version__
from outword.base.files import sha256_bytes
from outword.base.reports import Report, quiet
from outword.choosing import cell as plain
from outword.choosing.cell import Measured
from outword.detector.card import Card
from outword.detector.fitting import LabelCache
from outword.detector.judge import judge
from outword.detector.recipe import Recipe
from outword.maths.methods import DETECTORS, Need
from outword.maths.metrics import threshold_at_tpr
from outword.maths.numerics import Array
from outword.vectors.id_images import IdImages
from outword_lab.benchmark.run.bootstrap import interval, resampled
from outword_lab.benchmark.run.photos import SetPhotos, below
from outword_lab.benchmark.run.results import Place, Row, Worst, commit, versions
from outword_lab.benchmark.run.task import Task

WORST = 6  # images of the ID set, and of each OOD set, that are told as the worst
UNKNOWN = (math.nan, math.nan)  # an interval that was not asked for


@dataclass(frozen=True)
class Cell:
    """A method to be measured, as one of a benchmark's: what `outword.choosing.cell` measures, and where it belongs."""

    place: Place  # where its rows belong
    recipe: Recipe
    task: Task  # labels, which ID photos are scored, and what is fitted on
    inside: SetPhotos
    outside: Sequence[SetPhotos]
    seed: int = 0  # of everything that is drawn by chance
    drawn: bool = False  # whether labels or photos of the task were drawn by the seed
    samples: int = 0  # of the bootstrap; without any, intervals are NaN

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
        task, seed = self.task, self.seed
        cell = plain.Cell(self.recipe, task.labels, self.inside, task.rows, self.outside, self.id_images, seed)
        return cell.measure(label_cache, report)

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

    def _row(self, measured: Measured, photos: SetPhotos, boot: Array | None) -> Row:
        auroc_ci, fpr95_ci = (UNKNOWN, UNKNOWN) if boot is None else (interval(boot[:, 0]), interval(boot[:, 1]))
        return Row(
            key=self.keys[photos.name],
            cell=self.name,
            **asdict(self.place),
            seed=self.seed,
            chance=self.chance,
            ood=photos.name,
            n_id=len(measured.inside(photos.name)),
            n_ood=len(measured.outside(photos.name)),
            unread_id=len(self.inside.unreadable),
            unread_ood=len(photos.unreadable),
            **asdict(measured.figures(photos.name)),
            auroc_ci=auroc_ci,
            fpr95_ci=fpr95_ci,
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
                found.append(Worst(below(photos.paths[row], root), *told, score, one.nearest, list(one.words)))
        return found


def _learned_from(card: Card) -> dict[str, Any] | None:
    """What prompts were learned from, as the card of an artifact says; None for a method that learns none."""
    if card.learned is None:
        return None
    return {**card.learned, "id_images": asdict(card.id_images) if card.id_images else None}
