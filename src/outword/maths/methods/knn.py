"""The distance to the k-th nearest ID image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outword.base.checks import whole_number
from outword.maths.methods.base import DETECTORS, Classes, Need, VectorDetector, parameter
from outword.maths.numerics import Array, blocks


@DETECTORS.register("knn")
@dataclass
class KNN(VectorDetector):
    """Minus the distance to the k-th nearest ID image, among all of them.

        S(x) = -|x - x_(k)|,   x_(k) the k-th nearest of the ID images, unit vectors

    Args:
        k: which neighbour; the published value is 50 for CIFAR-10, with 5,000 images a class (200 to 1000 for larger
            sets). `outword.fit` takes 1: k must stay below the number of images of a class, and people have few
            (docs/compare.md). The farthest image where there are fewer.

    Learned: `images_` (n_images, dim), unit rows in float32.

    Reference: Sun et al., "Out-of-Distribution Detection with Deep Nearest Neighbors", ICML 2022.

    >>> KNN(k=2).fit(images=[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]).score([[1.0, 0.0]]).round(4)
    array([-1.4142])
    """

    k: int = parameter(50, whole_number, hint="the published value is 50")
    summary = "distance to the k-th nearest ID image"
    needs = (Need.ID_IMAGES,)
    learned = ("images",)
    in_pipeline = {"k": 1}
    in_small_world = {"k": 5}

    def _learn(self, images: Array, classes: Classes) -> None:
        self.images_ = images.astype(np.float32)

    def _score(self, images: Array) -> Array:
        return -kth_distance(images, self.images_, self.k)


def kth_distance(rows: Array, bank: NDArray[np.floating], k: int) -> Array:
    """Distance of each row to its k-th nearest row of the bank, or to the farthest where there are fewer.

    >>> kth_distance(np.array([[0.0], [5.0]]), np.array([[1.0], [3.0]]), 2).tolist()
    [3.0, 4.0]
    """
    k, out = min(k, len(bank)), np.empty(len(rows))
    for some in blocks(len(rows), len(bank)):
        out[some] = np.partition(_squared_distances(rows[some], bank), k - 1, axis=1)[:, k - 1]
    return np.sqrt(np.maximum(out, 0))


def _squared_distances(rows: Array, bank: NDArray[np.floating]) -> Array:
    """|x|^2 - 2 x.b + |b|^2 in float64; a bank in float32 is widened part by part, not as a whole."""
    out = np.empty((len(rows), len(bank)))
    for some in blocks(len(bank), bank.shape[1]):
        part = bank[some].astype(np.float64, copy=False)
        out[:, some] = np.einsum("ij,ij->i", part, part) - 2 * rows @ part.T
    return np.asarray(out + (rows**2).sum(axis=1, keepdims=True))
