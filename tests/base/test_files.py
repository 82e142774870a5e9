"""Files and folders under kill -9, SIGTERM and other processes: old or new, whole, nothing left behind, modes kept."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from outword.base import files
from outword.base.files import parse_json, sweep, whole_file, whole_folder
from outword.detector import artifact
from outword.detector.artifact import Saved
from outword.errors import ArtifactError

OLD, NEW = (Saved({}, {"labels": np.full(4, n)}, [name], [], [], []) for n, name in enumerate(("old", "new")))


@pytest.mark.parametrize("how", ["swapped", "moved", "file"])
def test_killed_at_every_step_there_is_the_old_one_or_the_new_one(tmp_path, how):
    script = Path(__file__).parents[1] / "helpers" / "killed.py"
    run = subprocess.run([sys.executable, script, tmp_path, how], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    seen, left = zip(*(line.split() for line in run.stdout.splitlines()), strict=True)
    assert set(seen[:-1]) == {"old", "new"} and seen[-1] == "new"
    assert set(left) == {"0"}
    assert len(seen) > 100 or how == "file"
    assert list(seen) == sorted(seen, reverse=True), "first the old one, then the new one"


def test_a_reader_sees_one_or_the_other(tmp_path):
    script = (
        "import sys; sys.path.insert(0, sys.argv[2]); from test_files import NEW, OLD;"
        "from outword.detector import artifact;"
        "print(flush=True); [artifact.save(sys.argv[1], one) for _ in range(50) for one in (NEW, OLD)]"
    )
    path = artifact.save(tmp_path / "a", OLD)
    command = [sys.executable, "-c", script, str(path), str(Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as run:
        run.stdout.readline()
        seen = {}
        while run.poll() is None:
            found = artifact.load(path)
            seen[found.labels[0]] = found.arrays["labels"][0]
    assert run.returncode == 0
    assert seen == {"old": 0, "new": 1}


def test_a_reader_waits_for_a_folder_that_is_moved(tmp_path, monkeypatch):
    """Where names cannot be swapped, there is a moment without the folder."""
    path = artifact.save(tmp_path / "a", OLD)
    path.rename(tmp_path / "away")
    monkeypatch.setattr("time.sleep", lambda _: (tmp_path / "away").exists() and (tmp_path / "away").rename(path))
    assert artifact.load(path).labels == ["old"]


def test_an_interrupt_between_two_moves_brings_the_old_one_back(tmp_path, monkeypatch):
    path = artifact.save(tmp_path / "a", OLD)
    monkeypatch.setattr(files, "_swap", lambda one, other: False)
    rename = Path.rename

    def stopped(one, other):
        if one.name == "new":
            raise KeyboardInterrupt
        return rename(one, other)

    monkeypatch.setattr(Path, "rename", stopped)
    with pytest.raises(KeyboardInterrupt):
        artifact.save(path, NEW)
    assert artifact.load(path).labels == ["old"]
    assert os.listdir(tmp_path) == ["a"]


def left_over(folder, machine=None, age=0.0):
    """What a process leaves that was killed while it wrote."""
    scratch = folder / f".outword-{machine or files._machine()}-{os.urandom(8).hex()}"
    scratch.mkdir()
    (scratch / "new").write_text("half")
    for path in (scratch / "new", scratch):
        os.utime(path, (time.time() - age,) * 2)
    return scratch


def test_what_others_write_is_not_swept(tmp_path):
    """The dead of this machine go at once, those of another after a day; the living, and what is not ours, stay."""
    dead, foreign, old = left_over(tmp_path), left_over(tmp_path, "0" * 8), left_over(tmp_path, "0" * 8, age=90_000)
    writing = left_over(tmp_path, "0" * 8, age=90_000)
    os.utime(writing / "new")
    strange = [tmp_path / name for name in (".outword", ".a.csv.0123456789abcdef", f"{dead.name}.txt")]
    for path in strange:
        path.write_text("mine")
    with whole_file(tmp_path / "a.csv") as temporary:
        sweep(tmp_path)
        assert [path.exists() for path in (dead, foreign, old, writing, temporary)] == [False, True, False, True, True]
    assert all(path.exists() for path in (*strange, tmp_path / "a.csv"))


def test_without_locks_a_day_must_pass(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)  # as on Windows
    young, old = left_over(tmp_path), left_over(tmp_path, age=90_000)
    with whole_file(tmp_path / "a") as temporary:
        temporary.write_text("new")
        sweep(tmp_path)
        assert [young.exists(), old.exists(), temporary.exists()] == [True, False, True]
    assert (tmp_path / "a").read_text() == "new"


def test_swept_before_it_was_locked(tmp_path, monkeypatch):
    """Another process may sweep between the making of a folder and the lock on it; then there is another folder."""
    lock, swept = files.lock, []

    def late(folder):
        if len(swept) < 2:
            swept.append(folder)
            folder.rmdir()
            if len(swept) == 2:
                raise BlockingIOError
        return lock(folder)

    monkeypatch.setattr(files, "lock", late)
    with whole_file(tmp_path / "a") as temporary:
        temporary.write_text("new")
    assert len(swept) == 2 and os.listdir(tmp_path) == ["a"]


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o664])
def test_overwriting_keeps_the_mode(tmp_path, umask, mode):
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(mode)
    (tmp_path / "link").symlink_to(path)
    with whole_file(tmp_path / "link") as temporary:
        temporary.write_text("new")
    assert (path.read_text(), mode_of(path), (tmp_path / "link").is_symlink()) == ("new", mode, True)


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_new_ones_follow_the_umask(tmp_path, umask, mask):
    umask(mask)
    with whole_file(tmp_path / "a") as temporary:
        temporary.write_text("new")
    with whole_folder(tmp_path / "b") as folder:
        (folder / "c").write_text("new")
    assert mode_of(tmp_path / "a") == mode_of(tmp_path / "b" / "c") == 0o666 & ~mask
    assert mode_of(tmp_path / "b") == 0o777 & ~mask


def test_a_folder_and_its_files_keep_their_modes(tmp_path, umask):
    path = artifact.save(tmp_path / "a", OLD)
    path.chmod(0o2750)
    (path / "labels.txt").chmod(0o600)
    artifact.save(path, NEW)
    assert (mode_of(path), mode_of(path / "labels.txt")) == (0o2750, 0o600)
    assert mode_of(path / "wild.txt") == 0o644


# SIGTERM

STOPPED = """
import os, signal, sys, threading, time
from pathlib import Path
import outword.words.labels
from outword.cli import main
from outword.base.files import whole_file

