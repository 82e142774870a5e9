"""Maximum concept matching: the softmax over cosines at temperature 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from outword.detectors.msp import MSP


@dataclass
class MCM(MSP):
    """MSP with the softmax taken over the cosines themselves.

        S(x) = max_i e^{cos(x, y_i) / T} / sum_j e^{cos(x, y_j) / T},   T = 1

    Args:
        temperature: the T above; the published value is 1, whatever the encoder's own temperature is.

    Reference: Ming et al., "Delving into Out-of-Distribution Detection with Vision-Language Representations",
    NeurIPS 2022.
    """

    temperature: float = 1.0
    summary: ClassVar[str] = "largest softmax probability at temperature 1"
    own_temperature: ClassVar[bool] = True
