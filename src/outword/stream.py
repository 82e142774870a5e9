"""Files to rows, any number of them in flat memory: threads decode ahead, so that the encoder hardly waits."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from outword.errors import OutwordError
from outword.images import decode_ahead, open_image
from outword.pipeline import Detector, Shares

CHUNK = 64  # images that are scored together: numpy and onnxruntime disturb each other when they take turns often
FIRED = 0.01  # the least share, of its group and the labels together, of a wild word that is named
Pixels = NDArray[np.uint8]
Loaded = tuple[str, "Pixels | OutwordError"]


@dataclass(frozen=True)
class Row:
    """One line of output; `error` is empty when the image was scored, the other fields are when it was not."""

    path: str
    score: float | None = None
    verdict: str = ""
    label: str = ""
    words: Shares = field(default_factory=list)
    error: str = ""


@dataclass
class Clock:
    """Seconds spent on encoding, scoring and evidence, and on waiting for pixels."""

    working: float = 0.0
    waiting: float = 0.0


def score_files(
    detector: Detector, paths: Iterable[str | os.PathLike[str]], *, clock: Clock | None = None
) -> Iterator[tuple[Row, Pixels | None]]:
    """Score files in order: a row each, with the encoder's view of the image; a bad image is a row with an error."""
    encoder, clock = detector.encoder, clock or Clock()

    def load(path: str | os.PathLike[str]) -> Pixels:
        return encoder.preprocess(open_image(path, min_side=encoder.min_side))

    chunk: list[Loaded] = []
    since = time.perf_counter()
    for path, result in decode_ahead(paths, load, workers=os.cpu_count() or 1, ahead=2 * CHUNK):
        chunk.append((os.fspath(path), result))
        if len(chunk) == CHUNK:
            clock.waiting += time.perf_counter() - since
            yield from _rows(detector, chunk, clock)
            chunk, since = [], time.perf_counter()
    clock.waiting += time.perf_counter() - since
    yield from _rows(detector, chunk, clock)


def _rows(detector: Detector, chunk: list[Loaded], clock: Clock) -> list[tuple[Row, Pixels | None]]:
    since = time.perf_counter()
    good = [pixels for _, pixels in chunk if not isinstance(pixels, OutwordError)]
    size = detector.encoder.batch_size
    parts = [detector.encoder.encode_pixels(np.stack(good[i : i + size])) for i in range(0, len(good), size)]
    if parts:
        vectors = np.concatenate(parts)
        scored = iter(zip(detector.vectors.score(vectors), detector.evidence(vectors, 3), strict=True))
    rows: list[tuple[Row, Pixels | None]] = []
    for path, pixels in chunk:
        if isinstance(pixels, OutwordError):
            rows.append((Row(path, error=pixels.message), None))
            continue
        score, found = next(scored)
        fired = [(word, share) for word, share in found.words if share >= FIRED]
        rows.append((Row(path, float(score), detector.verdict(score), found.labels[0][0], fired), pixels))
    clock.working += time.perf_counter() - since
    return rows
