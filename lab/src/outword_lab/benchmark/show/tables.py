"""The tables of a run: the paper's layout, one long table of all figures, one table for each swept parameter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from outword.base.files import whole_file
from outword_lab.benchmark.run.bootstrap import interval
from outword_lab.benchmark.run.results import Condition, Outcome, Row
from outword_lab.benchmark.show import summary
from outword_lab.benchmark.show.markup import WRITERS
from outword_lab.benchmark.show.notes import all_notes, lead_notes, main_notes, shot_notes, sweep_notes
from outword_lab.benchmark.show.published import Published, published
from outword_lab.benchmark.show.summary import AXES, Value
from outword_lab.benchmark.show.table import Cell, Column, Interval, Label, Line, Table

FIGURES = {"auroc": "AUROC ↑", "fpr95_id": "FPR95 ↓"}
WORDS_OF_THE_PAPER = ("", "wordnet")  # where the paper compares no corpora
WRITTEN = ("mcm", "neglabel")  # scores that methods with learned prompts have, with a prompt that somebody wrote
Averages = dict[str, tuple[list[str], int]]
LEAD_COLUMNS = (
    Column("First", "first"),
    Column("before", "before"),
    Column("AUROC, points", "points", "figure"),
    Column("95 % interval, all pairs at once", "interval", "interval"),
    Column("separable", "separable"),
)
ROW_COLUMNS = (  # their keys are the names of a row
    Column("AUROC ↑", "auroc", "figure"),
    Column("95 % interval", "auroc_ci", "interval"),
    Column("AUPR (ID) ↑", "aupr_id", "figure"),
    Column("AUPR (OOD) ↑", "aupr_ood", "figure"),
    Column("FPR95 (ID positive) ↓", "fpr95_id", "figure"),
    Column("95 % interval", "fpr95_ci", "interval"),
    Column("FPR95 (OOD positive) ↓", "fpr95_ood", "figure"),
    Column("ID images", "n_id", "count"),
    Column("OOD images", "n_ood", "count"),
)


def write_tables(tables: Iterable[Table], folder: Path) -> None:
    """Write tables as Markdown, CSV and LaTeX to `folder`/tables; equal tables give equal bytes."""
    folder = folder / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    for table in tables:
        for suffix, text in WRITERS.items():
            with whole_file(folder / f"{table.name}.{suffix}") as temporary:
                # A set may have the name of a folder, and that need not be UTF-8.
                temporary.write_bytes(text(table).encode("utf-8", "backslashreplace"))


def make_tables(outcome: Outcome) -> list[Table]:
    """The tables of a run: "main", or one for each swept parameter; and "all". None where nothing was measured."""
    if not outcome.rows:
        return []
    swept = [_sweep(outcome, sweep.parameter) for sweep in outcome.suite.sweep]
    return [*(swept or [_main(outcome)]), _all(outcome)]


def _main(outcome: Outcome) -> Table:
    """The paper's layout, with its own figures under ours."""
    averages = _averages(outcome)
    conditions = enumerate(outcome.conditions())
    lines = [line for block, condition in conditions for line in _block(outcome, condition, block, averages)]
    columns = [Column("Method", "method"), Column("Source", "source"), *_figure_columns(outcome, averages)]
    return _table(outcome, "main", outcome.suite.title, columns, lines, main_notes(outcome))


def lead_tables(outcome: Outcome) -> list[Table]:
    """The table "leads", from bootstrap samples: how far the first is ahead of each of the others, if there are any."""
    lines = []
    for block, condition in enumerate(outcome.conditions()):
        for found in summary.leads(outcome, condition).values() if len(summary.ranking(outcome, condition)) > 1 else ():
            figures = Value(found.points), Interval(found.low, found.high)
            lines.append(Line([found.ahead, found.behind, *figures, "yes" if found.separable else "no"], block=block))
    title = f"{outcome.suite.title}: the first before each of the others"
    return [_table(outcome, "leads", title, LEAD_COLUMNS, lines, lead_notes(outcome))] if lines else []