def slow(path, **options):
    threading.Thread(target=time.sleep, args=(0.2,)).start()
    with whole_file(Path(path)) as temporary:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)  # "timeout" sends it twice
            time.sleep(0.1)
            print("tidied up", flush=True)

outword.words.labels.read_labels = slow
main(["fit", sys.argv[1]])
"""


def test_sigterm_tidies_up_like_ctrl_c(tmp_path):
    run = subprocess.run([sys.executable, "-c", STOPPED, tmp_path / "a"], capture_output=True, text=True, timeout=50)
    assert (run.returncode, run.stdout, run.stderr) == (143, "tidied up\n", "terminated\n")
    assert os.listdir(tmp_path) == []


TIDYING = """
import os, signal, sys
from pathlib import Path
import outword.words.labels
from outword.base import files
from outword.cli import main

def write(path, **options):
    with files.whole_file(Path(path)) as temporary:
        temporary.write_text("all")

def clear(folder, clear=files._clear):
    files._clear = clear
    os.kill(os.getpid(), signal.SIGNUMBER)
    clear(folder)

files._clear = clear
outword.words.labels.read_labels = write
sys.argv[0] = "outword"
COMMAND
"""


@pytest.mark.parametrize("command", ["main()", "main(sys.argv[1:])"])
@pytest.mark.parametrize(("sign", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_within_the_clean_up_leaves_nothing_behind(tmp_path, sign, code, command):
    """`main()` is a command of its own; given arguments, it is part of another program."""
    script = TIDYING.replace("SIGNUMBER", sign).replace("COMMAND", command)
    run = subprocess.run([sys.executable, "-c", script, "fit", tmp_path / "a"], timeout=50, check=False)
    assert run.returncode == code
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("replaces", [True, False])
def test_what_is_cleared_under_another_thread_becomes_nothing(tmp_path, monkeypatch, replaces):
    """The main thread may hang, and go on: it must not put half a detector in its place, nor take the old one away."""
    monkeypatch.setattr(files, "TRIES", 2)
    path = artifact.save(tmp_path / "a", OLD) if replaces else tmp_path / "a"
    with pytest.raises((OSError, ArtifactError)), whole_folder(path) as new:
        (new / "labels.txt").write_text("half")
        files.clear_ours()
    assert os.listdir(tmp_path) == ["a"] * replaces
    assert not replaces or artifact.load(path).labels == ["old"]
    with pytest.raises(OSError), whole_file(tmp_path / "b") as temporary:
        temporary.write_text("half")
        files.clear_ours()
    assert os.listdir(tmp_path) == ["a"] * replaces


def test_the_signal_is_given_back(tmp_path):
    from click.testing import CliRunner

    from outword.cli import main

    before = signal.getsignal(signal.SIGTERM)
    assert CliRunner().invoke(main, ["fit", str(tmp_path / "no")]).exit_code == 2
    assert signal.getsignal(signal.SIGTERM) is before


def test_ray_does_not_keep_the_signal():
    """It takes SIGTERM when it starts, and exits with 15."""
    ray = pytest.importorskip("outword.scoring.ray", exc_type=ImportError)

    def ours(sign, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, ours)
    try:
        with pytest.raises(KeyboardInterrupt), ray._own_signals():
            signal.signal(signal.SIGTERM, lambda sign, frame: sys.exit(sign))
            os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is ours
    finally:
        signal.signal(signal.SIGTERM, before)


# JSON of unknown origin


@pytest.mark.parametrize(
    "text", ["[" * 10_000, '{"a":' * 500 + "1" + "}" * 500, "[" * 65 + "]" * 65, "1" * 5_000, b"\xff"]
)
def test_json_without_end_is_one_line(text):
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        parse_json(text)


def test_json_that_is_deep_enough():
    assert parse_json("[" * 64 + "]" * 64) == json.loads("[" * 64 + "]" * 64)
