"""What the methods with virtual outliers share: a head of their own, fitted to ID images against the outliers."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from outword.base.checks import whole_number
from outword.maths.methods.base import Classes, VectorDetector
from outword.maths.methods.needs import Need, parameter
from outword.maths.methods.probe import fit_head
from outword.maths.numerics import Array, log_sum_exp, unit_rows


@dataclass
class VirtualOutliers(VectorDetector):
    """The energy of a linear head that was fitted to ID images and made to be low on outliers that were made up.

    Args:
        weight: of the outliers' part of the loss (see `methods.probe`); at 0 the head is the linear probe.
        seed: of the outliers.

    Learned: `classes_`, sorted, and by class `weights_` (n_classes, dim) and `bias_` (n_classes,).
    """

    weight: float = parameter(0.1, least=0, most=1000, hint="the published value is 0.1")
    seed: int = parameter(0, whole_number, least=0, hint="use seed=0")
    needs = (Need.ID_IMAGES, Need.ID_LABELS)
    learned = ("classes", "weights", "bias")
    sees_axes = True  # the noise has directions of its own

    @abstractmethod
    def _outliers(self, images: Array, classes: Classes) -> Array:
        """Make outliers of unit images (n_images, dim); the rows need not be unit."""

    def _learn(self, images: Array, classes: Classes) -> None:
        outliers = unit_rows(self._outliers(images, classes)) if self.weight else None
        self.classes_ = np.unique(classes)
        self.weights_, self.bias_ = fit_head(images, classes, outliers, self.weight)

    def class_logits(self, images: ArrayLike) -> tuple[Classes, Array] | None:
        """Those of the head."""
        return self.classes_, self._logits_of(images, self._logits, len(self.classes_))

    def _score(self, images: Array) -> Array:
        return log_sum_exp(self._logits(images))

    def _logits(self, images: Array) -> Array:
        return images @ self.weights_.T + self.bias_
