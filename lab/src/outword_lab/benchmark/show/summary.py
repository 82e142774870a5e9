"""A run in brief: figures over seeds, averages over OOD sets, and who leads by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from outword.maths.methods import Need
from outword.maths.numerics import Array
from outword_lab.benchmark.run.bootstrap import half_widths, seeds_resampled
from outword_lab.benchmark.run.results import Condition, Outcome, Row

AXES = {"id": "ID set", "encoder": "Encoder", "corpus": "Words"}
SOURCE_METHOD = "debiased"  # the paper's own
FEW_ERRORS = 2  # photos that two methods rank wrong on average; with fewer a bootstrap sees too little
FITTED, LEARNS = "fitted on ID images", "learns from the test images"


class Value(NamedTuple):
    """A figure as a fraction: its mean, and its sample standard deviation over seeds where there are several."""

    mean: float
    sd: float | None = None
    best: bool = False


@dataclass(frozen=True)
class Lead:
    """How far a method is ahead of another in mean AUROC over the OOD sets, as a fraction."""

    ahead: str
    behind: str
    points: float  # difference of their figures
    low: float  # intervals of all pairs of methods hold at once with 95 %, whichever is picked as the best
    high: float
    share: float  # of the bootstrap samples in which the first has the higher AUROC
    few_errors: bool = False  # whether both are so near to 1 that the interval is that of the rule of three

    @property
    def separable(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


def measured_sets(outcome: Outcome) -> list[str]:
    """The OOD sets that have figures, in the order of the suite."""
    present = {row.ood for row in outcome.rows}
    return [name for name in outcome.suite.ood if name in present]


def entries(outcome: Outcome, condition: Condition) -> list[str]:
    """The methods that have figures in a condition, in the order of the suite."""
    present = {row.entry for row in outcome.select(condition)}
    return list(dict.fromkeys(entry.shown for entry in outcome.suite.methods if entry.shown in present))


def varying(outcome: Outcome) -> list[str]:
    """The axes of the conditions that take more than one value."""
    planned = {"id": outcome.suite.id, "encoder": outcome.suite.encoders, "corpus": outcome.suite.corpora}
    return [a for a in AXES if len(planned[a]) > 1 or len({getattr(row, a) for row in outcome.rows}) > 1]


def axis_text(outcome: Outcome, axis: str, value: str) -> str:
    """What a condition has on one axis, in words."""
    return outcome.title(value) if axis == "id" else value or "each method's own"


def condition_text(outcome: Outcome, condition: Condition, axes: Sequence[str] | None = None) -> str:
    """A condition in words, such as "ID set: ImageNet-1k; Encoder: clip-vit-b-16"; on the axes that vary by default."""
    values = zip(AXES.items(), condition, strict=True)
    chosen = varying(outcome) if axes is None else axes
    return "; ".join(f"{name}: {axis_text(outcome, axis, value)}" for (axis, name), value in values if axis in chosen)


def over_seeds(values: Sequence[float]) -> Value | None:
    """Mean and sample standard deviation; None of nothing, and no deviation of a single value.

    >>> over_seeds([0.2, 0.4])
    Value(mean=0.30000000000000004, sd=0.14142135623730953, best=False)
    >>> over_seeds([0.2]), over_seeds([])
    (Value(mean=0.2, sd=None, best=False), None)
    """
    if not values:
        return None
    return Value(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None)


def on_set(rows: Sequence[Row], name: str, figure: str) -> Value | None:
    """A figure of a method (its rows are given) on one OOD set."""
    return over_seeds([getattr(row, figure) for row in _by_seed(rows) if row.ood == name])


def average(rows: Sequence[Row], sets: Sequence[str], figure: str) -> Value | None:
    """A figure of a method as the mean of OOD sets, first in each seed; None where it lacks one of them."""
    means = []
    for seed in sorted({row.seed for row in rows}):
        values = {row.ood: getattr(row, figure) for row in rows if row.seed == seed}
        if sets and values.keys() >= set(sets):
            means.append(float(np.mean([values[name] for name in sets])))
    return over_seeds(means)


def _by_seed(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row.seed)


def points(outcome: Outcome, condition: Condition, entry: str, parameter: str) -> dict[str, list[Row]]:
    """The rows of a method in the sweep of a parameter, by its value as written, smallest first."""
    found: dict[str, list[Row]] = {}
    for row in outcome.select(condition, entry=entry):
        name, _, value = row.point.partition("=")
        if name == parameter:
            found.setdefault(value, []).append(row)
    return {value: found[value] for value in sorted(found, key=float)}


def tau_text(rows: Sequence[Row]) -> str:
    """The tau that rows were scored with, or from which to which; "" where there is none."""
    taus = sorted(row.config["learned"]["tau"] for row in rows if "tau" in row.config["learned"])
    return " to ".join(dict.fromkeys(f"{tau:.3g}" for tau in taus[:1] + taus[-1:]))


def terms(row: Row) -> list[str]:
    """What the method of a row sees besides names and words: `FITTED`, `LEARNS`, both, or nothing."""
    method = row.config["method"]
    return [FITTED] * (Need.ID_IMAGES.value in method["needs"]) + [LEARNS] * bool(method["sees_order"])


def ranking(outcome: Outcome, condition: Condition, figure: str = "auroc") -> list[tuple[str, float]]:
    """The methods with their mean AUROC, or FPR95, over the OOD sets, best first; equal ones in the suite's order."""
    sets, sign = measured_sets(outcome), -1 if figure == "auroc" else 1
    found = [
        (name, value.mean)
        for name in entries(outcome, condition)
        if (value := average(outcome.select(condition, entry=name, point=""), sets, figure))
    ]
    return sorted(found, key=lambda pair: sign * pair[1])


