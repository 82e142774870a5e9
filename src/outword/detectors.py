"""The methods, under their public name: `from outword.detectors import Debiased`."""

# ruff: noqa: F403, F405  # what is exported is all that comes by the star

from typing import Any

from outword.base import lab
from outword.maths.methods import *

__all__ = [
    "ASH", "CSP", "DETECTORS", "EOE", "GLMCM", "KNN", "MCM", "MSP", "NPOS", "ODIN", "VOS", "AdaNeg", "Debiased",
    "Energy", "Entropy", "GradNorm", "Grounded", "Mahalanobis", "MaxLogit", "Need", "NegLabel", "ReAct", "Var",
    "VectorDetector", "ViM",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """The methods that come with `outword-lab`, such as `CoOp`."""
    if name not in lab.CLASSES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return DETECTORS[lab.CLASSES[name]]
