"""What verbs print: tables on stdout; progress, warnings and summaries on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import rich.progress
    from rich.console import Console

    from outword.detector.detector import Detector

EVERY = 5.0  # seconds between two lines where there is no terminal


def console(*, stderr: bool = True, width: int | None = None) -> Console:
    """A console on stderr, or on stdout; honours NO_COLOR."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, width=width)


def print_table(
    titles: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Collection[str] = (),
    width: int | None = None,
    pad_edge: bool = False,
) -> None:
    """Print a table to stdout; the columns `right` are numbers, and cells are plain text, or rich's."""
    from rich.table import Column, Table
    from rich.text import Text

    columns = [Column(title, justify="right" if title in right else "left", overflow="fold") for title in titles]
    table = Table(*columns, box=None, pad_edge=pad_edge, header_style="bold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    console(stderr=False, width=width).print(table)


def say(message: str) -> None:
    """Print a line to stderr."""
    click.echo(message, err=True)


def warn(message: str) -> None:
    """Print a line to stderr, in yellow where there are colours."""
    console().print(message, style="yellow", markup=False, soft_wrap=True)


def note_order(detector: Detector) -> None:
    """Say of a method that learns from what it scores that the order of the images matters."""
    if detector.scorer.sees_order:
        say(f"{detector.method} learns from the images that it scores: a score depends on those before it")


class Progress:
    """Progress on stderr: a bar with speed and time left on a terminal, a plain line now and then elsewhere."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._bar = _bar() if sys.stderr is not None and sys.stderr.isatty() else None
        self._began: dict[str, float] = {}
        self._shown: dict[str, rich.progress.TaskID] = {}
        self.restart()

    def restart(self) -> None:
        """Count the seconds of the next task from now on."""
        self._last = self._said = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar:
            self._bar.stop()

    def __call__(self, task: str, done: int, total: int | None) -> None:
        """Say that `done` of `total` are done, which may not be known yet. What follows " | " changes on the way."""
        now, shown = time.monotonic(), task.replace(" | ", ", ")
        task = task.partition(" | ")[0]
        if not done:
            self._began[task] = now  # it begins, perhaps once more
        began = self._began.setdefault(task, self._last)
        self._last = now
        speed = done / max(now - began, 1e-9)
        if self._bar:
            self._bar.start()  # now, since another may have been shown until here
            if task not in self._shown:
                self._shown[task] = self._bar.add_task(task, total=total, speed="")
            rate = f"{speed:,.0f} {self._unit}/s"
            self._bar.update(self._shown[task], description=shown, completed=done, total=total, speed=rate)
        elif now - self._said > EVERY:
            self._said = now
            left = f" of {total:,}, {(total - done) / speed:,.0f} s left" if total and done else ""
            say(f"{shown}: {done:,}{left}, {speed:,.1f} {self._unit}/s")


def _bar() -> rich.progress.Progress:
    from rich import progress

    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[speed]}"),
        progress.TimeRemainingColumn(),
        console=console(),
        transient=True,
    )
