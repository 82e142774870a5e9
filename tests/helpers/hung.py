"""A command in a process of its own that hangs for good at an exact place, in C code, as a decoder or a disk does."""

import os
import subprocess
import sys
from contextlib import contextmanager

CHILD = """
import ctypes, os, sys
from importlib import import_module
from outword.base import ending
here, how, place, grace, *arguments = sys.argv[1:]
sys.argv = ["outword", *arguments]
module, _, name = place.partition(":")
owner = import_module(module)
*outer, name = name.split(".")
for one in outer:
    owner = getattr(owner, one)

def hang(*args, **named):
    lock = ctypes.create_string_buffer(64)  # all zeros: a mutex that is free
    library = ctypes.PyDLL(None) if how == "holding" else ctypes.CDLL(None)
    begun = False
    while True:
        try:
            if not begun:
                begun = True
                os.write(int(here), b".")
            library.pthread_mutex_lock(lock)  # the second time for ever; signals do not end it
        except BaseException:  # a signal came just before
            pass

setattr(owner, name, hang)
ending.GRACE, ending.LAST = float(grace), 0.2
ending.allow(ending.GRACE)
from outword.cli import main
main()
"""


@contextmanager
def hung(place, *arguments, holding=False, grace=0.2):
    """Run `outword ARGUMENTS` up to a call of "module:function", which never returns; gives the process.

    With `holding` the function keeps the interpreter for itself, so that no thread of Python runs.
    """
    told, here = os.pipe()
    how = "holding" if holding else "free"
    command = [sys.executable, "-c", CHILD, here, how, place, grace, *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(list(map(str, command)), pass_fds=[here], **pipes) as process:
        os.close(here)
        try:
            yield process, told
        finally:
            process.kill()
            os.close(told)
