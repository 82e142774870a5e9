"""Photos and stores to rows, any number in flat memory, chunk by chunk (see `outword.vectors.reader`)."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator

from outword.base.prediction import Prediction
from outword.detector.detector import Detector
from outword.detector.judge import Said, judge_chunks
from outword.detector.sources import open_source
from outword.encoders.base import Pixels
from outword.encoders.reading import Chunk
from outword.maths.kernels import to_numpy
from outword.vectors.reader import read
from outword.vectors.source import Job, Source

__all__ = ["open_source", "score_jobs", "score_source", "views_of"]


def score_source(detector: Detector, source: Source) -> Iterator[tuple[Prediction, Pixels | None]]:
    """Score all of a source, in order: a row each, with the encoder's view of the photo where there is one."""
    for chunk, rows in score_jobs(detector, source.jobs(), photos=source.has_photos):
        yield from zip(rows, views_of(chunk), strict=True)


def score_jobs(detector: Detector, jobs: Iterable[Job], *, photos: bool) -> Iterator[Said]:
    """Score what is left of pieces, in order; the encoder is needed for photos only."""
    loader, size = (detector.encoder.loader, detector.encoder.chunk) if photos else (None, 0)
    gc.freeze()  # libraries have made a million objects, and Python would go through them again and again
    try:
        yield from judge_chunks(detector, read(jobs, loader, size))
    finally:
        gc.unfreeze()


def views_of(chunk: Chunk) -> list[Pixels | None]:
    """What the encoder saw of each photo of a chunk, (height, width, 3), where pixels are at hand."""
    if chunk.values.ndim != 4:
        return [None] * len(chunk.photos)
    here = chunk.with_values(to_numpy(chunk.values))
    return [pixels for _, pixels in here.pairs()]
