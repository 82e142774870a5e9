"""An extension of Griffe for the API pages: what docstrings and fields look like there."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^( *)>>> .*\n?(?:\1(?!\n).+\n?)*", re.MULTILINE)


class ForReaders(griffe.Extension):
    """Examples become code, as Markdown would take `>>>` for quotes; `parameter(1.0, least=0)` is shown as `1.0`."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Called for an attribute as soon as it is read, before constructors of dataclasses are made of them."""
        if isinstance(attr.value, griffe.ExprCall) and str(attr.value.function) == "parameter":
            attr.value = attr.value.arguments[0]

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """A docstring with fences around its examples.

    >>> fenced("The sum.\\n\\n>>> 1 + 1\\n2\\n\\nMore.")
    'The sum.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```\\n\\nMore.'
    """
    return EXAMPLE.sub(lambda found: f"{found[1]}```pycon\n{found[0].rstrip()}\n{found[1]}```\n", text)
