"""Rules that parameters share, each with one message: the parameter, the rule, the value, the next step."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from outword.errors import ParameterError


def whole_number(name: str, value: object, least: int = 1, *, hint: str) -> None:
    """Raise unless `value` is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ParameterError(f"{name} must be a whole number of at least {least}, got {value!r}", hint=hint)


def number(name: str, value: Any, least: float = 0, most: float = math.inf, *, hint: str) -> None:
    """Raise unless `value` is a finite number between `least` and `most`, both included."""
    if not (is_number(value) and least <= value <= most):
        rule = f"a number of at least {least}" if math.isinf(most) else f"between {least} and {most}"
        raise ParameterError(f"{name} must be {rule}, got {value!r}", hint=hint)


def is_number(value: Any) -> bool:
    """Whether `value` is a finite number; True and False are none."""
    return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
