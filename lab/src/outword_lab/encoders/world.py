"""The encoders of the small world (`outword_lab.world`): CLIP models that see it, exported, and part of the package."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from outword.base.terms import through
from outword.encoders.base import Coverage, Encoder, Gradient, Pixels, Vectors
from outword.encoders.onnx.encoder import OnnxEncoder
from outword_lab.world.phrases import corpus

DATA = Path(str(files("outword_lab"))) / "encoders" / "data" / "world"


class World(OnnxEncoder):
    """One of the models, in `DATA`; the same folder holds it for transformers, `hf:FOLDER`.

    Where torch and transformers are there, patches, gradients and prompts come from that one.
    """

    knows = "a rendered world"

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(DATA / name.removeprefix("world-"), name=name, **options)
        self.side = self.preprocess.side
        if all(map(find_spec, ("torch", "transformers"))):  # not imported before they are needed
            self.offers = ("patches", "pixels")

    def encode_patches(self, pixels: Pixels) -> tuple[Vectors, Vectors]:
        """Pixels to unit vectors (n, dim) and those of their patches (n, n_patches, dim), on torch."""
        if not self.offers:
            return super().encode_patches(pixels)
        with threadpool_limits(1):  # threads that wait for each other take far longer than so small a tower
            return self._towers.encode_patches(pixels)

    def encode_perturbed(self, pixels: Pixels, gradient: Gradient, epsilon: float) -> Vectors:
        """Pixels, each moved to the side that raises a score, to unit vectors (n, dim), on torch."""
        if not self.offers:
            return super().encode_perturbed(pixels, gradient, epsilon)
        with threadpool_limits(1):
            return self._towers.encode_perturbed(pixels, gradient, epsilon)

    @property
    def driven_by(self) -> Encoder | None:
        """The encoder on torch, which learned prompts go through (`outword_lab.encoders.driven`)."""
        return self._towers if self.offers else None

    def files(self) -> list[Path]:
        """All of its folder."""
        return sorted(self._folder.iterdir())

    @cached_property
    def _towers(self) -> Encoder:
        from outword.encoders import get_encoder

        return get_encoder(f"hf:{self._folder}", device="cpu")

    def coverage(self, labels: Sequence[str]) -> list[Coverage]:
        """A noun, a family or a ground of the training is known, and a phrase about one through it."""
        known = {phrase.text: phrase.head or phrase.ground for phrase in corpus()}
        about = {label: known.get(label.lower(), "") for label in labels}
        return [Coverage(label, _flag(label.lower(), about[label])) for label in labels]


def _flag(label: str, head: str) -> str:
    if not head:
        return "unknown"
    return "known" if label == head else through(head)
