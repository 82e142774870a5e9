"""SCT: LoCoOp that leans on the class where it is not sure of it yet, and on the patches where it is."""

from __future__ import annotations

from dataclasses import dataclass

from outword.base.checks import whole_number
from outword.maths.methods.base import DETECTORS, parameter
from outword_lab.learning.methods.locoop import LoCoOp, patch_entropies
from outword_lab.learning.methods.prompted import Batch, Tensor, own_log_shares

TINY = 1e-7  # what the release adds to both weights


@DETECTORS.register("sct")
@dataclass
class SCT(LoCoOp):
    """LoCoOp whose two losses are weighted by the share of each photo's own class.

        v minimises  mean of (1 - pi_x) (-log pi_x) - lam mean over patches q in R of pi_{x(q)} H(softmax(s cos(q, t)))
        pi_x = softmax_y(s cos(x, t)),   R and H as in LoCoOp,   x(q) the photo of a patch

    1e-7 is added to both weights, and gradients go through them, as in the released code.

    Args: as for LoCoOp; the published number of epochs is 25.

    Reference: Yu et al., "Self-Calibrated Tuning of Vision-Language Models for Out-of-Distribution Detection",
    NeurIPS 2024.

    >>> SCT(weight=0.0).fit(labels=[[1.0, 0.0], [1.0, 0.0]]).score([[0.0, 1.0]])
    array([0.5])
    """

    epochs: int = parameter(25, whole_number, least=0, most=100_000, hint="the published value is 25")
    summary = "LoCoOp, weighted by how sure it is of each photo's class"

    def loss(self, batch: Batch) -> Tensor:
        """Both parts of LoCoOp's loss, weighted by photo."""
        logs = own_log_shares(batch.scale * batch.images @ batch.labels.T, batch.classes)
        pi = logs.exp()
        found = -((1 + TINY - pi) * logs).mean()
        if not self.lam:
            return found
        entropy, outside = patch_entropies(batch, self.share)
        weighted = (TINY + pi)[:, None] * entropy * outside
        return found - self.lam * weighted.sum() / outside.sum().clamp(min=1)
