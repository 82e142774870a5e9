"""Photos that show the classes, from folders or stores: their vectors, and which label each of them shows."""

from __future__ import annotations

import difflib
import hashlib
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outword.encoders import Encoder
from outword.encoders.base import Vectors
from outword.errors import InputError, OutwordError
from outword.photos.images import find_images
from outword.vectors.fitted import Hashes, collected, hashes_of_files, hashes_of_vectors, short
from outword.vectors.store import is_store, open_store
from outword.words.forms import fold

PathLike = str | os.PathLike[str]
NAMED = 3  # photos or labels that a message names


@dataclass(frozen=True)
class IdImages:
    """ID images, sorted by path.

    Attributes:
        vectors: (n_images, dim), unit rows.
        classes: (n_images,), index of the label that each image shows; None where that is not known of all.
        counts: how many images each label has; empty where `classes` is None.
        left_out: path and reason of the photos that could not be read.
        stray: what is wrong with the first photo that is in no folder with the name of a label, if there is one.
        contents: hashes of the files (see `outword.vectors.fitted`), as far as there were any.
    """

    vectors: Vectors
    classes: NDArray[np.int64] | None
    counts: dict[str, int]
    left_out: list[tuple[str, str]]
    stray: InputError | None = None
    contents: Sequence[int] = field(default=(), repr=False)

    @cached_property
    def hashes(self) -> Hashes:
        """What the photos are known by later: the hashes of files and vectors."""
        return collected(self.contents, hashes_of_vectors(self.vectors))

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of vectors and classes."""
        digest = hashlib.sha256(np.ascontiguousarray(self.vectors).data)
        digest.update(b"" if self.classes is None else np.ascontiguousarray(self.classes).data)
        return digest.hexdigest()


class Photo(NamedTuple):
    """A photo before it is encoded: its path, the folders above it, nearest first; its vector and hash from a store."""

    path: str
    folders: tuple[str, ...]
    vector: Vectors | OutwordError | None = None
    content: int | None = None


def read_id_images(
    encoder: Encoder,
    paths: PathLike | Iterable[PathLike],
    labels: Sequence[str],
    *,
    with_classes: bool,
    report: Callable[[str, int, int], None] = lambda task, done, total: None,
) -> IdImages:
    """Encode the photos of folders, or read their vectors from stores.

    The class of a photo is the nearest folder above it whose name is a label; case, and underscores or hyphens for
    spaces, do not count. The folder that was given counts, those above it do not. For photos that were given one by
    one, and for the paths in stores, all folders above count.

    Args:
        encoder: what makes the vectors.
        paths: folders, photos or stores of "outword embed", one or several.
        labels: the class names.
        with_classes: a photo in no such folder is an error; without it, `classes` is then None.
        report: called with (task, done, total).
    """
    try:
        several = [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    except TypeError as error:
        raise InputError(f"ID images must be folders or stores: {error}", hint='write id_images="train"') from None
    photos = _find(encoder, several)
    known = label_keys(labels)
    by_folders = {folders: class_among(folders, known) for folders in {photo.folders for photo in photos}}
    found = [by_folders[photo.folders] for photo in photos]
    stray = _stray(photos[found.index(None)], labels) if None in found else None
    if with_classes and stray:
        raise stray
    vectors, contents, left_out = _encoded(encoder, photos, report)
    kept = sorted(vectors)
    if left_out:
        told = a_few([f"{path!r}: {reason}" for path, reason in left_out])
        _warn(f"{len(left_out):,} of {len(photos):,} ID images are left out ({told})")
    if not kept:
        raise InputError(
            "there must be at least one ID image that can be read, got none", hint="name a folder with photos in it"
        )
    classes = None if None in found else np.array(found, np.int64)[kept]
    counts = {} if classes is None else Counter(labels[index] for index in classes)
    if missing := [label for label in labels if label not in counts] if counts else []:
        _warn(f"no ID image shows {a_few(missing)}: photos of that may be called out")
    return IdImages(np.stack([vectors[at] for at in kept]), classes, dict(counts), left_out, stray, contents)


def _find(encoder: Encoder, paths: Sequence[str]) -> list[Photo]:
    """The photos behind the paths, each file once, sorted by path whatever the order of the paths is."""
    tops = {Path(path).absolute(): path for path in paths}
    found: dict[Path, Photo] = {}
    for _, top in sorted(tops.items()):  # a folder comes before those in it: its own name counts for all of them
        stored = is_store(top)
        base = Path(top).absolute() if stored else Path.cwd()  # a path in a store may be of another folder
        for photo in _stored(encoder, top) if stored else _files(top):
            found.setdefault(base / photo.path, photo)
    return [photo for _, photo in sorted(found.items())]


def _stored(encoder: Encoder, top: str) -> Iterator[Photo]:
    store = open_store(top, encoder.fingerprint, encoder.name)
    for path, vector in store.rows():
        yield Photo(path, _above(path), vector, short(store.digest(path)))


def _files(top: str) -> Iterator[Photo]:
    folder = Path(top).absolute()  # "." has a name, too
    for path in find_images([top]):
        if path == Path(top) and not path.exists():
            raise InputError(f"there are no ID images at {top}: no such file or folder", hint="check the path")
        if folder.is_dir():
            yield Photo(os.fspath(path), (*_above(path.relative_to(top)), folder.name))
        else:
            yield Photo(os.fspath(path), _above(path.absolute()))


def _above(path: PathLike) -> tuple[str, ...]:
    """Names of the folders above a file, nearest first."""
    return tuple(reversed(Path(path).parent.parts))


def label_keys(labels: Sequence[str]) -> dict[str, int]:
    """The number of each label by what is compared with the names of folders, for `class_among`."""
    known = {_key(label): index for index, label in enumerate(labels)}
    return known | {fold(label): index for index, label in enumerate(labels)}


def class_among(folders: Sequence[str], known: dict[str, int]) -> int | None:
    """The number of the label that one of some folders, the nearest first, has the name of; None if none has.

    >>> class_among(["1", "Tabby-Cat"], label_keys(["dog", "tabby cat"]))
    1
    """
    keys = (key for name in folders for key in (fold(name), _key(name)))
    return next((known[key] for key in keys if key in known), None)


def _key(name: str) -> str:
    return fold(name.replace("-", " "))


def _stray(photo: Photo, labels: Sequence[str]) -> InputError:
    """What to say of a photo that is in no folder with the name of a label."""
    folded = {_key(label): label for label in labels}
    for name in photo.folders:
        if near := difflib.get_close_matches(_key(name), folded, n=1, cutoff=0.75):
            hint = f'did you mean "{folded[near[0]]}" by the folder "{name}"?'
            break
    else:
        hint = f"the labels are {a_few(labels)}"
    return InputError(
        f"the class of an ID image is the nearest folder above it with the name of a label, and {photo.path!r} is in "
        "none",
        hint=hint,
    )


def _encoded(
    encoder: Encoder, photos: list[Photo], report: Callable[[str, int, int], None]
) -> tuple[dict[int, Vectors], list[int], list[tuple[str, str]]]:
    """Vectors by the number of the photo, the hashes of the files, and what could not be read."""
    vectors: dict[int, Vectors] = {}
    errors: dict[int, OutwordError] = {}
    for at, photo in enumerate(photos):
        if isinstance(photo.vector, OutwordError):
            errors[at] = photo.vector
        elif photo.vector is not None:
            vectors[at] = photo.vector
    numbers = [at for at, photo in enumerate(photos) if photo.vector is None]
    contents = {at: photo.content for at, photo in enumerate(photos) if photo.vector is not None}
    paths = [photos[at].path for at in numbers]
    hashed = hashes_of_files(paths)
    loaded = zip(numbers, encoder.pixels_ahead(paths), strict=True)
    done = 0
    while part := list(islice(loaded, encoder.chunk)):
        contents.update((at, content) for (at, _), (_, content) in zip(part, hashed, strict=False))
        errors.update((at, pixels) for at, (_, pixels) in part if isinstance(pixels, OutwordError))
        good = {at: pixels for at, (_, pixels) in part if not isinstance(pixels, OutwordError)}
        if good:
            vectors.update(zip(good, encoder.encode_pixels(np.stack(list(good.values()))), strict=True))
        done += len(part)
        report("encoding ID images", done, len(numbers))
    known = [content for at in vectors if (content := contents[at]) is not None]
    return vectors, known, [(photos[at].path, error.message) for at, error in sorted(errors.items())]


def a_few(items: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = f" and {len(items) - NAMED:,} more" if len(items) > NAMED else ""
    return ", ".join(items[:NAMED]) + more


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=4)
