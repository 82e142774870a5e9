"""Theorem 2 as tables: the slopes, and all points."""

from __future__ import annotations

from collections.abc import Sequence

from outword_lab.benchmark.show.table import Cell, Column, Label, Line, Table
from outword_lab.benchmark.theory.theory import BEYOND, SLACK, Case, Curve, Point, Slope

AGAINST = {"m": "m", "n": "n", "both": "m = n"}
CURVE = (Column("Vectors", "setting"), Column("κ", "scale", "count"), Column("against", "axis"))
SCORES = {False: "as sampled", True: "at e^−κ or above"}
FIT = (("slope", "slope"), ("low", "low"), ("high", "high"), ("first", "from size"))


def theorem_tables(curves: Sequence[Curve]) -> list[Table]:
    """The tables "slopes" and "points"; equal curves give equal tables."""
    return [_slopes(curves), _points(curves)]


def cases_table(cases: Sequence[Case]) -> Table:
    """The table "cases": where the printed bound is broken, and by which score."""
    names = {"cosine": "P− at cos", "scale": "κ", "m": "m", "score": "Λ"}
    names |= {"of_bound": "δ / printed bound", "of_corrected": "δ / corrected bound"}
    columns = [Column(name, key, "text" if key == "score" else "count") for key, name in names.items()]
    rows = [
        Line([f"{c.cosine:g}", f"{c.scale:g}", c.m, SCORES[c.floored], _figure(c.of_bound), _figure(c.of_corrected)])
        for c in cases
    ]
    note = (
        "P+ on the image, the one label opposite; τ = 0.5, λ = 120, n = ∞. Above 1 a bound is broken; the corrected "
        "one is proved for Λ at e^−κ or above."
    )
    return Table("cases", "Theorem 2: cases made to break the printed bound", columns, rows, [note])


def theorem_headline(curves: Sequence[Curve]) -> str:
    """What was found, in a few sentences: which slopes are −1/2, and what the printed bound is worth."""
    goal = f"a slope of −0.5 ± {SLACK:g}"
    over_all = _count(curves, [curve.slope for curve in curves], f"have {goal} over all sizes")
    beyond = _count(curves, [curve.beyond for curve in curves], f"do from {BEYOND} knees on")
    return f"{over_all} {beyond} {_bound_text(curves)}"


def _count(curves: Sequence[Curve], slopes: Sequence[Slope | None], what: str) -> str:
    """How many slopes meet the goal, and at which scales the others do not."""
    fitted = [(curve.scale, slope.meets_goal) for curve, slope in zip(curves, slopes, strict=True) if slope]
    met = f"{sum(meets for _, meets in fitted)} of {len(fitted)} curves {what}"
    scales = {scale: [meets for own, meets in fitted if own == scale] for scale, _ in fitted}
    off = [f"κ = {k:g} ({own.count(False)} of {len(own)})" for k, own in scales.items() if not all(own)]
    others = f", the others are at {', '.join(off)}" if off else ""
    few = len(curves) - len(fitted)
    return met + others + (f"; {few} have too few sizes for that." if few else ".")


def _bound_text(curves: Sequence[Curve]) -> str:
    points = {curve.scale: [p for own in curves if own.scale == curve.scale for p in own.points] for curve in curves}
    shares = {scale: max(map(_of_bound, some)) for scale, some in points.items()}
    broken = ", ".join(f"κ = {scale:g}" for scale, share in shares.items() if share > 1)
    text = f"The printed bound is broken {f'at {broken}' if broken else 'nowhere'}"
    text += f": δ of the worst image is at most {max(shares.values()):.3g} of it."
    if empty := [scale for scale, some in points.items() if min(point.bound for point in some) >= 1]:
        text += (
            f" It is vacuous from κ = {min(empty):g} on: no size that was measured brings it below 1, and a δ of 1 is "
            "a factor of e in the score."
        )
    return text


def _of_bound(point: Point) -> float:
    return (point.worst or 0.0) / point.bound


