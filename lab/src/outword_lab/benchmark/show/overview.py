"""One page on the parts of a suite: of each what it asks, its main table, its plots and the way to its own report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outword.base.files import whole_file
from outword.base.html import render
from outword_lab.benchmark.found import Found
from outword_lab.benchmark.run.bench import Finished
from outword_lab.benchmark.run.results import Outcome
from outword_lab.benchmark.run.suite import Suite
from outword_lab.benchmark.show.markup import to_html
from outword_lab.benchmark.show.picture import PANELS
from outword_lab.benchmark.show.summary import condition_text
from outword_lab.benchmark.show.table import Column, Line, Table
from outword_lab.benchmark.show.verdict import verdict

DETAILS = ("leads", "all", "points")  # tables that a part's own report has
CURVES = ("roc", "histogram")  # and plots


@dataclass(frozen=True)
class Answer:
    """A question that parts answer together: what the figures say, in words, a paragraph each, and tables of them."""

    question: str
    texts: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Path] = ()  # SVG


def answer(found: Found, pictures: Sequence[Path] = ()) -> Answer:
    """What a question came to, as a table and what it says."""
    columns = [Column(name, name) for name in found.header]
    table = Table(f"answer-{found.name}", found.question, columns, [Line(row) for row in found.rows], ())
    return Answer(found.question, found.says, [table], pictures)


def write_overview(
    suite: Suite,
    path: Path,
    parts: Sequence[Finished],
    *,
    answers: Sequence[Answer] = (),
    left_out: Sequence[str] = (),
    command: str = "",
) -> None:
    """Write the page on a suite of parts to `path`, whole or not at all; the parts lie in folders beside it.

    `answers` are shown first. `left_out` says which parts were not run, and why; `command` repeats the run.
    """
    page = render(
        "benchmark/show/overview.html",
        "outword_lab",
        title=suite.title,
        about=suite.about,
        command=command,
        answers=[_answer(one) for one in answers],
        parts=[_part(part) for part in parts],
        left_out=left_out,
    )
    with whole_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _answer(one: Answer) -> tuple[str, Sequence[str], list[dict[str, str]], list[bytes]]:
    """Question, texts, tables and pictures, as overview.html has them."""
    tables = [_shown(table) for table in one.tables]
    return one.question, one.texts, tables, [path.read_bytes() for path in one.pictures]


def _shown(table: Table) -> dict[str, str]:
    return {"title": table.title, "html": to_html(table)}


def _part(part: Finished) -> dict[str, Any]:
    """What the page says of a part, by the names that overview.html has for it."""
    suite = part.outcome.suite
    panels = [one for one in part.figures if one.parent.name == PANELS and not one.stem.startswith(CURVES)]
    return {
        "name": suite.name,
        "title": suite.title,
        "about": suite.about,
        "verdicts": list(_verdicts(part.outcome)),
        "tables": [_shown(table) for table in part.tables if table.name not in DETAILS],
        "panels": [one.read_bytes() for one in panels],
    }


def _verdicts(outcome: Outcome) -> Iterator[tuple[str, str]]:
    """Who wins in each condition; a sweep has no winner."""
    for condition in outcome.conditions() if outcome.suite.kind == "methods" else ():
        yield condition_text(outcome, condition), verdict(outcome, condition)
