"""The free energy of the logits."""

from __future__ import annotations

from dataclasses import dataclass

from outword.maths.methods.base import DETECTORS
from outword.maths.methods.headed import HeadedDetector
from outword.maths.numerics import Array, log_sum_exp


@DETECTORS.register("energy")
@dataclass
class Energy(HeadedDetector):
    """Log of the ID mass.

        S(x) = log sum_i e^{z_i},   z = W x + b,   by default z_i = cos(x, y_i) / temperature

    Args:
        temperature: divisor of cosines; CLIP's is 0.01. At 1 it is the variant of MCM's comparison.
        head: "labels", or "probe" for a linear probe on ID images with labels.

    Reference: Liu et al., "Energy-based Out-of-distribution Detection", NeurIPS 2020.

    >>> Energy(temperature=1.0).fit(labels=[[1.0, 0.0], [1.0, 0.0]]).score([[0.0, 1.0]]).round(4)
    array([0.6931])
    """

    summary = "log-sum-exp of the logits"
    in_graph = True

    def _score(self, images: Array) -> Array:
        return log_sum_exp(self._logits(images))
