"""The tables of a run: the paper's layout, one long table of all figures, one table for each swept parameter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from outword.base.files import whole_file
from outword.benchmark.run.results import Condition, Outcome, Row
from outword.benchmark.show.markup import WRITERS
from outword.benchmark.show.notes import all_notes, lead_notes, main_notes, sweep_notes
from outword.benchmark.show.published import Published, published
from outword.benchmark.show.summary import (
    AXES,
    Lead,
    Value,
    average,
    axis_text,
    entries,
    leads,
    measured_sets,
    on_set,
    over_seeds,
    points,
    ranking,
    tau_text,
    title,
    varying,
)
from outword.benchmark.show.table import Cell, Column, Interval, Label, Line, Table

FIGURES = {"auroc": "AUROC ↑", "fpr95_id": "FPR95 ↓"}
LONG_FIGURES = ("auroc", "aupr_id", "aupr_ood", "fpr95_id", "fpr95_ood")
WORDS_OF_THE_PAPER = ("", "wordnet")  # where the paper compares no corpora
Averages = dict[str, tuple[list[str], int]]
LEAD_COLUMNS = (
    Column("First", "first"),
    Column("before", "before"),
    Column("AUROC, points", "points", "figure"),
    Column("95 % interval, all pairs at once", "interval", "interval"),
    Column("separable", "separable"),
)
ALL_COLUMNS = (
    Column("OOD set", "ood"),
    Column("AUROC ↑", "auroc", "figure"),
    Column("95 % interval", "auroc_ci", "interval"),
    Column("AUPR (ID) ↑", "aupr_id", "figure"),
    Column("AUPR (OOD) ↑", "aupr_ood", "figure"),
    Column("FPR95 (ID positive) ↓", "fpr95_id", "figure"),
    Column("95 % interval", "fpr95_ci", "interval"),
    Column("FPR95 (OOD positive) ↓", "fpr95_ood", "figure"),
    Column("ID images", "n_id", "count"),
    Column("OOD images", "n_ood", "count"),
    Column("Seeds", "seeds", "count"),
)


def write_tables(tables: Iterable[Table], folder: Path) -> list[Path]:
    """Write tables as Markdown, CSV and LaTeX to `folder`/tables; equal tables give equal bytes."""
    folder = folder / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for table in tables:
        for suffix, text in WRITERS.items():
            paths.append(folder / f"{table.name}.{suffix}")
            with whole_file(paths[-1]) as temporary:
                # A set may have the name of a folder, and that need not be UTF-8.
                temporary.write_bytes(text(table).encode("utf-8", "backslashreplace"))
    return paths


def make_tables(outcome: Outcome) -> list[Table]:
    """The tables of a run: "main", or one for each swept parameter; and "all". None where nothing was measured."""
    if not outcome.rows:
        return []
    swept = [_sweep(outcome, sweep.parameter) for sweep in outcome.suite.sweep]
    return [*(swept or [_main(outcome)]), _all(outcome)]


def _main(outcome: Outcome) -> Table:
    """The paper's layout, with its own figures under ours."""
    averages = _averages(outcome)
    lines = [
        line
        for block, condition in enumerate(outcome.conditions())
        for line in _block(outcome, condition, block, averages)
    ]
    columns = [Column("Method", "method"), Column("Source", "source"), *_figure_columns(outcome, averages)]
    return _table(outcome, "main", outcome.suite.title, columns, lines, main_notes(outcome))


def lead_tables(outcome: Outcome) -> list[Table]:
    """The table "leads", from bootstrap samples: how far the first is ahead of each of the others, if there are any."""
    lines = [
        Line([found.ahead, found.behind, *_lead(found)], block=block)
        for block, condition in enumerate(outcome.conditions())
        if len(ranking(outcome, condition)) > 1
        for found in leads(outcome, condition).values()
    ]
    heading = f"{outcome.suite.title}: the first before each of the others"
    return [_table(outcome, "leads", heading, LEAD_COLUMNS, lines, lead_notes(outcome))] if lines else []


