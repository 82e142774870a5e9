"""EOE: the best label against the best of the outlier words that somebody named."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outword.maths.methods.base import DETECTORS, Need, VectorDetector, parameter
from outword.maths.numerics import Array, log_sum_exp, unit_rows


@DETECTORS.register("eoe")
@dataclass
class EOE(VectorDetector):
    """Largest probability of a label, less a part of the largest probability of an outlier word.

        S(x) = max_i p_i - beta max_k p_{K+k},   p = softmax over y_1..y_K, u_1..u_L of cos(x, .) / T,   T = 1

    The words are yours: the authors asked a language model for 500 classes that the photos may show instead. All
    are kept, in one group.

    Args:
        temperature: the T above; the published value is 1, whatever the encoder's own temperature is.
        beta: weight of the outlier words, at least 0; the published value is 0.25.

    Reference: Cao et al., "Envisioning Outlier Exposure by Large Language Models for Out-of-Distribution Detection",
    ICML 2024.

    >>> EOE().fit(labels=[[1.0, 0.0]], wild=[[0.0, 1.0]]).score([[1.0, 1.0]])    # 1/2 - 1/4 1/2
    array([0.375])
    """

    temperature: float = 1.0
    beta: float = parameter(0.25, least=0, hint="the published value is 0.25")
    summary = "best label against the best of your own outlier words"
    needs = (Need.LABELS, Need.WILD)
    miner = "all"
    corpus = ""
    prompts = "mcm"
    own_temperature = True
    in_graph = True

    def _prepare(self) -> None:
        self._texts = np.concatenate([self._y, unit_rows(self.wild_, "wild")])  # type: ignore[arg-type]

    def _score(self, images: Array) -> Array:
        logits, k = images @ self._texts.T / self.temperature, len(self._y)
        log_sum = log_sum_exp(logits)
        inside, outside = (np.exp(part.max(axis=1) - log_sum) for part in (logits[:, :k], logits[:, k:]))
        score: Array = inside - self.beta * outside
        return score
