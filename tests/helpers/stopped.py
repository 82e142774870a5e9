"""A command in a process of its own that stops at an exact place, to be killed there, or to go on."""

import os
import subprocess
import sys
from contextlib import contextmanager

CHILD = """
import os, sys
from importlib import import_module
from itertools import count
here, go, place, number, *arguments = sys.argv[1:]
module, _, name = place.partition(":")
owner = import_module(module)
*outer, name = name.split(".")
for one in outer:
    owner = getattr(owner, one)
real, calls = getattr(owner, name), count()

def stop(*args, **named):
    if next(calls) == int(number):
        os.write(int(here), b".")
        os.read(int(go), 1)
    return real(*args, **named)

setattr(owner, name, stop)
from outword.cli import main
main(arguments)
"""


@contextmanager
def stopped(place, number, *arguments):
    """Run `outword ARGUMENTS` up to a call, counted from 0, of "module:function"; it goes on when the block ends.

    Gives the process: `kill()` it in the block, or see afterwards how it ended.
    """
    (told, here), (go, let) = os.pipe(), os.pipe()
    command = [sys.executable, "-c", CHILD, here, go, place, number, *arguments]
    process = subprocess.Popen(list(map(str, command)), pass_fds=(here, go), stderr=subprocess.DEVNULL)
    os.close(here)
    os.close(go)
    try:
        assert os.read(told, 1) == b".", "it ended before"
        yield process
    finally:
        os.close(let)
        os.close(told)
        process.wait()
