"""One self-contained HTML report of a run: who wins, by how much, how sure, where it fails, under which conditions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from outword.base.files import whole_file
from outword.base.html import render
from outword.detector.thumbnails import ON_PAGE, thumbnails
from outword.errors import ImageError
from outword_lab.benchmark.run.results import Condition, Outcome, Row, commit, versions
from outword_lab.benchmark.show.markup import to_html
from outword_lab.benchmark.show.notes import (
    AUROC,
    CHOSEN,
    CONDITIONAL,
    FPR95_ID,
    FPR95_OOD,
    lacks,
    learned_from,
    printed,
)
from outword_lab.benchmark.show.picture import PANELS
from outword_lab.benchmark.show.plots import picture_name
from outword_lab.benchmark.show.summary import condition_text, entries, measured_sets, paper_entries, ranking
from outword_lab.benchmark.show.table import Table
from outword_lab.benchmark.show.verdict import verdict, weakness
from outword_lab.benchmark.theory.plot import CAPTION, NAME

SHOWN = 12  # images of a kind
LONG = ("all", "points")  # tables that are folded
EMBEDDED = "mini"
NO_PLOTS = "No plots were drawn."
UNREAD = 5  # photos of a set that are named
# What a row has to itself.
ONE_SEED = ("seed", "ood.", "method.parameters.seed", "miner.parameters.seed", "learned_from.losses")
Read = Callable[[Sequence[str]], Mapping[str, bytes | ImageError]]


def write_report(
    outcome: Outcome,
    path: Path,
    figures: Sequence[Path],
    tables: Sequence[Table],
    *,
    read: Read | None = None,
    command: str = "",
    headline: str = "",
) -> None:
    """Write the report of a run to `path`; the file appears whole or not at all.

    `figures` are what `write_plots` or `theorem_figures` gave. `read` gives the bytes of images, or what is wrong with
    them, by their paths below the data root; without it there are no thumbnails. `command` repeats the run, and
    `headline` is the answer in a few sentences, where it is not a matter of which method wins.
    """
    kind = outcome.suite.kind if outcome.rows or outcome.suite.kind != "methods" else "sweep"
    shown = _tables(kind, tables)
    page = render(
        "benchmark/show/report.html",
        "outword_lab",
        title=outcome.suite.title,
        about=outcome.suite.about,
        kind=kind,
        headline=headline,
        command=command,
        sections=_sections(kind, headline, shown),
        tables=shown,
        theorem={"name": NAME, "caption": CAPTION},
        panels=partial(_panels, figures),
        titles=outcome.title,
        **_conditions(outcome, kind, read),
        **_facts(outcome, figures),
    )
    with whole_file(Path(path)) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _sections(kind: str, headline: str, tables: Mapping[str, Any]) -> dict[str, str]:
    """The headings of the sections by name, in order."""
    answer = {"answer": "In short"} if headline else {}
    if kind == "methods":
        failures = {"failures": "Where it fails", "curves": "Curves and scores"}
        parts = {"winner": "Which method wins?", "figures": "All methods", **failures}
    else:
        parts = {"curves": "Figures", "figures": "Tables"}
    long = {"all": "All figures"} if tables["all"] else {}
    return {**answer, **parts, **long, "conditions": "Conditions"}


def _tables(kind: str, tables: Sequence[Table]) -> dict[str, list[dict[str, str]]]:
    """Title and HTML of each table, by where it stands; those of `LONG` are folded."""
    if kind == "methods":
        leads, shots = ([one for one in tables if one.name == name] for name in ("leads", "shots"))
        found = {"leads": leads, "figures": [*tables[:1], *shots], "all": tables[-1:]}
    else:
        long = [one for one in tables if one.name in LONG]
        found = {"leads": [], "figures": [one for one in tables if one not in long], "all": long}
    return {where: [{"title": one.title, "html": to_html(one)} for one in some] for where, some in found.items()}


def _conditions(outcome: Outcome, kind: str, read: Read | None) -> dict[str, Any]:
    """What there is to say of each condition, and the thumbnails of the images that are shown."""
    found: list[dict[str, Any]] = []
    for condition in outcome.conditions():
        shown: dict[str, Any] = {"name": condition_text(outcome, condition)}
        if kind == "methods":
            shown |= {"verdict": verdict(outcome, condition), "failures": _failures(outcome, condition)}
        else:
            shown["entries"] = entries(outcome, condition)
        found.append(shown)
    methods = [method for shown in found for method in shown.get("failures", [])]
    paths = [image.path for method in methods for image in method["accepted"] + method["rejected"]]
    thumbs = dict.fromkeys(paths, b"")  # what cannot be read any more has none
    if read:
        thumbs |= thumbnails(read(list(thumbs)).items(), ON_PAGE)
    return {"conditions": found, "thumbnails": thumbs}


def _failures(outcome: Outcome, condition: Condition) -> list[dict[str, Any]]:
    """The worst images of the winner and of the paper's method."""
    methods = [*(name for name, _ in ranking(outcome, condition)[:1]), *paper_entries(outcome, condition)[:1]]
    return [_failures_of(outcome, condition, name) for name in dict.fromkeys(methods)]


