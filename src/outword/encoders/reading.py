"""The one reader: photos to chunks of pixels, wherever the photos come from; threads decode ahead of the encoder.

All that decodes photos does it here: runs, calibration, explanations, stores, references, calls of Python with a list
of photos, and, photo by photo (`read_photo`), the service. So all of them see the same pixels on any device, and say
the same of a photo that cannot be read.

A chunk is cut by the places of its photos alone, and by nothing that hangs on how fast anything is. So it has the same
photos whichever process reads it: local runs, runs on a cluster and resumed runs give the same vectors on the same kind
of machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from outword.base.processors import usable_cpus
from outword.encoders.loader import Loader, Seen
from outword.errors import ImageError, OutwordError
from outword.photos.ahead import attempt, decode_ahead, grouped, sound, weight
from outword.photos.decode import ImageLike, read_hashed
from outword.photos.quality import UNSEEN, Look
from outword.photos.sources.base import PART

Gather = Callable[[Sequence[Any]], tuple[Any, list[ImageError | None]]]


@dataclass(frozen=True, slots=True)
class Photo:
    """A photo that was read, or could not be: all that is known of it but its pixels.

    Attributes:
        name: its path, or its place in a list, such as `photos[3]`.
        place: how many photos of its list, or of its piece of a source, come before it.
        error: what is wrong with it, or None.
        digest: sha256 of its file; b"" where nobody asked, and where it is no file.
        look: what there is to note of it; nothing where a device decodes it.
        is_known: whether somebody has what becomes of this content already, so that it was not decoded.
    """

    name: str
    place: int
    error: OutwordError | None = None
    digest: bytes = b""
    look: Look = UNSEEN
    is_known: bool = False

    @property
    def is_good(self) -> bool:
        """Whether it was decoded, and nothing is wrong with it."""
        return self.error is None and not self.is_known

    @property
    def reason(self) -> str:
        """What is wrong with it, in words; "" if nothing is."""
        return self.error.message if self.error else ""

    def check(self) -> None:
        """Raise what is wrong with it, if anything is; the error names it."""
        if isinstance(self.error, ImageError):
            raise ImageError(f"{self.name!r}: {self.error.message}", hint=self.error.hint)
        if self.error:
            raise self.error


@dataclass(frozen=True)
class Span:
    """Where a chunk lies in its source: in which piece, of this number, name and version, and where in that."""

    piece: int = 0
    name: str = ""
    version: str = ""
    first: int = 0  # how many photos of the piece come before
    end: bool = False  # whether the piece ends here; one without photos is an empty chunk


@dataclass(frozen=True)
class Chunk:
    """Photos that follow one another in a list, or in a piece of a source.

    `values` has something for each of the good ones, in order: what was loaded and is to be gathered, in a list; pixels
    (n, height, width, 3), where the loader left them; or vectors (n, dim).
    """

    span: Span
    photos: list[Photo]
    values: Any

    @property
    def good(self) -> list[Photo]:
        """The photos that `values` are of."""
        return [photo for photo in self.photos if photo.is_good]

    @property
    def unreadable(self) -> list[tuple[str, str]]:
        """The name of each photo that something is wrong with, and what it is."""
        return [(photo.name, photo.reason) for photo in self.photos if photo.error]

    def pairs(self) -> Iterator[tuple[Photo, Any]]:
        """Each photo with its value; None for those that have none."""
        values = iter(self.values)
        for photo in self.photos:
            yield photo, next(values) if photo.is_good else None

    def with_values(self, values: Any) -> Chunk:
        """The same photos, with other values of the good ones."""
        return replace(self, values=values)

    def with_errors(self, errors: Sequence[OutwordError | None]) -> Chunk:
        """The same without values, after something else was asked of each good photo: what is wrong now, or None."""
        photos = [
            replace(photo, error=error, look=UNSEEN) if error else photo
            for photo, error in self.with_values(errors).pairs()
        ]
        return replace(self, photos=photos, values=())

    def check(self) -> Chunk:
        """The same chunk, if nothing is wrong with any photo; else the error of the first one is raised."""
        for photo in self.photos:
            photo.check()
        return self


# What goes from the list to the chunk: the piece; the photo, or None after the last of a piece; and its content, which
# is what is to be read, then what was loaded, or a vector
Entry = tuple[Span, Photo | None, Any]


def read_photos(
    images: Iterable[ImageLike],
    loader: Loader,
    size: int,
    *,
    hashed: bool = False,
    known: Container[bytes] = (),
) -> Iterator[Chunk]:
    """Photos of a list, which may be endless, in chunks of `size`; see `read_entries`."""
    return read_entries(entries_of(Span(), images), loader, size, hashed=hashed, known=known)


def read_photo(loader: Loader, image: ImageLike, place: int = 0, **limits: Any) -> tuple[Photo, Any]:
    """A single photo, and what is to be gathered, for those who decode one at a time; see `Loader.load_one`."""
    return _loaded(Photo(name_of(image, place), place), attempt(partial(loader.load_one, **limits), image))


def entries_of(span: Span, images: Iterable[ImageLike]) -> Iterator[Entry]:
    """The photos of a piece, from where the span begins, and the end of the piece."""
    for place, image in enumerate(images, span.first):
        yield span, Photo(name_of(image, place), place), image
    yield span, None, None


def read_entries(
    entries: Iterable[Entry],
    loader: Loader,
    size: int,
    *,
    workers: int | None = None,
    hashed: bool = False,
    known: Container[bytes] = (),
) -> Iterator[Chunk]:
    """Read photos, in order, `size` to a chunk; a chunk ends where a piece does, and every `PART` photos of it.

    Threads load what is in the next chunks, by default one a processor, and where gathering takes its time, one more
    thread gathers. With `hashed`, photos have the sha256 of their files; those in `known` are not decoded.
    """
    load = partial(_load, loader, hashed, known)
    groups = grouped(entries, loader.together)
    most = max(2, 2 * size // loader.together)
    ahead = decode_ahead(groups, load, workers=workers or usable_cpus(), ahead=most, weigh=_weight)
    chunks = cut(_each(ahead), size)
    if not loader.apart:
        yield from (gathered(chunk, loader.gather) for chunk in chunks)
        return
    for _, chunk in decode_ahead(chunks, partial(gathered, gather=loader.gather), workers=1, ahead=2):
        yield sound(chunk)


def cut(entries: Iterable[Entry], size: int) -> Iterator[Chunk]:
    """What was loaded as chunks of at most `size` photos, that end where a piece does, and every `PART` photos."""
    held: list[tuple[Photo, Any]] = []
    for span, photo, value in entries:
        if photo is None or (held and (photo.place % PART == 0 or len(held) == size)):
            yield _chunk(span, held, end=photo is None)
            held = []
        if photo:
            held.append((photo, value))


def gathered(chunk: Chunk, gather: Gather) -> Chunk:
    """The same chunk with what was loaded as one batch; what is wrong with a photo may show only now."""
    if not chunk.values:
        return chunk.with_values(np.zeros(0))
    pixels, errors = gather(chunk.values)
    return chunk.with_errors(errors).with_values(pixels)


def name_of(image: ImageLike, place: int) -> str:
    """What a photo is called: its path, or its place in the list."""
    return os.fspath(image) if isinstance(image, str | os.PathLike) else f"photos[{place}]"


def _weight(group: Sequence[Entry]) -> int:
    return sum(weight(image) for _, _, image in group)


def _each(ahead: Iterable[tuple[list[Entry], list[Entry] | OutwordError]]) -> Iterator[Entry]:
    for group, loaded in ahead:
        del group  # files need not be in memory while the next ones are read
        yield from sound(loaded)
        del loaded


def _load(loader: Loader, hashed: bool, known: Container[bytes], group: Sequence[Entry]) -> list[Entry]:
    """The same entries, with what the loader made of the photos."""
    opened = [_opened(*entry, known) if hashed else entry for entry in group]
    good = [(place, photo) for place, (_, photo, _) in enumerate(opened) if photo and photo.is_good]
    values = loader.load([opened[place][2] for place, _ in good])
    for (place, photo), value in zip(good, values, strict=True):
        opened[place] = (opened[place][0], *_loaded(photo, value))
    return opened


def _opened(span: Span, photo: Photo | None, image: Any, known: Container[bytes]) -> Entry:
    """An entry with the content of the photo's file, and its sha256."""
    if photo is None or not isinstance(image, str | bytes | os.PathLike):
        return span, photo, image
    found = attempt(read_hashed, image)
    if isinstance(found, OutwordError):
        return span, replace(photo, error=found), None
    digest, content = found
    is_known = digest in known
    return span, replace(photo, digest=digest, is_known=is_known), None if is_known else content


def _loaded(photo: Photo, value: Any) -> tuple[Photo, Any]:
    """A photo and what there is to gather, from what the loader made of it."""
    if isinstance(value, OutwordError):
        return replace(photo, error=value), None
    if isinstance(value, Seen):
        return replace(photo, look=value.look), value
    return photo, value


def _chunk(span: Span, held: Sequence[tuple[Photo, Any]], *, end: bool) -> Chunk:
    first = held[0][0].place if held else span.first
    values = [value for photo, value in held if photo.is_good]
    return Chunk(replace(span, first=first, end=end), [photo for photo, _ in held], values)
