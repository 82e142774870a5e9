"""What a source is made of: pieces, each a stretch of photos that is read in one go."""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from outword.base import lab
from outword.base.files import sha256_bytes
from outword.base.registry import Registry
from outword.errors import ImageError
from outword.photos.decode import Blob
from outword.photos.passed_over import PassedOver
from outword.photos.sources.filesystems import Link, fetched, is_remote

Item: TypeAlias = "Path | Blob"

PART = 8192
"""Photos of a piece that are written together, and the most of a piece that is a list of files."""

AGAIN = "fetch or copy it again"
_UNFIT = re.compile(r"[\x00-\x1f\x7f\ud800-\udc7f\udd00-\udfff]")  # in a name: control characters, lone surrogates


class Piece(ABC):
    """A stretch of a source that is read in one go and in a stable order, here or in another process.

    It is small, of strings and numbers only, and holds nothing open.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """What a manifest and a message call it."""

    @abstractmethod
    def items(self, skip: int = 0, *, contents: bool = True) -> Iterator[Item]:
        """Yield the photos in order, without the first `skip`.

        Bad data raises nothing: it is a blob with an `ImageError`, which says where the damage is, and reading goes on
        behind it where that is possible. A remote place that does not answer is an `UnreachableError`. The names do not
        depend on `skip`. Without `contents` the data of blobs is empty, and damage inside the photos of a table is not
        seen.
        """

    def lazy_items(self, skip: int = 0) -> Iterator[Item | Link]:
        """The items, but photos that lie elsewhere may still be links, for `filesystems.fetched`."""
        return self.items(skip)

    def names(self, skip: int = 0) -> Iterator[str]:
        """The names of the items, in order, without the first `skip`."""
        return map(os.fspath, self.items(skip, contents=False))

    def find(self, names: Collection[str]) -> Iterator[Item]:
        """The items with these names, and perhaps others, whose data may be empty."""
        return fetched(item for item in self.lazy_items() if os.fspath(item) in names)

    @abstractmethod
    def version(self) -> str:
        """Hexadecimal sha256 of what shows a change without reading the photos."""

    def count(self) -> int | None:
        """The number of items, where it is known without downloading or decompressing; else None."""
        return None


class LazyPiece(Piece):
    """A piece whose photos may lie elsewhere, which threads read ahead."""

    @abstractmethod
    def lazy_items(self, skip: int = 0, *, contents: bool = True) -> Iterator[Item | Link]:
        """What `items` yields, but photos that lie elsewhere are still links."""

    def items(self, skip: int = 0, *, contents: bool = True) -> Iterator[Item]:
        """The photos in order, without the first `skip`; those behind links are read ahead."""
        return fetched(self.lazy_items(skip, contents=contents))


@dataclass(frozen=True)
class FilePiece(Piece):
    """A piece that is called what its file is."""

    path: str

    @property
    def name(self) -> str:
        """The path of the file."""
        return self.path


@dataclass(frozen=True)
class Files(LazyPiece):
    """Plain files, here or behind URLs, at most `PART` of them."""

    paths: tuple[str, ...]

    @property
    def name(self) -> str:
        """The first file, and how many come after it."""
        return self.paths[0] if len(self.paths) == 1 else f"{self.paths[0]} and {len(self.paths) - 1} more"

    def lazy_items(self, skip: int = 0, *, contents: bool = True) -> Iterator[Item | Link]:
        """Local files as paths, to be read by who decodes them; remote ones as links."""
        return (at(path, contents) for path in self.paths[skip:])

    def version(self) -> str:
        """By the names."""
        return digest("files", *self.paths)

    def count(self) -> int:
        """The number of files."""
        return len(self.paths)


@dataclass(frozen=True)
class UnreadableSource(FilePiece):
    """A file that cannot be divided into pieces: one item with what is wrong with it."""

    error: str

    def items(self, skip: int = 0, *, contents: bool = True) -> Iterator[Item]:
        """The error."""
        return iter([Blob(self.path, ImageError(self.error))][skip:])

    def version(self) -> str:
        """By the file and the error."""
        return digest("broken", self.path, self.error)

    def count(self) -> int:
        """One, the error."""
        return 1


@dataclass(frozen=True)
class TableOptions:
    """How tables are read, and where files are counted that are passed over."""

    column: str | None = None  # that has the images; None looks for one
    strict: bool = False  # a table without that column is an `InputError`, else an `UnreadableSource`
    passed_over: PassedOver | None = None  # of folders, the files that are not taken


class Kind(NamedTuple):
    """A kind of source: which paths it takes, and what it makes of them: pieces, and the names of plain files."""

    takes: Callable[[str], bool]  # whether a path, which need not exist, is of this kind
    pieces: Callable[[str, TableOptions], Iterable[str | Piece]]  # behind the path, lazily and in a stable order
    suffixes: tuple[str, ...] = ()  # for archives, how their names end, in lower case
    prefix: str = ""  # how paths begin that are no files, "world:"; a file of such a name is read by its absolute path


SOURCES: Registry[Kind] = Registry(
    "source", "outword.sources", "docs/scale.md", lambda kind: "" if isinstance(kind, Kind) else "it is no Kind"
)
"""The kinds of other packages, asked before the last of ours, which takes any path."""


def unfiled(path: str) -> Kind | None:
    """The kind of a path that is no file, as its prefix tells; None for any other path, whatever is there."""
    head, colon, _ = path.partition(":")
    if not colon:
        return None
    found = next((kind for kind in SOURCES.values() if kind.prefix == f"{head}:"), None)
    if found is None and (lacks := lab.missing(SOURCES.group, f"{head}:")):
        raise lacks
    return found


def at(path: str, contents: bool = True) -> Item | Link:
    """The photo at a path or URL."""
    if not is_remote(path):
        return Path(path)
    return Link(path, path) if contents else Blob(path, b"")


def refusal(error: Exception) -> str:
    """Why a file cannot be read, where it is more than damage: what the system says, or a remote place; else ""."""
    if isinstance(error, ImageError):
        return error.message
    if isinstance(error, MemoryError):  # a damaged length may ask for more than there is
        return "not enough memory to read it"
    return error.strerror.lower() if isinstance(error, OSError) and error.strerror else ""


def digest(*facts: str | int) -> str:
    """Hexadecimal sha256 of some facts."""
    return sha256_bytes(json.dumps(facts).encode())


def inner(name: str) -> str:
    """A name from inside an archive without what could be taken for a path elsewhere, break a line, or not be written.

    >>> inner("/../etc//./a\\nb.jpg")
    '_/etc/a_b.jpg'
    """
    parts = ("_" if part == ".." else part for part in _UNFIT.sub("_", name).split("/") if part not in ("", "."))
    return "/".join(parts)
