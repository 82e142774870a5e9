"""Theorem 2 as a figure: delta against m, n and both, log by log, with the bound where it can be seen."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from outword_lab.benchmark.show.picture import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION, Picture, legend_line
from outword_lab.benchmark.theory.theory import AXES, BEYOND, GOAL, Axis, Curve

NAME = "theorem2"
TITLES = {"m": "m words of Q, all of P+", "n": "n words of P+, all of Q", "both": "m = n words of each"}
LINES = list(zip((BLUE, GREEN, ORANGE, VERMILLION, PURPLE, SKY), "osD^vP", strict=True))  # one a scale
CAPTION = (
    "δ = |log S_debiased − log S_unbiased|, mean over draws and images, against the number of words that are drawn; "
    "bands are 95 % intervals over draws. The theorem says that δ falls with slope −1/2 (dashed). It does so well "
    "above the knee: the size at which a sampled mean is as uncertain as it is large, for the worst image. Below, a "
    f"few words that are drawn seldom decide. The table has the knee of each curve, and slopes from {BEYOND} knees on. "
    "Printed bounds (dotted) are shown where they come near. Hollow points have draws without a logarithm, which are "
    "left out."
)


def theorem_figures(curves: Sequence[Curve], folder: Path) -> list[Path]:
    """Draw the curves to `folder`/plots, as SVG and PNG; each panel is an SVG of its own in panels/ too.

    A panel is a setting and what its curves are drawn against. Equal curves give equal files, with the same matplotlib.
    """
    settings = dict.fromkeys(curve.setting for curve in curves)
    own = [[curve for curve in curves if curve.setting == setting] for setting in settings]
    panels = [partial(_panel, some, axis) for some in own for axis in AXES]
    return Picture(NAME, "", panels, len(AXES), (3.9, 3.5)).save(folder / "plots")


def _panel(curves: Sequence[Curve], axis: Axis, axes: Any) -> list[Any]:
    """One setting and axis: a line a scale, hollow where draws are undefined, and the bounds that come near."""
    seen = [point.mean for curve in curves for point in curve.points if point.mean]
    low, high = min(seen, default=0.1) / 10, max(seen, default=0.1) * 30  # room for the guide, and for near bounds
    axes.set(xscale="log", yscale="log", ylim=(low, high), xlabel="size", ylabel="mean δ")
    handles = []
    for curve, (colour, marker) in zip([c for c in curves if c.axis == axis], cycle(LINES), strict=False):
        handles.append(legend_line(f"κ = {curve.scale:g}", color=colour, lw=1.2, marker=marker, markersize=4))
        points = [point for point in curve.points if point.mean]
        x, y = [point.size for point in points], [point.mean for point in points]
        axes.plot(x, y, color=colour, lw=1.2)
        axes.fill_between(x, [p.low for p in points], [p.high for p in points], color=colour, alpha=0.25, lw=0)
        faces = [colour if point.undefined == 0 else "white" for point in points]
        axes.scatter(x, y, s=16, marker=marker, c=faces, edgecolors=colour, linewidths=0.9, zorder=3)
        if any(point.bound < high for point in points):
            axes.plot(x, [point.bound for point in points], color=colour, lw=1.2, ls=":")
    sizes = np.array([point.size for point in curves[0].points], np.float64)
    axes.plot(sizes, 2 * low * (sizes / sizes[-1]) ** GOAL, color="black", lw=0.9, ls="--")
    axes.set_title(f"{curves[0].setting} vectors: {TITLES[axis]}")
    axes.grid(visible=True, which="major", color="#dddddd", lw=0.5)
    axes.minorticks_off()
    for side in (axes.xaxis, axes.yaxis):
        side.set_major_formatter(lambda value, _: _power(value))
    return [
        *handles,
        legend_line("slope −1/2", color="black", lw=0.9, ls="--"),
        legend_line("printed bound", color="black", lw=1.2, ls=":"),
        legend_line("undefined draws", color="black", lw=0, marker="o", mfc="white", markersize=4),
    ]


def _power(value: float) -> str:
    """A power of ten as plain text, such as "10⁻²" for 0.01."""
    return "10" + f"{round(np.log10(value))}".translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
