"""The odds of a label: which share of its photos will be in, with a word for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from outword.base.terms import Familiarity, OddsWord

LEAST: Final[dict[OddsWord, float]] = {"good": 0.85, "fair": 0.65, "poor": 0.35, "not seen": 0.0}
"""The smallest share that each word stands for."""
NEARLY_ALL = 0.95


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
    """Shares that were measured on photos, by what is known of a label before any photo (docs/mini.md has them).

    Attributes:
        rows: how the encoder knows the name, the least cosine of the name to the nearest known one, and the share; the
            first row that fits counts, so cosines fall.
        longer: a number of labels, and what shares are multiplied by in lists that have as many or more; the last row
            that fits counts.
    """

    rows: tuple[tuple[Familiarity, float, float], ...]
    longer: tuple[tuple[int, float], ...] = ()

    def share(self, how: Familiarity, cosine: float, n_labels: int = 1) -> float:
        """The share of a label's photos that will be in.

        >>> measured = MeasuredOdds((("known", -1, 0.9), ("unknown", 0.7, 0.5), ("unknown", -1, 0.2)), ((50, 0.9),))
        >>> [measured.share("unknown", 0.8), measured.share("unknown", 0.3), round(measured.share("known", 1, 60), 2)]
        [0.5, 0.2, 0.81]
        """
        share = next((share for known, least, share in self.rows if known == how and cosine >= least), 0.0)
        factors = [factor for least, factor in self.longer if n_labels >= least]
        return share * (factors[-1] if factors else 1.0)
