"""Photos and stores to rows, any number in flat memory: threads decode ahead, so that the encoder hardly waits.

A source is cut into pieces (`sources`), a piece into parts of `PART` photos, and a part into chunks that are
scored together. None of this depends on how fast anything is, so a chunk has the same photos whichever process scores
it, and the same scores on the same kind of machine: local runs, runs on a cluster and resumed runs give the same rows.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outword.base.processors import usable_cpus
from outword.detector.detector import Detector
from outword.detector.inputs import check_store
from outword.detector.judge import Verdicts, judge
from outword.encoders.base import Loader, Pixels
from outword.errors import ImageError, InputError, OutwordError
from outword.photos.images import decode_ahead, weight
from outword.photos.sources import find_pieces
from outword.photos.sources.base import PART, Item, Piece
from outword.photos.sources.filesystems import is_remote
from outword.scoring.rows import Row
from outword.vectors.fitted import hashes_of_files, hashes_of_vectors, short
from outword.vectors.store import Store, called, is_store, open_store

STORED = 1024  # vectors of a store in a chunk
PathLike = str | os.PathLike[str]
Array = NDArray[Any]


@dataclass(frozen=True)
class Vector(os.PathLike[str]):
    """A row of a store: the path of a photo and its vector (dim,), or what was wrong with it."""

    name: str
    value: Array | ImageError = field(repr=False)

    def __fspath__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Stored(Piece):
    """A store of "outword embed": what it has of one encoder, in the order of the paths."""

    path: str
    fingerprint: str
    encoder: str

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.fingerprint, self.encoder)  # without what was opened

    @cached_property
    def opened(self) -> Store:
        """The store, which is read once."""
        return open_store(self.path, self.fingerprint, self.encoder)

    @property
    def name(self) -> str:
        """The path of the store."""
        return self.path

    def items(self, skip: int = 0, *, contents: bool = True) -> Iterator[Any]:
        """The paths with their vectors."""
        return (Vector(path, value) for path, value in islice(self.opened.rows(), skip, None))

    def mark(self) -> str:
        """By the files that it had when it was opened."""
        return self.opened.mark()

    def count(self) -> int:
        """The number of paths."""
        return len(self.opened)


@dataclass(frozen=True)
class End(Piece):
    """What comes after the last piece of a source, so that the end of a run is told from its being cut off."""

    @property
    def name(self) -> str:
        """No piece of a source has this name."""
        return ""

    def items(self, skip: int = 0, *, contents: bool = True) -> Iterator[Item]:
        """Nothing."""
        return iter(())

    def mark(self) -> str:
        """Always the same."""
        return ""

    def count(self) -> int:
        """None at all."""
        return 0


@dataclass(frozen=True)
class Job:
    """What is left to do of a piece: it has a number in its source, and its first `skip` photos are done.

    `mark` is that of the piece, where anyone wants to know.
    """

    number: int
    piece: Piece
    skip: int = 0
    mark: str = ""


@dataclass(frozen=True)
class Chunk:
    """Photos of a piece that follow one another, loaded.

    Attributes:
        number, name, mark: of the piece.
        first: how many photos of the piece come before.
        end: whether the piece ends here; one without photos is an empty chunk.
        paths: of the photos.
        errors: what is wrong with each, else "".
        values: of the good ones, pixels (n, height, width, 3) or vectors (n, dim).
    """

    number: int
    name: str
    mark: str
    first: int
    end: bool
    paths: list[str]
    errors: list[str]
    values: Array


@dataclass(frozen=True)
class Scored:
    """The rows of a chunk; `views` are the encoder's views of the photos, where they are at hand."""

    number: int
    name: str
    mark: str
    first: int
    end: bool
    rows: list[Row]
    views: list[Pixels | None]