def _slopes(curves: Sequence[Curve]) -> Table:
    groups = (("all", "all sizes"), ("beyond", f"beyond {BEYOND} knees"))
    fits = [Column(name, f"{key}_{part}", "count", group) for key, group in groups for part, name in FIT]
    last = (
        Column("−0.5 ± 0.05", "meets_goal"),
        Column("knee", "knee", "count"),
        Column("undefined, at most", "undefined", "count"),
        Column("δ / bound, at most", "of_bound", "count"),
    )
    rows = [_line(curves, curve, _slope_cells(curve)) for curve in curves]
    return Table("slopes", "Theorem 2: slope of log δ by log size", (*CURVE, *fits, *last), rows, _notes(curves))


def _slope_cells(curve: Curve) -> list[Cell]:
    met = [_goal(curve.slope), _goal(curve.beyond)]
    both = met[0] if met[0] == met[1] else f"{met[0]}; beyond {BEYOND} knees: {met[1]}"
    undefined = _percent(max(point.undefined for point in curve.points))
    of_bound = _figure(max(map(_of_bound, curve.points)))
    return [*_fit(curve.slope), *_fit(curve.beyond), both, _figure(curve.knee), undefined, of_bound]


def _points(curves: Sequence[Curve]) -> Table:
    names = {"size": "size", "mean": "δ", "low": "low", "high": "high", "worst": "δ of the worst image"}
    names |= {"undefined": "undefined", "bound": "bound, as printed", "corrected": "bound, corrected"}
    rows = [_line(curves, curve, _point_cells(point)) for curve in curves for point in curve.points]
    columns = [*CURVE, *(Column(name, key, "count") for key, name in names.items())]
    return Table("points", "Theorem 2: δ against the number of words", columns, rows, _notes(curves))


def _point_cells(point: Point) -> list[Cell]:
    measured = [_figure(value) for value in (point.mean, point.low, point.high, point.worst)]
    return [point.size, *measured, _percent(point.undefined), _figure(point.bound), _figure(point.corrected)]


def _notes(curves: Sequence[Curve]) -> list[str]:
    first = curves[0]
    sizes = {c.setting: f"{c.setting}: {c.images} images, {c.labels} labels, {c.words} words" for c in curves}
    return [
        f"{'; '.join(sizes.values())}. τ = {first.tau:g}, λ = {first.lam:g}, {first.draws} draws a point.",
        "δ = |log S_debiased − log S_unbiased|, mean over draws and images; 95 % intervals by bootstrap over draws. "
        "Along m the mean over P+ is exact, along n that over Q.",
        "Undefined: share of draws and images with P + λΛ ≤ 0, which has no logarithm. Means are of the others, and "
        "slopes of sizes without any.",
        "Knee: the size at which a sampled mean is as uncertain as it is large, for the worst image.",
        "The bounds are compared with δ of the worst image. The printed one is e^(1.5 κ) times what it is at κ = 0.",
    ]


def _line(curves: Sequence[Curve], curve: Curve, cells: Sequence[Cell]) -> Line:
    """A row of a curve, in the block of its setting."""
    settings = list(dict.fromkeys(curve.setting for curve in curves))
    named: list[Cell] = [curve.setting, f"{curve.scale:g}", Label(curve.axis, AGAINST[curve.axis])]
    return Line([*named, *cells], block=settings.index(curve.setting))


def _fit(slope: Slope | None) -> list[Cell]:
    if slope is None:
        return [None] * len(FIT)
    values = (slope.value, slope.low, slope.high)
    return [*(_label(value, f"{value:.3f}".replace("-", "−")) for value in values), slope.first]


def _goal(slope: Slope | None) -> str:
    return "not measured" if slope is None else "yes" if slope.meets_goal else "no"


def _figure(value: float | None) -> Cell:
    return None if value is None else _label(value, f"{value:.3g}")


def _percent(share: float) -> Cell:
    return _label(share, f"{100 * share:.3g} %" if share else "none")


def _label(value: float, shown: str) -> Label:
    """Twelve digits in CSV: what is beyond is rounding."""
    return Label(f"{value:.12g}", shown)
