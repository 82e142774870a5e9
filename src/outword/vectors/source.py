"""What photos are read from: files, archives and URLs, and stores of vectors; listed once, however often it is read.

A source is cut into pieces. Most give photos, which are to be decoded and encoded. A store of "outword embed" is one
piece, and gives vectors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count, groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

from outword.base.files import PathLike
from outword.encoders import Encoder
from outword.encoders.base import Vectors
from outword.encoders.reading import Photo
from outword.errors import ImageError, InputError
from outword.photos import sources as photos
from outword.photos.passed_over import PassedOver
from outword.photos.sources.base import Item, Piece, unfiled
from outword.photos.sources.filesystems import is_remote
from outword.vectors.listing import Listing
from outword.vectors.store import Store, any_paths, is_store, open_store

Only = Callable[[str], bool]  # whether a photo belongs to a source, by its name


class Identity(NamedTuple):
    """What tells whose vectors a store has; `name` is said where it has none of them. Any encoder has these, too."""

    fingerprint: str
    name: str


@dataclass(frozen=True)
class Stored:
    """A store as a piece of a source: what it has of one encoder, in the order of the paths."""

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

    def photos(self, skip: int = 0) -> Iterator[tuple[Photo, Vectors | None]]:
        """The photos of the rows without the first `skip`, each with its vector (dim,), or an error."""
        for place, (path, value) in enumerate(islice(self.opened.rows(), skip, None), skip):
            photo = Photo(path, place, digest=self.opened.digest(path))
            if isinstance(value, ImageError):
                yield replace(photo, error=value), None
            else:
                yield photo, value

    def names(self, skip: int = 0) -> Iterator[str]:
        """The paths of the rows; no vector is read."""
        return islice(self.opened.paths(), skip, None)

    def version(self) -> str:
        """By the files that it had when it was opened."""
        return self.opened.version()


@dataclass(frozen=True)
class Job:
    """What is left to do of a piece: it has a number in its source, and its first `skip` items are done."""

    number: int
    piece: Piece | Stored
    skip: int = 0
    version: str = ""  # of the piece, where anyone wants to know
    only: Only | None = None


class Source:
    """Photos and vectors, in a stable order; see `find_source`.

    A thread lists it, once, from the first use on. Memory stays flat for any number of files. Groups are stores, and
    between them what `outword.photos.sources.find_pieces` takes. `passed_over` counts the files of folders that are
    none of it, because of their names.
    """

    def __init__(self, groups: list[Stored | list[str]], column: str | None = None, only: Only | None = None) -> None:
        self.groups = groups
        self.column = column
        self._only = only
        self.passed_over = PassedOver()

    @property
    def stores(self) -> list[Stored]:
        """The stores among it."""
        return [group for group in self.groups if isinstance(group, Stored)]

    @property
    def has_photos(self) -> bool:
        """Whether anything is to be encoded."""
        return len(self.stores) < len(self.groups)

    @property
    def is_relative(self) -> bool:
        """Whether a path of it hangs on the current folder; lines of lists and rows of tables are not looked at."""
        groups = ([group.path] if isinstance(group, Stored) else group for group in self.groups)
        return any(_hangs_on_folder(path) for group in groups for path in group)

    def pieces(self) -> Iterator[Piece | Stored]:
        """The pieces, in order, as far as they are listed; then it waits for more."""
        return (piece if isinstance(piece, Piece) else self.stores[piece] for piece in self._listing)

    def jobs(self) -> Iterator[Job]:
        """All pieces as jobs from their beginning on."""
        return (Job(number, piece, only=self._only) for number, piece in enumerate(self.pieces()))

    def has(self, name: str) -> bool:
        """Whether a photo that was listed counts."""
        return self._only is None or self._only(name)

    def items(self) -> Iterator[Item]:
        """The photos of all pieces, in order; of stores nothing."""
        for piece in self.pieces():
            for item in piece.items() if isinstance(piece, Piece) else ():
                if self.has(os.fspath(item)):
                    yield item

    def n_pieces(self) -> int:
        """The number of pieces; waits until all are listed."""
        return self._listing.wait()

    def total(self) -> int | None:
        """The number of photos and vectors, once all are listed and where it can be known; else None."""
        return None if self._only else self._listing.total()

    @cached_property
    def _listing(self) -> Listing[Piece | int]:
        return Listing(_listed(self.groups, self.column, self.passed_over))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.groups, self.column, self._only)  # to be listed there


def find_source(
    given: Iterable[PathLike],
    encoder: Encoder | Identity,
    *,
    column: str | None = None,
    only: Only | None = None,
    otherwise: Callable[[], Encoder] | None = None,
) -> Source:
    """A source of all that is given; stores are opened, and what is wrong with the first of it is said now.

    Given are stores of "outword embed", from which the vectors of the encoder are read, or those of what `otherwise`
    gives, and what `outword.photos.sources.find_pieces` takes; `column` is that of tables which has the photos.
    """
    groups: list[Stored | list[str]] = []
    for stored, group in groupby(given, key=_is_store):
        names = [os.fspath(path) for path in group]
        groups += [_stored(name, encoder, otherwise) for name in names] if stored else [names]
    source = Source(groups, column, only)
    next(source.pieces(), None)
    return source


def find_names(given: Iterable[PathLike], *, column: str | None = None) -> Iterator[str]:
    """The names of the photos behind paths, whichever encoder stores have vectors of; damage is passed over.

    `column` is that of tables which has the photos.
    """
    for stored, group in groupby(given, key=_is_store):
        if stored:
            yield from chain.from_iterable(map(any_paths, group))
        else:
            yield from photos.find_names(group, column=column)


def _is_store(path: PathLike) -> bool:
    return not unfiled(os.fspath(path)) and is_store(path)


def _hangs_on_folder(path: str) -> bool:
    return not is_remote(path) and not unfiled(path) and not Path(path).is_absolute()


def _stored(path: str, encoder: Encoder | Identity, otherwise: Callable[[], Encoder] | None) -> Stored:
    found = Stored(path, encoder.fingerprint, encoder.name)
    try:
        found.opened  # noqa: B018  # what is wrong with it is said now
    except InputError:
        if otherwise is None:
            raise
        return _stored(path, otherwise(), None)
    return found


def _listed(
    groups: list[Stored | list[str]], column: str | None, passed_over: PassedOver
) -> Iterator[tuple[Piece | int, int | None]]:
    """The pieces with what is in them; of stores, which are open already and stay so, the number among the stores."""
    stores = count()
    for group in groups:
        if isinstance(group, Stored):
            yield next(stores), len(group.opened)
        else:
            pieces = photos.find_pieces(group, column=column, passed_over=passed_over)
            yield from ((piece, piece.count()) for piece in pieces)
