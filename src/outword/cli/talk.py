"""What is said on stderr while data goes to stdout: progress, warnings, summaries."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from outword.pipeline import Detector

EVERY = 5.0  # seconds between two lines where there is no terminal


def console() -> Console:
    """A console on stderr; honours NO_COLOR."""
    return Console(stderr=True, highlight=False)


def note_order(detector: Detector) -> None:
    """Say of a method that learns from what it scores that the order of the images matters."""
    if detector.vectors.sees_order:
        console().print(
            f"{detector.method} learns from the images that it scores: a score depends on those before it",
            soft_wrap=True,
        )


class Meter:
    """Progress on stderr: a bar with speed and time left on a terminal, a plain line now and then elsewhere."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._console = console()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._tasks: dict[str, tuple[TaskID, float]] = {}
        self._last = self._said = time.monotonic()

    def __enter__(self) -> Meter:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, task: str, done: int, total: int | None) -> None:
        """Say that `done` of `total` are done; the total may not be known yet."""
        now = time.monotonic()
        if task not in self._tasks:
            self._tasks[task] = self._bar.add_task(task, total=total, speed=""), self._last
        self._last = now
        number, began = self._tasks[task]
        speed = done / max(now - began, 1e-9)
        self._bar.update(number, completed=done, total=total, speed=f"{speed:,.0f} {self._unit}/s")
        if not self._console.is_terminal and now - self._said > EVERY:
            self._said = now
            left = f" of {total:,}, {(total - done) / speed:,.0f} s left" if total else ""
            self._console.print(f"{task}: {done:,}{left}, {speed:,.1f} {self._unit}/s")
