"""ReAct: the energy, with unusually large activations cut off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outword.maths.methods.base import DETECTORS, Classes, Need, parameter
from outword.maths.methods.headed import HeadedDetector
from outword.maths.numerics import Array, log_sum_exp


@DETECTORS.register("react")
@dataclass
class ReAct(HeadedDetector):
    """Energy of the head on activations that are cut off at a quantile of the ID images'.

        S(x) = log sum_i e^{z_i},   z = W min(x, c) + b,   c the quantile of all entries of all ID images

    x are unit vectors, whose entries have both signs; the published features had none below 0. What is cut off is not
    normalised again. The entries, and so the score, depend on the axes of the space.

    Args:
        temperature: divisor of cosines; CLIP's is 0.01.
        head: "labels", or "probe" for a linear probe on ID images with labels.
        quantile: in [0, 1]; the published value is 0.9. At 1 nothing that an ID image has is cut off.

    Learned: `cut_` (1,), the c above.

    Reference: Sun et al., "ReAct: Out-of-distribution Detection With Rectified Activations", NeurIPS 2021.

    >>> d = ReAct(temperature=1.0, quantile=0.5).fit(labels=[[1.0, 0.0]], images=[[0.6, 0.8], [0.8, 0.6]])
    >>> d.cut_, d.score([[1.0, 0.0], [0.6, 0.8]])
    (array([0.7]), array([0.7, 0.6]))
    """

    quantile: float = parameter(0.9, least=0, most=1, hint="the published value is 0.9")
    summary = "energy, with unusually large activations cut off"
    needs = (Need.LABELS, Need.HEAD, Need.ID_IMAGES)
    learned = (*HeadedDetector.learned, "cut")
    sees_axes = True
    in_graph = True

    def _learn(self, images: Array, classes: Classes) -> None:
        super()._learn(images, classes)
        self.cut_ = np.quantile(images, [self.quantile])

    def _score(self, images: Array) -> Array:
        return log_sum_exp(self._logits(np.minimum(images, self.cut_)))
