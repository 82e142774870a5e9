"""Every method that applies, on bench-mini: AUROC, AUPR and FPR95 in both conventions, seconds.

    python benchmarks/methods.py PATH [--draws 3] [--by-set]

Three lists of labels. All ImageNet names, one photo each: no ID images to fit on. Ten broad names, and six kinds
of scene: half of the ID photos, drawn by seed, are fitted on, the other half are scored. All other photos are OOD.
Each photo is encoded once. EOE wants a word list of the user's; 500 words of the corpus, drawn at random, stand in for
it. Variants of a method stand beside it. The first run encodes words and photos: minutes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from bench_mini import PARENTS
from common import OOD_SETS, Bench, parents, read_bench, table
from outword.choosing.cell import Cell
from outword.choosing.compare import Row, Tried, applicable, mean_row, run_cells
from outword.choosing.photos import numbered
from outword.detector.recipe import Recipe
from outword.detectors import DETECTORS
from outword.maths.numerics import Array
from outword.vectors.id_images import IdImages
from outword.words.corpora import get_corpus

VARIANTS = [
    ("energy", {"temperature": 1.0}),
    ("debiased", {"tau": "auto"}),
    ("mahalanobis", {"shrinkage": 0.0}),
    ("knn", {"k": 50}),
    ("msp", {"head": "probe"}),
    ("energy", {"head": "probe"}),
    ("vim", {"head": "probe"}),
]


@dataclass(frozen=True)
class Draw:
    """Labels, photos to score, and, where there are any, photos to fit on with the label that each shows."""

    names: list[str]
    inside: Array
    outside: dict[str, Array]
    fit_on: IdImages | None = None


def all_names(bench: Bench, seed: int) -> Draw:
    """All names, with nothing to fit on; of two classes with one name (the cranes) the first counts."""
    first = {name: i for i, name in reversed(list(enumerate(bench.names)))}
    rows = sorted(first.values())
    outside = {name: bench.photos[name] for name in OOD_SETS}
    return Draw([bench.names[i] for i in rows], bench.photos["imagenet"][rows], outside)


def broad_names(bench: Bench, seed: int) -> Draw:
    """Ten names that stand above several classes each."""
    task = parents(bench, PARENTS)
    return halves(task.names, task.inside, task.shown, task.outside, seed)


def scenes(bench: Bench, seed: int) -> Draw:
    """The kinds of scene, none of which is a class that the encoder was made from."""
    names = sorted(set(bench.kinds["scenes"]))
    outside = {name: bench.photos[name] for name in ("imagenet", "textures", "flowers")}
    shown = np.array([names.index(kind) for kind in bench.kinds["scenes"]])
    return halves(names, bench.photos["scenes"], shown, outside, seed)


def halves(names: list[str], photos: Array, shown: Array, outside: dict[str, Array], seed: int) -> Draw:
    """Half of the ID photos to fit on, half to score."""
    order = np.random.default_rng(seed).permutation(len(photos))
    fit_on, scored = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    counts = {names[i]: int(n) for i, n in enumerate(np.bincount(shown[fit_on], minlength=len(names)))}
    return Draw(names, photos[scored], outside, IdImages(photos[fit_on], shown[fit_on], counts, []))


def recipes(bench: Bench, drawn: Draw, words: Path, tell) -> dict[str, Recipe]:
    """Those of every method that applies, and of its variants; `tell` is told why the others do not."""
    found = applicable(map(Tried, DETECTORS), bench.encoder, words=words, id_images=drawn.fit_on, tell=tell)
    variants = (Tried(method, params=params) for method, params in VARIANTS)
    return found | applicable(variants, bench.encoder, id_images=drawn.fit_on)


def measure(bench: Bench, make, n_draws: int, words: Path) -> Iterator[list[list[Row]]]:
    """The rows of each draw, by method."""
    for seed in range(n_draws):
        drawn = make(bench, seed)
        found = recipes(bench, drawn, words, partial(print, file=sys.stderr) if seed == 0 else str)
        if seed == 0:
            fitted = "no" if drawn.fit_on is None else str(len(drawn.fit_on.vectors))
            print(f"{len(drawn.names)} labels, {fitted} ID photos to fit on, {len(drawn.inside)} to score\n")
        labels, rows = dict.fromkeys(drawn.names, ""), np.arange(len(drawn.inside))
        inside, outside = numbered("ID", drawn.inside), [numbered(*one) for one in drawn.outside.items()]
        cells = {name: Cell(found[name], labels, inside, rows, outside, drawn.fit_on) for name in found}
        yield list(run_cells(cells))


def show(draws: list[list[list[Row]]], by_set: bool) -> str:
    """A table of means over draws, best AUROC first, with the standard deviation of AUROC between draws."""
    reduced = [[row for rows in draw for row in (rows if by_set else [mean_row(rows)])] for draw in draws]
    lines = []
    for same in zip(*reduced, strict=True):
        values = np.array([[r.auroc, r.aupr_id, r.aupr_ood, r.fpr95_id, r.fpr95_ood] for r in same])
        seconds = np.array([[r.fit_seconds, r.score_seconds] for r in same]).mean(axis=0)
        first = f"{100 * values[:, 0].mean():.2f} ± {100 * values[:, 0].std():.2f}"
        rest = [f"{100 * v:.1f}" for v in values[:, 1:].mean(axis=0)]
        name = [same[0].method, same[0].ood] if by_set else [same[0].method]
        lines.append((values[:, 0].mean(), [*name, first, *rest, *(f"{s:.2f}" for s in seconds)]))
    lines.sort(key=lambda line: -line[0])
    figures = ["AUROC ± sd", "AUPR (ID)", "AUPR (OOD)", "FPR95 (ID)", "FPR95 (OOD)", "fit s", "score s"]
    return table(["method", *(["OOD set"] if by_set else []), *figures], [cells for _, cells in lines])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--by-set", action="store_true")
    args = parser.parse_args()
    bench = read_bench(args.path)
    with tempfile.TemporaryDirectory() as folder:
        corpus, words = get_corpus("wordnet").words, Path(folder) / "words.txt"
        picked = np.random.default_rng(0).choice(len(corpus), 500, replace=False)
        words.write_text("\n".join(corpus[i] for i in picked), encoding="utf-8")
        for title, make, n_draws in (
            ("All names", all_names, 1),
            (f"10 broad names ({', '.join(PARENTS)})", broad_names, args.draws),
            ("6 scenes", scenes, args.draws),
        ):
            print(f"### {title}\n")
            print(show(list(measure(bench, make, n_draws, words)), args.by_set), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
