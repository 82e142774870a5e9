"""The section of the report on conditions: sets, configuration, software, seconds, what was left out, how to repeat."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from outword.benchmark.run.provenance import commit, versions
from outword.benchmark.run.results import Outcome, Row
from outword.benchmark.show.notes import CHOSEN, CONDITIONAL, FPR95_ID, FPR95_OOD, lacks
from outword.benchmark.show.published import reference
from outword.benchmark.show.summary import condition_text, measured_sets, title, varying
from outword.scoring.page import escape

EMBEDDED = "mini"
UNREAD = 5  # photos of a set that are named
ONE_SEED = ("seed", "ood.", "method.parameters.seed", "miner.parameters.seed")  # what a row has to itself


def warnings_of(outcome: Outcome) -> list[str]:
    """What a reader must know before any figure, as HTML."""
    found = []
    if any(row.config["encoder"]["name"] == EMBEDDED for row in outcome.rows):
        found.append(
            "<b>The encoder mini is not CLIP.</b> It is small and made to work offline. Its figures are not the "
            "paper's, and not to be compared with published ones."
        )
    for what, values in (("commits", {row.commit for row in outcome.rows}), ("versions", _versions(outcome))):
        if len(values) > 1:
            found.append(f"<b>Rows come from {len(values)} different {what} of the software</b>; see the conditions.")
    return found


def _versions(outcome: Outcome) -> set[str]:
    """Those of the rows; of this process where there are none."""
    found = [row.versions for row in outcome.rows] or [versions()]
    return {", ".join(f"{name} {number}" for name, number in sorted(one.items())) for one in found}


def conditions_section(outcome: Outcome, command: str) -> str:
    """All of the section, as HTML."""
    parts = [
        ("How to repeat it", f"<pre><code>{escape(command)}</code></pre>" if command else ""),
        ("What was left out", _items([*lacks(outcome), *_unread(outcome)])),
        ("How to read the figures", _items(_conventions(outcome))),
        ("Sets", _sets(outcome)),
        ("Software", _items([*(f"commit {c}" for c in _commits(outcome)), *sorted(_versions(outcome))])),
        ("Seconds", _seconds(outcome)),
        ("Configuration", _configuration(outcome)),
    ]
    return "\n".join(f"<h3>{heading}</h3>\n{content}" for heading, content in parts if content)


def _items(lines: Iterable[str]) -> str:
    found = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<ul class="notes">{found}</ul>' if found else ""


def _unread(outcome: Outcome) -> Iterator[str]:
    """The first photos of each set that could not be read, with the reason."""
    for name, photos in outcome.unread.items():
        for path, reason in photos[:UNREAD]:
            yield f"{title(outcome, name)}: {path}: {reason.rstrip('.')}."


def _commits(outcome: Outcome) -> list[str]:
    return sorted({one or "unknown" for one in [row.commit for row in outcome.rows] or [commit()]})


def _conventions(outcome: Outcome) -> list[str]:
    """What the figures mean; nothing where there are none."""
    if not outcome.rows:
        return []
    lines = ["AUROC: probability that an ID image has a higher score than an OOD image.", FPR95_ID, FPR95_OOD]
    lines += [CONDITIONAL, CHOSEN]
    if outcome.suite.published:
        lines.append(f"published: as printed in {reference(outcome.suite.published)}, not measured here.")
    return lines


def _grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = ""
    for first, *rest in rows:
        cells = "".join(f'<td class="number">{escape(cell)}</td>' for cell in rest)
        body += f'<tr><th scope="row">{escape(first)}</th>{cells}</tr>\n'
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{top}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def _sets(outcome: Outcome) -> str:
    if not outcome.rows:
        return ""
    counts: dict[str, tuple[str, int, int]] = {}
    for row in outcome.rows:
        counts.setdefault(row.id, ("ID", row.n_id, row.unread_id))
    for name in measured_sets(outcome):
        row = next(row for row in outcome.rows if row.ood == name)
        counts[name] = ("OOD", row.n_ood, row.unread_ood)
    rows = [[title(outcome, name), kind, f"{n:,}", f"{bad:,}"] for name, (kind, n, bad) in counts.items()]
    return _grid(["Set", "Kind", "Images scored", "Unreadable"], rows)


def _seconds(outcome: Outcome) -> str:
    """Seconds of each method on vectors: the mean over seeds and OOD sets."""
    axes, lines = varying(outcome), []
    for condition in outcome.conditions():
        told = condition_text(outcome, condition, axes)
        for name in dict.fromkeys(row.entry for row in outcome.select(condition)):
            rows = outcome.select(condition, entry=name)
            means = [np.mean([getattr(row, part) for row in rows]) for part in ("fit_seconds", "score_seconds")]
            lines.append([f"{name} ({told})" if told else name, *(f"{mean:.3f}" for mean in means)])
    if not lines:
        return ""
    return _grid(["Method", "Fit, s", "Score, s"], lines) + (
        '<p class="small">Fit is on vectors. Score is that of the ID set and all OOD sets together, on vectors, too; a '
        "method that looks at patches encodes the photos once more, and that counts.</p>"
    )


def _configuration(outcome: Outcome) -> str:
    """What all rows share, and what is a method's own; that of the first row of each."""
    if not outcome.rows:
        return ""
    flat = [_flat(row.config) for row in outcome.rows]
    names = [name for name in dict.fromkeys(name for one in flat for name in one) if not name.startswith(ONE_SEED)]
    shared = [name for name in names if len({one.get(name) for one in flat}) == 1]
    parts = [_listed({name: flat[0][name] for name in shared})]
    first: dict[tuple[str, ...], Row] = {}
    for row in outcome.rows:
        first.setdefault((row.id, row.encoder, row.corpus, row.entry), row)
    for row in first.values():
        own = {k: v for k, v in _flat(row.config).items() if k in names and k not in shared}
        told = condition_text(outcome, (row.id, row.encoder, row.corpus), varying(outcome))
        heading = f"{row.entry} ({told})" if told else row.entry
        if own:
            parts.append(f"<details><summary>{escape(heading)}</summary>{_listed(own)}</details>")
    return "\n".join(parts)


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


def _listed(facts: Mapping[str, str]) -> str:
    lines = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    return f'<dl class="facts">{lines}</dl>'
