"""The encoders of the small world (`outword.world`): CLIP models that see it, exported, and part of the package."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from outword.base.extras import lacking
from outword.encoders.base import Coverage, Encoder, Gradient, Pixels, Vectors
from outword.encoders.names import parse
from outword.encoders.onnx.encoder import OnnxEncoder
from outword.world.phrases import corpus

DATA = Path(str(files("outword"))) / "encoders" / "data" / "world"


class World(OnnxEncoder):
    """One of the models, in `DATA`; the same folder holds it for transformers, `hf:FOLDER`.

    Where torch and transformers are there, patches and gradients come from that one.
    """

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(DATA / parse(name).what, name=name, **options)
        if not any(map(lacking, ("torch", "transformers"))):
            self.offers = ("patches", "pixels")

    def encode_patches(self, pixels: Pixels) -> tuple[Vectors, Vectors]:
        """Pixels to unit vectors (n, dim) and those of their patches (n, n_patches, dim), on torch."""
        return self._towers.encode_patches(pixels) if self.offers else super().encode_patches(pixels)

    def encode_perturbed(self, pixels: Pixels, gradient: Gradient, epsilon: float) -> Vectors:
        """Pixels, each moved to the side that raises a score, to unit vectors (n, dim), on torch."""
        given = pixels, gradient, epsilon
        return self._towers.encode_perturbed(*given) if self.offers else super().encode_perturbed(*given)

    @cached_property
    def _towers(self) -> Encoder:
        from outword.encoders import get_encoder

        return get_encoder(f"hf:{self._folder}", device="cpu")

    def coverage(self, labels: Sequence[str]) -> list[Coverage]:
        """A label is known if the captions of the training had it: a noun, a family, or a phrase about one."""
        known = {phrase.text for phrase in corpus()}
        return [Coverage(label, "known" if label.lower() in known else "unknown") for label in labels]
