"""`outword cache`: where the cache is, how large, and a way to empty it."""

from __future__ import annotations

import json
from typing import Any

import click

from outword.base.cache import KINDS, MB, Entry, cache_dir, cache_limit, clear, entries
from outword.base.wording import counted
from outword.cli.progress import print_table, say, show


@click.command("cache")
@click.argument("kinds", nargs=-1, metavar="[KINDS]...", type=click.Choice(list(KINDS)))
@click.option("--clear", "clearing", is_flag=True, help="Remove KINDS, by default all that is made anew when needed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(kinds: tuple[str, ...], clearing: bool, as_json: bool) -> None:
    """Show where the cache is and how large its KINDS are, by default all, or remove them with --clear.

    Nothing is lost with what --clear removes: it is made anew when it is needed, which takes time. Runs that were
    killed and go on (learning, no), and the references that you made (reference), are removed only if you name them.
    The encoders that were fetched are in a cache of the hub, which "outword doctor" shows.

    OUTWORD_CACHE is the folder. If there are more than OUTWORD_CACHE_MB megabytes in it, by default 4,000, what was
    used least recently is removed.

    \b
    Example:
      outword cache
      outword cache --clear
      outword cache detectors names --clear
    """
    removed = clear(kinds) if clearing else []
    found = {kind: entries(kind) for kind in kinds or KINDS}
    if as_json:
        show(json.dumps(_facts(found, removed, clearing=clearing), indent=2))
        return
    show(f"{cache_dir()}, at most {cache_limit() // MB:,} MB")
    rows = [(kind, len(some), _megabytes(some), KINDS[kind].about) for kind, some in found.items()]
    print_table(("kind", "entries", "MB", "what it has"), rows, right=("entries", "MB"))
    if clearing:
        say(f"removed {counted(len(removed), 'entry', 'entries')}, {_megabytes(removed)} MB")


def _facts(found: dict[str, list[Entry]], removed: list[Entry], *, clearing: bool) -> dict[str, Any]:
    kinds = {kind: _sizes(some) for kind, some in found.items()}
    told = {"path": str(cache_dir()), "limit_bytes": cache_limit(), "kinds": kinds}
    return {**told, "removed": _sizes(removed)} if clearing else told


def _sizes(some: list[Entry]) -> dict[str, int]:
    return {"entries": len(some), "bytes": sum(entry.bytes for entry in some)}


def _megabytes(some: list[Entry]) -> str:
    return f"{sum(entry.bytes for entry in some) / MB:,.1f}"
