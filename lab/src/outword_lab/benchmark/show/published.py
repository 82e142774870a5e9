"""The figures that the paper prints in Tables 1 to 5, to show beside outword's own, never mixed with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from outword.base.checks import unknown
from outword_lab.benchmark.toml import tomllib

SETS = ("inaturalist", "sun", "places", "textures")
Pair = tuple[float, float]


@dataclass(frozen=True)
class Published:
    """A row of a table in the paper: AUROC and FPR95 with ID as the positives, both in percent, as printed."""

    table: str  # "table1" to "table5"
    method: str  # as the paper calls it; its own is "Ours"
    id: str  # the condition goes by outword's names
    encoder: str
    sets: Mapping[str, Pair]  # by OOD set
    average: Pair  # as printed
    note: str  # where the printed arithmetic does not hold; else ""
    used: str  # what a learned row was learned from, and what else tells it from the rows beside it; else ""
    ood_positive: bool  # whether the method's own code takes OOD as the positives in FPR95
    section: str = ""  # heading in Table 1, which tells its two rows called Energy apart
    corpus: str = ""  # where the table compares corpora


def published(table: str) -> list[Published]:
    """The rows of a table, in the order of the paper.

    >>> [(row.method, row.average) for row in published("table3")]
    [('NegLabel', (94.77, 23.8)), ('Ours', (95.01, 21.59))]
    """
    rows = [row for row in _file()[1] if row.table == table]
    if not rows:
        raise unknown(
            "published table",
            table,
            dict.fromkeys(row.table for row in _file()[1]),
            "outword_lab/benchmark/published.toml",
        )
    return rows


def reference(table: str) -> str:
    """Where a table was printed, such as "arXiv 2605.23797, Table 1"."""
    return f"{_file()[0]}, Table {published(table)[0].table.removeprefix('table')}"


@cache
def _file() -> tuple[str, list[Published]]:
    """The reference and the rows of the packaged file, whose keys and figures the tests check."""
    content = tomllib.loads((files("outword_lab") / "benchmark" / "published.toml").read_text(encoding="utf-8"))
    rows = []
    for block in content["block"]:
        figures, notes, used = block.pop("rows"), block.pop("notes", {}), block.pop("used", {})
        for method, row in figures.items():
            *sets, average = zip(row[::2], row[1::2], strict=True)
            facts = {"method": method, "note": notes.get(method, ""), "used": used.get(method, "")}
            facts["ood_positive"] = method in content["ood_positive"]
            rows.append(Published(**block, **facts, sets=dict(zip(SETS, sets, strict=True)), average=average))
    return content["reference"], rows
