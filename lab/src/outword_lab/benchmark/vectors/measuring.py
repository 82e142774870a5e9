"""How the suite `vectors` measures: figures of lists, kept on disk group by group, and the recipes of methods."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from outword.base.files import parse_json, sha256_bytes, whole_file
from outword.base.records import read_record
from outword.base.reports import Report, quiet
from outword.choosing.cell import Cell, Measured
from outword.detector.fitting import LabelCache
from outword.detector.inputs import missing_inputs, not_handed
from outword.detector.recipe import METHOD, Recipe, resolve
from outword.errors import OutwordError
from outword.maths.methods import DETECTORS, Need
from outword.words.corpora import THINGS
from outword_lab.benchmark.vectors.lists import Judged, List, broad_lists, drawn_lists, half_lists, judged, sizes_of
from outword_lab.encoders.vectors import LAYOUT, VectorFolder

VERSION = 1  # of what is measured: raise it when something is measured in another way
GROUP = 120  # words of a group, for methods that deal words into groups; as many as the paper has
SEED = 0


@dataclass(frozen=True)
class Figure:
    """What came of one list by one way: figures by name, such as AUROC by OOD set."""

    group: str
    draw: int
    way: str
    values: Mapping[str, float]


@dataclass(frozen=True)
class Bench:
    """A run of the suite."""

    folder: VectorFolder
    kept: Path  # where figures are kept
    draws: int  # lists of each size
    only: Collection[str] | None = None  # methods; None stands for all
    report: Report = quiet

    def figures(self, question: str, groups: Mapping[str, Sequence[List]], ask: Ask) -> list[Figure]:
        """The figures of all lists, measured or read back; `groups` are measured one by one."""
        found: list[Figure] = []
        done, total = 0, sum(map(len, groups.values()))
        for name, lists in groups.items():
            path = self.kept / f"{question}-{name.replace(' ', '-')}.json"
            key = self._key(question, lists)
            figures = _read(path, key)
            if figures is None:
                figures = []
                for place, given in enumerate(lists):
                    self.report(f"{question}: {name}", done + place, total)
                    figures += ask(given, judged(self.folder, given))
                _write(path, key, figures)
            found += figures
            done += len(lists)
        self.report(question, total, total)
        return found

    def _key(self, question: str, lists: Sequence[List]) -> str:
        """sha256 of all that the figures of some lists depend on, but for the program."""
        labels = [given.labels for given in lists]
        only = sorted(self.only) if self.only else None
        return sha256_bytes(json.dumps([VERSION, question, self.folder.fingerprint, labels, only]).encode())

    def drawn(self, *sizes: int) -> dict[str, list[List]]:
        """Lists of drawn names by group; of all sizes, or of some of those that the folder has names for."""
        there = sizes_of(self.folder)
        lists = [drawn_lists(self.folder, size, self.draws) for size in (sizes or there) if size in there]
        return {some[0].group: some for some in lists}

    def halves(self, *sizes: int) -> dict[str, list[List]]:
        """Lists of names drawn from one half of the classes, and from the other, by group."""
        found: dict[str, list[List]] = {}
        for size in sizes:
            for given in half_lists(self.folder, size, self.draws):
                found.setdefault(given.group, []).append(given)
        return found

    def broad(self) -> dict[str, list[List]]:
        """The broad lists, as one group."""
        lists = broad_lists(self.folder)
        return {"broad": lists} if lists else {}


Ask = Callable[[List, Judged], list[Figure]]


def measure(recipe: Recipe, given: List, photos: Judged, cache: LabelCache) -> Measured:
    """A method on a list, as `outword compare` measures it; the cache is for methods on the same list."""
    return Cell(recipe, given.typed, photos.inside, photos.rows, photos.outside, seed=SEED).measure(cache)


def by_set(measured: Measured, photos: Judged) -> dict[str, float]:
    """AUROC by OOD set."""
    return {one.name: measured.figures(one.name).auroc for one in photos.outside}


def default_recipe(folder: VectorFolder, **options: Any) -> Recipe:
    """The default method as a CLIP has it: the names of things that the folder has texts for compete, and no others."""
    return recipe_of(folder, METHOD, corpus=THINGS, **options)


def recipe_of(folder: VectorFolder, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> Recipe:
    """A method with all names of the folder as its words, unless the options say otherwise; names are the prompts."""
    groups = {"n_groups": max(1, len(folder.corpus) // GROUP)} if has(method, "n_groups") else {}
    words: dict[str, Any] = {"corpus": folder.name, "miner": "all"}
    how: dict[str, Any] = {"prompts": folder.prompts, "vectors_only": True, "seed": SEED}
    return resolve(folder, method, {**groups, **(params or {})}, **{**words, **how, **options})


def has(method: str, parameter: str) -> bool:
    """Whether a method has a parameter."""
    return parameter in DETECTORS[method].__dataclass_fields__  # type: ignore[attr-defined]


def recipes(folder: VectorFolder, only: Collection[str] | None = None) -> dict[str, Recipe]:
    """All methods that see vectors of labels and words alone, the default first, by what their rows are called."""
    found: dict[str, Recipe] = {}
    if only is None or METHOD in only:
        found[METHOD] = default_recipe(folder)
        found[f"{METHOD}, all words"] = recipe_of(folder, METHOD)
    for method in DETECTORS if only is None else only:
        if method != METHOD and (recipe := _usable(folder, method)):
            found[method] = recipe
    return found


def _usable(folder: VectorFolder, method: str) -> Recipe | None:
    """The recipe of a method that vectors and names are enough for; None for others."""
    try:
        recipe = recipe_of(folder, method)
    except OutwordError:
        return None
    if Need.ID_IMAGES in recipe.wants or missing_inputs(recipe) or not_handed(method, recipe.wants):
        return None
    return recipe


def rank_all(ways: Mapping[str, Recipe], given: List, photos: Judged) -> list[Figure]:
    """AUROC by OOD set of several methods on a list."""
    cache: LabelCache = {}
    found = []
    for way, recipe in ways.items():
        values = by_set(measure(recipe, given, photos, cache), photos)
        found.append(Figure(given.group, given.draw, way, values))
    return found


def pick(figures: Iterable[Figure], **wanted: Any) -> Iterator[Figure]:
    """The figures with these values, such as way="mcm"."""
    for one in figures:
        if all(getattr(one, name) == value for name, value in wanted.items()):
            yield one


def names_of(figures: Iterable[Figure], attribute: str) -> list[str]:
    """The groups or ways of some figures, in order."""
    return list(dict.fromkeys(getattr(one, attribute) for one in figures))


def means(figures: Iterable[Figure], *names: str) -> list[float]:
    """For each figure the mean of its values, or of those that are named and there."""
    found = []
    for one in figures:
        values = [value for name, value in one.values.items() if not names or name in names]
        found.append(sum(values) / len(values))
    return found


def _read(path: Path, key: str) -> list[Figure] | None:
    """The figures in a file; None where it is not there, damaged, or of something else."""
    try:
        kept = parse_json(path.read_bytes())
        if kept["key"] != key:
            return None
        return [read_record(Figure, one, str(path), LAYOUT) for one in kept["figures"]]
    except (OSError, ValueError, KeyError, TypeError, OutwordError):
        return None


def _write(path: Path, key: str, figures: Sequence[Figure]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"key": key, "figures": [asdict(one) for one in figures]}, indent=1)
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
