"""Every word of the corpus: for lists that somebody wrote on purpose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from outword.maths.kernels.threads import Progress
from outword.maths.mining.base import Indices, Miner
from outword.maths.numerics import matrix


@dataclass
class Every(Miner):
    """Keep every word, in the order of the corpus.

    >>> Every().select([[1.0], [2.0], [3.0]])
    array([0, 1, 2])
    """

    def select(
        self,
        words: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        adjectives: ArrayLike | None = None,
        progress: Progress | None = None,
    ) -> Indices:
        """Indices of all words; nothing but their number is looked at."""
        return np.arange(len(matrix(words, "words")))
