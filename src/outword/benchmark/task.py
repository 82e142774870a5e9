"""What one cell of a benchmark is measured on: labels, the ID photos that are scored, and those that are fitted on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from outword.benchmark.catalogue import class_of
from outword.benchmark.photos import Indices, Photos
from outword.errors import InputError, ParameterError
from outword.files import sha256_bytes
from outword.id_images import IdImages


@dataclass(frozen=True)
class Task:
    """Labels with their own prompt, if any, rows of the ID set to score, and ID images to fit on, if there are any."""

    labels: dict[str, str]
    rows: Indices
    id_images: IdImages | None

    @property
    def labels_fingerprint(self) -> str:
        """sha256 of the labels and their prompts, in order."""
        return sha256_bytes(repr(list(self.labels.items())).encode())


def make_task(photos: Photos, train: Photos | None, *, seed: int, n_labels: int | None, split: bool) -> Task:
    """The task of a seed.

    Args:
        photos: the ID set.
        train: photos to fit on, of the same classes.
        seed: of what is drawn.
        n_labels: draw so many of the labels, and keep their photos only; None keeps all.
        split: without `train`, draw half of the photos of each class to fit on; the others are scored.
    """
    names, rows = list(photos.labels), np.arange(len(photos.paths))
    if n_labels is not None:
        names = _drawn(photos, n_labels, seed)
        rows = np.flatnonzero(np.isin(_known_classes(photos), [list(photos.labels).index(name) for name in names]))
    labels = {name: photos.labels[name] for name in names}
    if train is not None:
        return Task(labels, rows, _id_images(train, np.arange(len(train.paths)), names))
    fitted = half(photos.classes, rows, seed) if split else rows[:0]
    if not len(fitted):
        return Task(labels, rows, None)
    return Task(labels, np.setdiff1d(rows, fitted), _id_images(photos, fitted, names))


def half(classes: Indices | None, rows: Indices, seed: int) -> Indices:
    """Half of the rows of each class, rounded down, drawn by the seed; sorted.

    >>> half(np.array([0, 0, 0, 1]), np.arange(4), seed=0)
    array([2])
    """
    rng = np.random.default_rng([seed, len(rows)])
    known = np.zeros(len(rows), np.int64) if classes is None else classes[rows]
    drawn = []
    for number in np.unique(known):
        own = rng.permutation(rows[known == number])
        drawn.append(own[: len(own) // 2])
    return np.sort(np.concatenate(drawn))


def _drawn(photos: Photos, n_labels: int, seed: int) -> list[str]:
    names = list(photos.labels)
    if not 2 <= n_labels <= len(names):
        raise ParameterError(
            f"K must be 2 to {len(names)}, the labels of {photos.name}, got {n_labels}", hint="lower it"
        )
    chosen = np.random.default_rng([seed, n_labels]).choice(len(names), n_labels, replace=False)
    return [names[i] for i in np.sort(chosen)]


def _known_classes(photos: Photos) -> Indices:
    if photos.classes is None:
        raise InputError(
            f"K needs the class of each photo, and {photos.name} does not tell it",
            hint="sort its photos into class folders",
        )
    return photos.classes


def _id_images(photos: Photos, rows: Indices, names: Sequence[str]) -> IdImages | None:
    """Photos to fit on: those that show one of the labels, or all of them where classes are not known."""
    numbers = {name: number for number, name in enumerate(names)}
    shown = [numbers.get(class_of(photos.found.data_set, photos.paths[row]) or "", -1) for row in rows]
    classes = np.array(shown, np.int64)
    if photos.classes is None and (classes < 0).all():
        return IdImages(photos.vectors[rows], None, {}, photos.unread)
    kept = classes >= 0
    if not kept.any():
        return None
    counts = Counter(names[number] for number in classes[kept])
    return IdImages(photos.vectors[rows[kept]], classes[kept], dict(counts), photos.unread)
