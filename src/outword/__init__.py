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

__all__ = ["Detector", "OutwordError", "__version__", "fit", "load"]


_HOMES = {"Detector": "detector", "fit": "fitting", "load": "loading"}


def __getattr__(name: str) -> Any:
    """Import the detector when it is first asked for."""
    if name in _HOMES:
        return getattr(import_module(f"outword.detector.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'outword' has no attribute {name!r}")
