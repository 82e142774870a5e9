"""ASH: the energy, with small activations removed and the others changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from outword.base.checks import one_of
from outword.maths.methods.base import DETECTORS, parameter
from outword.maths.methods.headed import HeadedDetector
from outword.maths.numerics import Array, log_sum_exp


@DETECTORS.register("ash")
@dataclass
class ASH(HeadedDetector):
    """Energy of the head on shaped activations: the small ones are removed, the others kept or changed.

        S(x) = log sum_i e^{z_i},   z = W f + b,   f_j = 0 where |x_j| is under the percentile of |x|, elsewhere
        "p": f_j = x_j,    "b": f_j = sign(x_j) s_1 / n,    "s": f_j = x_j e^{s_1 / s_2}

    n entries are left, `s_1` is the sum of |x| before and `s_2` after. Entries of vision-language vectors have both
    signs: what is small is told by |x_j|, and signs are kept (ours). For entries of at least 0 it is the published
    rule. x are unit vectors, and f is not normalised again. The score depends on the axes of the space.

    Args:
        temperature: divisor of cosines; CLIP's is 0.01.
        head: "labels", or "probe" for a linear probe on ID images with labels.
        variant: "s" scales, "b" makes all that is left equal, "p" only prunes.
        percentile: share of the entries that is removed, in [0, 1); 0.9 is published with "s" for ImageNet. At 0, "p"
            is Energy.

    Reference: Djurisic et al., "Extremely Simple Activation Shaping for Out-of-Distribution Detection", ICLR 2023.

    >>> d = ASH(temperature=1.0, variant="b", percentile=0.5).fit(labels=[[1.0, 0.0], [1.0, 0.0]])
    >>> d.score([[0.8, -0.6]]).round(4)                                 # f = (1.4, 0): 1.4 + log 2
    array([2.0931])
    """

    variant: Literal["s", "b", "p"] = parameter("s", one_of, choices=("s", "b", "p"))
    percentile: float = parameter(0.9, least=0, below=1, hint="0.9 is the default")
    summary = "energy, with small activations removed and the others scaled"
    sees_axes = True
    in_small_world = {"percentile": 0.5}

    def _score(self, images: Array) -> Array:
        return log_sum_exp(self._logits(self._shaped(images)))

    def _shaped(self, x: Array) -> Array:
        size = np.abs(x)
        removed = min(round(self.percentile * x.shape[1]), x.shape[1] - 1)
        kept = size >= np.partition(size, removed, axis=1)[:, removed, None]
        if self.variant == "p":
            return np.where(kept, x, 0.0)
        before = size.sum(axis=1, keepdims=True)
        if self.variant == "b":
            return np.where(kept, np.sign(x) * before / kept.sum(axis=1, keepdims=True), 0.0)
        after = np.where(kept, size, 0.0).sum(axis=1, keepdims=True)
        return np.asarray(np.where(kept, x, 0.0) * np.exp(before / after))
