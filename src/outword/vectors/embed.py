"""Image files to a store: what was encoded once, under whatever path, is not encoded again by the same encoder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from outword.base.extras import pyarrow
from outword.base.files import PathLike
from outword.base.processors import usable_cpus
from outword.encoders import Encoder
from outword.encoders.base import Loader, Vectors
from outword.errors import ImageError, OutwordError
from outword.photos.ahead import decode_ahead, grouped, sound, weight
from outword.photos.decode import read_hashed
from outword.vectors.shards import UNREADABLE, Shard
from outword.vectors.store import Store, make_store

SHARD_ROWS = 1024
# sha256 of a file, and what the encoder's loader made of it, an `ImageError`, or the number of a row that has it
Looked = tuple[bytes, Any]


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


class Entry(NamedTuple):
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
    known, pending, done = store.contents(), list[Entry](), 0
    unwritten: dict[bytes, Vectors] = {}  # by content, until the shard is written
    lost = [str(store.folder / name) for name in store.lost]
    summary = Summary(damaged=[str(file) for file in store.damaged], lost=lost)

    def flush() -> None:
        if pending:
            first = store.append(_shard(store, pending), kind)
            known.update((entry.digest, number) for number, entry in enumerate(pending, first))
            pending.clear()
            unwritten.clear()

    loader = encoder.loader
    groups, most = grouped(paths, loader.together), max(2, 2 * encoder.chunk // loader.together)
    ahead = decode_ahead(groups, partial(_look, loader, known), workers=usable_cpus(), ahead=most, weigh=_weight)
    looked = (
        (os.fsencode(path), found) for group, some in ahead for path, found in zip(group, sound(some), strict=True)
    )
    try:
        for part in grouped(looked, encoder.chunk):
            pending += _entries(encoder, store, known, unwritten, part, summary)
            done += len(part)
            report(done)
            if len(pending) >= shard_rows:
                flush()
    finally:  # Ctrl-C keeps what is encoded
        flush()
    summary.rows = len(store)
    return summary


def _weight(group: Sequence[PathLike]) -> int:
    return sum(map(weight, group))


def _look(loader: Loader, known: dict[bytes, int], group: Sequence[PathLike]) -> list[Looked]:
    """Read files, and load those whose content is new."""
    found: list[Looked] = [_read(known, path) for path in group]
    new = [at for at, (_, content) in enumerate(found) if not isinstance(content, int | ImageError)]
    for at, value in zip(new, loader.load([found[at][1] for at in new]), strict=True):
        if isinstance(value, OutwordError) and not isinstance(value, ImageError):
            raise value
        found[at] = found[at][0], value
    return found


def _read(known: dict[bytes, int], path: PathLike) -> Looked:
    try:
        digest, content = read_hashed(path)
    except ImageError as error:
        return UNREADABLE, error.bare()
    return digest, known.get(digest, content)


def _entries(
    encoder: Encoder,
    store: Store,
    known: dict[bytes, int],
    unwritten: dict[bytes, Vectors],
    part: list[tuple[bytes, Looked]],
    summary: Summary,
) -> list[Entry]:
    """Encode what is new, each content once, and give the rows that the store does not have yet."""
    looked = [(path, *found) for path, found in part]
    new = {digest: found for _, digest, found in reversed(looked) if not isinstance(found, int | ImageError)}
    new = {digest: new[digest] for digest in new if digest not in known and digest not in unwritten}
    wrong = dict[bytes, ImageError]()
    if new:
        pixels, errors = encoder.loader.gather(list(new.values()))
        wrong = {digest: error for digest, error in zip(new, errors, strict=True) if error}
        good = [digest for digest in new if digest not in wrong]
        unwritten.update(zip(good, encoder.encode_pixels(pixels) if good else (), strict=True))
    entries = []
    for path, digest, loaded in looked:
        error, found = "", wrong.get(digest, loaded)
        vector: Vectors | int | None = None
        if isinstance(found, ImageError):
            error = found.message
        elif digest in known:
            error, vector = store.error(known[digest]), known[digest]
        else:
            vector = unwritten[digest]
        if error:
            summary.errors += 1
            if len(summary.failed) < 10:
                summary.failed.append((os.fsdecode(path), error))
        elif new.pop(digest, None) is not None:
            summary.encoded += 1
        else:
            summary.reused += 1
        if not store.holds(path, digest, error):
            entries.append(Entry(path, digest, error, vector))
    return entries


def _shard(store: Store, entries: list[Entry]) -> Shard:
    """The rows as columns, with vectors that the store has under another path copied."""
    vectors = np.full((len(entries), store.dim), np.nan, np.float32)
    copies = {at: entry.vector for at, entry in enumerate(entries) if isinstance(entry.vector, int)}
    vectors[list(copies)] = store.vectors(list(copies.values()))
    for at, entry in enumerate(entries):
        if isinstance(entry.vector, np.ndarray):
            vectors[at] = entry.vector
    paths, digests, errors, _ = zip(*entries, strict=True)
    return Shard(list(paths), list(digests), list(errors), vectors)
