"""Methods on sets of the user's own: a table of all that apply, on vectors in memory, the quick methods first."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from outword.base.files import PathLike
from outword.base.reports import Report, Say, quiet
from outword.choosing.cell import Cell, Figures
from outword.choosing.photos import Photos
from outword.detector.fitting import LabelCache
from outword.detector.inputs import check_store, missing_inputs, not_handed
from outword.detector.recipe import Recipe, resolve
from outword.encoders import Encoder, get_encoder
from outword.errors import InputError, OutwordError
from outword.maths.methods import DETECTORS, Need
from outword.maths.methods.needs import from_pixels
from outword.photos.sources.patterns import check_there
from outword.vectors.id_images import find_stray, read_id_images
from outword.vectors.reader import vectors_of
from outword.vectors.same_photo import any_of
from outword.vectors.source import Source, find_source
from outword.words.corpora import get_corpus
from outword.words.labels import Given, Label, check_labels

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


@dataclass(frozen=True)
class Comparison:
    """Methods and sets, all of them checked; the photos are encoded when rows are asked for.

    Iterating gives a row for each method as soon as it is ready, the mean over the OOD sets; `by_set` gives a row for
    each of them.
    """

    recipes: Mapping[str, Recipe]  # of the methods that apply, by what their rows are called, the quick ones first
    labels: Mapping[str, Label]
    sets: Sequence[Opened]  # the ID set, then the OOD sets
    id_images: Sequence[PathLike]
    by_hand: Mapping[Need, Any]  # what was handed over for photos (`Detector.handed`)
    report: Report
    tell: Say

    def __iter__(self) -> Iterator[Row]:
        return map(mean_row, self.by_set())

    def by_set(self) -> Iterator[list[Row]]:
        """Encode the photos, then give the rows of each method, one for each OOD set, as soon as they are ready."""
        encoder, fit_on = next(iter(self.recipes.values())).encoder, None
        if any(Need.ID_IMAGES in recipe.wants for recipe in self.recipes.values()):
            names = [*self.labels]
            fit_on = read_id_images(encoder, self.id_images, names, with_classes=False, report=self.report)
        inside, *outside = read_sets(encoder, self.sets, self.report, self.tell)
        if fit_on and any_of(chain(*inside.known), fit_on.hashes):
            self.tell(
                "warning: --id and --id-images share photos: the methods that are fitted on them look better than they "
                "are"
            )
        rows = np.arange(len(inside.paths))
        given: dict[str, Any] = {"id_images": fit_on, "by_hand": self.by_hand, "seed": SEED}
        cells = {
            name: Cell(recipe, self.labels, inside, rows, outside, **given) for name, recipe in self.recipes.items()
        }
        yield from run_cells(cells, report=self.report, tell=self.tell)


def compare(
    labels: Given,
    inside: PathLike | Iterable[PathLike],
    outside: PathLike | Iterable[PathLike] | Mapping[str, PathLike],
    *,
    encoder: str | Encoder = "mini",
    methods: Iterable[str] | None = None,
    id_images: PathLike | Iterable[PathLike] = (),
    corpus: str | None = None,
    words: PathLike | None = None,
    words_per_image: Any = None,
    kinds: str | None = None,
    report: Report = quiet,
    tell: Say = quiet,
) -> Comparison:
    """Compare methods on photos of yours: each photo is encoded once and scored by all of them.

    Args:
        labels: the class names, as for `outword.fit`.
        inside: photos that show the classes, all that `outword.scoring.run` takes.
        outside: sets of photos that show none of them: a path each, or paths by name.
        encoder: a name, or what `get_encoder` gave.
        methods: their names; by default all. Those that cannot be used here are left out, and `tell` says why.
        id_images: photos of the classes, for the methods that are fitted on some.
        corpus: where wild words come from, by name or a text file; by default what each method was published with.
        words: a word list of yours, for the methods that want one.
        words_per_image: what `outword.read_words_per_image` gave, for the methods that want it.
        kinds: whether labels stand for their kinds, as for `outword.fit`.
        report: called with (task, done, total) during long work.
        tell: called with a line for what is left out, and for what is odd.

    Returns:
        A `Comparison`. Iterating it encodes and scores, and gives a row for each method with `method`, `auroc`,
        `aupr_id`, `aupr_ood`, `fpr95_id`, `fpr95_ood`, `fit_seconds` and `score_seconds`; shares are fractions.
    """
    typed, taking = check_labels(labels), taking_part(DETECTORS if methods is None else methods, kinds)
    own_paths, fit_paths, others = there(inside), there(id_images), named_sets(outside)
    for words_of in (corpus, words):
        if words_of is not None:
            get_corpus(words_of)
    used = encoder if isinstance(encoder, Encoder) else get_encoder(encoder)
    sets = [opened(used, INSIDE, own_paths), *(opened(used, name, [path]) for name, path in others.items())]
    by_hand = {Need.WORDS: words_per_image} if words_per_image else {}
    photos: dict[str, Any] = {}
    if fit_paths:
        photos = {"id_images": fit_paths, "stray": find_stray(used, fit_paths, [*typed])}
    recipes = applicable(taking, used, corpus=corpus, words=words, sets=sets, by_hand=by_hand, tell=tell, **photos)
    if not recipes:
        raise none_applies()
    for name, recipe in recipes.items():
        if DETECTORS[recipe.method].sees_order:
            tell(
                f"{name} learns from the images that it scores: ID and OOD images come as one stream, shuffled by the "
                f"seed {SEED}, afresh for each OOD set"
            )
    return Comparison(recipes, typed, sets, fit_paths, by_hand, report, tell)


def there(paths: PathLike | Iterable[PathLike]) -> list[str]:
    """The paths, one or several, at each of which there must be something."""
    given = [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    check_there(given)
    return given


def named_sets(given: PathLike | Iterable[PathLike] | Mapping[str, PathLike]) -> dict[str, str]:
    """Sets by name: by the last part of their path, or by the whole of it where two would be called the same.

    >>> named_sets({"textures": "/tmp"})
    {'textures': '/tmp'}
    """
    if isinstance(given, Mapping):
        return dict(zip(given, there(given.values()), strict=True))
    paths = there(given)
    last = [Path(path).absolute().name for path in paths]
    return {name if last.count(name) == 1 else path: path for name, path in zip(last, paths, strict=True)}


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
