"""Kill -9 at every step, while a file or a detector is replaced: the old one is there, or the new one."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter

KILLED = """
import os, shutil, signal, sys
from pathlib import Path
import numpy as np
from outword import artifact, files
from outword.files import whole_file

OLD, NEW = (artifact.Saved({}, {"labels": np.full(4, n)}, [name], []) for n, name in enumerate(("old", "new")))
EVENTS = ("open", "os.", "shutil.", "fcntl.", "ctypes.", "tempfile.")
left = None

def step(*_):
    global left
    if left is not None:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

def trace(frame, event, _):
    if frame.f_code.co_filename == files.__file__:
        step()
        return trace

sys.addaudithook(lambda event, _: step() if event.startswith(EVENTS) else None)

def write(path, text):
    with whole_file(path) as temporary:
        temporary.write_text(text)

def load(path):
    try:
        return artifact.load(path).labels[0]
    except artifact.ArtifactError:
        return "none"

def fresh(task, *args):
    "In a process of its own, as the next command would do it."
    if not (child := os.fork()):
        if hasattr(files, "_sweep_once"):
            files._sweep_once.cache_clear()
        task(*args)
        os._exit(0)
    os.waitpid(child, 0)

def points(place, make, replace, look):
    global left
    for number in range(1, 10_000):
        shutil.rmtree(place.parent, ignore_errors=True)
        place.parent.mkdir()
        make(place)
        if not (child := os.fork()):
            left = number
            sys.settrace(trace)
            replace(place)
            os._exit(0)
        done = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        there = look(place)
        fresh(make, place)  # the next run that writes the same name
        print(there, len(os.listdir(place.parent)) - 1)
        if done:
            return

folder = Path(sys.argv[1]) / "inside"
if sys.argv[2] == "moved" and hasattr(files, "_swap"):
    files._swap = lambda one, other: False
if sys.argv[2] == "file":
    points(folder / "a", lambda p: write(p, "old"), lambda p: write(p, "new"), lambda p: p.read_text())
else:
    points(folder / "a", lambda p: artifact.save(p, OLD), lambda p: artifact.save(p, NEW), load)
"""


def measure(env: dict[str, str]) -> dict[str, dict[str, object]]:
    """Kill -9 at every call that touches the disk and every line of `outword.files`, while something is replaced.

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
            command = [sys.executable, "-c", KILLED, folder, how]
            run = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        lines = [line.split() for line in run.stdout.splitlines()]
        counts = Counter(there for there, _ in lines)
        told = ", ".join(f"{counts[there]} {there}" for there in ("old", "new", "none"))
        left = sum(hidden != "0" for _, hidden in lines)
        told = f"{len(lines)} points: {told}; left-overs after the next run: {left}"
        found[title] = {"s": time.perf_counter() - began, "MB": None, "says": told}
    return found
