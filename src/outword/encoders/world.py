"""The encoders of the small world (`outword.world`): CLIP models that see it, exported, and part of the package."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from outword.encoders.base import Coverage
from outword.encoders.names import parse
from outword.encoders.onnx.encoder import OnnxEncoder
from outword.world.phrases import corpus

DATA = Path(str(files("outword"))) / "encoders" / "data" / "world"


class World(OnnxEncoder):
    """One of the models, in `DATA`; the same folder holds it for transformers, `hf:FOLDER`."""

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(DATA / parse(name).what, name=name, **options)

    def coverage(self, labels: Sequence[str]) -> list[Coverage]:
        """A label is known if the captions of the training had it: a noun, a family, or a phrase about one."""
        known = {phrase.text for phrase in corpus()}
        return [Coverage(label, "known" if label.lower() in known else "unknown") for label in labels]
