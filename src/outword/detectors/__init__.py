"""Detectors by name: vectors in, numbers out, higher means more in-distribution. One method, one file."""

from outword.detectors.base import VectorDetector
from outword.detectors.debiased import Debiased
from outword.detectors.energy import Energy
from outword.detectors.maxlogit import MaxLogit
from outword.detectors.mcm import MCM
from outword.detectors.msp import MSP
from outword.detectors.neglabel import NegLabel

__all__ = ["DETECTORS", "MCM", "MSP", "Debiased", "Energy", "MaxLogit", "NegLabel", "VectorDetector"]

DETECTORS: dict[str, type[VectorDetector]] = {
    "debiased": Debiased,
    "neglabel": NegLabel,
    "mcm": MCM,
    "maxlogit": MaxLogit,
    "msp": MSP,
    "energy": Energy,
}
