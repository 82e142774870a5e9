"""The goals of docs/performance.md: what was aimed at, what was reached; from the committed results.

python benchmarks/goals.py
"""

from __future__ import annotations

import json
from pathlib import Path

from common import table

RESULTS = Path(__file__).parent / "results"
WHERE = {
    "performance-cuda.json": "H200",
    "performance-cpu.json": "CPU",
    "performance-100k.json": "CPU",
    "performance-cores.json": "16 cores",
}


def main() -> None:
    """Print the table."""
    rows = [
        [where, one["title"], goal["aim"], goal["reached"], "yes" if goal["met"] else "**no**"]
        for file, where in WHERE.items()
        for one in json.loads((RESULTS / file).read_text(encoding="utf-8"))["tables"]
        for goal in one["goals"]
    ]
    print(table(["where", "what", "goal", "reached", "met"], rows))


if __name__ == "__main__":
    main()
