"""The Mahalanobis distance to the nearest class of ID images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from outword.maths.methods.base import DETECTORS, Classes, VectorDetector
from outword.maths.methods.gaussians import class_means, spectrum, tied_covariance
from outword.maths.methods.needs import Need, parameter
from outword.maths.numerics import Array


@DETECTORS.register("mahalanobis")
@dataclass
class Mahalanobis(VectorDetector):
    """Minus the squared distance to the nearest class mean, in units of the spread that all classes share.

        S(x) = -min_k (x - mu_k)^T Sigma^-1 (x - mu_k),   Sigma = 1/n sum_i (x_i - mu_{c_i}) (x_i - mu_{c_i})^T

    x are unit vectors. Directions in which the ID images do not differ at all within a class are left out
    (pseudo-inverse); `shrinkage` brings them back: `Sigma_s = (1 - s) Sigma + s tr(Sigma)/d I`.

    Args:
        shrinkage: s, in [0, 1]; the published method has 0, `outword.fit` takes 0.1: with fewer ID images than
            dimensions, 0 is hardly better than chance, and any other value is (docs/compare.md). At 1 it is the squared
            Euclidean distance, times d / tr(Sigma).

    Learned: `classes_`, sorted; by class `means_` (n_classes, dim); `whitening_` (dim, rank), with `Sigma^-1 = A A^T`.

    Reference: Lee et al., "A Simple Unified Framework for Detecting Out-of-Distribution Samples and Adversarial
    Attacks", NeurIPS 2018.

    >>> images, classes = [[0.6, 0.8], [0.6, -0.8], [-0.6, 0.8], [-0.6, -0.8]], [0, 0, 1, 1]
    >>> d = Mahalanobis().fit(images=images, image_labels=classes)      # means (.6, 0) and (-.6, 0), Sigma diag(0, .64)
    >>> d.score([[0.0, 1.0]]).round(4)
    array([-1.5625])
    """

    shrinkage: float = parameter(0.0, least=0, most=1, hint="the published method has 0")
    summary = "distance to the nearest class of ID images, in units of their spread"
    needs = (Need.ID_IMAGES, Need.ID_LABELS)
    learned = ("classes", "means", "whitening")
    in_pipeline = {"shrinkage": 0.1}

    def _learn(self, images: Array, classes: Classes) -> None:
        self.classes_ = np.unique(classes)
        self.means_, own = class_means(images, classes)
        sigma, dim = tied_covariance(images, self.means_, own), images.shape[1]
        values, vectors = spectrum((1 - self.shrinkage) * sigma + self.shrinkage * sigma.trace() / dim * np.eye(dim))
        self.whitening_ = vectors / np.sqrt(values)

    def _prepare(self) -> None:
        self._mu = self.means_ @ self.whitening_
        self._mu_squared = (self._mu**2).sum(axis=1)

    def class_logits(self, images: ArrayLike) -> tuple[Classes, Array] | None:
        """Minus half the squared distances: the log-likelihoods of the classes' Gaussians, up to a constant."""
        return self.classes_, self._logits_of(images, lambda x: -self._distances(x) / 2, len(self.classes_))

    def _score(self, images: Array) -> Array:
        return np.asarray(-self._distances(images).min(axis=1))

    def _distances(self, images: Array) -> Array:
        x = images @ self.whitening_
        return np.asarray((x**2).sum(axis=1, keepdims=True) + (self._mu_squared - 2 * x @ self._mu.T))
