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

        return ENCODERS.about()
    if kind == "corpora":
        from outword.words.corpora import CONJUGATED, CORPORA

        joined = 'another of these, its adjectives joined to broad nouns ("fluffy scene"); CSP\'s pool'
        return {**CORPORA.about(), f"{CONJUGATED}NAME": joined}
    if kind == "methods":
        from outword.maths.methods import DETECTORS

        return DETECTORS.about()
    if kind == "miners":
        from outword.maths.mining import MINERS

        return MINERS.about()
    if kind == "suites":
        from outword.benchmark.run.suite import read_suite, suite_names

        return {name: read_suite(name).title for name in suite_names()}
    from outword.words.prompts import PROMPTS

    return {name: prompts.label[0] for name, prompts in PROMPTS.items()}


KINDS = ["encoders", "corpora", "methods", "miners", "prompts", "suites"]
