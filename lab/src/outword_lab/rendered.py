"""Sets of the small rendered world, such as `world:near`: photos that lie nowhere, and are drawn."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from outword.base.checks import unknown
from outword.errors import InputError
from outword.photos.decode import Blob
from outword.photos.sources.base import Kind, Piece, TableOptions, UnreadableSource, digest

if TYPE_CHECKING:
    from outword_lab.world.sets import WorldSet

PREFIX = "world:"
SEE = "lab/docs/world.md"


def is_rendered(path: str) -> bool:
    """Whether a path is of the world, by how it begins; a file of that very name is not looked for.

    >>> is_rendered("world:near/turtle/000.png"), is_rendered("/photos/world:near")
    (True, False)
    """
    return path.startswith(PREFIX)


@dataclass(frozen=True)
class Rendered(Piece):
    """Some photos of a set in a row: all of them, those of a thing, or a single one."""

    path: str  # as it was given, without a slash at its end
    set_name: str
    start: int
    stop: int

    @property
    def name(self) -> str:
        """The path, such as "world:near"."""
        return self.path

    def items(self, skip: int = 0, *, contents: bool = True) -> Iterator[Blob]:
        """The photos as PNG, drawn one after the other; without `contents` nothing is drawn."""
        photos = _set(self.set_name).photos(self.start + skip) if contents else None
        for name in self.names(skip):
            yield Blob(name, b"" if photos is None else _png(next(photos)))

    def names(self, skip: int = 0) -> Iterator[str]:
        """The names of the photos, such as "world:near/turtle/000.png"."""
        names = islice(_set(self.set_name).names, self.start + skip, self.stop)
        return (f"{PREFIX}{self.set_name}/{name}" for name in names)

    def find(self, names: Collection[str]) -> Iterator[Blob]:
        """The photos with these names; no other is drawn."""
        for number, name in enumerate(self.names(), self.start):
            if name in names:
                yield Blob(name, _png(_set(self.set_name).some(number, number + 1)[0]))

    def version(self) -> str:
        """By the names, and by the version of all pixels of the world."""
        from outword_lab.world.sets import VERSION

        return digest("world", VERSION, self.set_name, self.start, self.stop)

    def count(self) -> int:
        """The number of photos."""
        return self.stop - self.start


def rendered(path: str) -> Rendered:
    """What is behind `world:SET`, `world:SET/THING` or `world:SET/THING/NUMBER.png`; `InputError` if nothing is."""
    path = path.rstrip("/")
    name, _, below = path.removeprefix(PREFIX).partition("/")
    names, (thing, _, number) = _set(name).names, below.partition("/")
    own = [place for place, one in enumerate(names) if not thing or one.startswith(f"{thing}/")]
    if not own:
        things = dict.fromkeys(one.partition("/")[0] for one in names)
        error = unknown(f"thing in {PREFIX}{name}", thing, things, SEE)
        raise InputError(f"{error.message}, which has {', '.join(things)}", hint=error.hint)
    places = [place for place in own if not number or names[place] == below]
    if not places:
        span = f"{names[own[0]]} to {names[own[-1]]}"
        raise InputError(f"there is no {below} in the set {PREFIX}{name}", hint=f"it has {span}")
    return Rendered(path, name, places[0], places[-1] + 1)


def _set(name: str) -> WorldSet:
    from outword_lab.world.sets import world_sets  # heavy, and needed by those alone who ask for it

    if name not in world_sets():
        error = unknown("set of the world", name, world_sets(), SEE)
        raise InputError(f"{error.message}, which has {', '.join(world_sets())}", hint=error.hint)
    return world_sets()[name]


def _png(pixels: Any) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", compress_level=1)
    return file.getvalue()


def _pieces(path: str, options: TableOptions) -> list[Piece]:
    try:
        return [rendered(path)]
    except InputError as error:
        if options.strict:
            raise
        return [UnreadableSource(path, error.message)]


KIND = Kind(is_rendered, _pieces, prefix=PREFIX)
