"""How a command ends after a signal: in an orderly way where that works, and after a period of grace in any case.

Python acts on a signal in its main thread only, and there between two steps. So nothing happens while that thread is
in C code, or while another thread keeps the interpreter to itself; and at its end Python waits for the threads of its
pools, or stops the others in the midst of C++ code, which aborts the process. Hence three things, one behind the other:

1. The main thread gets a `KeyboardInterrupt`, tidies up, and leaves without waiting for threads (`leave`).
2. A thread sees each signal as it comes, and ends the process when the grace is over, whatever the others do.
3. A child process sees it too, and kills this one where not even that thread can run.

All of that is for a process which is a command (`watched`): a library leaves signals alone.
"""

from __future__ import annotations

import atexit
import math
import mmap
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from types import FrameType
from typing import NoReturn

GRACE = 1.5  # seconds in which a command may tidy up after a signal; a service has more (`allow`)
LAST = 0.5  # seconds for what is done without it: scratch folders, a line on stderr
OFTEN = 0.05  # seconds between two looks at the clock
STOPS = (signal.SIGINT, signal.SIGTERM)
WORDS: dict[int, str] = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
_held = threading.local()
_watched = threading.Event()  # this process is a command
_ending = threading.Event()  # a signal to end has come
_raised: list[int] = []  # the signal that `stop` raised
_child: list[int] = []  # the number of the child process


class Terminated(KeyboardInterrupt):
    """SIGTERM came: what Ctrl-C tidies up is tidied up for it too."""


def sign_of(stop: KeyboardInterrupt) -> int:
    """The number of the signal that was raised."""
    return signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT


def is_ending() -> bool:
    """Whether a signal to end has come: from then on nothing is waited for that may take long."""
    return _ending.is_set()


def note_signal() -> None:
    """Note that a signal to end has come, which this command handles in its own way."""
    if _watched.is_set():
        _ending.set()


def stop(sign: int, frame: FrameType | None) -> None:
    """Raise for the first signal of all: "timeout" and others send it twice, and people press Ctrl-C again."""
    if not is_ending():
        _ending.set()
        _raised[:] = [sign]
        raise Terminated if sign == signal.SIGTERM else KeyboardInterrupt


@contextmanager
def terminable() -> Iterator[None]:
    """A block in which SIGTERM is raised as `Terminated`, once."""
    here = threading.current_thread() is threading.main_thread()  # only there may signals be asked for
    if not here or signal.getsignal(signal.SIGTERM) is stop:
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        _ending.clear()


@contextmanager
def watched() -> Iterator[None]:
    """A block that is all that this process is for: SIGTERM and Ctrl-C end it, whatever hangs in it.

    It is left by `SystemExit`. After a signal, what the block has not tidied up when the grace is over stays undone,
    but for scratch folders: files are there whole or not at all, and killed runs go on where they were.
    """
    if not _watched.is_set():
        _begin()
    try:
        yield
    except SystemExit as done:
        if is_ending():
            leave(_exit_code(done))
        raise
    except KeyboardInterrupt as done:
        leave(128 + sign_of(done))
    except Exception:
        if not (is_ending() and _raised):
            raise
        _say(WORDS[_raised[0]])  # a library that was being loaded made an error of its own of the signal
        leave(128 + _raised[0])


def _exit_code(done: SystemExit) -> int:
    """The exit code, by Python's rules: None is 0, and a message is 1."""
    if done.code is None:
        return 0
    return done.code if isinstance(done.code, int) else 1


def allow(seconds: float) -> None:
    """Give this process another grace than `GRACE`."""
    struct.pack_into("d", _grace, 0, seconds)


def leave(code: int) -> NoReturn:
    """End the process now; what is to be done at its end is done, but no thread is waited for, or torn down.

    Python's own way would wait for a decode that hangs, and abort where a thread is in C++ code.
    """
    try:
        atexit._run_exitfuncs()
        _flush()
    finally:
        _end_child()
        os._exit(code)


