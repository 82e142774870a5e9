"""Image files to a store: what was encoded once, under whatever path, is not encoded again by the same encoder."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from outword.base.extras import pyarrow
from outword.base.files import PathLike
from outword.encoders import Encoder
from outword.encoders.base import Vectors
from outword.encoders.reading import Chunk, Photo, read_photos
from outword.errors import ImageError
from outword.vectors.shards import UNREADABLE, Shard
from outword.vectors.store import Store, make_store

SHARD_ROWS = 1024


@dataclass
class Summary:
    """What became of the files of a run, and the number of paths that the store has now."""

    encoded: int = 0
    reused: int = 0
    errors: int = 0
    rows: int = 0
    damaged: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)  # path and reason of the first errors


class Row(NamedTuple):
    """A row to write; `vector` may be the number of a row that has it, and is None where there is an error."""

    path: bytes
    digest: bytes
    error: str
    vector: Vectors | int | None


def embed(
    encoder: Encoder,
    paths: Iterable[PathLike],
    folder: PathLike,
    *,
    kind: str = "safetensors",
    report: Callable[[int], None] = lambda done: None,
    shard_rows: int = SHARD_ROWS,
) -> Summary:
    """Add the embeddings of image files to the store in `folder`, which is made if need be.

    Each file is read once, in threads ahead of the encoder. Content that the store has is neither decoded nor encoded,
    and a row is written only where the newest row of its path says something else. Shards appear whole or not at all:
    a run that is killed loses the shard in flight, and several may write to a store at once. A damaged shard is set
    aside, and its images are encoded again, like those of one that is gone. Paths are stored as they are given. A
    folder that holds something else is refused.

    Shards are of the kind "safetensors" or "parquet", and written when they have `shard_rows` rows; up to one chunk of
    the encoder's goes on top. `report` is called with the number of files done.
    """
    if kind == "parquet":
        pyarrow()  # without it, say so before any work
    store = make_store(folder, encoder)
    known, pending, done = store.contents(), list[Row](), 0
    unwritten: dict[bytes, Vectors] = {}  # by content, until the shard is written
    lost = [str(store.folder / name) for name in store.lost]
    summary = Summary(damaged=[str(file) for file in store.damaged], lost=lost)

    def flush() -> None:
        if pending:
            first = store.append(_shard(store, pending), kind)
            known.update((row.digest, number) for number, row in enumerate(pending, first))
            pending.clear()
            unwritten.clear()

    try:
        for chunk in read_photos(paths, encoder.loader, encoder.chunk, hashed=True, known=known):
            new = _encode(encoder, chunk, known, unwritten)
            for photo in chunk.photos:
                row = _row(store, known, unwritten, photo)
                _count(summary, photo, row.error, new)
                if not store.holds(row.path, row.digest, row.error):
                    pending.append(row)
            done += len(chunk.photos)
            report(done)
            if len(pending) >= shard_rows:
                flush()
    finally:  # Ctrl-C keeps what is encoded
        flush()
    summary.rows = len(store)
    return summary


def _encode(encoder: Encoder, chunk: Chunk, known: Container[bytes], unwritten: dict[bytes, Vectors]) -> set[bytes]:
    """Encode what is new, each content once; returns which contents that was."""
    new: dict[bytes, int] = {}  # by content, the first place among what was decoded
    for place, photo in enumerate(chunk.good):
        if photo.digest not in known and photo.digest not in unwritten:
            new.setdefault(photo.digest, place)
    if new:
        places = list(new.values())
        pixels = chunk.values if len(places) == len(chunk.values) else chunk.values[places]
        unwritten.update(zip(new, encoder.encode_pixels(pixels), strict=True))
    return set(new)


def _row(store: Store, known: Mapping[bytes, int], unwritten: Mapping[bytes, Vectors], photo: Photo) -> Row:
    """What there is to write of a photo."""
    path = os.fsencode(photo.name)
    if photo.error:
        return Row(path, photo.digest or UNREADABLE, photo.reason, None)
    if photo.digest in known:
        number = known[photo.digest]
        return Row(path, photo.digest, store.error(number), number)
    return Row(path, photo.digest, "", unwritten[photo.digest])


def _count(summary: Summary, photo: Photo, error: str, new: set[bytes]) -> None:
    """Count a photo; the first one of a new content, which then is new no more, is the one that was encoded."""
    if photo.error and not isinstance(photo.error, ImageError):
        raise photo.error
    if error:
        summary.errors += 1
        if len(summary.failed) < 10:
            summary.failed.append((photo.name, error))
    elif photo.digest in new:
        new.remove(photo.digest)
        summary.encoded += 1
    else:
        summary.reused += 1


def _shard(store: Store, rows: list[Row]) -> Shard:
    """The rows as columns, with vectors that the store has under another path copied."""
    vectors = np.full((len(rows), store.dim), np.nan, np.float32)
    copies = {at: row.vector for at, row in enumerate(rows) if isinstance(row.vector, int)}
    vectors[list(copies)] = store.vectors(list(copies.values()))
    for at, row in enumerate(rows):
        if isinstance(row.vector, np.ndarray):
            vectors[at] = row.vector
    paths, digests, errors, _ = zip(*rows, strict=True)
    return Shard(list(paths), list(digests), list(errors), vectors)
