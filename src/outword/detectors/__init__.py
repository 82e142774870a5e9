"""Detectors by name: vectors in, numbers out, higher means more in-distribution. One method, one file."""

from outword.detectors.adaneg import AdaNeg
from outword.detectors.ash import ASH
from outword.detectors.base import VectorDetector
from outword.detectors.csp import CSP
from outword.detectors.debiased import Debiased
from outword.detectors.energy import Energy
from outword.detectors.entropy import Entropy
from outword.detectors.eoe import EOE
from outword.detectors.glmcm import GLMCM
from outword.detectors.gradnorm import GradNorm
from outword.detectors.knn import KNN
from outword.detectors.mahalanobis import Mahalanobis
from outword.detectors.maxlogit import MaxLogit
from outword.detectors.mcm import MCM
from outword.detectors.msp import MSP
from outword.detectors.needs import Need
from outword.detectors.neglabel import NegLabel
from outword.detectors.npos import NPOS
from outword.detectors.odin import ODIN
from outword.detectors.plugins import plugins
from outword.detectors.react import ReAct
from outword.detectors.var import Var
from outword.detectors.vim import ViM
from outword.detectors.vos import VOS

__all__ = [
    "ASH",
    "CSP",
    "DETECTORS",
    "EOE",
    "GLMCM",
    "KNN",
    "MCM",
    "MSP",
    "NPOS",
    "ODIN",
    "VOS",
    "AdaNeg",
    "Debiased",
    "Energy",
    "Entropy",
    "GradNorm",
    "Mahalanobis",
    "MaxLogit",
    "Need",
    "NegLabel",
    "ReAct",
    "Var",
    "VectorDetector",
    "ViM",
]

DETECTORS: dict[str, type[VectorDetector]] = {
    "debiased": Debiased,
    "neglabel": NegLabel,
    "csp": CSP,
    "adaneg": AdaNeg,
    "eoe": EOE,
    "mcm": MCM,
    "glmcm": GLMCM,
    "maxlogit": MaxLogit,
    "msp": MSP,
    "energy": Energy,
    "entropy": Entropy,
    "var": Var,
    "mahalanobis": Mahalanobis,
    "knn": KNN,
    "vim": ViM,
    "gradnorm": GradNorm,
    "odin": ODIN,
    "react": ReAct,
    "ash": ASH,
    "vos": VOS,
    "npos": NPOS,
}
DETECTORS.update(plugins(DETECTORS))
