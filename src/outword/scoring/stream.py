"""Photos and stores to rows, any number in flat memory, chunk by chunk (see `outword.vectors.reader`)."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator

from outword.base.files import PathLike
from outword.base.prediction import Prediction
from outword.detector.detector import Detector
from outword.detector.inputs import check_handed, check_store
from outword.detector.judge import Said, judge_chunks
from outword.encoders.base import Pixels
from outword.encoders.reading import Chunk
from outword.errors import InputError
from outword.maths.kernels import to_numpy
from outword.vectors.reader import read
from outword.vectors.source import Identity, Job, Only, Source, find_source
from outword.vectors.store import called, is_store


def open_source(
    detector: Detector, given: Iterable[PathLike], *, column: str | None = None, only: Only | None = None
) -> Source:
    """What is to be scored: stores have vectors of the detector's encoder, or else of the one that stands for it here.

    See `outword.vectors.source.find_source` for what can be given; `only` says which photos of it count, by name.
    """
    if not isinstance(detector, Detector):
        raise InputError(f"a detector must be one, got {detector!r}", hint='load it: outword.load("pets.outword")')
    paths, made = list(given), detector.card.encoder
    if paths:
        check_handed(detector)
    for path in filter(is_store, paths):
        check_store(detector.method, detector.scorer, path)
    otherwise = (lambda: detector.encoder) if detector.encoder_override else None
    wanted = Identity(made.fingerprint, called(made.name, made.fingerprint, made.options))
    return find_source(paths, wanted, column=column, only=only, otherwise=otherwise)


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
