"""The fixed words of what is said of photos and labels: a type for each set of them, and no other values."""

from __future__ import annotations

from typing import Final, Literal, NewType, cast, get_args

Side = Literal["in", "out"]  # of a threshold
VerdictName = Literal["in", "out", "uncalibrated"]  # "uncalibrated" where there is no threshold
# What a threshold rests on; "imagined": on photos that were imagined from names, "formula": on no photos at all
Basis = Literal["calibrated", "reference", "imagined", "batch", "formula"]
Familiarity = Literal["known", "through", "head noun only", "unknown"]  # how an encoder knows a label, best first
Flag = NewType("Flag", str)  # the same with the broader name: "through bird"
OddsWord = Literal["good", "fair", "poor", "not seen"]  # how many photos of a label will be in

IN: Final = "in"
OUT: Final = "out"
UNCALIBRATED: Final = "uncalibrated"


def through(name: str) -> Flag:
    """The flag of a label that an encoder knows through a broader name.

    >>> through("bird")
    'through bird'
    """
    return Flag(f"through {name}")


def read_flag(text: str) -> Flag:
    """A flag that an encoder or a file gives (`outword.encoders.Coverage`); `ValueError` for what is none."""
    if not text.startswith(through("")) and text not in get_args(Familiarity):
        raise ValueError(f"a flag must be one of {', '.join(get_args(Familiarity))}, got {text!r}")
    return Flag(text)


def familiarity(flag: Flag) -> Familiarity:
    """How an encoder knows a label with this flag.

    >>> familiarity(through("bird")), familiarity(read_flag("head noun only"))
    ('through', 'head noun only')
    """
    return "through" if flag.startswith(through("")) else cast("Familiarity", flag)


def is_known(flag: Flag) -> bool:
    """Whether an encoder knows a label with this flag by its whole name, be it through a broader one."""
    return familiarity(flag) in ("known", "through")
