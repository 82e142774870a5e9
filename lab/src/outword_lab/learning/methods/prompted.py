"""What the methods that learn prompts share: which tokens are learned, by which loss, and how long.

`outword_lab.learning` learns them on photos of the classes, before `fit`, with an encoder whose text tower can be
driven from token embeddings. What comes of it are vectors of labels, of negatives or of words, and the method itself
sees nothing else, neither here nor when it scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword.base.checks import whole_number
from outword.errors import InputError, ParameterError
from outword.maths.methods.base import Need, VectorDetector, parameter
from outword.maths.methods.glmcm import GLMCM
from outword.maths.methods.requests import FitRequest, Inputs
from outword.maths.numerics import Array, log_sum_exp
from outword_lab.learning.needs import PROMPTS

if TYPE_CHECKING:
    from typing_extensions import Self

PHOTO = "a photo of a"
CONTEXT = "context/"  # how the names of arrays begin that are learned tokens
Tensor = Any  # of torch, which is not imported here: losses are written with what tensors can do themselves


class Batch(NamedTuple):
    """What a loss sees: unit vectors as tensors of torch. `scale` is 1 over the encoder's temperature."""

    images: Tensor  # (n, dim)
    classes: Tensor  # (n,), which label each shows; from n_labels on, which word
    labels: Tensor  # (n_labels, dim)
    plain: Tensor  # (n_templates, n_labels, dim), names in hand-written templates; then those of words with photos
    scale: float
    rng: np.random.Generator  # for what is drawn by chance in a step
    patches: Tensor = None  # (n, n_patches, dim), for methods that learn from them
    negatives: Tensor = None  # (n_sets, n_labels, dim), for methods that have some
    wild: Tensor = None  # (n_words, dim), for methods with words


@dataclass(frozen=True)
class Context:
    """Tokens before a name, in place of the words of a template.

    They begin as the words of `start`, or as the context of that name of the method's, or from N(0, 0.02^2).
    """

    tokens: int  # how many, where they begin as nothing else
    start: str = ""
    noise: float = 0.0  # what is added to a beginning is drawn from U(-noise, noise)
    sets: int = 1
    own: bool = False  # whether each name has one of its own


@dataclass(frozen=True)
class Stage:
    """A round of learning: the contexts that move in it, by name, and how; the others stay."""

    moving: tuple[str, ...]
    loss: Callable[[Batch], Tensor]
    epochs: int
    rate: float  # at the beginning; it falls to 0 by a cosine
    batch: int
    optimizer: Literal["sgd", "adam"] = "sgd"
    nesterov: bool = False  # for SGD, whose momentum is 0.9
    decay: float = 5e-4  # of weights
    warm_up: int = 1  # epochs at a rate of 1e-5 first; the cosine begins behind them
    every_step: bool = False  # whether the rate falls with each step, else it is the same for a whole epoch


