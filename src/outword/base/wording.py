"""Numbers in sentences."""

from __future__ import annotations


def counted(number: int, what: str) -> str:
    """So many of something.

    >>> counted(1, "image"), counted(2000, "image")
    ('1 image', '2,000 images')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"
