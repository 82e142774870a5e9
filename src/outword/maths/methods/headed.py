"""What the methods that read logits share: a linear head, of the labels, fitted to ID images, or against outliers."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from outword.base.checks import one_of, whole_number
from outword.maths.methods.base import Classes, Need, VectorDetector, parameter
from outword.maths.methods.probe import fit_head
from outword.maths.numerics import Array, log_sum_exp, unit_rows


@dataclass
class HeadedDetector(VectorDetector):
    """A detector on the logits `z = W x + b` of a linear head, for unit image vectors x.

    The head "labels" is zero-shot, `W_i = y_i / temperature`, `b = 0`; "probe" is a multinomial logistic regression on
    ID images with labels (`methods.probe`), with `classes_`, `weights_` (n_classes, dim) and `bias_` (n_classes,).
    """

    temperature: float = 0.01
    head: Literal["labels", "probe"] = parameter("labels", one_of, choices=("labels", "probe"))
    needs: ClassVar[tuple[Need, ...]] = (Need.LABELS, Need.HEAD)
    learned: ClassVar[tuple[str, ...]] = ("classes", "weights", "bias")

    def wants(self) -> tuple[Need, ...]:
        """A probe needs ID images with labels, and does not look at the labels' vectors."""
        if self.head == "labels":
            return self.needs
        kept = (need for need in self.needs if need is not Need.LABELS)
        return tuple(dict.fromkeys((*kept, Need.ID_IMAGES, Need.ID_LABELS)))

    def _learn(self, images: Array, classes: Classes) -> None:
        if self.head == "probe":
            self.classes_ = np.unique(classes)
            self.weights_, self.bias_ = fit_head(images, classes)

    def class_logits(self, images: ArrayLike) -> tuple[Classes, Array] | None:
        """Those of the probe."""
        if self.head == "labels":
            return None
        return self.classes_, self._for_each(images, self._logits, len(self.classes_))

    def _logits(self, images: Array) -> Array:
        if self.head == "probe":
            return images @ self.weights_.T + self.bias_
        return images @ self._y.T / self.temperature

    def _head(self) -> tuple[Array, Array]:
        """W (n_classes, dim) and b (n_classes,)."""
        if self.head == "probe":
            return self.weights_, self.bias_
        return self._y / self.temperature, np.zeros(len(self._y))


@dataclass
class VirtualOutliers(VectorDetector):
    """The energy of a linear head that was fitted to ID images and made to be low on outliers that were made up.

    `weight` is that of the outliers' part of the loss (see `methods.probe`); at 0 the head is the linear probe.
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
        return self.classes_, self._for_each(images, self._logits, len(self.classes_))

    def _score(self, images: Array) -> Array:
        return log_sum_exp(self._logits(images))

    def _logits(self, images: Array) -> Array:
        return images @ self.weights_.T + self.bias_
