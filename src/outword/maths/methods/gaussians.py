"""Class means and the covariance that all classes share."""

from __future__ import annotations

import numpy as np

from outword.errors import InputError
from outword.maths.methods.base import Classes
from outword.maths.numerics import Array, blocks

LEAST_SPREAD = 1e-20  # of unit vectors: less is rounding
RCOND = 1e-10  # eigenvalues under this share of the largest are rounding


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
