"""Choosing tau without data: tau = "auto" and other rules against the paper's 0.5, on bench-mini, for 3 to 600 names.

    python benchmarks/tau.py PATH [--draws 10]

Every rule scores the same photos against the same words and groups, so figures are paired by draw. Draws are made
independently, so that long lists have most of their labels in common, and all draws share the OOD photos: the standard
error tells how draws differ, and is too small for other photos.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench_mini import wild_vectors
from common import draw, read_bench, table
from outword.detectors import Debiased
from outword.kernels import chosen
from outword.maths.methods.debiased import largest_tau
from outword.maths.numerics import Array, unit_rows

SIZES = [3, 5, 10, 25, 50, 100, 200, 300, 450, 600]
LARGEST_WEIGHT = 1000


def weighted(weight: float) -> Callable[[Debiased], float]:
    """The tau at which a wild word weighs `weight` times a label, for any number of labels."""
    return lambda detector: (1 - 1 / weight) * largest_tau(len(detector.labels_), detector.groups_.shape[1])


def class_prior(detector: Debiased) -> float:
    """The share of words that are nearer to a label than half of the labels are to another, under the cap."""
    y, u = unit_rows(detector.labels_), unit_rows(detector.wild_)
    between = y @ y.T - 2 * np.eye(len(y))
    prior = ((u @ y.T).max(axis=1) > np.median(between.max(axis=1))).mean()
    return Debiased(tau=float(min(prior, 1 - 1 / LARGEST_WEIGHT))).tau_for(len(y), detector.groups_.shape[1])


def given(tau: float | str) -> Callable[[Debiased], float]:
    """What `Debiased` makes of a tau."""
    return lambda detector: Debiased(tau=tau).tau_for(len(detector.labels_), detector.groups_.shape[1])


RULES: dict[str, Callable[[Debiased], float]] = {
    "0.5": given(0.5),
    '"auto" (w = 6.7)': given("auto"),
    "class prior": class_prior,
    "w = 1 (NegLabel)": given(0.0),
    "w = 2.27": weighted(2.27),
    "w = 20": weighted(20),
    "w = 200": weighted(200),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--draws", type=int, default=10)
    args = parser.parse_args()
    bench = read_bench(args.path)
    rows = []
    for size in SIZES:
        found = []
        for seed in range(1 if size == len(bench.names) else args.draws):
            task = draw(bench, size, seed)
            detector = Debiased(temperature=bench.encoder.temperature, sigma=0.0)
            detector.fit(task.labels, wild_vectors(bench, task, "density", "wordnet"))
            found.append(figures(detector, task))
        values = np.array(found)  # (draws, rules, AUROC and tau)
        less = values[:, 1:, 0] - values[:, :1, 0]
        error = less.std(axis=0) / np.sqrt(len(less))
        tau, auto = values[0, :2, 1]
        cells = [f"{m:+.3f} ± {e:.3f}" for m, e in zip(less.mean(axis=0), error, strict=True)]
        rows.append([str(size), f"{tau:.3f}", f"{auto:.3f}", f"{values[:, 0, 0].mean():.2f}", *cells])
        print(f"K = {size} done", flush=True, file=sys.stderr)
    print(table(["K", "0.5 capped", "auto", "AUROC at 0.5", *(f"{name} - 0.5" for name in list(RULES)[1:])], rows))


def figures(detector: Debiased, task) -> list[tuple[float, float]]:
    """(mean AUROC, tau) of each rule; the masses, which do not depend on tau, are computed once."""
    bank = detector._bank(chosen("numpy"))
    masses = {id(x): bank.log_masses(unit_rows(x)) for x in (task.inside, *task.outside.values())}
    out = []
    for rule in RULES.values():
        detector.tau_ = rule(detector)

        def score(images: Array) -> Array:
            return detector._combine(masses[id(images)])

        out.append((100 * np.mean([a for a, _ in task.figures(score).values()]), detector.tau_))
    return out


if __name__ == "__main__":
    main()
