"""Figures that compare methods in one condition: intervals, ROC curves, histograms of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from outword.base.html import visible
from outword.maths.metrics import auroc, threshold_at_tpr
from outword.maths.numerics import Array
from outword_lab.benchmark.run.bootstrap import interval
from outword_lab.benchmark.run.results import Condition, Outcome, Row
from outword_lab.benchmark.show.picture import (
    AXIS_LABELS,
    BLUE,
    COLOURS,
    DASHES,
    GREY,
    VERMILLION,
    Picture,
    legend_line,
)
from outword_lab.benchmark.show.summary import FITTED, LEARNS, measured_sets, paper_entries, ranking, replicates, terms

BEST = 5  # methods with a ROC curve, besides the paper's
POINTS = 400  # of a curve
BINS = 40
SQUEEZED = 0.02  # of the range of scores: where half of a set lies there, the axis is stretched
MARKERS = {"": "o", FITTED: "s", LEARNS: "D"}


def dots(outcome: Outcome, condition: Condition, name: str, heading: str) -> Picture:
    """Mean AUROC and FPR95 of each method with its 95 % bootstrap interval, best AUROC on top."""
    methods = [method for method, _ in ranking(outcome, condition)]
    size = (4.1, 1.3 + 0.24 * len(methods))
    return Picture(name, heading, [partial(_dots, outcome, condition, methods, f) for f in AXIS_LABELS], 2, size)


def _dots(outcome: Outcome, condition: Condition, methods: Sequence[str], figure: str, axes: Any) -> list[Any]:
    own, means = paper_entries(outcome, condition), dict(ranking(outcome, condition, figure))
    kinds: set[str] = set()
    for place, method in enumerate(methods):
        rows = outcome.select(condition, entry=method)
        low, high = interval(replicates(outcome, rows)[figure])
        colour, kind = VERMILLION if method in own else BLUE, next(iter(terms(rows[0])), "")
        axes.plot([100 * low, 100 * high], [place, place], color=colour, linewidth=1.5)
        axes.plot([100 * means[method]], [place], color=colour, **_marker(kind))
        kinds.add(kind)
    axes.set_yticks(range(len(methods)), [visible(method) for method in methods])
    for text, method in zip(axes.get_yticklabels(), methods, strict=True):
        text.set_color(VERMILLION if method in own else "black")
    axes.set(ylim=(len(methods) - 0.5, -0.5), xlabel=f"mean {AXIS_LABELS[figure]}")
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    return [legend_line(kind, color=GREY, linestyle="", **_marker(kind)) for kind in MARKERS if kind and kind in kinds]


def _marker(kind: str) -> dict[str, Any]:
    """Hollow where a method sees more than names and words."""
    return {"marker": MARKERS[kind], "markersize": 5} | ({"markerfacecolor": "white"} if kind else {})


def roc_curves(outcome: Outcome, condition: Condition, name: str, heading: str) -> Picture:
    """ROC curves of the best methods and the paper's, one panel for each OOD set; of the first seed."""
    best = [method for method, _ in ranking(outcome, condition)][:BEST]
    methods = list(dict.fromkeys([*best, *paper_entries(outcome, condition)]))
    panels = [partial(_roc, outcome, condition, methods, ood) for ood in measured_sets(outcome)]
    return Picture(name, heading, panels, _columns(len(panels)), (3.9, 3.7))


def _columns(panels: int) -> int:
    """Two side by side for four panels, else up to three."""
    return 2 if panels in (2, 4) else min(panels, 3)


def _roc(outcome: Outcome, condition: Condition, methods: Sequence[str], ood: str, axes: Any) -> list[Any]:
    own = paper_entries(outcome, condition)
    others = [method for method in methods if method not in own]
    rows = {method: _first(outcome, condition, method, ood) for method in methods}
    for method, row in rows.items():
        inside, outside = outcome.scores(row)
        place = others.index(method) if method in others else own.index(method)
        colour = VERMILLION if method in own else COLOURS[place]
        false, true = roc(inside, outside)
        label, width = f"{visible(method)}  {100 * auroc(inside, outside):.2f}", 2 if method in own else 1.4
        dashes = DASHES[place % len(DASHES)]
        axes.plot(100 * false, 100 * true, label=label, color=colour, linestyle=dashes, linewidth=width)
    axes.plot([0, 100], [0, 100], color="#bbbbbb", linewidth=0.8)
    axes.set(xlim=(-1, 101), ylim=(-1, 101), xlabel="OOD accepted (FPR), %", ylabel="ID accepted (TPR), %")
    axes.set_title(visible(outcome.title(ood)))
    seed = min(row.seed for row in rows.values())
    axes.legend(loc="lower right", title=f"AUROC, % (seed {seed})", title_fontsize=8, alignment="left")
    return []


def _first(outcome: Outcome, condition: Condition, method: str, ood: str) -> Row:
    """The row of the first seed."""
    return min(outcome.select(condition, entry=method, ood=ood), key=lambda row: row.seed)


