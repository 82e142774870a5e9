"""A table as Markdown, CSV, LaTeX and HTML."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from markupsafe import Markup

from outword.base.cells import csv_text
from outword.base.html import render
from outword_lab.benchmark.show.summary import Value
from outword_lab.benchmark.show.table import Cell, Column, Interval, Label, Line, Table

NOTHING = "–"
LONG = 40  # rows that a page of LaTeX holds
_NUMBER = re.compile(r"-?[0-9.]+(e[-+][0-9]+)?")  # in a cell of CSV: no formula
_ENDS = {"figure": ("", "_sd"), "interval": ("_low", "_high")}  # of the names of columns in CSV
_TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "–": "--",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def shown(cell: Cell) -> str:
    """A cell as people read it: figures in percent.

    >>> shown(Value(0.9452, 0.0003)), shown(Value(0.5)), shown(Interval(0.1, 0.25)), shown(12000), shown(None)
    ('94.52 ± 0.03', '50.00', '10.00 to 25.00', '12,000', '–')
    """
    if cell is None:
        return NOTHING
    if isinstance(cell, Label):
        return cell.shown
    if isinstance(cell, Value):
        return f"{100 * cell.mean:.2f}" + ("" if cell.sd is None else f" ± {100 * cell.sd:.2f}")
    if isinstance(cell, Interval):
        return f"{100 * cell.low:.2f} to {100 * cell.high:.2f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def _seen(table: Table) -> Table:
    """What is shown: of what is missing the notes tell, and a source is named where there are several."""
    rows = [line for line in table.rows if line.source != "missing"]
    several = any(line.source == "published" for line in rows)
    kept = [place for place, column in enumerate(table.columns) if several or column.key != "source"]
    rows = [replace(line, cells=[line.cells[place] for place in kept]) for line in rows]
    return replace(table, columns=[table.columns[place] for place in kept], rows=rows)


def _best(cell: Cell) -> bool:
    return isinstance(cell, Value) and cell.best


def _groups(columns: Sequence[Column]) -> Iterator[tuple[str, int]]:
    """The groups that columns stand in, "" for none, and how many columns wide each is."""
    for name, group in groupby(columns, key=lambda column: column.group):
        yield name, len(list(group))


def to_markdown(table: Table) -> str:
    """GitHub's Markdown; the best averages in bold."""
    table = _seen(table)
    head = [_md(f"{column.group} {column.name}".strip()) for column in table.columns]
    rule = ["---" if column.kind == "text" else "---:" for column in table.columns]
    body = [[f"**{_md(shown(c))}**" if _best(c) else _md(shown(c)) for c in line.cells] for line in table.rows]
    rows = "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *body))
    notes = "".join(f"- {_md(note)}\n" for note in table.notes)
    return f"### {_md(table.title)}\n\n{rows}\n\n{notes}"


def _md(text: str) -> str:
    """Escape what Markdown would take for markup.

    >>> print(_md("a|b*c"))
    a\\|b\\*c
    """
    return re.sub(r"([\\|*`<\[\]])", r"\\\1", " ".join(text.split()))


