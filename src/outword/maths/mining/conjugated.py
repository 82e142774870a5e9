"""NegLabel's rule with a guard against words that are an ID label in disguise (CSP)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outword.maths.mining.base import MINERS, fraction
from outword.maths.mining.quantile import Quantile
from outword.maths.numerics import Array


@MINERS.register("conjugated")
@dataclass
class Conjugated(Quantile):
    """Keep the words far from the ID labels, nouns and adjectives apart; near copies of a label come last.

        d(w) = 1                                          if max_i cos(w, y_i) > guard
        d(w) = quantile_q { cos(w, y_i) : i = 1..K }      else

    The smallest d are kept. A quantile overlooks the few labels that a word lies closest to; the guard looks at them.

    Args:
        quantile: the published value is 0.95.
        share: share of nouns, and of adjectives, that is kept; the published value is 0.15.
        guard: the published value is 0.95; at 1 the rule is NegLabel's.

    Reference: Chen et al., "Conjugated Semantic Pool Improves OOD Detection with Pre-trained Vision-Language Models",
    NeurIPS 2024.

    >>> words, labels = [[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]
    >>> Conjugated(quantile=0.5, share=1.0).select(words, labels=labels)
    array([1, 0])
    """

    guard: float = 0.95

    def _closeness(self, cosines: Array) -> Array:
        fraction("guard", self.guard)
        largest = np.round(cosines.max(axis=1), 10)  # a word that equals a label may come out a little above 1
        return np.where(largest > self.guard, 1.0, super()._closeness(cosines))
