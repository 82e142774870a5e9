"""What a detector is: parameters with rules in the constructor, `fit` on what it needs, `score` on image vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, field, fields
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword.base.checks import number
from outword.base.registry import Registry
from outword.errors import InputError, NotFittedError
from outword.maths.kernels import Bank, Choice, chosen, make_bank, to_numpy, using
from outword.maths.kernels.evidence import Evidence, largest
from outword.maths.kernels.rows import in_blocks
from outword.maths.methods.given import Classes as Classes  # noqa: PLC0414  # plug-ins have it from here
from outword.maths.methods.given import given_classes, given_negatives, given_owners, given_rows
from outword.maths.methods.needs import Need as Need  # noqa: PLC0414  # plug-ins have it from here
from outword.maths.methods.needs import of_photo
from outword.maths.methods.requests import FitRequest, Inputs, ScoreRequest
from outword.maths.numerics import UNIT_TOLERANCE, Array, all_finite, blocks, log_sum_exp, matrix, softmax, unit_rows

if TYPE_CHECKING:
    from typing_extensions import Self

SMALLEST_TEMPERATURE = 1e-6
GIVEN = ("labels", "wild", "owners", "negatives")  # what `fit` was given and `state` has
T = TypeVar("T")


def parameter(default: T, rule: Callable[..., None] = number, **bounds: Any) -> T:
    """A field of a method with its rule from `outword.base.checks`: `rule(name, value, **bounds)` raises."""
    return field(default=default, metadata={"rule": partial(rule, **bounds)})


class VectorDetector(ABC):
    """Scores image vectors; higher means more in-distribution. Subclasses are dataclasses: fields are parameters."""

    summary: ClassVar[str]  # one line for tables
    needs: ClassVar[tuple[Need, ...]] = (Need.LABELS,)  # inputs that do not hang on a parameter (see `wants`)
    learned: ClassVar[tuple[str, ...]] = ()  # names of the arrays that `_learn` leaves, each in the attribute `NAME_`
    miner: ClassVar[str] = "density"  # these three are what the method is published with
    corpus: ClassVar[str | None] = None  # None is the library's own choice, "" a word list of the user's
    prompts: ClassVar[str | None] = None  # None is the encoder's own choice
    own_temperature: ClassVar[bool] = False  # whether the temperature is the method's own, not the encoder's
    in_pipeline: ClassVar[Mapping[str, Any]] = {}  # what `outword.fit` sets unless told otherwise, if not the paper's
    on_vectors: ClassVar[Mapping[str, Any]] = {}  # what makes a method that looks at pixels content with vectors
    in_small_world: ClassVar[Mapping[str, Any]] = {}  # what suits the planted world of `outword.testing`
    kinds: ClassVar[str] = "off"  # which kinds of a label `outword.fit` gives it as rows of their own
    rivals: ClassVar[bool] = False  # whether `outword.fit` lets readable names compete beside the mined words
    sees_order: ClassVar[bool] = False  # whether a score depends on the images scored before; then there is a `reset`
    sees_axes: ClassVar[bool] = False  # whether turning all vectors together changes the scores
    takes: ClassVar[tuple[str, ...]] = ()  # fields of `FitRequest` that few methods have a use for
    trains: ClassVar[bool] = False  # whether `fit_inputs` learns something with the encoder, which takes its time
    in_graph: ClassVar[bool] = False  # whether `formula` has its score; a subclass says so itself
    before: ClassVar[Mapping[str, Any]] = {}  # what detectors do that were saved when these parameters were not there

    labels_: NDArray[np.floating]  # (n_rows, dim), as given to `fit`; `_y` are the same as unit rows
    owners_: NDArray[np.int64] | None = None  # (n_rows,), as given to `fit`; None where every row is a label
    wild_: NDArray[np.floating] | None = None  # (n_wild, dim), as given to `fit`
    # (n_sets, n_rows, dim), as given to `fit`; `_no` are the same as unit rows
    negatives_: NDArray[np.floating] | None = None
    kept_: Mapping[str, NDArray[Any]] = MappingProxyType({})  # those of `kept_names`, by name; of some methods
    default_threshold_: float | None = None  # where the verdict changes before calibration, if there is such a point
    _fitted = False

    def check(self) -> None:
        """Raise if a parameter breaks its rule; `fit` calls it first."""
        temperature = self.params().get("temperature", 1.0)
        number("temperature", temperature, least=SMALLEST_TEMPERATURE, hint="CLIP's is 0.01; see the encoder's")
        for known in fields(self):  # type: ignore[arg-type]
            if rule := known.metadata.get("rule"):
                rule(known.name, getattr(self, known.name))

    def wants(self) -> tuple[Need, ...]:
        """What these parameters need; `needs`, unless a subclass says otherwise."""
        return self.needs

    def asks(self) -> tuple[Need, ...]:
        """What the encoder must offer to fit these parameters, and to score with them."""
        return tuple(need for need in self.wants() if need.offer)

    def fit_inputs(self, request: FitRequest) -> Inputs:
        """What the method makes itself of what is there, before it is fitted; arguments of `fit` by name.

        They come beside those of `request.given`, or in place of them. Four names are no arguments of `fit`: "photos",
        the ID images that were chosen of all, "words", the names of the wild words where they are others, "learned",
        what the card of a detector says of it, and "seconds", that it took.
        """
        return {}

    def score_inputs(self, request: ScoreRequest) -> Inputs:
        """What is scored of photos; arguments of `begin` by name, "images" and what the method wants beside them.

        Two names are no arguments of `begin`: "errors", an `ImageError` or None for each photo, where some cannot be
        scored and have no row in what is given, and "named", the words that the evidence of each image is of.
        """
        return {"images": request.vectors}

    def sample_inputs(self, images: Array, words: Array) -> Inputs:
        """Something to try the method out with: arguments of `score` beside images, made of vectors alone."""
        return {}

    def fit(
        self,
        labels: ArrayLike | None = None,
        wild: ArrayLike | None = None,
        *,
        owners: ArrayLike | None = None,
        images: ArrayLike | None = None,
        image_labels: ArrayLike | None = None,
        negatives: ArrayLike | None = None,
    ) -> Self:
        """Take the vectors; rows are normalised. What the method does not need may be left out.

        Args:
            labels: (n_rows, dim); kept where they are given, whether the method needs them or not.
            wild: (n_wild, dim).
            owners: (n_rows,) integers, which label each row of `labels` belongs to, where labels have several (their
                kinds): 0 to n_labels - 1, in order. Scores do not look at it, `evidence` does.
            images: (n_images, dim), ID images.
            image_labels: (n_images,) integers, the class of each ID image.
            negatives: (n_sets, n_rows, dim), vectors that say no to each row of `labels`; one set may be (n_rows, dim).
        """
        self._fitted = False
        self.check()
        wants, method = self.wants(), type(self).__name__
        y = None if labels is None and Need.LABELS not in wants else given_rows(method, Need.LABELS, "labels", labels)
        dim = None if y is None else y.shape[1]
        u = given_rows(method, Need.WILD, "wild", wild, dim) if Need.WILD in wants else None
        learns = Need.ID_IMAGES in wants and not self.trains  # else it has learned on the images before
        x = given_rows(method, Need.ID_IMAGES, "images", images, dim) if learns else None
        classes = given_classes(method, image_labels, len(x)) if x is not None and Need.ID_LABELS in wants else None
        known = next((rows for rows in (y, u, x) if rows is not None), np.zeros((0, 0)))
        no = given_negatives(method, negatives, known) if Need.NEGATIVES in wants else None
        self._keep(known[:0] if y is None else y.copy(), None if u is None else u.copy(), owners, no)
        for name in self.learned:
            setattr(self, f"{name}_", None)
        self._learn(None if x is None else unit_rows(x, "images"), classes)  # type: ignore[arg-type]
        for name in self.learned:  # as they are read back: a product may round otherwise for another order in memory
            if (array := getattr(self, f"{name}_")) is not None:
                setattr(self, f"{name}_", np.asarray(array, order="C"))
        self._prepare()
        self._fitted = True
        return self

    def score(self, images: ArrayLike, **more: Any) -> Array:
        """Score of each image, (n_images,) float64, in blocks. Rows that are not unit vectors are normalised.

        Args:
            images: (n_images, dim).
            more: what some methods want of each image beside its vector (`score_inputs`), such as `patches` (n_images,
                n_patches, dim); the others do not look at it.
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
        self, images: ArrayLike, top: int, temperature: float, **more: Any
    ) -> Callable[[], tuple[Array, Evidence]]:
        """Begin to judge images; what is returned gives scores, and the labels and words that speak for them.

        `score` and `evidence`, whose arguments these are, are one pass if they share one, and on a device it is not
        waited for. With a `top` of 0 there are scores alone.
        """
        scores = self.score(images, **more)
        found = scores, self.evidence(images, top, temperature) if top else Evidence.none(len(scores))
        return lambda: found

    def evidence(self, images: ArrayLike, top: int, temperature: float) -> Evidence:
        """The labels and words with the largest shares (see `kernels.evidence`), words as rows of `wild_`.

        Labels are those of `owners_`, each with the shares of all of its rows, and `kinds` the nearest row of
        `labels_` of each; without owners a row is a label. Words are in the groups that the method deals, or all in
        one; without words the labels have it all. A method that learned the classes from ID images gives its own shares
        (`class_logits`), and no words. Images (n_images, dim) are an array or a tensor; `top` of each are given, at
        least 1; `temperature` divides cosines where the method has none of its own, or one that is not the encoder's.
        """
        if (learned := self.class_logits(images)) is not None:
            shares = np.zeros((len(learned[1]), len(self.labels_)))
            shares[:, learned[0]] = softmax(learned[1])
            order = largest(shares, min(top, shares.shape[1]))
            return Evidence(order, np.take_along_axis(shares, order, 1), order, order[:, :0], shares[:, :0])
        choice = chosen()
        bank = self._evidence_bank(choice, self._share_temperature(temperature))
        return self._named(bank.evidence(self._unit_images(images) if choice.backend == "numpy" else images, top)[1])

    def _share_temperature(self, temperature: float) -> float:
        """The divisor of cosines for shares: that of the score, unless it is the method's own."""
        return temperature if self.own_temperature else getattr(self, "temperature", temperature)

    def _evidence_bank(self, choice: Choice, temperature: float) -> Bank:
        """The labels, then the words group by group."""
        key = "evidence", choice, temperature
        if key not in self._banks:
            groups = self._word_groups()
            sizes = [len(self._y), *([groups.shape[1]] * len(groups) if groups.size else [])]
            texts = self._y if self.wild_ is None else np.concatenate([self._y, unit_rows(self.wild_[groups.ravel()])])
            self._banks[key] = make_bank(texts, np.cumsum([0, *sizes]), temperature, choice, owners=self.owners_)
        return self._banks[key]

    def _word_groups(self) -> NDArray[np.int64]:
        """The groups of wild words, (n_groups, size) indices; one of them all where the method deals none."""
        return self.state().get("groups", np.arange(0 if self.wild_ is None else len(self.wild_))[None])

    def _named(self, found: Evidence) -> Evidence:
        """Evidence as arrays, with words as rows of `wild_`."""
        arrays = Evidence(*map(to_numpy, found))
        return arrays._replace(words=self._word_groups().ravel()[arrays.words])

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_banks": {}}  # made again where they are needed, perhaps on another device

    def class_logits(self, images: ArrayLike) -> tuple[Classes, Array] | None:
        """The classes that it learned from ID images, and its logits for them, (n_images, n_classes).

        They name the class of an image where the method has an opinion of its own; None where it has not, and the
        nearest label is told by the labels' vectors.
        """
        return None

    def formula(self, images: Any) -> Any:
        """The score of unit image vectors, in plain operations on arrays, which an ONNX graph has, too (`in_graph`)."""
        return self._score(images)

    def label_formula(self, images: Any, temperature: float) -> tuple[Any, Any]:
        """Logits (n_images, n_rows) of the rows of `labels_`, and log masses (n_images, n_groups) of the words.

        They are what the shares of `evidence` are made of, in plain operations; without words there are no masses.
        """
        groups = self._word_groups()
        words = self._y[:0] if self.wild_ is None else unit_rows(self.wild_)[groups.ravel()]
        logits = images @ np.concatenate([self._y, words]).T / self._share_temperature(temperature)
        rows = logits[:, : len(self._y)]
        if not len(words):
            return rows, None
        return rows, log_sum_exp(logits[:, len(self._y) :].reshape(-1, *groups.shape))

    def relative(self) -> Self:
        """The detector to use where no photos tell a cut; itself, unless the score has a part that needs one."""
        return self

    def reset(self) -> None:
        """Forget the images that were scored; for methods that learn from them (`sees_order`)."""

    def params(self) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]

    def in_use(self) -> dict[str, float]:
        """What `fit` made of parameters that need not be used as they are given, by name."""
        return {}

    def describe_learning(self, facts: Mapping[str, Any]) -> str:
        """What `fit_inputs` gave as "learned", in a line for people; "" where there is nothing to say."""
        return ""

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays that `restore` needs to score exactly as this detector does."""
        found = {name: getattr(self, f"{name}_", None) for name in (*GIVEN, *self.learned)}
        return {**{name: np.asarray(array) for name, array in found.items() if array is not None}, **self.kept_}

    def kept_names(self) -> tuple[str, ...]:
        """The names of arrays that are kept to make the method again for other labels; each has a "/" in it."""
        return ()

    def why_it_stays(self) -> str:
        """Why the method cannot be made for other labels from what it has; "" if it can."""
        return "the photos that it was fitted on did not come along" if Need.ID_IMAGES in self.wants() else ""

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Self:
        """Take the arrays of `state`, instead of `fit`, and see that they fit together."""
        self._fitted = False
        self.check()
        for name, array in state.items():
            if not all_finite(array):
                raise InputError(f"{name} must be finite, got NaN or infinity", hint="fit it again")
        self._keep(*(state.get(name) for name in GIVEN))  # type: ignore[arg-type]
        self.kept_ = {name: state[name] for name in self.kept_names() if name in state}
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
            self.score(row, **self.sample_inputs(row, row))
        self.reset()
        learned = self.class_logits(row)
        if learned is not None and learned[1].shape != (1, len(learned[0])):
            raise InputError("classes must be as many as there are logits", hint="fit it again")

    def _checked(self, images: ArrayLike, *, finite: bool = True) -> NDArray[np.floating]:
        if not self._fitted:
            raise NotFittedError(f"{type(self).__name__} must be fitted before it scores", hint="call fit(...)")
        return matrix(to_numpy(images), "images", self.labels_.shape[1], finite=finite)

    def _unit_images(self, images: ArrayLike) -> Array:
        return unit_rows(self._checked(images), "images", UNIT_TOLERANCE)

    def _for_each(self, images: ArrayLike, work: Callable[[Array], Array], width: int) -> Array:
        """What `work` gives for unit image vectors, (n_images, width), the same bits in any company."""
        x = self._unit_images(images)
        return in_blocks(work, x, np.empty((len(x), width)))

    def _keep(
        self,
        labels: NDArray[np.floating],
        wild: NDArray[np.floating] | None,
        owners: ArrayLike | None,
        negatives: NDArray[np.floating] | None,
    ) -> None:
        if owners is not None and Need.ID_LABELS in self.wants():
            raise InputError(
                f"{type(self).__name__} learns its classes from ID images, so every row must be a label, got owners",
                hint="leave owners (kinds) away",
            )
        self.labels_, self.wild_, self.negatives_ = labels, wild, negatives
        self.owners_ = None if owners is None else given_owners(owners, len(labels))
        self._banks: dict[tuple[str, Choice, float], Bank] = {}
        self._y = unit_rows(labels, "labels")
        if negatives is not None:
            self._no = unit_rows(negatives.reshape(-1, labels.shape[1]), "negatives").reshape(negatives.shape)

    def _learn(self, images: Array, classes: Classes) -> None:
        """Set the arrays named in `learned`, from `labels_`, `wild_` and the ID images; `fit` calls it, not `restore`.

        Images (n_images, dim) are unit rows, classes (n_images,) theirs; None where the method does not need them.
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
    if (needed := of_photo(kind.needs)) and kind.score_inputs is VectorDetector.score_inputs:
        return f"it needs {needed[0].value}, and has no score_inputs"
    return "" if getattr(kind, "summary", "") else "it has no summary"


DETECTORS: Registry[type[VectorDetector]] = Registry("method", "outword.detectors", "outword list methods", _problem)
