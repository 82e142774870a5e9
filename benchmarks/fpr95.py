"""How much the rule for the threshold matters to FPR95: ours, and the one in MCM's released code; ID as the positives.

    python benchmarks/fpr95.py

Ours is the highest threshold that accepts at least 95 % of the ID images. Theirs is the one whose share of accepted ID
images is nearest to 95 %, be it below; of two that are as near the larger, and of all thresholds with that share the
lowest score that occurs, ID or OOD. Scores are drawn: ID from N(1.5, 1), 10,000 OOD from N(0, 1).
"""

from __future__ import annotations

import numpy as np

from common import table
from outword.maths.numerics import Array
from outword.metrics import fpr_at_tpr

OUTSIDE, SHIFT = 10_000, 1.5
DRAWS = {50: 400, 500: 400, 5_000: 100, 50_000: 20}


def nearest_recall_fpr(inside: Array, outside: Array, tpr: float = 0.95) -> float:
    """Share of `outside` that is accepted at the threshold whose share of `inside` is nearest to `tpr`."""
    thresholds = np.unique(np.concatenate([inside, outside]))
    recall = (len(inside) - np.searchsorted(np.sort(inside), thresholds)) / len(inside)
    from_full = thresholds > inside.min()  # the curve begins where all are accepted, at the highest such threshold
    first = int(np.argmax(from_full)) - 1 if from_full.any() else len(thresholds) - 1
    nearest = first + int(np.argmin(np.abs(recall[first:] - tpr)))
    return float((outside >= thresholds[nearest]).mean())


def differences(n_inside: int, draws: int, seed: int = 0) -> tuple[Array, Array]:
    """FPR95 by our rule and by theirs, in percent, (draws,) each."""
    found = np.empty((2, draws))
    for draw, rng in enumerate(np.random.default_rng([seed, n_inside]).spawn(draws)):
        inside, outside = rng.normal(SHIFT, 1, n_inside), rng.normal(0, 1, OUTSIDE)
        found[:, draw] = fpr_at_tpr(inside, outside), nearest_recall_fpr(inside, outside)
    return 100 * found[0], 100 * found[1]


def main() -> None:
    """Print the table."""
    rows = []
    for n_inside, draws in DRAWS.items():
        ours, theirs = differences(n_inside, draws)
        less = theirs - ours
        ends = f"{less.min():+.2f} to {less.max():+.2f}"
        rows.append([f"{n_inside:,}", f"{ours.mean():.2f}", f"{theirs.mean():.2f}", f"{less.mean():+.2f}", ends])
    print(table(["ID images", "FPR95, ours", "nearest share", "difference", "smallest to largest"], rows))


if __name__ == "__main__":
    main()
