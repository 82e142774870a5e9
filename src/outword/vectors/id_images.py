"""Photos that show the classes, from folders or stores: their vectors, and which label each of them shows."""

from __future__ import annotations

import difflib
import hashlib
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path, PurePath, PurePosixPath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outword.base.files import PathLike
from outword.base.reports import Report, quiet
from outword.base.wording import a_few
from outword.encoders import Encoder
from outword.encoders.base import Vectors
from outword.encoders.reading import Photo
from outword.errors import InputError
from outword.photos.sources import Files
from outword.photos.sources.filesystems import is_remote
from outword.photos.sources.patterns import is_there
from outword.vectors.reader import vectors_of
from outword.vectors.same_photo import Hashes, collected, known_by
from outword.vectors.source import Source, Stored, find_source
from outword.words.forms import fold
from outword.words.label_lists import words_of

Parts = tuple[str, ...]  # of a path


@dataclass(frozen=True)
class IdImages:
    """ID images, sorted by path."""

    vectors: Vectors  # (n_images, dim), unit rows
    classes: NDArray[np.int64] | None  # (n_images,), index of the label that each shows; None if not known of all
    counts: dict[str, int]  # how many images each label has; empty where `classes` is None
    left_out: list[tuple[str, str]]  # path and reason of the photos that could not be read
    stray: InputError | None = None  # what is wrong with the first photo that is in no folder with the name of a label
    digests: Sequence[bytes] = field(default=(), repr=False)  # sha256 of the files; b"" for what is in none
    paths: Sequence[str] = field(default=(), repr=False)  # of the images, and what they were read from: for those that
    given: Sequence[PathLike] = field(default=(), repr=False)  # want to see more of the photos than their vectors

    def some(self, rows: NDArray[np.int64], labels: Sequence[str]) -> IdImages:
        """Some of them."""
        classes, take = None if self.classes is None else self.classes[rows], rows.tolist()
        counts = Counter(() if classes is None else (labels[index] for index in classes))
        digests, paths = ([all_of[row] for row in take] if all_of else () for all_of in (self.digests, self.paths))
        return replace(self, vectors=self.vectors[rows], classes=classes, counts=counts, digests=digests, paths=paths)

    @cached_property
    def hashes(self) -> Hashes:
        """What the photos are known by later: the hashes of files and vectors."""
        return collected(*self.known)

    @cached_property
    def known(self) -> list[tuple[int | None, int]]:
        """The hashes of each photo (`same_photo`)."""
        return known_by(self.digests or [b""] * len(self.vectors), self.vectors)

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of vectors and classes."""
        digest = hashlib.sha256(np.ascontiguousarray(self.vectors).data)
        digest.update(b"" if self.classes is None else np.ascontiguousarray(self.classes).data)
        return digest.hexdigest()


class _Shown(NamedTuple):
    """A photo with its vector, the folders above it, and the number of the label that it shows by these."""

    photo: Photo
    vector: Vectors
    folders: Parts
    label: int | None


def read_id_images(
    encoder: Encoder,
    paths: PathLike | Iterable[PathLike],
    labels: Sequence[str],
    *,
    with_classes: bool,
    report: Report = quiet,
) -> IdImages:
    """Encode the photos behind paths, or read their vectors from stores; each path counts once.

    The class of a photo is the nearest folder above it whose name is a label, in an archive too; case, and underscores
    or hyphens for spaces, do not count. The folder or archive that was given counts, folders above it do not. For
    photos that were given one by one or are listed, and for the paths in stores, all folders above count. A photo in
    no such folder is an `InputError` if `with_classes`; without it, `classes` is then None.
    """
    source, names = _found(encoder, paths)
    label_of = cache(partial(class_among, known=label_keys(labels)))
    if with_classes and (stray := _first_stray(source, names, labels)):
        raise stray
    shown: dict[Parts, _Shown] = {}
    unreadable: dict[Parts, tuple[str, str]] = {}
    done = 0
    for some in vectors_of(encoder, source):
        piece = some.span.name
        for photo, vector in zip(some.good, some.values, strict=True):
            folders = names.folders(piece, photo.name)
            label = label_of(folders)
            if with_classes and label is None:
                raise _stray(photo.name, folders, labels)
            shown.setdefault(names.key(piece, photo.name), _Shown(photo, vector, folders, label))
        unreadable.update((names.key(piece, path), (path, reason)) for path, reason in some.unreadable)
        done += len(some.photos)
        report("encoding ID images", done, source.total())
    left_out = [unreadable[key] for key in sorted(unreadable)]
    found = _together([shown[key] for key in sorted(shown)], left_out, labels)
    return replace(found, given=names.given)


def find_stray(encoder: Encoder, paths: PathLike | Iterable[PathLike], labels: Sequence[str]) -> InputError | None:
    """What is wrong with the first photo that shows no label, if there is one, before anything is encoded.

    The arguments are those of `read_id_images`; photos in archives are not looked at.
    """
    return _first_stray(*_found(encoder, paths), labels)


def _found(encoder: Encoder, paths: PathLike | Iterable[PathLike]) -> tuple[Source, _Names]:
    """A source of what was given, and what its photos are known by; `InputError` if there is nothing at a path."""
    try:
        given = [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    except TypeError as error:
        raise InputError(f"ID images must be folders or stores: {error}", hint='write id_images="train"') from None
    for path in given:
        if not is_there(path):
            raise InputError(f"there are no ID images at {path}: no such file or folder", hint="check the path")
    tops = {_absolute(path): path for path in given}
    inputs = [tops[top] for top in sorted(tops)]
    source = find_source(inputs, encoder)
    return source, _Names(sorted(tops), source, inputs)


def _first_stray(source: Source, names: _Names, labels: Sequence[str]) -> InputError | None:
    label_of = cache(partial(class_among, known=label_keys(labels)))
    for piece in source.pieces():  # archives are seen when they are read
        for path in piece.names() if isinstance(piece, Files | Stored) else ():
            if label_of(folders := names.folders(piece.name, path)) is None:
                return _stray(path, folders, labels)
    return None


def _together(shown: list[_Shown], left_out: list[tuple[str, str]], labels: Sequence[str]) -> IdImages:
    """The photos as arrays; says what is left out, and which label nothing shows."""
    if left_out:
        told = a_few([f"{path!r}: {reason}" for path, reason in left_out])
        message = f"{len(left_out):,} of {len(shown) + len(left_out):,} ID images are left out ({told})"
        warnings.warn(message, stacklevel=4)
    if not shown:
        message = "there must be at least one ID image that can be read, got none"
        raise InputError(message, hint="name a folder with photos in it")
    stray = next((_stray(one.photo.name, one.folders, labels) for one in shown if one.label is None), None)
    classes = None if stray else np.array([one.label for one in shown], np.int64)
    counts = {} if classes is None else Counter(labels[index] for index in classes)
    if missing := [label for label in labels if label not in counts] if counts else []:
        warnings.warn(f"no ID image shows {a_few(missing)}: photos of that may be called out", stacklevel=4)
    vectors = np.stack([one.vector for one in shown])
    digests, paths = [one.photo.digest for one in shown], [one.photo.name for one in shown]
    return IdImages(vectors, classes, dict(counts), left_out, stray, digests, paths)


def _absolute(path: str) -> PurePath:
    return PurePosixPath(path) if is_remote(path) else Path(path).absolute()


class _Names:
    """What photos are known by, and the folders above them.

    `tops` are what was given, by whole paths: a folder comes before those in it, so that its name counts for all.
    """

    def __init__(self, tops: Sequence[PurePath], source: Source, given: Sequence[str]) -> None:
        self.given = given
        self._above = cache(partial(_above, tops))
        self._stores = {store.path for store in source.stores}

    def key(self, piece: str, path: str) -> Parts:
        """The whole path of a photo; one in a store may be of another folder, so that it counts as below the store."""
        return (_absolute(piece) / path if piece in self._stores else _absolute(path)).parts

    def folders(self, piece: str, path: str) -> Parts:
        """Names of the folders above a photo that count, nearest first."""
        if piece in self._stores:
            return PurePath(path).parent.parts[::-1]
        return self._above(os.path.dirname(path))  # noqa: PTH120  # much quicker, and there are as many as photos


def _above(tops: Sequence[PurePath], folder: str) -> Parts:
    """The names of a folder and of those above it, nearest first, up to the first of `tops` that it is below."""
    whole = _absolute(folder)
    top = next((top for top in tops if whole.is_relative_to(top)), None)
    below = whole.parts if top is None else (top.name, *whole.relative_to(top).parts)
    return below[::-1]


def label_keys(labels: Sequence[str]) -> dict[str, int]:
    """The number of each label by what is compared with the names of folders, for `class_among`."""
    known = {_key(label): index for index, label in enumerate(labels)}
    return known | {fold(label): index for index, label in enumerate(labels)}


def class_among(folders: Sequence[str], known: dict[str, int]) -> int | None:
    """The number of the label that one of some folders, the nearest first, has the name of; None if none has.

    A name may be joined, or a wnid, as where `outword.words.labels.read_labels` takes labels from folders.

    >>> class_among(["1", "Tabby-Cat"], label_keys(["dog", "tabby cat"])), class_among(["n02084071"], {"dog": 0})
    (1, 0)
    """
    keys = (key for name in folders for key in _keys(name))
    return next((known[key] for key in keys if key in known), None)


def _key(name: str) -> str:
    return fold(name.replace("-", " "))


def _keys(name: str) -> Iterator[str]:
    """What the name of a folder may say, a wnid with its sense and without."""
    yield from (fold(name), _key(name))
    words = words_of(name)
    yield from (fold(words), fold(words.partition("#")[0]))


def _stray(path: str, folders: Sequence[str], labels: Sequence[str]) -> InputError:
    """What to say of a photo that is in no folder with the name of a label."""
    folded = {_key(label): label for label in labels}
    for name in folders:
        if near := difflib.get_close_matches(_key(name), folded, n=1, cutoff=0.75):
            hint = f'did you mean "{folded[near[0]]}" by the folder "{name}"?'
            break
    else:
        hint = f"the labels are {a_few(labels)}"
    rule = "the class of an ID image is the nearest folder above it with the name of a label"
    return InputError(f"{rule}, and {path!r} is in none", hint=hint)
