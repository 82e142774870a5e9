"""LSN: learned prompts that say what a class is not, beside one that says what it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from outword.base.checks import whole_number
from outword.maths.methods.base import DETECTORS, Need, parameter
from outword.maths.numerics import Array, largest_probability
from outword_lab.learning.methods.prompted import Batch, Context, Prompted, PromptedMCM, Stage, Tensor, own_log_shares

COOLER = 5.0  # what the release divides 1 - cos by when it scores
STEEPER = 20.0  # and multiplies it with when it learns


@DETECTORS.register("lsn")
@dataclass
class LSN(PromptedMCM):
    """MCM of learned prompts, plus what learned negative prompts, three for each class, do not say.

        S(x) = max_i softmax_i(cos(x, t_i) / T) + 1/J sum_j max_i softmax_i((1 - cos(x, n_ji)) / 5),   T = 1
        t: CoOp's loss;   n_j: mean of -log softmax_y(20 (1 - cos(x, n_j))) + lam mean_i mean_{l != j} cos(n_ji, n_li)

    A class has negative tokens of its own, so that they do not move to other labels. Settings are those of the released
    code: the positive prompt is learned with a rate of 0.001, the negatives with Adam at `negative_rate` for twice the
    epochs. There the three are learned in turn within an epoch, here side by side, by the same loss; there all four
    cross-entropies take the softmax of a softmax, which is `double_softmax=True` here and said in no formula. The
    published row of the paper's Table 1 is CoCoOp with LSN, which is not released; this is CoOp with LSN.

    Args: as for CoOp, and
        negatives: J, prompts for each class that say no; the published value is 3.
        negative_rate: of learning those, with Adam; that of the release is 0.002.
        lam: weight of the cosines between the negatives of a class; the paper's value is 0.1, the release has 1.
        double_softmax: whether the losses take the softmax of a softmax, as the released code does.

    Reference: Nie et al., "Out-of-Distribution Detection with Negative Prompts", ICLR 2024.

    >>> labels, negatives = [[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]
    >>> LSN().fit(labels=labels, negatives=negatives).score([[1.0, 0.0]])    # a half and a half
    array([1.])
    """

    rate: float = parameter(0.001, above=0, hint="the released value is 0.001")
    batch: int = parameter(8, whole_number, hint="the released value is 8")
    negatives: int = parameter(3, whole_number, most=100, hint="the published value is 3")
    negative_rate: float = parameter(0.002, above=0, hint="the released value is 0.002")
    lam: float = parameter(0.1, least=0, hint="the paper's value is 0.1")
    double_softmax: bool = False
    summary = "MCM of a learned prompt plus learned prompts that say no"
    needs = (*Prompted.needs, Need.NEGATIVES)

    def contexts(self) -> Mapping[str, Context]:
        """The tokens of all classes, and those of each that say no."""
        return {**super().contexts(), "negatives": Context(self.context, sets=self.negatives, own=True)}

    def stages(self) -> tuple[Stage, ...]:
        """First what a class is, then what it is not."""
        first = Stage(("labels",), self.loss, self.epochs, self.rate, self.batch, warm_up=0)
        then = Stage(("negatives",), self.negative_loss, 2 * self.epochs, self.negative_rate, self.batch, warm_up=0)
        return first, replace(then, optimizer="adam", decay=0.0)

    def loss(self, batch: Batch) -> Tensor:
        """CoOp's."""
        return self._cross_entropy(batch.scale * batch.images @ batch.labels.T, batch.classes)

    def negative_loss(self, batch: Batch) -> Tensor:
        """The sum over sets: a photo is far from what is not its class, and sets differ."""
        no = batch.negatives
        fits = (self._cross_entropy(STEEPER * (1 - batch.images @ one.T), batch.classes) for one in no)
        pairs = ((no[j] * no[k]).sum(1).mean() for j, k in combinations(range(len(no)), 2))
        # each pair pulls both of its sets, and a set has J - 1 of them
        return sum(fits) + self.lam * sum(pairs) / max(1, len(no) - 1)

    def _cross_entropy(self, logits: Tensor, classes: Tensor) -> Tensor:
        return -own_log_shares(logits.softmax(1) if self.double_softmax else logits, classes).mean()

    def _score(self, images: Array) -> Array:
        said = [largest_probability((1 - images @ one.T) / COOLER) for one in self._no]
        return np.asarray(super()._score(images) + np.mean(said, axis=0))
