"""Methods on bench-mini: AUROC and FPR95 (ID positive) by OOD set.

    python benchmarks/bench_mini.py PATH [--draws 5]

Labels are all 600 names, draws of 100 and of 10 names, and ten broad names, whose photos are those of all classes below
them in WordNet. PATH holds imagenet/, textures/, scenes/ and flowers/. The first run encodes words and photos: minutes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from common import Bench, Task, draw, parents, read_bench, table
from outword.detector.recipe import make_detector
from outword.mining import MINERS
from outword.vectors.wild import mine
from outword.words.corpora import get_corpus
from outword.words.forms import drop_labels
from outword.words.prompts import get_prompts

ROWS = [
    ("debiased", "density"),
    ("neglabel", "quantile"),
    ("neglabel", "density"),
    ("mcm", ""),
    ("maxlogit", ""),
    ("energy", ""),
    ("msp", ""),
]


def wild_vectors(bench: Bench, task: Task, miner: str, corpus: str) -> np.ndarray | None:
    """Vectors of the mined words, less those that equal a label."""
    if not miner:
        return None
    words = mine(bench.encoder, get_corpus(corpus), get_prompts(bench.encoder.prompts), MINERS[miner](), task.labels)
    kept, _ = drop_labels(words.words, task.names)
    return words.vectors[kept]


PARENTS = [
    "dog", "bird", "snake", "insect", "crustacean", "vehicle", "musical instrument", "furniture", "garment",
    "vegetable",
]  # fmt: skip


def report(bench: Bench, title: str, tasks: list[Task], corpus: str) -> str:
    """A table: mean over tasks, and the standard deviation of the mean AUROC between them."""
    sets = list(tasks[0].outside)
    rows = []
    for method, miner in ROWS:
        figures, verdicts = [], []
        for task in tasks:
            detector = make_detector(method, bench.encoder.temperature, {})
            detector.fit(task.labels, wild_vectors(bench, task, miner, corpus))
            found = task.figures(detector.score)
            figures.append([found[name] for name in sets])
            if method == "debiased":
                outside = np.concatenate(list(task.outside.values()))
                verdicts.append(
                    [(detector.score(v) >= detector.default_threshold_).mean() for v in (task.inside, outside)]
                )
        values = np.array(figures)  # (draws, sets, 2)
        means = 100 * values.mean(axis=0)
        cells = [f"{a:.1f} / {f:.1f}" for a, f in means]
        spread = 100 * values[:, :, 0].mean(axis=1).std()
        name = f"{method} ({miner} words)" if miner else method
        if verdicts:
            accepted = 100 * np.mean(verdicts, axis=0)
        rows.append([name, *cells, f"{means[:, 0].mean():.2f} ± {spread:.2f} / {means[:, 1].mean():.1f}"])
    told = (
        f"Uncalibrated `in` of debiased: {accepted[0]:.0f} % of the ID photos, {accepted[1]:.0f} % of the OOD photos."
    )
    return f"### {title}\n\n{table(['method', *sets, 'mean AUROC ± sd / FPR95'], rows)}\n\n{told}\n"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--corpus", default="wordnet")
    args = parser.parse_args()
    bench = read_bench(args.path)
    print(report(bench, "All 600 names", [draw(bench, 600, 0)], args.corpus))
    for size in (100, 10):
        tasks = [draw(bench, size, seed) for seed in range(args.draws)]
        print(report(bench, f"{size} names, {args.draws} draws", tasks, args.corpus))
    print(report(bench, f"10 broad names ({', '.join(PARENTS)})", [parents(bench, PARENTS)], args.corpus))


if __name__ == "__main__":
    main()
