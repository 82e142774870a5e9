"""What a detector is: parameters in the constructor, `fit` on vectors, `score` on image vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword.base.checks import number
from outword.base.registry import Registry
from outword.errors import InputError, NotFittedError
from outword.maths.kernels import Bank, Choice, chosen, make_bank, to_numpy, using
from outword.maths.kernels.evidence import Evidence, largest
from outword.maths.kernels.rows import in_blocks
from outword.maths.methods.needs import Need
from outword.maths.numerics import UNIT_TOLERANCE, Array, blocks, matrix, softmax, unit_rows

if TYPE_CHECKING:
    from typing_extensions import Self


SMALLEST_TEMPERATURE = 1e-6
Classes = NDArray[np.int64]


class VectorDetector(ABC):
    """Scores image vectors; higher means more in-distribution. Subclasses are dataclasses: fields are parameters.

    Attributes:
        summary: one line for tables.
        needs: the inputs of `fit` and `score`, as far as they do not hang on a parameter (see `wants`).
        learned: names of the arrays that `_learn` leaves, each in the attribute `NAME_`.
        miner, corpus, prompts: what this method is published with; None is the encoder's or the library's own choice,
            a corpus of "" is a word list of the user's.
        own_temperature: whether the temperature is the method's own, not the encoder's.
        in_pipeline: parameters that `outword.fit` sets unless told otherwise, where they are not the paper's.
        on_vectors: parameters under which a method that looks at pixels is content with vectors.
        in_small_world: parameters that suit the planted world of `outword.testing`.
        sees_order: whether a score depends on the images that were scored before; such a method has a `reset`.
        sees_axes: whether turning all vectors together changes the scores.
        labels_: (n_labels, dim), as given to `fit`.
        wild_: (n_wild, dim), as given to `fit`, or None.
        _y: the labels as unit rows, for `_learn` and `_score`.
        default_threshold_: where the verdict changes before any calibration: ID mass against wild mass; None when the
            score has no such point.
    """

    summary: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]] = (Need.LABELS,)
    learned: ClassVar[tuple[str, ...]] = ()
    miner: ClassVar[str] = "density"
    corpus: ClassVar[str | None] = None
    prompts: ClassVar[str | None] = None
    own_temperature: ClassVar[bool] = False
    in_pipeline: ClassVar[Mapping[str, Any]] = {}
    on_vectors: ClassVar[Mapping[str, Any]] = {}
    in_small_world: ClassVar[Mapping[str, Any]] = {}
    sees_order: ClassVar[bool] = False
    sees_axes: ClassVar[bool] = False

    labels_: NDArray[np.floating]
    wild_: NDArray[np.floating] | None = None
    default_threshold_: float | None = None
    _fitted = False

    def check(self) -> None:
        """Raise if a parameter breaks its rule; `fit` calls it first."""
        temperature = self.params().get("temperature", 1.0)
        number("temperature", temperature, least=SMALLEST_TEMPERATURE, hint="CLIP's is 0.01; see the encoder's")
        for field in fields(self):  # type: ignore[arg-type]
            if rule := field.metadata.get("rule"):
                rule(field.name, getattr(self, field.name))

    def wants(self) -> tuple[Need, ...]:
        """What these parameters need; `needs`, unless a subclass says otherwise."""
        return self.needs

    def fit(
        self,
        labels: ArrayLike | None = None,
        wild: ArrayLike | None = None,
        *,
        images: ArrayLike | None = None,
        image_labels: ArrayLike | None = None,
    ) -> Self:
        """Take the vectors; rows are normalised. What the method does not need may be left out.

        Args:
            labels: (n_labels, dim); kept where they are given, whether the method needs them or not.
            wild: (n_wild, dim).
            images: (n_images, dim), ID images.
            image_labels: (n_images,) integers, the class of each ID image.
        """
        self._fitted = False
        self.check()
        wants = self.wants()
        y = None if labels is None and Need.LABELS not in wants else self._rows(Need.LABELS, "labels", labels)
        dim = None if y is None else y.shape[1]
        u = self._rows(Need.WILD, "wild", wild, dim) if Need.WILD in wants else None
        x = self._rows(Need.ID_IMAGES, "images", images, dim) if Need.ID_IMAGES in wants else None
        classes = self._classes(image_labels, len(x)) if x is not None and Need.ID_LABELS in wants else None
        known = next((rows for rows in (y, u, x) if rows is not None), np.zeros((0, 0)))
        self._keep(known[:0] if y is None else y.copy(), None if u is None else u.copy())
        for name in self.learned:
            setattr(self, f"{name}_", None)
        self._learn(None if x is None else unit_rows(x, "images"), classes)  # type: ignore[arg-type]
        for name in self.learned:  # as they are read back: a product may round otherwise for another order in memory
            if (array := getattr(self, f"{name}_")) is not None:
                setattr(self, f"{name}_", np.asarray(array, order="C"))
        self._prepare()
        self._fitted = True
        return self

    def score(self, images: ArrayLike, *, patches: ArrayLike | None = None) -> Array:
        """Score of each image, (n_images,) float64, in blocks. Rows that are not unit vectors are normalised.

        Args:
            images: (n_images, dim).
            patches: (n_images, n_patches, dim), for the methods that look at parts; the others do not look at it.
        """
        x = self._checked(images)
        if not self.sees_order:
            return in_blocks(lambda rows: self._score(unit_rows(rows, "images", UNIT_TOLERANCE)), x, np.empty(len(x)))
        out = np.empty(len(x))
        dim = max(1, x.shape[1])
        for rows in blocks(len(x), max(dim, sum(array.size // dim for array in self.state().values()))):
            out[rows] = self._score(unit_rows(x[rows], "images", UNIT_TOLERANCE))
        return out

    def begin(
        self, images: ArrayLike, top: int, temperature: float, *, patches: ArrayLike | None = None
    ) -> Callable[[], tuple[Array, Evidence]]:
        """Begin to judge images; what is returned gives scores, and the labels and words that speak for them.

        `score` and `evidence` are one pass if they share one, and on a device it is not waited for.

        Args:
            images: (n_images, dim), an array or a tensor.
            top: how many labels and words; with 0 there are scores alone.
            temperature: see `evidence`.
            patches: see `score`.
        """
        scores = self.score(images, patches=patches)
        found = scores, self.evidence(images, top, temperature) if top else Evidence.none(len(scores))
        return lambda: found

    def evidence(self, images: ArrayLike, top: int, temperature: float) -> Evidence:
        """The labels and words with the largest shares (see `kernels.evidence`), as rows of `labels_` and `wild_`.

        Words are in the groups that the method deals, or all in one; without words the labels have it all. A method
        that learned the classes from ID images gives its own shares (`class_logits`), and no words.

        Args:
            images: (n_images, dim), an array or a tensor.
            top: how many labels and words, at least 1.
            temperature: divisor of cosines where the method has none of its own, or one that is not the encoder's.
        """
        if (learned := self.class_logits(images)) is not None:
            shares = np.zeros((len(learned[1]), len(self.labels_)))
            shares[:, learned[0]] = softmax(learned[1])
            order = largest(shares, min(top, shares.shape[1]))
            return Evidence(order, np.take_along_axis(shares, order, 1), order[:, :0], shares[:, :0])
        choice = chosen()
        bank = self._evidence_bank(choice, self._share_temperature(temperature))
        return self._named(bank.evidence(self._unit_images(images) if choice.backend == "numpy" else images, top)[1])

    def _share_temperature(self, temperature: float) -> float:
        """The divisor of cosines for shares: that of the score, unless it is the method's own."""
        return temperature if self.own_temperature else getattr(self, "temperature", temperature)

    def _evidence_bank(self, choice: Choice, temperature: float) -> Bank:
        """The labels, then the words group by group."""
        key = choice, temperature
        if key not in self._evidence_banks:
            groups = self._word_groups()
            sizes = [len(self._y), *([groups.shape[1]] * len(groups) if groups.size else [])]
            words = [] if self.wild_ is None else [unit_rows(self.wild_[groups.ravel()])]
            self._evidence_banks[key] = make_bank(
                np.concatenate([self._y, *words]), np.cumsum([0, *sizes]), temperature, choice
            )
        return self._evidence_banks[key]

    def _word_groups(self) -> NDArray[np.int64]:
        """The groups of wild words, (n_groups, size) indices; one of them all where the method deals none."""
        return self.state().get("groups", np.arange(0 if self.wild_ is None else len(self.wild_))[None])

    def _named(self, found: Evidence) -> Evidence:
        """Evidence as arrays, with words as rows of `wild_`."""
        labels, label_shares, words, word_shares = map(to_numpy, found)
        return Evidence(labels, label_shares, self._word_groups().ravel()[words], word_shares)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_evidence_banks": {}}  # made again where they are needed, perhaps on another device

    def class_logits(self, images: ArrayLike) -> tuple[Classes, Array] | None:
        """The classes that it learned from ID images, and its logits for them, (n_images, n_classes).

        They name the class of an image where the method has an opinion of its own; None where it has not, and the
        nearest label is told by the labels' vectors.
        """
        return None

    def reset(self) -> None:
        """Forget the images that were scored; for methods that learn from them (`sees_order`)."""

    def params(self) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]

    def in_use(self) -> dict[str, float]:
        """What `fit` made of parameters that need not be used as they are given, by name."""
        return {}

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays that `restore` needs to score exactly as this detector does."""
        found = {name: getattr(self, f"{name}_", None) for name in ("labels", "wild", *self.learned)}
        return {name: np.asarray(array) for name, array in found.items() if array is not None}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Self:
        """Take the arrays of `state`, instead of `fit`, and see that they fit together."""
        self._fitted = False
        self.check()
        for name, array in state.items():
            if not np.isfinite(array).all():
                raise InputError(f"{name} must be finite, got NaN or infinity", hint="fit it again")
        self._keep(state["labels"], state.get("wild"))
        for name in self.learned:
            setattr(self, f"{name}_", state.get(name))
        self._prepare()
        self._fitted = True
        try:
            self._try_out()
        except Exception:
            self._fitted = False
            raise
        return self

    def _try_out(self) -> None:
        """Score one image, to see that the arrays belong together."""
        row = np.eye(1, self.labels_.shape[1])
        with using("numpy"):
            self.score(row, patches=row[:, None])
        self.reset()
        learned = self.class_logits(row)
        if learned is not None and learned[1].shape != (1, len(learned[0])):
            raise InputError("classes must be as many as there are logits", hint="fit it again")

    def _rows(self, need: Need, name: str, values: ArrayLike | None, dim: int | None = None) -> NDArray[np.floating]:
        """The rows of an input that must be there."""
        if values is None or np.size(values) == 0:
            raise InputError(
                f"{type(self).__name__} needs {need.value}, got none", hint=f"pass {name}= with at least one row"
            )
        return matrix(values, name, dim)

    def _classes(self, image_labels: ArrayLike | None, n_images: int) -> Classes:
        found = np.asarray([] if image_labels is None else image_labels)
        if found.shape != (n_images,) or found.dtype.kind not in "iu":
            raise InputError(
                f"{type(self).__name__} needs {Need.ID_LABELS.value}: image_labels must be ({n_images},) integers, got "
                f"{'none' if image_labels is None else f'shape {found.shape}, dtype {found.dtype}'}",
                hint="pass the class of each row of images",
            )
        return found.astype(np.int64)

    def _checked(self, images: ArrayLike, *, finite: bool = True) -> NDArray[np.floating]:
        if not self._fitted:
            raise NotFittedError(f"{type(self).__name__} must be fitted before it scores", hint="call fit(...)")
        return matrix(to_numpy(images), "images", self.labels_.shape[1], finite=finite)

    def _unit_images(self, images: ArrayLike) -> Array:
        return unit_rows(self._checked(images), "images", UNIT_TOLERANCE)

    def _logits_of(self, images: ArrayLike, logits: Callable[[Array], Array], n_classes: int) -> Array:
        """What `logits` gives for unit image vectors, (n_images, n_classes), the same bits in any company."""
        x = self._unit_images(images)
        return in_blocks(logits, x, np.empty((len(x), n_classes)))

    def _keep(self, labels: NDArray[np.floating], wild: NDArray[np.floating] | None) -> None:
        self.labels_, self.wild_ = labels, wild
        self._evidence_banks: dict[tuple[Choice, float], Bank] = {}
        self._y = unit_rows(labels, "labels")

    def _learn(self, images: Array, classes: Classes) -> None:
        """Set the arrays named in `learned`, from `labels_`, `wild_` and the ID images; `fit` calls it, not `restore`.

        Args:
            images: (n_images, dim), unit rows; None where the method does not need them.
            classes: (n_images,), the class of each image; None where the method does not need them.
        """

    def _prepare(self) -> None:
        """Compute what scoring reuses; called at the end of `fit` and of `restore`."""

    @abstractmethod
    def _score(self, images: Array) -> Array:
        """Score unit image vectors (n_images, dim)."""


def _problem(kind: Any) -> str:
    """Why a thing of another package cannot be a method; "" if it can."""
    if not (isinstance(kind, type) and issubclass(kind, VectorDetector) and hasattr(kind, "__dataclass_fields__")):
        return "it is no dataclass that derives from VectorDetector"
    kind()  # an abstract method, a parameter without a default, a fault of its own
    return "" if getattr(kind, "summary", "") else "it has no summary"


DETECTORS: Registry[type[VectorDetector]] = Registry("method", "outword.detectors", "outword list methods", _problem)
