"""The judgement of images: score, verdict, labels and wild words with their shares, from one product."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword.encoders.base import Pixels, Vectors
from outword.maths.kernels import to_numpy
from outword.maths.kernels.evidence import Evidence
from outword.maths.methods import Need
from outword.maths.numerics import Array

if TYPE_CHECKING:
    from outword.detector.detector import Detector

FIRED = 0.01  # the least share, of its group and the labels together, of a wild word that is named
UNCALIBRATED = "uncalibrated"
Shares = list[tuple[str, float]]


class Perturbing(Protocol):
    """A method that moves the pixels by `epsilon` before it scores them, to the side that raises its score."""

    epsilon: float

    def gradient(self, images: ArrayLike) -> Array:
        """Gradient of the score by unit image vectors, (n_images, dim)."""


@dataclass(frozen=True)
class Verdict:
    """What is said of one image: its score, the verdict in words, and labels and wild words with their shares.

    The largest shares come first. Higher scores mean more in-distribution.
    """

    score: float
    verdict: str
    labels: Shares
    words: Shares

    @property
    def label(self) -> str:
        """The nearest label."""
        return self.labels[0][0]

    @property
    def share(self) -> float:
        """What the nearest label has."""
        return self.labels[0][1]

    @property
    def fired(self) -> Shares:
        """The wild words with a share that counts."""
        return [pair for pair in self.words if pair[1] >= FIRED]


@dataclass(frozen=True)
class Explanation(Verdict):
    """A verdict with what it hangs on.

    `coverage` says how well the encoder knows each of the labels named, `in_use` what became of parameters, such as
    tau, that need not be used as they were given.
    """

    threshold: float | None
    calibrated: bool
    coverage: dict[str, str]
    in_use: dict[str, float]


@dataclass(frozen=True, eq=False)
class Verdicts(Iterable[Verdict]):
    """Verdicts of images, as arrays until they are asked for; a device may still be at work on them until then."""

    detector: Detector
    found: Callable[[], tuple[Array, Evidence]]  # waits for scores and evidence
    encoded: Any  # what was scored, (n_images, dim), where the encoder left it

    @cached_property
    def _found(self) -> tuple[Array, Evidence]:
        return self.found()

    @property
    def scores(self) -> Array:
        """(n_images,) float64."""
        return self._found[0]

    @cached_property
    def vectors(self) -> Vectors:
        """The vectors that were scored: of changed pixels, where the method asks for that."""
        return to_numpy(self.encoded)

    def __len__(self) -> int:
        return len(self.encoded)

    def __iter__(self) -> Iterator[Verdict]:
        labels, wild, sides = self.detector.labels, self.detector.wild, sides_of(self.detector)
        (scores, evidence), threshold = self._found, self.detector.threshold
        inside = scores >= (np.nan if threshold is None else threshold)
        columns = (column.tolist() for column in (scores, inside, *evidence))
        for score, within, near, near_shares, _, fired, fired_shares in zip(*columns, strict=True):
            yield Verdict(
                score,
                sides[within],
                [(labels[i], share) for i, share in zip(near, near_shares, strict=True)],
                [(wild[i], share) for i, share in zip(fired, fired_shares, strict=True)],
            )


def judge(
    detector: Detector, images: Pixels | NDArray[np.floating], top: int = 3, *, scores: Array | None = None
) -> Verdicts:
    """Judge images: on the device of the encoder where that is one, from one product of images and texts.

    Images are preprocessed pixels (n_images, height, width, 3), or vectors (n_images, dim). With `top`=0 there is the
    score alone, without labels and words. `scores` are those of the images, where they are known already.
    """
    vectors, patches = _encoded(detector, cast(Pixels, images)) if images.ndim == 4 else (images, None)
    scorer, temperature = detector.scorer, detector.card["encoder"]["temperature"]
    if scores is None:
        return Verdicts(detector, scorer.begin(vectors, top, temperature, patches=patches), vectors)
    found = scores, scorer.evidence(vectors, top, temperature)
    return Verdicts(detector, lambda: found, vectors)


def takes_vectors(detector: Detector) -> bool:
    """Whether vectors are enough to judge by; patches and changed pixels need the image."""
    return not {Need.PATCHES, Need.PIXELS} & set(detector.scorer.wants())


def sides_of(detector: Detector) -> tuple[str, str]:
    """What is said of images below the threshold, and of the others; before it is calibrated that is said too."""
    if detector.threshold is None:
        return UNCALIBRATED, UNCALIBRATED
    note = "" if detector.calibration_ else f" ({UNCALIBRATED})"
    return f"out{note}", f"in{note}"


def _encoded(detector: Detector, pixels: Pixels) -> tuple[Any, Vectors | None]:
    """Vectors of pixels and, where the method asks for them, of their patches."""
    encoder, wants = detector.encoder, detector.scorer.wants()
    if Need.PATCHES in wants:
        return encoder.encode_patches(pixels)
    if Need.PIXELS in wants:
        method = cast(Perturbing, detector.scorer)
        return encoder.encode_perturbed(pixels, method.gradient, method.epsilon), None
    return encoder.encode_on_device(pixels), None
