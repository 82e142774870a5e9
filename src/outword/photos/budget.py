"""How much memory images may take while they are decoded, all of them together: one budget a process.

What an image will take is told from its header (`headers`). Small ones are decoded side by side; large ones one
at a time, and room for small ones is kept beside them, so that neither has to wait for all of the others.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from outword.errors import ImageError, ParameterError

MB = 1_000_000
VARIABLE = "OUTWORD_DECODE_MB"
DEFAULT = 880  # megabytes; with what waits before and after it, a process stays below 1 GB above its idle state
SMALL = 64 * MB  # an image that takes more is large; as much is kept for small ones


class Budget:
    """Bytes that are given out and come back, `total` for all images that are being decoded."""

    def __init__(self, total: int) -> None:
        self.most = total - SMALL
        self._total = total
        self._small = self._large = 0
        self._queue = threading.Lock()  # of the large ones, in hand or waiting for room
        self._changed = threading.Condition()

    @contextmanager
    def room(self, cost: int) -> Iterator[None]:
        """A block with room for `cost` bytes; waits for it, or raises `ImageError` where there never will be."""
        if cost > self.most:
            told = f"too large: decoding it takes {_mb(cost)}, over {_mb(self.most)}"
            raise ImageError(told, hint=f"shrink it first, or raise {VARIABLE}")
        with self._large_room(cost) if cost > SMALL else self._small_room(cost):
            yield

    @contextmanager
    def _small_room(self, cost: int) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: self._small + cost <= (SMALL if self._large else self._total))
            self._small += cost
        try:
            yield
        finally:
            with self._changed:
                self._small -= cost
                self._changed.notify_all()

    @contextmanager
    def _large_room(self, cost: int) -> Iterator[None]:
        with self._queue:
            try:
                with self._changed:
                    self._large = cost  # from now on the small ones keep to their share, so that this gets its own
                    self._changed.wait_for(lambda: self._small + cost <= self._total)
                yield
            finally:
                with self._changed:
                    self._large = 0
                    self._changed.notify_all()


@cache
def decoding() -> Budget:
    """The budget of this process: $OUTWORD_DECODE_MB megabytes, else 880."""
    given, least = os.environ.get(VARIABLE) or str(DEFAULT), 2 * SMALL // MB
    if not re.fullmatch("[0-9]{1,9}", given) or int(given) < least:
        raise ParameterError(f"{VARIABLE} must be a whole number from {least} on, got {given!r}", hint="leave it out")
    return Budget(int(given) * MB)


def _mb(count: int) -> str:
    return f"{round(count / MB):,} MB"
