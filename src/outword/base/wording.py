"""Numbers and lists in sentences."""

from __future__ import annotations

from collections.abc import Sequence

NAMED = 3  # things that a message names


def counted(number: int, what: str) -> str:
    """So many of something.

    >>> counted(1, "image"), counted(2000, "image")
    ('1 image', '2,000 images')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def be(number: int) -> str:
    """The verb behind so many of something: "is" or "are"."""
    return "is" if number == 1 else "are"


def a_few(items: Sequence[str], most: int = NAMED, *, what: str = "more", between: str = ", ") -> str:
    """The first few, and how many more there are.

    >>> a_few(["cat", "dog"]), a_few(["cat", "dog", "cow", "hen"], 2, what="more labels")
    ('cat, dog', 'cat, dog and 2 more labels')
    """
    return between.join(items[:most]) + (f" and {len(items) - most:,} {what}" if len(items) > most else "")
