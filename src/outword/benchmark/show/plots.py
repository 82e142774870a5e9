"""The figures of a run as SVG and PNG: intervals, curves and histograms of methods, or sweeps in the paper's layout."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

from outword.benchmark.run.results import Outcome
from outword.benchmark.show.method_plots import dots, histograms, roc_curves
from outword.benchmark.show.picture import PANELS, Picture
from outword.benchmark.show.summary import condition_text, entries, ranking
from outword.benchmark.show.sweep_plots import sweeps


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
        heading = condition_text(outcome, condition)
        if outcome.suite.sweep:
            methods = entries(outcome, condition)
            for place, entry in enumerate(methods):
                own = "; ".join(filter(None, [heading, f"Method: {entry}" if len(methods) > 1 else ""]))
                yield sweeps(outcome, condition, entry, picture_name("sweep", number, place), own)
        elif ranking(outcome, condition):
            yield dots(outcome, condition, picture_name("dots", number), heading)
            yield roc_curves(outcome, condition, picture_name("roc", number), heading)
            yield from histograms(outcome, condition, picture_name("histogram", number), heading)


def picture_name(kind: str, *numbers: int) -> str:
    """The name of a figure of a condition, which goes by its number.

    >>> picture_name("roc", 0)
    'roc-1'
    """
    return "-".join([kind, *(str(number + 1) for number in numbers)])