@dataclass(frozen=True)
class Source:
    """What is to be scored, sorted out: stores, and between them what `find_pieces` takes."""

    groups: list[Stored | list[str]]
    column: str | None = None

    @property
    def has_photos(self) -> bool:
        """Whether anything is to be encoded."""
        return any(isinstance(group, list) for group in self.groups)

    @property
    def is_relative(self) -> bool:
        """Whether a path of it hangs on the current folder; lines of lists and rows of tables are not looked at."""
        groups = ([group.path] if isinstance(group, Stored) else group for group in self.groups)
        return any(not is_remote(path) and not Path(path).is_absolute() for group in groups for path in group)

    @property
    def is_remote(self) -> bool:
        """Whether any of it lies behind a URL."""
        return any(is_remote(path) for group in self.groups if isinstance(group, list) for path in group)

    def pieces(self) -> Iterator[Piece]:
        """The pieces, in order."""
        for group in self.groups:
            if isinstance(group, list):
                yield from find_pieces(group, column=self.column)
            else:
                yield group


def open_source(detector: Detector, given: Iterable[PathLike], *, column: str | None = None) -> Source:
    """Sort out what may be scored; stores are opened.

    Args:
        detector: what will score it.
        given: stores, and what `outword.photos.sources.find_pieces` takes.
        column: of tables, the one with the photos.
    """
    groups: list[Stored | list[str]] = []
    for stored, group in groupby(given, key=is_store):
        names = [os.fspath(path) for path in group]
        groups += [_stored(detector, name) for name in names] if stored else [names]
    return Source(groups, column)


def _stored(detector: Detector, path: str) -> Stored:
    """What a store has of the detector's encoder, or else of the one that stands for it here."""
    check_store(detector.method, detector.scorer, path)
    made = detector.card["encoder"]
    found = Stored(path, made["fingerprint"], called(made))
    try:
        found.opened  # noqa: B018  # what is wrong with it is said now
    except InputError:
        if not detector.encoder_override:
            raise
        found = Stored(path, detector.encoder.fingerprint, detector.encoder.name)
        found.opened  # noqa: B018
    return found


def check_unfitted(detector: Detector, source: Source) -> None:
    """Raise if the detector was fitted on photos of a source, which is read once more for it."""
    detector.check_unfitted(hashed for piece in source.pieces() for hashed in _hashed(piece))


def _hashed(piece: Piece) -> Iterator[tuple[str, list[int | None]]]:
    """The name of each photo, and its hashes: those of its file, and of its vector where that is stored."""
    if isinstance(piece, Stored):
        for name, value in piece.opened.rows():
            if not isinstance(value, ImageError):
                yield repr(name), [short(piece.opened.digest(name)), *hashes_of_vectors(value[None])]
        return
    for item, hashed in hashes_of_files(piece.items()):
        yield repr(os.fspath(item)), [hashed]


def score_source(detector: Detector, source: Source) -> Iterator[tuple[Row, Pixels | None]]:
    """Score all of a source, in order: a row each, with the encoder's view of the photo where there is one."""
    jobs = (Job(number, piece) for number, piece in enumerate(source.pieces()))
    for scored in score_jobs(detector, jobs, photos=source.has_photos):
        yield from zip(scored.rows, scored.views, strict=True)


def score_files(detector: Detector, paths: Iterable[PathLike]) -> Iterator[tuple[Row, Pixels | None]]:
    """Score files in order: a row each, with the encoder's view of the image; a bad image is a row with an error."""
    size = detector.encoder.chunk
    job = Job(0, End())
    entries: Iterator[Entry] = ((job, place, path) for place, path in enumerate(chain(paths, [None])))
    for chunk in _cut(_decoded(entries, detector.encoder.loader, size), size):
        scored = score_chunk(detector, chunk)
        yield from zip(scored.rows, scored.views, strict=True)


def score_jobs(detector: Detector, jobs: Iterable[Job], *, photos: bool) -> Iterator[Scored]:
    """Score what is left of pieces, in order; the encoder is needed for photos only."""
    loader, size = (detector.encoder.loader, detector.encoder.chunk) if photos else (None, 0)
    return score_chunks(detector, load_jobs(jobs, loader, size))


