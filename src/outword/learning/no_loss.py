"""What a text tower that says no is trained by."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


def no_loss(images: Tensor, yes: Tensor, no: Tensor, scale: float) -> Tensor:
    """CLIPN's loss on N pairs of an image and a text: say yes to the own text, no to the others, and keep apart.

        p_ij = e^{s x_i.t_j} / (e^{s x_i.t_j} + e^{s x_i.n_j})
        L = 1/2 ( - 1/N sum_i log p_ii - 1/(N^2 - N) sum_{i != j} log(1 - p_ij) + 1/N sum_j (2 - |t_j - n_j|) )
        |t - n|^2 = 2 - 2 t.n + 1e-4

    At n = t every p is 1/2 and L is log 2 + 0.995.

    Args:
        images: x, (N, dim), unit rows, N at least 2.
        yes: t, (N, dim), unit rows.
        no: n, (N, dim), unit rows: what is learned.
        scale: s, one over the temperature.

    Reference: Wang et al., "CLIPN for Zero-Shot OOD Detection: Teaching CLIP to Say No", ICCV 2023, and its code.
    """
    n = len(images)
    ahead = scale * images @ (yes - no).T  # p = sigmoid(ahead), 1 - p = sigmoid(-ahead)
    own = torch.eye(n, dtype=torch.bool, device=images.device)
    others = logsigmoid(-ahead).masked_fill(own, 0.0)
    match = -logsigmoid(ahead.diagonal()).mean() - others.sum() / (n * n - n)
    apart = (2 - (2 - 2 * (yes * no).sum(dim=1) + 1e-4).sqrt()).mean()
    return 0.5 * (match + apart)
