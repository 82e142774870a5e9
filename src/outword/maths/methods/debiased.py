"""This paper's score: wild words hold positives too, and their part is taken out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from outword.base.checks import number, one_of
from outword.errors import InputError, ParameterError
from outword.maths.methods.base import DETECTORS, Classes, parameter
from outword.maths.methods.grouped import GroupedDetector, check_groups, exp, mean_share, natural_odds
from outword.maths.numerics import Array, unit_rows

CAP_RATIO = 0.7  # |G| / K up to which the cap leaves alone every tau that the rule admits
NOISE_GAIN = 10.0  # how far noise may lift S above its largest value without noise
SMALLEST_TERM = 1e-12  # of 1 - c tau r: at tau = K / (K + |G|) itself S has no largest value
PULL = (1 + CAP_RATIO) * 0.5  # tau (1 + |G|/K) at the paper's tau where the cap begins; tau="auto" has it for all K


def _share_or_auto(name: str, value: float | str) -> None:
    if value != "auto":
        number(name, value, least=0, below=1, hint='the paper\'s is 0.5; or leave it to "auto"')


@DETECTORS.register("debiased")
@dataclass
class Debiased(GroupedDetector):
    """Share of the softmax mass on the ID labels, with the positives among the wild words taken out (Eq. 18).

        S(x) = 1/B sum_b a / (a + q_b - tau g),   a = (1 - tau) / |G| P,   h = cos / temperature
        P    = sum_i e^{h(x, y_i)}                 ID mass
        q_b  = mean_{u in G_b} e^{h(x, u)}         wild mean of group b
        g    = mean_i e^{h(x, v_i)}                positive mean,  v_i = unit(y_i + sigma eps_i)

    With `r = g / (P/K)` and `c = |G| / ((1 - tau) K)` a group's term is `1 / (1 - c tau r + q_b/a)`, and that is how it
    is computed, from log masses. Its largest value is `1 / (1 - c tau)`, so S may exceed 1. Noise (sigma > 0) can
    push `c tau r` above 1 for a single image; S then stops at ten times that value.

    `tau <= K / (K + |G|)` keeps the denominator positive for every image. Short label lists break that rule, and
    `policy` says what is done about it (docs/short-lists.md has the measurements):

    * "cap": while |G| <= 0.7 K, every tau that the rule admits is used as it is. For shorter lists wild words weigh
      6.7 times a label at most, the `w = 1 / (1 - tau (1 + |G|/K))` of the paper's tau at |G| = 0.7 K: near the rule's
      limit w has none. A tau above either is lowered to that weight, `tau_ = 0.85 / (1 + |G|/K)`.
    * "paper": the formula as printed, or an error that names the largest tau that it admits.

    `tau="auto"` needs neither a guess nor data: wild words get that weight whatever the number of labels. While
    |G| >= 0.7 K that is 0.5 under the cap; for longer lists it is larger, 0.76 in the paper's setting.

    Args:
        temperature: divisor of cosines; the paper's kappa, 0.01.
        n_groups: B; the paper's is 100. Words that do not fill a group are dropped from the tail.
        seed: of the groups and the noise, both drawn once, at `fit`.
        tau: share of positives among the wild words, in [0, 1), or "auto"; the paper's is 0.5. At 0 the score is
            NegLabel's.
        sigma: size of the noise that makes positives out of labels; the paper's is 0.001, the released code adds none.
            Noise moves the largest value that S can take, differently for each label, and so blurs the order of the
            images that are close to it; `outword.fit` adds none (docs/short-lists.md).
        policy: what to do for short label lists.

    Learned: `tau_`, the tau in use (`in_use` gives it, too); `groups_`, (n_groups, size) indices into wild;
    `positives_`, the v_i.

    Reference: "Debiased Negative Mining Improves Out-of-distribution Detection with Pre-trained Vision-Language
    Models", arXiv 2605.23797, Eq. 12 to 18.

    >>> y, u = [[1.0, 0.0]], [[0.0, 1.0]]
    >>> d = Debiased(temperature=1.0, tau=0.25, sigma=0.0, n_groups=1, policy="paper").fit(labels=y, wild=u)
    >>> d.score([[1.0, 0.0]]).round(4)                  # .75 e / (.75 e + 1 - .25 e)
    array([0.8642])
    """

    tau: float | Literal["auto"] = parameter(0.5, _share_or_auto)
    sigma: float = parameter(0.001, least=0, most=100, hint="0 adds no noise")
    policy: Literal["cap", "paper"] = parameter("cap", one_of, choices=("cap", "paper"))
    learned: ClassVar[tuple[str, ...]] = ("groups", "positives", "tau")
    in_pipeline: ClassVar[Mapping[str, Any]] = {"sigma": 0.0}
    in_graph: ClassVar[bool] = True
    summary: ClassVar[str] = "this paper: mass on the labels, positives among the wild words taken out"

    def _learn(self, images: Array | None, classes: Classes | None) -> None:
        super()._learn(images, classes)
        noise = np.random.default_rng([self.seed, 1]).standard_normal(self._y.shape)
        self.positives_ = unit_rows(self._y + self.sigma * noise) if self.sigma else self._y
        self.tau_ = self.tau_for(len(self._y), check_groups(self.groups_, len(self.wild_)).shape[1])  # type: ignore[arg-type]

    def _prepare(self) -> None:
        if self.positives_.shape != self._y.shape:
            raise InputError("positives must be as many as labels", hint="fit it again")
        super()._prepare()
        n_labels, size = len(self.labels_), self.groups_.shape[1]
        kept = [self.tau_for(n_labels, size)] if self.tau_ is None else np.ravel(self.tau_)  # older artifacts have none
        if len(kept) != 1 or not 0 <= kept[0] <= largest_tau(n_labels, size):
            raise InputError(f"tau must be one number up to K / (K + |G|), got {self.tau_}", hint="fit it again")
        self.tau_ = float(kept[0])
        odds = natural_odds(n_labels, size)
        self.default_threshold_ = (1 - self.tau_) * odds / (1 + odds * (1 - self.tau_ / largest_tau(n_labels, size)))

    def in_use(self) -> dict[str, float]:
        """The tau of the score, which short label lists lower."""
        return {"tau": self.tau_}

    def tau_for(self, n_labels: int, size: int) -> float:
        """The tau in use for so many labels and groups of so many words.

        >>> Debiased().tau_for(1000, 120), round(Debiased().tau_for(10, 120), 3), Debiased(tau=0.05).tau_for(10, 120)
        (0.5, 0.065, 0.05)
        """
        most = largest_tau(n_labels, size)
        if self.tau == "auto":
            return PULL * most
        tau, short = float(self.tau), size > CAP_RATIO * n_labels
        if self.policy == "cap":
            return tau if tau <= (PULL * most if short else most) else PULL * most
        if tau <= most:
            return tau
        raise ParameterError(
            f"tau must be at most K / (K + |G|) = {most:.4g} for {n_labels} labels and groups of {size} words, "
            f"or the denominator of Eq. 18 turns negative; got {self.tau}",
            hint='lower tau, raise n_groups, or use policy="cap"',
        )

    def _positives(self) -> list[Array]:
        return [self._y, self.positives_] if self.sigma else [self._y]  # without noise g = P / K

    def _combine(self, masses: Any) -> Any:
        c = self.groups_.shape[1] / ((1 - self.tau_) * len(self.labels_))  # a term is 1 / (1 - c tau r + q_b / a)
        log_p = masses[:, :1]
        log_qa = masses[:, len(self._parts) :] - (log_p + np.log1p(-self.tau_))
        if len(self._parts) == 1 or not self.tau_:
            return mean_share(max(1 - c * self.tau_, SMALLEST_TERM), log_qa)
        least = max((1 - c * self.tau_) / NOISE_GAIN, SMALLEST_TERM)
        return mean_share((1 - c * self.tau_ * exp(masses[:, 1:2] - log_p)).clip(min=least), log_qa)


def largest_tau(n_labels: int, group_size: int) -> float:
    """The largest tau that keeps the denominator of Eq. 18 positive for every image, `K / (K + |G|)`.

    >>> largest_tau(1000, 120).__round__(3), largest_tau(10, 120).__round__(3)
    (0.893, 0.077)
    """
    return n_labels / (n_labels + group_size)
