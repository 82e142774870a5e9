"""What a miner is: parameters in the constructor, `select` does the work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword.base.registry import Registry
from outword.base.reports import Steps
from outword.errors import ParameterError
from outword.maths.numerics import matrix

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Pool:
    """What a miner chooses from: the arguments of `Miner.select`, checked."""

    words: NDArray[np.floating]  # (n_words, dim)
    labels: ArrayLike | None  # (n_labels, dim)
    adjectives: NDArray[np.bool_]  # (n_words,)
    progress: Steps | None

    def shares(self, order: Indices, nouns: float, adjectives: float) -> Indices:
        """The first of the nouns, then the first of the adjectives, of a ranking: a share of each."""
        is_adjective = self.adjectives[order]
        parts = ((order[~is_adjective], nouns), (order[is_adjective], adjectives))
        return np.concatenate([part[: int(share * len(part))] for part, share in parts])


class Miner(ABC):
    """Chooses rows of a matrix of word vectors. Subclasses are dataclasses: their fields are their parameters."""

    needs_labels: ClassVar[bool] = False  # whether the choice depends on them; if not, one ranking serves every list

    def select(
        self,
        words: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        adjectives: ArrayLike | None = None,
        progress: Steps | None = None,
    ) -> Indices:
        """Indices of the chosen words, best first.

        Args:
            words: (n_words, dim), word vectors.
            labels: (n_labels, dim), ID label vectors, for miners that look at them.
            adjectives: (n_words,) booleans, true for adjectives; all nouns when left out.
            progress: called with (rows done, rows in all).
        """
        vectors = matrix(words, "words")
        mask = np.zeros(len(vectors), bool) if adjectives is None else np.asarray(adjectives, dtype=bool)
        if mask.shape != (len(vectors),):
            raise ParameterError(
                f"adjectives must have one entry a word ({len(vectors)}), got shape {mask.shape}",
                hint="pass one boolean for each row of words",
            )
        return self._select(Pool(vectors, labels, mask, progress))

    @abstractmethod
    def _select(self, pool: Pool) -> Indices:
        """Indices of the chosen words, best first."""


def fraction(name: str, value: float) -> None:
    """Raise unless `value` lies in (0, 1]."""
    if not 0 < value <= 1:
        raise ParameterError(f"{name} must be above 0 and at most 1, got {value!r}", hint=f"for example {name}=0.15")


def ranked(key: NDArray[np.floating]) -> Indices:
    """Indices by falling key; ties, equal to ten decimals, go by index, so that threads and blocks change nothing."""
    return np.argsort(-np.round(key, 10), kind="stable")


def _problem(kind: Any) -> str:
    """Why a thing of another package cannot be a miner; "" if it can."""
    if not (isinstance(kind, type) and issubclass(kind, Miner) and hasattr(kind, "__dataclass_fields__")):
        return "it is no dataclass that derives from Miner"
    kind()  # an abstract method, a parameter without a default, a fault of its own
    return ""


MINERS: Registry[type[Miner]] = Registry("miner", "outword.miners", "outword list miners", _problem)
