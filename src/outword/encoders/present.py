"""Which encoders are on this machine, and what a short name stands for on it. Nothing is asked of the hub."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec

from outword.encoders import download
from outword.encoders.names import BEST, KNOWN, Known
from outword.errors import OutwordError


def has_torch() -> bool:
    """Whether the libraries are installed that models of open_clip run on."""
    with suppress(ImportError, ValueError):
        return all(find_spec(name) is not None for name in ("torch", "open_clip"))
    return False


def resolved(name: str, precision: str | None = None) -> str:
    """What a short name stands for here: itself where torch is installed, else its published export.

    A precision that torch has not, int8, means the export, too. "best" is the best encoder that is on this machine.
    """
    if name == BEST:
        return best()
    without = name in KNOWN and (precision == "int8" or not has_torch())
    return KNOWN[name].onnx if without else name


def for_torch(name: str) -> str:
    """A name that means torch, installed or not: a detector with a short name was made with that.

    >>> for_torch("mini")
    'mini'
    """
    return KNOWN[name].stands_for if name in KNOWN and not has_torch() else name


def best() -> str:
    """The best encoder that is on this machine, by the accuracy that its makers published; else "mini"."""
    ranked = sorted(KNOWN.values(), key=lambda known: -known.top1)
    return next((found for known in ranked if (found := here(known)) is not None), "mini")


def here(known: Known) -> str | None:
    """The name under which an encoder is on this machine, with all that it needs to run; None if it is not."""
    from outword.encoders.onnx import layouts

    fetched = download.snapshot(known.repo)
    weights = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")
    if has_torch() and fetched is not None and any((fetched / name).is_file() for name in weights):
        return known.name
    with suppress(OutwordError):
        what, precision = layouts.split(known.onnx.removeprefix("onnx:"))
        found = layouts.here(what, precision)
        if found is not None and (layouts.has_our_tokens(found) or find_spec("tokenizers") is not None):
            return known.onnx
    return None
