"""Maximum concept matching: the softmax over cosines at temperature 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from outword.maths.methods.base import DETECTORS, VectorDetector
from outword.maths.numerics import Array, largest_probability


@DETECTORS.register("mcm")
@dataclass
class MCM(VectorDetector):
    """MSP with the softmax taken over the cosines themselves.

        S(x) = max_i e^{cos(x, y_i) / T} / sum_j e^{cos(x, y_j) / T},   T = 1

    Args:
        temperature: the T above; the published value is 1, whatever the encoder's own temperature is.

    Reference: Ming et al., "Delving into Out-of-Distribution Detection with Vision-Language Representations",
    NeurIPS 2022.

    >>> MCM().fit(labels=[[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]).score([[0.0, 1.0]])
    array([0.25])
    """

    temperature: float = 1.0
    summary = "largest softmax probability at temperature 1"
    prompts: ClassVar[str | None] = "mcm"
    own_temperature = True
    in_graph = True

    def _score(self, images: Array) -> Array:
        return largest_probability(images @ self._y.T / self.temperature)
