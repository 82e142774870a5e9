"""Sentences of the docs that quote a figure, and whether the table that they quote still says so.

Behind such a sentence stands a comment, which readers of the site do not see; `;` separates several claims.

    `a` is 0.3 points ahead of `b`, and first.
    <!-- holds: methods 2 | AUROC | a - b = 0.3; methods 2 | AUROC | a - * > 0 -->

That is a figure with the number of its table, a column, and what holds of its rows. A row is named by its first cell,
or by its first cells with " / " between them; `*` stands for each of the others. `=` compares at the digits that are
quoted, which must stand in the same paragraph. Of a cell with several numbers, the column as `COLUMN #2` has the
second; `ROW @ COLUMN` is a cell of another column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from operator import gt, lt

from figure_tables import NUMBER, Table, blocks, tables

CLAIM = re.compile(r"<!-- holds:\s(.*?)\s-->", flags=re.DOTALL)
RULE = re.compile(r"(?P<terms>.+) (?P<sign>[=<>]) (?P<value>[+-]?[\d.]+)", flags=re.DOTALL)
SIGNED = re.compile(rf"[+−-]?(?:{NUMBER.pattern})")
ORDER = {"<": lt, ">": gt}


def numbered_tables(pages: Iterable[str]) -> dict[str, Table]:
    """All tables of figures, by the name of the figure and their number: `methods 2`."""
    found: dict[str, Table] = {}
    for page in pages:
        counts: dict[str, int] = {}
        for block in blocks(page):
            for table in tables(block.body):
                counts[block.name] = counts.get(block.name, 0) + 1
                found[f"{block.name} {block.part or counts[block.name]}"] = table
    return found


def wrong_claims(page: str, known: Mapping[str, Table]) -> list[str]:
    """What a page says and the tables do not.

    >>> known = {"made 1": [["method", "AUROC"], ["a", "98.27 ± 0.1"], ["b", "98.01"]]}
    >>> wrong_claims("0.3 more. <!-- holds: made 1 | AUROC | a - b = 0.3; made 1 | AUROC | a - * > 0 -->", known)
    []
    >>> wrong_claims("0.4 more. <!-- holds: made 1 | AUROC | a - b = 0.4 -->", known)
    ['made 1 | AUROC | a - b = 0.4: it is 0.260']
    """
    found = []
    for claim in CLAIM.finditer(page):
        paragraph = CLAIM.sub("", page[: claim.start()].rpartition("\n\n")[2])
        for one in claim[1].split(";"):
            text = " ".join(one.split())
            if problem := _problem(text, paragraph, known):
                found.append(f"{text}: {problem}")
    return found


def _problem(claim: str, paragraph: str, known: Mapping[str, Table]) -> str:
    """What is wrong with a claim; empty if it holds."""
    name, column, rule = claim.split(" | ")
    parsed = RULE.fullmatch(rule)
    if name not in known or parsed is None:
        return f"there is no table {name}" if name not in known else "no rule such as `a - b > 0`"
    table, terms = known[name], re.split(r" (?=[+-] )", parsed["terms"])
    quoted = parsed["value"]
    try:
        values = _values(table, column, terms)
    except (LookupError, ValueError) as error:
        return f"no such place in the table: {error}"
    if parsed["sign"] != "=":
        bad = [value for value in values if not ORDER[parsed["sign"]](value, float(quoted))]
        return f"it is {bad[0]:.3f}" if bad else ""
    if quoted.lstrip("+-") not in [number.lstrip("+−-") for number in SIGNED.findall(paragraph)]:
        return f"{quoted} is not in the paragraph before it"
    digits = len(quoted.partition(".")[2])
    bad = [value for value in values if abs(value - float(quoted)) > 0.5 * 10**-digits + 1e-9]
    return f"it is {bad[0]:.{digits + 2}f}" if bad else ""


def _values(table: Table, column: str, terms: list[str]) -> list[float]:
    """What the terms add up to; a value for each row that `*` stands for."""
    signed = [(-1 if term.startswith("- ") else 1, term.removeprefix("- ").removeprefix("+ ")) for term in terms]
    named = [row for _, row in signed if row != "*"]
    own = sum(sign * _cell(table, row, column) for sign, row in signed if row != "*")
    stars = [sign for sign, row in signed if row == "*"]
    if not stars:
        return [own]
    others = [row[0] for row in table[1:] if row[0] not in named]
    return [own + stars[0] * _cell(table, row, column) for row in others]


def _cell(table: Table, row: str, column: str) -> float:
    row, _, own = row.partition(" @ ")
    head, _, which = (own or column).partition(" #")
    place = table[0].index(head)
    found = next((line for line in table[1:] if row in _names(line)), None)
    if found is None:
        raise LookupError(row)
    number = SIGNED.findall(found[place])[int(which or 1) - 1]
    return float(number.replace("−", "-").replace(",", ""))


def _names(line: list[str]) -> list[str]:
    return [" / ".join(line[:count]) for count in range(1, len(line) + 1)]
