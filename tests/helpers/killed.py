"""Kill -9 before each call that touches the disk, and at each line of `base.files`, while something is replaced.

python tests/helpers/killed.py FOLDER swapped|moved|file

Prints a line for each point: what is there afterwards, "old", "new" or "none", and how many hidden files the next
command that writes the same name leaves beside it. `benchmarks/hostile.py` runs it too, on older versions as well.
"""

import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np

from outword.base import files
from outword.base.files import whole_file
from outword.detector import artifact

OLD, NEW = (artifact.Saved({}, {"labels": np.full(4, n)}, [name], [], [], []) for n, name in enumerate(("old", "new")))
EVENTS = ("open", "os.", "shutil.", "fcntl.", "ctypes.", "tempfile.")
COUNTDOWN = []  # steps that are left until the kill


def step():
    if COUNTDOWN:
        COUNTDOWN[0] -= 1
        if COUNTDOWN[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def trace(frame, event, _):
    if frame.f_code.co_filename == files.__file__:
        step()
        return trace
    return None


def write(path, text):
    with whole_file(path) as temporary:
        temporary.write_text(text)


def load(path):
    try:
        return artifact.load(path).labels[0]
    except artifact.ArtifactError:
        return "none"


def fresh(task, *args):
    """In a process of its own, as the next command would do it."""
    if not (child := os.fork()):
        if hasattr(files, "_sweep_once"):
            files._sweep_once.cache_clear()
        task(*args)
        os._exit(0)
    os.waitpid(child, 0)


def points(place, make, replace, look):
    for number in range(1, 10_000):
        shutil.rmtree(place.parent, ignore_errors=True)
        place.parent.mkdir()
        make(place)
        if not (child := os.fork()):
            COUNTDOWN.append(number)
            sys.settrace(trace)
            replace(place)
            os._exit(0)
        done = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        there = look(place)
        fresh(make, place)
        print(there, len(os.listdir(place.parent)) - 1)
        if done:
            return


def main(folder, how):
    sys.addaudithook(lambda event, _: step() if event.startswith(EVENTS) else None)
    place = Path(folder) / "inside" / "a"
    if how == "moved" and hasattr(files, "_swap"):
        files._swap = lambda one, other: False
    if how == "file":
        points(place, lambda p: write(p, "old"), lambda p: write(p, "new"), lambda p: p.read_text())
    else:
        points(place, lambda p: artifact.save(p, OLD), lambda p: artifact.save(p, NEW), load)


if __name__ == "__main__":
    main(*sys.argv[1:])
