"""Encoders by name: `get_encoder("mini")` is embedded and works offline."""

from __future__ import annotations

from functools import lru_cache

from outword.encoders.base import Coverage, Encoder
from outword.errors import unknown

__all__ = ["ENCODERS", "Coverage", "Encoder", "get_encoder"]

ENCODERS = {"mini": "embedded, offline; knows ImageNet names, their synonyms and broad parents"}


@lru_cache(maxsize=4)
def get_encoder(name: str = "mini") -> Encoder:
    """The encoder called `name`; loaded once a process."""
    if name not in ENCODERS:
        raise unknown("encoder", name, ENCODERS, "outword list encoders")
    from outword.encoders.mini import Mini

    return Mini()