def _failures_of(outcome: Outcome, condition: Condition, method: str) -> dict[str, Any]:
    rows = outcome.select(condition, entry=method, seed=0)
    kept = outcome.worst(rows[0]) if rows else []
    worst = [one for one in kept if one.inside or one.set in measured_sets(outcome)]  # a set may be gone since
    return {
        "name": method,
        "weakness": weakness(outcome, condition, method),
        "accepted": sorted((one for one in worst if not one.inside), key=lambda one: -one.score)[:SHOWN],
        "rejected": sorted((one for one in worst if one.inside), key=lambda one: one.score)[:SHOWN],
    }


def _panels(figures: Sequence[Path], name: str, *numbers: int) -> list[bytes]:
    """The panels of a figure as SVG, which a phone shows one below the other."""
    own = [p for p in figures if p.parent.name == PANELS and p.stem.rpartition(".")[0] == picture_name(name, *numbers)]
    return [path.read_bytes() for path in own]


def _facts(outcome: Outcome, figures: Sequence[Path]) -> dict[str, Any]:
    """What the report says of the conditions, by the names that report.html has for it."""
    sources = {"commits": {row.commit for row in outcome.rows}, "versions": _versions(outcome)}
    commits = sorted(one or "unknown" for one in sources["commits"] or {commit()})
    return {
        "is_mini": any(row.config["encoder"]["name"] == EMBEDDED for row in outcome.rows),
        "mixed": {what: len(values) for what, values in sources.items() if len(values) > 1},
        "learned_from": list(learned_from(outcome)),
        "left_out": [*lacks(outcome), *_unread(outcome), *([] if figures else [NO_PLOTS])],
        "conventions": [AUROC, FPR95_ID, FPR95_OOD, CONDITIONAL, CHOSEN, *printed(outcome)] if outcome.rows else [],
        "sets": _sets(outcome),
        "software": [*(f"commit {one}" for one in commits), *sorted(sources["versions"])],
        "seconds": _seconds(outcome),
        **_configuration(outcome),
    }


def _versions(outcome: Outcome) -> set[str]:
    """Those of the rows; of this process where there are none."""
    found = [row.versions for row in outcome.rows] or [versions()]
    return {", ".join(f"{name} {number}" for name, number in sorted(one.items())) for one in found}


def _unread(outcome: Outcome) -> Iterator[str]:
    """The first photos of each set that could not be read, with the reason."""
    for name, photos in outcome.unread.items():
        for path, reason in photos[:UNREAD]:
            yield f"{outcome.title(name)}: {path}: {reason.rstrip('.')}."


def _sets(outcome: Outcome) -> list[list[str]]:
    """Name, kind, images scored and unreadable ones of each set."""
    inside = {name: outcome.select(id=name)[0] for name in dict.fromkeys(row.id for row in outcome.rows)}
    counts = {name: ("ID", row.n_id, row.unread_id) for name, row in inside.items()}
    outside = {name: outcome.select(ood=name)[0] for name in measured_sets(outcome)}
    counts |= {name: ("OOD", row.n_ood, row.unread_ood) for name, row in outside.items()}
    return [[outcome.title(name), kind, f"{n:,}", f"{bad:,}"] for name, (kind, n, bad) in counts.items()]


def _seconds(outcome: Outcome) -> list[list[str]]:
    """Seconds of each method on vectors, to fit and to score: the mean over seeds and OOD sets."""
    lines = []
    for row in _first(outcome):
        rows = outcome.select(row.condition, entry=row.entry)
        means = [np.mean([getattr(row, part) for row in rows]) for part in ("fit_seconds", "score_seconds")]
        lines.append([_method(outcome, row), *(f"{mean:.3f}" for mean in means)])
    return lines


def _first(outcome: Outcome) -> list[Row]:
    """The first row of each method in each condition."""
    first: dict[tuple[Condition, str], Row] = {}
    for row in outcome.rows:
        first.setdefault((row.condition, row.entry), row)
    return list(first.values())


def _method(outcome: Outcome, row: Row) -> str:
    """What the method of a row is called, with its condition where there are several."""
    told = condition_text(outcome, row.condition)
    return f"{row.entry} ({told})" if told else row.entry


def _configuration(outcome: Outcome) -> dict[str, Any]:
    """What all rows share, and what is a method's own, by what it is called; that of the first row of each."""
    flat = [_flat(row.config) for row in outcome.rows]
    names = [name for name in dict.fromkeys(name for one in flat for name in one) if not name.startswith(ONE_SEED)]
    shared = [name for name in names if len({one.get(name) for one in flat}) == 1]
    own = []
    for row in _first(outcome):
        facts = {k: v for k, v in _flat(row.config).items() if k in names and k not in shared}
        own.append((_method(outcome, row), facts))
    return {"shared": {name: flat[0][name] for name in shared}, "own": own}


def _flat(config: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """Nested tables as one, with dotted names and JSON values.

    >>> _flat({"a": {"b": 1}, "c": [2]})
    {'a.b': '1', 'c': '[2]'}
    """
    found: dict[str, str] = {}
    for name, value in config.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{before}{name}.")
        else:
            found[before + name] = value if isinstance(value, str) else json.dumps(value)
    return found
