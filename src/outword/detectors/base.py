"""What a detector is: parameters in the constructor, `fit` on label and word vectors, `score` on image vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword.errors import InputError, ParameterError
from outword.numerics import UNIT_TOLERANCE, Array, matrix, unit_rows

if TYPE_CHECKING:
    from typing_extensions import Self


SMALLEST_TEMPERATURE = 1e-6


class VectorDetector(ABC):
    """Scores image vectors; higher means more in-distribution. Subclasses are dataclasses: fields are parameters.

    Attributes:
        summary: one line for tables.
        needs_wild: whether `fit` needs wild words.
        miner: the mining rule that this method is published with.
        own_temperature: whether the temperature is the method's own, not the encoder's.
        in_pipeline: parameters that `outword.fit` sets unless told otherwise, where they are not the paper's.
        labels_: (n_labels, dim), as given to `fit`.
        wild_: (n_wild, dim), as given to `fit`.
        natural_cut_: where the verdict changes before any calibration: ID mass against wild mass; None when the score
            has no such point.
    """

    summary: ClassVar[str]
    needs_wild: ClassVar[bool] = False
    miner: ClassVar[str] = "density"
    own_temperature: ClassVar[bool] = False
    in_pipeline: ClassVar[Mapping[str, Any]] = {}

    labels_: NDArray[np.floating]
    wild_: NDArray[np.floating] | None = None
    natural_cut_: float | None = None

    def check(self) -> None:
        """Raise if a parameter breaks its rule; `fit` calls it first."""
        temperature = self.params().get("temperature", 1.0)
        if not (np.isfinite(temperature) and temperature >= SMALLEST_TEMPERATURE):
            raise ParameterError(
                f"temperature must be a number of at least {SMALLEST_TEMPERATURE}, got {temperature!r}",
                hint="CLIP's is 0.01; see the encoder's",
            )

    def fit(self, labels: ArrayLike, wild: ArrayLike | None = None) -> Self:
        """Take the vectors: labels (n_labels, dim), wild (n_wild, dim); rows are normalised."""
        self.check()
        self.labels_ = matrix(labels, "labels").copy()
        if len(self.labels_) == 0:
            raise InputError("labels must have at least one row, got none", hint="name at least one class")
        if self.needs_wild and (wild is None or len(np.asarray(wild)) == 0):
            raise InputError(
                f"{type(self).__name__} needs wild words, got none", hint="pass wild= with at least one row"
            )
        self.wild_ = None
        if self.needs_wild and wild is not None:
            self.wild_ = matrix(wild, "wild", self.labels_.shape[1]).copy()
        self._prepare()
        return self

    def score(self, images: ArrayLike) -> Array:
        """Score of each image, (n_images,) float64. Rows that are not unit vectors are normalised."""
        return self._score(self._unit_images(images))

    def params(self) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays that `restore` needs to score exactly as this detector does."""
        return {"labels": self.labels_} | ({} if self.wild_ is None else {"wild": self.wild_})

    def restore(self, state: dict[str, NDArray[Any]]) -> Self:
        """Take the arrays of `state`, instead of `fit`."""
        return self.fit(labels=state["labels"], wild=state.get("wild"))

    def _unit_images(self, images: ArrayLike) -> Array:
        if not hasattr(self, "labels_"):
            raise InputError(f"{type(self).__name__} must be fitted before it scores", hint="call fit(labels=...)")
        return unit_rows(matrix(images, "images", self.labels_.shape[1]), "images", UNIT_TOLERANCE)

    def _prepare(self) -> None:
        """Compute what scoring reuses, here the unit label vectors; called at the end of `fit`."""
        self._y = unit_rows(self.labels_, "labels")

    @abstractmethod
    def _score(self, images: Array) -> Array:
        """Score unit image vectors (n_images, dim)."""
