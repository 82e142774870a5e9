"""The Hugging Face hub as the user set it: its address, the cache of its tools, and whether it may be asked."""

from __future__ import annotations

import os
from pathlib import Path

HUB = "https://huggingface.co"


def offline() -> bool:
    """Whether the user wants nothing to be fetched."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


def endpoint() -> str:
    """The address of the hub."""
    return (os.environ.get("HF_ENDPOINT") or HUB).rstrip("/")


def cache() -> Path:
    """Where the hub's own tools keep what they fetch."""
    if own := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(own).expanduser()
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("HF_HOME") or caches / "huggingface").expanduser() / "hub"
