"""The fixed words of what is said of photos and labels: a type for each set of them, and no other values."""

from __future__ import annotations

from typing import Final, Literal, cast, get_args

Side = Literal["in", "out"]  # of a threshold
VerdictName = Literal["in", "out", "uncalibrated"]  # "uncalibrated" where there is no threshold
Basis = Literal["calibrated", "reference", "batch", "formula"]  # what a threshold rests on; "formula": on no photos
Familiarity = Literal["known", "through", "head noun only", "unknown"]  # how an encoder knows a label, best first

IN: Final = "in"
OUT: Final = "out"
UNCALIBRATED: Final = "uncalibrated"


def through(name: str) -> str:
    """The flag of a label that an encoder knows through a broader name.

    >>> through("bird")
    'through bird'
    """
    return f"through {name}"


def familiarity(flag: str) -> Familiarity:
    """How an encoder knows a label with this flag (`outword.encoders.Coverage`); `ValueError` for what is no flag.

    >>> familiarity("through bird"), familiarity("head noun only")
    ('through', 'head noun only')
    """
    known = "through" if flag.startswith(through("")) else flag
    if known not in get_args(Familiarity):
        raise ValueError(f"a flag must be one of {', '.join(get_args(Familiarity))}, got {flag!r}")
    return cast("Familiarity", known)


def is_known(flag: str) -> bool:
    """Whether an encoder knows a label with this flag by its whole name, be it through a broader one."""
    return familiarity(flag) in ("known", "through")
