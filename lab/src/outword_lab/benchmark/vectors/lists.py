"""Lists of labels of a folder of vectors, and which of its photos show a label and which do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from outword.choosing.photos import Indices, Photos, numbered
from outword.encoders.base import Vectors
from outword.words.forms import squeeze
from outword.words.kinds import are_below, is_kind, understand
from outword.words.labels import Label, Labels, check_labels
from outword_lab.encoders.vectors import VectorFolder, VectorSet

SIZES = (3, 10, 50, 200, 500, 1000)
HALVES = ("even classes", "odd classes")
NEAR_UP_TO = 200  # names, up to which photos of the other classes are counted as OOD
OTHERS = "other classes"
BROAD = (
    "cat, dog",
    "dog, bird, snake, insect, crustacean, vehicle, musical instrument, furniture, garment, vegetable",
    "dog, cat, bird, fish, insect",
    "car, boat, chair, bottle, instrument, tool, hat, clock",
    "fruit, vegetable, bread, drink",
    "monkey, bear, spider, lizard, truck, ship, keyboard, lamp, shoe, bag, bicycle, butterfly",
)
FEWEST = 2  # of a broad list's labels that must have a text


@dataclass(frozen=True)
class List:
    """A list of labels; `group` is what its figures are averaged under, `draw` its number among those."""

    group: str
    draw: int
    labels: tuple[str, ...]
    by_class: bool  # whether a photo is of a label by the label's class alone, or by all that lies below its sense

    @cached_property
    def typed(self) -> Labels:
        """The labels as `outword.fit` takes them."""
        return check_labels(list(self.labels))


@dataclass(frozen=True, eq=False)
class Judged:
    """The photos that a list is judged on: those of its labels, and sets of others."""

    inside: Photos
    classes: NDArray[np.int64]  # of each photo inside
    outside: tuple[Photos, ...]

    @property
    def rows(self) -> Indices:
        """All photos inside."""
        return np.arange(len(self.inside.vectors))


def drawn_lists(folder: VectorFolder, size: int, draws: int) -> list[List]:
    """Lists of so many class names by chance; where that is all of them, there is one."""
    return _drawn([*folder.class_names()], size, draws)


def half_lists(folder: VectorFolder, size: int, draws: int) -> list[List]:
    """The same from every other name, and then from those between them; none where a half has too few names."""
    names, found = [*folder.class_names()], []
    for start, half in enumerate(HALVES):
        own = names[start::2]
        if size < len(own):
            found += [replace(one, group=f"{one.group}, {half}") for one in _drawn(own, size, draws)]
    return found


def _drawn(names: Sequence[str], size: int, draws: int) -> list[List]:
    if size >= len(names):
        return [List(f"{len(names)} names", 0, tuple(names), True)]
    chosen = (np.random.default_rng([size, draw]).choice(len(names), size, replace=False) for draw in range(draws))
    drawn = [tuple(names[place] for place in np.sort(places)) for places in chosen]
    return [List(f"{size} names", draw, labels, True) for draw, labels in enumerate(drawn)]


def sizes_of(folder: VectorFolder) -> list[int]:
    """The sizes of drawn lists: those of `SIZES` that the folder has names for; the last may stand for all names."""
    n = len(folder.class_names())
    return [size for size in SIZES if size <= n] + [size for size in SIZES if size > n][:1]


def broad_lists(folder: VectorFolder) -> list[List]:
    """The broad lists, without the labels that the folder has no text for, or no photo of."""
    found = []
    for text in BROAD:
        labels = tuple(name for name in text.split(", ") if folder.knows_name(name) and _has_photos(folder, name))
        if len(labels) >= FEWEST:
            found.append(List(", ".join(labels), 0, labels, False))
    return found


def _has_photos(folder: VectorFolder, label: str) -> bool:
    return bool(_below(folder, check_labels([label])).any())


def judged(folder: VectorFolder, given: List) -> Judged:
    """The photos of a list. Other photos of the set inside count up to `NEAR_UP_TO` names, without kin of a label."""
    photos = folder.sets[folder.inside]
    below = _below(folder, given.typed)
    numbers = folder.class_names()
    named = np.isin(photos.classes, [numbers[label] for label in given.labels if label in numbers])
    own = named if given.by_class else below
    outside = [numbered(name, _others(one, given)) for name, one in folder.sets.items() if name != folder.inside]
    outside = [one for one in outside if len(one.vectors)]
    rest = ~own & ~below & ~_called(folder, given.labels)
    if len(given.labels) <= NEAR_UP_TO and rest.any():
        outside.insert(0, numbered(OTHERS, photos.vectors[rest]))
    return Judged(numbered("ID", photos.vectors[own]), photos.classes[own], tuple(outside))


def _others(one: VectorSet, given: List) -> Vectors:
    """The photos of another set, without those of classes that are called like a label or a kind of one."""
    meanings = understand(given.typed, "off")
    alike = [any(is_kind(names, meanings)) for names in one.shows]
    return one.vectors[~np.array(alike)[one.classes]] if alike else one.vectors


def _below(folder: VectorFolder, labels: Mapping[str, Label]) -> NDArray[np.bool_]:
    """Which photos of the set inside show what a label means, or a kind of it."""
    classes = np.array(are_below(folder.wnids, understand(labels, "off")))
    return classes[folder.sets[folder.inside].classes]


def _called(folder: VectorFolder, labels: Sequence[str]) -> NDArray[np.bool_]:
    """Which photos of the set inside are of a class that is called like a label."""
    taken = set(map(squeeze, labels))
    classes = np.array([squeeze(name) in taken for name in folder.all_class_names()])
    return classes[folder.sets[folder.inside].classes]