def _lead(found: Lead) -> list[Cell]:
    return [Value(found.points), Interval(found.low, found.high), "yes" if found.separable else "no"]


def _block(outcome: Outcome, condition: Condition, block: int, averages: Averages) -> list[Line]:
    """The methods of a condition; each has its published row below it, and those that are not ours come last."""
    measured = [
        [name, "measured", *_figures(outcome, outcome.select(condition, entry=name), averages)]
        for name in entries(outcome, condition)
    ]
    _mark_best(measured, 2 * len(averages))
    names = {entry.shown: entry.published for entry in outcome.suite.methods}
    printed = _printed(outcome, condition)
    lines: list[Line] = []
    for cells in measured:
        wanted = names[str(cells[0])]
        own = [shown for shown, row in printed.items() if wanted and wanted in (shown, row.method)]
        lines.append(Line(cells, block=block))
        lines += [_printed_line(outcome, shown, printed.pop(shown), averages, block) for shown in own]
    lines += [_printed_line(outcome, shown, row, averages, block) for shown, row in printed.items()]
    empty = [None] * 2 * (len(outcome.suite.ood) + len(averages))
    return lines + [Line([n, "missing", *empty], "missing", block) for n in _left_out(outcome, condition)]


def _table(
    outcome: Outcome, name: str, heading: str, columns: Sequence[Column], lines: Sequence[Line], notes: Sequence[str]
) -> Table:
    """A table whose lines get the axes that vary in front; their blocks number the conditions."""
    axes, conditions = varying(outcome), outcome.conditions()
    places = {axis: place for place, axis in enumerate(AXES)}
    named = [
        [Label(condition[places[axis]], axis_text(outcome, axis, condition)) for axis in axes]
        for condition in conditions
    ]
    rows = [Line([*named[line.block], *line.cells], line.source, line.block) for line in lines]
    return Table(name, heading, [*(Column(AXES[axis], axis) for axis in axes), *columns], rows, notes, len(axes))


def _averages(outcome: Outcome) -> Averages:
    """The averages by name: the measured sets that each is taken over, and of how many."""
    named = {"Average": outcome.suite.ood, **{f"Average {name}": sets for name, sets in outcome.suite.groups.items()}}
    present = measured_sets(outcome)
    return {name: ([one for one in sets if one in present], len(sets)) for name, sets in named.items()}


def _figure_columns(outcome: Outcome, averages: Averages) -> list[Column]:
    groups = [(name, title(outcome, name)) for name in outcome.suite.ood]
    for name, (sets, planned) in averages.items():
        group = name if len(sets) == planned else f"{name} of {len(sets)} of {planned} sets"
        groups.append((name.lower().replace(" ", "_"), group))
    return [Column(FIGURES[figure], f"{key}_{figure}", "figure", group) for key, group in groups for figure in FIGURES]


def _figures(outcome: Outcome, rows: Sequence[Row], averages: Averages) -> list[Cell]:
    cells: list[Cell] = [on_set(rows, name, figure) for name in outcome.suite.ood for figure in FIGURES]
    return cells + [average(rows, sets, figure) for sets, _ in averages.values() for figure in FIGURES]


def _mark_best(lines: Sequence[list[Cell]], n_last: int) -> None:
    """Mark the best in each of the last columns, AUROC and FPR95 in turn; those that print alike are all the best."""
    for back in range(1, n_last + 1):
        sign = -1 if back % 2 else 1
        shown = {i: sign * round(100 * v.mean, 2) for i, own in enumerate(lines) if isinstance(v := own[-back], Value)}
        for i, figure in shown.items():
            value = lines[i][-back]
            if isinstance(value, Value) and figure == max(shown.values()):
                lines[i][-back] = value._replace(best=True)