@dataclass
class Prompted(VectorDetector):
    """A method whose prompts are learned on photos of the classes.

    Args:
        shots: photos of each class that are learned from, drawn by the seed; all of a class that has fewer.
        epochs: how often each photo is seen. There is no other choice of when to stop.
        rate: of learning.
        batch: photos in a step.
        context: tokens that are learned, where they begin as no words.
        start: words that the context begins as, one token each at least; "" for a random beginning.
        crops: random crops of each photo, half of them mirrored, that are encoded and kept in its place; 0 for none.
        seed: of the photos that are taken, the beginning of the context, and the order of photos.
    """

    shots: int = parameter(16, whole_number, hint="the published values are 1 to 16")
    epochs: int = parameter(50, whole_number, least=0, most=100_000, hint="0 learns nothing")
    rate: float = parameter(0.002, above=0, hint="CoOp's is 0.002")
    batch: int = parameter(32, whole_number, hint="CoOp's is 32")
    context: int = parameter(16, whole_number, hint="CoOp's is 16")
    start: str = ""
    crops: int = parameter(0, whole_number, least=0, most=1000, hint="0 takes photos as they are")
    seed: int = parameter(0, whole_number, least=0, hint="use seed=0")
    needs: ClassVar[tuple[Need, ...]] = (Need.LABELS, Need.ID_IMAGES, Need.ID_LABELS, PROMPTS)
    prompts: ClassVar[str | None] = f"{PHOTO} {{}}."
    templates: ClassVar[tuple[str, ...]] = (f"{PHOTO} {{}}.",)  # of `Batch.plain`
    on_patches: ClassVar[bool] = False  # whether losses look at patches
    trains = True

    def check(self) -> None:
        """Raise if a parameter breaks its rule; `fit` calls it first."""
        super().check()
        if not isinstance(self.start, str):
            raise ParameterError(f"start must be words, got {self.start!r}", hint=f'for example "{PHOTO}"')

    def asks(self) -> tuple[Need, ...]:
        """Patches too, where the losses look at them."""
        return (*super().asks(), *([Need.PATCHES] if self.on_patches else []))

    def fit_inputs(self, request: FitRequest) -> Inputs:
        """The vectors that learned contexts make of labels, negatives and words, and the contexts themselves."""
        from outword_lab.learning.prompting import prompted_inputs  # which takes its time

        return prompted_inputs(self, request)

    def describe_learning(self, facts: Mapping[str, Any]) -> str:
        """What the prompts were learned from."""
        if facts["moved"]:
            return "the prompts were learned for other labels: what was measured of them does not hold for these"
        loss = ", ".join(f"{loss:.3f}" for loss in facts["losses"] if loss is not None)
        told = f"learned from {facts['photos']:,} photos ({facts['shots']} of a label at most)"
        told += f", {facts['words']:,} words" if facts["words"] else ""
        told += f", {facts['photos_of_words']:,} photos of words" if facts["photos_of_words"] else ""
        return f"{told}; loss {loss}" if loss else told

    def fit(
        self,
        labels: ArrayLike | None = None,
        wild: ArrayLike | None = None,
        *,
        kept: Mapping[str, NDArray[Any]] | None = None,
        **given: Any,
    ) -> Self:
        """See `VectorDetector.fit`; `kept` are the contexts that the vectors were made by."""
        super().fit(labels, wild, **given)
        self.kept_ = dict(kept or {})
        return self

    @property
    def learned_contexts(self) -> dict[str, NDArray[np.float32]]:
        """The contexts that the vectors were made by; none where it was fitted on vectors alone."""
        return {name.removeprefix(CONTEXT): context for name, context in self.kept_.items()}

    def kept_names(self) -> tuple[str, ...]:
        """The contexts."""
        return tuple(f"{CONTEXT}{name}" for name in self.contexts())

    def why_it_stays(self) -> str:
        """A context for all labels moves to others, those of each label do not."""
        if not self.kept_:
            return super().why_it_stays()
        moves = all(context.ndim == 3 for context in self.kept_.values())
        return "" if moves else "each label has learned tokens of its own"

    def restore(self, state: Mapping[str, NDArray[Any]]) -> Self:
        """See `VectorDetector.restore`; contexts are float32 tokens."""
        for name in self.kept_names():
            array = state.get(name)
            if array is not None and (array.dtype != np.float32 or array.ndim not in (3, 4)):
                told = f"{name} must be finite float32 tokens, got {array.dtype} {array.shape}"
                raise InputError(told, hint="fit it again")
        return super().restore(state)

    def contexts(self) -> Mapping[str, Context]:
        """What is learned, by the name of what it makes: "labels", "negatives" or "wild"."""
        return {"labels": Context(self.context, self.start)}

    def stages(self) -> tuple[Stage, ...]:
        """How it is learned, one stage after the other."""
        return (Stage(("labels",), self.loss, self.epochs, self.rate, self.batch),)

    def loss(self, batch: Batch) -> Tensor:
        """What is made small: CoOp's, the cross-entropy of the photos' classes."""
        return -own_log_shares(batch.scale * batch.images @ batch.labels.T, batch.classes).mean()


@dataclass
class PromptedMCM(Prompted, GLMCM):
    """A learned prompt whose score is MCM's, or with `weight` above 0 GL-MCM's, which looks at patches too."""

    weight: float = parameter(0.0, least=0, hint="0 is MCM's score, 1 is GL-MCM's")

    def wants(self) -> tuple[Need, ...]:
        """Patches too, where the score looks at them; what is learned before is another matter."""
        others = tuple(need for need in self.needs if need is not Need.PATCHES)
        return (*others, Need.PATCHES) if self.weight else others


def own_log_shares(logits: Tensor, classes: Tensor) -> Tensor:
    """Log of the softmax (n, n_classes) at the class of each row, (n,)."""
    return logits.log_softmax(1).gather(1, classes[:, None])[:, 0]


def best_share(logits: Array, others: Array) -> Array:
    """The largest entry of `logits` in the softmax over these and `others`, of each row.

    >>> best_share(np.log([[1.0, 2.0]]), np.log([[3.0, 2.0]])).round(4)
    array([0.25])
    """
    return np.asarray(np.exp(logits.max(axis=1) - np.logaddexp(log_sum_exp(logits), log_sum_exp(others))))
