"""FA: a learned prompt that competes with its own hand-written beginning."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from outword.maths.methods.base import DETECTORS, Need, parameter
from outword.maths.methods.prompted import PHOTO, Batch, Context, Prompted, PromptedMCM, Tensor, best_share
from outword.maths.numerics import Array


@DETECTORS.register("fa")
@dataclass
class FA(PromptedMCM):
    """Largest share of a learned prompt, among the learned and the hand-written prompts of all labels.

        S(x) = max_i e^{cos(x, t_i) / T} / (sum_j e^{cos(x, t_j) / T} + Kf sum_j e^{cos(x, t0_j) / T}),   T = 1
        t_i = text tower of [v_1] .. [v_M] [name of i] [.],   t0_i = that of "a photo of a {name}.",   v minimises
        mean of -log e^{s cos(x, t_y)} / (sum_j e^{s cos(x, t_j)} + Kf sum_j e^{s cos(x, t0_j)})

    The frozen prompts hold the learned ones to what the photos of the classes add to the bare names. Written from a
    note on the paper, not from its code: the learning is CoOp's (see there), from "a photo of a".

    Args: as for CoOp, and
        competitor: Kf, the weight of the frozen prompts; 1 is said to do, and at 0 it is CoOp.

    Reference: FA, ICCV 2025, github.com/0xFAFA/FA.

    >>> labels, frozen = [[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]
    >>> FA().fit(labels=labels, negatives=frozen).score([[1.0, 1.0]])    # a fourth each
    array([0.25])
    """

    start: str = PHOTO
    competitor: float = parameter(1.0, least=0, hint="the published value is 1, and 0 is CoOp")
    summary = "MCM with a learned prompt that competes with the hand-written one"
    needs = (*Prompted.needs, Need.NEGATIVES)

    def contexts(self) -> Mapping[str, Context]:
        """The hand-written prompt stands beside the learned one, and does not move."""
        return {**super().contexts(), "negatives": Context(0, PHOTO)}

    def loss(self, batch: Batch) -> Tensor:
        """Cross-entropy, with the frozen prompts among the alternatives."""
        if not self.competitor:
            return super().loss(batch)
        logits = batch.scale * batch.images @ batch.labels.T
        frozen = batch.scale * batch.images @ batch.negatives[0].T + math.log(self.competitor)
        own = logits.gather(1, batch.classes[:, None])[:, 0]
        return (logits.logsumexp(1).logaddexp(frozen.logsumexp(1)) - own).mean()

    def _score(self, images: Array) -> Array:
        if not self.competitor:
            return super()._score(images)
        frozen = images @ self._no[0].T / self.temperature + math.log(self.competitor)
        return best_share(images @ self._y.T / self.temperature, frozen)
