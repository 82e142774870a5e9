"""The embedded encoder `mini` with its image tower in float32, as it was up to 0.1."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from outword.encoders.mini.encoder import DATA as SHARED
from outword.encoders.mini.encoder import Mini

_DATA = Path(str(files("outword_lab"))) / "encoders" / "data"
DATA = _DATA / "mini-float"  # what differs: the image tower and the card
REFERENCE = _DATA / "reference"


class MiniFloat(Mini):
    """All else is that of `mini`, but for the odds of labels, which were not measured with it."""

    odds = None

    def __init__(self) -> None:
        super().__init__(DATA, SHARED)
        self.own_reference = REFERENCE / f"{self.fingerprint[:16]}.safetensors"

    def files(self) -> list[Path]:
        """Its own, and those of `mini` that it shares."""
        own = {path.name: path for path in DATA.iterdir()}
        shared = {path.name: path for path in SHARED.iterdir()}
        return sorted({**shared, **own}.values())
