"""What the model's thread does with a batch: encode all images at once, then score them detector by detector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outword.detector.detector import Detector
from outword.detector.judge import Evidence
from outword.maths.methods import Need

Vector = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Job:
    """One image for one detector: its pixels, or its vector where it was encoded before."""

    detector: Detector
    top: int
    pixels: NDArray[np.uint8] | None = None
    vector: Vector | None = None


@dataclass(frozen=True)
class Judgement:
    """The score of an image, the vector that was scored, and its labels and words, at most `top` of each."""

    score: float
    vector: Vector
    evidence: Evidence


def takes_vectors(detector: Detector) -> bool:
    """Whether vectors are enough; patches and changed pixels need the image."""
    return not {Need.PATCHES, Need.PIXELS} & set(detector.scorer.wants())


def judge(jobs: Sequence[Job]) -> list[Judgement]:
    """Judgements of jobs, in order; their detectors share one encoder."""
    vectors: dict[Job, Vector] = {job: job.vector for job in jobs if job.vector is not None}
    plain = [job for job in jobs if job.pixels is not None and takes_vectors(job.detector)]
    if plain:
        encoded = plain[0].detector.encoder.encode_pixels(_stacked(plain))
        vectors |= dict(zip(plain, encoded, strict=True))
    found: dict[Job, Judgement] = {}
    for detector in {id(job.detector): job.detector for job in jobs}.values():
        found |= _judge_one(detector, [job for job in jobs if job.detector is detector], vectors)
    return [found[job] for job in jobs]


def _judge_one(detector: Detector, jobs: list[Job], vectors: dict[Job, Vector]) -> dict[Job, Judgement]:
    if takes_vectors(detector):
        rows = np.stack([vectors[job] for job in jobs])
        scores = detector.scorer.score(rows)
    else:
        scores, rows = detector.score_pixels(_stacked(jobs))
    evidence = detector.evidence(rows, max(job.top for job in jobs))
    return {
        job: Judgement(float(score), row, Evidence(found.labels[: job.top], found.words[: job.top]))
        for job, score, row, found in zip(jobs, scores, rows, evidence, strict=True)
    }


def _stacked(jobs: Sequence[Job]) -> NDArray[Any]:
    return np.stack([job.pixels for job in jobs if job.pixels is not None])
