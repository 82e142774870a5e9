"""Threads of the service that know how long each has been at its work: it cannot be interrupted, and it may hang."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import get_ident
from typing import TypeVar

T = TypeVar("T")


class Pool:
    """A number of threads for one kind of work."""

    def __init__(self, threads: int, name: str) -> None:
        self.count = threads
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._began: dict[int, float] = {}  # by thread, what is going on

    async def run(self, work: Callable[[], T]) -> T:
        """The result of work, which waits until a thread is free."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._timed, work)

    def is_stuck(self, seconds: float) -> bool:
        """Whether every thread has been at one piece of work for so long."""
        since = time.monotonic() - seconds
        return sum(began < since for began in list(self._began.values())) >= self.count

    def close(self) -> None:
        """Drop what has not begun; what has is not waited for, as it may hang."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _timed(self, work: Callable[[], T]) -> T:
        self._began[get_ident()] = time.monotonic()
        try:
            return work()
        finally:
            del self._began[get_ident()]
