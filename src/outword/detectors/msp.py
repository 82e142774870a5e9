"""The largest softmax probability over the ID labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from outword.detectors.base import VectorDetector
from outword.numerics import Array, log_sum_exp


@dataclass
class MSP(VectorDetector):
    """Maximum softmax probability.

        S(x) = max_i e^{h(x, y_i)} / sum_j e^{h(x, y_j)},   h = cos / temperature

    Args:
        temperature: divisor of cosines; CLIP's is 0.01.

    Reference: Hendrycks and Gimpel, "A Baseline for Detecting Misclassified and Out-of-Distribution Examples in
    Neural Networks", ICLR 2017.

    >>> MSP(temperature=1.0).fit(labels=[[1.0, 0.0], [1.0, 0.0]]).score([[0.0, 1.0]])
    array([0.5])
    """

    temperature: float = 0.01
    summary: ClassVar[str] = "largest softmax probability at the encoder's temperature"

    def _score(self, images: Array) -> Array:
        h = images @ self._y.T / self.temperature
        return np.asarray(np.exp(h.max(axis=1) - log_sum_exp(h)))
