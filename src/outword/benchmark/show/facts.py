"""The conditions of a run, for the report: sets, configuration, software, seconds, what was left out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from outword.benchmark.run.provenance import commit, versions
from outword.benchmark.run.results import Outcome, Row
from outword.benchmark.show.notes import AUROC, CHOSEN, CONDITIONAL, FPR95_ID, FPR95_OOD, lacks, printed
from outword.benchmark.show.summary import condition_text, measured_sets

EMBEDDED = "mini"
UNREAD = 5  # photos of a set that are named
ONE_SEED = ("seed", "ood.", "method.parameters.seed", "miner.parameters.seed")  # what a row has to itself


def facts_of(outcome: Outcome) -> dict[str, Any]:
    """What the report says of the conditions, by the names that report.html has for it."""
    sources = {"commits": {row.commit for row in outcome.rows}, "versions": _versions(outcome)}
    commits = sorted(one or "unknown" for one in sources["commits"] or {commit()})
    return {
        "is_mini": any(row.config["encoder"]["name"] == EMBEDDED for row in outcome.rows),
        "mixed": {what: len(values) for what, values in sources.items() if len(values) > 1},
        "left_out": [*lacks(outcome), *_unread(outcome)],
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
        rows = outcome.select((row.id, row.encoder, row.corpus), entry=row.entry)
        means = [np.mean([getattr(row, part) for row in rows]) for part in ("fit_seconds", "score_seconds")]
        lines.append([_method(outcome, row), *(f"{mean:.3f}" for mean in means)])
    return lines


def _first(outcome: Outcome) -> list[Row]:
    """The first row of each method in each condition."""
    first: dict[tuple[str, ...], Row] = {}
    for row in outcome.rows:
        first.setdefault((row.id, row.encoder, row.corpus, row.entry), row)
    return list(first.values())


def _method(outcome: Outcome, row: Row) -> str:
    """What the method of a row is called, with its condition where there are several."""
    told = condition_text(outcome, (row.id, row.encoder, row.corpus))
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
