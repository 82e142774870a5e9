"""NPOS: the energy of a head fitted against outliers around the ID images that lie farthest out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outword.base.checks import whole_number
from outword.maths.methods.base import DETECTORS, Classes, parameter
from outword.maths.methods.headed import VirtualOutliers
from outword.maths.methods.knn import kth_distance
from outword.maths.numerics import Array, unit_rows

MOST = 10_000  # outliers, or two a class, where each class has its own; more cost memory and time


@DETECTORS.register("npos")
@dataclass
class NPOS(VirtualOutliers):
    """Energy of a linear head fitted to ID images, with outliers around the images on the boundary.

        S(x) = log sum_k e^{z_k},   z = W x + b,   fitted by cross-entropy + weight * logistic loss of the energy

    The `n_boundary` ID images with the largest distance to their k-th nearest neighbour are the boundary. Around each,
    `n_candidates` candidates `unit(x + sigma N(0, I))` are drawn, and the one farthest from the ID images, again by the
    k-th neighbour, is an outlier. All images make one boundary (ours, and the default).

    The released code goes class by class, which is `by_class=True`: a class has a boundary of its own, neighbours are
    images of that class, and the two farthest candidates around a point are outliers. There, a few points of
    each class (one, for ImageNet-1k) are drawn at every step of the training; here the features stay as they are, so
    all points of all boundaries are taken, or as many of each, drawn at random, as make 10,000 outliers.

    Args:
        weight: of the logistic loss; the published value is 0.1. At 0 it is the energy of the linear probe.
        seed: of the noise.
        n_boundary: the published value is 300; all images where there are fewer.
        k: which neighbour; the published value is 400. The farthest where there are fewer.
        sigma: size of the noise in each dimension, above 0; the published value is 0.1.
        by_class: whether each class has a boundary and two outliers a point, as in the released code.
        n_candidates: draws around a point; the released code has 1,500, ours are 50, for the time that they take.

    Learned: `classes_`, sorted, and by class `weights_` (n_classes, dim) and `bias_` (n_classes,). The fit needs scipy.

    Reference: Tao et al., "Non-parametric Outlier Synthesis", ICLR 2023.

    >>> images = [[0.8, 0.6], [0.8, -0.6], [-0.8, 0.6], [-0.8, -0.6]]
    >>> inside, outside = NPOS(sigma=1.0).fit(images=images, image_labels=[0, 0, 1, 1]).score([[1.0, 0.0], [0.0, 1.0]])
    >>> bool(inside > outside)
    True
    """

    n_boundary: int = parameter(300, whole_number, hint="the published value is 300")
    k: int = parameter(400, whole_number, hint="the published value is 400")
    sigma: float = parameter(0.1, above=0, hint="the published value is 0.1")
    by_class: bool = False
    n_candidates: int = parameter(50, whole_number, least=2, most=100_000, hint="the released code has 1,500")
    summary = "energy of a head fitted against outliers around the outermost ID images"

    def _outliers(self, images: Array, classes: Classes) -> Array:
        rng = np.random.default_rng(self.seed)
        if not self.by_class:
            return self._around(images, self.n_boundary, 1, rng)
        own = [images[classes == label] for label in np.unique(classes)]
        n_points = min(self.n_boundary, max(1, MOST // (2 * len(own))))
        return np.concatenate([self._around(group, n_points, 2, rng) for group in own])

    def _around(self, images: Array, n_points: int, n_kept: int, rng: np.random.Generator) -> Array:
        """`n_kept` outliers around each of `n_points` images of the boundary, or of all that it has."""
        spread = kth_distance(images, images, self.k + 1)  # the nearest is the image itself
        boundary = np.sort(np.argsort(-spread, kind="stable")[: self.n_boundary])
        if n_points < len(boundary):
            boundary = np.sort(rng.choice(boundary, n_points, replace=False))
        return np.concatenate([self._farthest(point, images, n_kept, rng) for point in images[boundary]])

    def _farthest(self, point: Array, images: Array, n_kept: int, rng: np.random.Generator) -> Array:
        candidates = unit_rows(point + self.sigma * rng.standard_normal((self.n_candidates, len(point))))
        distances = kth_distance(candidates, images, self.k)
        return np.asarray(candidates[np.argsort(-distances, kind="stable")[:n_kept]])