def roc(inside: Array, outside: Array) -> tuple[Array, Array]:
    """FPR and TPR with ID as the positives, from (0, 0) to (1, 1); no more than `POINTS`, evenly along the curve.

    >>> false, true = roc(np.array([2.0, 3.0]), np.array([1.0, 2.0]))
    >>> false.tolist(), true.tolist()
    ([0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0])
    """
    thresholds = np.unique(np.concatenate([inside, outside]))[::-1]
    false, true = (
        np.concatenate([[0.0], 1 - np.searchsorted(np.sort(part), thresholds) / len(part)])
        for part in (outside, inside)
    )
    if len(true) > POINTS:
        kept = np.unique(np.searchsorted(false + true, np.linspace(0, 2, POINTS)).clip(max=len(true) - 1))
        false, true = false[kept], true[kept]
    return false, true


def histograms(outcome: Outcome, condition: Condition, name: str, heading: str) -> list[Picture]:
    """Scores of ID and OOD images, one panel for each OOD set: of the best method, and of the paper's; first seed."""
    best = [method for method, _ in ranking(outcome, condition)[:1]]
    pictures = []
    for number, method in enumerate(dict.fromkeys([*best, *paper_entries(outcome, condition)[:1]]), 1):
        rows = [_first(outcome, condition, method, ood) for ood in measured_sets(outcome)]
        scale = score_scale([outcome.scores(row) for row in rows])
        panels = [partial(_histogram, outcome, row, scale) for row in rows]
        pictures.append(Picture(f"{name}-{number}", heading, panels, _columns(len(panels)), (3.9, 2.6)))
    return pictures


def _histogram(outcome: Outcome, row: Row, scale: Mapping[str, Any], axes: Any) -> list[Any]:
    inside, outside = outcome.scores(row)
    edges = _edges(inside, outside, scale, axes)
    handles, infinite = [], 0
    for scores, label, colour in ((inside, "ID", BLUE), (outside, "OOD", VERMILLION)):
        finite = scores[np.isfinite(scores)]
        infinite += len(scores) - len(finite)
        shares = 100 * np.histogram(finite, edges)[0] / len(scores)
        axes.stairs(shares, edges, color=colour, fill=True, alpha=0.35)
        handles.append(axes.stairs(shares, edges, color=colour, linewidth=1.2, label=label))
    threshold = threshold_at_tpr(inside, 0.95)
    handles.append(axes.axvline(threshold, color=GREY, linestyle="--", linewidth=1.2, label="accepts 95 % of ID"))
    axes.set_title(visible(f"{row.entry}: ID against {outcome.title(row.ood)}"))
    axis = "" if scale["value"] == "linear" else "logarithmic axis; "
    dropped = f"; {infinite:,} infinite ones not shown" if infinite else ""
    axes.set(
        xlim=(edges[0], edges[-1]), xlabel=f"score ({axis}higher: more ID){dropped}", ylabel="images of the set, %"
    )
    return handles


def score_scale(pairs: Sequence[tuple[Array, Array]]) -> dict[str, Any]:
    """The axis on which ID scores and OOD scores can be told apart, as `Axes.set_xscale` takes it.

    A linear one, unless more than half of a set lies at one end. Then it is logarithmic, with a linear part around 0
    where not all scores are positive.

    >>> score_scale([(np.array([0.5, 1.0]), np.array([0.001, 0.002, 0.4]))])
    {'value': 'log'}
    """
    squeezed = False
    for inside, outside in pairs:
        low, high = _bulk(inside, outside)
        near = SQUEEZED * (high - low)
        squeezed |= any(max((s < low + near).mean(), (s > high - near).mean()) > 0.5 for s in (inside, outside))
    scores = np.concatenate([part for pair in pairs for part in pair])
    finite = scores[np.isfinite(scores)]
    if not squeezed or not finite.any():
        return {"value": "linear"}
    if (finite > 0).all():
        return {"value": "log"}
    return {"value": "symlog", "linthresh": float(np.quantile(np.abs(finite[finite != 0]), 0.05))}


def _edges(inside: Array, outside: Array, scale: Mapping[str, Any], axes: Any) -> Array:
    """Of bins that look equally wide on this scale, which the axes get."""
    axes.set_xscale(**scale)
    if scale["value"] != "linear":  # as plain text: mathematics is not parsed
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(lambda *_: "")
    stretch = axes.xaxis.get_transform()
    low, high = score_range(*(np.where(np.isfinite(s), stretch.transform(s), s) for s in (inside, outside)))
    return np.asarray(stretch.inverted().transform(np.linspace(low, high, BINS + 1)))


def score_range(inside: Array, outside: Array) -> tuple[float, float]:
    """Where nearly all finite scores lie, and the threshold that accepts 95 % of ID; a few outliers do not count."""
    low, high = _bulk(inside, outside)
    threshold = threshold_at_tpr(inside, 0.95)
    if np.isfinite(threshold):
        low, high = min(low, threshold), max(high, threshold)
    room = max(0.03 * (high - low), 1e-6 * max(abs(low), abs(high), 1e-6))
    return low - room, high + room


def _bulk(inside: Array, outside: Array) -> tuple[float, float]:
    """99 % of the finite scores; from 0 to 1 where there are none."""
    scores = np.concatenate([inside, outside])
    scores = scores[np.isfinite(scores)]
    low, high = np.quantile(scores, [0.005, 0.995]).tolist() if scores.size else (0.0, 1.0)
    return low, high
