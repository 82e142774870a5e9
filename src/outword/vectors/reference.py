"""The reference of an encoder: vectors of ordinary photos, shipped or made by `outword reference`; no photo is kept.

What photos that show none of the classes score is known from them, before anyone brings a photo of the classes.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from outword.base.arrays import checked_arrays, save_checked
from outword.base.cache import cache_dir
from outword.base.files import PathLike, parse_json, sha256_bytes
from outword.base.records import mistyped
from outword.base.reports import Report, quiet
from outword.base.wording import NAMED, a_few
from outword.encoders import Encoder
from outword.encoders.reading import Photo
from outword.errors import InputError
from outword.maths.numerics import matrix
from outword.vectors.reader import vectors_of
from outword.vectors.same_photo import first_of_each, known_by
from outword.vectors.shards import UNIT_TOLERANCE
from outword.vectors.source import find_source

SHIPPED = Path(str(files("outword"))) / "encoders" / "data" / "reference"
SCHEMA = 1
FEWEST, MOST = 100, 5000  # photos of a reference
_WNID = re.compile(r"n[0-9]{8}(?![0-9A-Za-z])")
_KINDS: dict[str, Any] = {
    "schema": int, "encoder": str, "source": str, "names": [str], "wnids": [str], "sets": [str]
}  # fmt: skip


class Named(NamedTuple):
    """What is known of what a photo shows: a name, WordNet's id of it, and the set that it is of; "" where unknown."""

    name: str = ""
    wnid: str = ""
    set: str = ""


