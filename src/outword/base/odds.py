"""The odds of a label: which share of its photos will be in, with a word for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from outword.base.terms import Familiarity, OddsWord

LEAST: Final[dict[OddsWord, float]] = {"good": 0.85, "fair": 0.65, "poor": 0.35, "not seen": 0.0}
"""The smallest share that each word stands for."""
NEARLY_ALL = 0.95
MOST = 0.98  # what measured odds promise at most


@dataclass(frozen=True)
class Odds:
    """What to expect of a label.

    Attributes:
        label: its name.
        share: the expected share of its photos that will be in.

    >>> print(Odds("lamp", 0.81))
    lamp: fair, about 8 of 10 of its photos will be in
    """

    label: str
    share: float

    @property
    def word(self) -> OddsWord:
        """A word for the share: "good" from 0.85 on, "fair" from 0.65, "poor" from 0.35, else "not seen".

        >>> [Odds("lamp", share).word for share in (0.85, 0.65, 0.35, 0.34)]
        ['good', 'fair', 'poor', 'not seen']
        """
        return next(word for word, least in LEAST.items() if self.share >= least)

    @property
    def is_weak(self) -> bool:
        """Whether most photos of the label may be kept out, which is worth a warning."""
        return self.share < LEAST["fair"]

    @property
    def expected(self) -> str:
        """The share in plain words.

        >>> [Odds("lamp", share).expected for share in (0.99, 0.02)]
        ['nearly all of its photos will be in', 'hardly any of its photos will be in']
        """
        tenths = int(10 * self.share + 1e-9)
        if self.share >= NEARLY_ALL:
            return "nearly all of its photos will be in"
        if tenths == 0:
            return "hardly any of its photos will be in"
        return f"about {tenths} of 10 of its photos will be in"

    def __str__(self) -> str:
        return f"{self.label}: {self.word}, {self.expected}"


@dataclass(frozen=True)
class MeasuredOdds:
    """Shares that were measured on photos, by what is known of a label and of the cut before any photo.

        share = 1 / (1 + exp(-(a + b cosine - c cut)))

    cosine is that of the name to the nearest one that the encoder knows, the cut is in scores of `grounded`; a, b and c
    hang on how the encoder knows the name. docs/mini.md has those of `mini`, and what was found.

    Attributes:
        terms: a, b and c for each way to know a name.

    >>> MeasuredOdds({"unknown": (-4.0, 5.0, 0.25)}).share("unknown", cosine=0.6, cut=-4.0)
    0.5
    """

    terms: Mapping[Familiarity, tuple[float, float, float]]

    def share(self, how: Familiarity, cosine: float, cut: float) -> float:
        """The share of a label's photos that will be in; no more than 0.98 is ever promised."""
        a, b, c = self.terms[how]
        return min(1 / (1 + math.exp(-(a + b * cosine - c * cut))), MOST)
