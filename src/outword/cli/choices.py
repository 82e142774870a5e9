"""Names for options: completed by the shell, checked by the library, listed by `outword list`."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


class Named(click.ParamType):  # type: ignore[type-arg]
    """A name from one of the registries; other values (a file, a template) pass, the library checks them."""

    name = "name"

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin as typed."""
        return [CompletionItem(name) for name in registry(self.kind) if name.startswith(incomplete)]


def registry(kind: str) -> dict[str, str]:
    """Names and one line about each."""
    if kind == "encoders":
        from outword.encoders import ENCODERS

        return ENCODERS
    if kind == "corpora":
        from outword.words.corpora import CORPORA

        return CORPORA
    if kind == "methods":
        from outword.maths.methods import DETECTORS

        return {name: method.summary for name, method in DETECTORS.items()}
    if kind == "miners":
        from outword.maths.mining import MINERS

        return {name: (miner.__doc__ or "").split("\n")[0] for name, miner in MINERS.items()}
    if kind == "suites":
        from outword.benchmark.run.suite import read_suite, suite_names

        return {name: read_suite(name).title for name in suite_names()}
    from outword.words.prompts import PROMPTS

    return {name: prompts.label[0] for name, prompts in PROMPTS.items()}


KINDS = ["encoders", "corpora", "methods", "miners", "prompts", "suites"]
