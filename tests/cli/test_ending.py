"""Signals end a command whatever hangs in it, with the exit code of the signal, and leave nothing behind."""

import math
import os
import signal
import subprocess
import sys
import threading

import pytest

from conftest import PHOTOS, call
from helpers.hung import hung
from helpers.served import ask, form
from outword.base import ending
from outword.base.ending import Deadline

DECODE = "PIL.ImageFile:ImageFile.load"  # in a thread
READ = "outword.photos.decode:open_file"
SCORE = "outword.scoring.runs:score_jobs"  # in the main thread, while the output is open
CAT = PHOTOS / "cat.jpg"
CODES = {signal.SIGTERM: (143, "terminated"), signal.SIGINT: (130, "interrupted")}
LEFT = "something did not end in time, and was left"


def ended(running, sign, code):
    """What a process says that hangs, and ends after a signal with this code."""
    process, told = running
    assert os.read(told, 1) == b".", process.communicate()
    process.send_signal(sign)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == code, said
    return said


@pytest.mark.parametrize(
    ("verb", "place", "sign"),
    [
        ("score", DECODE, signal.SIGTERM),
        ("score", READ, signal.SIGINT),
        ("filter", DECODE, signal.SIGTERM),
        ("embed", DECODE, signal.SIGINT),
    ],
)
def test_a_decode_or_a_read_that_hangs_is_not_waited_for(saved, tmp_path, verb, place, sign):
    code, word = CODES[sign]
    out = tmp_path / "out"
    out.mkdir()
    given = {"score": [saved], "filter": ["--detector", saved], "embed": []}[verb]
    target = out / "a.csv" if verb == "score" else out / "a"
    with hung(place, verb, *given, CAT, "-o", target, grace=30) as running:
        said = ended(running, sign, code)
    assert said.endswith(f"{word}\n") and LEFT not in said  # in the orderly way, and long before the grace is over
    assert not list(out.rglob(".outword-*"))
    assert verb != "score" or os.listdir(out) == []


def test_a_main_thread_that_hangs_is_left(saved, tmp_path):
    """It cannot tidy up: what it was writing is removed from outside."""
    out = tmp_path / "out"
    out.mkdir()
    with hung(SCORE, "score", saved, CAT, "-o", out / "a.csv") as running:
        assert f"terminated: {LEFT}\n" in ended(running, signal.SIGTERM, 143)
    assert os.listdir(out) == []


