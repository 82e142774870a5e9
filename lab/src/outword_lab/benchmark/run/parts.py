"""A suite of parts: each is run into a folder of its own, all with one store of embeddings, and one page shows them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outword.base.reports import Report, quiet
from outword.encoders import Encoder
from outword.errors import InputError, OutwordError
from outword_lab.benchmark.run.bench import Finished, bench
from outword_lab.benchmark.run.results import Results
from outword_lab.benchmark.run.suite import Suite
from outword_lab.benchmark.show.overview import Answer, write_overview
from outword_lab.benchmark.show.tables import write_tables
from outword_lab.benchmark.world.answers import answers

Ask = Callable[[Callable[[str], Encoder], Path, Path, Report], Sequence[Answer]]
ANSWERS: dict[str, Ask] = {"world": answers}
"""By suite: what is asked beside its parts, for the section "What it answers" (`benchmark.world.answers`)."""


@dataclass(frozen=True)
class FinishedParts:
    """A suite of parts that was run."""

    parts: Sequence[Finished]
    answers: Sequence[Answer]  # what they say together
    left_out: Sequence[str]  # a line for each part that was not run, with the reason


def bench_parts(
    suite: Suite,
    parts: Sequence[Suite],
    root: Path | None,
    folder: Path,
    *,
    store: Path | None = None,
    only: Collection[str] | None = None,
    command: str = "",
    report: Report = quiet,
    **options: Any,
) -> FinishedParts:
    """Run the parts of a suite one after the other into `folder`/PART, and write `folder`/report.html on all of them.

    The arguments are those of `bench`. Embeddings are kept in `folder`/store by default. A part that cannot be run, or
    has none of the methods in `only`, is a line in the report; where that is so of all, it is an error. With `only` no
    questions are asked (`ANSWERS`).
    """
    given: dict[str, Any] = {"store": store or folder / "store", "command": command, **options}
    finished, left_out = list[Finished](), list[str]()
    with Results(folder).locked(suite.name):
        for number, part in enumerate(parts, 1):
            asked = None if only is None else [entry.shown for entry in part.methods if entry.shown in only]
            told = _named(report, f"{number} of {len(parts)}, {part.name}")
            try:
                if asked == []:
                    raise InputError("it has none of the methods that were asked for")
                finished.append(bench(part, root, folder / part.name, only=asked, report=told, **given))
            except OutwordError as error:
                left_out.append(f"{part.name}: skipped: {error.message}.")
        if not finished:
            raise InputError(f"no part of {suite.name} could be run ({' '.join(left_out)})", hint="see the reasons")
        ask = ANSWERS.get(suite.name) if only is None else None
        found = ask(given["encoders"], given["store"].absolute(), folder, report) if ask else ()
        if found:
            write_tables([table for answer in found for table in answer.tables], folder)
        write_overview(suite, folder / "report.html", finished, answers=found, left_out=left_out, command=command)
    return FinishedParts(finished, found, left_out)


def _named(report: Report, name: str) -> Report:
    """The same report, with the part in front of what is told."""
    return lambda what, done, total: report(f"{name}: {what}", done, total)
