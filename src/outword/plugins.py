"""What a package of your own imports to add a method, a miner, an encoder, a corpus, a source or a verb.

A package registers its things by entry points in its `pyproject.toml`, each in the group of its kind
(CONTRIBUTING.md has an example of each):

    outword.detectors   a dataclass that derives from `VectorDetector`; other packages' and ours are in `DETECTORS`
    outword.miners      a dataclass that derives from `Miner`; see `MINERS`
    outword.encoders    a function that makes an `Encoder` from a name such as "colours:rgb"; see `ENCODERS`
    outword.corpora     a function that gives a `Corpus`, made by `make_corpus`
    outword.sources     a `Kind`, which makes each `Piece` of a source
    outword.verbs       a command of click

Names are imported when they are first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outword.base.checks import number, whole_number
    from outword.cli.progress import say, show
    from outword.encoders import ENCODERS, Coverage, Encoder
    from outword.encoders.base import Pixels, Vectors
    from outword.errors import ImageError, InputError, OutwordError, ParameterError
    from outword.maths.methods import DETECTORS, Need, VectorDetector
    from outword.maths.methods.requests import FitRequest, ScoreRequest
    from outword.maths.mining import MINERS, Miner
    from outword.maths.numerics import Array, unit_rows
    from outword.photos.decode import Blob, check_bytes
    from outword.photos.sources.base import Item, Kind, Piece, digest, inner
    from outword.vectors.source import find_names
    from outword.words.corpora import Corpus, make_corpus

_HOMES = {
    "base.checks": ("number", "whole_number"),
    "cli.progress": ("say", "show"),
    "encoders": ("ENCODERS", "Coverage", "Encoder"),
    "encoders.base": ("Pixels", "Vectors"),
    "errors": ("ImageError", "InputError", "OutwordError", "ParameterError"),
    "maths.methods": ("DETECTORS", "Need", "VectorDetector"),
    "maths.methods.requests": ("FitRequest", "ScoreRequest"),
    "maths.mining": ("MINERS", "Miner"),
    "maths.numerics": ("Array", "unit_rows"),
    "photos.decode": ("Blob", "check_bytes"),
    "photos.sources.base": ("Item", "Kind", "Piece", "digest", "inner"),
    "vectors.source": ("find_names",),
    "words.corpora": ("Corpus", "make_corpus"),
}

__all__ = [
    "DETECTORS", "ENCODERS", "MINERS", "Array", "Blob", "Corpus", "Coverage", "Encoder", "FitRequest", "ImageError",
    "InputError", "Item", "Kind", "Miner", "Need", "OutwordError", "ParameterError", "Piece", "Pixels", "ScoreRequest",
    "VectorDetector", "Vectors", "check_bytes", "digest", "find_names", "inner", "make_corpus", "number", "say",
    "show", "unit_rows", "whole_number",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"outword.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
