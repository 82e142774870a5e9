"""Kill -9 at every step, while a file or a detector is replaced: the old one is there, or the new one."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

KILLED = Path(__file__).parents[2] / "tests" / "helpers" / "killed.py"


def measure(env: dict[str, str]) -> dict[str, dict[str, object]]:
    """Kill -9 at every call that touches the disk and every line of `outword.base.files`, while something is replaced.

    What is there afterwards, and whether the next command that writes the same name leaves anything behind.
    """
    titles = {
        "swapped": "a detector that is replaced in one step",
        "moved": "the same where the system has no such step",
        "file": "a file",
    }
    found: dict[str, dict[str, object]] = {}
    for how, title in titles.items():
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, KILLED, folder, how]
            run = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        lines = [line.split() for line in run.stdout.splitlines()]
        counts = Counter(there for there, _ in lines)
        told = ", ".join(f"{counts[there]} {there}" for there in ("old", "new", "none"))
        left = sum(hidden != "0" for _, hidden in lines)
        told = f"{len(lines)} points: {told}; left-overs after the next run: {left}"
        found[title] = {"s": time.perf_counter() - began, "MB": None, "says": told}
    return found
