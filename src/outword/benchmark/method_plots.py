"""Figures that compare methods in one condition: intervals, ROC curves, histograms of scores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from outword.benchmark.picture import BLUE, DASHES, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION, Picture
from outword.benchmark.results import Array, Outcome, Row
from outword.benchmark.summary import (
    AUROC,
    FPR95,
    Condition,
    average,
    mean_interval,
    measured_sets,
    paper_entries,
    ranking,
    title,
)
from outword.metrics import auroc, threshold_at_tpr
from outword.page import visible

BEST = 5  # methods with a ROC curve, besides the paper's
POINTS = 400  # of a curve
BINS = 40
COLOURS = (BLUE, GREEN, PURPLE, SKY, ORANGE)
LABELS = {
    AUROC: ("auroc", "mean AUROC, % (higher is better)"),
    FPR95: ("fpr95_id", "mean FPR95, % (lower is better)"),
}


def dots(outcome: Outcome, condition: Condition, name: str, heading: str) -> Picture:
    """Mean AUROC and FPR95 of each method with its 95 % bootstrap interval, best AUROC on top."""
    methods = [method for method, _ in ranking(outcome, condition)]
    size = (4.1, 1.0 + 0.24 * len(methods))
    return Picture(name, heading, [partial(_dots, outcome, condition, methods, c) for c in LABELS], 2, size)


def _dots(outcome: Outcome, condition: Condition, methods: Sequence[str], column: int, axes: Any) -> list[Any]:
    figure, label = LABELS[column]
    sets, own = measured_sets(outcome), paper_entries(outcome, condition)
    for place, method in enumerate(methods):
        rows = outcome.select(condition, entry=method)
        value = average(rows, sets, figure)
        assert value is not None  # the ranking has only those with an average
        low, high = mean_interval(outcome, rows, column)
        colour = VERMILLION if method in own else BLUE
        axes.plot([100 * low, 100 * high], [place, place], color=colour, linewidth=1.5)
        axes.plot([100 * value.mean], [place], "o", color=colour, markersize=5)
    axes.set_yticks(range(len(methods)), [visible(method) for method in methods])
    for text, method in zip(axes.get_yticklabels(), methods, strict=True):
        text.set_color(VERMILLION if method in own else "black")
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.set_xlabel(label)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    return []


def roc_curves(outcome: Outcome, condition: Condition, name: str, heading: str) -> Picture:
    """ROC curves of the best methods and the paper's, one panel for each OOD set; of the first seed."""
    own = paper_entries(outcome, condition)
    best = [method for method, _ in ranking(outcome, condition)][:BEST]
    methods = [*best, *(method for method in own if method not in best)]
    panels = [partial(_roc, outcome, condition, methods, own, ood) for ood in measured_sets(outcome)]
    return Picture(name, heading, panels, _columns(len(panels)), (3.9, 3.7))


def _columns(panels: int) -> int:
    """Two side by side for four panels, else up to three."""
    return 2 if panels in (2, 4) else min(panels, 3)


def _roc(
    outcome: Outcome, condition: Condition, methods: Sequence[str], own: Sequence[str], ood: str, axes: Any
) -> list[Any]:
    others = [method for method in methods if method not in own]
    for method in methods:
        inside, outside = outcome.scores(_first(outcome, condition, method, ood))
        place = others.index(method) if method in others else own.index(method)
        colour = VERMILLION if method in own else COLOURS[place]
        false, true = roc(inside, outside)
        told = f"{visible(method)}  {100 * auroc(inside, outside):.2f}"
        style = {"color": colour, "linestyle": DASHES[place % len(DASHES)], "linewidth": 2 if method in own else 1.4}
        axes.plot(100 * false, 100 * true, label=told, **style)
    axes.plot([0, 100], [0, 100], color="#bbbbbb", linewidth=0.8)
    axes.set(xlim=(-1, 101), ylim=(-1, 101), xlabel="OOD accepted (FPR), %", ylabel="ID accepted (TPR), %")
    axes.set_title(visible(title(outcome, ood)))
    axes.legend(loc="lower right", title="AUROC, % (higher is better)", title_fontsize=8, alignment="left")
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
    best = [method for method, _ in ranking(outcome, condition)]
    methods = dict.fromkeys([*best[:1], *paper_entries(outcome, condition)[:1]])
    pictures = []
    for number, method in enumerate(methods, 1):
        panels = [partial(_histogram, outcome, condition, method, ood) for ood in measured_sets(outcome)]
        pictures.append(Picture(f"{name}-{number}", heading, panels, _columns(len(panels)), (3.9, 2.6)))
    return pictures


def _histogram(outcome: Outcome, condition: Condition, method: str, ood: str, axes: Any) -> list[Any]:
    inside, outside = outcome.scores(_first(outcome, condition, method, ood))
    low, high = score_range(inside, outside)
    handles, infinite = [], 0
    for scores, told, colour in ((inside, "ID", BLUE), (outside, "OOD", VERMILLION)):
        finite = scores[np.isfinite(scores)]
        infinite += len(scores) - len(finite)
        counts, edges = np.histogram(finite, BINS, (low, high))
        axes.stairs(100 * counts / len(scores), edges, color=colour, fill=True, alpha=0.35)
        handles.append(axes.stairs(100 * counts / len(scores), edges, color=colour, linewidth=1.2, label=told))
    cut = threshold_at_tpr(inside, 0.95)
    handles.append(axes.axvline(cut, color=GREY, linestyle="--", linewidth=1.2, label="accepts 95 % of ID"))
    axes.set_title(visible(f"{method}: ID against {title(outcome, ood)}"))
    dropped = f"; {infinite:,} infinite ones not shown" if infinite else ""
    axes.set(xlim=(low, high), xlabel=f"score (higher: more ID){dropped}", ylabel="images of the set, %")
    return handles


def score_range(inside: Array, outside: Array) -> tuple[float, float]:
    """Where nearly all finite scores lie, and the threshold that accepts 95 % of ID; a few outliers do not count."""
    scores = np.concatenate([inside, outside])
    scores = scores[np.isfinite(scores)]
    if not scores.size:
        return 0.0, 1.0
    low, high = np.quantile(scores, [0.005, 0.995]).tolist()
    cut = threshold_at_tpr(inside, 0.95)
    if np.isfinite(cut):
        low, high = min(low, cut), max(high, cut)
    room = max(0.03 * (high - low), 1e-6 * max(abs(low), abs(high), 1e-6))
    return low - room, high + room
