"""What stands below a table: how to read it, what is missing and why, and where published figures come from."""

from __future__ import annotations

from collections.abc import Iterator

from outword.benchmark.run.results import Outcome, Row
from outword.benchmark.show.published import published, reference
from outword.benchmark.show.summary import (
    AXES,
    FITTED,
    LEARNS,
    condition_text,
    measured_sets,
    tau_text,
    terms,
    title,
    varying,
)

FPR95_ID = (
    "FPR95 (ID positive): share of OOD images that are accepted at the highest threshold that accepts at least 95 % of "
    "ID images."
)
FPR95_OOD = (
    "FPR95 (OOD positive), as in OpenOOD: share of ID images that are rejected at the lowest threshold that rejects at "
    "least 95 % of OOD images. The two are different figures."
)
# The values of the paper's section on implementation.
PAPER_VALUES = {"alpha": 100.0, "tau": 0.5, "sigma": 0.001, "kappa": 0.01, "L": 12000.0, "B": 100.0}


CONDITIONAL = (
    "Intervals of single figures: 95 %, over images, by bootstrap, given the photos that a seed drew to fit on, and "
    "without a correction for the choice of a best row."
)
CHOSEN = (
    "± is how seeds differ, not how sure a lead is. The table of leads says that: its intervals resample images and "
    "seeds, and hold at once for all pairs of methods, whichever comes out first."
)


def main_notes(outcome: Outcome) -> list[str]:
    """The notes of the table in the paper's layout."""
    others = [*_terms(outcome), *_published(outcome), *_partial(outcome), *lacks(outcome)]
    return [*_reading(outcome), CHOSEN, FPR95_ID, *others]


def lead_notes(outcome: Outcome) -> list[str]:
    """The notes of the table of leads."""
    first = "Mean AUROC over the OOD sets: the first less each of the others, in points."
    sure = (
        "Intervals: 95 % for all pairs of methods at once (largest deviation over all pairs), by bootstrap over images "
        "and seeds. One that contains 0 separates nothing."
    )
    return [first, sure, *_reading(outcome)]


def all_notes(outcome: Outcome) -> list[str]:
    """The notes of the long table."""
    intervals = f"{CONDITIONAL[:-1]}; each end is the mean over seeds."
    return [*_reading(outcome), intervals, FPR95_ID, FPR95_OOD, *lacks(outcome)]


def sweep_notes(outcome: Outcome, parameter: str) -> list[str]:
    """The notes of the table of a swept parameter."""
    value = PAPER_VALUES.get(parameter)
    lines = [] if value is None else [f"The paper's {parameter} is {value:g}."]
    lines.append("± is how seeds differ: no interval for a value, and no correction for picking the best of them.")
    return [*lines, *_reading(outcome), FPR95_ID, *_terms(outcome), *_partial(outcome), *lacks(outcome)]


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


def _terms(outcome: Outcome) -> Iterator[str]:
    """On which terms a method takes part, where they are not those of all: what it sees besides names and words."""
    rows = {row.entry: row for row in outcome.rows}
    for name, used in dict.fromkeys((row.encoder, row.config["encoder"]["name"]) for row in outcome.rows):
        if name != used:
            yield f"Encoder {name}: {used} stands for it."
    if fitted := [name for name, row in rows.items() if FITTED in terms(row)]:
        yield f"Fitted on ID images, the others on names: {', '.join(fitted)}."
    for name, row in rows.items():
        if LEARNS in terms(row):
            yield (
                f"{name} learns from the test images: ID and OOD come as one stream, shuffled by the seed, afresh for "
                "each OOD set. Its figures depend on the order and on the mix."
            )
        if kept := row.config["method"]["on_vectors"]:
            values = ", ".join(f"{key}={value}" for key, value in kept.items())
            yield f"{name} is measured on vectors, without its step of the pixels: {values}."
    if used := tau_text([row for row in outcome.rows if _is_lowered(row)]):
        yield f"tau is lowered where there are few labels for the size of a group, to {used} (docs/short-lists.md)."


def _is_lowered(row: Row) -> bool:
    tau = row.config["method"]["parameters"].get("tau")
    return isinstance(tau, float | int) and row.config["learned"].get("tau", tau) < tau


def _published(outcome: Outcome) -> Iterator[str]:
    if not outcome.suite.published:
        return
    conditions = {(id_set, encoder) for id_set, encoder, _ in outcome.conditions()}
    rows = [row for row in published(outcome.suite.published) if (row.id, row.encoder) in conditions]
    if not rows:
        yield f"No published figures: {reference(outcome.suite.published)} has none for these conditions."
        return
    yield f"published: as printed in {reference(outcome.suite.published)}, not measured here."
    if other := [row.method for row in rows if row.ood_positive]:
        yield (
            f"published {', '.join(other)}: its own released code takes OOD as the positives in FPR95, another figure "
            "than that of the other rows; compare AUROC only."
        )
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
        line = f"{title(outcome, what)}: {reason}" if kind == "set" else f"{what}: skipped: {reason}"
        lines.append(line.rstrip(".") + _in(outcome, places) + ".")
    return lines + _unread(outcome)


def _in(outcome: Outcome, places: list[tuple[str, ...]]) -> str:
    """Where it holds, if that is not everywhere."""
    axes = varying(outcome)
    if () in places or not axes or set(outcome.conditions()) <= set(places):
        return ""
    named = ["; ".join(place[list(AXES).index(axis)] for axis in axes) for place in places]
    return f" (in {', '.join(named)})"


def _unread(outcome: Outcome) -> list[str]:
    inside: dict[str, int] = {}
    outside: dict[str, tuple[int, int]] = {}
    for row in outcome.rows:  # encoders may differ in what they can read
        inside[row.id] = max(inside.get(row.id, 0), row.unread_id)
        outside[row.ood] = max(outside.get(row.ood, (0, 0)), (row.unread_ood, row.unread_ood + row.n_ood))
    # ID photos that a seed leaves out, to fit on them, are not in a row: there is no total to name.
    lines = [
        f"{title(outcome, name)}: {unread:,} image{'s' * (unread > 1)} could not be read."
        for name, unread in inside.items()
        if unread
    ]
    for name in measured_sets(outcome):
        unread, total = outside[name]
        if unread:
            lines.append(f"{title(outcome, name)}: {unread:,} of {total:,} images could not be read.")
    return lines
