"""scikit-learn's conventions for the methods that learn from vectors of ID photos; needs scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword.base.checks import number
from outword.base.extras import require
from outword.detector.recipe import make_detector
from outword.errors import ParameterError
from outword.maths.methods import DETECTORS, Need, VectorDetector
from outword.maths.methods.base import Classes
from outword.maths.methods.headed import HeadedDetector
from outword.maths.numerics import Array
from outword.maths.thresholds import FEWEST, fit_threshold

if TYPE_CHECKING:
    from typing_extensions import Self

require("sklearn")
from sklearn.base import BaseEstimator, OutlierMixin  # noqa: E402
from sklearn.utils.multiclass import check_classification_targets  # noqa: E402
from sklearn.utils.validation import check_is_fitted, validate_data  # noqa: E402

__all__ = ["VectorOutlierDetector"]

GIVEN = {Need.ID_IMAGES, Need.ID_LABELS, Need.HEAD}  # a head is fitted to the rows and their classes
FOLDS = 10
UNUSED = 0.01  # the temperature: it divides cosines with labels, and there are none


class VectorOutlierDetector(OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """Tells whether a vector is like those that it was fitted on: a method of outword as scikit-learn has detectors.

    The methods are those that learn from ID vectors: without classes knn and mahalanobis; with classes also vos, npos,
    vim, react, energy and the others that read logits, by a linear probe. Rows are made unit vectors first.

    The threshold `offset_` lets in a share `tpr` of such rows, by scores of rows that were left out, a tenth at a time:
    a method thinks too well of rows that it knows. Where rows are few, it lets in somewhat more, as those scores come
    from fewer still. It is what scikit-learn calls a contamination of 1 - tpr.

    Args:
        method: its name; `outword list methods` lists all.
        params: of the method, by name, such as `{"k": 10}`; the others are as in `outword.fit`.
        tpr: the share of rows like these that are to be let in, above 0 and at most 1.

    Attributes:
        offset_: the score from which on a row is an inlier.
        scorer_: the method, fitted.
        n_features_in_: how long a vector is.

    >>> from outword.testing import planted_world
    >>> world = planted_world()
    >>> found = VectorOutlierDetector("mahalanobis").fit(world.train, world.classes)
    >>> found.predict([world.id_images[0], world.ood_images[0]])
    array([ 1, -1])
    """

    def __init__(
        self, method: str = "mahalanobis", *, params: Mapping[str, Any] | None = None, tpr: float = 0.95
    ) -> None:
        self.method = method
        self.params = params
        self.tpr = tpr

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn what ID vectors look like, and where they end.

        Args:
            X: (n_rows, dim), at least five; rows that show none of the classes do not belong here.
            y: (n_rows,), the class of each, numbers or names; without, all are of one.
        """
        number("tpr", self.tpr, above=0, most=1, hint="0.95 is the default")
        takes_classes = Need.ID_LABELS in self._make().wants()
        least = {"ensure_min_samples": FEWEST, "ensure_min_features": 2}
        x, y = (validate_data(self, X, **least), None) if y is None else validate_data(self, X, y, **least)
        if y is None or not takes_classes:
            classes = np.zeros(len(x), np.int64)
        else:
            check_classification_targets(y)
            classes = np.unique(y, return_inverse=True)[1].astype(np.int64)
        scorer = self._fitted(x, classes)
        self.offset_ = fit_threshold(self._held_out(x, classes), self.tpr).value
        self.scorer_ = scorer
        return self

    def fit_predict(self, X: ArrayLike, y: ArrayLike | None = None) -> NDArray[np.int64]:
        """The same as `fit(X, y).predict(X)`; scikit-learn's own `fit_predict` of outlier detectors leaves y out."""
        return self.fit(X, y).predict(X)

    def score_samples(self, X: ArrayLike) -> Array:
        """Score of each row, (n_rows,); higher means more like what it was fitted on."""
        check_is_fitted(self)
        return self.scorer_.score(validate_data(self, X, reset=False))

    def decision_function(self, X: ArrayLike) -> Array:
        """How far each row's score lies above the threshold, (n_rows,); negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """1 for each row that is like what it was fitted on, -1 for the others, (n_rows,)."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def _held_out(self, rows: Array, classes: Classes) -> Array:
        """Scores of rows by methods that were fitted without them, but for rows that are alone in their class.

        Every fold has its share of each class, and leaves some of it.
        """
        order = np.argsort(classes, kind="stable")
        order = order[np.bincount(classes)[classes[order]] > 1]
        scores = [np.zeros(0)]
        for out in (order[start::FOLDS] for start in range(min(FOLDS, len(order)))):
            kept = np.setdiff1d(np.arange(len(rows)), out)
            scores.append(self._fitted(rows[kept], classes[kept]).score(rows[out]))
        return np.concatenate(scores)

    def _fitted(self, rows: Array, classes: Classes) -> VectorDetector:
        return self._make().fit(images=rows, image_labels=classes)

    def _make(self) -> VectorDetector:
        kind = DETECTORS[self.method]
        probe = {"head": "probe"} if issubclass(kind, HeadedDetector) else {}
        made = make_detector(self.method, UNUSED, {**probe, **kind.on_vectors, **(self.params or {})})
        if lacking := [need.value for need in made.wants() if need not in GIVEN]:
            raise ParameterError(
                f"method must be one that learns from ID vectors alone, and {self.method} needs {', '.join(lacking)}",
                hint='knn and mahalanobis do; "outword list methods" says what each needs',
            )
        return made
