"""A benchmark from start to end: run the suite, then write tables, plots and the report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from outword.base.extras import require
from outword.base.files import whole_file
from outword.benchmark.run.results import Outcome, Results, commit, versions
from outword.benchmark.run.runner import Runner
from outword.benchmark.run.suite import Suite, Theorem
from outword.benchmark.show.plots import write_plots
from outword.benchmark.show.report import write_report
from outword.benchmark.show.table import Table
from outword.benchmark.show.tables import lead_tables, make_tables, write_tables
from outword.benchmark.theory.plot import theorem_figures
from outword.benchmark.theory.tables import cases_table, theorem_headline, theorem_tables
from outword.benchmark.theory.theory import curve_lines, hard_cases, run_theorem
from outword.encoders import Encoder, get_encoder
from outword.errors import ImageError
from outword.photos.sources import read_items
from outword.vectors.wild import Report, quiet


def bench(
    suite: Suite,
    root: Path,
    folder: Path,
    *,
    encoders: Callable[[str], Encoder],
    store: Path | None = None,
    samples: int = 1000,
    only: Collection[str] | None = None,
    command: str = "",
    report: Report = quiet,
) -> Sequence[Table]:
    """Run a suite on the sets in `root` and leave rows, tables, plots and a report in `folder`; gives the tables.

    A run that was killed goes on where it was: a row is found again by the configuration and the vectors that it
    hangs on, and vectors are kept in `store` (in `folder` by default), which several folders may share. `encoders`
    gives an encoder of the suite by its name, `only` names the rows of the methods to run, `samples` is how many the
    bootstrap draws, and `command` is what the report says to repeat the run.
    """
    require("matplotlib")  # said now, not after hours
    results = Results(folder)
    with results.locked(suite.name):
        if suite.theorem is not None:
            outcome = Outcome(suite, folder, [])
            tables, figures, headline = _theorem(suite.theorem, folder, report)
        else:
            kept = (store or folder / "store").absolute()
            outcome = Runner(suite, root.absolute(), results, kept, encoders, samples, only, report).run()
            made = make_tables(outcome)
            leads = [] if suite.sweep else lead_tables(outcome)
            tables, figures, headline = [*made[:-1], *leads, *made[-1:]], write_plots(outcome, folder), ""
        write_tables(tables, folder)
        path, read = folder / "report.html", partial(_read, root)
        write_report(outcome, path, figures, tables, read=read, command=command, headline=headline)
        return tables


def _theorem(theorem: Theorem, folder: Path, report: Report) -> tuple[list[Table], list[Path], str]:
    """Measure Theorem 2: its curves as JSON lines, its tables, its figures and the answer."""
    curves = run_theorem(theorem, report=report)
    with whole_file(folder / "curves.jsonl") as temporary:
        encoder = {"name": "mini", "fingerprint": get_encoder("mini").fingerprint}
        text = curve_lines(curves, theorem=asdict(theorem), encoder=encoder, versions=versions(), commit=commit())
        temporary.write_text(text, encoding="utf-8")
    slopes, points = theorem_tables(curves)
    return [slopes, cases_table(hard_cases()), points], theorem_figures(curves, folder), theorem_headline(curves)


def _read(root: Path, paths: Sequence[str]) -> dict[str, bytes | ImageError]:
    """The content of photos by their paths below the data root."""
    names = {str(root.absolute() / path): path for path in paths}
    return {names[name]: data for name, data in read_items(names)}
