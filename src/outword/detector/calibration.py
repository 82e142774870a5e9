"""Calibration: the threshold from photos of the user's, and what has to be said of it.

`outword calibrate` and `Detector.calibrate` read photos and call `score_photos` and `calibrate`. `outword tune` has the
scores already and calls `threshold_from_scores`, as `calibrate` does; the page of the service has scores that somebody
marked, and calls `threshold_from_marks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from outword.base.wording import a_few, be, counted
from outword.detector.judge import judge_chunk
from outword.encoders.reading import Chunk
from outword.errors import InputError
from outword.maths.numerics import Array
from outword.maths.reference import look_unrelated
from outword.maths.thresholds import CalibrationMethod, Threshold, fit_marks, fit_threshold, measured
from outword.vectors.same_photo import Known, any_of, collected, different, known_by

if TYPE_CHECKING:
    from outword.detector.detector import Detector

STRANGE = 0.25  # the share of the photos above which it is said that they look like none of the classes


@dataclass
class Scores:
    """What photos score by the whole of a method: their names, by which hashes each is known, and the scores."""

    names: list[str] = field(default_factory=list)
    hashes: list[tuple[int | None, int]] = field(default_factory=list)  # see `outword.vectors.same_photo`
    scores: list[float] = field(default_factory=list)

    @cached_property
    def once(self) -> list[float]:
        """The scores of different photos: the same photo counts once."""
        return [self.scores[place] for place in different(self.hashes)]

    @property
    def n_repeats(self) -> int:
        """How many photos are there before."""
        return len(self.scores) - len(self.once)


def score_photos(detector: Detector, chunks: Iterable[Chunk], check: Callable[[Chunk], object]) -> Scores:
    """Score photos, which were read with the hashes of their files, by the whole method.

    `check` is called with each chunk, and raises or says what is wrong with the photos that could not be scored; the
    others are scored without them. A method that learns from what it scores forgets it afterwards.
    """
    whole, found = detector.whole(), Scores()
    with detector.isolated():
        for unjudged in chunks:
            chunk, judged = judge_chunk(whole, unjudged, top=0)
            check(chunk)
            if judged is None:
                continue
            good = chunk.good
            found.names += [photo.name for photo in good]
            found.hashes += known_by([photo.digest for photo in good], judged.vectors)
            found.scores += judged.scores.tolist()
    return found


def calibrate(
    detector: Detector, inside: Scores, outside: Scores, tpr: float | None, method: CalibrationMethod
) -> tuple[Threshold, list[str]]:
    """The threshold from photos of the classes and of other things, and what to warn of (`threshold_from_scores`).

    Photos of the classes must be others than those that the method was fitted on, and others than those of other
    things.
    """
    check_unfitted(detector, inside)
    check_disjoint(inside.hashes, outside.hashes)
    return threshold_from_scores(inside.once, outside.once, tpr, method, detector.reference_scores)


def threshold_from_scores(
    inside: Sequence[float],
    outside: Sequence[float],
    tpr: float | None,
    method: CalibrationMethod,
    reference: Array | None,
) -> tuple[Threshold, list[str]]:
    """The threshold from the scores of photos of the classes and of other things, and what to warn of.

    Args:
        inside: scores of different photos that show the classes.
        outside: scores of different photos that show none of them.
        tpr: the share of `inside` to accept; None balances both errors.
        method: see `outword.maths.thresholds.fit_threshold`.
        reference: what unrelated photos score, (n,), sorted, or None where that is not known.
    """
    threshold = measured(fit_threshold(inside, tpr, method, outside), reference)
    strange = 0 if reference is None else int(look_unrelated(inside, reference).sum())
    warnings = [threshold.warning] if threshold.warning else []
    if strange > STRANGE * len(inside):
        warnings.insert(0, f"{strange:,} of your {len(inside):,} photos look like none of your classes")
    return threshold, warnings


def threshold_from_marks(detector: Detector, inside: ArrayLike, outside: ArrayLike) -> Threshold:
    """The threshold that fits the scores of marked photos best (`outword.maths.thresholds.fit_marks`)."""
    return measured(fit_marks(inside, outside, detector.threshold), detector.reference_scores)


def check_unfitted(detector: Detector, photos: Scores) -> None:
    """Raise if the method was fitted on some of these photos."""
    known = detector.fitted_on
    if known is None or not len(known):
        return
    pairs = zip(photos.names, photos.hashes, strict=True)
    if fitted := [repr(name) for name, hashes in pairs if any_of(hashes, known)]:
        raise InputError(
            f"{len(fitted):,} of {len(photos.names):,} photos are among those that {detector.method} was fitted on, "
            f"and a threshold from them would be too high: {a_few(fitted)}",
            hint="leave them out, and calibrate on other photos of the classes",
        )


def check_disjoint(inside: Iterable[Known], outside: Iterable[Known]) -> None:
    """Raise if a photo of the classes is among those of other things, by their hashes (`same_photo`)."""
    others = collected(*outside)
    if both := sum(any_of(photo, others) for photo in inside):
        count = f"{counted(both, 'photo')} {be(both)}"
        hint = "leave out one of the two"
        raise InputError(f"{count} both among those of the classes and among those of other things", hint=hint)