def load_jobs(jobs: Iterable[Job], loader: Loader | None, size: int, *, workers: int | None = None) -> Iterator[Chunk]:
    """The chunks of what is left of pieces, in order; `size` photos, or `STORED` vectors, are one.

    A chunk ends where a part does. So it does not matter where a run that was killed goes on, if that is at a part.
    `workers` threads decode ahead, by default as many as there are processors.
    """
    for stored, group in groupby(jobs, key=lambda job: isinstance(job.piece, Stored | End)):
        if stored:
            yield from _cut(((entry, getattr(entry[2], "value", None)) for entry in _entries(group)), STORED)
        elif loader:
            yield from _cut(_decoded(_entries(group), loader, size, workers), size)


Entry = tuple[Job, int, "PathLike | None"]  # a place in a piece, and the photo there; None after the last
Loaded = tuple[Entry, "Array | OutwordError | None"]
Named = tuple[str, "Array | OutwordError | None"]


def _entries(jobs: Iterable[Job]) -> Iterator[Entry]:
    for job in jobs:
        if isinstance(job.piece, Stored) and job.mark not in ("", job.piece.mark()):  # opened anew in another process
            raise InputError(f"{job.piece.name} has changed since the run began", hint="run the same command again")
        place = job.skip
        for item in job.piece.items(job.skip):
            yield job, place, item
            place += 1
        yield job, place, None


def _decoded(entries: Iterable[Entry], loader: Loader, size: int, workers: int | None = None) -> Iterator[Loaded]:
    def load(entry: Entry) -> Array | None:
        return None if entry[2] is None else loader(entry[2])

    def weigh(entry: Entry) -> int:
        return weight(entry[2])

    return decode_ahead(entries, load, workers=workers or usable_cpus(), ahead=2 * size, weigh=weigh)


def _cut(loaded: Iterable[Loaded], size: int) -> Iterator[Chunk]:
    """Chunks of at most `size`, that end where a part or a piece does."""
    held: list[Named] = []
    for (job, place, item), value in loaded:
        last = item is None
        if last or (held and (place % PART == 0 or len(held) == size)):
            yield _chunk(job, place - len(held), held, end=last)
            held = []
        if item is not None:
            held.append((os.fspath(item), value))  # without its file
        del item  # which need not be in memory while the next one is read


def _chunk(job: Job, first: int, held: list[Named], *, end: bool) -> Chunk:
    paths = [path for path, _ in held]
    errors = [value.message if isinstance(value, OutwordError) else "" for _, value in held]
    good = [value for _, value in held if isinstance(value, np.ndarray)]
    values = np.stack(good) if good else np.zeros(0)
    return Chunk(job.number, job.piece.name, job.mark, first, end, paths, errors, values)


def score_chunk(detector: Detector, chunk: Chunk) -> Scored:
    """The rows of a chunk."""
    (scored,) = score_chunks(detector, [chunk])
    return scored


def score_chunks(detector: Detector, chunks: Iterable[Chunk]) -> Iterator[Scored]:
    """The rows of chunks, in order; on a device the next one is begun before the rows of one are made."""
    begun: deque[tuple[Chunk, Verdicts | None]] = deque()
    for chunk in chunks:
        on_device = chunk.values.ndim == 4 and detector.encoder.feels_batch
        begun.append((chunk, judge(detector, chunk.values) if len(chunk.values) else None))
        while len(begun) > on_device:
            yield _scored(*begun.popleft())
    for one in begun:
        yield _scored(*one)


def _scored(chunk: Chunk, judged: Verdicts | None) -> Scored:
    verdicts = iter(judged or ())
    pixels = iter(chunk.values if chunk.values.ndim == 4 else ())
    rows, views = list[Row](), list[Pixels | None]()
    for path, error in zip(chunk.paths, chunk.errors, strict=True):
        if error:
            rows.append(Row(path, error=error))
        else:
            one = next(verdicts)
            rows.append(Row(path, one.score, one.verdict, one.label, one.fired))
        views.append(None if error else next(pixels, None))
    return Scored(chunk.number, chunk.name, chunk.mark, chunk.first, chunk.end, rows, views)
