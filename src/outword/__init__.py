"""outword tells whether a photo shows one of your classes, given nothing but their names.

    det = outword.fit(["tabby cat", "espresso", "space shuttle"])
    det.score(["a.jpg"])                 # higher means more in-distribution

Importing this package imports no encoder, no torch and no plotting library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from outword._version import __version__
from outword.errors import MissingExtraError, OutwordError

if TYPE_CHECKING:
    from collections.abc import Callable

    from outword.base.prediction import Prediction
    from outword.choosing.compare import compare
    from outword.choosing.suggesting import SuggestedKinds, suggest_kinds
    from outword.choosing.tune import tune
    from outword.detector.bundling import bundle
    from outword.detector.detector import Detector
    from outword.detector.fitting import fit
    from outword.detector.guarding import Guard, Guarded
    from outword.detector.loading import load
    from outword.detector.predictions import Predictions
    from outword.functions import check, embed, export, find, reference
    from outword.words.labels import read_labels

    read_words_per_image: Callable[..., Any]

__all__ = [
    "Detector",
    "Guard",
    "Guarded",
    "OutwordError",
    "Prediction",
    "Predictions",
    "SuggestedKinds",
    "__version__",
    "bundle",
    "check",
    "compare",
    "embed",
    "export",
    "find",
    "fit",
    "load",
    "read_labels",
    "reference",
    "suggest_kinds",
    "tune",
]


_HOMES = {
    "Detector": "detector.detector",
    "Guard": "detector.guarding",
    "Guarded": "detector.guarding",
    "Prediction": "base.prediction",
    "Predictions": "detector.predictions",
    "SuggestedKinds": "choosing.suggesting",
    "bundle": "detector.bundling",
    "check": "functions",
    "compare": "choosing.compare",
    "embed": "functions",
    "export": "functions",
    "find": "functions",
    "fit": "detector.fitting",
    "load": "detector.loading",
    "read_labels": "words.labels",
    "reference": "functions",
    "suggest_kinds": "choosing.suggesting",
    "tune": "choosing.tune",
}
_MODULES = (
    "client",
    "detectors",
    "encoders",
    "errors",
    "kernels",
    "metrics",
    "mining",
    "plugins",
    "scoring",
    "sklearn",
    "testing",
)


def __dir__() -> list[str]:
    """The public names, and the modules that have more of them."""
    return sorted([*__all__, *_MODULES])


def __getattr__(name: str) -> Any:
    """Import what is public when it is first asked for."""
    if name in _HOMES:
        return getattr(import_module(f"outword.{_HOMES[name]}"), name)
    if name == "read_words_per_image":
        from outword.base.registry import FUNCTIONS

        return FUNCTIONS[name]
    if name in _MODULES:
        try:
            return import_module(f"outword.{name}")
        except MissingExtraError as error:  # else hasattr() and help() would stop at a module that an extra brings
            raise AttributeError(str(error)) from error
    raise AttributeError(f"module 'outword' has no attribute {name!r}")
