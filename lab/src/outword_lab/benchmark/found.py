"""What a question came to, and how figures are told in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# The 0.975 quantile of Student's t for 2, 3, 4 ... draws; for more it is taken to be the last, which is too much
T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093),
)


@dataclass(frozen=True)
class Found:
    """A table of texts, and what it says in words."""

    name: str
    question: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    says: tuple[str, ...]


def percent(values: Any) -> str:
    """The mean of shares, in percent.

    >>> percent([0.98, 0.99])
    '98.50'
    """
    return f"{100 * float(np.mean(values)):.2f}"


def paired(one: Sequence[float], other: Sequence[float]) -> str:
    """By how many points the one is ahead in the mean, and the 95 % interval over paired draws; one draw has none.

    >>> paired([0.9, 0.92], [0.8, 0.82])
    '+10.00 (+10.00 to +10.00)'
    >>> paired([0.9], [0.8])
    '+10.00'
    """
    gaps = 100 * (np.asarray(one) - np.asarray(other))
    if len(gaps) == 1:
        return f"{gaps[0]:+.2f}"
    half = T95[min(len(gaps) - 2, len(T95) - 1)] * gaps.std(ddof=1) / np.sqrt(len(gaps))
    return f"{gaps.mean():+.2f} ({gaps.mean() - half:+.2f} to {gaps.mean() + half:+.2f})"


def side(lead: str) -> int:
    """Whether an interval of `paired` lies above 0 (1), below it (-1) or around it (0).

    >>> side("+0.50 (-0.10 to +1.10)")
    0
    """
    low, high = (float(end) for end in lead.partition("(")[2].rstrip(")").split(" to "))
    return int(low > 0) - int(high < 0)


def listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return "; ".join(names) or "no point"
