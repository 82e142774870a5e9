"""Questions about words: how they are mined, how many rivals are enough, and what tau and sigma do."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from outword.detector.fitting import prepare
from outword.detector.recipe import METHOD, PAPERS, Recipe
from outword.maths.metrics import auroc
from outword_lab.benchmark.found import Found, paired, percent
from outword_lab.benchmark.vectors.lists import OTHERS, Judged, List
from outword_lab.benchmark.vectors.measuring import (
    GROUP,
    Bench,
    Figure,
    means,
    names_of,
    pick,
    rank_all,
    recipe_of,
)

LENGTHS = (10, 50, 200)  # names of the lists
MINERS = ("density", "quantile", "random")
SIZES = (100, 200, 400, 800, 1200)  # words that are mined
TAUS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9)
SIGMAS = (0.0, 0.001, 0.003, 0.01, 0.03)
RIVALS = (50, 100, 200, 500, 1000, 2000, 3000)
MOST = 10  # lists of each length


def _drawn(bench: Bench) -> dict[str, list[List]]:
    return {name: lists[:MOST] for name, lists in bench.drawn(*LENGTHS).items()}


def mining(bench: Bench) -> Found:
    """Density mining against NegLabel's rule and random words."""
    n_words = len(bench.folder.corpus)
    sizes = [size for size in SIZES if size < n_words]
    ways = {f"{miner} {size}": _mined(bench, miner, size) for size in sizes for miner in MINERS}
    figures = bench.figures("mining", _drawn(bench), partial(rank_all, ways))
    rows = []
    for group in names_of(figures, "group"):
        for size in sizes:
            ranks = {miner: means(pick(figures, group=group, way=f"{miner} {size}")) for miner in MINERS}
            leads = [paired(ranks[miner], ranks["random"]) for miner in MINERS[:2]]
            rows.append((group, str(size), *map(percent, ranks.values()), *leads))
    return Found(
        "mining",
        "Does mining beat words drawn by chance?",
        ("labels", "words", *MINERS, "density less random", "quantile less random"),
        tuple(rows),
        (
            f"AUROC of `{PAPERS}` in percent, mean over OOD sets, with words mined from the {n_words:,} names of the "
            f"folder, in groups of {GROUP}; 95 % paired intervals over lists. There are no words of WordNet here, so "
            "this is no test of the paper's corpus.",
        ),
    )


def _mined(bench: Bench, miner: str, size: int) -> Recipe:
    sizes: dict[str, dict[str, Any]] = {"quantile": {"share": size / len(bench.folder.corpus)}}
    groups = {"n_groups": max(1, size // GROUP)}
    return recipe_of(bench.folder, PAPERS, groups, miner=miner, miner_params=sizes.get(miner, {"size": size}))


def tau(bench: Bench) -> Found:
    """AUROC by tau."""
    return _swept(bench, "tau", TAUS, 0.5)


def sigma(bench: Bench) -> Found:
    """AUROC by sigma."""
    return _swept(bench, "sigma", SIGMAS, 0.0)


def _swept(bench: Bench, parameter: str, values: tuple[float, ...], usual: float) -> Found:
    ways = {f"{value:g}": recipe_of(bench.folder, PAPERS, {parameter: value}) for value in values}
    figures = bench.figures(parameter, _drawn(bench), partial(rank_all, ways))
    groups = names_of(figures, "group")
    rows = []
    for way in ways:
        cells = []
        for group in groups:
            own, known = (means(pick(figures, group=group, way=one)) for one in (way, f"{usual:g}"))
            cells.append(f"{percent(own)} {paired(own, known)}")
        rows.append((way, *cells))
    return Found(
        parameter,
        f"What does {parameter} of {PAPERS} do?",
        (parameter, *(f"{group}: AUROC, less {parameter} = {usual:g}" for group in groups)),
        tuple(rows),
        (f"Mean over OOD sets, with 95 % paired intervals over lists; the library's default is {usual:g}.",),
    )


def rivals(bench: Bench) -> Found:
    """AUROC of the default method by the number of rivals."""
    figures = bench.figures("rivals", _drawn(bench), partial(_with_rivals, bench))
    rows = []
    for group in names_of(figures, "group"):
        for way in names_of(pick(figures, group=group), "way"):
            own = list(pick(figures, group=group, way=way))
            near = percent(means(own, OTHERS)) if OTHERS in own[0].values else ""
            far = percent(means(own, *(name for name in own[0].values if name != OTHERS)))
            rows.append((group, way, near, far))
    return Found(
        "rivals",
        "How many rivals are enough?",
        ("labels", "rivals", "other classes", "other sets"),
        tuple(rows),
        (
            f"AUROC of `{METHOD}` in percent, with rivals drawn by chance from all names of the folder that are no "
            "name of a label; the last row has all of them.",
        ),
    )


def _with_rivals(bench: Bench, given: List, photos: Judged) -> list[Figure]:
    prepared = prepare(recipe_of(bench.folder, METHOD), given.typed)
    wild = prepared.given["wild"]
    assert wild is not None
    order = np.random.default_rng([len(given.labels), given.draw, 2]).permutation(len(wild))
    found = []
    for size in [*(size for size in RIVALS if size < len(wild)), len(wild)]:
        chosen = np.sort(order[:size])
        some = replace(
            prepared, given={**prepared.given, "wild": wild[chosen]}, wild=[prepared.wild[i] for i in chosen]
        )
        score = some.fit().scorer.score
        own = score(photos.inside.vectors)
        values = {one.name: auroc(own, score(one.vectors)) for one in photos.outside}
        way = f"{size:,}" if size < len(wild) else "all"
        found.append(Figure(given.group, given.draw, way, values))
    return found
