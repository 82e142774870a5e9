"""Methods of other packages, registered by an entry point in the group `outword.detectors`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any

from outword.maths.methods.base import VectorDetector

GROUP = "outword.detectors"


def plugins(known: Mapping[str, type[VectorDetector]]) -> Iterator[tuple[str, type[VectorDetector]]]:
    """Names and classes of installed methods. One that cannot be loaded, or takes a name of ours, is left out, loudly.

    A package offers one in its `pyproject.toml`:

        [project.entry-points."outword.detectors"]
        topk = "outword_topk:TopK"
    """
    for point in sorted(entry_points(group=GROUP)):
        try:
            kind = point.load()
        except Exception as error:  # a broken plugin must not take the others with it
            problem = str(error) or type(error).__name__
        else:
            problem = _problem(kind, point.name in known)
        if problem:
            warnings.warn(f"the method {point.name} ({point.value}) is left out: {problem}", stacklevel=2)
        else:
            yield point.name, kind


def _problem(kind: Any, taken: bool) -> str:
    """Why a thing cannot be a method; "" if it can."""
    if taken:
        return "there is a method of that name already"
    if not (isinstance(kind, type) and issubclass(kind, VectorDetector) and hasattr(kind, "__dataclass_fields__")):
        return "it is no dataclass that derives from VectorDetector"
    try:
        kind()
    except Exception as error:  # an abstract method, a parameter without a default, a fault of its own
        return str(error) or type(error).__name__
    return "" if getattr(kind, "summary", "") else "it has no summary"
