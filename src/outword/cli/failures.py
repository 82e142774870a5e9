"""What goes wrong on the command line, in one style: a line that says what, and what to do next; and exit codes."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from outword.base.checks import unknown
from outword.cli.progress import say
from outword.errors import InputError, OutwordError, ParameterError

_EXTRA = re.compile(r"unexpected extra arguments? \((.*)\)")


class Failure(click.ClickException):
    """An error of the command or its input, as people see it: one line, and what to do next."""

    exit_code = 2

    def __init__(self, error: OutwordError) -> None:
        super().__init__(error.message)
        self.hint = error.hint

    def show(self, file: Any = None) -> None:
        """Print to stderr."""
        say(f"error: {self.message}")
        if self.hint:
            say(f"hint: {self.hint}")


class Unread(Failure):
    """The command is well, but nothing could be read, or not all that was named."""

    exit_code = 1


@contextmanager
def failing(ctx: click.Context | None = None) -> Iterator[None]:
    """A block in which what goes wrong on purpose becomes a `Failure`: errors of ours, and those of click.

    `ctx` is that of the group whose verb runs.
    """
    try:
        yield
    except OutwordError as error:
        raise Failure(error) from error
    except click.UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # that is the help itself
            raise
        verb = f"{ctx.command_path} {ctx.invoked_subcommand}" if ctx else "outword"
        raise Failure(_told(error, error.ctx.command_path if error.ctx else verb)) from error


def _told(error: click.UsageError, verb: str) -> ParameterError:
    """What click says of a command line, in our words."""
    see = f"{verb} --help"
    if isinstance(error, click.NoSuchOption) and error.ctx:
        known = [name for option in error.ctx.command.get_params(error.ctx) for name in option.opts]
        return unknown("option", error.option_name, [name for name in known if name.startswith("-")], see)
    message = " ".join(error.format_message().split()).rstrip(".")
    extra = _EXTRA.search(message)
    hint = _about_extra(error.ctx, extra[1].split()) if error.ctx and extra else ""
    return ParameterError(message[:1].lower() + message[1:], hint=f'{hint}see "{see}"')


def _about_extra(ctx: click.Context, extra: Sequence[str]) -> str:
    """What to do about arguments that a verb does not take, as far as one can guess."""
    if again := _repeated(ctx):
        return f"an option is given once for each path: {again} A {again} B; "
    labels = ctx.params.get("labels")
    if ctx.info_name != "fit" or labels is None:
        return ""
    written = [one for one in (labels, *extra) if one.endswith(".outword")]
    if written:
        others = " ".join(shlex.quote(one) for one in (labels, *extra) if one not in written)
        return f"the detector is written where -o says: outword fit {others} -o {shlex.quote(written[0])}; "
    there = [os.path.exists(one) for one in (labels, *extra)]  # noqa: PTH110  # what is typed may be no path
    if not any(there):
        return f"commas separate class names: outword fit {shlex.quote(', '.join((labels, *extra)))}; "
    return "fit takes class names alone, and photos come with score: outword score DETECTOR PHOTOS; "


def _repeated(ctx: click.Context) -> str | None:
    """An option of the command line that may be given more than once, if there is one."""
    options = (option for option in ctx.command.get_params(ctx) if isinstance(option, click.Option))
    return next((option.opts[0] for option in options if option.multiple and ctx.params.get(option.name or "")), None)


class Group(click.Group):
    """Verbs: their help is never cut, and one that does not exist has the nearest as a suggestion."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs with the first sentence about each."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.get_short_help_str(limit=10_000)) for name, verb in found if verb])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that is meant."""
        known = self.list_commands(ctx)
        if not ctx.resilient_parsing and not args[0].startswith("-") and args[0] not in known:
            raise unknown("verb", args[0], known, f"{ctx.command_path} --help")
        return super().resolve_command(ctx, args)


def check_outcome(paths: Sequence[str], n_images: int, n_errors: int) -> None:
    """Raise, with the exit code 1, if no image was found or could be read, or nothing is behind one of the paths."""
    from outword.photos.sources.patterns import check_there

    if not n_images:
        hint = "name photos, or folders of photos; a file counts by its suffix (docs/scale.md)"
        raise Unread(InputError("no images found", hint=hint))
    try:
        check_there(paths if n_errors else ())
    except InputError as error:
        raise Unread(error) from error
    if n_errors == n_images:
        told = "the image could not be judged" if n_images == 1 else f"none of {n_images:,} images could be judged"
        raise Unread(InputError(told, hint="what is said of each tells why"))
