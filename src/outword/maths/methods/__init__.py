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
from outword.maths.methods.coop import CoOp
from outword.maths.methods.fa import FA
from outword.maths.methods.locoop import LoCoOp
from outword.maths.methods.sct import SCT
from outword.maths.methods.lsn import LSN
from outword.maths.methods.negprompt import NegPrompt
from outword.maths.methods.lapt import LAPT
from outword.maths.methods.zoc import ZOC
from outword.maths.methods.clipn import CLIPN
from outword.maths.methods.base import DETECTORS, VectorDetector, Need

__all__ = [
    "ASH", "CLIPN", "CSP", "DETECTORS", "EOE", "FA", "GLMCM", "KNN", "LAPT", "LSN", "MCM", "MSP", "NPOS", "ODIN", "SCT",
    "VOS", "ZOC", "AdaNeg", "CoOp", "Debiased", "Energy", "Entropy", "GradNorm", "Grounded", "LoCoOp", "Mahalanobis",
    "MaxLogit", "Need", "NegLabel", "NegPrompt", "ReAct", "Var", "VectorDetector", "ViM",
]  # fmt: skip