class Deadline:
    """When a process must be gone, by the signals that came; Ctrl-C once more leaves it no more than `GRACE`."""

    def __init__(self) -> None:
        self.sign, self.until = 0, math.inf
        self._again = 0

    def update(self, signals: bytes) -> bool:
        """Take note of all signals that came so far; returns whether one of them is a signal to end."""
        stops = [sign for sign in signals if sign in STOPS]
        now = time.monotonic()
        if stops and not self.sign:
            self.sign, self.until = stops[0], now + struct.unpack_from("d", _grace)[0]
        again = stops[1:].count(signal.SIGINT)
        if again > self._again:
            self._again, self.until = again, min(self.until, now + GRACE)
        return bool(stops)

    def is_over(self, more: float = 0.0) -> bool:
        """Whether it has passed, by so many seconds."""
        return time.monotonic() >= self.until + more


_grace = mmap.mmap(-1, struct.calcsize("d"))  # shared with the child process
allow(GRACE)


def _begin() -> None:
    """Have signals seen by a thread, and where there is `fork` by a child; both until this process ends."""
    seen, written = socket.socketpair()
    written.setblocking(False)
    _start_child(seen, written)
    _watched.set()
    signal.set_wakeup_fd(written.detach(), warn_on_full_buffer=False)  # from C, whatever Python is at
    _separate_children()
    threading.Thread(target=_watch, args=(seen,), name="outword-ending", daemon=True).start()
    for sign in STOPS:
        if sign == signal.SIGTERM or signal.getsignal(sign) is signal.default_int_handler:  # else nohup and the like
            signal.signal(sign, stop)


@cache
def _separate_children() -> None:
    """Keep the signals of later child processes apart from those of this one; done once, as children inherit it."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_release_child)


def _start_child(seen: socket.socket, written: socket.socket) -> None:
    """Start the child process, where the system and its limits allow that."""
    parent = os.getpid()
    with suppress(OSError, AttributeError):
        child = os.fork()
        if not child:
            written.close()
            _outlast(seen, parent)
        _child[:] = [child]
        atexit.register(_end_child)


def _end_child() -> None:
    """End the child and take note of it: else it is left to a process that may do so late, or never."""
    with suppress(OSError, IndexError):  # somebody else took note of it
        child = _child.pop()
        if os.waitpid(child, os.WNOHANG) == (0, 0):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _hold() -> None:
    """Let no signal come while a child is made: it would be written where this process reads."""
    _held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)


def _release() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _held.mask)


def _release_child() -> None:
    """Make the signals of a child its own."""
    signal.set_wakeup_fd(-1)
    _child.clear()
    _watched.clear()
    _ending.clear()
    for sign, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        if signal.getsignal(sign) is stop:
            signal.signal(sign, usual)
    _release()


def _watch(seen: socket.socket) -> None:
    """End the process when its grace is over. Signals to end stay in the socket: the child sees them there."""
    deadline = Deadline()
    while not deadline.is_over():
        signals = seen.recv(4096, socket.MSG_PEEK)
        if not signals:
            return  # somebody closed the other side
        if deadline.update(signals):
            time.sleep(OFTEN)
        else:
            seen.recv(len(signals))
    last = threading.Thread(target=_tidy, args=(deadline.sign,), daemon=True)  # a disk or a terminal may hang, too
    try:
        last.start()
        last.join(LAST)
    finally:
        os._exit(128 + deadline.sign)


def _tidy(sign: int) -> None:
    if files := sys.modules.get("outword.base.files"):  # else nothing was written
        files.clear_ours()
    _say(f"{WORDS[sign]}: something did not end in time, and was left")
    _flush()


def _outlast(seen: socket.socket, parent: int) -> NoReturn:
    """What the child does: see the same signals, and kill a process that should be gone and is not."""
    try:
        for sign in STOPS:
            signal.signal(sign, signal.SIG_IGN)
        for stream in (0, 1):
            os.close(stream)
        deadline = Deadline()
        gone = select.poll()
        gone.register(seen, 0)  # no event is asked for: that the other side is closed is always reported
        while signals := seen.recv(4096, socket.MSG_PEEK):
            deadline.update(signals)
            if gone.poll(int(1000 * OFTEN)):
                break
            if deadline.is_over(LAST) and os.getppid() == parent:
                _say("killed: it could not act on a signal")
                os.kill(parent, signal.SIGKILL)
                break
    finally:
        os._exit(0)


def _say(line: str) -> None:
    with suppress(OSError):
        os.write(2, f"{line}\n".encode())


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # broken, closed, or none
            stream.flush()
