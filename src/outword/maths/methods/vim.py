"""Virtual-logit matching: the energy, less what of the image lies outside the space of the ID images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outword.errors import InputError
from outword.maths.methods.base import DETECTORS, Classes, Need, parameter
from outword.maths.methods.headed import HeadedDetector
from outword.maths.numerics import Array, blocks, log_sum_exp

LEAST_RESIDUAL = 1e-9  # of unit vectors: less is rounding


@DETECTORS.register("vim")
@dataclass
class ViM(HeadedDetector):
    """Energy of the head, less the scaled length of the image's part outside the principal space of the ID images.

        S(x) = log sum_i e^{z_i} - alpha |R^T (x - o)|,   alpha = mean_ID max_i z_i / mean_ID |R^T (x - o)|

    z = W x + b for unit vectors x; the origin o = -W^+ b is 0 without a probe. R are the directions that remain when
    the D leading eigenvectors of `sum_ID (x - o) (x - o)^T` are taken out.

    Args:
        temperature: divisor of cosines; CLIP's is 0.01.
        head: "labels", or "probe" for a linear probe on ID images with labels.
        share: D is this share of the dimensions, in [0, 1]: 0.5 is 256 of 512. But D is no more than half the number of
            ID images, or few images would span it and have no residual (ours). Without residual, at D = dim, it is
            Energy.

    Learned: `origin_` (dim,), `residual_` (dim, dim - D), R above, `alpha_` (1,).

    Reference: Wang et al., "ViM: Out-Of-Distribution with Virtual-logit Matching", CVPR 2022.

    >>> images = [[0.8, 0.6], [0.8, -0.6]]                              # D = 1: the first axis; residual 0.6
    >>> d = ViM(temperature=1.0).fit(labels=[[1.0, 0.0]], images=images)
    >>> d.alpha_.round(4), d.score([[0.6, 0.8]]).round(4)               # .8 / .6, and .6 - 1.3333 * .8
    (array([1.3333]), array([-0.4667]))
    """

    share: float = parameter(0.5, least=0, most=1, hint="0.5 is the published 256 of 512")
    summary = "energy, less the part of the image outside the space of the ID images"
    needs = (Need.LABELS, Need.HEAD, Need.ID_IMAGES)
    learned = (*HeadedDetector.learned, "origin", "residual", "alpha")

    def _learn(self, images: Array, classes: Classes) -> None:
        super()._learn(images, classes)
        weights, bias = self._head()
        self.origin_ = -np.linalg.pinv(weights) @ bias if bias.any() else np.zeros(images.shape[1])
        dim = images.shape[1]
        scatter = np.zeros((dim, dim))
        for rows in blocks(len(images), dim):
            scatter += (images[rows] - self.origin_).T @ (images[rows] - self.origin_)
        n_principal = min(int(self.share * dim), len(images) // 2)
        self.residual_ = np.linalg.eigh(scatter)[1][:, : dim - n_principal]
        self.alpha_ = np.array([self._ratio(images) if n_principal < dim else 0.0])

    def _ratio(self, images: Array) -> float:
        top = residual = 0.0
        for rows in blocks(len(images), len(self._head()[0])):
            top += self._logits(images[rows]).max(axis=1).sum()
            residual += self._residual(images[rows]).sum()
        if residual <= LEAST_RESIDUAL * len(images):
            raise InputError(
                f"the {len(images)} ID images leave no residual outside {images.shape[1] - self.residual_.shape[1]} "
                "principal dimensions",
                hint="pass more different images, or lower share",
            )
        return float(top / residual)

    def _residual(self, images: Array) -> Array:
        return np.asarray(np.linalg.norm((images - self.origin_) @ self.residual_, axis=1))

    def _score(self, images: Array) -> Array:
        return np.asarray(log_sum_exp(self._logits(images)) - self.alpha_[0] * self._residual(images))
