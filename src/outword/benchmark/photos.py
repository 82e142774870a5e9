"""The sets of a benchmark as vectors: each is encoded once for an encoder, through a store, and read back later."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outword.benchmark.catalogue import Found, OwnSet, class_of, labels_of, set_items
from outword.embed import embed
from outword.encoders import Encoder
from outword.encoders.base import Vectors
from outword.errors import ImageError, InputError
from outword.files import sha256_bytes, whole_file
from outword.images import Blob
from outword.store import open_store

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Photos:
    """The photos of a set that could be read, sorted by path.

    Attributes:
        found: where the set lies.
        paths: of the photos, or their names inside an archive.
        vectors: (n_photos, dim), unit rows.
        unread: path and reason of those that could not be read.
    """

    found: Found
    paths: list[str]
    vectors: Vectors
    unread: list[tuple[str, str]]

    @property
    def name(self) -> str:
        """Of the set."""
        return self.found.data_set.name

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of the vectors."""
        return hashlib.sha256(np.ascontiguousarray(self.vectors).data).hexdigest()

    @cached_property
    def labels(self) -> dict[str, str]:
        """The class names, each with its own prompt, if it has one."""
        data_set = self.found.data_set
        if isinstance(data_set, OwnSet):
            return dict(data_set.labels)
        return dict.fromkeys(labels_of(data_set, self.paths), "")

    @cached_property
    def classes(self) -> Indices | None:
        """(n_photos,), index of the label that each photo shows; None where that is not known of all."""
        numbers = {name: number for number, name in enumerate(self.labels)}
        shown = [numbers.get(class_of(self.found.data_set, path) or "") for path in self.paths]
        return None if None in shown else np.array(shown, np.int64)


def encoded(encoder: Encoder, found: Found, store: Path, report: Callable[[int], None]) -> Photos:
    """The photos of a set; what the store has is not encoded again, and not even read if no file has changed.

    Args:
        encoder: what makes the vectors.
        found: the set.
        store: folder of the stores, one for each set.
        report: called with the number of photos done.
    """
    name = found.data_set.name
    marker, listing = store / f"{name}.{encoder.fingerprint[:16]}.json", _listing(found.paths)
    known = _read_marker(marker)
    if known.get("listing") != listing:
        seen: set[str] = set()
        store.mkdir(parents=True, exist_ok=True)
        embed(encoder, _noted(set_items(found), seen), store / name, report=report)
        rows = open_store(store / name, encoder.fingerprint, encoder.name).rows()
        known = {"listing": listing, "gone": [path for path, _ in rows if path not in seen]}
        with whole_file(marker) as temporary:
            temporary.write_text(json.dumps(known), encoding="utf-8")
    return _photos(encoder, found, store / name, frozenset(known["gone"]))


def _photos(encoder: Encoder, found: Found, folder: Path, gone: frozenset[str]) -> Photos:
    paths, vectors, unread = [], [], []
    for path, vector in open_store(folder, encoder.fingerprint, encoder.name).rows():
        if path in gone:
            continue
        if isinstance(vector, ImageError):
            unread.append((path, vector.message))
        else:
            paths.append(path)
            vectors.append(vector)
    if not paths:
        raise InputError(f"{found.where} has no image that can be read", hint="look at the files")
    return Photos(found, paths, np.stack(vectors), unread)


def _noted(items: Iterator[Path | Blob], seen: set[str]) -> Iterator[Path | Blob]:
    """The items, with their names noted."""
    for item in items:
        seen.add(os.fspath(item))
        yield item


def _listing(paths: Iterable[Path]) -> str:
    """sha256 of names, sizes and times of all files of a set: what tells that nothing has changed."""
    files = [
        file
        for path in paths
        for file in (
            [path] if path.is_file() else sorted(Path(top, n) for top, _, names in os.walk(path) for n in names)
        )
    ]
    facts = []
    for file in files:
        try:
            found = file.stat()
        except OSError:
            facts.append((str(file), -1, -1))
        else:
            facts.append((str(file), found.st_size, found.st_mtime_ns))
    return sha256_bytes(json.dumps(facts).encode())


def _read_marker(path: Path) -> Mapping[str, Any]:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) and isinstance(known.get("gone"), list) else {}
