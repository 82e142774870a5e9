"""A benchmark from start to end: run the suite, then write tables, plots and the report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from outword.base.extras import lacking
from outword.base.files import whole_file
from outword.base.reports import Report, quiet
from outword.encoders import Encoder, get_encoder
from outword.errors import ImageError
from outword.photos.sources import read_items
from outword_lab.benchmark.run.results import Outcome, Results, commit, versions
from outword_lab.benchmark.run.runner import Runner
from outword_lab.benchmark.run.suite import Suite, Theorem
from outword_lab.benchmark.show.plots import write_plots
from outword_lab.benchmark.show.report import write_report
from outword_lab.benchmark.show.table import Table
from outword_lab.benchmark.show.tables import lead_tables, make_tables, shot_tables, write_tables
from outword_lab.benchmark.theory.plot import theorem_figures
from outword_lab.benchmark.theory.tables import cases_table, theorem_headline, theorem_tables
from outword_lab.benchmark.theory.theory import curve_lines, hard_cases, run_theorem
from outword_lab.rendered import is_rendered


@dataclass(frozen=True)
class Finished:
    """A suite that was run: its rows, and the tables and figures that were made of them."""

    outcome: Outcome
    tables: Sequence[Table]
    figures: Sequence[Path]  # none without matplotlib


def bench(
    suite: Suite,
    root: Path | None,
    folder: Path,
    *,
    encoders: Callable[[str], Encoder],
    store: Path | None = None,
    samples: int = 1000,
    only: Collection[str] | None = None,
    command: str = "",
    report: Report = quiet,
) -> Finished:
    """Run a suite on the sets in `root` and leave rows, tables, plots and a report in `folder`.

    There may be no `root` where the suite needs none. Without matplotlib there are no plots.

    A run that was killed goes on where it was: a row is found again by the configuration and the vectors that it
    hangs on, and vectors are kept in `store` (in `folder` by default), which several folders may share. `encoders`
    gives an encoder of the suite by its name, `only` names the rows of the methods to run, `samples` is how many the
    bootstrap draws, and `command` is what the report says to repeat the run.
    """
    results, draw = Results(folder), lacking("matplotlib") is None
    with results.locked(suite.name):
        if suite.theorem is not None:
            outcome = Outcome(suite, folder, [])
            tables, figures, headline = _theorem(suite.theorem, folder, draw, report)
        else:
            kept = (store or folder / "store").absolute()
            top = None if root is None else root.absolute()
            outcome = Runner(suite, top, results, kept, encoders, samples, only, report).run()
            made = make_tables(outcome)
            sampled = [] if suite.sweep else [*shot_tables(outcome), *lead_tables(outcome)]
            tables, headline = [*made[:-1], *sampled, *made[-1:]], ""
            figures = write_plots(outcome, folder) if draw else []
        write_tables(tables, folder)
        path, read = folder / "report.html", partial(_read, root)
        write_report(outcome, path, figures, tables, read=read, command=command, headline=headline)
        return Finished(outcome, tables, figures)


def _theorem(theorem: Theorem, folder: Path, draw: bool, report: Report) -> tuple[list[Table], list[Path], str]:
    """Measure Theorem 2: its curves as JSON lines, its tables, its figures and the answer."""
    curves = run_theorem(theorem, report=report)
    with whole_file(folder / "curves.jsonl") as temporary:
        encoder = {"name": "mini", "fingerprint": get_encoder("mini").fingerprint}
        text = curve_lines(curves, theorem=asdict(theorem), encoder=encoder, versions=versions(), commit=commit())
        temporary.write_text(text, encoding="utf-8")
    slopes, points = theorem_tables(curves)
    figures = theorem_figures(curves, folder) if draw else []
    return [slopes, cases_table(hard_cases()), points], figures, theorem_headline(curves)


def _read(root: Path | None, paths: Sequence[str]) -> dict[str, bytes | ImageError]:
    """The content of photos by their paths below the data root; those of the world have no place in it."""
    top = (root or Path()).absolute()
    names = {path if is_rendered(path) else str(top / path): path for path in paths}
    return {names[name]: data for name, data in read_items(names)}
