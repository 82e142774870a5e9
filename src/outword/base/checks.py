"""Rules that parameters share, each with one message: the parameter, the rule, the value, the next step."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from operator import ge, gt, le, lt
from typing import Any

from outword.errors import ParameterError

SUGGESTED = 3  # names that a message suggests


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
    is_number = not isinstance(value, bool) and isinstance(value, Real)  # math.isfinite fails for one of 400 digits
    if not (is_number and -math.inf < value < math.inf and all(keeps(value, bound) for _, bound, keeps in rules)):
        told = " and ".join(f"{words} {bound}" for words, bound, _ in rules)
        raise ParameterError(f"{name} must be a number {told}, got {value!r}", hint=hint)


def one_of(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raise unless `value` is one of some words, of which the first is the default."""
    if value not in choices:
        told = " or ".join([", ".join(f'"{word}"' for word in choices[:-1]), f'"{choices[-1]}"'])
        raise ParameterError(f"{name} must be {told}, got {value!r}", hint=f'"{choices[0]}" is the default')


def unknown(kind: str, name: str, choices: Iterable[str], see: str) -> ParameterError:
    """Say that `name` is not among `choices`, with those that begin so, or the nearest one, as a suggestion.

    >>> unknown("method", "neglable", ["mcm", "neglabel"], "outword list methods").hint
    'did you mean "neglabel"? see "outword list methods"'
    >>> unknown("encoder", "clip", ["clip-vit-b-32", "clip-vit-b-16", "clipn:"], "outword list encoders").hint
    'did you mean "clip-vit-b-32" or "clip-vit-b-16"? see "outword list encoders"'
    """
    every = list(choices)
    longer = [choice for choice in every if choice.startswith(f"{name}-")][:SUGGESTED]
    near = longer or difflib.get_close_matches(str(name), every, n=1)
    guess = "did you mean {}? ".format(" or ".join(f'"{one}"' for one in near)) if near else ""
    return ParameterError(f'unknown {kind} "{name}"', hint=f'{guess}see "{see}"')
