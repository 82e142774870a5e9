"""The methods, under their public name: `from outword.detectors import Debiased`."""

# ruff: noqa: F403, F405  # what is exported is all that comes by the stars

from outword.learning.methods import *
from outword.maths.methods import *

__all__ = [
    "ASH", "CLIPN", "CSP", "DETECTORS", "EOE", "FA", "GLMCM", "KNN", "LAPT", "LSN", "MCM", "MSP", "NPOS", "ODIN", "SCT",
    "VOS", "ZOC", "AdaNeg", "CoOp", "Debiased", "Energy", "Entropy", "GradNorm", "Grounded", "LoCoOp", "Mahalanobis",
    "MaxLogit", "Need", "NegLabel", "NegPrompt", "ReAct", "Var", "VectorDetector", "ViM",
]  # fmt: skip
