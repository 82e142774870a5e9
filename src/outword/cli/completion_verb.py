"""`outword completion`: tab completion for the shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from outword.cli.progress import show


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    Example:
      eval "$(outword completion bash)"
    """
    kind = get_completion_class(shell)
    assert kind is not None
    show(kind(ctx.find_root().command, {}, "outword", "_OUTWORD_COMPLETE").source())
