"""The suite `vectors` from start to end: questions, their tables, pictures and a page."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from outword.base.reports import Report, quiet
from outword_lab.benchmark.found import Found
from outword_lab.benchmark.run.parts import FinishedParts
from outword_lab.benchmark.run.results import Results
from outword_lab.benchmark.run.suite import Suite
from outword_lab.benchmark.show.overview import answer, write_overview
from outword_lab.benchmark.show.tables import write_tables
from outword_lab.benchmark.vectors import about_methods
from outword_lab.benchmark.vectors.measuring import Bench
from outword_lab.encoders.vectors import PREFIX, open_folder

QUESTIONS: tuple[Callable[[Bench], Found], ...] = (
    about_methods.by_size,
    about_methods.leads,
    about_methods.by_ood,
    about_methods.broad,
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
        found = [answer(ask(bench)) for ask in QUESTIONS]
        write_tables([table for one in found for table in one.tables], folder)
        write_overview(suite, folder / "report.html", [], answers=found, command=command)
    return FinishedParts([], found, [])
