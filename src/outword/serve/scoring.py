"""What the model's thread does with a batch: encode all images at once, then score them detector by detector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outword.detector.detector import Detector
from outword.detector.judge import Verdict, judge, takes_vectors

Vector = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Job:
    """One image for one detector: its pixels, or its vector where it was encoded before."""

    detector: Detector
    top: int
    pixels: NDArray[np.uint8] | None = None
    vector: Vector | None = None


def judge_jobs(jobs: Sequence[Job]) -> list[tuple[Verdict, Vector]]:
    """Verdicts of jobs with the vectors that were scored, in order; their detectors share one encoder."""
    vectors: dict[Job, Vector] = {job: job.vector for job in jobs if job.vector is not None}
    plain = [job for job in jobs if job.pixels is not None and takes_vectors(job.detector)]
    if plain:
        encoded = plain[0].detector.encoder.encode_pixels(_stacked(plain))
        vectors |= dict(zip(plain, encoded, strict=True))
    found: dict[Job, tuple[Verdict, Vector]] = {}
    for detector in {id(job.detector): job.detector for job in jobs}.values():
        own = [job for job in jobs if job.detector is detector]
        images = np.stack([vectors[job] for job in own]) if takes_vectors(detector) else _stacked(own)
        judged = judge(detector, images, max(job.top for job in own))
        for job, verdict, vector in zip(own, judged, judged.vectors, strict=True):
            cut = replace(verdict, labels=verdict.labels[: job.top], words=verdict.words[: job.top])
            found[job] = cut, vector
    return [found[job] for job in jobs]


def _stacked(jobs: Sequence[Job]) -> NDArray[Any]:
    return np.stack([job.pixels for job in jobs if job.pixels is not None])