def _printed(outcome: Outcome, condition: Condition) -> dict[str, Published]:
    """The paper's rows for a condition by what they are called; the section tells namesakes apart."""
    id_set, encoder, corpus = condition
    rows = [
        row
        for row in (published(outcome.suite.published) if outcome.suite.published else [])
        if (row.id, row.encoder) == (id_set, encoder)
        and (row.corpus == corpus or (not row.corpus and corpus in WORDS_OF_THE_PAPER))
    ]
    names = [row.method for row in rows]
    return {r.method if names.count(r.method) == 1 else f"{r.method} ({r.section})": r for r in rows}


def _printed_line(outcome: Outcome, shown: str, row: Published, averages: Averages, block: int) -> Line:
    """A row of the paper, as printed; it has no averages of groups."""
    pairs = [row.sets.get(name) for name in outcome.suite.ood] + [row.average] + [None] * (len(averages) - 1)
    figures = [Value(pair[i] / 100) if pair else None for pair in pairs for i in range(2)]
    mark = " (FPR95: OOD positive)" if row.ood_positive else ""
    return Line([shown + mark, "published", *figures], "published", block)


def _left_out(outcome: Outcome, condition: Condition) -> list[str]:
    """The methods without figures in a condition, in the order of the suite."""
    left = {
        skipped.what for skipped in outcome.skipped if skipped.kind == "method" and skipped.where in ((), condition)
    }
    shown = [e.shown for e in outcome.suite.methods if e.shown in left]
    return [name for name in dict.fromkeys(shown) if not outcome.select(condition, entry=name)]


def _sweep(outcome: Outcome, parameter: str) -> Table:
    """A swept parameter: its values down, the figures across."""
    averages, several = _averages(outcome), len(outcome.suite.methods) > 1
    has_tau = bool(tau_text(outcome.rows))
    lines = [
        Line(
            [
                *([name] if several else []),
                value,
                *([tau_text(rows)] if has_tau else []),
                *_figures(outcome, rows, averages),
            ],
            block=block,
        )
        for block, condition in enumerate(outcome.conditions())
        for name in entries(outcome, condition)
        for value, rows in points(outcome, condition, name, parameter).items()
    ]
    columns = [*([Column("Method", "method")] if several else []), Column(parameter, parameter)]
    columns += [Column("tau used", "tau_used", "count")] if has_tau else []
    columns += _figure_columns(outcome, averages)
    heading = f"{outcome.suite.title}: {parameter}"
    return _table(outcome, f"sweep-{parameter}", heading, columns, lines, sweep_notes(outcome, parameter))


def _all(outcome: Outcome) -> Table:
    """Every figure, one method and OOD set a row."""
    swept = bool(outcome.suite.sweep)
    columns = [Column("Method", "method"), *([Column("Point", "point")] if swept else []), *ALL_COLUMNS]
    lines = []
    for block, condition in enumerate(outcome.conditions()):
        found: dict[tuple[str, str, str], list[Row]] = {}
        for row in outcome.select(condition):
            found.setdefault((row.entry, row.point, row.ood), []).append(row)
        for (name, point, ood), rows in found.items():
            cells = [name, *([point] if swept else []), Label(ood, title(outcome, ood)), *_long(rows)]
            lines.append(Line(cells, block=block))
    return _table(outcome, "all", f"{outcome.suite.title}: all figures", columns, lines, all_notes(outcome))


def _long(rows: Sequence[Row]) -> list[Cell]:
    """The figures of one method on one OOD set; ends of intervals and counts as the mean over seeds."""
    ordered = sorted(rows, key=lambda row: row.seed)
    value = {figure: over_seeds([getattr(row, figure) for row in ordered]) for figure in LONG_FIGURES}
    ends = {name: np.mean([getattr(row, name) for row in ordered], axis=0) for name in ("auroc_ci", "fpr95_ci")}
    intervals = {name: Interval(float(low), float(high)) for name, (low, high) in ends.items()}
    return [
        value["auroc"],
        intervals["auroc_ci"],
        value["aupr_id"],
        value["aupr_ood"],
        value["fpr95_id"],
        intervals["fpr95_ci"],
        value["fpr95_ood"],
        round(float(np.mean([row.n_id for row in rows]))),
        round(float(np.mean([row.n_ood for row in rows]))),
        len(rows),
    ]
