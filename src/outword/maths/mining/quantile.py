"""Negative words are those far from the ID labels (NegLabel)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from outword.base.reports import Steps
from outword.errors import InputError
from outword.maths.mining.base import MINERS, Indices, Miner, Pool, fraction, ranked
from outword.maths.numerics import Array, matrix, unit_rows

CELLS = 8_000_000  # cosines held at a time: 64 MB


@MINERS.register("quantile")
@dataclass
class Quantile(Miner):
    """Keep the words whose `quantile` of cosines to the ID labels is smallest, nouns and adjectives apart.

        d(w) = quantile_q { cos(w, y_i) : i = 1..K }      (linear interpolation)

    The choice depends on the ID labels, so a new label list means mining again.

    Args:
        quantile: NegLabel's is 0.95.
        share: share of nouns, and of adjectives, that is kept; NegLabel's is 0.15.

    Reference: Jiang et al., "Negative Label Guided OOD Detection with Pretrained Vision-Language Models", ICLR 2024.

    >>> Quantile(share=0.5).select([[1.0, 0.0], [0.0, 1.0]], labels=[[1.0, 0.1]])
    array([1])
    """

    quantile: float = 0.95
    share: float = 0.15
    needs_labels: ClassVar[bool] = True

    def closeness(self, words: ArrayLike, labels: ArrayLike, *, progress: Steps | None = None) -> Array:
        """`d(w)` of each word, (n_words,); larger means closer to the ID labels."""
        fraction("quantile", self.quantile)
        vectors, targets = matrix(words, "words"), unit_rows(labels, "labels")
        block = max(1, CELLS // len(targets))
        out = np.empty(len(vectors))
        for start in range(0, len(vectors), block):
            cosines = unit_rows(vectors[start : start + block], "words") @ targets.T
            out[start : start + block] = self._closeness(cosines)
            if progress:
                progress(min(start + block, len(vectors)), len(vectors))
        return out

    def _closeness(self, cosines: Array) -> Array:
        """`d` of words, from their cosines to the labels, (n_words, n_labels)."""
        return np.asarray(np.quantile(cosines, self.quantile, axis=1))

    def _select(self, pool: Pool) -> Indices:
        fraction("share", self.share)
        if pool.labels is None:
            raise InputError("labels must be given: this miner looks at the ID labels", hint="pass labels=")
        order = ranked(-self.closeness(pool.words, pool.labels, progress=pool.progress))
        return pool.shares(order, self.share, self.share)