def paper_entries(outcome: Outcome, condition: Condition) -> list[str]:
    """The entries of the paper's method that have figures, in the order of the suite."""
    own = [entry.shown for entry in outcome.suite.methods if entry.method == SOURCE_METHOD]
    ranked = {name for name, _ in ranking(outcome, condition)}
    return list(dict.fromkeys(name for name in own if name in ranked))


def replicates(outcome: Outcome, rows: Sequence[Row], n_pairs: int | None = None) -> dict[str, Array]:
    """The figures "auroc" and "fpr95_id" of each bootstrap sample, as the mean over OOD sets and seeds, (n_samples,).

    What a seed decides, such as the photos to fit on, is resampled with the images (`seeds_resampled`), and stretched
    for `n_pairs` intervals that hold at once.
    """
    by_seed: dict[int, list[Array]] = {}
    for row in _by_seed(rows):
        by_seed.setdefault(row.seed, []).append(outcome.replicates(row))
    means = seeds_resampled([np.mean(sets, axis=0) for sets in by_seed.values()], n_pairs)
    return {"auroc": means[:, 0], "fpr95_id": means[:, 1]}


def leads(outcome: Outcome, condition: Condition) -> dict[str, Lead]:
    """How far the best method is ahead of each of the others in one condition, by their names, best first.

    Where both rank so few photos wrong that there may be other errors, which no photo shows, half of the interval is 3
    in n at least (the rule of three), for the n photos of the smallest set.
    """
    (best, figure), *others = ranked = ranking(outcome, condition)
    chosen = [outcome.select(condition, entry=name) for name, _ in ranked]
    n_pairs = max(1, len(ranked) * (len(ranked) - 1) // 2)
    samples = [replicates(outcome, rows)["auroc"] for rows in chosen]
    widths = half_widths([replicates(outcome, rows, n_pairs)["auroc"] for rows in chosen])[0, 1:].tolist()
    fewest = min(min(row.n_id, row.n_ood) for row in chosen[0])
    found = {}
    for (name, own), theirs, width in zip(others, samples[1:], widths, strict=True):
        points, share = figure - own, float((samples[0] > theirs).mean())
        half, few = with_few_errors(width, (figure + own) / 2, fewest)
        found[name] = Lead(best, name, points, points - half, points + half, share, few)
    return found


def with_few_errors(half: float, auroc: float, n: int) -> tuple[float, bool]:
    """Half of an interval as it has to be near an AUROC of 1, and whether it is.

    >>> with_few_errors(0.001, 0.999, 100), with_few_errors(0.001, 0.9, 100)
    ((0.03, True), (0.001, False))
    """
    few = (1 - auroc) * n < FEW_ERRORS
    return (max(half, 3 / n) if few else half), few
