"""ODIN: the softmax at a high temperature, on pixels moved so that they look more in-distribution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from outword.maths.methods.base import DETECTORS, Need, parameter
from outword.maths.methods.headed import HeadedDetector
from outword.maths.methods.requests import Inputs, ScoreRequest
from outword.maths.numerics import Array, largest_probability, softmax


@DETECTORS.register("odin")
@dataclass
class ODIN(HeadedDetector):
    """Largest softmax probability at a high temperature, on the vectors of perturbed images.

        S(x) = max_i softmax(z(x~) / T)_i,   x~ the vector of pixels + epsilon sign(gradient of log S by the pixels)

    This class scores the vectors that it is given. It knows the gradient by the vector; an encoder that runs on torch
    carries it on to the pixels: `encoder.encode_perturbed(pixels, detector.gradient, epsilon)`.

    Args:
        temperature: of the zero-shot head, divisor of cosines; CLIP's is 0.01.
        head: "labels", or "probe" for a linear probe on ID images with labels.
        odin_temperature: T, divisor of the logits; the published value is 1000.
        epsilon: size of the step in pixels of 0..1; the published value is 0.0014. 0 leaves the images as they are, and
            needs no pixels.

    Reference: Liang et al., "Enhancing The Reliability of Out-of-distribution Image Detection in Neural Networks",
    ICLR 2018.

    >>> d = ODIN(temperature=0.5, odin_temperature=2.0, epsilon=0.0).fit(labels=[[1.0, 0.0], [0.0, 1.0]])
    >>> d.score([[0.6, 0.8]]).round(4), d.gradient([[0.6, 0.8]]).round(4)   # e^.8 / (e^.6 + e^.8), (p_2 - 1, 1 - p_2)
    (array([0.5498]), array([[-0.4502,  0.4502]]))
    """

    odin_temperature: float = parameter(1000.0, above=0, hint="the published value is 1000")
    epsilon: float = parameter(0.0014, least=0, most=1, hint="the published value is 0.0014")
    summary = "largest softmax probability at a high temperature, after a step of the pixels"
    needs = (Need.LABELS, Need.HEAD, Need.PIXELS)
    on_vectors = {"epsilon": 0}

    def wants(self) -> tuple[Need, ...]:
        """Without a step, no pixels."""
        return tuple(need for need in super().wants() if need is not Need.PIXELS or self.epsilon > 0)

    def score_inputs(self, request: ScoreRequest) -> Inputs:
        """The photos with their pixels moved; vectors are scored as they are."""
        if Need.PIXELS not in self.wants() or request.pixels is None:
            return super().score_inputs(request)
        return {"images": request.encoder.encode_perturbed(request.pixels, self.gradient, self.epsilon)}

    def gradient(self, images: ArrayLike) -> Array:
        """Gradient of `log max_i softmax(z / T)_i` by the unit image vector, (n_images, dim).

        1/T (W_m - sum_i p_i W_i),   m the largest logit, p = softmax(z / T)
        """
        weights, _ = self._head()

        def uphill(x: Array) -> Array:
            z = self._logits(x) / self.odin_temperature
            return np.asarray((weights[z.argmax(axis=1)] - softmax(z) @ weights) / self.odin_temperature)

        return self._for_each(images, uphill, weights.shape[1])

    def _score(self, images: Array) -> Array:
        return largest_probability(self._logits(images) / self.odin_temperature)
