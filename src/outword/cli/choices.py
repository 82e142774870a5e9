"""Names for options: completed by the shell, checked by the library, listed by `outword list`."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from outword.base.checks import unknown
from outword.base.registry import LISTS, Registry
from outword.errors import InputError, MissingExtraError


class Named(click.ParamType):  # type: ignore[type-arg]
    """A name from one of the registries; other values (a file, a template) pass, the library checks them."""

    name = "name"

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin as typed."""
        try:
            known = registry(self.kind)
        except MissingExtraError:  # a list of another package
            known = {}
        return [CompletionItem(name) for name in known if name.startswith(incomplete)]


REGISTRIES = {
    "encoders": "outword.encoders:ENCODERS",
    "corpora": "outword.words.corpora:CORPORA",
    "methods": "outword.maths.methods:DETECTORS",
    "miners": "outword.maths.mining:MINERS",
}


def registry(kind: str) -> dict[str, str]:
    """Names and one line about each."""
    if kind in REGISTRIES:
        return the_registry(kind).about()
    if kind == "prompts":
        from outword.words.prompts import PROMPTS

        return {name: prompts.label[0] for name, prompts in PROMPTS.items()}
    return {row["name"]: row["about"] for row in LISTS[kind]()}


def the_registry(kind: str) -> Registry[Any]:
    """Where things of a kind are registered."""
    module, _, name = REGISTRIES[kind].partition(":")
    known: Registry[Any] = getattr(import_module(module), name)
    return known


def named(text: str, known: Collection[str], kind: str, see: str) -> list[str]:
    """The names of a list with commas, each once; raises for one that is not known, and where there is none.

    A name may have a comma itself, "coop, 4 shots": the longest that is known counts.
    """
    parts, names = [name.strip() for name in text.split(",") if name.strip()], list[str]()
    while parts:
        taken = next((n for n in range(len(parts), 1, -1) if ", ".join(parts[:n]) in known), 1)
        names.append(", ".join(parts[:taken]))
        parts = parts[taken:]
    names = list(dict.fromkeys(names))
    if not names:
        raise InputError("--methods must name at least one method, got none", hint=f'see "{see}"')
    for name in names:
        if name not in known:
            raise known.unknown(name) if isinstance(known, Registry) else unknown(kind, name, known, see)
    return names
