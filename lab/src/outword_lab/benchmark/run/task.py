"""What one cell of a benchmark is measured on: labels, the ID photos that are scored, and those that are fitted on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from outword.base.files import sha256_bytes
from outword.choosing.photos import Indices
from outword.errors import InputError, ParameterError
from outword.vectors.id_images import IdImages
from outword.words.labels import Label
from outword_lab.benchmark.run.photos import SetPhotos


@dataclass(frozen=True)
class Task:
    """A list of labels, and photos."""

    labels: dict[str, Label]  # with their own prompt, if any
    rows: Indices  # of the ID set, to score
    fit_on: tuple[SetPhotos, Indices] | None = None  # photos, and which of them

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of the labels with their prompts, in order."""
        return sha256_bytes(repr(list(self.labels.items())).encode())

    @cached_property
    def id_images(self) -> IdImages | None:
        """Photos to fit on: those that show one of the labels, or all where no class is known; None if there are none.

        They are the same for all methods of a seed, and taken from the vectors when a method first asks.
        """
        if self.fit_on is None:
            return None
        photos, rows = self.fit_on
        if (photos.shown < 0).all():
            return IdImages(photos.vectors[rows], None, {}, photos.unreadable)
        numbers = {name: number for number, name in enumerate(self.labels)}
        theirs = np.array([*(numbers.get(name, -1) for name in photos.labels), -1], np.int64)  # -1 is no class
        classes = theirs[photos.shown[rows]]
        kept = classes >= 0
        if not kept.any():
            return None
        names = list(self.labels)
        counts = Counter(names[number] for number in classes[kept])
        whole = kept.all() and len(rows) == len(photos.paths)
        vectors = photos.vectors if whole else photos.vectors[rows[kept]]
        paths = [photos.paths[row] for row in rows[kept]]
        return IdImages(vectors, classes[kept], dict(counts), photos.unreadable, paths=paths, given=photos.given)


def make_task(photos: SetPhotos, train: SetPhotos | None, *, seed: int, n_labels: int | None, split: bool) -> Task:
    """The task of a seed on the ID set `photos`: all labels, or `n_labels` of them by chance with their photos only.

    `train` has the photos to fit on. Without any, `split` draws half of the photos of each class for that; the others
    are scored.
    """
    labels, rows = photos.labels, np.arange(len(photos.paths))
    if n_labels is not None:
        labels = _drawn(photos, n_labels, seed)
        rows = np.flatnonzero(np.isin(photos.shown, [list(photos.labels).index(name) for name in labels]))
    if train is not None:
        return Task(labels, rows, (train, np.arange(len(train.paths))))
    fitted = half(photos.shown, rows, seed) if split else rows[:0]
    if not len(fitted):
        return Task(labels, rows)
    return Task(labels, np.setdiff1d(rows, fitted), (photos, fitted))


def half(shown: Indices, rows: Indices, seed: int) -> Indices:
    """Half of the rows of each class, rounded down, drawn by the seed; sorted. Without any class, half of all.

    >>> half(np.array([0, 0, 0, 1]), np.arange(4), seed=0)
    array([2])
    """
    rng = np.random.default_rng([seed, len(rows)])
    known = rows[shown[rows] >= 0] if (shown[rows] >= 0).any() else rows
    own = (rng.permutation(known[shown[known] == number]) for number in np.unique(shown[known]))
    return np.sort(np.concatenate([rows[:0], *(one[: len(one) // 2] for one in own)]))


def _drawn(photos: SetPhotos, n_labels: int, seed: int) -> dict[str, Label]:
    """Labels by chance, in the order of the list."""
    if (photos.shown < 0).any():
        raise InputError(
            f"K needs the class of each photo, and {photos.name} does not tell it", hint="sort them into class folders"
        )
    names = list(photos.labels)
    if not 2 <= n_labels <= len(names):
        raise ParameterError(
            f"K must be 2 to {len(names)}, the labels of {photos.name}, got {n_labels}", hint="lower it"
        )
    chosen = np.sort(np.random.default_rng([seed, n_labels]).choice(len(names), n_labels, replace=False))
    return {names[number]: photos.labels[names[number]] for number in chosen}
