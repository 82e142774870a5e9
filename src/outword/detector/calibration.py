"""Calibration: the threshold from photos of the user's, and what has to be said of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from typing import TypeVar

from outword.base.wording import be, counted
from outword.errors import InputError
from outword.maths.numerics import Array
from outword.maths.reference import look_unrelated
from outword.maths.thresholds import CalibrationMethod, Threshold, fit_threshold, measured

STRANGE = 0.25  # the share of the photos above which it is said that they look like none of the classes
Photo = TypeVar("Photo", bound=Hashable)


def calibrated(
    inside: Mapping[Photo, float],
    outside: Mapping[Photo, float],
    tpr: float | None,
    method: CalibrationMethod,
    reference: Array | None,
) -> tuple[Threshold, list[str]]:
    """The threshold from the scores of photos of the classes and of other things, and what to warn of.

    Args:
        inside: scores of photos that show the classes, by what tells a photo from others, so that each counts once.
        outside: scores of photos that show none of them.
        tpr: the share of `inside` to accept; None balances both errors.
        method: see `outword.maths.thresholds.fit_threshold`.
        reference: what unrelated photos score, (n,), sorted, or None where that is not known.
    """
    check_disjoint(inside.keys(), outside.keys())
    scores = list(inside.values())
    threshold = measured(fit_threshold(scores, tpr, method, list(outside.values())), reference)
    strange = 0 if reference is None else int(look_unrelated(scores, reference).sum())
    warnings = [threshold.warning] if threshold.warning else []
    if strange > STRANGE * len(scores):
        warnings.insert(0, f"{strange:,} of your {len(scores):,} photos look like none of your classes")
    return threshold, warnings


def check_disjoint(inside: Set[Hashable], outside: Set[Hashable]) -> None:
    """Raise if a photo of the classes is among those of other things, by what tells a photo from others."""
    if both := inside & outside:
        count = f"{counted(len(both), 'photo')} {be(len(both))}"
        hint = "leave out one of the two"
        raise InputError(f"{count} both among those of the classes and among those of other things", hint=hint)