def to_csv(table: Table) -> str:
    """Fractions, not percent; a mean and its deviation, and the ends of an interval, in columns of their own."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    ends = [_ENDS.get(column.kind, ("",)) for column in table.columns]
    writer.writerow([csv_text(c.key + end) for c, own in zip(table.columns, ends, strict=True) for end in own])
    for line in table.rows:
        writer.writerow([v for cell, own in zip(line.cells, ends, strict=True) for v in _raw(cell, len(own))])
    return text.getvalue()


def _raw(cell: Cell, width: int) -> Sequence[object]:
    """A cell in columns of CSV, figures with twelve digits: what is beyond is rounding of the mean."""
    if isinstance(cell, Value):
        return (f"{cell.mean:.12g}", "" if cell.sd is None else f"{cell.sd:.12g}")
    if isinstance(cell, Interval):
        return (f"{cell.low:.12g}", f"{cell.high:.12g}")
    plain = cell.name if isinstance(cell, Label) else cell
    if isinstance(plain, str) and not _NUMBER.fullmatch(plain):
        plain = csv_text(plain)
    return ("" if plain is None else plain,) + ("",) * (width - 1)


def to_latex(table: Table) -> str:
    """For booktabs; published rows in italics, the best averages in bold, a rule between conditions."""
    table = _seen(table)
    align = "".join("l" if column.kind == "text" else "r" for column in table.columns)
    body = [
        "\n".join(_tex_row(line) for line in group) for _, group in groupby(table.rows, key=lambda line: line.block)
    ]
    inner = [r"\toprule", *_tex_head(table.columns), r"\midrule", "\n\\midrule\n".join(body), r"\bottomrule"]
    caption = rf"\caption{{{_tex(table.title)}}}\label{{tab:{re.sub('[^A-Za-z0-9-]', '-', table.name)}}}"
    notes = "\n".join(rf"\par\footnotesize {_tex(note)}" for note in table.notes)
    if len(table.rows) > LONG:
        parts = [rf"\begin{{longtable}}{{{align}}}", caption + r" \\", *inner, r"\end{longtable}", f"{{{notes}}}"]
        return "\n".join(["% needs the packages booktabs and longtable", *parts, ""])
    parts = [r"\begin{table*}[tb]", r"\centering", caption, r"\resizebox{\textwidth}{!}{%"]
    parts += [rf"\begin{{tabular}}{{{align}}}", *inner, r"\end{tabular}}", notes, r"\end{table*}"]
    return "\n".join(["% needs the packages booktabs and graphicx", *parts, ""])


def _tex_head(columns: Sequence[Column]) -> Iterator[str]:
    if any(column.group for column in columns):
        cells, rules, place = [], [], 1
        for name, width in _groups(columns):
            cells += [rf"\multicolumn{{{width}}}{{c}}{{{_tex(name)}}}"] if name else [""] * width
            rules += [rf"\cmidrule(lr){{{place}-{place + width - 1}}}"] if name else []
            place += width
        yield " & ".join(cells) + r" \\"
        yield "".join(rules)
    yield " & ".join(_tex(column.name) for column in columns) + r" \\"


def _tex_row(line: Line) -> str:
    cells = [rf"\textbf{{{_tex(shown(c))}}}" if _best(c) else _tex(shown(c)) for c in line.cells]
    if line.source == "published":
        cells = [rf"\textit{{{cell}}}" for cell in cells]
    return " & ".join(cells) + r" \\"


def _tex(text: str) -> str:
    r"""Escape what LaTeX would take for a command.

    >>> print(_tex("50 % of a_b"))
    50 \% of a\_b
    """
    return "".join(_TEX.get(character, character) for character in " ".join(text.split()))


def to_html(table: Table) -> Markup:
    """A table that scrolls sideways, its first column in place; a condition is a heading of its block."""
    table = _seen(table)
    columns = table.columns[table.axes :]
    blocks = []
    for _, group in groupby(table.rows, key=lambda line: line.block):
        lines = list(group)
        named = zip(table.columns, lines[0].cells[: table.axes], strict=False)
        cells = [(line.source, _html_cells(columns, line.cells[table.axes :])) for line in lines]
        blocks.append(("; ".join(f"{column.name}: {shown(cell)}" for column, cell in named), cells))
    return render(
        "benchmark/show/table.html",
        "outword_lab",
        columns=columns,
        groups=list(_groups(columns)),
        blocks=blocks,
        notes=table.notes,
    )


def _html_cells(columns: Sequence[Column], cells: Sequence[Cell]) -> list[tuple[str, str, bool]]:
    return [(column.kind, shown(cell), _best(cell)) for column, cell in zip(columns, cells, strict=True)]


WRITERS: dict[str, Callable[[Table], str]] = {"md": to_markdown, "csv": to_csv, "tex": to_latex}
