"""FA: a learned prompt that competes with its own hand-written beginning."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from outword.base.checks import whole_number
from outword.maths.methods.base import DETECTORS, Need, parameter
from outword.maths.numerics import Array, log_sum_exp
from outword_lab.learning.methods.prompted import PHOTO, Batch, Context, Prompted, PromptedMCM, Stage, Tensor


@DETECTORS.register("fa")
@dataclass
class FA(PromptedMCM):
    """Largest share of any prompt, learned or hand-written, among those of all labels.

        S(x) = max(max_i e^{cos(x, t_i) / T}, max_i e^{cos(x, t0_i) / T}) / Z,   T = 1
        Z = sum_j e^{cos(x, t_j) / T} + K sum_j e^{cos(x, t0_j) / T}
        t_i = text tower of [v_1] .. [v_M] [name of i] [.],   t0_i = that of "a photo of a {name}.",   v minimises
        mean of -log e^{s cos(x, t_y)} / (sum_j e^{s cos(x, t_j)} + K sum_j e^{s cos(x, t0_j)})

    The frozen prompts hold the learned ones to what the photos of the classes add to the bare names. Settings are those
    of the released code: the learning is CoOp's (see there) from "a photo of a", but for larger batches and a cosine
    that begins at once and falls with each step. Photos are cropped, turned and recoloured anew in each epoch there.

    Args: as for CoOp, and
        batch: photos of a step; the released value is 160.
        competitor: K, the weight of the frozen prompts. The released configuration has 3, its tables have 2, 3 and 4;
            at 0 it is CoOp.
        learned_only: whether S is the largest share of a learned prompt alone. No release has that; detectors that were
            saved before `learned_only` was a parameter do.

    Reference: Lu et al., "FA: Forced Prompt Learning of Vision-Language Models for Out-of-Distribution Detection",
    ICCV 2025, github.com/0xFAFA/FA.

    >>> detector = FA(competitor=1.0).fit(labels=[[1.0, 0.0]], negatives=[[0.0, 1.0]])
    >>> detector.score([[0.0, 1.0]]).round(3)    # e / (1 + e): the hand-written prompt's
    array([0.731])
    """

    batch: int = parameter(160, whole_number, hint="the released value is 160")
    start: str = PHOTO
    competitor: float = parameter(3.0, least=0, hint="the released value is 3, and 0 is CoOp")
    learned_only: bool = False
    summary = "MCM with a learned prompt that competes with the hand-written one"
    needs = (*Prompted.needs, Need.NEGATIVES)
    before = {"learned_only": True}

    def contexts(self) -> Mapping[str, Context]:
        """The hand-written prompt stands beside the learned one, and does not move."""
        return {**super().contexts(), "negatives": Context(0, PHOTO)}

    def stages(self) -> tuple[Stage, ...]:
        """CoOp's, at another rate."""
        return tuple(replace(stage, warm_up=0, every_step=True) for stage in super().stages())

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
        learned = images @ self._y.T / self.temperature
        frozen = images @ self._no[0].T / self.temperature
        best = learned.max(axis=1)
        if not self.learned_only:
            best = np.maximum(best, frozen.max(axis=1))
        log_z = np.logaddexp(log_sum_exp(learned), log_sum_exp(frozen + math.log(self.competitor)))
        return np.asarray(np.exp(best - log_z))
