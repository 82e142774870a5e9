"""The Mahalanobis distance to the nearest class of ID images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from outword.errors import InputError
from outword.maths.methods.base import DETECTORS, Classes, Need, VectorDetector, parameter
from outword.maths.numerics import Array, blocks

LEAST_SPREAD = 1e-20  # of unit vectors: less is rounding
RCOND = 1e-10  # eigenvalues under this share of the largest are rounding


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
        return self.classes_, self._for_each(images, lambda x: -self._distances(x) / 2, len(self.classes_))

    def _score(self, images: Array) -> Array:
        return np.asarray(-self._distances(images).min(axis=1))

    def _distances(self, images: Array) -> Array:
        x = images @ self.whitening_
        return np.asarray((x**2).sum(axis=1, keepdims=True) + (self._mu_squared - 2 * x @ self._mu.T))


def class_means(images: Array, classes: Classes) -> tuple[Array, Classes]:
    """Means (n_classes, dim) by sorted distinct class, and which of them each image belongs to.

    >>> means, own = class_means(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 3.0]]), np.array([7, 2, 2]))
    >>> means.tolist(), own.tolist()
    ([[0.0, 2.0], [1.0, 0.0]], [1, 0, 0])
    """
    _, own, counts = np.unique(classes, return_inverse=True, return_counts=True)
    rows = np.split(np.argsort(own, kind="stable"), np.cumsum(counts)[:-1])
    return np.stack([images[some].mean(axis=0) for some in rows]), own


def tied_covariance(images: Array, means: Array, own: Classes) -> Array:
    """Scatter of the images about the mean of their own class, over the number of images: (dim, dim).

    >>> tied_covariance(np.array([[1.0, 0.0], [3.0, 0.0]]), np.array([[2.0, 0.0]]), np.array([0, 0])).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    scatter = np.zeros((images.shape[1],) * 2)
    for rows in blocks(len(images), images.shape[1]):
        centred = images[rows] - means[own[rows]]
        scatter += centred.T @ centred
    if scatter.trace() <= LEAST_SPREAD * len(images):
        raise InputError(
            f"the images of a class must differ, got {len(images)} images of {len(means)} classes without any spread",
            hint="pass more than one image a class",
        )
    return scatter / len(images)


def spectrum(covariance: Array) -> tuple[Array, Array]:
    """Eigenvalues that are more than rounding, (rank,), and their eigenvectors (dim, rank).

    >>> values, vectors = spectrum(np.diag([4.0, 0.0]))
    >>> values.tolist(), np.abs(vectors).tolist()
    ([4.0], [[1.0], [0.0]])
    """
    values, vectors = np.linalg.eigh(covariance)
    kept = values > RCOND * values[-1]
    return values[kept], vectors[:, kept]
