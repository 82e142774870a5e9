"""Theorem 2 as a figure: delta against m, n and both, log by log, with the bound where it can be seen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from outword.benchmark.picture import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION
from outword.benchmark.theory import AXES, GOAL, Curve
from outword.encoders.doors import need
from outword.errors import ParameterError
from outword.files import whole_file

TITLES = {"m": "m words of Q, all of P+", "n": "n words of P+, all of Q", "both": "m = n words of each"}
LINES = tuple(
    zip((BLUE, GREEN, ORANGE, VERMILLION, PURPLE, SKY), "osD^vP", strict=True)
)  # a colour and a marker a scale
STYLE = {"font.size": 9, "axes.titlesize": 10, "legend.fontsize": 8, "svg.hashsalt": "outword"}


def theorem_figure(curves: Sequence[Curve], path: Path) -> None:
    """Draw the curves, a row of panels for each setting; `path` ends in .svg or .png. Equal curves give equal files."""
    if path.suffix not in (".svg", ".png"):
        raise ParameterError(f"a figure must end in .svg or .png, got {path.name}", hint="rename it")
    if not curves:
        raise ParameterError("a figure must have one curve or more, got none", hint="measure some first")
    kind = path.suffix.removeprefix(".")
    with need("matplotlib", "a plot", extra="bench").rc_context(STYLE):
        figure = _draw(curves)
        with whole_file(path) as temporary:
            figure.savefig(temporary, format=kind, dpi=160, metadata={"Date": None} if kind == "svg" else None)


def _draw(curves: Sequence[Curve]) -> Any:
    settings = list(dict.fromkeys(curve.setting for curve in curves))
    size = (10.5, 0.9 + 3.1 * len(settings))
    figure = need("matplotlib.figure", "a plot", extra="bench").Figure(size, layout="constrained")
    panels = figure.subplots(len(settings), len(AXES), sharex=True, sharey="row", squeeze=False)
    for row, setting in zip(panels, settings, strict=True):
        own = [curve for curve in curves if curve.setting == setting]
        low, high = _limits(own)
        for panel, axis in zip(row, AXES, strict=True):
            panel.set(xscale="log", yscale="log", ylim=(low, high))
            _panel(panel, [curve for curve in own if curve.axis == axis], high)
            _guide(panel, own[0], 2 * low)
        row[0].set_ylabel(f"{setting} vectors\nmean δ")
    for first, last, axis in zip(panels[0], panels[-1], AXES, strict=True):
        first.set_title(TITLES[axis])
        last.set_xlabel("size")
    figure.legend(handles=_legend(curves), loc="outside lower center", ncols=4, frameon=False)
    return figure


def _limits(curves: Sequence[Curve]) -> tuple[float, float]:
    """Of the vertical axis: room for the guide below, and for the bounds that come near above."""
    seen = [point.mean for curve in curves for point in curve.points if point.mean]
    return min(seen, default=0.1) / 10, max(seen, default=0.1) * 30


def _panel(panel: Any, curves: Sequence[Curve], high: float) -> None:
    """One setting and axis: a line a scale, hollow where draws are undefined, and the bounds that lie below `high`."""
    for place, curve in enumerate(curves):
        colour, marker = LINES[place % len(LINES)]
        points = [point for point in curve.points if point.mean]
        x, y = [point.size for point in points], [point.mean for point in points]
        panel.plot(x, y, color=colour, lw=1.2)
        panel.fill_between(x, [p.low for p in points], [p.high for p in points], color=colour, alpha=0.25, lw=0)
        faces = [colour if point.undefined == 0 else "white" for point in points]
        panel.scatter(x, y, s=16, marker=marker, c=faces, edgecolors=colour, linewidths=0.9, zorder=3)
        if any(point.bound < high for point in points):
            panel.plot(x, [point.bound for point in points], color=colour, lw=1.2, ls=":")
    panel.grid(visible=True, which="major", color="#dddddd", lw=0.5)
    panel.minorticks_off()


def _guide(panel: Any, curve: Curve, end: float) -> None:
    """A line of slope -1/2 over the sizes of a curve, down to `end`."""
    x = np.array([point.size for point in curve.points], np.float64)
    panel.plot(x, end * (x / x[-1]) ** GOAL, color="black", lw=0.9, ls="--")


def _legend(curves: Sequence[Curve]) -> list[Any]:
    line = need("matplotlib.lines", "a plot", extra="bench").Line2D
    scales = dict.fromkeys(curve.scale for curve in curves)
    styles = [LINES[place % len(LINES)] for place in range(len(scales))]
    return [
        *(
            line([], [], color=colour, lw=1.2, marker=marker, markersize=4, label=f"κ = {scale:g}")
            for scale, (colour, marker) in zip(scales, styles, strict=True)
        ),
        line([], [], color="black", lw=0.9, ls="--", label="slope −1/2"),
        line([], [], color="black", lw=1.2, ls=":", label="bound of the theorem, as printed"),
        line([], [], color="black", lw=0, marker="o", mfc="white", markersize=4, label="some draws have no logarithm"),
    ]
