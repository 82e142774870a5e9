"""From an RGB image to the square of pixels that a model reads, as the model's own configuration says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from outword.errors import ParameterError

Interpolation = Literal["bicubic", "bilinear"]
_FILTERS = {"bicubic": Image.Resampling.BICUBIC, "bilinear": Image.Resampling.BILINEAR}


@dataclass(frozen=True)
class Preprocess:
    """Resize, crop, and the mean and standard deviation that the model wants afterwards."""

    side: int  # pixels a side of the result
    short: int  # short side after resizing, at least `side`; the centre is cut out. 0 squashes the whole image instead
    interpolation: Interpolation  # "bilinear" is what the paper's released code has
    mean: Sequence[float]  # of each channel, in units of 0..1; applied by the model, not here, as `std`
    std: Sequence[float]
    crop: Literal["round", "floor"] = "round"  # the centre of an odd margin: as torchvision, or as transformers has it

    def __post_init__(self) -> None:
        numbers = [*self.mean, *self.std] if self.mean and self.std else []
        whole = len(numbers) == 6 and all(isinstance(x, int | float) and math.isfinite(x) for x in numbers)
        if not (0 < self.side <= (self.short or self.side)):
            told = f"an image of {self.side} pixels cannot be cut out of one with a short side of {self.short}"
        elif not whole or min(self.std) <= 0 or len(self.mean) != 3:
            told = f"mean and std must be three numbers each, std above 0, got {self.mean} and {self.std}"
        else:
            return
        raise ParameterError(told, hint="check the preprocessing in the model's folder")

    @property
    def min_side(self) -> int:
        """How small an image may be decoded before it is resized (see `outword.photos.decode.open_image`)."""
        return self.short or self.side

    @property
    def affine(self) -> tuple[list[float], list[float]]:
        """Scale and shift of each channel, from bytes to what the model reads: (byte / 255 - mean) / std."""
        return [1 / (255 * s) for s in self.std], [-m / s for m, s in zip(self.mean, self.std, strict=True)]

    def __call__(self, image: Image.Image) -> NDArray[np.uint8]:
        """Pixels (side, side, 3).

        Resizing the short side and cutting out the centre is one step: only what will be kept is resized, so that a
        very long image costs no more than a square. The pixels are those of the two plain steps.
        """
        resample = _FILTERS[self.interpolation]
        if not self.short:
            return np.asarray(image.resize((self.side, self.side), resample))
        (left, right), (top, bottom), first, last = self.kept(*image.size)
        rows = image.crop((0, first, image.width, last))
        # Pillow may go down before it goes across when both are asked of it, which shows where bicubic overshoots
        across = rows.resize((self.side, rows.height), resample, box=(left, 0, right, rows.height))
        return np.asarray(across.resize((self.side,) * 2, resample, box=(0, top, self.side, bottom)))

    def kept(self, width: int, height: int) -> tuple[tuple[float, float], tuple[float, float], int, int]:
        """What is kept of an image: from where to where across, and down among the rows that count, and these rows."""
        if not self.short:
            return (0, width), (0, height), 0, height
        left, top, right, bottom = map(float, self.box(width, height))
        reach = 2 + 2 * max((bottom - top) / self.side, 1)  # how far the filter looks beyond the box
        first, last = max(int(top - reach), 0), min(int(bottom + reach) + 1, height)
        return (left, right), (top - first, bottom - first), first, last

    def box(self, width: Any, height: Any) -> tuple[Any, Any, Any, Any]:
        """Where the kept part lies in the image, in its own pixels: left, top, right, bottom."""
        if not self.short:
            return 0.0, 0.0, width, height
        least = np.minimum(width, height)
        resized = [np.floor(self.short * length / least) for length in (width, height)]
        margin = [length - self.side for length in resized]
        begin = [np.floor(m / 2) if self.crop == "floor" else np.rint(m / 2) for m in margin]
        scale = [before / after for before, after in zip((width, height), resized, strict=True)]
        left, top = (b * s for b, s in zip(begin, scale, strict=True))
        right, bottom = left + self.side * scale[0], top + self.side * scale[1]
        return left, top, np.minimum(right, width), np.minimum(bottom, height)
