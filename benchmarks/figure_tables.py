"""Tables between markers in the docs, and how they differ from what a command prints.

A table that a command printed stands between `<!-- figure: NAME -->` and `<!-- /figure -->`; `<!-- figure: NAME 2 -->`
is the second table of the output alone. What else stands between the markers is for people.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import unified_diff
from itertools import chain

BLOCK = re.compile(
    r"<!-- figure: (?P<name>[\w-]+)(?: (?P<part>\d+))? -->\n(?P<body>.*?)<!-- /figure -->", flags=re.DOTALL
)
TABLE = re.compile(r"(?:^\|.*\|[ ]*\n)+", flags=re.MULTILINE)
CELLS = re.compile(r"(?<!\\)\|")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?|\.\d+")
NEAR = 1.1  # a speed that moves by less is called unchanged
Table = list[list[str]]  # the head first, without the line of dashes


@dataclass(frozen=True)
class Block:
    """What stands between a pair of markers; part 0 is the whole output, part 2 its second table."""

    name: str
    part: int
    body: str


def blocks(page: str) -> list[Block]:
    """The marked blocks of a page, in its order."""
    return [Block(m["name"], int(m["part"] or 0), m["body"]) for m in BLOCK.finditer(page)]


def tables(text: str) -> list[Table]:
    """The Markdown tables in a text.

    >>> tables("x\\n| a | b |\\n| --- | ---: |\\n| 1 | 2 |\\n")
    [[['a', 'b'], ['1', '2']]]
    """
    return [_rows(found[0]) for found in TABLE.finditer(text + "\n")]


def _rows(text: str) -> Table:
    lines = [[cell.strip() for cell in CELLS.split(line.strip())[1:-1]] for line in text.splitlines()]
    return [line for line in lines if not all(re.fullmatch(":?-+:?", cell) for cell in line)]


def differences(old: list[Table], new: list[Table], ignored: tuple[str, ...] = ()) -> list[str]:
    """The rows that differ, as a diff without context; columns whose head is in `ignored` may differ.

    >>> differences([[["K", "AUROC", "s"], ["5", "98.1", "3"]]], [[["K", "AUROC", "s"], ["5", "98.2", "4"]]], ("s",))
    ['-| 5 | 98.1 |', '+| 5 | 98.2 |']
    """
    return text_differences(*(chain.from_iterable(_lines(table, ignored) for table in part) for part in (old, new)))


def _lines(table: Table, ignored: tuple[str, ...]) -> list[str]:
    kept = [place for place, name in enumerate(table[0]) if name not in ignored]
    return ["| " + " | ".join(row[place] for place in kept if place < len(row)) + " |" for row in table]


def text_differences(old, new) -> list[str]:
    """The lines that differ, as a diff without context; `old` and `new` are lines."""
    return [
        line for line in unified_diff(list(old), list(new), n=0, lineterm="") if not re.match(r"---|\+\+\+|@@", line)
    ]


def ratios(old: str, new: str) -> list[float] | None:
    """New over old of each number of two texts; None where they do not have the same numbers of numbers.

    >>> ratios("| 1,000 images | 2 s |", "| 1,000 images | 3 s |")
    [1.0, 1.5]
    """
    before, after = ([float(found.replace(",", "")) for found in NUMBER.findall(text)] for text in (old, new))
    if len(before) != len(after):
        return None
    return [b / a for a, b in zip(before, after, strict=True) if a and b]


def told_ratios(old: str, new: str) -> str:
    """How figures of speed moved, in words."""
    found = ratios(old, new)
    if found is None:
        return "changed: other rows or columns"
    if not found:
        return "unchanged"
    low, high = min(found), max(found)
    return f"{'unchanged' if low >= 1 / NEAR and high <= NEAR else 'changed'}: {low:.2f} to {high:.2f} times"


def printed(block: Block, output: str) -> list[Table]:
    """The tables of an output that a block shows."""
    found = tables(output)
    return found[block.part - 1 : block.part] if block.part else found


def off_the_page(output: str, page: str) -> list[str]:
    """Lines of an output that are no tables (headings, sentences) and that a page does not have."""
    said = {line.strip() for line in page.splitlines()}
    rest = TABLE.sub("", output + "\n")
    return [f"+{line.strip()}" for line in rest.splitlines() if line.strip() and line.strip() not in said]


def written(page: str, name: str, output: str) -> str:
    """The page with the tables of one figure in place of those that its blocks hold."""

    def renewed(block: re.Match[str]) -> str:
        part = int(block["part"] or 0)
        found = [table[0] for table in TABLE.finditer(output + "\n")]
        new = iter(found[part - 1 : part] if part else found)
        body = TABLE.sub(lambda old: next(new, old[0]), block["body"])
        return block[0].replace(block["body"], body)

    return BLOCK.sub(lambda block: renewed(block) if block["name"] == name else block[0], page)
