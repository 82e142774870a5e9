"""Named sets of prompt templates: how a word becomes the sentences that a text encoder reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outword.base.checks import unknown
from outword.errors import ParameterError


@dataclass(frozen=True)
class Prompts:
    """Templates with one `{}` each, for wild nouns, wild adjectives and ID labels.

    Several templates a word are one text vector each; average them first, then normalise.
    """

    name: str
    noun: tuple[str, ...]
    adjective: tuple[str, ...]
    label: tuple[str, ...]

    def render(self, words: Sequence[str], kinds: Sequence[str]) -> list[list[str]]:
        """Fill in the templates: one list of sentences a word; `kinds` are "noun", "adj" or "label".

        >>> get_prompts("released").render(["cat", "red"], ["noun", "adj"])
        [['the nice cat'], ['This is a red photo']]
        """
        templates = {"noun": self.noun, "adj": self.adjective, "label": self.label}
        return [
            [template.replace("{}", word) for template in templates[kind]]
            for word, kind in zip(words, kinds, strict=True)
        ]


def _same(name: str, *templates: str) -> Prompts:
    """One list of templates for all kinds of words."""
    return Prompts(name, templates, templates, templates)


# CSP (Chen et al., NeurIPS 2024), class_names.py of github.com/MengyuanChen21/NeurIPS2024-CSP: some templates end in a
# full stop and some do not. There an adjective is first joined to a superclass noun ("red scene").
_CSP_NOUN = (
    "a close-up photo of the nice {}.",
    "a photo with the nice {}.",
    "a good photo with the nice {}.",
    "a photo of the nice {}.",
    "{}",
    "the {}",
    "the good {}",
    "the nice {}",
)
_CSP_ADJECTIVE = ("{}", "a nice photo of {}", "a good photo of {}", "a close-up photo of {}")

PROMPTS = {
    prompts.name: prompts
    for prompts in (
        _same("paper", "The nice {}."),  # as the paper prints it
        Prompts("released", noun=("the nice {}",), adjective=("This is a {} photo",), label=("the nice {}",)),
        _same("mcm", "a photo of a {}"),
        _same("zoc", "This is a photo of a {}"),
        Prompts("csp", noun=_CSP_NOUN, adjective=_CSP_ADJECTIVE, label=_CSP_NOUN),
        _same("mini", "a photo of a {}"),  # the embedded encoder's own
    )
}


def get_prompts(name_or_template: str) -> Prompts:
    """Give a named set (a key of `PROMPTS`), or a set of your own: one template for all words, with `{}` for the word.

    >>> get_prompts("a picture of a {}").render(["cat"], ["label"])
    [['a picture of a cat']]
    """
    if name_or_template in PROMPTS:
        return PROMPTS[name_or_template]
    if name_or_template.isidentifier():
        raise unknown("prompts", name_or_template, PROMPTS, "outword list prompts")
    if name_or_template.count("{}") != 1 or set(name_or_template.replace("{}", "")) & set("{}"):
        hint = f'write "a photo of a {{}}", or one of {", ".join(PROMPTS)}'
        raise ParameterError(f"a prompt template must hold {{}} exactly once, got {name_or_template!r}", hint=hint)
    return _same(name_or_template, name_or_template)
