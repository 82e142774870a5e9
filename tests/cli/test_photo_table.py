"""What `outword score` prints for people, on a terminal, and for pipes: a table, or paths alone."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import PHOTOS, call
from outword import Prediction
from outword.cli.listing import PathLines
from outword.cli.photo_table import PhotoTable

pty = pytest.importorskip("pty")


def on_a_terminal(*arguments):
    """What a command prints on a terminal of 150 columns, without colours."""
    child, terminal = pty.fork()
    if not child:
        os.environ.update(COLUMNS="150", NO_COLOR="1")
        os.execv(sys.executable, [sys.executable, "-m", "outword", *map(str, arguments)])
    found = b""
    while True:
        try:
            data = os.read(terminal, 1 << 16)
        except OSError:  # it has ended
            break
        found += data
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), re.sub(r"\x1b\[[0-9;]*[mK]", "", found.decode())


def test_a_terminal_gets_a_table_and_a_pipe_csv(saved, tmp_path):
    for name in ("cat", "brick", "coffee"):
        shutil.copy(PHOTOS / f"{name}.jpg", tmp_path)
    (tmp_path / "bad.jpg").write_bytes(b"junk")
    code, shown = on_a_terminal("score", saved, tmp_path)
    assert code == 0 and "path,verdict" not in shown
    lines = [line.split() for line in shown.splitlines() if re.match(r"photo |needed|.*[.]jpg ", line)]
    assert lines[0] == ["photo", "verdict", "nearest", "label", "looks", "like", "fits", "better", "than"]
    assert [line[0].rpartition("/")[2] for line in lines[1:]][-3:] == ["needed", "brick.jpg", "bad.jpg"]
    assert [line[1] for line in lines[1:]] == ["in", "in", "to", "out", "error"]
    assert re.search(r"needed to be in: +\d+(\.\d+)? %", shown) and "4 images: 1 error, 2 in, 1 out" in shown
    code, shown = on_a_terminal("score", saved, tmp_path, "--format", "csv")
    assert code == 0 and "path,verdict,label" in shown and "looks like" not in shown
    piped = call("score", saved, tmp_path, "--format", "table").stdout
    assert piped.startswith("photo ") and call("score", saved, tmp_path).stdout.startswith("path,verdict")
    assert (
        "a table is for a terminal" in call("score", saved, tmp_path, "--format", "table", "-o", "a.csv", code=2).stderr
    )


def test_a_table_of_many_photos_has_the_ends(detector, capsys):
    table = PhotoTable(detector, shown=6)
    for place in range(100):
        verdict = "in" if place >= 98 else "out"
        numbers = {"score": float(place), "p": 1 - place / 100, "threshold": 98.0, "needed": 0.025}
        table(Prediction(f"{place}.jpg", verdict=verdict, nearest="dog", kind="beagle", **numbers))
    for place in range(12):
        table(Prediction(f"bad{place}.jpg", error="empty"))
    table.close()
    lines = capsys.readouterr().out.splitlines()[1:]
    first = [line.split("  ")[0] for line in lines]
    assert first[:5] == ["99.jpg", "98.jpg", "needed to be in:", "97.jpg", "... and 94 more"]
    assert first[5:9] == ["2.jpg", "1.jpg", "0.jpg", "bad0.jpg"] and first[-1] == "... and 2 more"
    assert "dog (beagle)" in lines[0] and lines[2].endswith("97.5 %") and len(lines) == 19


def test_only_some_verdicts_and_paths_alone(saved, tmp_path):
    names = ["cat", "brick", "coffee"]
    for name in names:
        shutil.copy(PHOTOS / f"{name}.jpg", tmp_path)
    (tmp_path / "bad.jpg").write_bytes(b"junk")
    kept = [str(tmp_path / f"{name}.jpg") for name in ("cat", "coffee")]
    result = call("score", saved, tmp_path, "--only", "in", "--paths")
    assert result.stdout.splitlines() == kept and "4 images: 1 error, 2 in, 1 out" in result.stderr
    assert call("score", saved, tmp_path, "--only", "in", "-0").stdout == "".join(f"{path}\0" for path in kept)
    assert call("score", saved, tmp_path, "--only", "error", "--paths").stdout == f"{tmp_path}/bad.jpg\n"
    rows = call("score", saved, tmp_path, "--only", "out").stdout.splitlines()
    assert len(rows) == 2 and rows[1].startswith(f"{tmp_path}/brick.jpg,out,,")
    assert "got -o a.csv as well" in call("score", saved, tmp_path, "--paths", "-o", "a.csv", code=2).stderr
    assert "cannot be written in parts" in call("score", saved, tmp_path, "--only", "in", "-o", "a/", code=2).stderr


def test_paths_are_bytes_and_one_with_a_line_break_needs_a_zero_byte(tmp_path, capsys):
    names = ["caf\udce9.jpg", "a\nb.jpg"]
    for null, wanted in ((False, b"caf\xe9.jpg\n"), (True, b"caf\xe9.jpg\0a\nb.jpg\0")):
        with (tmp_path / "paths").open("wb") as file:
            lines = PathLines(file, null=null)
            for name in names:
                lines(Prediction(name))
            lines.close()
        assert (tmp_path / "paths").read_bytes() == wanted
    assert capsys.readouterr().err == "warning: 1 path is left out, as it has a line break: use -0\n"


def test_a_pipe_that_closes_early_is_no_traceback(saved):
    command = f'"{sys.executable}" -m outword score "{saved}" "{PHOTOS}" --paths | head -1'
    run = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert run.stdout.endswith("astronaut.jpg\n") and "Traceback" not in run.stderr
