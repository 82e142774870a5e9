"""Detectors by name: vectors in, numbers out, higher means more in-distribution. One method, one file."""

# An import registers: the order here is that of lists.
# isort: off
from outword.maths.methods.grounded import Grounded
from outword.maths.methods.debiased import Debiased
from outword.maths.methods.neglabel import NegLabel
from outword.maths.methods.csp import CSP
from outword.maths.methods.adaneg import AdaNeg
from outword.maths.methods.eoe import EOE
from outword.maths.methods.mcm import MCM
from outword.maths.methods.glmcm import GLMCM
from outword.maths.methods.maxlogit import MaxLogit
from outword.maths.methods.msp import MSP
from outword.maths.methods.energy import Energy
from outword.maths.methods.entropy import Entropy
from outword.maths.methods.var import Var
from outword.maths.methods.mahalanobis import Mahalanobis
from outword.maths.methods.knn import KNN
from outword.maths.methods.vim import ViM
from outword.maths.methods.gradnorm import GradNorm
from outword.maths.methods.odin import ODIN
from outword.maths.methods.react import ReAct
from outword.maths.methods.ash import ASH
from outword.maths.methods.vos import VOS
from outword.maths.methods.npos import NPOS
from outword.maths.methods.base import DETECTORS, VectorDetector
from outword.maths.methods.needs import Need

__all__ = [
    "ASH", "CSP", "DETECTORS", "EOE", "GLMCM", "KNN", "MCM", "MSP", "NPOS", "ODIN", "VOS", "AdaNeg", "Debiased",
    "Energy", "Entropy", "GradNorm", "Grounded", "Mahalanobis", "MaxLogit", "Need", "NegLabel", "ReAct", "Var",
    "VectorDetector", "ViM",
]  # fmt: skip
