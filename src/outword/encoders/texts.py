"""Texts at their own length, in batches of the same length; and a word about texts that were cut."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
TOGETHER = 16  # texts that go through a tower on a CPU, never fewer: one at a time would take five times as long


class CutWarning(UserWarning):
    """Texts that were longer than an encoder reads."""

    def __init__(self, name: str, context: int, cut: int, total: int, first: str) -> None:
        self.name, self.context, self.cut, self.total, self.first = name, context, cut, total, first
        super().__init__(
            f"{cut} of {total} texts are longer than the {context} tokens that {name} reads and were cut, "
            f"the first: {first[:60]!r}..."
        )


_cuts: ContextVar[list[CutWarning] | None] = ContextVar("_cuts", default=None)  # of the block that one is in


@contextmanager
def one_warning() -> Iterator[None]:
    """One warning of cut texts for a whole block, however many batches it has.

    Blocks may run beside each other in threads, as those of a service do.
    """
    cuts: list[CutWarning] = []
    token = _cuts.set(cuts)
    try:
        yield
    finally:
        _cuts.reset(token)
    if cuts:
        cut, total = sum(warning.cut for warning in cuts), sum(warning.total for warning in cuts)
        warnings.warn(CutWarning(cuts[0].name, cuts[0].context, cut, total, cuts[0].first), stacklevel=3)


def batches(ids: Ids, end: int | None, size: int = TOGETHER, *, fill: bool = True) -> Iterator[tuple[Ids, int]]:
    """At most `size` rows of the same length, and that length: no text decides about the shape of another's batch.

    A row of `ids` (n, context) may be cut behind `end`, if that is an id. `fill` repeats the last row of a batch that
    is not full, since a tower may round otherwise in another shape.
    """
    lengths = np.full(len(ids), ids.shape[1]) if end is None else (ids == end).argmax(axis=1) + 1
    for rows in alike(lengths, size):
        filled = np.append(rows, np.repeat(rows[-1], size - len(rows))) if fill else rows
        yield filled, int(lengths[rows[0]])


def alike(lengths: NDArray[np.intp], size: int) -> Iterator[NDArray[np.intp]]:
    """Rows of the same length, the shortest first, at most `size` together."""
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        yield from (rows[start : start + size] for start in range(0, len(rows), size))


def warn_of_cuts(name: str, texts: Sequence[str], ids: Ids, pad: int, count: Callable[[str], int]) -> None:
    """Say which texts were longer than the context; only those that (nearly) fill it are counted again.

    The last token alone would not tell: SigLIP ends and pads a text with the same one.
    """
    context = ids.shape[1]
    full = np.flatnonzero((ids[:, -2:] != pad).any(axis=1)).tolist()
    cut = [texts[i] for i in full if count(texts[i]) > context]
    if not cut:
        return
    warning = CutWarning(name, context, len(cut), len(texts), cut[0])
    if (cuts := _cuts.get()) is None:
        warnings.warn(warning, stacklevel=3)
    else:
        cuts.append(warning)
