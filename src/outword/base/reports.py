"""How long work says what it does: callbacks for progress and for remarks, and the one that does nothing."""

from __future__ import annotations

from collections.abc import Callable

Report = Callable[[str, int, int | None], None]  # the task, how much of it is done, and of how much if that is known
Steps = Callable[[int, int], None]  # of one task: how many steps are done, and of how many
Say = Callable[[str], object]  # takes a remark


def quiet(*_: object) -> None:
    """Report nothing, and say nothing."""
