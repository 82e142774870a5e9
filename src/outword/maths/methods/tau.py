"""What the methods share that take positives out of the wild words: their share tau, its rule and its cap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from outword.base.checks import number, one_of
from outword.errors import InputError, ParameterError
from outword.maths.methods.base import Classes, parameter
from outword.maths.methods.grouped import GroupedDetector, check_groups, natural_odds
from outword.maths.numerics import Array

CAP_RATIO = 0.7  # |G| / K up to which the cap leaves alone every tau that the rule admits
PULL = (1 + CAP_RATIO) * 0.5  # tau (1 + |G|/K) at the paper's tau where the cap begins; tau="auto" has it for all K
SMALLEST_TERM = 1e-12  # of 1 - c tau: at tau = K / (K + |G|) itself it is 0


def _share_or_auto(name: str, value: float | str) -> None:
    if value != "auto":
        number(name, value, least=0, below=1, hint='the paper\'s is 0.5; or leave it to "auto"')


@dataclass
class TauDetector(GroupedDetector):
    """A detector with groups of wild words, of which a share tau shows the labels.

    With the P, q_b, K and |G| of `Debiased` its score is made of

        r_b = q_b / a,   a = (1 - tau) / |G| P,   m = 1 - c tau,   c = |G| / ((1 - tau) K)

    Learned: `tau_`, the tau in use, which is `tau_for` the labels and groups.
    """

    tau: float | Literal["auto"] = parameter(0.5, _share_or_auto)
    policy: Literal["cap", "paper"] = parameter("cap", one_of, choices=("cap", "paper"))
    learned: ClassVar[tuple[str, ...]] = ("groups", "tau")

    def _learn(self, images: Array | None, classes: Classes | None) -> None:
        super()._learn(images, classes)
        self.tau_ = self.tau_for(len(self._y), check_groups(self.groups_, len(self.wild_)).shape[1])  # type: ignore[arg-type]

    def _prepare(self) -> None:
        super()._prepare()
        n_labels, size = len(self.labels_), self.groups_.shape[1]
        kept = [self.tau_for(n_labels, size)] if self.tau_ is None else np.ravel(self.tau_)  # older artifacts have none
        if len(kept) != 1 or not 0 <= kept[0] <= largest_tau(n_labels, size):
            raise InputError(f"tau must be one number up to K / (K + |G|), got {self.tau_}", hint="fit it again")
        self.tau_ = float(kept[0])

    def in_use(self) -> dict[str, float]:
        """The tau of the score, which short label lists lower."""
        return {"tau": self.tau_}

    def tau_for(self, n_labels: int, size: int) -> float:
        """The tau in use for so many labels and groups of so many words.

        >>> from outword.detectors import Debiased
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

    def _c_tau(self) -> float:
        size: int = self.groups_.shape[1]
        return size / ((1 - self.tau_) * len(self.labels_)) * self.tau_

    def _log_r(self, log_p: Any, log_groups: Any) -> Any:
        """Logs of the r_b, (n_images, n_groups), of the log masses of labels and groups."""
        return log_groups - (log_p + np.log1p(-self.tau_))

    def _natural_r(self) -> float:
        """The r of one group at which the verdict changes before any calibration (see `natural_odds`)."""
        return 1 / ((1 - self.tau_) * natural_odds(len(self.labels_), self.groups_.shape[1]))


def largest_tau(n_labels: int, group_size: int) -> float:
    """The largest tau that keeps the denominator of Eq. 18 positive for every image, `K / (K + |G|)`.

    >>> largest_tau(1000, 120).__round__(3), largest_tau(10, 120).__round__(3)
    (0.893, 0.077)
    """
    return n_labels / (n_labels + group_size)
