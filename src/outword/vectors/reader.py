"""From a source to chunks of pixels and of vectors: photos go through `outword.encoders.reading`, stores are read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby

import numpy as np

from outword.encoders import Encoder
from outword.encoders.base import Vectors
from outword.encoders.loader import Loader
from outword.encoders.reading import Chunk, Entry, Span, cut, entries_of, gathered, read_entries
from outword.errors import ImageError, InputError
from outword.vectors.source import Job, Source, Stored

STORED = 1024  # vectors of a store in a chunk


def vectors_of(encoder: Encoder, source: Source) -> Iterator[Chunk]:
    """All of a source as vectors, chunk by chunk: photos are encoded, and those of stores are read."""
    for chunk in read(source.jobs(), encoder.loader, encoder.chunk, hashed=True):
        yield chunk.with_values(encoded(encoder, chunk))


def encoded(encoder: Encoder, chunk: Chunk) -> Vectors:
    """The vectors (n, dim) of the good photos of a chunk, which may be vectors already."""
    if not len(chunk.values):
        return np.zeros((0, encoder.dim), np.float32)
    vectors: Vectors = chunk.values if chunk.values.ndim == 2 else encoder.encode_pixels(chunk.values)
    return vectors


def read(
    jobs: Iterable[Job], loader: Loader | None, size: int, *, workers: int | None = None, hashed: bool = False
) -> Iterator[Chunk]:
    """What is left of pieces, in order; `size` photos, or `STORED` vectors, are a chunk.

    A chunk ends where a part does. So it does not matter where a run that was killed goes on, if that is at a part.
    The loader loads in so many threads, by default one a processor; it is None where there are no photos.
    """
    for stored, group in groupby(jobs, key=lambda job: isinstance(job.piece, Stored)):
        entries = chain.from_iterable(map(_entries, group))
        if stored:  # nothing to decode, so no threads
            yield from (gathered(chunk, _stacked) for chunk in cut(entries, STORED))
        elif loader:
            yield from read_entries(entries, loader, size, workers=workers, hashed=hashed)


def _entries(job: Job) -> Iterator[Entry]:
    """What is left of a piece."""
    piece, span = job.piece, Span(job.number, job.piece.name, job.version, job.skip)
    if isinstance(piece, Stored):
        return _rows(job, piece, span)
    items = piece.items(job.skip)
    return entries_of(span, items if job.only is None else (item for item in items if job.only(os.fspath(item))))


def _rows(job: Job, store: Stored, span: Span) -> Iterator[Entry]:
    """The same of a store."""
    if job.version not in ("", store.version()):  # opened anew in another process
        raise InputError(f"{store.name} has changed since the run began", hint="run the same command again")
    for photo, vector in store.photos(job.skip):
        if job.only is None or job.only(photo.name):
            yield span, photo, vector
    yield span, None, None


def _stacked(vectors: Sequence[Vectors]) -> tuple[Vectors, list[ImageError | None]]:
    return np.stack(vectors), [None] * len(vectors)
