"""Which backend computes: numpy unless told otherwise, or unless this process works on a CUDA device already."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from typing import Any, NamedTuple

from outword.base.extras import require
from outword.errors import MissingExtraError, ParameterError

VARIABLE = "OUTWORD_KERNELS"
PRECISIONS = {  # by backend; the first is what it takes unless told otherwise
    "numpy": ("float64", "float32"),
    "torch-cpu": ("float64", "float32"),
    "torch-cuda": ("float64", "float32", "float16"),
    "triton": ("float32", "float16"),
}
DESCRIPTORS = "triton.tools.tensor_descriptor"  # old versions of Triton have none


class Choice(NamedTuple):
    """A backend, and the precision that it scores in."""

    backend: str
    precision: str


_told: ContextVar[Choice | None] = ContextVar("told", default=None)


def chosen(backend: str | None = None, precision: str | None = None) -> Choice:
    """What computes: what is asked for here, in a `using` block or in the environment; else what suits the process.

    That is Triton where torch is loaded and has started on a CUDA device, as it has when the encoder runs there, and
    numpy everywhere else. It never depends on the size of the work, so that a score does not depend on its batch.

    >>> chosen("numpy"), chosen("numpy", "float32")
    (Choice(backend='numpy', precision='float64'), Choice(backend='numpy', precision='float32'))
    """
    told = None if backend else _told.get() or _from_environment()
    if told and precision is None:
        return told
    return _checked(backend or (told.backend if told else _automatic()), precision)


@contextmanager
def using(backend: str | None = None, precision: str | None = None) -> Iterator[Choice]:
    """A block in which everything is computed by this backend, in this thread.

    >>> with using("numpy", "float32"):
    ...     chosen()
    Choice(backend='numpy', precision='float32')
    """
    choice = chosen(backend, precision)
    token = _told.set(choice)
    try:
        yield choice
    finally:
        _told.reset(token)


def _from_environment() -> Choice | None:
    """The variable OUTWORD_KERNELS, "BACKEND" or "BACKEND:PRECISION"."""
    asked = os.environ.get(VARIABLE, "")
    backend, _, precision = asked.partition(":")
    return _checked(backend, precision or None) if asked else None


def _automatic() -> str:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return "numpy"
    return "triton" if _has_triton() else "torch-cuda"


def _has_triton() -> bool:
    """Whether Triton is there, in a version that the kernels run on."""
    return find_spec("triton") is not None and find_spec(DESCRIPTORS) is not None


def _checked(backend: str, precision: str | None) -> Choice:
    if backend not in PRECISIONS:
        raise ParameterError(
            f"backend must be one of {', '.join(PRECISIONS)}, got {backend!r}",
            hint=f"leave it out, or set {VARIABLE} to one of them",
        )
    known = PRECISIONS[backend]
    if precision is not None and precision not in known:
        raise ParameterError(
            f"precision must be one of {', '.join(known)} with {backend}, got {precision!r}", hint="leave it out"
        )
    torch: Any = require("torch", f"the backend {backend}") if backend != "numpy" else None
    if backend == "triton" and not _has_triton():
        raise MissingExtraError("the backend triton needs Triton 3.6 or later", hint='pip install "triton>=3.6"')
    if backend in ("torch-cuda", "triton") and not (interpreted() or torch.cuda.is_available()):
        raise ParameterError(
            f"the backend {backend} needs a CUDA device, torch sees none", hint=f"leave it out, or unset {VARIABLE}"
        )
    return Choice(backend, precision or known[0])


def interpreted() -> bool:
    """Whether Triton interprets its kernels on the CPU."""
    return os.environ.get("TRITON_INTERPRET", "") == "1"
