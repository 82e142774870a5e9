"""Relative and absolute evidence together: the log-odds of labels against wild words, plus the largest logit."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from outword.maths.methods.base import DETECTORS, parameter
from outword.maths.methods.grouped import log_odds
from outword.maths.methods.tau import SMALLEST_TERM, TauDetector

if TYPE_CHECKING:
    from typing_extensions import Self


@DETECTORS.register("grounded")
@dataclass
class Grounded(TauDetector):
    """Log-odds of `debiased`, plus b times the largest logit of a label.

        S(x) = L(x) + b max_i h(x, y_i),   h = cos / temperature
        L(x) = log mean_j 1 / (m + r_j) - log mean_j r_j / (m + r_j),   m = 1 - c tau,   r_j = q_j / a

        P    = sum_i e^{h(x, y_i)}                 ID mass,  a = (1 - tau) / |G| P,  c = |G| / ((1 - tau) K)
        q_j  = mean_{u in G_j} e^{h(x, u)}         wild mean of group j

    `debiased` without noise is `S_d = mean_j 1 / (m + r_j)`, and `L = -log(1/S_d - m)`, in a form in which nothing
    cancels: with one group `L = log(a / q)`. L rises with S_d, so b = 0 has the order of `debiased`, its natural cut
    and its verdicts; the larger b, the nearer the order is to that of `maxlogit`.

    L is relative: it says whether labels or words have the mass, and is blind to images that are far from everything,
    where all masses are small and chance decides which is the largest. The largest logit is absolute, and sees just
    that. Alone it would not know that a word fits better still. docs/verdicts.md has the measurements behind b = 1.

    With b > 0 there is no natural cut: a cut comes from photos. `relative` is the detector to use where there are none.

    Args:
        temperature: divisor of cosines; CLIP's is 0.01.
        n_groups: how many groups words are dealt into. Words that do not fill a group are dropped from the tail.
        seed: of the groups, dealt once, at `fit`.
        tau: share of positives among the wild words, in [0, 1), or "auto"; see `debiased`.
        policy: what to do for short label lists; see `debiased`.
        b: weight of the largest logit, 0 to 1e6.

    Learned: `tau_`, the tau in use (`in_use` gives it, too); `groups_`, (n_groups, size) indices into wild.

    >>> y, u = [[1.0, 0.0]], [[0.0, 1.0]]
    >>> d = Grounded(temperature=1.0, tau=0.25, n_groups=1, policy="paper").fit(labels=y, wild=u)
    >>> d.score([[0.6, 0.8]]).round(4)                  # log(.75 e^.6 / e^.8) + .6
    array([0.1123])
    """

    b: float = parameter(1.0, least=0, most=1e6, hint="1 is the natural weight, 0 leaves the order of debiased")
    summary: ClassVar[str] = "log-odds of labels against words, plus the largest logit: relative and absolute evidence"
    kinds: ClassVar[str] = "auto"
    _peak: ClassVar[bool] = True

    def _prepare(self) -> None:
        super()._prepare()
        self.default_threshold_ = None if self.b else -math.log(self._natural_r())

    def relative(self) -> Self:
        """The same with b = 0, on the same arrays: the order, the natural cut and the verdicts of `debiased`."""
        alone = copy.copy(self)
        alone.b, alone.default_threshold_, alone._banks = 0.0, -math.log(self._natural_r()), self._banks
        return alone

    def _combine(self, masses: Any) -> Any:
        log_r = self._log_r(masses[:, :1], masses[:, 1:-1])
        return log_odds(max(1 - self._c_tau(), SMALLEST_TERM), log_r) + self.b * masses[:, -1]
