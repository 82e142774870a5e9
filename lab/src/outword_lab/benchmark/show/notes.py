"""What stands below a table: how to read it, what is missing and why, and where published figures come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from outword_lab.benchmark.run.results import Outcome, Row
from outword_lab.benchmark.show.published import published, reference
from outword_lab.benchmark.show.summary import (
    AXES,
    FITTED,
    LEARNS,
    condition_text,
    measured_sets,
    tau_text,
    terms,
    varying,
)

AUROC = "AUROC: probability that an ID image has a higher score than an OOD image."
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
    rows = [*_terms(outcome), *_published(outcome), *_partial(outcome), *lacks(outcome)]
    return [*_reading(outcome), CHOSEN, FPR95_ID, *rows]


def lead_notes(outcome: Outcome) -> list[str]:
    """The notes of the table of leads."""
    return [
        "Mean AUROC over the OOD sets: the first less each of the others, in points.",
        "Intervals: 95 % for all pairs of methods at once (largest deviation over all pairs), by bootstrap over images "
        "and seeds. One that contains 0 separates nothing.",
        *_reading(outcome),
    ]


def shot_notes(outcome: Outcome) -> list[str]:
    """The notes of the table by shots."""
    return [
        "Mean AUROC over the OOD sets, by how many photos of each label prompts are learned from, drawn by the seed. "
        "With 0 shots the prompt is written by hand. The last epoch counts: nothing is chosen by OOD images.",
        "Intervals: 95 %, by bootstrap over images and seeds, of each figure by itself.",
        *_reading(outcome),
    ]


def learned_from(outcome: Outcome) -> Iterator[str]:
    """What each method with learned prompts has learned from, a line each; that of the first seed."""
    rows = {row.entry: row for row in reversed(outcome.rows)}
    for name in dict.fromkeys(row.entry for row in outcome.rows):
        if found := rows[name].config.get("learned_from"):
            yield f"{name}: learned from {_photos(found)}."


def _photos(found: Mapping[str, Any]) -> str:
    """Photos and words that prompts were learned from, in words."""
    n, shots, classes = found["photos"], found["shots"], found["id_images"]["classes"]
    parts = [f"{n:,} photos, {'' if n == shots * classes else 'at most '}{shots:,} of each label"]
    parts += [f"{found['words']:,} words"] * bool(found["words"])
    parts += [f"{found['photos_of_words']:,} photos of words"] * bool(found["photos_of_words"])
    return "; ".join(parts)


def all_notes(outcome: Outcome) -> list[str]:
    """The notes of the long table."""
    intervals = f"{CONDITIONAL[:-1]}; each end is the mean over seeds."
    return [*_reading(outcome), intervals, FPR95_ID, FPR95_OOD, *lacks(outcome)]


def sweep_notes(outcome: Outcome, parameter: str) -> list[str]:
    """The notes of the table of a swept parameter."""
    paper = [f"The paper's {parameter} is {PAPER_VALUES[parameter]:g}."] if parameter in PAPER_VALUES else []
    seeds = "± is how seeds differ: no interval for a value, and no correction for picking the best of them."
    return [*paper, seeds, *_reading(outcome), FPR95_ID, *_terms(outcome), *_partial(outcome), *lacks(outcome)]


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
        yield f"Fitted on ID images, the others on names: {'; '.join(fitted)}."
    for name, row in rows.items():
        if LEARNS in terms(row):
            yield (
                f"{name} learns from the test images: ID and OOD come as one stream, shuffled by the seed, afresh for "
                "each OOD set. Its figures depend on the order and on the mix."
            )
        if kept := row.config["method"]["on_vectors"]:
            parameters = ", ".join(f"{key}={value}" for key, value in kept.items())
            yield f"{name} is measured on vectors, without its step of the pixels: {parameters}."
    if used := tau_text([row for row in outcome.rows if _has_lowered_tau(row)]):
        yield f"tau is lowered where there are few labels for the size of a group, to {used} (docs/short-lists.md)."


def _has_lowered_tau(row: Row) -> bool:
    tau = row.config["method"]["parameters"].get("tau")
    return isinstance(tau, float | int) and row.config["learned"].get("tau", tau) < tau


def printed(outcome: Outcome) -> list[str]:
    """Where published figures come from, if the suite has some."""
    table = outcome.suite.published
    return [f"published: as printed in {reference(table)}, not measured here."] if table else []


def _published(outcome: Outcome) -> Iterator[str]:
    if not outcome.suite.published:
        return
    conditions = {(id_set, encoder) for id_set, encoder, _ in outcome.conditions()}
    rows = [row for row in published(outcome.suite.published) if (row.id, row.encoder) in conditions]
    if not rows:
        yield f"No published figures: {reference(outcome.suite.published)} has none for these conditions."
        return
    yield from printed(outcome)
    if other := [row.method for row in rows if row.ood_positive]:
        yield (
            f"published {', '.join(other)}: its own released code takes OOD as the positives in FPR95, another figure "
            "than that of the other rows; compare AUROC only."
        )
    for row in rows:
        if row.used:
            yield f"published {row.method}: {row.used}."
        if row.note:
            yield f"published {row.method}, {outcome.title(row.id)}, {row.encoder}: {row.note}."


def _partial(outcome: Outcome) -> Iterator[str]:
    present, planned = measured_sets(outcome), outcome.suite.ood
    if len(present) < len(planned):
        yield f"Average of {len(present)} of {len(planned)} sets: not comparable with published averages."


def lacks(outcome: Outcome) -> Iterator[str]:
    """A line for all that was left out or could not be read; the same reason in several conditions is one line."""
    where: dict[tuple[str, str, str], list[tuple[str, ...]]] = {}
    for left in outcome.skipped:
        where.setdefault((left.kind, left.what, left.reason), []).append(left.where)
    for (kind, what, reason), places in where.items():
        line = f"{outcome.title(what)}: {reason}" if kind == "set" else f"{what}: skipped: {reason}"
        yield line.rstrip(".") + _in(outcome, places) + "."
    yield from _unread(outcome)


def _in(outcome: Outcome, places: list[tuple[str, ...]]) -> str:
    """Where it holds, if that is not everywhere."""
    axes = varying(outcome)
    if () in places or not axes or set(outcome.conditions()) <= set(places):
        return ""
    named = ["; ".join(value for axis, value in zip(AXES, one, strict=True) if axis in axes) for one in places]
    return f" (in {', '.join(named)})"


def _unread(outcome: Outcome) -> Iterator[str]:
    """How many photos of each set could not be read; encoders may differ in that, and the largest number counts."""
    for name in dict.fromkeys(row.id for row in outcome.rows):
        # ID photos that a seed leaves out, to fit on them, are not in a row: there is no total to name.
        if unread := max(row.unread_id for row in outcome.select(id=name)):
            yield f"{outcome.title(name)}: {unread:,} image{'s' * (unread > 1)} could not be read."
    for name in measured_sets(outcome):
        unread, n = max((row.unread_ood, row.n_ood) for row in outcome.select(ood=name))
        if unread:
            yield f"{outcome.title(name)}: {unread:,} of {unread + n:,} images could not be read."
