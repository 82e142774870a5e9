"""Files and stores to rows, any number in flat memory: threads decode ahead, so that the encoder hardly waits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outword.errors import InputError, OutwordError
from outword.images import find_images
from outword.inputs import check_store
from outword.pipeline import Detector, Shares
from outword.store import Store, called, is_store, open_store

STORED = 128  # vectors of a store that are scored together: more are no faster, and take more memory
FIRED = 0.01  # the least share, of its group and the labels together, of a wild word that is named
PathLike = str | os.PathLike[str]
Pixels = NDArray[np.uint8]
Array = NDArray[Any]  # the pixels of an image, or its vector
Scored = tuple[Array, Array]  # scores, and vectors


@dataclass(frozen=True)
class Row:
    """One line of output; `error` is empty when the image was scored, the other fields are when it was not."""

    path: str
    score: float | None = None
    verdict: str = ""
    label: str = ""
    words: Shares = field(default_factory=list)
    error: str = ""


def open_sources(detector: Detector, paths: Iterable[PathLike]) -> list[Store | list[PathLike]]:
    """Sort out what may be scored: stores are opened, and what lies between them are paths for `find_images`."""
    sources: list[Store | list[PathLike]] = []
    for stored, group in groupby(paths, key=is_store):
        if stored:
            sources += [_open(detector, path) for path in group]
        else:
            sources.append(list(group))
    return sources


def _open(detector: Detector, path: PathLike) -> Store:
    """What a store has of the detector's encoder, or else of the one that stands for it here."""
    check_store(detector.method, detector.vectors, path)
    made = detector.card["encoder"]
    try:
        return open_store(path, made["fingerprint"], called(made))
    except InputError:
        if not detector.elsewhere:
            raise
        return open_store(path, detector.encoder.fingerprint, detector.encoder.name)


def score_sources(detector: Detector, sources: Sequence[Store | list[PathLike]]) -> Iterator[tuple[Row, Pixels | None]]:
    """Score what `open_sources` gave, in order; the encoder is needed for images only."""
    for source in sources:
        if isinstance(source, Store):
            yield from ((row, None) for row in score_store(detector, source))
        else:
            yield from score_files(detector, find_images(source))


def score_files(detector: Detector, paths: Iterable[PathLike]) -> Iterator[tuple[Row, Pixels | None]]:
    """Score files in order: a row each, with the encoder's view of the image; a bad image is a row with an error."""
    encoder = detector.encoder
    return _scored(detector, encoder.pixels_ahead(paths), detector.score_pixels, encoder.chunk)


def score_store(detector: Detector, store: Store) -> Iterator[Row]:
    """Score the vectors of a store, in the order of their paths."""

    def score(vectors: Array) -> Scored:
        return detector.vectors.score(vectors), vectors

    return (row for row, _ in _scored(detector, store.rows(), score, STORED))


def _scored(
    detector: Detector,
    loaded: Iterator[tuple[PathLike, Array | OutwordError]],
    score: Callable[[Array], Scored],
    size: int,
) -> Iterator[tuple[Row, Array | None]]:
    """Rows of what was loaded, scored `size` at a time; `score` gives the scores and the vectors that were scored."""
    while chunk := list(islice(loaded, size)):
        yield from _rows(detector, chunk, score)


def _rows(
    detector: Detector,
    chunk: list[tuple[PathLike, Array | OutwordError]],
    score: Callable[[Array], Scored],
) -> list[tuple[Row, Array | None]]:
    good = [value for _, value in chunk if not isinstance(value, OutwordError)]
    if good:
        scores, vectors = score(np.stack(good))
        scored = iter(zip(scores, detector.evidence(vectors, 3), strict=True))
    rows: list[tuple[Row, Array | None]] = []
    for path, value in chunk:
        if isinstance(value, OutwordError):
            rows.append((Row(os.fspath(path), error=value.message), None))
            continue
        got, found = next(scored)
        fired = [(word, share) for word, share in found.words if share >= FIRED]
        rows.append((Row(os.fspath(path), float(got), detector.verdict(got), found.labels[0][0], fired), value))
    return rows
