"""The largest softmax probability."""

from __future__ import annotations

from dataclasses import dataclass

from outword.maths.methods.base import DETECTORS
from outword.maths.methods.headed import HeadedDetector
from outword.maths.numerics import Array, largest_probability


@DETECTORS.register("msp")
@dataclass
class MSP(HeadedDetector):
    """Maximum softmax probability.

        S(x) = max_i e^{z_i} / sum_j e^{z_j},   z = W x + b,   by default z_i = cos(x, y_i) / temperature

    Args:
        temperature: divisor of cosines; CLIP's is 0.01.
        head: "labels", or "probe" for a linear probe on ID images with labels.

    Reference: Hendrycks and Gimpel, "A Baseline for Detecting Misclassified and Out-of-Distribution Examples in
    Neural Networks", ICLR 2017.

    >>> MSP(temperature=1.0).fit(labels=[[1.0, 0.0], [1.0, 0.0]]).score([[0.0, 1.0]])
    array([0.5])
    """

    summary = "largest softmax probability at the encoder's temperature"
    in_graph = True

    def _score(self, images: Array) -> Array:
        return largest_probability(self._logits(images))
