"""Waits that people should see: what is waited for goes to whoever shows it, if anybody does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Generic, TypeVar

Answer = TypeVar("Answer")
Shown = Callable[[str], AbstractContextManager[object]]  # by what is waited for
Downloading = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]  # by what, and how many bytes
_shown: ContextVar[Shown] = ContextVar("_shown", default=nullcontext)


def show_waits(how: Shown) -> None:
    """Show waits in this way from now on."""
    _shown.set(how)


def waiting(what: str) -> AbstractContextManager[object]:
    """A block that waits for something, in words."""
    return _shown.get()(what)


def _unseen(what: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    return nullcontext(lambda done: None)


_downloads: ContextVar[Downloading] = ContextVar("_downloads", default=_unseen)


def show_downloads(how: Downloading) -> None:
    """Show downloads in this way from now on."""
    _downloads.set(how)


def downloading(what: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
    """A block that fetches so many bytes, and reports how many are here."""
    return _downloads.get()(what, total)


class Asked(Generic[Answer]):
    """A question that is asked meanwhile, and given up after so many seconds, whatever it hangs on.

    A name of a host, for one, is looked up without a limit. The question must not raise.
    """

    def __init__(self, question: Callable[[], Answer], seconds: float) -> None:
        self._found: list[Answer] = []
        self._until = time.monotonic() + seconds
        self._thread = threading.Thread(target=lambda: self._found.append(question()), name="outword-asks", daemon=True)
        self._thread.start()

    def answer(self) -> Answer | None:
        """What was answered in time, or None."""
        self._thread.join(max(0.0, self._until - time.monotonic()))
        return next(iter(self._found), None)
