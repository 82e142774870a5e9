"""Representative words lie where the corpus is dense (this paper, Eq. 14)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from outword.base.checks import whole_number
from outword.base.reports import Steps
from outword.errors import ParameterError
from outword.maths.kernels import neighbour_density
from outword.maths.mining.base import MINERS, Indices, Miner, Pool, fraction, ranked
from outword.maths.numerics import Array, blocks, matrix, unit_rows

SMALLEST_SUM = 1e-12  # equal words are at distance 0, less rounding


@MINERS.register("density")
@dataclass
class Density(Miner):
    """Keep the words whose nearest neighbours are nearest.

        Rep(w) = -log sum_{w' in M(w, alpha)} |w - w'|^2

    `M(w, alpha)` are the alpha nearest other words, vectors are unit, so `|w - w'|^2 = 2 - 2 cos`. Eq. 14 never looks
    at the ID labels: one ranking of an (encoder, corpus, prompts) serves every label list.

    `preset="released"` is the authors' code instead: distance `|w| + |w'| - 2 cos` with raw lengths, the word itself
    among its alpha + 1 neighbours, the mean of the logs, and nouns and adjectives ranked apart with quotas.

    Args:
        alpha: number of neighbours (all others, where there are fewer); the paper's is 100.
        size: how many words to keep; the paper's is 12,000. Not used by the released preset.
        preset: "paper" or "released".
        noun_share: released preset: share of nouns kept (0.23 for ViT-B/16).
        adjective_share: released preset: share of adjectives kept (0.13 for ViT-B/16).

    Reference: "Debiased Negative Mining Improves Out-of-distribution Detection with Pre-trained Vision-Language
    Models", arXiv 2605.23797, Eq. 14.

    >>> words = [[1.0, 0.0], [0.9, 0.1], [0.8, 0.2], [-1.0, 0.1]]
    >>> Density(alpha=1, size=2).select(words)
    array([0, 1])
    """

    alpha: int = 100
    size: int = 12_000
    preset: Literal["paper", "released"] = "paper"
    noun_share: float = 0.23
    adjective_share: float = 0.13

    def rep(self, words: ArrayLike, *, progress: Steps | None = None) -> Array:
        """Representativeness of each word, (n_words,); larger means more representative."""
        vectors = matrix(words, "words")
        whole_number("alpha", self.alpha, hint="the paper's is 100")
        alpha = min(self.alpha, len(vectors) - 1)
        if alpha == 0:
            return np.zeros(len(vectors))  # a word alone has no neighbours
        if self.preset == "paper":
            sums = neighbour_density(vectors, alpha, progress=progress)
            return -np.log(np.maximum(sums, SMALLEST_SUM))
        if self.preset == "released":
            return -_released_log_density(vectors, alpha, progress)
        raise ParameterError(f'preset must be "paper" or "released", got {self.preset!r}', hint='use preset="paper"')

    def first(self, order: Indices) -> Indices:
        """What this rule keeps of a ranking of all words."""
        whole_number("size", self.size, hint="the paper's is 12,000")
        return order[: self.size]

    def _select(self, pool: Pool) -> Indices:
        order = ranked(self.rep(pool.words, progress=pool.progress))
        if self.preset == "paper":
            return self.first(order)
        fraction("noun_share", self.noun_share)
        fraction("adjective_share", self.adjective_share)
        return pool.shares(order, self.noun_share, self.adjective_share)


def _released_log_density(words: ArrayLike, alpha: int, progress: Steps | None) -> Array:
    """Mean log distance to the alpha + 1 nearest words, self included: the authors' ranking key, smaller is better."""
    raw = matrix(words, "words").astype(np.float64)
    lengths, unit = np.linalg.norm(raw, axis=1), unit_rows(raw, "words")
    out = np.empty(len(unit))
    for rows in blocks(len(unit), len(unit)):
        distance = lengths[rows, None] + lengths - 2 * unit[rows] @ unit.T
        distance.partition(alpha, axis=1)
        nearest = np.maximum(distance[:, : alpha + 1], np.finfo(float).eps)
        out[rows] = np.log(nearest).mean(axis=1)
        if progress:
            progress(min(rows.stop, len(unit)), len(unit))
    return out
