"""The largest logit, by default the largest cosine to an ID label."""

from __future__ import annotations

from dataclasses import dataclass

from outword.maths.methods.base import DETECTORS
from outword.maths.methods.headed import HeadedDetector
from outword.maths.numerics import Array


@DETECTORS.register("maxlogit")
@dataclass
class MaxLogit(HeadedDetector):
    """The largest logit; without a probe, the cosine of the nearest ID label.

        S(x) = max_i z_i,   z = W x + b,   by default z_i = cos(x, y_i)

    Args:
        temperature: divisor of cosines; it changes the scale of S, never its order.
        head: "labels", or "probe" for a linear probe on ID images with labels.

    Reference: Hendrycks et al., "Scaling Out-of-Distribution Detection for Real-World Settings", ICML 2022.

    >>> MaxLogit().fit(labels=[[1.0, 0.0], [0.0, 1.0]]).score([[0.6, 0.8]])
    array([0.8])
    """

    temperature: float = 1.0
    summary = "largest logit: the cosine to the nearest label"
    own_temperature = True
    in_graph = True

    def _score(self, images: Array) -> Array:
        score: Array = self._logits(images).max(axis=1)
        return score
