"""From a source to chunks of pixels and of vectors: threads decode ahead, so that the encoder hardly waits.

A piece of a source is cut into parts of `PART` photos, and a part into chunks. None of this depends on how fast
anything is, so a chunk has the same photos whichever process reads it: local runs, runs on a cluster and resumed runs
give the same vectors on the same kind of machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outword.base.processors import usable_cpus
from outword.encoders import Encoder
from outword.encoders.base import Loader, Seen, Vectors, stacked
from outword.errors import ImageError, InputError, OutwordError
from outword.photos.ahead import attempt, decode_ahead, grouped, sound, weight
from outword.photos.decode import read_hashed
from outword.photos.quality import UNSEEN, Look
from outword.photos.sources.base import PART, Item
from outword.vectors.source import Job, Source, Stored, Vector

STORED = 1024  # vectors of a store in a chunk
Array = NDArray[Any]


@dataclass(frozen=True)
class Span:
    """Where a chunk lies in its source: in which piece, of this number, name and version, and where in that."""

    piece: int
    name: str
    version: str
    first: int  # how many items of the piece come before
    end: bool  # whether the piece ends here; one without items is an empty chunk


@dataclass(frozen=True)
class Chunk:
    """Items of a piece that follow one another, for an encoder or a method."""

    span: Span
    paths: list[str]
    errors: list[str]  # what is wrong with each, else ""
    # Of the good ones, pixels (n, height, width, 3) or vectors (n, dim); or a list, of what another process has loaded
    # and this one is to gather
    values: Any
    digests: list[bytes]  # of the good ones, sha256 of their files; b"" where nobody asked
    looks: list[Look]  # of the good ones, what to note; nothing of stores, or of a device


@dataclass(frozen=True)
class Encoded:
    """Items of a piece that follow one another, as vectors; paths and digests are of those that could be read."""

    span: Span
    paths: list[str]
    vectors: Vectors  # (n, dim), unit rows
    digests: list[bytes]  # sha256 of the files
    unreadable: list[tuple[str, str]]  # path and reason


def vectors_of(encoder: Encoder, source: Source) -> Iterator[Encoded]:
    """All of a source as vectors, chunk by chunk: photos are encoded, and those of stores are read."""
    for chunk in read(source.jobs(), encoder.loader, encoder.chunk, hashed=True):
        pairs = list(zip(chunk.paths, chunk.errors, strict=True))
        good, unreadable = [path for path, error in pairs if not error], [pair for pair in pairs if pair[1]]
        yield Encoded(chunk.span, good, _encode(encoder, chunk.values), chunk.digests, unreadable)


def read(
    jobs: Iterable[Job], loader: Loader | None, size: int, *, workers: int | None = None, hashed: bool = False
) -> Iterator[Chunk]:
    """What is left of pieces, in order; `size` photos, or `STORED` vectors, are a chunk.

    A chunk ends where a part does. So it does not matter where a run that was killed goes on, if that is at a part.
    The loader loads in so many threads, by default one a processor; it is None where there are no photos.
    """
    for stored, group in groupby(jobs, key=lambda job: isinstance(job.piece, Stored)):
        entries = _entries(group)
        if stored:  # nothing to decode, so no threads
            found = ((entry, attempt(_vector, entry)) for entry in entries)
            yield from (_chunk(*part, stacked) for part in _cut(found, STORED))
        elif loader:
            yield from _decoded(entries, loader, size, workers or usable_cpus(), hashed)


def _decoded(entries: Iterator[Entry], loader: Loader, size: int, workers: int, hashed: bool) -> Iterator[Chunk]:
    """Chunks of photos; threads load what is in the next ones, and where that is done apart, one gathers."""
    load, groups = partial(_load, loader, hashed), grouped(entries, loader.together)
    most = max(2, 2 * size // loader.together)
    ahead = decode_ahead(
        groups, load, workers=workers, ahead=most, weigh=lambda group: sum(weight(e[2]) for e in group)
    )
    parts = _cut(_each(ahead), size)
    if not loader.apart:
        yield from (_chunk(*part, loader.gather) for part in parts)
        return
    for _, chunk in decode_ahead(parts, lambda part: _chunk(*part, loader.gather), workers=1, ahead=2):
        yield sound(chunk)


Entry = tuple[Job, int, "Item | Vector | None"]  # a place in a piece, and what is there; None after the last
Loaded = tuple[Any, bytes] | None  # what is to be gathered, or a vector, and the sha256 of the file
Found = tuple[str, "Loaded | OutwordError"]  # the name of an item, and what became of it
Gather = Callable[[Sequence[Any]], tuple[Any, list[ImageError | None]]]


def _entries(jobs: Iterable[Job]) -> Iterator[Entry]:
    for job in jobs:
        piece = job.piece
        if isinstance(piece, Stored) and job.version not in ("", piece.version()):  # opened anew in another process
            raise InputError(f"{piece.name} has changed since the run began", hint="run the same command again")
        place = job.skip
        for item in piece.items(job.skip):
            if job.only is None or job.only(_name(item)):
                yield job, place, item
                place += 1
        yield job, place, None


def _name(item: Item | Vector) -> str:
    return item.path if isinstance(item, Vector) else os.fspath(item)


def _each(
    ahead: Iterable[tuple[list[Entry], list[Loaded | OutwordError] | OutwordError]],
) -> Iterator[tuple[Entry, Loaded | OutwordError]]:
    for group, found in ahead:
        yield from zip(group, sound(found), strict=True)
        del group, found  # files need not be in memory while the next ones are read


def _vector(entry: Entry) -> Loaded:
    item = entry[2]
    if not isinstance(item, Vector):
        return None
    if isinstance(item.value, ImageError):
        raise item.value
    return item.value, item.digest


def _load(loader: Loader, hashed: bool, group: Sequence[Entry]) -> list[Loaded | OutwordError]:
    """What became of the photos of a group; None of the end of a piece."""
    found: list[Any] = [None if item is None else attempt(_content, (item, hashed)) for _, _, item in group]
    at = [place for place, pair in enumerate(found) if isinstance(pair, tuple)]
    for place, value in zip(at, loader.load([found[place][0] for place in at]), strict=True):
        found[place] = value if isinstance(value, OutwordError) else (value, found[place][1])
    return found


def _content(wanted: tuple[Any, bool]) -> tuple[Any, bytes]:
    """What a loader reads, and the sha256 of the file where that is wanted."""
    item, hashed = wanted
    return read_hashed(item)[::-1] if hashed else (item, b"")


def _cut(loaded: Iterable[tuple[Entry, Loaded | OutwordError]], size: int) -> Iterator[tuple[Span, list[Found]]]:
    """What becomes chunks of at most `size`, that end where a part or a piece does."""
    held: list[Found] = []
    for (job, place, item), value in loaded:
        last = item is None
        if last or (held and (place % PART == 0 or len(held) == size)):
            yield Span(job.number, job.piece.name, job.version, place - len(held), last), held
            held = []
        if item is not None:
            held.append((_name(item), value))  # without its file
        del item  # which need not be in memory while the next one is read


def _chunk(span: Span, held: list[Found], gather: Gather) -> Chunk:
    errors = [value.message if isinstance(value, OutwordError) else "" for _, value in held]
    good = [value for _, value in held if isinstance(value, tuple)]
    values, digests = [value for value, _ in good], [digest for _, digest in good]
    looks = [value.look if isinstance(value, Seen) else UNSEEN for value in values]
    return gathered(Chunk(span, [path for path, _ in held], errors, values, digests, looks), gather)


def gathered(chunk: Chunk, gather: Gather) -> Chunk:
    """The same with its values gathered; what is wrong with an image may show only now."""
    if not chunk.values:
        return replace(chunk, values=np.zeros(0))
    values, wrong = gather(chunk.values)
    late = iter(wrong)
    errors = [error or _message(next(late)) for error in chunk.errors]
    good = [place for place, error in enumerate(wrong) if not error]
    digests, looks = [chunk.digests[place] for place in good], [chunk.looks[place] for place in good]
    return replace(chunk, errors=errors, values=values, digests=digests, looks=looks)


def _message(error: ImageError | None) -> str:
    return error.message if error else ""


def _encode(encoder: Encoder, values: Array) -> Vectors:
    if not len(values):
        return np.zeros((0, encoder.dim), np.float32)
    return values if values.ndim == 2 else encoder.encode_pixels(values)  # of a store, or photos
