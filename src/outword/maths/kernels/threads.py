"""Threads for numpy: one pool a process, and BLAS held to one thread while it works."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from outword.base.processors import usable_cpus

Item = TypeVar("Item")


def workers() -> int:
    """How many threads share the work: the usable processors, or what BLAS was allowed, where that is less.

    `OMP_NUM_THREADS=1`, as a Ray actor sets it, or a `threadpool_limits(1)` around the call means 1.
    """
    return min(usable_cpus(), blas.threads())


def parallel_for(
    work: Callable[[Item], object],
    items: Iterable[Item],
    after: Callable[[int], None] | None = None,
    threads: Callable[[], int] = workers,
) -> None:
    """Call `work` on every item, on as many `threads` as that says; numpy lets go of the interpreter in between.

    The calling thread works too, and threads of the pool help as they are free: so a call never waits for another's,
    and several calls together have little more than one thread a core. After an error, or Ctrl-C, what has begun ends
    and the rest is dropped. `after` is called on the calling thread with the number of items done so far.
    """
    todo, done = deque(items), list[None]()

    def drain(tell: Callable[[int], None] | None = None) -> None:
        try:
            while todo:
                try:
                    item = todo.popleft()
                except IndexError:  # another thread took the last one
                    return
                work(item)
                done.append(None)
                if tell:
                    tell(len(done))
        except BaseException:
            todo.clear()
            raise

    many = min(threads(), len(todo)) if len(todo) > 1 else 1  # asking BLAS takes milliseconds, the first time
    if many < 2:
        drain(after)
        return
    helpers: list[Future[None]] = []
    with blas:
        try:
            for _ in range(many - 1):
                with suppress(RuntimeError):  # the interpreter is shutting down: alone then
                    helpers.append(_pool().submit(drain))
            drain(after)
        finally:
            todo.clear()
            wait([helper for helper in helpers if not helper.cancel()])
        for helper in helpers:
            if not helper.cancelled():
                helper.result()
    if after:
        after(len(done))


class Blas:
    """Holds BLAS to one thread while anyone is within: `with blas: ...`.

    The number is the process's, so the first to come in sets it and the last to go puts it back. Other code that limits
    BLAS at the same time, in a thread of its own, may put it back to what it saw.
    """

    def __init__(self) -> None:
        self._lock, self._within, self._allowed = threading.Lock(), 0, [1]

    def threads(self) -> int:
        """How many threads BLAS uses when it is not held; 1 where it is none that can be held.

        One on OpenMP cannot: there each thread has a number of its own.
        """
        if any(getattr(library, "threading_layer", "") == "openmp" for library in _libraries()):
            return 1
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
    return ThreadPoolExecutor(usable_cpus(), thread_name_prefix="outword")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)
    os.register_at_fork(after_in_child=blas.after_fork)
