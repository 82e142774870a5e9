import io
import sys
import threading

import pytest

from outword.base.waiting import show_waits, waiting
from outword.cli import progress
from outword.cli.progress import Progress, Spinner, columns, print_table


def test_a_table_has_columns_and_no_blanks_at_the_end(capsys):
    print_table(("photo", "images"), [("cat.jpg", 7), ("raccoon.jpg", 1200)], right=("images",))
    assert capsys.readouterr().out == "photo        images\ncat.jpg           7\nraccoon.jpg    1200\n"


def test_what_does_not_fit_goes_on_in_the_next_line(capsys):
    print_table(("name", "about"), [("cat", "a small animal that people keep"), ("猫", "x" * 30)], width=20)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(columns, lines)) <= 20
    assert " ".join(line[6:].strip() for line in lines[1:4]).startswith("a small animal")
    assert "".join(line[5:].strip() for line in lines if "x" in line) == "x" * 30


def test_what_cannot_be_seen_is_an_escape_in_a_table(capsys):
    print_table(("name",), [("a\x1b[31mb\n",)])
    assert "\x1b" not in (out := capsys.readouterr().out) and r"a\x1b[31mb\n" in out


@pytest.mark.parametrize("no_color", ["", "1"])
def test_colours_are_for_terminals_and_not_with_no_color(monkeypatch, no_color):
    monkeypatch.setenv("NO_COLOR", no_color)
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", terminal)
    print_table(("verdict",), [("in",)], colour=lambda title, cell: "green")
    assert ("\x1b[32m" in terminal.getvalue()) == (not no_color)


def test_a_terminal_has_a_bar_that_goes_away(monkeypatch):
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "REDRAWN", -1.0)
    with Progress("images") as meter:
        meter("encoding | a.tar", 5, 10)
    drawn, gone = terminal.getvalue().split("\r")[1:]
    assert drawn.startswith("encoding, a.tar [###############               ] 5/10 ") and gone == "\x1b[K"


def test_elsewhere_there_is_a_line_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY", -1.0)
    with Progress("images") as meter:
        meter("encoding", 5, None)
    assert capsys.readouterr().err.startswith("encoding: 5, ")


def test_a_wait_has_a_spinner_on_a_terminal_that_goes_away(monkeypatch):
    terminal, turned = io.StringIO(), threading.Event()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(terminal, "flush", lambda: "/ " in terminal.getvalue() and turned.set())
    monkeypatch.setattr(sys, "stderr", terminal)
    show_waits(Spinner)
    with waiting("asking a hub"):
        assert turned.wait(60)
    *turns, gone = terminal.getvalue().split("\r")[1:]
    assert turns[:2] == ["| asking a hub ...\x1b[K", "/ asking a hub ...\x1b[K"] and gone == "\x1b[K"


def test_a_wait_says_nothing_elsewhere(capsys):
    with Spinner("asking a hub"):
        pass
    assert capsys.readouterr().err == ""
