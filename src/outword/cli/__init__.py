"""The command line: one verb, one file. Data goes to stdout, everything else to stderr."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from outword._version import __version__
from outword.base import lab
from outword.base.ending import WORDS, sign_of, terminable, watched
from outword.base.extras import install, lacks_memory
from outword.base.registry import VERBS as MORE_VERBS
from outword.base.waiting import show_downloads, show_waits
from outword.cli.failures import Failure, Group, failing
from outword.cli.progress import Spinner, say, shown_download
from outword.errors import InputError, MissingExtraError, OutwordError, WeakLabelsWarning

VERBS = (
    "demo", "labels", "fit", "score", "find", "filter", "check", "calibrate", "explain", "serve", "tune", "compare",
    "embed", "reference", "export", "bundle", "pull", "list", "doctor", "cache", "completion",
)  # fmt: skip


@contextmanager
def stoppable() -> Iterator[None]:
    """A block from which a signal leads to the exit code of that signal."""
    try:
        yield
    except KeyboardInterrupt as stop:
        sign = sign_of(stop)
        say(WORDS[sign])
        raise click.exceptions.Exit(128 + sign) from None


class Verbs(Group):
    """Imports a verb's file when the verb is used, and turns expected errors into one line."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **extra: Any) -> Any:
        """Run a command line: that of this process, or one that a program gives, and goes on afterwards."""
        if args is not None or threading.current_thread() is not threading.main_thread():
            return super().main(args, *more, **extra)
        with watched():
            return super().main(None, *more, **extra)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs, in the order in which they are used."""
        more = [name for name in MORE_VERBS if name not in VERBS]
        return [*VERBS, *more, *lab.names(MORE_VERBS.group, MORE_VERBS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's command."""
        if cmd_name in VERBS:
            command = import_module(f"outword.cli.{cmd_name.replace('-', '_')}_verb").command
        elif cmd_name in MORE_VERBS:
            command = MORE_VERBS[cmd_name]
        elif lacks := lab.missing(MORE_VERBS.group, cmd_name):
            command = _missing(cmd_name, lacks)
        else:
            return None
        assert isinstance(command, click.Command)
        return command

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the options before the verb; a verb of another package that cannot be loaded is a warning by then."""
        warnings.showwarning = lambda message, *_: say(f"warning: {message}")
        with stoppable(), failing():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb."""
        try:
            with stoppable(), terminable(), failing(ctx):
                return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (MemoryError, ImportError) as error:  # a library that cannot be loaded into what is left
            if not lacks_memory(error):
                raise
            raise Failure(OutwordError("there is not enough memory", hint="close other programs")) from error
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            told = InputError(f"{where}{error.strerror or error}", hint="check the path and the disk")
            raise Failure(told) from error


def _missing(name: str, error: MissingExtraError) -> click.Command:
    """A verb that is not installed: whatever it is given, it says which command brings it."""

    def tell() -> None:
        raise error

    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    about = f"({lab.PACKAGE}, not installed: {install('lab')})"
    return click.Command(name, callback=tell, help=about, context_settings=anything, add_help_option=False)


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="outword")
def main() -> None:
    """Tell whether a photo shows one of your classes, given nothing but their names.

    \b
    Example:
      outword score --labels "cat, dog" photos/ --html page.html
      outword fit labels.txt -o pets.outword
      outword score pets.outword photos/

    \b
    Exit codes:
      0    done; photos that could not be read are rows with an error
      1    no photo could be read, or a check failed; of score, explain and embed
           also if nothing is at a path: the other photos are done all the same
      2    the command or its input is wrong; of all other verbs, and of score
           with -o FOLDER/, also if nothing is at a path: nothing is begun
      130  interrupted by Ctrl-C (143: terminated)
    """
    warnings.filterwarnings("ignore", module=r"PIL\.")  # damaged metadata; the image itself is read or is an error row
    warnings.filterwarnings("ignore", category=WeakLabelsWarning)  # the verbs say more of each label themselves
    show_waits(Spinner)
    show_downloads(shown_download)