def test_code_that_keeps_the_interpreter_for_itself_is_killed(saved, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    with hung(DECODE, "score", saved, CAT, "-o", out / "a.csv", holding=True) as running:
        assert ended(running, signal.SIGTERM, -signal.SIGKILL).endswith("killed: it could not act on a signal\n")
    call("score", saved, CAT, "-o", out / "a.csv")  # which sweeps
    assert os.listdir(out) == ["a.csv"]


# The end of a service


@pytest.mark.parametrize("holding", [False, True])
def test_a_service_ends_though_a_decode_hangs(saved, tmp_path, holding):
    given = ["serve", saved, "--port", "0", "--limit", "seconds=0.1"]
    with hung(DECODE, *given, holding=holding) as running:
        address = running[0].stdout.readline().strip()
        asks = threading.Thread(target=score, args=(address,))
        asks.start()
        said = ended(running, signal.SIGTERM, -signal.SIGKILL if holding else 0)
        asks.join()
    assert ("stopped\n" in said) != holding


def score(address):
    body, kind = form(("a", CAT.read_bytes()))
    try:
        return ask(address, "POST", "/v1/score", body, kind=kind)[0]
    except OSError:  # cut off
        return 0


def test_threads_in_other_peoples_code_do_not_abort_the_end(saved):
    """A fit goes on when nobody waits for it any more; the C++ of its encoder must not see the interpreter go."""
    prepare = """
import sys, threading
from outword.serve import server
from outword.encoders import get_encoder

def forever():
    while True:
        get_encoder("mini").encode_texts(["a photo of a dog"] * 64)

class Server(server.Server):
    def run(self, sockets):
        for _ in range(4):
            threading.Thread(target=forever, daemon=True).start()
        super().run(sockets)

server.Server = Server
sys.argv[0] = "outword"
from outword.cli import main
main()
"""
    command = [sys.executable, "-c", prepare, "serve", str(saved), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=30)[1]
    assert (process.returncode, "terminate called" in said) == (0, False)


# One by one


CHILDREN = """
import multiprocessing, os, signal, sys, time
import outword.words.labels
from outword.base import ending
from outword.cli import main

def read(path, **options):
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    child.start()
    child.terminate()  # SIGTERM
    child.join()
    print("child", child.exitcode)
    time.sleep(0.3)
    raise SystemExit(5)

outword.words.labels.read_labels = read
ending.allow(0.1)
sys.argv = ["outword", "fit", "a"]
main()
"""


def test_the_signal_of_a_child_is_not_that_of_the_command():
    run = subprocess.run([sys.executable, "-c", CHILDREN], capture_output=True, text=True, timeout=20)
    assert run.returncode == 5, run.stderr
    assert run.stdout == f"child {-signal.SIGTERM}\n"


TWICE = """
import multiprocessing, signal, sys
import outword.words.labels
from outword.cli import main

def read(path, **options):
    raise SystemExit(5)

def again():
    for _ in range(2):
        try:
            main()
        except SystemExit:
            pass
    child = multiprocessing.get_context("fork").Process(target=sys.exit)
    child.start()
    child.join()
    print("blocked", len(signal.pthread_sigmask(signal.SIG_BLOCK, [])), flush=True)

outword.words.labels.read_labels = read
sys.argv = ["outword", "fit", "a"]
again()
child = multiprocessing.get_context("fork").Process(target=again)
child.start()
child.join()
"""


def test_a_command_line_that_runs_again():
    run = subprocess.run([sys.executable, "-c", TWICE], capture_output=True, text=True, timeout=30)
    assert (run.returncode, run.stdout) == (0, "blocked 0\nblocked 0\n"), run.stderr


AFTERWARDS = """
import ctypes, os, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # what its children leave behind is this process's
run = subprocess.run([sys.executable, "-m", "outword", *sys.argv[1:]], stdout=subprocess.DEVNULL)
try:
    print(run.returncode, os.waitpid(-1, 0))
except ChildProcessError:
    print(run.returncode, "nothing is left")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="children without a parent go elsewhere")
@pytest.mark.parametrize(("verb", "code"), [("--version", 0), ("nonsense", 2)])
def test_no_process_is_left_behind(verb, code):
    run = subprocess.run([sys.executable, "-c", AFTERWARDS, verb], capture_output=True, text=True, timeout=30)
    assert run.stdout == f"{code} nothing is left\n", run.stderr


LOADING = """
import os, signal, sys
import outword.words.labels
from outword.cli import main

def read(path, **options):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        sum(range(100000))
    except KeyboardInterrupt:
        raise ImportError("initialization failed") from None  # as onnxruntime does

outword.words.labels.read_labels = read
sys.argv = ["outword", "fit", "a"]
main()
"""


def test_a_signal_that_a_library_makes_an_error_of():
    run = subprocess.run([sys.executable, "-c", LOADING], capture_output=True, text=True, timeout=20)
    assert (run.returncode, run.stderr) == (130, "interrupted\n")


def test_a_library_leaves_signals_alone(detector):
    before = [signal.getsignal(sign) for sign in CODES]
    detector.predict(CAT)
    call("list", "methods")
    assert [signal.getsignal(sign) for sign in CODES] == before
    assert signal.set_wakeup_fd(-1) == -1
    assert not ending.is_ending()


def test_signals_are_counted_from_the_first_one(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    deadline = Deadline()
    assert not deadline.update(bytes([signal.SIGCHLD])) and not deadline.is_over() and deadline.until == math.inf
    monkeypatch.setattr(ending, "GRACE", 1.5)
    ending.allow(90)
    try:
        assert deadline.update(bytes([signal.SIGCHLD, signal.SIGTERM]))
    finally:
        ending.allow(1.5)
    now[0] += 1
    deadline.update(bytes([signal.SIGTERM, signal.SIGTERM]))  # as "timeout" does it
    assert (deadline.sign, deadline.until) == (signal.SIGTERM, 190)
    for _ in range(2):  # Ctrl-C once more, which stays to be seen
        deadline.update(bytes([signal.SIGTERM, signal.SIGTERM, signal.SIGINT]))
        now[0] += 1
    assert deadline.until == 102.5
    assert deadline.is_over() and not deadline.is_over(0.6)
