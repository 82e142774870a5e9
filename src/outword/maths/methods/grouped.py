"""What the methods with groups of wild words share: dealing the words once, and the log masses of an image."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword.base.checks import whole_number
from outword.errors import InputError, ParameterError
from outword.maths.kernels import Bank, Choice, chosen, make_bank, on_their_way
from outword.maths.kernels.evidence import Evidence
from outword.maths.methods.base import Classes, Need, VectorDetector, parameter
from outword.maths.numerics import UNIT_TOLERANCE, Array, check_directions, log_sum_exp, matrix, unit_rows

if TYPE_CHECKING:
    from typing_extensions import Self

Groups = NDArray[np.int64]
HOST_CELLS, DEVICE_CELLS = 1 << 22, 1 << 25  # log masses that are held at a time, or 512 for each image


@dataclass
class WordsDetector(VectorDetector):
    """A detector whose score comes from the masses of labels and of groups of wild words.

    `groups_`, (n_groups, size) indices into wild, says which words are together; here it is one group of all.
    """

    temperature: float = 0.01
    needs: ClassVar[tuple[Need, ...]] = (Need.LABELS, Need.WILD)
    _peak: ClassVar[bool] = False  # whether `_combine` wants the largest logit of a label, in a last column

    def _prepare(self) -> None:
        wild = matrix(self.wild_, "wild")  # type: ignore[arg-type]
        check_directions(wild, "wild")
        n_words = len(wild)
        self.groups_ = check_groups(np.asarray(self._dealt_groups(n_words)), n_words)
        self._parts = self._positives()
        sizes = [len(part) for part in self._parts] + [self.groups_.shape[1]] * len(self.groups_)
        self._offsets = np.cumsum([0, *sizes])

    def _dealt_groups(self, n_words: int) -> Groups:
        """The groups of words, (n_groups, size)."""
        return np.arange(n_words)[None]

    def _texts(self) -> Array:
        """Unit vectors of the positives, then of the words, group by group."""
        wild, order = matrix(self.wild_, "wild"), self.groups_.ravel()  # type: ignore[arg-type]
        first = sum(map(len, self._parts))
        texts = np.empty((first + len(order), wild.shape[1]))
        np.concatenate(self._parts, out=texts[:first])
        if np.array_equal(order, np.arange(len(wild))):
            unit_rows(wild, "wild", out=texts[first:])
        else:
            texts[first:] = unit_rows(wild, "wild")[order]
        return texts

    def _positives(self) -> list[Array]:
        """The sets of positive vectors whose masses `_combine` is given."""
        return [self._y]

    def score(self, images: ArrayLike, **more: Any) -> Array:
        """Score of each image, (n_images,) float64. Rows that are not unit vectors are normalised.

        The backend that is `chosen` (see `outword.kernels`) computes. Where that is a device, images may lie there
        already: a tensor of torch is taken as it is. There is nothing to look at beside them.
        """
        if type(self)._score is not WordsDetector._score:
            return super().score(images)
        return self._one_pass(images, 0)()[0]

    def begin(
        self, images: ArrayLike, top: int, temperature: float, **more: Any
    ) -> Callable[[], tuple[Array, Evidence]]:
        """Begin to judge images; see `VectorDetector.begin`."""
        if type(self)._score is not WordsDetector._score or not self._tells(self._share_temperature(temperature)):
            return super().begin(images, top, temperature, **more)
        return self._one_pass(images, top)

    def _one_pass(self, images: Any, top: int) -> Callable[[], tuple[Array, Evidence]]:
        """Scores, and the `top` labels and words from the same product, if any are wanted."""
        choice = chosen()
        hosted = choice.backend == "numpy"
        given = hasattr(images, "is_cuda") and not hosted
        x: Any = self._checked_tensor(images) if given else self._checked(images, finite=hosted)
        bank, size = self._bank(choice), max(1, (HOST_CELLS if hosted else DEVICE_CELLS) // max(512, len(self.groups_)))
        parts = []
        for start in range(0, len(x) or 1, size):
            rows = x[start : start + size]
            rows = unit_rows(rows, "images", UNIT_TOLERANCE) if hosted else rows
            masses, found = bank.evidence(rows, top) if top else (bank.log_masses(rows), ())
            parts.append(on_their_way([self._combine(masses), *found]))

        def finish() -> tuple[Array, Evidence]:
            scores, *evidence = map(np.concatenate, zip(*(part() for part in parts), strict=True))
            if np.isnan(scores).any():  # what a device makes of an image that has no direction
                row = int(np.isnan(scores).argmax())
                raise InputError(f"images must be finite and not zero, row {row} is not", hint="drop that row")
            found = self._named(Evidence(*evidence)) if top else Evidence.none(len(scores))
            return scores.astype(np.float64, copy=False), found

        return finish

    def _checked_tensor(self, images: Any) -> Any:
        self._checked(np.zeros((0, images.shape[-1])))  # that it is fitted, and the dimension
        if images.ndim != 2:
            raise InputError(
                f"images must be a two-dimensional tensor, got shape {tuple(images.shape)}", hint="one row a vector"
            )
        return images

    def _bank(self, choice: Choice) -> Bank:
        key = "score", choice, self.temperature
        if key not in self._banks:
            options: dict[str, Any] = {"first": len(self._parts), "owners": self.owners_, "peak": self._peak}
            self._banks[key] = make_bank(self._texts(), self._offsets, self.temperature, choice, **options)
        return self._banks[key]

    def _tells(self, temperature: float) -> bool:
        """Whether the bank of the score has what shares at this temperature are made of."""
        return self._parts[0] is self._y and temperature == self.temperature

    def _evidence_bank(self, choice: Choice, temperature: float) -> Bank:
        return self._bank(choice) if self._tells(temperature) else super()._evidence_bank(choice, temperature)

    def formula(self, images: Any) -> Any:
        """The score, from log masses of one product."""
        logits = images @ self._texts().T / self.temperature
        first, shape = int(self._offsets[len(self._parts)]), self.groups_.shape
        sets = [logits[:, start:end] for start, end in pairwise(self._offsets[: len(self._parts) + 1].tolist())]
        masses = [*(log_sum_exp(part)[:, None] for part in sets), log_sum_exp(logits[:, first:].reshape(-1, *shape))]
        if self._peak:
            masses.append(sets[0].max(axis=1, keepdims=True))
        return self._combine(np.concatenate(masses, axis=1))

    def _score(self, images: Array) -> Array:
        return np.asarray(self._combine(self._bank(Choice("numpy", "float64")).log_masses(images)))

    @abstractmethod
    def _combine(self, masses: Any) -> Any:
        """Scores from log masses, an array or a tensor: the columns are the sets of positives, then the groups.

        If `_peak`, the last column is the largest logit of a label.
        """


@dataclass
class GroupedDetector(WordsDetector):
    """A detector whose score is a mean over groups of wild words, dealt once, at `fit`, by the seed.

    Words that do not fill a group are dropped from the tail. Learned: `groups_`, (n_groups, size) indices into wild.
    """

    n_groups: int = 100
    seed: int = parameter(0, whole_number, least=0, hint="use seed=0")
    learned: ClassVar[tuple[str, ...]] = ("groups",)

    def fit(
        self,
        labels: ArrayLike | None = None,
        wild: ArrayLike | None = None,
        *,
        owners: ArrayLike | None = None,
        images: ArrayLike | None = None,
        image_labels: ArrayLike | None = None,
        negatives: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Take the vectors; `groups`, an (n_groups, size) index array into `wild`, replaces the dealing."""
        self._dealt = groups
        return super().fit(labels, wild, owners=owners, images=images, image_labels=image_labels, negatives=negatives)

    def _learn(self, images: Array | None, classes: Classes | None) -> None:
        assert self.wild_ is not None
        given = self._dealt
        self.groups_ = deal_groups(len(self.wild_), self.n_groups, self.seed) if given is None else np.asarray(given)

    def _dealt_groups(self, n_words: int) -> Groups:
        return self.groups_