@dataclass(frozen=True, eq=False)
class Reference:
    """Vectors of ordinary photos, and what is known of what they show; entries of unnamed photos are ""."""

    vectors: NDArray[np.float16] | NDArray[np.float32] = field(repr=False)  # (n, dim), unit rows but for rounding
    names: tuple[str, ...] = field(repr=False)  # (n,), a noun, or an adjective where there is no wnid
    wnids: tuple[str, ...] = field(repr=False)  # (n,), synsets of WordNet 3.0: "n02084071"
    sets: tuple[str, ...] = field(repr=False)  # (n,), the set that a photo is of
    source: str  # where the photos come from, in words

    def __len__(self) -> int:
        return len(self.vectors)

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of vectors, names and sets."""
        texts = json.dumps([self.names, self.wnids, self.sets]).encode()
        return sha256_bytes(np.ascontiguousarray(self.vectors).tobytes() + texts)

    def without(self, *sets: str) -> Reference:
        """The same without the photos of some sets, for benchmarks that judge photos of them."""
        rows = [row for row, own in enumerate(self.sets) if own not in sets]
        names, wnids, kept = (tuple(all_of[row] for row in rows) for all_of in (self.names, self.wnids, self.sets))
        return Reference(self.vectors[rows], names, wnids, kept, self.source)


@dataclass(frozen=True)
class Made:
    """A new reference, and what became of the photos that it was made from."""

    reference: Reference
    n_read: int  # photos that could be read
    n_repeats: int  # of those, photos that are among the others already
    n_unreadable: int
    failed: tuple[tuple[str, str], ...]  # path and reason of the first of these

    @property
    def n_spare(self) -> int:
        """How many photos were not needed, since there are enough."""
        return self.n_read - self.n_repeats - len(self.reference)


class _Kept(NamedTuple):
    """A photo that may be kept: its vector, the first of its names, and how often it was seen."""

    photo: Photo
    vector: NDArray[np.float16]
    times: int = 1

    def again(self, name: str) -> _Kept:
        """The same after it was seen once more; its name is the first one, whichever came first."""
        photo = replace(self.photo, name=min(self.photo.name, name))
        return self._replace(photo=photo, times=self.times + 1)


def by_wnid(path: str) -> Named:
    """The synset that a photo shows, where its file or a folder above it begins with WordNet's id.

    >>> by_wnid("train/n02084071/n02084071_1.jpg").wnid, by_wnid("train/dog/1.jpg").wnid
    ('n02084071', '')
    """
    found = filter(None, map(_WNID.match, reversed(re.split(r"[/\\]", path))))
    return Named(wnid=next((match[0] for match in found), ""))


def find_reference(encoder: Encoder) -> Reference | None:
    """The reference of an encoder: the user's own, else the one that is shipped; None if there is neither.

    One that was made for the encoder that this one was exported from will do. A damaged file counts as none, and a
    warning says so.
    """
    of = [encoder.fingerprint, *([encoder.exported_from] if encoder.exported_from else [])]
    places = [(whose, path) for whose in of for path in (kept_path(whose), shipped_path(whose))]
    if encoder.own_reference:
        places.insert(1, (encoder.fingerprint, encoder.own_reference))
    found = (read_reference(path, whose, encoder.dim) for whose, path in places)
    return next((one for one in found if one is not None), None)


def make_reference(
    encoder: Encoder,
    photos: Iterable[PathLike],
    *,
    column: str | None = None,
    named: Callable[[str], Named] = by_wnid,
    source: str | None = None,
    report: Report = quiet,
) -> Made:
    """Encode ordinary photos as a reference; nobody needs to say what they show.

    Photos are all that `outword.vectors.source.find_source` takes. Each counts once, wherever it lies
    (`outword.vectors.same_photo`). Those that cannot be read are left out. Of many,
    the 5,000 whose sha256 is smallest are kept, which does not depend on their order; memory stays flat. `named` says
    what is known of a photo by its path.
    """
    given = [os.fspath(path) for path in photos]
    pool, n_read, failed, n_failed = _Pool(), 0, list[tuple[str, str]](), 0
    opened = find_source(given, encoder, column=column)
    for some in vectors_of(encoder, opened):
        good = some.good
        pool.add(zip(good, some.values.astype(np.float16), strict=True))
        n_read, n_failed = n_read + len(good), n_failed + len(some.unreadable)
        failed = (failed + some.unreadable)[:NAMED]
        report("encoding photos", n_read + n_failed, opened.total())
    kept = pool.smallest()
    repeats = sum(one.times - 1 for one in kept)
    if len(kept) < FEWEST:
        raise InputError(
            f"a reference needs at least {FEWEST} different photos that can be read, got {len(kept)} "
            f"({repeats:,} more were repeats, {n_failed:,} could not be read)",
            hint="name a folder of ordinary photos, of anything",
        )
    told = source or a_few([PurePath(path).name for path in given])
    return Made(_together(kept, named, told), n_read, repeats, n_failed, tuple(failed))


def keep_reference(encoder: Encoder, reference: Reference) -> Path:
    """Write the reference of an encoder to the user's cache, where `find_reference` looks first; returns its path."""
    path = kept_path(encoder.fingerprint)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_reference(path, encoder, reference)
    except (OSError, SafetensorError) as error:
        hint = "set OUTWORD_CACHE to a folder that can be written"
        raise InputError(f"{path} cannot be written: {error}", hint=hint) from error
    return path


def write_reference(path: Path, encoder: Encoder, reference: Reference, *, small: bool = False) -> None:
    """Write a reference to a file, whole or not at all; small with vectors in int8 (`small_vectors`)."""
    texts = {"source": reference.source, "names": reference.names, "wnids": reference.wnids, "sets": reference.sets}
    card = json.dumps({"schema": SCHEMA, "encoder": encoder.fingerprint, **texts}).encode()
    vectors = np.ascontiguousarray(reference.vectors, np.float16)
    arrays = small_vectors(vectors) if small else {"vectors": vectors}
    save_checked(path, {**arrays, "card": np.frombuffer(card, np.uint8)})


def small_vectors(vectors: NDArray[np.float16]) -> dict[str, NDArray[Any]]:
    """Unit rows as int8, and a scale a row that makes them unit rows again; cosines change by about 8e-4.

    >>> small_vectors(np.array([[0.6, 0.8]], np.float16))["vectors"]
    array([[ 95, 127]], dtype=int8)
    """
    wide = vectors.astype(np.float32)
    small = np.round(wide * (127 / np.abs(wide).max(axis=1, keepdims=True))).astype(np.int8)
    lengths = np.linalg.norm(small.astype(np.float32), axis=1)
    return {"vectors": small, "scale": (1 / lengths).astype(np.float32)}


