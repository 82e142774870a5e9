"""What a photo that can be read is like: small, blurred, empty, the same as another; notes, which change no score.

All of it is told from what the encoder is given, in some tenths of a millisecond. How the limits were chosen is in
docs/notes.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops

SMALL = 6.0  # times that a photo is enlarged for the encoder; verdicts on those that are less small are the same
BLACK = 24  # of 255: nearly all pixels of a photo that is nearly black are darker
FLAT = 8  # of 255: nearly all pixels of a photo of nearly one colour are within this of each other
BLURRED = 0.1  # of the range of greys: the steepest steps from pixel to pixel of a blurred photo are lower
_GRID = 9  # squares a side whose mean greys are compared
_COLOURS = 12  # squares a side whose mean colours are


class Fingerprint(NamedTuple):
    """What tells photos that are the same, enlarged, shrunk or saved once more, from others.

    Attributes:
        bits: 128, which of neighbouring squares, of 9 x 9, is lighter; they are quick to look up.
        colours: the mean colours of 12 x 12 squares, 432 bytes, to compare those whose bits are alike.
    """

    bits: int
    colours: bytes

    @property
    def packed(self) -> bytes:
        """16 bytes of bits, and the colours behind them."""
        return self.bits.to_bytes(16, "big") + self.colours


class Look(NamedTuple):
    """What is noted of a photo, and its fingerprint; None where it shows too little for one."""

    notes: tuple[str, ...] = ()
    fingerprint: Fingerprint | None = None


UNSEEN = Look()


def look_at(image: Image.Image, pixels: NDArray[np.uint8]) -> Look:
    """What there is to note of a photo, given as it was decoded, and as (height, width, 3) for an encoder."""
    seen, (height, width) = Image.fromarray(pixels), pixels.shape[:2]
    grey = seen.convert("L")
    enlarged = max(1.0, height / image.height, width / image.width)
    notes = [f"only {image.width} x {image.height} pixels"] if enlarged > SMALL else []
    low, high = _ends(grey)
    if empty := _empty(low, high):
        return Look((*notes, empty))
    if _steepest(grey) * enlarged < BLURRED * (high - low):
        notes.append("blurred")
    return Look(tuple(notes), _fingerprint(seen, grey))


def fingerprint(image: Image.Image) -> Fingerprint | None:
    """That of an RGB photo; None where it is nearly empty."""
    grey = image.convert("L")
    return None if _empty(*_ends(grey)) else _fingerprint(image, grey)


def _fingerprint(image: Image.Image, grey: Image.Image) -> Fingerprint:
    return Fingerprint(_bits(grey), image.resize((_COLOURS, _COLOURS), Image.Resampling.BOX).tobytes())


def _ends(grey: Image.Image) -> list[int]:
    """Between which greys nearly all pixels are."""
    return _levels(grey.histogram(), 0.01, 0.99)


def _empty(low: int, high: int) -> str:
    if high < BLACK:
        return "nearly black"
    return "nearly one colour" if high - low < FLAT else ""


def _steepest(grey: Image.Image) -> int:
    """The steepest steps between neighbouring pixels: one in a thousand is steeper.

    A sharp photo has an edge somewhere, however smooth the rest of it is; blur by a few pixels leaves none.
    """
    width, height = grey.size
    across = ImageChops.difference(grey.crop((1, 0, width, height)), grey.crop((0, 0, width - 1, height)))
    down = ImageChops.difference(grey.crop((0, 1, width, height)), grey.crop((0, 0, width, height - 1)))
    return _levels(np.add(across.histogram(), down.histogram()), 0.999)[0]


def _levels(histogram: list[int] | NDArray[np.int64], *shares: float) -> list[int]:
    """The greys up to which there are these shares of pixels."""
    counts = np.cumsum(histogram)
    return [int(level) for level in np.searchsorted(counts, np.array(shares) * counts[-1])]


def _bits(grey: Image.Image) -> int:
    mean = np.asarray(grey.convert("F").resize((_GRID, _GRID), Image.Resampling.HAMMING))  # a box has steps at its ends
    across, down = mean[:-1, 1:] > mean[:-1, :-1], mean[1:, :-1] > mean[:-1, :-1]
    return int.from_bytes(np.packbits([across, down]).tobytes(), "big")
