"""What `outword-lab` brings, by name: what there is to say of it where it is not installed."""

from __future__ import annotations

from collections.abc import Container
from functools import cache

from outword.base.extras import install
from outword.errors import MissingExtraError

PACKAGE = "outword-lab"
NAMES: dict[str, tuple[str, ...]] = {  # by the group of the entry points that bring them
    "outword.detectors": ("coop", "fa", "locoop", "sct", "lsn", "negprompt", "lapt", "zoc", "clipn"),
    "outword.encoders": ("mini-float", "world-s", "world-m", "world-m-96", "clipn:", "vectors:"),
    "outword.corpora": ("world", "world-nouns", "world-looks"),
    "outword.sources": ("world:",),
    "outword.functions": ("read_words_per_image", "zoc_decoder"),
    "outword.lists": ("suites",),
    "outword.verbs": ("bench", "data", "train-no"),
}
CLASSES = {  # in `outword.detectors`: the method that each is
    "CLIPN": "clipn",
    "CoOp": "coop",
    "FA": "fa",
    "LAPT": "lapt",
    "LSN": "lsn",
    "LoCoOp": "locoop",
    "NegPrompt": "negprompt",
    "SCT": "sct",
    "ZOC": "zoc",
}


@cache
def installed() -> bool:
    """Whether the lab is installed."""
    from importlib.metadata import PackageNotFoundError, distribution  # slow to import, and seldom needed

    try:
        return bool(distribution(PACKAGE))
    except PackageNotFoundError:
        return False


def names(group: str, known: Container[str] = ()) -> list[str]:
    """The lab's names of a group that are not among those that are known."""
    return [name for name in NAMES.get(group, ()) if name not in known]


def missing(group: str, name: str) -> MissingExtraError | None:
    """What to raise for a name that nobody registered, if the lab should have: which command brings it; else None."""
    if name not in NAMES.get(group, ()):
        return None
    problem = "is installed, but cannot be loaded; install it again" if installed() else "is not installed"
    return MissingExtraError(f"{name} comes with {PACKAGE}, which {problem}: {install('lab')}")
