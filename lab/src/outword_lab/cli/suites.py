"""`outword list suites`."""

from __future__ import annotations

from typing import Any

from outword_lab.benchmark.run.suite import read_suite, suite_names


def suites() -> list[dict[str, Any]]:
    """Each suite with its title, and what it runs."""
    return [_row(name) for name in suite_names()]


def _row(name: str) -> dict[str, Any]:
    suite = read_suite(name)
    return {
        "name": name,
        "about": suite.title,
        "details": suite.about,
        "parts": list(suite.parts),
        **({} if suite.parts else {part: list(getattr(suite, part)) for part in ("id", "ood", "encoders", "corpora")}),
        "methods": [entry.shown for entry in suite.methods],
        "sweep": {sweep.parameter: list(sweep.values) for sweep in suite.sweep},
    }
