"""Names of files may be anybody's: a terminal shows their control characters and does not obey them."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

import outword.cli
from conftest import PHOTOS, call
from outword.cli import main
from outword.cli.failures import Failure
from outword.cli.progress import say, show

ODD = "a\x1b[31mred\x1b]0;title\x07\n\u202egpj.jpg"
SHOWN = r"a\x1b[31mred\x1b]0;title\x07\n\u202egpj.jpg"


@pytest.fixture
def terminal(monkeypatch):
    """Call the command line with a terminal for stdout; gives what the terminal got."""

    def printed(*args):
        master, slave = os.openpty()
        with open(slave, "w", encoding="utf-8") as stdout, open(master, "rb", buffering=0) as screen:  # noqa: PTH123
            monkeypatch.setattr(sys, "stdout", stdout)
            try:
                main([str(a) for a in args], standalone_mode=False)
            finally:
                monkeypatch.undo()
                stdout.flush()
            return screen.read(1 << 16).decode()

    return printed


def test_rows_on_a_terminal(saved, tmp_path, terminal):
    (tmp_path / "photos").mkdir()
    shutil.copy(PHOTOS / "cat.jpg", tmp_path / "photos" / ODD)
    table = terminal("score", saved, tmp_path / "photos")
    assert r"a\x1b[31mred" in table  # long paths go on in the next line
    assert not any(sign in table for sign in ("\x1b[31mred", "\x07", "\u202e"))
    lines = terminal("score", saved, tmp_path / "photos", "--format", "csv").splitlines()
    assert len(lines) == 2 and SHOWN in lines[1]
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", "".join(lines))
    assert ODD in call("score", saved, tmp_path / "photos").stdout  # as they are where it is no terminal


def test_parquet_is_not_for_a_terminal(saved, terminal):
    with pytest.raises(Failure, match="Parquet is not for a terminal"):
        terminal("score", saved, PHOTOS / "cat.jpg", "--format", "parquet")


def test_messages(saved, tmp_path):
    for args, code in ((["score", saved, PHOTOS / "cat.jpg", ODD], 1), (["score", ODD, PHOTOS], 2)):
        stderr = call(*args, code=code).stderr
        assert f"error: {SHOWN}" in stderr or f"error: there is nothing at {SHOWN}" in stderr


def test_a_message_has_its_own_colour_alone(capsys, monkeypatch):
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda *args: False)
    say("\x1b[32mgreen.jpg", "red")
    assert capsys.readouterr().err == "\x1b[31m\\x1b[32mgreen.jpg\x1b[0m\n"


def test_a_warning(capsys, monkeypatch):
    import warnings

    with warnings.catch_warnings():
        call("list", "miners")
        warnings.showwarning(UserWarning(f"{ODD} is cut"), UserWarning, "x.py", 1)
    assert capsys.readouterr().err == f"warning: {SHOWN} is cut\n"


def test_a_path_that_is_printed(tmp_path, capsys, monkeypatch):
    show("a\x1b\nb")
    assert capsys.readouterr().out == "a\x1b\nb\n"
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda self: True)
    show("a\x1b\nb")
    assert capsys.readouterr().out == "a\\x1b\nb\n"


def test_all_verbs_print_so():
    """By `show`, `say` and `print_table`: click's own `echo` hands on what it is given."""
    verbs = [*Path(outword.cli.__file__).parent.glob("*_verb.py"), Path(outword.cli.__file__)]
    assert len(verbs) > 15
    assert not [path.name for path in verbs if re.search(r"click\.s?echo\(|\bprint\(", path.read_text())]
