"""The memory that a file will take whose reader reads all of it, estimated from its headers before that."""

from __future__ import annotations

from typing import NamedTuple

from outword.errors import ImageError
from outword.photos.headers import FREE

WIDER = 4  # times the pixels of an image that its tiles, its mask and its frames may have
_AGAIN = "open it in a viewer and save it again"


class Plan(NamedTuple):
    """An image as its headers describe it; without a size where only its reader can say that."""

    width: int = 0
    height: int = 0
    clear: bool = False  # whether it may be transparent
    least: int = 1  # bytes of a pixel unpacked, at least
    kept: int = 0  # bytes that its reader keeps besides pixels, where that is not among the bytes of the file
    working: int = 0  # bytes that decoding takes besides the result, where more than its pixels counts


def check_made_of(size: tuple[int, int], decoded: int) -> None:
    """Refuse an image that is made of far more pixels than it has."""
    width, height = size
    if decoded > WIDER * width * height + FREE:
        raise ImageError(f"out of proportion: {width} x {height} pixels are made of {decoded:,}", hint=_AGAIN)
