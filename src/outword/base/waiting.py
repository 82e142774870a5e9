"""Waits that people should see: what is waited for goes to whoever shows it, if anybody does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar

Shown = Callable[[str], AbstractContextManager[object]]  # by what is waited for
_shown: ContextVar[Shown] = ContextVar("_shown", default=nullcontext)


def show_waits(how: Shown) -> None:
    """Show waits in this way from now on."""
    _shown.set(how)


def waiting(what: str) -> AbstractContextManager[object]:
    """A block that waits for something, in words."""
    return _shown.get()(what)
