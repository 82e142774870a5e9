"""Sweeps in the paper's layout: one panel a parameter, AUROC on the left axis and FPR95 on the right one."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from outword.base.extras import require
from outword.base.html import visible
from outword.benchmark.run.results import Condition, Outcome
from outword.benchmark.show.notes import PAPER_VALUES
from outword.benchmark.show.picture import BLUE, DASHES, GREY, VERMILLION, Picture
from outword.benchmark.show.summary import average, measured_sets, on_set, points, title
from outword.maths.numerics import Array

LABELS = {
    "alpha": "α, number of neighbours",
    "tau": "τ, prior probability",
    "sigma": "σ, noise of the positives",
    "kappa": "κ, temperature",
    "L": "L, number of wild words",
    "B": "B, number of groups",
    "K": "K, number of labels",
}
DECADES = 1.2  # values that span more have a logarithmic axis
SIDES = (
    ("auroc", "AUROC, % (higher is better)", BLUE, "o"),
    ("fpr95_id", "FPR95, % (lower is better)", VERMILLION, "s"),
)


def sweeps(outcome: Outcome, condition: Condition, entry: str, name: str, heading: str) -> Picture:
    """The sweeps of a method, a panel each, side by side."""
    panels = [partial(_panel, outcome, condition, entry, sweep.parameter) for sweep in outcome.suite.sweep]
    return Picture(name, heading, panels, min(len(panels), 3), (4.1, 3.3))


def _panel(outcome: Outcome, condition: Condition, entry: str, parameter: str, axes: Any) -> list[Any]:
    found, sets = points(outcome, condition, entry, parameter), measured_sets(outcome)
    values = np.array([float(value) for value in found])
    right = axes.twinx()
    right.spines["right"].set_visible(True)
    handles = []
    for side, (figure, label, colour, marker) in zip((axes, right), SIDES, strict=True):
        for place, ood in enumerate(sets):
            each = [on_set(rows, ood, figure) for rows in found.values()]
            line = [np.nan if value is None else 100 * value.mean for value in each]
            side.plot(values, line, color=colour, alpha=0.4, linewidth=0.9, linestyle=DASHES[place % len(DASHES)])
        means = [average(rows, sets, figure) for rows in found.values()]
        mean = np.array([np.nan if value is None else 100 * value.mean for value in means])
        spread = np.array([0.0 if value is None else 100 * (value.sd or 0.0) for value in means])
        side.fill_between(values, mean - spread, mean + spread, color=colour, alpha=0.2, linewidth=0)
        handles += side.plot(
            values, mean, color=colour, marker=marker, markersize=4, label=f"mean {label.split(',')[0]}"
        )
        side.set_ylabel(label, color=colour)
        side.tick_params(axis="y", labelcolor=colour)
    handles += _set_handles(outcome, sets)
    if (paper := PAPER_VALUES.get(parameter)) is not None:
        axes.axvline(paper, color=GREY, linewidth=1, linestyle=(0, (4, 2)))
        axes.annotate(
            "paper",
            (paper, 1),
            (3, -8),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            color=GREY,
            fontsize=8,
        )
    _scale(axes, values)
    axes.set_xlabel(LABELS[parameter])
    return handles


def _set_handles(outcome: Outcome, sets: list[str]) -> list[Any]:
    lines = require("matplotlib.lines")
    return [
        lines.Line2D(
            [], [], color=GREY, linewidth=0.9, linestyle=DASHES[i % len(DASHES)], label=visible(title(outcome, ood))
        )
        for i, ood in enumerate(sets)
    ]


def _scale(axes: Any, values: Array) -> None:
    """A logarithmic axis for values that span more than `DECADES`, linear around 0 if that is among them."""
    positive = values[values > 0]
    if len(positive) > 1 and np.log10(positive.max() / positive.min()) > DECADES:
        if (values <= 0).any():
            axes.set_xscale("symlog", linthresh=positive.min(), linscale=0.7)
            axes.set_xlim(-0.2 * positive.min(), 1.6 * positive.max())
        else:
            axes.set_xscale("log")
    axes.set_xticks(values, [f"{value:g}" for value in values], rotation=45 if len(values) > 5 else 0)
    axes.minorticks_off()
