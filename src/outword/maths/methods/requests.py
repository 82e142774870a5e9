"""What a method is asked with when it makes its own inputs: `fit_inputs` and `score_inputs` of `VectorDetector`.

A request has what the pipeline knows; a method takes of it what it needs. The encoder, the labels and the photos are
made elsewhere, and this package knows no more of them than is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from outword.base.reports import Report, quiet
from outword.maths.methods.needs import Need

if TYPE_CHECKING:
    from outword.maths.methods.base import VectorDetector

Inputs = dict[str, Any]  # arguments of `fit` or `begin` by name, and some that the two hooks tell of


class Tower(Protocol):
    """What a method may ask of an encoder; which of it an encoder has, its `offers` say."""

    dim: int
    offers: tuple[str, ...]

    def encode_on_device(self, pixels: NDArray[np.uint8]) -> Any:
        """Pixels to unit vectors (n, dim), left where the encoder has them."""

    def encode_patches(self, pixels: NDArray[np.uint8]) -> tuple[Any, Any]:
        """Pixels to unit vectors (n, dim), and those of their patches (n, n_patches, dim)."""

    def encode_perturbed(
        self, pixels: NDArray[np.uint8], gradient: Callable[[NDArray[Any]], NDArray[np.floating]], epsilon: float
    ) -> Any:
        """Pixels, each moved by epsilon to the side that raises a score, to unit vectors (n, dim)."""


@dataclass(frozen=True)
class FitRequest:
    """What is there when a method is fitted.

    Attributes:
        encoder: that makes the vectors.
        labels: by name, each with `names` and perhaps a `prompt` of its own.
        given: what is encoded already, by the name of the argument of `fit`: labels, owners, images and their labels.
        sentences: gives what the encoder reads of each row of the labels.
        find_wild: gives the wild words and their vectors, which are mined by that; see `wild`.
        photos: the ID images, with their vectors and where they come from; None where there are none.
        word_images: a folder with photos of words, if one is named; for methods that say so in `takes`.
        learned: a fitted method of the same kind, whose learned arrays are to be taken as they are; None to learn.
        report: called with (task, done, total) during long work.
    """

    encoder: Any
    labels: Mapping[str, Any]
    given: Mapping[str, Any]
    sentences: Callable[[], Sequence[Sequence[str]]]
    find_wild: Callable[[], tuple[list[str], Any]]
    photos: Any = None
    word_images: Any = None
    learned: VectorDetector | None = None
    report: Report = quiet

    @cached_property
    def wild(self) -> tuple[list[str], Any]:
        """The wild words and their vectors, (n_words, dim); no words and None where the method wants none."""
        return self.find_wild()


@dataclass(frozen=True, eq=False)
class ScoreRequest:
    """What is there when photos are scored, all of them encoded or all of them decoded.

    Attributes:
        find_encoder: gives the encoder, which is loaded by that; see `encoder`.
        images: pixels (n, height, width, 3), or vectors (n, dim).
        names: what each photo is called; "" where it has no name.
        labels, rows: the labels, and the names of the rows of their vectors.
        find_prompts: gives the prompts, by which words become sentences as labels do.
        by_hand: what somebody handed over for the method, by what it is (`Detector.by_hand`).
        memo: a place for what is worth keeping until the next request to the same detector.
    """

    find_encoder: Callable[[], Tower]
    images: Any
    names: Sequence[str]
    labels: Sequence[str] = ()
    rows: Sequence[str] = ()
    find_prompts: Callable[[], Any] = lambda: None
    by_hand: Mapping[Need, Any] = field(default_factory=dict)
    memo: dict[str, Any] = field(default_factory=dict)

    @property
    def encoder(self) -> Tower:
        """The encoder; it is loaded only if somebody asks for it."""
        return self.find_encoder()

    @property
    def pixels(self) -> NDArray[np.uint8] | None:
        """Pixels (n, height, width, 3); None where there are vectors only."""
        pixels: NDArray[np.uint8] | None = self.images if self.images.ndim == 4 else None
        return pixels

    @cached_property
    def vectors(self) -> Any:
        """Vectors (n, dim), where the encoder left them; photos are encoded when this is first asked for."""
        return self.images if self.pixels is None else self.encoder.encode_on_device(self.pixels)
