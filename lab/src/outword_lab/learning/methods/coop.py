"""CoOp: MCM with a prompt that was learned on a few photos of each class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from outword.maths.methods.base import DETECTORS
from outword_lab.learning.methods.prompted import Context, PromptedMCM


@DETECTORS.register("coop")
@dataclass
class CoOp(PromptedMCM):
    """MCM's score with learned tokens in place of the words before a name.

        S(x) = max_i e^{cos(x, t_i) / T} / sum_j e^{cos(x, t_j) / T},   T = 1
        t_i = text tower of [v_1] .. [v_M] [name of i] [.],   v minimises the mean of -log softmax_y(s cos(x, t))

    s is 1 over the encoder's temperature, y the class of x. The v are the same for all classes, and move to other
    labels. Settings are those of LoCoOp's release: stochastic gradient descent with a momentum of 0.9 and a decay of
    5e-4, a first epoch at 1e-5, then a cosine to 0; 50 epochs are for ImageNet-1k, CoOp itself has 200 for short lists.
    Photos are not drawn anew in each epoch: `crops` of each are encoded once, or the photo as it is.

    CoCoOp, whose prompt depends on the photo, is not here: it would read all names anew for every photo that is scored.

    Args: as for MCM and GL-MCM, whose score it has with `weight=1`, and of the learning:
        shots: photos of each class that are learned from, at most; the published values are 1 to 16.
        epochs: how often each is seen; with 0 it is MCM with the prompt that it begins as.
        rate: of a step; the published value is 0.002.
        batch: photos of a step; the published value is 32.
        context: M, where the tokens begin at random; the published value is 16.
        start: words to begin as; "a photo of a" is the published other choice, with M = 4.
        by_class: whether each class has tokens of its own, as published too; they do not move to other labels.
        crops: random crops of each photo that stand for it, half of them mirrored; 0 for the photo itself.
        seed: of photos, beginning and order.

    Reference: Zhou et al., "Learning to Prompt for Vision-Language Models", IJCV 2022; as a detector with MCM's score:
    Miyai et al., LoCoOp, NeurIPS 2023.

    >>> CoOp().fit(labels=[[1.0, 0.0], [1.0, 0.0]]).score([[0.0, 1.0]])    # the vectors were learned before
    array([0.5])
    """

    by_class: bool = False
    summary = "MCM with a prompt learned on a few photos of each class"

    def contexts(self) -> Mapping[str, Context]:
        """One for all classes, or one for each."""
        return {"labels": Context(self.context, self.start, own=self.by_class)}
