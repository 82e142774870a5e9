"""The largest cosine to an ID label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from outword.detectors.base import VectorDetector
from outword.numerics import Array


@dataclass
class MaxLogit(VectorDetector):
    """The cosine of the nearest ID label.

        S(x) = max_i cos(x, y_i)

    Reference: Hendrycks et al., "Scaling Out-of-Distribution Detection for Real-World Settings", ICML 2022.

    >>> MaxLogit().fit(labels=[[1.0, 0.0], [0.0, 1.0]]).score([[0.6, 0.8]])
    array([0.8])
    """

    summary: ClassVar[str] = "largest cosine to a label"

    def _score(self, images: Array) -> Array:
        return np.asarray((images @ self._y.T).max(axis=1))
