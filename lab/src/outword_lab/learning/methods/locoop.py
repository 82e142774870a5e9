"""LoCoOp: a learned prompt that is told by parts of the very photos what the classes are not."""

from __future__ import annotations

from dataclasses import dataclass

from outword.maths.methods.base import DETECTORS, Need, parameter
from outword_lab.learning.methods.prompted import Batch, PromptedMCM, Tensor

TINY = 1e-5  # what the release adds to a share before its logarithm


@DETECTORS.register("locoop")
@dataclass
class LoCoOp(PromptedMCM):
    """CoOp with patches that do not show the class of their photo as outliers; GL-MCM's score.

        v minimises  mean of -log softmax_y(s cos(x, t)) - lam mean over patches q in R of H(softmax(s cos(q, t)))
        R = patches of the batch whose round(share K) best classes are not the one of their photo,   H = entropy

    R is chosen anew in every step, by the prompts of that step. The score is GL-MCM's (`weight=1`); the authors ask to
    say which it is, and with `weight=0` it is MCM's, which needs no patches of the photos that are scored.

    Args: as for CoOp, and
        weight: of the patches in the score; 1 is GL-MCM's, 0 MCM's.
        lam: lambda, the weight of the entropy; the published value is 0.25, and at 0 it is CoOp. (The released code
            takes a lambda of 0 for its default.)
        share: of the K classes, those that must not be a patch's; the published value is 200 of 1,000, and the authors
            ask for the same share of other lists.
        budget: gigabytes of disk that the patches may take while it learns.

    Reference: Miyai et al., "LoCoOp: Few-Shot Out-of-Distribution Detection via Prompt Learning", NeurIPS 2023.

    >>> LoCoOp(weight=0.0).fit(labels=[[1.0, 0.0], [1.0, 0.0]]).score([[0.0, 1.0]])
    array([0.5])
    """

    weight: float = parameter(1.0, least=0, hint="1 is GL-MCM's score, 0 is MCM's")
    lam: float = parameter(0.25, least=0, hint="the published value is 0.25, and 0 is CoOp")
    share: float = parameter(0.2, above=0, most=1, hint="the published value is 0.2")
    budget: float = parameter(8.0, above=0, hint="8 gigabytes of disk are the default")
    summary = "CoOp with patches that do not show the class as outliers"
    needs = (*PromptedMCM.needs, Need.PATCHES)
    on_patches = True

    def loss(self, batch: Batch) -> Tensor:
        """Cross-entropy, less the entropy of patches that show something else."""
        found = super().loss(batch)
        if not self.lam:
            return found
        entropy, outside = patch_entropies(batch, self.share)
        return found - self.lam * (entropy * outside).sum() / outside.sum().clamp(min=1)


def patch_entropies(batch: Batch, share: float) -> tuple[Tensor, Tensor]:
    """The entropy of each patch (n, n_patches), and whether the class of its photo is not among its best."""
    logits = batch.scale * batch.patches @ batch.labels.T
    best = logits.topk(max(1, round(share * len(batch.labels))), -1).indices
    outside = (best != batch.classes[:, None, None]).all(-1)
    p = logits.softmax(-1)
    return -(p * (p + TINY).log()).sum(-1), outside.to(logits.dtype)
