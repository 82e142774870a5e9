"""Methods on sets of the user's own: a table of all that apply, on vectors in memory, the quick methods first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain
from typing import Any

import numpy as np

from outword.base.files import PathLike
from outword.base.reports import Report, Say, quiet
from outword.choosing.cell import Cell, Figures
from outword.choosing.photos import Photos
from outword.detector.fitting import LabelCache
from outword.detector.inputs import check_store, missing_inputs, not_handed
from outword.detector.recipe import Recipe, resolve
from outword.encoders import Encoder
from outword.errors import InputError, OutwordError
from outword.maths.methods import DETECTORS, Need
from outword.maths.methods.needs import from_pixels
from outword.vectors.id_images import read_id_images
from outword.vectors.reader import vectors_of
from outword.vectors.same_photo import any_of
from outword.vectors.source import Source, find_source
from outword.words.labels import Label

INSIDE = "ID"  # what the ID set is called
SEED = 0  # of all that is drawn by chance
MEAN = "mean"
NAMED = 3  # photos that cannot be read and are named


@dataclass(frozen=True)
class Row(Figures):
    """The figures of a method on an OOD set."""

    method: str  # as its rows are called
    ood: str


@dataclass(frozen=True)
class Tried:
    """A method as it takes part; but for what is said here, as it was published."""

    method: str
    kinds: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)

    def recipe(self, encoder: Encoder, corpus: str | None, words: PathLike | None) -> Recipe:
        """How it is made where photos are scored by their vectors."""
        kind = DETECTORS[self.method]
        own = words if kind.corpus == "" else corpus
        how: dict[str, Any] = {"prompts": kind.prompts, "kinds": self.kinds, "vectors_only": True, "seed": SEED}
        return resolve(encoder, self.method, self.params, corpus=own, **how)


@dataclass(frozen=True)
class Opened:
    """A set of the user's, of which nothing is decoded yet."""

    name: str
    given: Sequence[PathLike]
    source: Source


def taking_part(methods: Iterable[str], kinds: str | None) -> list[Tried]:
    """Methods with the kinds that were asked for; those that learn the classes from photos have none."""
    learns = {name: Need.ID_LABELS in DETECTORS[name].needs for name in methods}
    return [Tried(name, None if learns[name] else kinds) for name in learns]


def open_sets(encoder: Encoder, inside: Sequence[PathLike], outside: Mapping[str, PathLike]) -> list[Opened]:
    """The ID set, then the OOD sets, each from all that `outword score` takes; nothing is decoded yet."""
    return [opened(encoder, INSIDE, inside), *(opened(encoder, name, [path]) for name, path in outside.items())]


def opened(encoder: Encoder, name: str, given: Sequence[PathLike]) -> Opened:
    """A set from all that `outword score` takes; nothing is decoded yet."""
    return Opened(name, given, find_source(given, encoder))


def applicable(
    methods: Iterable[Tried],
    encoder: Encoder,
    *,
    corpus: str | None = None,
    words: PathLike | None = None,
    id_images: object = None,
    stray: InputError | None = None,
    by_hand: Iterable[Need] = (),
    sets: Sequence[Opened] = (),
    tell: Say = quiet,
) -> dict[str, Recipe]:
    """The recipes of the methods that lack nothing, by what their rows are called, the quick ones first.

    The name says which parameters were set, also those by which a method that looks at pixels is content with vectors.
    Nothing is encoded. `corpus` is for the methods that take any words, `words` for those that want a list of the
    user's, `id_images` and `stray` (see `missing_inputs`) for those that look at ID images, `by_hand` what was
    handed over for photos (`Detector.handed`); `sets` are to be scored.
    """
    found: dict[str, Recipe] = {}
    for one in methods:
        try:
            recipe = one.recipe(encoder, corpus, words)
            for store in (store for opened in sets for store in opened.source.stores):
                check_store(recipe.method, recipe.make_scorer(), store.path)
            if missing := missing_inputs(recipe, id_images if Need.ID_IMAGES in recipe.wants else None, stray):
                raise missing
            if lack := not_handed(recipe.method, recipe.wants, by_hand):
                raise lack
        except OutwordError as error:
            tell(f"left out: {one.method}: {error.message}")
        else:
            changed = ", ".join(f"{key}={value}" for key, value in {**one.params, **recipe.on_vectors}.items())
            found[f"{one.method} ({changed})" if changed else one.method] = recipe
    return dict(sorted(found.items(), key=lambda item: _slowness(item[1])))


