"""NegPrompt: shared negative prompts that stay near each class and away from its photos."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from outword.base.checks import whole_number
from outword.maths.methods.base import DETECTORS, Need, parameter
from outword.maths.numerics import Array
from outword_lab.learning.methods.prompted import (
    PHOTO,
    Batch,
    Context,
    Prompted,
    PromptedMCM,
    Stage,
    Tensor,
    best_share,
)


@DETECTORS.register("negprompt")
@dataclass
class NegPrompt(PromptedMCM):
    """Largest share of a label, among learned prompts of the labels and their learned negatives.

        S(x) = max_i e^{cos(x, t_i) / T} / (sum_j e^{cos(x, t_j) / T} + sum_{j, m} e^{cos(x, n_mj) / T}),   T = 1
        t: CoOp's loss;   then n, from t: NIS + beta NPD + gamma NND
        NIS = mean over x of the cross-entropy between the uniform distribution and softmax_{m, j}(s cos(x, n_mj))
        NPD = -mean_{m, j} cos(n_mj, t_j),   NND = mean_j mean over m != l of cos(n_mj, n_lj)

    The negatives begin as the learned positive tokens, with noise from U(-1e-5, 1e-5), and are the same for all
    classes: they move to other labels. These are the paper's losses, after a note on it. The released code runs another
    branch by default, a multi-label margin loss that calls a class's negatives right, with the opposite sign of NPD and
    the length of the mean of a class's negatives, less 1, for NND: of two that is sqrt((1 + cos) / 2) - 1. It keeps the
    epoch with the best AUROC on an OOD test set, and learns at a rate of 0.1 whose cosine goes round many times; none
    of this is done here. Rate, momentum and epochs are CoOp's.

    Args: as for CoOp, and
        negatives: prompts for each class that say no; the published value is 2.
        beta: weight of NPD, which keeps negatives near their class; the published value is 0.1.
        gamma: weight of NND, which keeps them apart; the published value is 0.05.

    Reference: Li et al., "Learning Transferable Negative Prompts for Out-of-Distribution Detection", CVPR 2024.

    >>> labels, negatives = [[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]
    >>> NegPrompt().fit(labels=labels, negatives=negatives).score([[1.0, 1.0]])    # a fourth each
    array([0.25])
    """

    batch: int = parameter(64, whole_number, hint="the published value is 64")
    start: str = PHOTO
    negatives: int = parameter(2, whole_number, most=100, hint="the published value is 2")
    beta: float = parameter(0.1, least=0, hint="the published value is 0.1")
    gamma: float = parameter(0.05, least=0, hint="the published value is 0.05")
    summary = "MCM with learned negatives of each label among the alternatives"
    needs = (*Prompted.needs, Need.NEGATIVES)

    def contexts(self) -> Mapping[str, Context]:
        """The tokens of all classes, and from there those that say no."""
        return {**super().contexts(), "negatives": Context(0, "labels", noise=1e-5, sets=self.negatives)}

    def stages(self) -> tuple[Stage, ...]:
        """CoOp, then the negatives."""
        return *super().stages(), Stage(("negatives",), self.negative_loss, self.epochs, self.rate, self.batch)

    def negative_loss(self, batch: Batch) -> Tensor:
        """NIS + beta NPD + gamma NND."""
        no = batch.negatives
        sets, n_labels, _ = no.shape
        shares = (batch.scale * batch.images @ no.flatten(0, 1).T).log_softmax(1)
        found = -shares.mean() - self.beta * (no * batch.labels).sum(2).mean()
        if sets == 1:
            return found
        total = no.sum(0)  # the sum over pairs of different sets, from the square of the sum
        return found + self.gamma * ((total * total).sum() / n_labels - sets) / (sets * (sets - 1))

    def _score(self, images: Array) -> Array:
        others = images @ self._no.reshape(-1, images.shape[1]).T
        return best_share(images @ self._y.T / self.temperature, others / self.temperature)
