"""What the methods that read logits share: a linear head, made of the labels or fitted to ID images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from outword.base.checks import one_of
from outword.maths.methods.base import Classes, VectorDetector
from outword.maths.methods.needs import Need, parameter
from outword.maths.methods.probe import fit_head
from outword.maths.numerics import Array


@dataclass
class HeadedDetector(VectorDetector):
    """A detector on the logits `z = W x + b` of a linear head, for unit image vectors x.

    Args:
        temperature: of the zero-shot head, divisor of cosines; CLIP's is 0.01. Not used by the probe.
        head: "labels" is the zero-shot head, `W_i = y_i / temperature`, `b = 0`; "probe" a multinomial logistic
            regression on ID images with labels (see `outword.maths.methods.probe`).

    Learned: `classes_` (n_classes,), `weights_` (n_classes, dim) and `bias_` (n_classes,) of the probe.
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
        return self.classes_, self._logits_of(images, self._logits, len(self.classes_))

    def _logits(self, images: Array) -> Array:
        if self.head == "probe":
            return images @ self.weights_.T + self.bias_
        return images @ self._y.T / self.temperature

    def _head(self) -> tuple[Array, Array]:
        """W (n_classes, dim) and b (n_classes,)."""
        if self.head == "probe":
            return self.weights_, self.bias_
        return self._y / self.temperature, np.zeros(len(self._y))
