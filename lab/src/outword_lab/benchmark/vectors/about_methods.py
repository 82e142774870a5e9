"""Questions about methods: AUROC by number of names, by OOD set, and on broad lists with and without kinds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from outword.detector.recipe import METHOD, Recipe
from outword_lab.benchmark.found import Found, paired, percent
from outword_lab.benchmark.vectors.measuring import (
    Bench,
    Figure,
    default_recipe,
    means,
    names_of,
    pick,
    rank_all,
    recipe_of,
    recipes,
)

WITH_KINDS = (METHOD, "debiased", "neglabel", "maxlogit", "mcm")
HIGHER = "AUROC in percent; higher is better."


def measured_methods(bench: Bench) -> list[Figure]:
    """AUROC of every method on every drawn list."""
    ask = partial(rank_all, recipes(bench.folder, bench.only))
    return bench.figures("methods", bench.drawn(), ask)


def by_size(bench: Bench) -> Found:
    """AUROC by method and number of names, the mean over OOD sets."""
    figures = measured_methods(bench)
    groups = _groups(figures)
    rows = [(way, *(percent(means(pick(figures, group=one, way=way))) for one in groups)) for way in _ways(figures)]
    return Found(
        "methods",
        "How well do methods separate photos of drawn names from others?",
        ("method", *groups),
        tuple(rows),
        (
            f"{HIGHER} Mean over the OOD sets and over {_draws(figures)}; all names together are one list. "
            f"`{METHOD}` has the rivals that outword takes for names, no kin of a label among them; the other methods "
            "and `all words` have all names of the folder but the labels themselves.",
        ),
    )


def leads(bench: Bench) -> Found:
    """By how much each method is ahead of the default."""
    figures = measured_methods(bench)
    groups = _groups(figures)
    rows = []
    for way in _ways(figures)[1:]:
        rows.append((way, *(_lead(figures, way, group) for group in groups)))
    return Found(
        "leads",
        "Which methods are ahead of the default, and by how much?",
        ("method, less the default", *groups),
        tuple(rows),
        ("Points of AUROC with 95 % paired intervals over the drawn lists, the mean over OOD sets.",),
    )


def _lead(figures: Sequence[Figure], way: str, group: str, *names: str) -> str:
    """The lead of a way over the first one, in a group."""
    first = _ways(figures)[0]
    own, default = (means(pick(figures, group=group, way=one), *names) for one in (way, first))
    return paired(own, default)


def by_ood(bench: Bench) -> Found:
    """AUROC by method and OOD set, for every number of names."""
    figures = measured_methods(bench)
    sets = list(dict.fromkeys(name for one in figures for name in one.values))
    rows = []
    for group in _groups(figures):
        there = [name for name in sets if name in next(pick(figures, group=group)).values]
        for way in _ways(figures):
            own = {name: percent(means(pick(figures, group=group, way=way), name)) for name in there}
            behind = [_lead(figures, way, group, name) for name in there]
            told = [f"{own[name]} ({lead.split()[0]})" for name, lead in zip(there, behind, strict=True)]
            shown = dict(zip(there, told, strict=True))
            rows.append((group, way, *(shown.get(name, "") for name in sets)))
    return Found(
        "sets",
        "On which OOD sets does a method win or lose?",
        ("labels", "method", *sets),
        tuple(rows),
        (f"{HIGHER} In brackets: less the default.",),
    )


def broad(bench: Bench) -> Found:
    """AUROC on broad lists, with and without kinds."""
    methods = [one for one in WITH_KINDS if bench.only is None or one in bench.only]
    ways: dict[str, Recipe] = {}
    for method in methods:
        ways[f"{method}, kinds"] = _with_kinds(bench, method, "auto")
        ways[f"{method}, no kinds"] = _with_kinds(bench, method, "off")
    figures = bench.figures("broad", bench.broad(), partial(rank_all, ways))
    rows = []
    for group in _groups(figures):
        rows.append((group, *(percent(means(pick(figures, group=group, way=way))) for way in ways)))
    rows.append(("mean", *(percent(means(pick(figures, way=way))) for way in ways)))
    return Found(
        "broad",
        "What do kinds bring for broad names?",
        ("labels", *ways),
        tuple(rows),
        (f"{HIGHER} Mean over OOD sets. Labels that the folder has no text or no photo for are left out of a list.",),
    )


def _with_kinds(bench: Bench, method: str, kinds: str) -> Recipe:
    if method == METHOD:
        return default_recipe(bench.folder, kinds=kinds)
    return recipe_of(bench.folder, method, kinds=kinds)


def _groups(figures: Sequence[Figure]) -> list[str]:
    return names_of(figures, "group")


def _ways(figures: Sequence[Figure]) -> list[str]:
    return names_of(figures, "way")


def _draws(figures: Sequence[Figure]) -> str:
    return f"{1 + max(one.draw for one in figures)} lists of each length"
