"""The free energy of the logits over the ID labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from outword.detectors.base import VectorDetector
from outword.numerics import Array, log_sum_exp


@dataclass
class Energy(VectorDetector):
    """Log of the ID mass.

        S(x) = log sum_i e^{h(x, y_i)},   h = cos / temperature

    Args:
        temperature: divisor of cosines; CLIP's is 0.01. At 1 it is the variant of MCM's comparison.

    Reference: Liu et al., "Energy-based Out-of-distribution Detection", NeurIPS 2020.

    >>> Energy(temperature=1.0).fit(labels=[[1.0, 0.0], [1.0, 0.0]]).score([[0.0, 1.0]]).round(4)
    array([0.6931])
    """

    temperature: float = 0.01
    summary: ClassVar[str] = "log-sum-exp of the label logits"

    def _score(self, images: Array) -> Array:
        return log_sum_exp(images @ self._y.T / self.temperature)
