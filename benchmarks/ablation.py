"""What each part brings on bench-mini: the mining rule, the pool, the templates and the debias weight, one by one.

    python benchmarks/ablation.py PATH [--draws 3]

Every combination of four switches that are independent of each other: --miner, --corpus, --prompts and --method. The
method is NegLabel's score or the debiased one on the *same* words, so that the choice of words and the weight of words
are told apart. The first run encodes 320,000 sentences: minutes.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from bench_mini import PARENTS
from common import Bench, Task, draw, encoded_texts, parents, read_bench, table
from outword.detector.recipe import make_detector
from outword.maths.numerics import Array
from outword.mining import MINERS
from outword.vectors.wild import mine
from outword.words.corpora import get_corpus
from outword.words.forms import drop_labels
from outword.words.prompts import get_prompts

SWITCHES = {
    "--miner": ["quantile", "conjugated", "random", "density"],
    "--corpus": ["wordnet", "conjugated:wordnet"],
    "--prompts": ["mini", "csp"],
    "--method": ["neglabel", "debiased"],
}
CHANGES = [
    ("--miner", "quantile", "conjugated"),
    ("--miner", "quantile", "density"),
    ("--miner", "random", "density"),
    ("--corpus", "wordnet", "conjugated:wordnet"),
    ("--prompts", "mini", "csp"),
    ("--method", "neglabel", "debiased"),
]


@dataclass(frozen=True)
class Setting:
    """Tasks of one kind, with a name for the table."""

    name: str
    tasks: list[Task]


def measure(bench: Bench, setting: Setting) -> Array:
    """Mean AUROC (%) over OOD sets, (4, 2, 2, 2, n_tasks), in the order of `SWITCHES`."""
    found = np.empty([*map(len, SWITCHES.values()), len(setting.tasks)])
    for i, (miner, corpus, prompts) in enumerate(product(*list(SWITCHES.values())[:3])):
        for j, task in enumerate(setting.tasks):
            labelled = replace(task, labels=encoded_texts(bench.encoder, task.names, prompts))
            words = mine(bench.encoder, get_corpus(corpus), get_prompts(prompts), MINERS[miner](), labelled.labels)
            kept, _ = drop_labels(words.words, task.names)
            for k, method in enumerate(SWITCHES["--method"]):
                detector = make_detector(method, bench.encoder.temperature, {})
                detector.fit(labelled.labels, words.vectors[kept])
                figures = labelled.figures(detector.score)
                found.reshape(-1, 2, len(setting.tasks))[i, k, j] = 100 * np.mean([a for a, _ in figures.values()])
        print(f"{setting.name}: {miner}, {corpus}, {prompts} done", file=sys.stderr)
    return found


def effect(found: Array, switch: str, before: str, after: str) -> str:
    """What a change of one switch brings, mean and smallest to largest over all positions of the others."""
    axis = list(SWITCHES).index(switch)
    old, new = (found.take(SWITCHES[switch].index(value), axis=axis) for value in (before, after))
    change = (new - old).mean(axis=-1)
    return f"{change.mean():+.2f} ({change.min():+.2f} to {change.max():+.2f})"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--draws", type=int, default=3)
    args = parser.parse_args()
    bench = read_bench(args.path)
    settings = [
        Setting("600 names", [draw(bench, 600, 0)]),
        Setting("100 names", [draw(bench, 100, seed) for seed in range(args.draws)]),
        Setting("10 names", [draw(bench, 10, seed) for seed in range(args.draws)]),
        Setting("10 broad names", [parents(bench, PARENTS)]),
    ]
    found = [measure(bench, setting) for setting in settings]
    rows = [
        [*values, *(f"{f[index].mean():.2f}" for f in found)]
        for values, index in zip(product(*SWITCHES.values()), np.ndindex(*map(len, SWITCHES.values())), strict=True)
    ]
    head = [setting.name for setting in settings]
    print(table([*SWITCHES, *head], rows))
    print("\nWhat a change brings, the other switches in every position: mean (smallest to largest)\n")
    changes = [[s, f"{a} to {b}", *(effect(f, s, a, b) for f in found)] for s, a, b in CHANGES]
    print(table(["switch", "change", *head], changes))


if __name__ == "__main__":
    main()
