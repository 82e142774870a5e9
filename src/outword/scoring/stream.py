"""Photos and stores to rows, any number in flat memory, chunk by chunk (see `outword.vectors.reader`)."""

from __future__ import annotations

import gc
import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from outword.base.files import PathLike
from outword.base.prediction import Prediction
from outword.detector.detector import Detector
from outword.detector.inputs import check_handed, check_store
from outword.detector.judge import Verdicts, judge
from outword.encoders.base import Pixels
from outword.errors import ImageError, InputError
from outword.maths.kernels import to_numpy
from outword.photos.quality import UNSEEN, Look
from outword.photos.sources.base import Piece
from outword.vectors.reader import Chunk, Span, read
from outword.vectors.same_photo import hashes_of_files, hashes_of_vectors, short
from outword.vectors.source import Identity, Job, Only, Source, Stored, find_source
from outword.vectors.store import called, is_store


@dataclass(frozen=True)
class Scored:
    """The records of a chunk, and the pixels that the encoder saw of those without an error, if they are at hand."""

    span: Span
    rows: list[Prediction]
    pixels: Any = ()  # (n, height, width, 3), where the loader left them
    looks: list[Look] = field(default_factory=list)  # what was seen of the photo of each row

    def views(self) -> list[Pixels | None]:
        """The encoder's view of the photo of each row."""
        pixels = iter(to_numpy(self.pixels) if len(self.pixels) else ())
        return [None if row.error else next(pixels, None) for row in self.rows]


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


def check_unfitted(detector: Detector, source: Source) -> None:
    """Raise if the detector was fitted on photos of a source, which is read once more for it."""
    found = (hashed for piece in source.pieces() for hashed in _hashed(piece))
    detector.check_unfitted((repr(name), hashes) for name, hashes in found if source.has(name))


def _hashed(piece: Piece | Stored) -> Iterator[tuple[str, list[int | None]]]:
    """The name of each photo, and its hashes: those of its file, and of its vector where that is stored."""
    if isinstance(piece, Stored):
        for row in piece.items():
            if not isinstance(row.value, ImageError):
                yield row.path, [short(row.digest), *hashes_of_vectors(row.value[None])]
        return
    for item, hashed in hashes_of_files(piece.items()):
        yield os.fspath(item), [hashed]


def score_source(detector: Detector, source: Source) -> Iterator[tuple[Prediction, Pixels | None]]:
    """Score all of a source, in order: a row each, with the encoder's view of the photo where there is one."""
    for scored in score_jobs(detector, source.jobs(), photos=source.has_photos):
        yield from zip(scored.rows, scored.views(), strict=True)


def score_jobs(detector: Detector, jobs: Iterable[Job], *, photos: bool) -> Iterator[Scored]:
    """Score what is left of pieces, in order; the encoder is needed for photos only."""
    loader, size = (detector.encoder.loader, detector.encoder.chunk) if photos else (None, 0)
    gc.freeze()  # libraries have made a million objects, and Python would go through them again and again
    try:
        yield from score_chunks(detector, read(jobs, loader, size))
    finally:
        gc.unfreeze()


def score_chunk(detector: Detector, chunk: Chunk) -> Scored:
    """The rows of a chunk."""
    (scored,) = score_chunks(detector, [chunk])
    return scored


def score_chunks(detector: Detector, chunks: Iterable[Chunk]) -> Iterator[Scored]:
    """The rows of chunks, in order; on a device the next one is begun before the rows of one are made."""
    begun: deque[tuple[Chunk, Verdicts | None]] = deque()
    for chunk in chunks:
        on_device = chunk.values.ndim == 4 and detector.encoder.feels_batch
        good = [path for path, error in zip(chunk.paths, chunk.errors, strict=True) if not error]
        begun.append((chunk, judge(detector, chunk.values, names=good, lenient=True) if good else None))
        while len(begun) > on_device:
            yield _scored(*begun.popleft())
    for one in begun:
        yield _scored(*one)


def _scored(chunk: Chunk, judged: Verdicts | None) -> Scored:
    verdicts, lacks = iter(judged or ()), iter(() if judged is None else judged.errors)
    rows, seen, looks = list[Prediction](), iter(chunk.looks), list[Look]()
    for path, error in zip(chunk.paths, chunk.errors, strict=True):
        look, wrong = UNSEEN if error else next(seen), error or next(lacks)
        rows.append(Prediction(path, error=wrong) if wrong else replace(next(verdicts), notes=tuple(look.notes)))
        looks.append(UNSEEN if wrong else look)
    if chunk.values.ndim != 4 or judged is None:
        return Scored(chunk.span, rows, looks=looks)
    good = [place for place, error in enumerate(judged.errors) if not error]
    return Scored(chunk.span, rows, chunk.values if len(good) == len(chunk.values) else chunk.values[good], looks)
