"""NPOS: the energy of a head fitted against outliers around the ID images that lie farthest out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from outword.checks import number, whole_number
from outword.detectors.base import Classes
from outword.detectors.knn import kth_distance
from outword.detectors.virtual import VirtualOutliers
from outword.numerics import Array, unit_rows

CANDIDATES = 50  # around each boundary image; the farthest is kept


@dataclass
class NPOS(VirtualOutliers):
    """Energy of a linear head fitted to ID images, with outliers around the images on the boundary.

        S(x) = log sum_k e^{z_k},   z = W x + b,   fitted by cross-entropy + weight * logistic loss of the energy

    The `n_boundary` ID images with the largest distance to their k-th nearest neighbour are the boundary. Around each,
    50 candidates `unit(x + sigma N(0, I))` are drawn, and the one farthest from the ID images, again by the k-th
    neighbour, is an outlier (ours; the published code picks one too, for each class, at every step of the training).

    Args:
        weight: of the logistic loss; the published value is 0.1. At 0 it is the energy of the linear probe.
        seed: of the noise.
        n_boundary: the published value is 300; all images where there are fewer.
        k: which neighbour; the published value is 400. The farthest where there are fewer.
        sigma: size of the noise in each dimension, above 0; the published value is 0.1.

    Learned: `classes_`, sorted, and by class `weights_` (n_classes, dim) and `bias_` (n_classes,). The fit needs scipy.

    Reference: Tao et al., "Non-parametric Outlier Synthesis", ICLR 2023.

    >>> images = [[0.8, 0.6], [0.8, -0.6], [-0.8, 0.6], [-0.8, -0.6]]
    >>> inside, outside = NPOS(sigma=1.0).fit(images=images, image_labels=[0, 0, 1, 1]).score([[1.0, 0.0], [0.0, 1.0]])
    >>> bool(inside > outside)
    True
    """

    n_boundary: int = 300
    k: int = 400
    sigma: float = 0.1
    summary: ClassVar[str] = "energy of a head fitted against outliers around the outermost ID images"

    def check(self) -> None:
        """Raise if a parameter breaks its rule; `fit` calls it first."""
        super().check()
        whole_number("n_boundary", self.n_boundary, hint="the published value is 300")
        whole_number("k", self.k, hint="the published value is 400")
        number("sigma", self.sigma, above=0, hint="the published value is 0.1")

    def _outliers(self, images: Array, classes: Classes) -> Array:
        spread = kth_distance(images, images, self.k + 1)  # the nearest is the image itself
        boundary = np.sort(np.argsort(-spread, kind="stable")[: self.n_boundary])
        rng = np.random.default_rng(self.seed)
        return np.stack([self._farthest(point, images, rng) for point in images[boundary]])

    def _farthest(self, point: Array, images: Array, rng: np.random.Generator) -> Array:
        noise = rng.standard_normal((CANDIDATES, len(point)))
        candidates = unit_rows(point + self.sigma * noise)
        return np.asarray(candidates[kth_distance(candidates, images, self.k).argmax()])
