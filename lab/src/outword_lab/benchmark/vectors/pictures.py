"""The figures of the suite `vectors`: AUROC by number of names, and odds of labels, promised against found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from outword_lab.benchmark.show.picture import (
    BLUE,
    COLOURS,
    DASHES,
    GREY,
    VERMILLION,
    Picture,
    legend_line,
)
from outword_lab.benchmark.vectors.lists import OTHERS
from outword_lab.benchmark.vectors.measuring import Figure, means, names_of, pick

LINES = 8  # methods that are drawn: the default, then the best of the others


def methods_picture(figures: Sequence[Figure], folder: Path) -> list[Path]:
    """AUROC by number of names: a panel for the other sets, one for the other classes; the files, SVG and PNG."""
    sets = list(dict.fromkeys(name for one in figures for name in one.values))
    far = [name for name in sets if name != OTHERS]
    panels = [partial(_by_size, figures, far, "other sets")] if far else []
    if OTHERS in sets:
        panels.append(partial(_by_size, figures, [OTHERS], OTHERS))
    return Picture("methods", "", panels, 2, (4.4, 3.6)).save(folder)


def _by_size(figures: Sequence[Figure], sets: Sequence[str], title: str, axes: Any) -> list[Any]:
    """A line a method on the mean over some sets."""
    here = [one for one in figures if any(name in one.values for name in sets)]
    groups = names_of(here, "group")
    sizes = [int(group.split()[0]) for group in groups]
    lines = {way: [_mean(pick(here, group=one, way=way), sets) for one in groups] for way in names_of(here, "way")}
    default, *others = lines
    others.sort(key=lambda way: -float(np.mean(lines[way])))
    handles = []
    styles = zip([VERMILLION, *COLOURS * 2], cycle(DASHES), strict=False)
    for way, (colour, dashes) in zip([default, *others[: LINES - 1]], styles, strict=False):
        style = {"color": colour, "linestyle": dashes, "linewidth": 2 if way == default else 1.3}
        axes.plot(sizes, lines[way], marker="o", markersize=3, **style)
        handles.append(legend_line(way, **style))
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.set(title=title, xlabel="number of names", ylabel="AUROC, % (higher is better)")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.legend(handles=handles)
    return []


def _mean(figures: Iterable[Figure], sets: Sequence[str]) -> float:
    return 100 * float(np.mean(means(figures, *sets)))


def odds_picture(figures: Sequence[Figure], folder: Path) -> list[Path]:
    """Odds of labels, promised against found: a dot a tenth, as large as there are photos; the files, SVG and PNG."""
    return Picture("odds", "", [partial(_odds, figures)], 1, (4.4, 4.0)).save(folder)


def _odds(figures: Sequence[Figure], axes: Any) -> list[Any]:
    axes.plot([0, 100], [0, 100], color=GREY, linewidth=1)
    for tenth in names_of(figures, "way"):
        own = list(pick(figures, way=tenth))
        total = {name: sum(one.values[name] for one in own) for name in own[0].values}
        point = [100 * total[name] / total["photos"] for name in ("promised", "found")]
        axes.scatter(*point, s=8 + 3 * np.sqrt(total["photos"]), color=BLUE, alpha=0.8, linewidths=0)
    axes.set(xlim=(0, 100), ylim=(0, 100), xlabel="promised, %", ylabel="found, %")
    axes.set_aspect("equal")
    return []
