"""An extension of Griffe for the API pages: what docstrings and fields look like there."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^( *)>>> .*\n?(?:\1(?!\n).+\n?)*", re.MULTILINE)


class ForReaders(griffe.Extension):
    """Examples become code, as Markdown would take `>>>` for quotes; `parameter(1.0, least=0)` is shown as `1.0`."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every module, class, function and attribute that is read."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)
        if isinstance(obj, griffe.Attribute) and isinstance(obj.value, griffe.ExprCall):
            call = obj.value
            if str(call.function) == "parameter":
                obj.value = call.arguments[0]


def fenced(text: str) -> str:
    """A docstring with fences around its examples.

    >>> fenced("The sum.\\n\\n>>> 1 + 1\\n2\\n\\nMore.")
    'The sum.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```\\n\\nMore.'
    """
    return EXAMPLE.sub(lambda found: f"{found[1]}```pycon\n{found[0].rstrip()}\n{found[1]}```\n", text)
