"""One self-contained HTML report of a run: who wins, by how much, how sure, where it fails, under which conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from outword.base.files import whole_file
from outword.base.html import render
from outword.benchmark.run.results import Condition, Outcome
from outword.benchmark.show.facts import facts_of
from outword.benchmark.show.markup import to_html
from outword.benchmark.show.picture import PANELS
from outword.benchmark.show.plots import picture_name
from outword.benchmark.show.summary import condition_text, entries, measured_sets, paper_entries, ranking
from outword.benchmark.show.table import Table
from outword.benchmark.show.tables import make_tables
from outword.benchmark.show.verdict import verdict, weakness
from outword.benchmark.theory.plot import CAPTION, NAME
from outword.errors import ImageError
from outword.scoring.page import thumbnails

SHOWN = 12  # images of a kind
LONG = ("all", "points")  # tables that are folded
Read = Callable[[Sequence[str]], Mapping[str, bytes | ImageError]]


def write_report(
    outcome: Outcome,
    path: Path,
    figures: Sequence[Path],
    *,
    read: Read | None = None,
    command: str = "",
    tables: Sequence[Table] | None = None,
    headline: str = "",
) -> None:
    """Write the report of a run to `path`; the file appears whole or not at all.

    Args:
        outcome: the run.
        path: of the HTML file.
        figures: what `write_plots` or `theorem_figures` gave.
        read: gives the bytes of images, or what is wrong with them, by their paths below the data root; without it
            there are no thumbnails.
        command: the command line that repeats the run.
        tables: those of the run by default.
        headline: the answer in a few sentences, where it is not a matter of which method wins.
    """
    kind = outcome.suite.kind if outcome.rows or outcome.suite.kind != "methods" else "sweep"
    shown = _tables(kind, make_tables(outcome) if tables is None else tables)
    page = render(
        "benchmark/show/report.html",
        title=outcome.suite.title,
        about=outcome.suite.about,
        kind=kind,
        headline=headline,
        command=command,
        sections=_sections(kind, headline, shown),
        tables=shown,
        theorem={"name": NAME, "caption": CAPTION},
        panels=partial(_panels, figures),
        titles=outcome.title,
        **_conditions(outcome, kind, read),
        **facts_of(outcome),
    )
    with whole_file(Path(path)) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _sections(kind: str, headline: str, tables: Mapping[str, Any]) -> dict[str, str]:
    """The headings of the sections by name, in order."""
    answer = {"answer": "In short"} if headline else {}
    if kind == "methods":
        failures = {"failures": "Where it fails", "curves": "Curves and scores"}
        parts = {"winner": "Which method wins?", "figures": "All methods", **failures}
    else:
        parts = {"curves": "Figures", "figures": "Tables"}
    long = {"all": "All figures"} if tables["all"] else {}
    return {**answer, **parts, **long, "conditions": "Conditions"}


def _tables(kind: str, tables: Sequence[Table]) -> dict[str, list[dict[str, str]]]:
    """Title and HTML of each table, by where it stands; those of `LONG` are folded."""
    if kind == "methods":
        found = {"leads": [one for one in tables if one.name == "leads"], "figures": tables[:1], "all": tables[-1:]}
    else:
        long = [one for one in tables if one.name in LONG]
        found = {"leads": [], "figures": [one for one in tables if one not in long], "all": long}
    return {where: [{"title": one.title, "html": to_html(one)} for one in some] for where, some in found.items()}


def _conditions(outcome: Outcome, kind: str, read: Read | None) -> dict[str, Any]:
    """What there is to say of each condition, and the thumbnails of the images that are shown."""
    found: list[dict[str, Any]] = []
    for condition in outcome.conditions():
        shown: dict[str, Any] = {"name": condition_text(outcome, condition)}
        if kind == "methods":
            shown |= {"verdict": verdict(outcome, condition), "failures": _failures(outcome, condition)}
        else:
            shown["entries"] = entries(outcome, condition)
        found.append(shown)
    methods = [method for shown in found for method in shown.get("failures", [])]
    paths = [image.path for method in methods for image in method["accepted"] + method["rejected"]]
    return {"conditions": found, "thumbnails": _thumbnails(paths, read)}


def _failures(outcome: Outcome, condition: Condition) -> list[dict[str, Any]]:
    """The worst images of the winner and of the paper's method."""
    methods = [*(name for name, _ in ranking(outcome, condition)[:1]), *paper_entries(outcome, condition)[:1]]
    return [_failures_of(outcome, condition, name) for name in dict.fromkeys(methods)]


def _failures_of(outcome: Outcome, condition: Condition, method: str) -> dict[str, Any]:
    rows = outcome.select(condition, entry=method, seed=0)
    kept = outcome.worst(rows[0]) if rows else []
    worst = [one for one in kept if one.inside or one.set in measured_sets(outcome)]  # a set may be gone since
    return {
        "name": method,
        "weakness": weakness(outcome, condition, method),
        "accepted": sorted((one for one in worst if not one.inside), key=lambda one: -one.score)[:SHOWN],
        "rejected": sorted((one for one in worst if one.inside), key=lambda one: one.score)[:SHOWN],
    }


def _thumbnails(paths: Iterable[str], read: Read | None) -> dict[str, bytes]:
    """By path, b"" where one cannot be read any more."""
    found = dict.fromkeys(paths, b"")
    return {**found, **thumbnails(read(list(found)).items())} if read else found


def _panels(figures: Sequence[Path], name: str, *numbers: int) -> list[bytes]:
    """The panels of a figure as SVG, which a phone shows one below the other."""
    own = [p for p in figures if p.parent.name == PANELS and p.stem.rpartition(".")[0] == picture_name(name, *numbers)]
    return [path.read_bytes() for path in own]
