"""What a miner is: parameters in the constructor, `select` does the work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword.base.registry import Registry
from outword.errors import ParameterError
from outword.maths.kernels.threads import Progress
from outword.maths.numerics import matrix

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Pool:
    """What a miner chooses from.

    Attributes:
        words: (n_words, dim), word vectors.
        labels: (n_labels, dim), ID label vectors, or None.
        adjectives: (n_words,) booleans, true for adjectives.
        progress: called with (rows done, rows in all), or None.
    """

    words: NDArray[np.floating]
    labels: ArrayLike | None
    adjectives: NDArray[np.bool_]
    progress: Progress | None

    def shares(self, order: Indices, nouns: float, adjectives: float) -> Indices:
        """The first of the nouns, then the first of the adjectives, of a ranking: a share of each."""
        is_adjective = self.adjectives[order]
        parts = ((order[~is_adjective], nouns), (order[is_adjective], adjectives))
        return np.concatenate([part[: int(share * len(part))] for part, share in parts])


class Miner(ABC):
    """Chooses rows of a matrix of word vectors. Subclasses are dataclasses: their fields are their parameters.

    Attributes:
        needs_labels: whether the choice depends on the ID labels; if not, one ranking serves every label list.
    """

    needs_labels: ClassVar[bool] = False

    def select(
        self,
        words: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        adjectives: ArrayLike | None = None,
        progress: Progress | None = None,
    ) -> Indices:
        """Indices of the chosen words, best first.

        Args:
            words: (n_words, dim), word vectors.
            labels: (n_labels, dim), ID label vectors, for miners that look at them.
            adjectives: (n_words,) booleans, true for adjectives; all nouns when left out.
            progress: called with (rows done, rows in all).
        """
        vectors = matrix(words, "words")
        return self._select(Pool(vectors, labels, _mask(adjectives, len(vectors)), progress))

    @abstractmethod
    def _select(self, pool: Pool) -> Indices:
        """Indices of the chosen words, best first."""


def fraction(name: str, value: float) -> None:
    """Raise unless `value` lies in (0, 1]."""
    if not 0 < value <= 1:
        raise ParameterError(f"{name} must be above 0 and at most 1, got {value!r}", hint=f"for example {name}=0.15")


def _mask(adjectives: ArrayLike | None, n_words: int) -> NDArray[np.bool_]:
    """`adjectives` as (n_words,) booleans; all false when left out."""
    mask = np.zeros(n_words, bool) if adjectives is None else np.asarray(adjectives, dtype=bool)
    if mask.shape != (n_words,):
        raise ParameterError(
            f"adjectives must have one entry a word ({n_words}), got shape {mask.shape}",
            hint="pass one boolean for each row of words",
        )
    return mask


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