def kept_path(fingerprint: str) -> Path:
    """Where the user's own reference of an encoder is kept."""
    return cache_dir() / "reference" / f"{fingerprint[:16]}.safetensors"


def shipped_path(fingerprint: str) -> Path:
    """Where the package keeps the reference of an encoder, if it has it."""
    return SHIPPED / f"{fingerprint[:16]}.safetensors"


class _Pool:
    """The photos with the smallest digests so far, each content once; memory does not grow with what was added."""

    def __init__(self) -> None:
        self._photos: dict[bytes, _Kept] = {}

    def add(self, photos: Iterable[tuple[Photo, NDArray[np.float16]]]) -> None:
        for photo, vector in photos:
            known = self._photos.get(photo.digest)
            self._photos[photo.digest] = known.again(photo.name) if known else _Kept(photo, vector.copy())
        if len(self._photos) >= 2 * MOST:
            self._photos = {one.photo.digest: one for one in self.smallest()}

    def smallest(self) -> list[_Kept]:
        """At most `MOST` photos, by digest; one stands for all that are the same."""
        ordered = [self._photos[digest] for digest in sorted(self._photos)]
        known: dict[int, _Kept] = {}
        for one, first in zip(ordered, _firsts(ordered), strict=True):
            before = known.get(first)
            known[first] = before._replace(times=before.times + one.times) if before else one
        return list(known.values())[:MOST]


def _firsts(kept: Sequence[_Kept]) -> list[int]:
    """For each photo, whose contents differ, the place of the first that is the same."""
    if not kept:
        return []
    return first_of_each(known_by([one.photo.digest for one in kept], np.stack([one.vector for one in kept])))


def _together(kept: Sequence[_Kept], named: Callable[[str], Named], source: str) -> Reference:
    names, wnids, sets = zip(*(named(one.photo.name) for one in kept), strict=True)
    return Reference(np.stack([one.vector for one in kept]), names, wnids, sets, source)


def read_reference(path: Path, fingerprint: str, dim: int) -> Reference | None:
    """The reference in a file, of an encoder; None if there is no file, or with a warning if it is none.

    Vectors that are shipped are int8 with a scale a row (`small_vectors`), to keep the install small.
    """
    try:
        arrays = checked_arrays(path) if path == kept_path(fingerprint) else load_file(path)
        card, vectors = parse_json(arrays["card"].tobytes()), arrays["vectors"]
        if "scale" in arrays:
            vectors = (vectors * arrays["scale"][:, None]).astype(np.float16)
        if wrong := next(_wrong(card, vectors, fingerprint, dim), ""):
            raise ValueError(wrong)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, SafetensorError, ValueError, KeyError, TypeError, InputError) as error:
        warnings.warn(
            f"{path} cannot be used ({error}), so it is passed over; make it again with outword reference", stacklevel=3
        )
        return None
    names, wnids, sets = (tuple(card[key]) for key in ("names", "wnids", "sets"))
    return Reference(vectors, names, wnids, sets, card["source"])


def _wrong(card: Any, vectors: NDArray[Any], fingerprint: str, dim: int) -> Iterator[str]:
    """What is wrong with what a file says, in words."""
    if told := mistyped(card, _KINDS):
        yield told
    if card["schema"] != SCHEMA:
        yield f"its schema is {card['schema']}, and this version reads {SCHEMA}"
    if card["encoder"] != fingerprint:
        yield "it is that of another encoder"
    lengths = np.linalg.norm(matrix(vectors, "vectors", dim).astype(np.float32), axis=1)
    if not len(lengths) or not (np.abs(lengths - 1) <= UNIT_TOLERANCE).all():
        yield "its vectors must be some, of length 1"
    if {len(card[key]) for key in ("names", "wnids", "sets")} != {len(lengths)}:
        yield "each vector must have a name, a wnid and a set"
