"""The negative entropy of the softmax."""

from __future__ import annotations

from dataclasses import dataclass

from outword.maths.methods.base import DETECTORS
from outword.maths.methods.headed import HeadedDetector
from outword.maths.numerics import Array, negative_entropy


@DETECTORS.register("entropy")
@dataclass
class Entropy(HeadedDetector):
    """How far the softmax is from undecided: its negative entropy.

        S(x) = sum_i p_i log p_i,   p = softmax(z),   z = W x + b,   by default z_i = cos(x, y_i) / temperature

    It lies between `-log K`, where all K classes are equal, and 0, where one has it all.

    Args:
        temperature: divisor of cosines; 1 in MCM's comparison, whatever the encoder's own temperature is.
        head: "labels", or "probe" for a linear probe on ID images with labels.

    Reference: the released code of Ming et al., "Delving into Out-of-Distribution Detection with Vision-Language
    Representations", NeurIPS 2022, compares it with MCM.

    >>> Entropy().fit(labels=[[1.0, 0.0], [1.0, 0.0]]).score([[0.0, 1.0]]).round(4)
    array([-0.6931])
    """

    temperature: float = 1.0
    summary = "negative entropy of the softmax at temperature 1"
    own_temperature = True
    in_graph = True

    def _score(self, images: Array) -> Array:
        return negative_entropy(self._logits(images))
