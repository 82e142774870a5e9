"""NegLabel: the softmax mass on the ID labels, against groups of negative words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from outword.maths.methods.base import DETECTORS
from outword.maths.methods.grouped import GroupedDetector, mean_share, natural_odds


@DETECTORS.register("neglabel")
@dataclass
class NegLabel(GroupedDetector):
    """Share of the softmax mass that falls on the ID labels, averaged over groups of negative words.

        S(x) = 1/B sum_b P / (P + sum_{u in G_b} e^{h(x, u)}),   P = sum_i e^{h(x, y_i)},   h = cos / temperature

    Args:
        temperature: divisor of cosines; CLIP's is 0.01.
        n_groups: B; the published value is 100. Words that do not fill a group are dropped from the tail.
        seed: deals the words into groups, once, at `fit`.

    Reference: Jiang et al., "Negative Label Guided OOD Detection with Pretrained Vision-Language Models", ICLR 2024.

    >>> y, u = [[1.0, 0.0]], [[0.0, 1.0]]
    >>> NegLabel(temperature=1.0, n_groups=1).fit(labels=y, wild=u).score([[0.6, 0.8], [1.0, 0.0]]).round(4)
    array([0.4502, 0.7311])
    """

    summary = "softmax mass on the labels against negative words"
    miner = "quantile"
    in_graph = True

    def _prepare(self) -> None:
        super()._prepare()
        odds = natural_odds(len(self.labels_), self.groups_.shape[1])
        self.default_threshold_ = odds / (1 + odds)

    def _combine(self, masses: Any) -> Any:
        log_p, log_q = masses[:, :1], masses[:, 1:]
        return mean_share(1.0, log_q - log_p)
