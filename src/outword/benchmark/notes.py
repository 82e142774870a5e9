"""What stands below a table: how to read it, what is missing and why, and where published figures come from."""

from __future__ import annotations

from collections.abc import Iterator

from outword.benchmark.published import published, reference
from outword.benchmark.results import Outcome
from outword.benchmark.summary import AXES, condition_text, measured_sets, title, varying

FPR95_ID = "FPR95 (ID positive): share of OOD images that are accepted when 95 % of ID images are."
FPR95_OOD = (
    "FPR95 (OOD positive), as in OpenOOD: share of ID images that are rejected when 95 % of OOD images are. "
    "The two are different figures."
)
# The values of the paper's section on implementation.
PAPER_VALUES = {"alpha": 100.0, "tau": 0.5, "sigma": 0.001, "kappa": 0.01, "L": 12000.0, "B": 100.0}


def main_notes(outcome: Outcome) -> list[str]:
    """The notes of the table in the paper's layout."""
    return [*_reading(outcome), FPR95_ID, *_published(outcome), *_partial(outcome), *lacks(outcome)]


def all_notes(outcome: Outcome) -> list[str]:
    """The notes of the long table."""
    told = "Intervals: 95 %, over images, by bootstrap; each end is the mean over seeds."
    return [*_reading(outcome), told, FPR95_ID, FPR95_OOD, *lacks(outcome)]


def sweep_notes(outcome: Outcome, parameter: str) -> list[str]:
    """The notes of the table of a swept parameter."""
    value = PAPER_VALUES.get(parameter)
    told = [] if value is None else [f"The paper's {parameter} is {value:g}."]
    return [*told, *_reading(outcome), FPR95_ID, *_partial(outcome), *lacks(outcome)]


def _reading(outcome: Outcome) -> Iterator[str]:
    fixed = [axis for axis in AXES if axis not in varying(outcome)]
    if fixed:
        yield f"{condition_text(outcome, outcome.conditions()[0], fixed)}."
    seeds = len({row.seed for row in outcome.rows})
    several = any(row.chance for row in outcome.rows) and seeds > 1
    spread = f"mean ± standard deviation over {seeds} seeds" if several else "one seed"
    yield f"Figures in percent, {spread}."
    if several and not all(row.chance for row in outcome.rows):
        yield "Without ±: nothing in the method is drawn by chance, and one seed stands for all."


def _published(outcome: Outcome) -> Iterator[str]:
    if not outcome.suite.published:
        return
    conditions = {(id_set, encoder) for id_set, encoder, _ in outcome.conditions()}
    rows = [row for row in published(outcome.suite.published) if (row.id, row.encoder) in conditions]
    if not rows:
        yield f"No published figures: {reference(outcome.suite.published)} has none for these conditions."
        return
    yield f"published: as printed in {reference(outcome.suite.published)}, not measured here."
    for row in rows:
        if row.note:
            yield f"published {row.method}, {title(outcome, row.id)}, {row.encoder}: {row.note}."


def _partial(outcome: Outcome) -> Iterator[str]:
    present, planned = measured_sets(outcome), outcome.suite.ood
    if len(present) < len(planned):
        yield f"Average of {len(present)} of {len(planned)} sets: not comparable with published averages."


def lacks(outcome: Outcome) -> list[str]:
    """A line for all that was left out or could not be read; the same reason in several conditions is one line."""
    where: dict[tuple[str, str, str], list[tuple[str, ...]]] = {}
    for left in outcome.skipped:
        where.setdefault((left.kind, left.what, left.reason), []).append(left.where)
    lines = []
    for (kind, what, reason), places in where.items():
        told = f"{title(outcome, what)}: {reason}" if kind == "set" else f"{what}: skipped: {reason}"
        lines.append(told.rstrip(".") + _in(outcome, places) + ".")
    return lines + _unread(outcome)


def _in(outcome: Outcome, places: list[tuple[str, ...]]) -> str:
    """Where it holds, if that is not everywhere."""
    axes = varying(outcome)
    if () in places or not axes or set(outcome.conditions()) <= set(places):
        return ""
    named = ["; ".join(place[list(AXES).index(axis)] for axis in axes) for place in places]
    return f" (in {', '.join(named)})"


def _unread(outcome: Outcome) -> list[str]:
    inside = {row.id: row.unread_id for row in outcome.rows}
    outside = {row.ood: (row.unread_ood, row.unread_ood + row.n_ood) for row in outcome.rows}
    # ID photos that a seed leaves out, to fit on them, are not in a row: there is no total to name.
    lines = [f"{title(outcome, n)}: {unread:,} images could not be read." for n, unread in inside.items() if unread]
    for name in measured_sets(outcome):
        unread, total = outside[name]
        if unread:
            lines.append(f"{title(outcome, name)}: {unread:,} of {total:,} images could not be read.")
    return lines
