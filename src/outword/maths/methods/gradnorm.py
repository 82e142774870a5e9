"""The size of the gradient that pulls a head towards the uniform distribution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outword.maths.methods.base import DETECTORS
from outword.maths.methods.headed import HeadedDetector
from outword.maths.numerics import Array, softmax


@DETECTORS.register("gradnorm")
@dataclass
class GradNorm(HeadedDetector):
    """L1 norm of the gradient of KL(uniform || softmax(z)) by the weights of the head, in closed form.

        S(x) = |x|_1 sum_k |p_k - 1/K|,   p = softmax(z),   z = W x + b,   by default z_i = cos(x, y_i) / temperature

    x are unit vectors here; the published features were not. |x|_1 depends on the axes of the space.

    Args:
        temperature: divisor of cosines; CLIP's is 0.01. The lower, the more images have all mass on one label, and the
            more |x|_1 decides alone.
        head: "labels", or "probe" for a linear probe on ID images with labels.

    Reference: Huang et al., "On the Importance of Gradients for Detecting Distributional Shifts in the Wild",
    NeurIPS 2021.

    >>> GradNorm(temperature=1.0).fit(labels=[[1.0, 0.0], [1.0, 0.0]]).score([[0.6, 0.8]])
    array([0.])
    """

    summary = "size of the gradient that pulls the head towards the uniform distribution"
    sees_axes = True

    def _score(self, images: Array) -> Array:
        z = self._logits(images)
        p = softmax(z)
        return np.asarray(np.abs(images).sum(axis=1) * np.abs(p - 1 / z.shape[1]).sum(axis=1))
