"""What a process pays before it does anything: cold commands, and the imports on the way to a verdict."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import outword
from outword.words.corpora import get_corpus
from perf.jpegs import PHOTOS
from perf.tables import Goal, Table

ROUNDS = 3
LONGEST = 2.0  # seconds to a cold verdict
IMPORT = re.compile(r"import time: +(\d+) \| +\d+ \| +(\S+)")


def run(device: str) -> Iterator[Table]:
    """Tables of cold commands and of the largest imports; they are the same for every device."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        few, many = (save_detector(home / f"{count}.outword", count) for count in (10, 1000))
        env = {**compiled_in(home / "pyc"), "OUTWORD_CACHE": str(home / "cache")}
        score, photo = ["-m", "outword", "score"], str(PHOTOS / "cat.jpg")
        commands = {
            "python alone": ["-c", "pass"],
            "import outword": ["-c", "import outword"],
            "outword --help": ["-m", "outword", "--help"],
            "outword list methods": ["-m", "outword", "list", "methods"],
            "outword fit, 10 labels": ["-m", "outword", "fit", str(few / "labels.txt"), "-o", str(home / "a.outword")],
            "verdict on one photo, 10 labels": [*score, str(few), photo],
            "verdict on one photo, 1000 labels": [*score, str(many), photo],
        }
        took = {name: shortest(arguments, env) for name, arguments in commands.items()}
        verdict = took["verdict on one photo, 1000 labels"]
        yield Table(
            "Start-up: a cold process",
            [{"": name, "ms": 1e3 * seconds} for name, seconds in took.items()],
            [Goal(f"a cold verdict in less than {LONGEST:g} s", f"{verdict:.2f} s", verdict < LONGEST)],
            f"The shortest of {ROUNDS} runs after one that compiles the byte code and reads the files.",
        )
        own = imports([*score, str(few), photo], env)
        largest = sorted(own, key=own.__getitem__, reverse=True)[:10]
        yield Table(
            f"Start-up: the ten largest of {len(own)} imports of a verdict on one photo",
            [{"module": name, "ms": own[name] / 1e3} for name in largest],
            note=f"Own time by python -X importtime, the shortest of {ROUNDS} runs; all imports together take "
            f"{sum(own.values()) / 1e3:.0f} ms, and the measuring slows them down.",
        )


def save_detector(path: Path, count: int) -> Path:
    """A detector with so many labels, common words."""
    outword.fit(get_corpus("common").words[: 8 * count : 8]).save(path)
    return path


def compiled_in(folder: Path) -> dict[str, str]:
    """This environment, with the byte code kept in a folder, as an installer would leave it beside the source."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**env, "PYTHONPYCACHEPREFIX": str(folder)}


def shortest(arguments: Sequence[str], env: dict[str, str]) -> float:
    """Seconds of the shortest run of python with these arguments."""
    times = []
    for _ in range(ROUNDS + 1):
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], env=env, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return min(times[1:])


def imports(arguments: Sequence[str], env: dict[str, str]) -> dict[str, int]:
    """Own microseconds of each module that is imported."""
    found: dict[str, int] = {}
    for _ in range(ROUNDS):
        command = [sys.executable, "-X", "importtime", *arguments]
        done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
        for spent, name in IMPORT.findall(done.stderr):
            found[name] = min(found.get(name, sys.maxsize), int(spent))
    return found
