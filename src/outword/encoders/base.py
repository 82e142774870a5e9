"""What an encoder is: one unit vector per image, one per text, and a stated temperature."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from outword.errors import ImageError
from outword.images import ImageLike, open_image

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Coverage:
    """How well an encoder knows one label: `flag` is "known", "through <parent>", "head noun only" or "unknown"."""

    label: str
    flag: str


class Encoder(ABC):
    """A dual encoder. Rows of its outputs are unit vectors; cosines over `temperature` are logits.

    Attributes:
        name: what `get_encoder` was asked for.
        dim: length of a vector.
        temperature: the divisor of cosines, `h = cos / temperature`.
        prompts: the template set (see `outword.prompts`) that this encoder is used with by default.
        fingerprint: sha256 of the weights and the preprocessing.
        min_side: an image may be decoded smaller than it is, but no smaller than this (JPEG draft mode).
        batch_size: how many images go through the image tower together.
    """

    name: str
    dim: int
    temperature: float
    prompts: str
    fingerprint: str
    min_side: int
    batch_size: int

    @abstractmethod
    def preprocess(self, image: Image.Image) -> NDArray[np.uint8]:
        """RGB image to the pixels that the image tower reads; pure and thread-safe."""

    @abstractmethod
    def encode_pixels(self, pixels: NDArray[np.uint8]) -> Vectors:
        """Pixels (n, height, width, 3) to unit vectors (n, dim)."""

    @abstractmethod
    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Texts, prompts included, to unit vectors (n, dim)."""

    def coverage(self, labels: Sequence[str]) -> list[Coverage]:
        """How well each label is known; empty when the encoder cannot tell."""
        return []

    def encode_images(self, images: Sequence[ImageLike]) -> Vectors:
        """Images (paths, bytes, PIL images, RGB arrays) to unit vectors (n, dim)."""
        rows = []
        for start in range(0, len(images), self.batch_size):
            batch = [self.preprocess(self._open(image)) for image in images[start : start + self.batch_size]]
            rows.append(self.encode_pixels(np.stack(batch)))
        return np.concatenate(rows) if rows else np.zeros((0, self.dim), np.float32)

    def _open(self, image: ImageLike) -> Image.Image:
        try:
            return open_image(image, min_side=self.min_side)
        except ImageError as error:
            if isinstance(image, str | os.PathLike):
                raise ImageError(f"{os.fspath(image)!r}: {error.message}", hint=error.hint) from None
            raise
