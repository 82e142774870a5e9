"""One photo to the pixels that an encoder reads: what can be done without its weights, also in another process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from outword.errors import ImageError
from outword.photos.ahead import attempt
from outword.photos.decode import MAX_PIXELS, ImageLike, with_image
from outword.photos.quality import UNSEEN, Look, look_at

Preprocess = Callable[[Image.Image], NDArray[np.uint8]]


class Seen(NamedTuple):
    """A photo as an encoder reads it, (height, width, 3), and what there is to note of it."""

    pixels: NDArray[np.uint8]
    look: Look


@dataclass(frozen=True)
class Loader:
    """Images to the pixels that an encoder reads.

    One image is a call. Many are loaded in two steps, so that the second can be done on a device: `load` in threads,
    `together` images in one go, and `gather`, which makes one batch of what was loaded, in one thread; where that takes
    its time, it is done `apart` from the encoder. `outword.encoders.reading` does both for any number of photos.
    """

    preprocess: Preprocess
    min_side: int
    decoder: str = "pillow"
    together: int = 1
    apart: bool = False

    def __call__(self, image: ImageLike) -> NDArray[np.uint8]:
        """Pixels (height, width, 3), or `ImageError` with a short reason."""
        return with_image(image, self.preprocess, min_side=self.min_side)

    def see(self, image: ImageLike, *, max_pixels: int = MAX_PIXELS, large: bool = True) -> Seen:
        """The same, with what there is to note of the image; see `with_image` for the limits."""
        use = partial(seen, self.preprocess)
        return with_image(image, use, min_side=self.min_side, max_pixels=max_pixels, large=large)

    def load_one(self, image: ImageLike, *, max_pixels: int = MAX_PIXELS, large: bool = True) -> Any:
        """One image as `gather` wants it, or `ImageError`; see `with_image` for the limits."""
        return self.see(image, max_pixels=max_pixels, large=large)

    def elsewhere(self) -> Loader:
        """What loads in a process that has no device; where it gathers nothing, this loader still has to."""
        return self

    def load(self, images: Sequence[ImageLike]) -> list[Any]:
        """Each image as `gather` wants it, or what is wrong with it; `Seen` where its pixels are at hand."""
        return [attempt(self.see, image) for image in images]

    def gather(self, loaded: Sequence[Any]) -> tuple[Any, list[ImageError | None]]:
        """Pixels (n, height, width, 3) of those that are good, and what is wrong with each, which shows only now."""
        return np.stack([one.pixels for one in loaded]), [None] * len(loaded)


def seen(preprocess: Preprocess, image: Image.Image) -> Seen:
    """What an encoder reads of an RGB image, by its own `preprocess`, and what there is to note of it.

    Of several cuttings of an image nothing is noted: they are not the image.
    """
    pixels = preprocess(image)
    return Seen(pixels, look_at(image, pixels) if pixels.ndim == 3 else UNSEEN)