def compare(
    recipes: Mapping[str, Recipe],
    labels: Mapping[str, Label],
    sets: Sequence[Opened],
    *,
    id_images: Sequence[PathLike] = (),
    by_hand: Mapping[Need, Any] | None = None,
    report: Report = quiet,
    tell: Say = quiet,
) -> Iterator[list[Row]]:
    """Encode the photos, then give the rows of each method, one for each OOD set, as soon as they are ready.

    All recipes have the same encoder; labels come with their own prompts, if they have any. `id_images` are photos of
    the classes, for the methods that look at some, and `by_hand` is what was handed over for photos
    (`Detector.handed`), which are known there by name and vector alone.
    """
    if not recipes:
        raise none_applies()
    for name, recipe in recipes.items():
        if DETECTORS[recipe.method].sees_order:
            tell(
                f"{name} learns from the images that it scores: ID and OOD images come as one stream, shuffled by the "
                f"seed {SEED}, afresh for each OOD set"
            )
    encoder, fit_on = next(iter(recipes.values())).encoder, None
    if any(Need.ID_IMAGES in recipe.wants for recipe in recipes.values()):
        fit_on = read_id_images(encoder, id_images, [*labels], with_classes=False, report=report)
    inside, *outside = read_sets(encoder, sets, report, tell)
    if fit_on and any_of(chain(*inside.known), fit_on.hashes):
        tell(
            "warning: --id and --id-images share photos: the methods that are fitted on them look better than they are"
        )
    rows = np.arange(len(inside.paths))
    given: dict[str, Any] = {"id_images": fit_on, "by_hand": by_hand or {}, "seed": SEED}
    cells = {name: Cell(recipe, labels, inside, rows, outside, **given) for name, recipe in recipes.items()}
    yield from run_cells(cells, report=report, tell=tell)


def _slowness(recipe: Recipe) -> tuple[bool, ...]:
    """What takes long, the longest first.

    Prompts are learned, photos are encoded once more, a corpus is encoded, classes are learned.
    """
    trains, anew = DETECTORS[recipe.method].trains, bool(from_pixels(recipe.wants))
    return trains, anew, Need.WILD in recipe.wants, Need.ID_LABELS in recipe.wants


def run_cells(cells: Mapping[str, Cell], *, report: Report = quiet, tell: Say = quiet) -> Iterator[list[Row]]:
    """The rows of each cell, by the name of its method, as soon as they are ready; labels and encoder are the same."""
    label_cache: LabelCache = {}
    failed = True
    for name, cell in cells.items():
        try:
            measured = cell.measure(label_cache, report)
            rows = [Row(**asdict(measured.figures(one.name)), method=name, ood=one.name) for one in cell.outside]
        except OutwordError as error:
            tell(f"left out: {cell.recipe.method}: {error.message}")
        else:
            failed = False
            yield rows
    if failed:
        raise none_applies()


def mean_row(rows: Sequence[Row]) -> Row:
    """The mean of a method's rows over the OOD sets."""
    if len(rows) == 1:
        return rows[0]
    means: dict[str, Any] = {
        one.name: float(np.mean([getattr(row, one.name) for row in rows])) for one in fields(Figures)
    }
    return replace(rows[0], ood=MEAN, **means)


def none_applies() -> InputError:
    """What to raise where no method is left."""
    return InputError("there must be a method that applies, got none", hint="see what each of them lacks, above")


def read_sets(encoder: Encoder, sets: Sequence[Opened], report: Report, tell: Say) -> list[Photos]:
    """The sets as vectors in memory; says what could not be read, even where a set has nothing else."""
    read: list[Photos] = []
    try:
        for one in sets:
            read.append(_read_set(encoder, one, report))
            if not read[-1].paths:
                raise InputError(f"the {read[-1].name} set has no image that can be read", hint="check its path")
    finally:
        bad = [one for photos in read for one in photos.unreadable]
        for path, reason in bad[:NAMED]:
            tell(f"left out {path!r}: {reason}")
        if len(bad) > NAMED:
            tell(f"and {len(bad) - NAMED:,} more")
    return read


def _read_set(encoder: Encoder, one: Opened, report: Report) -> Photos:
    """The photos of a set in the order of its source; there may be none."""
    paths, vectors = list[str](), [np.zeros((0, encoder.dim), np.float32)]
    digests, unreadable = list[bytes](), list[tuple[str, str]]()
    for some in vectors_of(encoder, one.source):
        paths += [photo.name for photo in some.good]
        vectors.append(some.values)
        digests += [photo.digest for photo in some.good]
        unreadable += some.unreadable
        report(one.name, len(paths) + len(unreadable), one.source.total())
    return Photos(one.name, paths, np.concatenate(vectors), unreadable, digests, one.given)
