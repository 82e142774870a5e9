"""outword tells whether a photo shows one of your classes, given nothing but their names.

    det = outword.fit(["tabby cat", "espresso", "space shuttle"])
    det.score(["a.jpg"])                 # higher means more in-distribution

Importing this package imports no encoder, no torch and no plotting library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from outword._version import __version__
from outword.errors import OutwordError

if TYPE_CHECKING:
    from outword.detector.detector import Detector
    from outword.detector.fitting import fit
    from outword.detector.loading import load
    from outword.vectors.photo_words import read_words_per_image

__all__ = ["Detector", "OutwordError", "__version__", "fit", "load", "read_words_per_image"]


_HOMES = {
    "Detector": "detector.detector",
    "fit": "detector.fitting",
    "load": "detector.loading",
    "read_words_per_image": "vectors.photo_words",
}


def __getattr__(name: str) -> Any:
    """Import the detector when it is first asked for."""
    if name in _HOMES:
        return getattr(import_module(f"outword.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'outword' has no attribute {name!r}")
