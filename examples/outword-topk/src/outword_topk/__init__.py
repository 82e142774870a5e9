"""The mean cosine of the nearest labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from outword.plugins import Array, VectorDetector, whole_number


@dataclass
class TopK(VectorDetector):
    """Mean cosine of the k nearest ID labels.

        S(x) = 1/k sum of the k largest cos(x, y_i)

    Args:
        k: how many labels, at least 1; all of them where there are fewer.

    >>> TopK(k=2).fit(labels=[[1.0, 0.0], [0.0, 1.0]]).score([[0.6, 0.8]])
    array([0.7])
    """

    k: int = 1
    summary: ClassVar[str] = "mean cosine of the k nearest labels"

    def check(self) -> None:
        """Raise if a parameter breaks its rule; `fit` calls it first."""
        super().check()
        whole_number("k", self.k, hint="1 is MaxLogit")

    def _score(self, images: Array) -> Array:
        return np.sort(images @ self._y.T, axis=1)[:, -self.k :].mean(axis=1)
