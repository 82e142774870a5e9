"""What a text tower that says no is trained by."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


def no_loss(images: Tensor, yes: Tensor, no: Tensor, scale: float, said: Tensor | None = None) -> Tensor:
    """CLIPN's loss on N pairs of an image and a text: say yes to the own text, no to the others, and keep apart.

        p_ij = e^{s x_i.t_j} / (e^{s x_i.t_j} + e^{s x_i.n_j})
        L = 1/2 ( - 1/N sum_i log p_ii - 1/|R| sum_{(i, j) in R} log(1 - p_ij) + 1/N sum_j (2 - |t_j - n_j|) )
        R = all i, j of which text j is not said of image i,   |t - n|^2 = 2 - 2 t.n + 1e-4

    At n = t every p is 1/2 and L is log 2 + 0.995. Where each image has one text and each text one image, as in the
    authors' data, R is all i != j.

    Args:
        images: x, (N, dim), unit rows, N at least 2.
        yes: t, (N, dim), unit rows.
        no: n, (N, dim), unit rows: what is learned.
        scale: s, one over the temperature.
        said: (N, N), whether text j is said of image i; without it only text i is said of image i.

    Reference: Wang et al., "CLIPN for Zero-Shot OOD Detection: Teaching CLIP to Say No", ICCV 2023, and its code.
    """
    ahead = scale * images @ (yes - no).T  # p = sigmoid(ahead), 1 - p = sigmoid(-ahead)
    if said is None:
        said = torch.eye(len(images), dtype=torch.bool, device=images.device)
    others = logsigmoid(-ahead).masked_fill(said, 0.0)
    n_others = (~said).sum().clamp(min=1)  # there may be none, if all texts are of one image
    match = -logsigmoid(ahead.diagonal()).mean() - others.sum() / n_others
    apart = (2 - (2 - 2 * (yes * no).sum(dim=1) + 1e-4).sqrt()).mean()
    return 0.5 * (match + apart)
