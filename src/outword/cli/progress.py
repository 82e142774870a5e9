"""What verbs print: tables on stdout; progress, warnings and summaries on stderr."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, zip_longest
from typing import IO, TYPE_CHECKING
from unicodedata import combining, east_asian_width

import click

from outword.base.html import visible
from outword.base.wording import escaped

if TYPE_CHECKING:
    from outword.detector.detector import Detector

EVERY = 5.0  # seconds between two lines where there is no terminal
REDRAWN = 0.1  # seconds between two looks of the bar
BAR = 30  # characters of a bar
GAP = "  "  # between two columns
NARROWEST = 8  # characters that a column keeps where a table is too wide


def coloured(text: str, colour: str | None, *, bold: bool = False) -> str:
    """A text in a colour, or in bold; as it is where NO_COLOR is set. click leaves colours out where they cannot be."""
    plain = os.environ.get("NO_COLOR") or not (colour or bold)
    return text if plain else click.style(text, fg=colour, bold=bold or None)


def print_table(
    titles: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Collection[str] = (),
    width: int | None = None,
    err: bool = False,
    colour: Callable[[str, str], str | None] = lambda title, cell: None,
) -> None:
    """Print a table to stdout, as wide as the terminal or `width` at most; what does not fit goes on in the next line.

    With `err` it goes to stderr. The columns `right` are numbers. `colour` gives the colour of a cell by its title and
    its text.
    """
    cells = [[visible(str(cell)) for cell in row] for row in rows]
    wide = [max(map(columns, texts)) for texts in zip(titles, *cells, strict=True)]
    most = (width or shutil.get_terminal_size().columns) - len(GAP) * (len(wide) - 1)
    while sum(wide) > most and max(wide) > NARROWEST:  # the widest gives way
        at = wide.index(max(wide))
        wide[at] -= min(sum(wide) - most, max(1, wide[at] - max([NARROWEST, *wide[:at], *wide[at + 1 :]])))
    for place, row in enumerate([titles, *cells]):
        folded = [_fold(text, size) for text, size in zip(row, wide, strict=True)]
        for line in zip_longest(*folded, fillvalue=""):
            shown = []
            for title, text, whole, size in zip(titles, line, row, wide, strict=True):
                blank = " " * (size - columns(text))
                styled = coloured(text, None, bold=True) if not place else coloured(text, colour(title, whole))
                shown.append(blank + styled if title in right else styled + blank)
            click.echo(GAP.join(shown).rstrip(), err=err)


def columns(text: str) -> int:
    """How many columns of a terminal a text takes.

    >>> columns("cat"), columns("猫"), columns("e\u0301")
    (3, 2, 1)
    """
    return len(text) if text.isascii() else sum(_wide(char) for char in text)


def _wide(char: str) -> int:
    return 0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1


def _fold(text: str, width: int) -> list[str]:
    """A text in lines of at most so many columns, at blanks where there are some.

    >>> _fold("grey fox, badger", 9), _fold("abcdefgh", 3)
    (['grey fox,', 'badger'], ['abc', 'def', 'gh'])
    """
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if columns(joined) <= width:
            lines[-1] = joined
            continue
        lines += [""] if lines[-1] else []
        for char in word:
            if columns(lines[-1]) + _wide(char) > width and lines[-1]:
                lines.append("")
            lines[-1] += char
    return lines


def say(message: str, colour: str | None = None, *, bold: bool = False) -> None:
    """Print a line to stderr, where there are colours in a colour; control characters of names are escapes."""
    click.echo(coloured(escaped(message), colour, bold=bold), err=True)


def warn(message: str) -> None:
    """Print a line to stderr, in yellow where there are colours."""
    say(message, "yellow")


def show(text: str, *, nl: bool = True) -> None:
    """Print data to stdout, as they are; to a terminal with escapes for control characters but line ends."""
    if sys.stdout is not None and sys.stdout.isatty():
        text = "\n".join(map(escaped, text.split("\n")))
    click.echo(text, nl=nl)


class TerminalRows:
    """What rows are written to on a terminal, a line at a time: control characters in a line become escapes."""

    def __init__(self, terminal: IO[bytes]) -> None:
        self._terminal = terminal

    def write(self, line: bytes) -> int:
        """Write a line, or a part of one."""
        text = line.decode("utf-8", "backslashreplace")
        end = "\n" if text.endswith("\n") else ""
        self._terminal.write(f"{escaped(text.removesuffix(end))}{end}".encode())
        return len(line)

    def flush(self) -> None:
        """Show what was written."""
        self._terminal.flush()


def note_order(detector: Detector) -> None:
    """Say of a method that learns from what it scores that the order of the images matters."""
    if detector.scorer.sees_order:
        say(f"{detector.method} learns from the images that it scores: a score depends on those before it")


class Progress:
    """Progress on stderr: a bar with speed and time left on a terminal, a plain line now and then elsewhere."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._terminal = sys.stderr is not None and sys.stderr.isatty()
        self._began: dict[str, float] = {}
        self._drawn = False
        self.restart()

    def restart(self) -> None:
        """Count the seconds of the next task from now on."""
        self._last = self._said = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._drawn:
            self._draw("")

    def __call__(self, task: str, done: int, total: int | None) -> None:
        """Say that `done` of `total` are done, which may not be known yet. What follows " | " changes on the way."""
        now, shown = time.monotonic(), task.replace(" | ", ", ")
        task = task.partition(" | ")[0]
        if not done:
            self._began[task] = now  # it begins, perhaps once more
        began = self._began.setdefault(task, self._last)
        self._last = now
        speed = done / max(now - began, 1e-9)
        if now - self._said <= (REDRAWN if self._terminal else EVERY):
            return
        self._said = now
        left = f", {(total - done) / speed:,.0f} s left" if total and done else ""
        if self._terminal:
            of = f"/{total:,}" if total else ""
            self._draw(f"{shown} {_bar(done, total)}{done:,}{of} {speed:,.0f} {self._unit}/s{left}")
        else:
            of = f" of {total:,}" if total and done else ""
            say(f"{shown}: {done:,}{of}{left}, {speed:,.1f} {self._unit}/s")

    def _draw(self, line: str) -> None:
        """Put a line in the place of the last one."""
        self._drawn = bool(line)
        most = shutil.get_terminal_size().columns - 1  # a full line would begin a new one
        click.echo(f"\r{_fold(visible(line), most)[0]}\x1b[K", err=True, nl=False)


@contextmanager
def shown_download(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Say what is fetched, how much and under which licence before it begins; then a bar in megabytes."""
    say(f"fetching {what}")
    with Progress("MB") as progress:
        yield lambda done: progress("fetching", done // 1_000_000, total // 1_000_000)


class Spinner:
    """A sign of life on stderr as long as something is waited for; where there is no terminal, nothing."""

    def __init__(self, what: str) -> None:
        self._what = visible(what)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._turn, daemon=True)

    def __enter__(self) -> Spinner:
        if sys.stderr is not None and sys.stderr.isatty():
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _turn(self) -> None:
        for sign in cycle("|/-\\"):
            click.echo(f"\r{sign} {self._what} ...\x1b[K", err=True, nl=False)
            if self._ended.wait(REDRAWN):
                break
        click.echo("\r\x1b[K", err=True, nl=False)


def _bar(done: int, total: int | None) -> str:
    """A bar, where it is known how long it gets.

    >>> _bar(1, 2).count("#"), _bar(1, None)
    (15, '')
    """
    filled = BAR * min(done, total) // total if total else 0
    return f"[{'#' * filled}{' ' * (BAR - filled)}] " if total else ""