def mean_share(m: Any, log_ratio: Any) -> Any:
    """`mean_b 1 / (m + e^{log_ratio_b})`, (n_images,), of arrays (n_images, n_groups) or tensors.

    >>> mean_share(1.0, np.log([[1.0, 3.0]]))
    array([0.375])
    """
    return (1 / (m + exp(log_ratio))).mean(1)


def _log_sum(xp: Any, values: Any) -> Any:
    top = xp.amax(values, 1)
    return xp.log(xp.exp(values - top[:, None]).sum(1)) + top


def exp(x: Any) -> Any:
    """`e^x` of an array or a tensor; what is too large is infinite, and a share of it 0."""
    with np.errstate(over="ignore"):
        return library(x).exp(x)


def library(values: Any) -> Any:
    """The library of an array or a tensor: numpy, or torch, which has most functions by the same names."""
    return sys.modules["torch"] if hasattr(values, "is_cuda") else np


def natural_odds(n_labels: int, group_size: int) -> float:
    """How often the ID mass must hold a group's mass to be called ID before any calibration, `2 (1 + K / |G|)`.

    A group's mass is `|G| q`; K arbitrary words would have `K q`. An image is ID when P is twice both together. The
    factor 2 was chosen on photos (docs/mini.md).

    >>> natural_odds(10, 120).__round__(3), natural_odds(1000, 120).__round__(3)
    (2.167, 18.667)
    """
    return 2 * (1 + n_labels / group_size)


def deal_groups(n_wild: int, n_groups: int, seed: int) -> Groups:
    """Deal words into `n_groups` equal groups, (n_groups, size): the tail is dropped, the rest shuffled by the seed.

    >>> deal_groups(7, 3, seed=0).shape
    (3, 2)
    """
    if isinstance(n_groups, bool) or not isinstance(n_groups, int | np.integer) or not 1 <= n_groups <= n_wild:
        raise ParameterError(
            f"n_groups must be between 1 and the number of wild words ({n_wild}), got {n_groups!r}",
            hint="choose one of these, or mine more words",
        )
    order = np.random.default_rng(seed).permutation(n_wild - n_wild % n_groups)
    return order.reshape(n_groups, -1)


def check_groups(groups: NDArray[Any], n_wild: int) -> Groups:
    """`groups` as an (n_groups, size) index array into the wild words."""
    if groups.ndim != 2 or groups.size == 0 or groups.dtype.kind not in "iu":
        raise InputError(
            f"groups must be an (n_groups, size) array of indices, got shape {groups.shape}, dtype {groups.dtype}",
            hint="one row a group",
        )
    if groups.min() < 0 or groups.max() >= n_wild:
        raise InputError(
            f"groups must hold indices from 0 to {n_wild - 1}, got {groups.min()} to {groups.max()}",
            hint="index the rows of wild",
        )
    return groups.astype(np.int64)
