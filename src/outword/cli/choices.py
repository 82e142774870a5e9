"""Names for options: completed by the shell, checked by the library, listed by `outword list`."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from outword.base.registry import Registry
from outword.errors import InputError, unknown


class Named(click.ParamType):  # type: ignore[type-arg]
    """A name from one of the registries; other values (a file, a template) pass, the library checks them."""

    name = "name"

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin as typed."""
        return [CompletionItem(name) for name in registry(self.kind) if name.startswith(incomplete)]


REGISTRIES = {
    "encoders": "outword.encoders:ENCODERS",
    "corpora": "outword.words.corpora:CORPORA",
    "methods": "outword.maths.methods:DETECTORS",
    "miners": "outword.maths.mining:MINERS",
}
KINDS = [*REGISTRIES, "prompts", "suites"]


def registry(kind: str) -> dict[str, str]:
    """Names and one line about each."""
    if kind in REGISTRIES:
        module, _, name = REGISTRIES[kind].partition(":")
        known: Registry[object] = getattr(import_module(module), name)
        return known.about()
    if kind == "suites":
        from outword.benchmark.run.suite import read_suite, suite_names

        return {name: read_suite(name).title for name in suite_names()}
    from outword.words.prompts import PROMPTS

    return {name: prompts.label[0] for name, prompts in PROMPTS.items()}


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
            raise unknown(kind, name, known, see)
    return names
