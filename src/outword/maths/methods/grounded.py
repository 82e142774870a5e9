"""Relative and absolute evidence together: the log-odds of labels against wild words, plus the largest logit."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from outword.maths.kernels import Choice
from outword.maths.methods.base import DETECTORS, parameter
from outword.maths.methods.grouped import WordsDetector, natural_odds
from outword.maths.numerics import Array

if TYPE_CHECKING:
    from typing_extensions import Self

GROUP = 120  # words that the natural cut is about, as many as the paper has in a group


@DETECTORS.register("grounded")
@dataclass
class Grounded(WordsDetector):
    """Log-odds of the labels against all wild words, plus b times the largest logit of a label.

        S(x) = log(P / Q) + b max_i h(x, y_i),   h = cos / temperature
        P    = sum_i e^{h(x, y_i)}                 ID mass
        Q    = sum_u e^{h(x, u)}                   mass of all wild words

    `log(P / Q)` is relative: it says whether labels or words have the mass, and is blind to images that are far from
    everything, where all masses are small and chance decides which is the largest. The largest logit is absolute, and
    sees just that. Alone it would not know that a word fits better still. docs/verdicts.md has the measurements behind
    b = 1, and behind having neither groups nor tau: with one group, tau does not change an order.

    With b = 0 it has the order of `debiased` and `neglabel` with one group; the larger b, the nearer it is to the order
    of `maxlogit`. With b > 0 there is no natural cut: a cut comes from photos. `relative` is the detector to use where
    there are none; its cut is that of `debiased`, as many words as the paper has in a group standing for all.

    Args:
        temperature: divisor of cosines; CLIP's is 0.01.
        b: weight of the largest logit, 0 to 1e6.

    Reference: ours; it joins "Debiased Negative Mining Improves Out-of-distribution Detection with Pre-trained
    Vision-Language Models", arXiv 2605.23797, and MaxLogit (Hendrycks et al., ICML 2022).

    >>> d = Grounded(temperature=1.0).fit(labels=[[1.0, 0.0]], wild=[[0.0, 1.0]])
    >>> d.score([[0.6, 0.8]]).round(4)                  # log(e^.6 / e^.8) + .6
    array([0.4])
    """

    b: float = parameter(1.0, least=0, most=1e6, hint="1 is the natural weight, 0 leaves the log-odds alone")
    summary: ClassVar[str] = "log-odds of labels against words, plus the largest logit: relative and absolute evidence"
    kinds: ClassVar[str] = "auto"
    rivals: ClassVar[bool] = True
    in_graph: ClassVar[bool] = True
    _peak: ClassVar[bool] = True

    def _prepare(self) -> None:
        super()._prepare()
        self.default_threshold_ = None if self.b else self._natural()

    def _natural(self) -> float:
        n_words = self.groups_.size
        return math.log(natural_odds(len(self.labels_), GROUP) * GROUP / n_words)

    def relative(self) -> Self:
        """The same with b = 0, on the same arrays: log-odds, which have a natural cut."""
        alone = copy.copy(self)
        alone.b, alone.default_threshold_ = 0.0, self._natural()
        return alone

    def masses(self, images: ArrayLike) -> Array:
        """What `combine` takes: log P, log Q and the largest logit of each image, (n_images, 3) float64."""
        return np.asarray(self._bank(Choice("numpy", "float64")).log_masses(self._unit_images(images)))

    def combine(self, masses: Any) -> Any:
        """Scores (n_images,) from `masses`, an array or a tensor."""
        return masses[:, 0] - masses[:, 1] + self.b * masses[:, 2]

    def _combine(self, masses: Any) -> Any:
        return self.combine(masses)
