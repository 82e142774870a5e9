"""The suite `vectors` from start to end: questions, their tables, pictures and a page."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from outword.base.extras import lacking
from outword.base.reports import Report, quiet
from outword_lab.benchmark.found import Found
from outword_lab.benchmark.run.parts import FinishedParts
from outword_lab.benchmark.run.results import Results
from outword_lab.benchmark.run.suite import Suite
from outword_lab.benchmark.show.overview import answer, write_overview
from outword_lab.benchmark.show.picture import PANELS
from outword_lab.benchmark.show.tables import write_tables
from outword_lab.benchmark.vectors import about_cuts, about_methods, about_words
from outword_lab.benchmark.vectors.measuring import Bench
from outword_lab.benchmark.vectors.pictures import methods_picture, odds_picture
from outword_lab.encoders.vectors import PREFIX, open_folder

QUESTIONS: tuple[Callable[[Bench], Found], ...] = (
    about_methods.by_size,
    about_methods.leads,
    about_methods.by_ood,
    about_methods.broad,
    about_cuts.verdicts,
    about_cuts.halves,
    about_cuts.promised,
    about_cuts.p_values,
    about_words.mining,
    about_words.rivals,
    about_words.tau,
    about_words.sigma,
)


def bench_vectors(
    suite: Suite,
    root: Path,
    folder: Path,
    *,
    only: Collection[str] | None = None,
    command: str = "",
    report: Report = quiet,
) -> FinishedParts:
    """Measure the vectors in `root` and leave figures, tables, plots and a report in `folder`.

    A run that was killed goes on where it was: figures are found again by the vectors and the lists that they are of.
    `only` names methods.
    """
    encoder = open_folder(f"{PREFIX}{root}")
    with Results(folder).locked(suite.name):
        bench = Bench(encoder, folder / "figures", suite.seeds, only, report)
        asked = [ask(bench) for ask in QUESTIONS]
        pictures = _pictures(bench, folder / "plots") if lacking("matplotlib") is None else {}
        found = [answer(one, pictures.get(one.name, ())) for one in asked]
        write_tables([table for one in found for table in one.tables], folder)
        write_overview(suite, folder / "report.html", [], answers=found, command=command)
    return FinishedParts([], found, [])


def _pictures(bench: Bench, folder: Path) -> dict[str, list[Path]]:
    """Draw the figures of some questions, and give the panels of each, by its name."""
    drawn = {
        "methods": methods_picture(about_methods.measured_methods(bench), folder),
        "odds": odds_picture(about_cuts.promised_figures(bench), folder),
    }
    return {name: [path for path in paths if path.parent.name == PANELS] for name, paths in drawn.items()}
