"""The figures of a run as SVG and PNG: intervals, curves and histograms of methods, or sweeps in the paper's layout."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from outword.base.html import visible
from outword.maths.numerics import Array
from outword_lab.benchmark.run.results import Condition, Outcome
from outword_lab.benchmark.show import summary
from outword_lab.benchmark.show.method_plots import dots, histograms, roc_curves
from outword_lab.benchmark.show.notes import PAPER_VALUES
from outword_lab.benchmark.show.picture import AXIS_LABELS, BLUE, DASHES, GREY, PANELS, VERMILLION, Picture, legend_line

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
SIDES = (("auroc", BLUE, "o"), ("fpr95_id", VERMILLION, "s"))


def write_plots(outcome: Outcome, folder: Path) -> list[Path]:
    """Draw the figures of a run to `folder`/plots, as SVG and PNG; each panel is an SVG of its own in panels/ too.

    Equal rows and scores give equal files, with the same matplotlib. There are none where nothing was measured.
    """
    if not outcome.rows:
        return []
    folder = folder / "plots"
    for old in [*folder.glob("*-*.svg"), *folder.glob("*-*.png"), *(folder / PANELS).glob("*-*.svg")]:
        old.unlink()  # an earlier run may have had more of them
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # shown as a box, which will do
        return [path for picture in _pictures(outcome) for path in picture.save(folder)]


def _pictures(outcome: Outcome) -> Iterator[Picture]:
    for number, condition in enumerate(outcome.conditions()):
        heading = summary.condition_text(outcome, condition)
        if outcome.suite.sweep:
            methods = summary.entries(outcome, condition)
            for place, entry in enumerate(methods):
                own = "; ".join(filter(None, [heading, f"Method: {entry}" if len(methods) > 1 else ""]))
                yield sweeps(outcome, condition, entry, picture_name("sweep", number, place), own)
        elif summary.ranking(outcome, condition):
            yield dots(outcome, condition, picture_name("dots", number), heading)
            yield roc_curves(outcome, condition, picture_name("roc", number), heading)
            yield from histograms(outcome, condition, picture_name("histogram", number), heading)


def picture_name(kind: str, *numbers: int) -> str:
    """The name of a figure of a condition, which goes by its number, such as "roc-1" for the first."""
    return "-".join([kind, *(str(number + 1) for number in numbers)])


def sweeps(outcome: Outcome, condition: Condition, entry: str, name: str, heading: str) -> Picture:
    """The sweeps of a method in the paper's layout: a panel each, AUROC on the left axis and FPR95 on the right one."""
    panels = [partial(_panel, outcome, condition, entry, sweep.parameter) for sweep in outcome.suite.sweep]
    return Picture(name, heading, panels, min(len(panels), 3), (4.1, 3.3))


def _panel(outcome: Outcome, condition: Condition, entry: str, parameter: str, axes: Any) -> list[Any]:
    found, sets = summary.points(outcome, condition, entry, parameter), summary.measured_sets(outcome)
    values = np.array([float(value) for value in found])
    right = axes.twinx()
    right.spines["right"].set_visible(True)
    dashes = [{"linewidth": 0.9, "linestyle": DASHES[place % len(DASHES)]} for place in range(len(sets))]
    handles = []
    for side, (figure, colour, marker) in zip((axes, right), SIDES, strict=True):
        for ood, style in zip(sets, dashes, strict=True):
            line, _ = _percent([summary.on_set(rows, ood, figure) for rows in found.values()])
            side.plot(values, line, color=colour, alpha=0.4, **style)
        mean, spread = _percent([summary.average(rows, sets, figure) for rows in found.values()])
        side.fill_between(values, mean - spread, mean + spread, color=colour, alpha=0.2, linewidth=0)
        label = f"mean {AXIS_LABELS[figure].split(',')[0]}"
        handles += side.plot(values, mean, color=colour, marker=marker, markersize=4, label=label)
        side.set_ylabel(AXIS_LABELS[figure], color=colour)
        side.tick_params(axis="y", labelcolor=colour)
    handles += [legend_line(visible(outcome.title(s)), color=GREY, **own) for s, own in zip(sets, dashes, strict=True)]
    if (paper := PAPER_VALUES.get(parameter)) is not None:
        axes.axvline(paper, color=GREY, linewidth=1, linestyle=(0, (4, 2)))
        at = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
        axes.annotate("paper", (paper, 1), (3, -8), color=GREY, fontsize=8, **at)
    _scale(axes, values)
    axes.set_xlabel(LABELS[parameter])
    return handles


def _percent(values: Sequence[summary.Value | None]) -> tuple[Array, Array]:
    """Means and deviations in percent; a gap in the line where a mean is missing."""
    means = [np.nan if value is None else 100 * value.mean for value in values]
    return np.array(means), np.array([0.0 if value is None else 100 * (value.sd or 0.0) for value in values])


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
