"""What the sections share: times taken in turns, and a table that prints as Markdown and goes into JSON."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Run = Callable[[], object]
Cell = str | int | float | None


@dataclass(frozen=True)
class Table:
    """A measured table.

    Attributes:
        title: what was measured, with the sizes.
        rows: a mapping from column to value each; all have the columns of the first. Times are in milliseconds.
        goals: what was aimed at, each with what was reached and whether that is it.
        note: how to read it, one or two sentences.
    """

    title: str
    rows: list[Mapping[str, Cell]]
    goals: list[Goal] = field(default_factory=list)
    note: str = ""


@dataclass(frozen=True)
class Goal:
    """What was aimed at ("at most 1.15 times the bare product"), what was reached, and whether it is met."""

    aim: str
    reached: str
    met: bool


def times(runs: Mapping[str, Run], rounds: int = 5) -> dict[str, float]:
    """Median milliseconds of each run. They take turns: a busy machine is as busy for all. One turn warms up."""
    spent: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds + 1):
        for name, run in runs.items():
            began = time.perf_counter()
            run()
            if turn:
                spent[name].append(1e3 * (time.perf_counter() - began))
    return {name: statistics.median(found) for name, found in spent.items()}


def markdown(table: Table) -> str:
    """The table, its note and its goals."""
    head = list(table.rows[0])
    lines = [head, ["---"] * len(head), *([_text(row[column]) for column in head] for row in table.rows)]
    parts = [f"### {table.title}", "\n".join("| " + " | ".join(line) + " |" for line in lines)]
    parts += [table.note] if table.note else []
    parts += ["\n".join(f"- {'met' if g.met else '**missed**'}: {g.aim}; {g.reached}" for g in table.goals)]
    return "\n\n".join(part for part in parts if part)


def _text(value: Cell) -> str:
    if not isinstance(value, float):
        return "" if value is None else str(value)
    if 0 < abs(value) < 1e-3:
        return f"{value:.1e}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