def shot_tables(outcome: Outcome) -> list[Table]:
    """The table "shots", from bootstrap samples: mean AUROC by how many photos of each label prompts are learned from.

    There is one where several such numbers were measured. The scores with a written prompt stand first, at 0.
    """
    measured = {row.entry for row in outcome.rows}
    shots = sorted({n for entry in outcome.suite.methods if entry.shown in measured for n in entry.shots})
    if len(shots) < 2:
        return []
    lines = [
        Line([name, *(cell for n in (0, *shots) for cell in found.get(n, (None, None)))], block=block)
        for block, condition in enumerate(outcome.conditions())
        for name, found in _by_shots(outcome, condition).items()
    ]
    columns = [Column("Method", "method")]
    for n in (0, *shots):
        key, group = f"shots_{n}_auroc", f"{n} shot{'s' * (n != 1)}"
        columns += [Column("AUROC ↑", key, "figure", group), Column("95 % interval", f"{key}_ci", "interval", group)]
    title = f"{outcome.suite.title}: mean AUROC by shots"
    return [_table(outcome, "shots", title, columns, lines, shot_notes(outcome))]


def _by_shots(outcome: Outcome, condition: Condition) -> dict[str, dict[int, tuple[Value, Interval]]]:
    """Mean AUROC and its interval of the methods with learned prompts, by name and shots; at 0 those of `WRITTEN`."""
    found: dict[str, dict[int, tuple[Value, Interval]]] = {}
    for entry in outcome.suite.methods:
        rows = outcome.select(condition, entry=entry.shown)
        mean = summary.average(rows, summary.measured_sets(outcome), "auroc")
        if mean and (entry.shots or entry.method in WRITTEN):
            ends = Interval(*interval(summary.replicates(outcome, rows)["auroc"]))
            found.setdefault(entry.base, {})[sum(entry.shots)] = mean, ends
    return found


def _block(outcome: Outcome, condition: Condition, block: int, averages: Averages) -> Iterator[Line]:
    """The methods of a condition; each has its published row below it, and those that are not ours come last."""
    measured = [
        [name, "measured", *_figures(outcome, outcome.select(condition, entry=name), averages)]
        for name in summary.entries(outcome, condition)
    ]
    _mark_best(measured, 2 * len(averages))
    names = {entry.shown: entry.published for entry in outcome.suite.methods}
    printed = _printed(outcome, condition)
    for cells in measured:
        yield Line(cells, block=block)
        wanted = names[str(cells[0])]
        for shown in [shown for shown, row in printed.items() if wanted and wanted in (shown, row.method)]:
            yield _printed_line(outcome, shown, printed.pop(shown), averages, block)
    for shown, row in printed.items():
        yield _printed_line(outcome, shown, row, averages, block)
    empty = [None] * 2 * (len(outcome.suite.ood) + len(averages))
    for name in _left_out(outcome, condition):
        yield Line([name, "missing", *empty], "missing", block)


def _table(
    outcome: Outcome, name: str, title: str, columns: Sequence[Column], lines: Sequence[Line], notes: Sequence[str]
) -> Table:
    """A table whose lines get the axes that vary in front; their blocks number the conditions."""
    axes, rows = summary.varying(outcome), []
    for line in lines:
        values = zip(AXES, outcome.conditions()[line.block], strict=True)
        named = [Label(value, summary.axis_text(outcome, axis, value)) for axis, value in values if axis in axes]
        rows.append(Line([*named, *line.cells], line.source, line.block))
    return Table(name, title, [*(Column(AXES[axis], axis) for axis in axes), *columns], rows, notes, len(axes))


def _averages(outcome: Outcome) -> Averages:
    """The averages by name: the measured sets that each is taken over, and of how many."""
    named = {"Average": outcome.suite.ood, **{f"Average {name}": sets for name, sets in outcome.suite.groups.items()}}
    present = summary.measured_sets(outcome)
    return {name: ([one for one in sets if one in present], len(sets)) for name, sets in named.items()}


