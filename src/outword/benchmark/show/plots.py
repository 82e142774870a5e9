"""The figures of a run as SVG and PNG: intervals, curves and histograms of methods, or sweeps in the paper's layout."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from outword.base.extras import require
from outword.base.files import whole_file
from outword.benchmark.run.results import Outcome
from outword.benchmark.show.method_plots import dots, histograms, roc_curves
from outword.benchmark.show.picture import Picture
from outword.benchmark.show.summary import condition_text, entries, ranking, varying
from outword.benchmark.show.sweep_plots import sweeps

PANELS = "panels"
STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "text.parse_math": False,  # a folder may be called a$b
    "svg.hashsalt": "outword",
    "savefig.facecolor": "white",
}


def write_plots(outcome: Outcome, folder: Path) -> list[Path]:
    """Draw the figures of a run to `folder`/plots, as SVG and PNG; each panel is an SVG of its own in panels/ too.

    Equal rows and scores give equal files, with the same matplotlib. There are none where nothing was measured.
    """
    if not outcome.rows:
        return []
    folder = folder / "plots"
    for old in [*folder.glob("*-*.svg"), *folder.glob("*-*.png"), *(folder / PANELS).glob("*-*.svg")]:
        old.unlink()  # an earlier run may have had more of them
    matplotlib = require("matplotlib")
    paths: list[Path] = []
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # shown as a box, which will do
        for picture in _pictures(outcome):
            paths += save(picture, folder)
    return paths


def _pictures(outcome: Outcome) -> Iterator[Picture]:
    for number, condition in enumerate(outcome.conditions()):
        description = condition_text(outcome, condition, varying(outcome))
        if outcome.suite.sweep:
            several = len(entries(outcome, condition)) > 1
            for place, entry in enumerate(entries(outcome, condition)):
                heading = "; ".join(part for part in (description, f"Method: {entry}" if several else "") if part)
                yield sweeps(outcome, condition, entry, picture_name("sweep", number, place), heading)
        elif ranking(outcome, condition):
            yield dots(outcome, condition, picture_name("dots", number), description)
            yield roc_curves(outcome, condition, picture_name("roc", number), description)
            yield from histograms(outcome, condition, picture_name("histogram", number), description)


def picture_name(kind: str, *numbers: int) -> str:
    """The name of a figure of a condition, which goes by its number.

    >>> picture_name("roc", 0)
    'roc-1'
    """
    return "-".join([kind, *(str(number + 1) for number in numbers)])


def save(picture: Picture, folder: Path) -> list[Path]:
    """Write a figure whole as SVG and PNG to `folder`, and its panels one by one to `folder`/panels."""
    (folder / PANELS).mkdir(parents=True, exist_ok=True)
    figure = picture.draw()
    paths = [_write(figure, folder / f"{picture.name}.{suffix}") for suffix in ("svg", "png")]
    for number in range(len(picture.panels)):
        paths.append(_write(picture.draw(number), folder / PANELS / f"{picture.name}.{number + 1}.svg"))
    return paths


def _write(figure: Any, path: Path) -> Path:
    kind = path.suffix.removeprefix(".")
    with whole_file(path) as temporary:
        figure.savefig(temporary, format=kind, dpi=160, metadata={"Date": None} if kind == "svg" else None)
    return path
