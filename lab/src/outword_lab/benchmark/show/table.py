"""A table before it is written: columns, rows of cells, notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from outword_lab.benchmark.show.summary import Value

Kind = Literal["text", "count", "figure", "interval"]
Source = Literal["measured", "published", "missing"]


class Label(NamedTuple):
    """A name, and what people read instead."""

    name: str
    shown: str


class Interval(NamedTuple):
    """A confidence interval, as fractions."""

    low: float
    high: float


Cell = str | int | Label | Value | Interval | None


@dataclass(frozen=True)
class Column:
    """A column: its name, its name in CSV, what is in it, and the group that it stands in."""

    name: str
    key: str
    kind: Kind = "text"
    group: str = ""


@dataclass(frozen=True)
class Line:
    """A row of a table; those of one block share a condition. What is "missing" is in CSV only: notes tell of it."""

    cells: Sequence[Cell]
    source: Source = "measured"
    block: int = 0


@dataclass(frozen=True)
class Table:
    """A table; the first `axes` columns are the condition, which is the same within a block."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Line]
    notes: Sequence[str]
    axes: int = 0
