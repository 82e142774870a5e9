"""Calibration: the threshold from photos of the user's, and what has to be said of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from outword.base.wording import be, counted
from outword.errors import InputError
from outword.maths.numerics import Array
from outword.maths.reference import look_unrelated
from outword.maths.thresholds import CalibrationMethod, Threshold, fit_threshold, measured
from outword.vectors.same_photo import Known, any_of, collected

STRANGE = 0.25  # the share of the photos above which it is said that they look like none of the classes


def calibrated(
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


def check_disjoint(inside: Iterable[Known], outside: Iterable[Known]) -> None:
    """Raise if a photo of the classes is among those of other things, by their hashes (`same_photo`)."""
    others = collected(*outside)
    if both := sum(any_of(photo, others) for photo in inside):
        count = f"{counted(both, 'photo')} {be(both)}"
        hint = "leave out one of the two"
        raise InputError(f"{count} both among those of the classes and among those of other things", hint=hint)
