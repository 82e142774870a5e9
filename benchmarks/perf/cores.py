"""How many processors a measurement may use, and how much memory it took."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def one_core() -> Iterator[None]:
    """Hold this thread, and those that it starts, on one processor; sessions of onnxruntime made here have one thread.

    Where a process cannot be held, on other systems than Linux, nothing happens: start it on one core yourself.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def peak_mb() -> float:
    """The largest resident size of this process so far, on Linux; `getrusage` would count that of its parent too."""
    return _status("VmHWM")


def resident_mb() -> float:
    """The resident size of this process now, on Linux."""
    return _status("VmRSS")


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024 / 1e6
