"""The variance of the softmax."""

from __future__ import annotations

from dataclasses import dataclass

from outword.maths.methods.base import DETECTORS
from outword.maths.methods.headed import HeadedDetector
from outword.maths.numerics import Array, softmax


@DETECTORS.register("var")
@dataclass
class Var(HeadedDetector):
    """How unequal the classes are: the variance of their softmax probabilities.

        S(x) = 1/K sum_i (p_i - 1/K)^2,   p = softmax(z),   z = W x + b,   by default z_i = cos(x, y_i) / temperature

    It lies between 0, where all K classes are equal, and `(K - 1) / K^2`, where one has it all.

    Args:
        temperature: divisor of cosines; 1 in MCM's comparison, whatever the encoder's own temperature is.
        head: "labels", or "probe" for a linear probe on ID images with labels.

    Reference: the released code of Ming et al., "Delving into Out-of-Distribution Detection with Vision-Language
    Representations", NeurIPS 2022, compares it with MCM.

    >>> Var(temperature=0.01).fit(labels=[[1.0, 0.0], [0.0, 1.0]]).score([[1.0, 0.0]])    # p = 1, 0
    array([0.25])
    """

    temperature: float = 1.0
    summary = "variance of the softmax at temperature 1"
    own_temperature = True
    in_graph = True

    def _score(self, images: Array) -> Array:
        score: Array = softmax(self._logits(images)).var(axis=1)
        return score
