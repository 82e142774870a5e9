"""Every word of the corpus: for lists that somebody wrote on purpose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outword.maths.mining.base import MINERS, Indices, Miner, Pool


@MINERS.register("all")
@dataclass
class Every(Miner):
    """Keep every word, in the order of the corpus.

    >>> Every().select([[1.0], [2.0], [3.0]])
    array([0, 1, 2])
    """

    def _select(self, pool: Pool) -> Indices:
        return np.arange(len(pool.words))