def _figure_columns(outcome: Outcome, averages: Averages) -> list[Column]:
    groups = [(name, outcome.title(name)) for name in outcome.suite.ood]
    for name, (sets, planned) in averages.items():
        heading = name if len(sets) == planned else f"{name} of {len(sets)} of {planned} sets"
        groups.append((name.lower().replace(" ", "_"), heading))
    figures = FIGURES.items()
    return [Column(name, f"{key}_{figure}", "figure", group) for key, group in groups for figure, name in figures]


def _figures(outcome: Outcome, rows: Sequence[Row], averages: Averages) -> list[Cell]:
    cells: list[Cell] = [summary.on_set(rows, name, figure) for name in outcome.suite.ood for figure in FIGURES]
    return cells + [summary.average(rows, sets, figure) for sets, _ in averages.values() for figure in FIGURES]


def _mark_best(lines: Sequence[list[Cell]], n_last: int) -> None:
    """Mark the best in each of the last columns, AUROC and FPR95 in turn; those that print alike are all the best."""
    for back in range(1, n_last + 1):
        values = [(cells, value) for cells in lines if isinstance(value := cells[-back], Value)]
        best = (min if back % 2 else max)((round(100 * value.mean, 2) for _, value in values), default=None)
        for cells, value in values:
            cells[-back] = value._replace(best=round(100 * value.mean, 2) == best)


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
    left = {one.what for one in outcome.skipped if one.kind == "method" and one.where in ((), condition)}
    shown = dict.fromkeys(entry.shown for entry in outcome.suite.methods)
    return [name for name in shown if name in left and not outcome.select(condition, entry=name)]


def _sweep(outcome: Outcome, parameter: str) -> Table:
    """A swept parameter: its values down, the figures across."""
    averages, several = _averages(outcome), len(outcome.suite.methods) > 1
    has_tau = bool(summary.tau_text(outcome.rows))
    columns = [Column("Method", "method")] * several + [Column(parameter, parameter)]
    columns += [Column("tau used", "tau_used", "count")] * has_tau + _figure_columns(outcome, averages)
    lines = []
    for block, condition in enumerate(outcome.conditions()):
        for name in summary.entries(outcome, condition):
            for value, rows in summary.points(outcome, condition, name, parameter).items():
                point = [*[name] * several, value, *[summary.tau_text(rows)] * has_tau]
                lines.append(Line([*point, *_figures(outcome, rows, averages)], block=block))
    title = f"{outcome.suite.title}: {parameter}"
    return _table(outcome, f"sweep-{parameter}", title, columns, lines, sweep_notes(outcome, parameter))


def _all(outcome: Outcome) -> Table:
    """Every figure, one method and OOD set a row."""
    swept = bool(outcome.suite.sweep)
    columns = [Column("Method", "method"), *[Column("Point", "point")] * swept, Column("OOD set", "ood")]
    columns += [*ROW_COLUMNS, Column("Seeds", "seeds", "count")]
    lines = []
    for block, condition in enumerate(outcome.conditions()):
        found: dict[tuple[str, str, str], list[Row]] = {}
        for row in outcome.select(condition):
            found.setdefault((row.entry, row.point, row.ood), []).append(row)
        for (name, point, ood), rows in found.items():
            figures = [_over_seeds(rows, column) for column in ROW_COLUMNS]
            cells = [name, *[point] * swept, Label(ood, outcome.title(ood)), *figures, len(rows)]
            lines.append(Line(cells, block=block))
    return _table(outcome, "all", f"{outcome.suite.title}: all figures", columns, lines, all_notes(outcome))


def _over_seeds(rows: Sequence[Row], column: Column) -> Cell:
    """What one method has on one OOD set in a column; ends of intervals and counts as the mean over seeds."""
    values = [getattr(row, column.key) for row in sorted(rows, key=lambda row: row.seed)]
    if column.kind == "figure":
        return summary.over_seeds(values)
    mean = np.mean(values, axis=0).tolist()
    return Interval(*mean) if column.kind == "interval" else round(mean)
