"""How often the intervals of `outword bench` hold, in a world whose truth is known.

    python benchmarks/coverage.py [--trials 200]

Five methods that are equally good take part. Each of 5 seeds scores half of 120 ID images and all of 200 OOD images; a
fitted method is better or worse by the half that it was fitted on. True leads are 0: an interval holds if it has 0.
"""

from __future__ import annotations

import argparse

import numpy as np

from common import table
from outword.maths.numerics import Array
from outword.metrics import auroc
from outword_lab.benchmark.run.bootstrap import half_widths, interval, resampled, seeds_resampled

METHODS, SEEDS, INSIDE, OUTSIDE, SAMPLES = 5, 5, 120, 200, 200
GAP = 1.5  # between ID and OOD, in deviations of a score
SPLIT = 0.15  # how far the half that a method is fitted on moves its gap
KINDS = [
    "plain, over images, given the halves: first less next",
    "the same: first less last",
    "plain, over images and seeds: first less last",
    "all pairs at once, over images and seeds: first less each, all of them",
]


def one_trial(rng: np.random.Generator) -> tuple[Array, Array]:
    """AUROC of each method, the mean over seeds, (METHODS,), and its bootstrap samples by seed."""
    shared = rng.normal(size=INSIDE + OUTSIDE)  # some images are hard for all methods
    own = rng.normal(size=(METHODS, INSIDE + OUTSIDE))
    figures, samples = np.empty((METHODS, SEEDS)), np.empty((METHODS, SEEDS, SAMPLES))
    for seed in range(SEEDS):
        rows = np.sort(rng.permutation(INSIDE)[: INSIDE // 2])
        for method, gap in enumerate(rng.normal(GAP, SPLIT, METHODS)):
            scores = (shared + own[method]) / np.sqrt(2)
            inside, outside = scores[rows] + gap, scores[INSIDE:]
            figures[method, seed] = auroc(inside, outside)
            drawn = resampled(inside, {"ood": outside}, rows=rows, n_all=INSIDE, n_samples=SAMPLES)
            samples[method, seed] = drawn["ood"][:, 0]
    return figures.mean(axis=1), samples


def holds(figures: Array, samples: Array) -> list[bool]:
    """Whether the intervals of `KINDS` have 0."""
    first, *_, last = order = np.argsort(-figures)
    given, both = samples.mean(axis=1), np.stack([seeds_resampled(one) for one in samples])
    plain = [given[first] - given[order[1]], given[first] - given[last], both[first] - both[last]]
    n_pairs = METHODS * (METHODS - 1) // 2
    stretched = np.stack([seeds_resampled(one, n_pairs) for one in samples])
    at_once = np.abs(figures[first] - figures) <= half_widths(stretched)[first]
    return [low <= 0 <= high for low, high in map(interval, plain)] + [bool(at_once.all())]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    rngs = np.random.default_rng(0).spawn(parser.parse_args().trials)
    held = np.mean([holds(*one_trial(rng)) for rng in rngs], axis=0)
    print(table(["95 % interval", "holds in"], [[k, f"{100 * h:.1f} %"] for k, h in zip(KINDS, held, strict=True)]))


if __name__ == "__main__":
    main()
