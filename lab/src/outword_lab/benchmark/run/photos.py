"""The sets of a benchmark as vectors: each is encoded once for an encoder, through a store, and read back later."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from outword.base.files import parse_json, sha256_bytes, whole_file
from outword.choosing.photos import Indices, Photos
from outword.encoders import Encoder
from outword.encoders.base import Vectors
from outword.errors import ImageError, InputError, OutwordError
from outword.photos.sources import Files, Item
from outword.vectors.embed import embed
from outword.vectors.source import Source
from outword.vectors.store import Store, open_store
from outword.words.labels import Label
from outword_lab.benchmark.run.catalogue import Found, class_of, labels_of, source_of


@dataclass(frozen=True, kw_only=True)
class SetPhotos(Photos):
    """The photos of a set of the catalogue, or of the user's; sorted by path."""

    found: Found  # where the set lies

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of the vectors, and of the names below the place where the set lies."""
        digest = hashlib.sha256(np.ascontiguousarray(self.vectors).data)
        names = "\0".join(below(path, self.found.where) for path in self.paths)
        digest.update(names.encode("utf-8", "surrogateescape"))
        return digest.hexdigest()

    @cached_property
    def labels(self) -> dict[str, Label]:
        """The class names, each with its own prompt, if it has one."""
        return labels_of(self.found.data_set, self.paths)

    @cached_property
    def shown(self) -> Indices:
        """(n_photos,), index of the label that each photo shows; -1 where that is not known."""
        numbers = {name: number for number, name in enumerate(self.labels)}
        data_set = self.found.data_set
        return np.array([numbers.get(class_of(data_set, path) or "", -1) for path in self.paths], np.int64)


def encoded(encoder: Encoder, found: Found, store: Path, report: Callable[[int], None]) -> SetPhotos:
    """The photos of a set; what its store in `store` has is not encoded again, nor even read if no file has changed.

    What tells that is a marker beside the store: the listing of the files, the number of paths that the store then
    had, and those of them that are not there any more, or are another run's.
    """
    source = source_of(found, encoder)
    if source.stores:
        return _photos(found, source.stores[0].opened, frozenset())  # nothing to encode
    folder, listing = store / found.data_set.name, _listing(source)
    name = sha256_bytes(os.fsencode(found.data_set.name))[:16]  # a set may have a name as long as names can be
    marker = store / f".{name}.{encoder.fingerprint[:16]}.json"
    if (kept := _unchanged(marker, listing, folder, encoder)) is not None:
        return _photos(found, *kept)
    marker.unlink(missing_ok=True)  # it is wrong as soon as the store changes
    seen: set[str] = set()
    store.mkdir(parents=True, exist_ok=True)
    embed(encoder, _noted(source.items(), seen), folder, report=report)
    now = open_store(folder, encoder.fingerprint, encoder.name)
    gone = [path for path in now.paths() if path not in seen]
    with whole_file(marker) as temporary:
        text = json.dumps({"listing": listing, "rows": len(now), "gone": gone})
        temporary.write_text(text, encoding="utf-8")
    return _photos(found, now, frozenset(gone))


def below(path: str, top: Path | None) -> str:
    """A path as it is below a folder, such as the data root."""
    return path.removeprefix(f"{top}{os.sep}")


def _unchanged(marker: Path, listing: str, folder: Path, encoder: Encoder) -> tuple[Store, frozenset[str]] | None:
    """The store, and the paths in it that are gone, if neither files nor store have changed since it was filled."""
    try:
        known = parse_json(marker.read_bytes())
        if known["listing"] != listing:
            return None
        now = open_store(folder, encoder.fingerprint, encoder.name)
        return (now, frozenset(known["gone"])) if len(now) == known["rows"] else None
    except (OSError, ValueError, KeyError, TypeError, OutwordError):
        return None


def _photos(found: Found, store: Store, gone: frozenset[str]) -> SetPhotos:
    """The rows of a set; a store that other runs have used may have more, which are `gone`."""
    paths: list[str] = []
    unreadable = []
    vectors = np.empty((len(store), store.dim), np.float32)
    for path, vector in store.rows():
        if path in gone:
            continue
        if isinstance(vector, ImageError):
            unreadable.append((path, vector.message))
        else:
            vectors[len(paths)] = vector
            paths.append(path)
    if not paths:
        raise InputError(f"{found.where} has no image that can be read", hint="look at the files")
    digests = [*map(store.digest, paths)]
    return of_set(found, paths, vectors[: len(paths)], unreadable, digests)


def of_set(
    found: Found,
    paths: list[str],
    vectors: Vectors,
    unreadable: list[tuple[str, str]],
    digests: Sequence[bytes] = (),
) -> SetPhotos:
    """The photos of a set that was found."""
    name, given = found.data_set.name, found.paths
    return SetPhotos(name, paths, vectors, unreadable, digests, given, found=found)


def _noted(items: Iterator[Item], seen: set[str]) -> Iterator[Item]:
    """The items, with their names noted."""
    for item in items:
        seen.add(os.fspath(item))
        yield item


def _listing(source: Source) -> str:
    """sha256 of names, sizes and times of all files of a set: what tells that nothing has changed."""
    facts: list[object] = []
    for piece in source.pieces():
        facts.append(piece.version())
        for path in piece.names() if isinstance(piece, Files) else ():
            try:
                found = Path(path).stat()
            except OSError:
                facts.append(-1)
            else:
                facts.append((found.st_size, found.st_mtime_ns, found.st_ctime_ns))
    return sha256_bytes(json.dumps(facts).encode())
