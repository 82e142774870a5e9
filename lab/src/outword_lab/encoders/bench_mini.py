"""The photos of bench-mini as vectors of the embedded encoders: many figures are measured on them.

`mini` was judged on them while it was made, and its tower was probably trained on those of ImageNet, so they are no
reference that `fit` should use: that of `mini` is of other photos.
"""

from __future__ import annotations

from pathlib import Path

from outword.encoders import Encoder
from outword.errors import InputError
from outword.vectors.reference import Reference, read_reference
from outword_lab.encoders.mini_float import REFERENCE


def bench_mini(encoder: Encoder) -> Reference:
    """The vectors that an embedded encoder has of bench-mini's photos, with what each shows."""
    found = read_reference(place_of(encoder), encoder.fingerprint, encoder.dim)
    if found is None:
        raise InputError(
            f"encoder must be mini or mini-float, got {encoder.name}", hint="others have no vectors of bench-mini here"
        )
    return found


def place_of(encoder: Encoder) -> Path:
    """Where the lab keeps the vectors of an encoder."""
    return REFERENCE / f"{encoder.fingerprint[:16]}.safetensors"
