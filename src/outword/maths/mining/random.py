"""A plain random sample of the corpus: what any mining rule has to beat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outword.base.checks import whole_number
from outword.maths.mining.base import MINERS, Indices, Miner, Pool


@MINERS.register("random")
@dataclass
class Random(Miner):
    """Keep `size` words drawn without replacement from the seed.

    Args:
        size: how many words to keep.
        seed: of the local random generator.

    >>> Random(size=2, seed=0).select([[1.0], [2.0], [3.0]])
    array([2, 0])
    """

    size: int = 12_000
    seed: int = 0

    def _select(self, pool: Pool) -> Indices:
        whole_number("size", self.size, hint="the paper's is 12,000")
        whole_number("seed", self.seed, least=0, hint="use seed=0")
        return np.random.default_rng(self.seed).permutation(len(pool.words))[: self.size]
