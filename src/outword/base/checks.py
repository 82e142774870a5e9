"""Rules that parameters share, each with one message: the parameter, the rule, the value, the next step."""

from __future__ import annotations

import math
from numbers import Integral, Real
from operator import ge, gt, le, lt
from typing import Any

from outword.errors import ParameterError


def whole_number(name: str, value: Any, least: int = 1, most: float = math.inf, *, hint: str) -> None:
    """Raise unless `value` is an integer of at least `least` and at most `most`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= most:
        rule = f"of at least {least}" if math.isinf(most) else f"between {least} and {most}"
        raise ParameterError(f"{name} must be a whole number {rule}, got {value!r}", hint=hint)


def number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    hint: str,
) -> None:
    """Raise unless `value` is a finite number within the bounds that are given."""
    bounds = ((least, "of at least", ge), (above, "above", gt), (most, "at most", le), (below, "below", lt))
    rules = [(words, bound, keeps) for bound, words, keeps in bounds if bound is not None]
    is_number = not isinstance(value, bool) and isinstance(value, Real) and _is_finite(value)
    if not (is_number and all(keeps(value, bound) for _, bound, keeps in rules)):
        told = " and ".join(f"{words} {bound}" for words, bound, _ in rules)
        raise ParameterError(f"{name} must be a number {told}, got {value!r}", hint=hint)


def mistyped(value: Any, kind: Any, name: str = "it") -> str:
    """The first thing in what a file says that is not of its kind, in words; "" if all is.

    Args:
        value: what the file says.
        kind: a type, where float is any finite number and nothing but bool takes true and false; a tuple of kinds, one
            of which will do; `[kind]` for a list; `{str: kind}` for a table with any keys; a table of kinds by key,
            which other keys may join, and whose keys that end in "?" may be missing.
        name: of the value, for the words.

    >>> mistyped({"dim": "8", "mean": [0.5]}, {"mean": [float], "dim": int})
    "dim is '8'"
    """
    if isinstance(kind, tuple):
        wrong = [mistyped(value, one, name) for one in kind]
        return wrong[0] if all(wrong) else ""
    if not _is_kind(value, kind):
        return f"{name} is {_told(value)}"
    if isinstance(kind, list):
        parts = [(one, kind[0], f"{name}[{at}]") for at, one in enumerate(value)]
    elif not isinstance(kind, dict):
        return ""
    elif str in kind:
        parts = [(one, kind[str], _told(key)) for key, one in value.items()]
    else:
        lacking = [key for key in kind if not key.endswith("?") and key not in value]
        if lacking:
            return f"{name} has no {lacking[0]}"
        known = {key.removesuffix("?"): one for key, one in kind.items()}
        parts = [(value[key], one, key) for key, one in known.items() if key in value]
    return next(filter(None, (mistyped(*part) for part in parts)), "")


def _is_kind(value: Any, kind: Any) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and -1e300 < value < 1e300
    wanted = kind if isinstance(kind, type) or kind is None else type(kind)
    if wanted is None:
        return value is None
    return isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))


def _told(value: Any) -> str:
    """A value in few words; digits without end cannot even be printed."""
    try:
        return repr(value)[:60]
    except (ValueError, RecursionError):
        return f"a {type(value).__name__} without end"


def _is_finite(value: Any) -> bool:
    return bool(-math.inf < value < math.inf)  # math.isfinite fails for whole numbers of 400 digits
