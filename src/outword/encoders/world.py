"""The encoders of the small world (`outword.world`): CLIP models that see it, exported, and part of the package."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from outword.encoders.base import Coverage
from outword.encoders.names import parse
from outword.encoders.onnx.encoder import OnnxEncoder
from outword.world.things import words

DATA = Path(str(files("outword"))) / "encoders" / "data" / "world"


class World(OnnxEncoder):
    """One of the models, in `DATA`; the same folder holds it for transformers, `hf:FOLDER`."""

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(DATA / parse(name).what, name=name, **options)

    def coverage(self, labels: Sequence[str]) -> list[Coverage]:
        """A label is known if all of its words are in the captions of the training."""
        known = words()
        return [
            Coverage(label, "known" if known.issuperset(re.findall(r"\w+", label.lower())) else "unknown")
            for label in labels
        ]
