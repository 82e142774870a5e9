"""How many processors a measurement may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


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
