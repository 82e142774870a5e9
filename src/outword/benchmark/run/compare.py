"""Methods on sets of the user's own: cells of a benchmark on vectors in memory, the quick methods first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from outword.base.files import PathLike
from outword.base.reports import Report, Say, quiet
from outword.benchmark.run.catalogue import Found, own_found, source_of
from outword.benchmark.run.measure import Cell
from outword.benchmark.run.photos import Photos
from outword.benchmark.run.results import Place, Row
from outword.benchmark.run.suite import Entry
from outword.benchmark.run.task import Task
from outword.detector.fitting import LabelCache
from outword.detector.inputs import check_store, missing_inputs, not_handed
from outword.detector.recipe import Recipe
from outword.encoders import Encoder
from outword.errors import InputError, OutwordError
from outword.maths.methods import DETECTORS, Need
from outword.maths.methods.needs import from_pixels
from outword.vectors.id_images import read_id_images
from outword.vectors.reader import vectors_of
from outword.vectors.same_photo import any_of
from outword.vectors.source import Source
from outword.words.labels import Label

INSIDE = "ID"  # what the ID set is called
SEED = 0  # of all that is drawn by chance
MEAN = "mean"
NAMED = 3  # photos that cannot be read and are named
FIGURES = ("auroc", "aupr_id", "aupr_ood", "fpr95_id", "fpr95_ood", "fit_seconds", "score_seconds")
Opened = tuple[Found, Source]  # a set, and what its photos are read from


def open_sets(encoder: Encoder, inside: Sequence[PathLike], outside: Mapping[str, PathLike]) -> list[Opened]:
    """The ID set, then the OOD sets, each from all that `outword score` takes; nothing is decoded yet."""
    sets = [own_found(INSIDE, inside), *(own_found(name, [path]) for name, path in outside.items())]
    return [(found, source_of(found, encoder)) for found in sets]


def applicable(
    entries: Iterable[Entry],
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
    for entry in entries:
        try:
            recipe = entry.recipe(encoder, corpus=corpus, words=words, seed=SEED)
            for store in (store for _, source in sets for store in source.stores):
                check_store(recipe.method, recipe.make_scorer(), store.path)
            if missing := missing_inputs(recipe, id_images if Need.ID_IMAGES in recipe.wants else None, stray):
                raise missing
            if lack := not_handed(recipe.method, recipe.wants, by_hand):
                raise lack
        except OutwordError as error:
            tell(f"left out: {entry.method}: {error.message}")
        else:
            changed = ", ".join(f"{key}={value}" for key, value in {**entry.params, **recipe.on_vectors}.items())
            found[f"{entry.method} ({changed})" if changed else entry.method] = recipe
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
    task = Task(dict(labels), np.arange(len(inside.paths)), fit_on)
    places = {name: Place(INSIDE, encoder.name, "", name) for name in recipes}
    given: dict[str, Any] = {"seed": SEED, "by_hand": by_hand or {}}
    cells = (Cell(places[name], recipe, task, inside, outside, **given) for name, recipe in recipes.items())
    yield from run_cells(cells, report=report, tell=tell)


def _slowness(recipe: Recipe) -> tuple[bool, ...]:
    """What takes long, the longest first.

    Prompts are learned, photos are encoded once more, a corpus is encoded, classes are learned.
    """
    trains, anew = DETECTORS[recipe.method].trains, bool(from_pixels(recipe.wants))
    return trains, anew, Need.WILD in recipe.wants, Need.ID_LABELS in recipe.wants


def run_cells(cells: Iterable[Cell], *, report: Report = quiet, tell: Say = quiet) -> Iterator[list[Row]]:
    """The rows of each cell, as soon as they are ready; labels and encoder are the same in all."""
    label_cache: LabelCache = {}
    failed = True
    for cell in cells:
        try:
            rows, _ = cell.rows(cell.measure(label_cache, report))
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
    means: dict[str, Any] = {name: float(np.mean([getattr(row, name) for row in rows])) for name in FIGURES}
    return replace(rows[0], ood=MEAN, **means)


def none_applies() -> InputError:
    """What to raise where no method is left."""
    return InputError("there must be a method that applies, got none", hint="see what each of them lacks, above")


def read_sets(encoder: Encoder, sets: Sequence[Opened], report: Report, tell: Say) -> list[Photos]:
    """The sets as vectors in memory; says what could not be read, even where a set has nothing else."""
    read: list[Photos] = []
    try:
        for found, source in sets:
            read.append(_read_set(encoder, found, source, report))
            if not read[-1].paths:
                raise InputError(f"the {read[-1].name} set has no image that can be read", hint="check its path")
    finally:
        bad = [one for photos in read for one in photos.unreadable]
        for path, reason in bad[:NAMED]:
            tell(f"left out {path!r}: {reason}")
        if len(bad) > NAMED:
            tell(f"and {len(bad) - NAMED:,} more")
    return read


def _read_set(encoder: Encoder, found: Found, source: Source, report: Report) -> Photos:
    """The photos of a set in the order of its source; there may be none."""
    paths, vectors = list[str](), [np.zeros((0, encoder.dim), np.float32)]
    digests, unreadable = list[bytes](), list[tuple[str, str]]()
    for some in vectors_of(encoder, source):
        paths += [photo.name for photo in some.good]
        vectors.append(some.values)
        digests += [photo.digest for photo in some.good]
        unreadable += some.unreadable
        report(found.data_set.name, len(paths) + len(unreadable), source.total())
    return Photos(found, paths, np.concatenate(vectors), unreadable, digests)
