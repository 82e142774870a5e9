"""Where a method fails: the images that it gets most wrong, with the label and the words that speak for them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from outword.benchmark.run.measure import Measured
from outword.benchmark.run.photos import Indices, Photos
from outword.benchmark.run.results import Worst
from outword.detector.detector import Detector
from outword.detector.judge import judge
from outword.maths.metrics import threshold_at_tpr
from outword.maths.numerics import Array

WORST = 6  # images of the ID set, and of each OOD set


def worst_images(measured: Measured, inside: Photos, outside: Sequence[Photos], root: Path) -> list[Worst]:
    """The ID images with the lowest scores, and of each OOD set the highest of those that 95 % TPR would accept.

    Args:
        measured: the fitted method and its scores.
        inside: the ID set.
        outside: the OOD sets.
        root: the data root; paths are told from there.
    """
    own = measured.inside(outside[0].name)
    lowest = np.argsort(own, kind="stable")[:WORST]
    found = _told(measured.detector, inside, measured.rows[lowest], own[lowest], True, root)
    for photos in outside:
        others = measured.outside(photos.name)
        highest = np.argsort(-others, kind="stable")[:WORST]
        accepted = highest[others[highest] >= threshold_at_tpr(measured.inside(photos.name), 0.95)]
        found += _told(measured.detector, photos, accepted, others[accepted], False, root)
    return found


def below(path: str, root: Path) -> str:
    """A path as it is below the data root."""
    return path.removeprefix(f"{root}{os.sep}")


def _told(detector: Detector, photos: Photos, rows: Indices, scores: Array, inside: bool, root: Path) -> list[Worst]:
    if not len(rows):
        return []
    found = judge(detector, photos.vectors[rows], scores=scores)
    return [
        Worst(below(photos.paths[row], root), photos.name, inside, one.score, one.label, one.fired)
        for row, one in zip(rows, found, strict=True)
    ]
