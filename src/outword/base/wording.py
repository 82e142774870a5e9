"""Numbers and lists in sentences, and texts that a terminal only shows."""

from __future__ import annotations

import re
from collections.abc import Sequence

NAMED = 3  # things that a message names
# Control characters but tabs, those that turn the direction of a text, and halves of characters, as in odd names.
_OBEYED = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)


def counted(number: int, what: str, several: str = "") -> str:
    """So many of something; `several` is its plural where that is not with an "s".

    >>> counted(1, "image"), counted(2000, "image"), counted(2, "entry", "entries")
    ('1 image', '2,000 images', '2 entries')
    """
    return f"{number:,} {what if number == 1 else several or f'{what}s'}"


def escaped(text: str) -> str:
    r"""A text in one line with an escape for what a terminal would obey: names of files may be anybody's.

    >>> print(escaped("a\x1b[31m\n.jpg, caf\u00e9\u3000\U0001f408.jpg"))
    a\x1b[31m\n.jpg, café　🐈.jpg
    """
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def be(number: int) -> str:
    """The verb behind so many of something: "is" or "are"."""
    return "is" if number == 1 else "are"


def a_few(items: Sequence[str], most: int = NAMED, *, what: str = "more", between: str = ", ") -> str:
    """The first few, and how many more there are.

    >>> a_few(["cat", "dog"]), a_few(["cat", "dog", "cow", "hen"], 2, what="more labels")
    ('cat, dog', 'cat, dog and 2 more labels')
    """
    return between.join(items[:most]) + (f" and {len(items) - most:,} {what}" if len(items) > most else "")
