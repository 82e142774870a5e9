"""The figures that the paper prints in Tables 1 to 5, to show beside outword's own, never mixed with them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from outword.benchmark.toml import tomllib
from outword.errors import InputError, unknown

FILE = "published.toml"
SETS = ("inaturalist", "sun", "places", "textures")
SEE = "outword/benchmark/published.toml"
Pair = tuple[float, float]


@dataclass(frozen=True)
class Published:
    """A row of a table in the paper: AUROC and FPR95 with ID as the positives, both in percent, as printed.

    Attributes:
        table: "table1" to "table5".
        method: as the paper calls it; its own is "Ours".
        section: heading in Table 1, which tells its two rows called Energy apart; else "".
        id, encoder, corpus: the condition, by outword's names; corpus is "" where the table does not compare corpora.
        sets: (AUROC, FPR95) by OOD set.
        average: the printed (AUROC, FPR95) over the sets.
        note: where the printed arithmetic does not hold; else "".
        ood_positive: whether the method's own code takes OOD as the positives in FPR95.
    """

    table: str
    method: str
    section: str
    id: str
    encoder: str
    corpus: str
    sets: Mapping[str, Pair]
    average: Pair
    note: str
    ood_positive: bool


def published(table: str) -> list[Published]:
    """The rows of a table, in the order of the paper.

    >>> [(row.method, row.average) for row in published("table3")]
    [('NegLabel', (94.77, 23.8)), ('Ours', (95.01, 21.59))]
    """
    rows = [row for row in _file()[1] if row.table == table]
    if not rows:
        raise unknown("published table", table, dict.fromkeys(row.table for row in _file()[1]), SEE)
    return rows


def reference(table: str) -> str:
    """Where a table was printed.

    >>> reference("table1")
    'arXiv 2605.23797, Table 1'
    """
    return f"{_file()[0]}, Table {published(table)[0].table.removeprefix('table')}"


@cache
def _file() -> tuple[str, tuple[Published, ...]]:
    return parse((files("outword") / "benchmark" / FILE).read_text(encoding="utf-8"))


def parse(text: str) -> tuple[str, tuple[Published, ...]]:
    """The reference and the rows in a TOML text; an unknown or missing key or figure is an error."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{FILE} cannot be read as TOML: {error}", hint="correct it") from None
    _keys(content, FILE, needed=("reference", "block"), others=("ood_positive",))
    other = content.get("ood_positive", ())
    return content["reference"], tuple(row for block in content["block"] for row in _rows(block, other))


def _rows(block: Mapping[str, Any], ood_positive: Collection[str]) -> list[Published]:
    _keys(block, f"a block of {FILE}", needed=("table", "id", "encoder", "rows"), others=("section", "corpus", "notes"))
    condition = {key: block.get(key, "") for key in ("table", "section", "id", "encoder", "corpus")}
    notes = block.get("notes", {})
    _keys(notes, f"the notes of a block of {FILE}", others=block["rows"])
    rows = []
    for method, figures in block["rows"].items():
        pairs = _pairs(figures, f"{method} in {block['table']}")
        sets = dict(zip(SETS, pairs, strict=False))
        facts = {"method": method, "note": notes.get(method, ""), "ood_positive": method in ood_positive}
        rows.append(Published(**condition, **facts, sets=sets, average=pairs[-1]))
    return rows


def _pairs(figures: Any, where: str) -> list[Pair]:
    wanted = 2 * (len(SETS) + 1)
    is_row = isinstance(figures, list) and all(type(one) is float and 0 <= one <= 100 for one in figures)
    if not is_row or len(figures) != wanted:
        raise InputError(f"{where} must be {wanted} numbers between 0.0 and 100.0, got {figures}", hint="see the paper")
    return list(zip(figures[::2], figures[1::2], strict=True))


def _keys(table: Mapping[str, Any], where: str, *, needed: Iterable[str] = (), others: Iterable[str] = ()) -> None:
    known = [*needed, *others]
    for key in table:
        if key not in known:
            raise unknown(f"key in {where}", key, known, SEE)
    for key in needed:
        if key not in table:
            raise InputError(f"{where} must have the key {key}", hint=f"see {SEE}")
