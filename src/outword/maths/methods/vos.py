"""VOS: the energy of a head fitted against outliers drawn from the rim of each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outword.base.checks import whole_number
from outword.maths.methods.base import DETECTORS, Classes, parameter
from outword.maths.methods.headed import VirtualOutliers
from outword.maths.methods.mahalanobis import class_means, spectrum, tied_covariance
from outword.maths.numerics import Array

MOST = 10_000  # outliers, or one a class; more cost memory and time
RIM = 0.01  # the largest share of the draws that may count as low density


@DETECTORS.register("vos")
@dataclass
class VOS(VirtualOutliers):
    """Energy of a linear head fitted to ID images, with outliers from where the classes' Gaussians are thin.

        S(x) = log sum_k e^{z_k},   z = W x + b,   fitted by cross-entropy + weight * logistic loss of the energy

    Each class is a Gaussian N(mu_k, Sigma) with the covariance that all classes share. Of `n_samples` draws from it,
    those of lowest density are the outliers, made unit vectors. They are made once, since the features stay as they
    are; published is a draw at every step of the training of a whole network. Every class has the same number of
    outliers (ours): n_images / n_classes rounded up, where n_images counts as 10,000 at most; no more than 1 % of the
    draws.

    A draw is `mu_k + Sigma^{1/2} e`; its density falls with |e| alone, which does not depend on the direction of e. So
    lengths are drawn for all, and directions only for those that are kept.

    Args:
        weight: of the logistic loss; the published value is 0.1. At 0 it is the energy of the linear probe.
        seed: of the draws.
        n_samples: draws from each class; the published value is 10,000.

    Learned: `classes_`, sorted, and by class `weights_` (n_classes, dim) and `bias_` (n_classes,). The fit needs scipy.

    Reference: Du et al., "VOS: Learning What You Don't Know by Virtual Outlier Synthesis", ICLR 2022.

    >>> images = [[0.8, 0.6], [0.8, -0.6], [-0.8, 0.6], [-0.8, -0.6]]
    >>> inside, outside = VOS().fit(images=images, image_labels=[0, 0, 1, 1]).score([[1.0, 0.0], [0.0, 1.0]])
    >>> bool(inside > outside)
    True
    """

    n_samples: int = parameter(10_000, whole_number, most=1_000_000, hint="the published value is 10,000")
    summary = "energy of a head fitted against outliers from the rim of each class"

    def _outliers(self, images: Array, classes: Classes) -> Array:
        means, own = class_means(images, classes)
        values, vectors = spectrum(tied_covariance(images, means, own))
        kept = max(1, min(-(-min(len(images), MOST) // len(means)), int(RIM * self.n_samples)))
        rng = np.random.default_rng(self.seed)
        out = np.empty((len(means), kept, images.shape[1]))
        for k, mean in enumerate(means):
            squared = np.sort(rng.chisquare(len(values), self.n_samples))[-kept:]
            e = rng.standard_normal((kept, len(mean))) @ vectors
            e *= np.sqrt(squared / (e**2).sum(axis=1))[:, None]
            out[k] = mean + e * np.sqrt(values) @ vectors.T
        return out.reshape(-1, images.shape[1])
