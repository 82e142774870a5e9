"""Threads for numpy: one pool a process, as many threads as BLAS would use, and BLAS held to one thread meanwhile."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import Any, TypeVar

Item = TypeVar("Item")
Progress = Callable[[int, int], None]


def usable_cpus() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def workers() -> int:
    """How many threads share the work: the usable processors, or what BLAS was allowed, where that is less.

    `OMP_NUM_THREADS=1`, as a Ray actor sets it, or a `threadpool_limits(1)` around the call means 1.
    """
    return min(usable_cpus(), blas.threads())


def spread(work: Callable[[Item], object], items: Iterable[Item], after: Callable[[int], None] | None = None) -> None:
    """Call `work` on every item, on all cores; numpy lets go of the interpreter in between.

    One item, or one core, stays on the calling thread. Calls from several threads share the pool, so that they never
    have more threads than cores. After an error, or Ctrl-C, what has begun ends and the rest is dropped. `work` must
    not call `spread`.

    Args:
        work: writes its result itself.
        items: what it is called with.
        after: called on the calling thread with the number of items done, in the order of the items.
    """
    todo = list(items)
    if len(todo) < 2 or workers() < 2:
        for done, item in enumerate(todo, start=1):
            work(item)
            if after:
                after(done)
        return
    with blas:
        futures = [_pool().submit(work, item) for item in todo]
        try:
            for done, future in enumerate(futures, start=1):
                future.result()
                if after:
                    after(done)
        finally:
            for future in futures:
                future.cancel()
            wait(futures)


class Blas:
    """Holds BLAS to one thread while anyone is within: `with blas: ...`.

    The number is the process's, so the first to come in sets it and the last to go puts it back.
    """

    def __init__(self) -> None:
        self._lock, self._within, self._allowed = threading.Lock(), 0, [1]

    def threads(self) -> int:
        """How many threads BLAS uses when it is not held; 1 where it is none that can be held."""
        with self._lock:
            return min(self._allowed if self._within else [library.num_threads for library in _libraries()], default=1)

    def __enter__(self) -> None:
        with self._lock:
            if not self._within:
                self._allowed = [library.num_threads for library in _libraries()]
                self._set([1] * len(self._allowed))
            self._within += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._within -= 1
            if not self._within:
                self._set(self._allowed)

    def _set(self, numbers: list[int]) -> None:
        for library, number in zip(_libraries(), numbers, strict=True):
            # threadpoolctl lets only the first thread that ever asks set OpenBLAS; here the lock keeps order.
            getattr(library, "_real_set_num_threads", library.set_num_threads)(number)

    def after_fork(self) -> None:
        """In a child there is only the thread that forked, and that one is not within."""
        self._lock = threading.Lock()
        if self._within:
            self._within = 0
            self._set(self._allowed)


blas = Blas()


@cache
def _libraries() -> list[Any]:
    import numpy as np  # noqa: F401  brings the BLAS that is to be held
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers(), thread_name_prefix="outword")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)
    os.register_at_fork(after_in_child=blas.after_fork)
