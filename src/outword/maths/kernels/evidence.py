"""Which labels and words speak for an image: the formulas that all backends share, on arrays and on tensors.

With `h` the logits, `P` the mass of the labels and `Q_b` that of a group of words b, a word of that group has the share
`e^h / (P + Q_b)`, and a label the mean over groups of the same. The share of a label of several rows is the sum of
theirs. Labels and words are ordered by the logs of their shares, which keep their order where the shares vanish.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

REDUCE = {"max": np.maximum, "sum": np.add}
FEW = 8  # so many are taken out one after the other, which is quicker than sorting


class Evidence(NamedTuple):
    """The labels and words with the largest shares of each image, largest first, ties in order: (n_images, most) each.

    `labels` and `words` are places among the labels and among the words of a bank, the shares what they have, and
    `kinds` the row with the largest logit of each label.
    """

    labels: Any
    label_shares: Any
    kinds: Any
    words: Any
    word_shares: Any

    @classmethod
    def none(cls, n_images: int) -> Evidence:
        """Nothing for any image."""
        return cls(*[np.zeros((n_images, 0), np.int64)] * 5)


class Words(NamedTuple):
    """How the words of a bank lie: in pieces, side by side; no piece has words of two groups.

    Each piece begins and ends at a place among the words, and has a group among those of words, counted from 0. `ramp`
    counts the places of the longest piece; `total` is the number of words.
    """

    starts: Any
    ends: Any
    groups: Any
    ramp: Any
    total: int


class Owners(NamedTuple):
    """Which label each row belongs to, (n_rows,); where the rows of each begin, and end, (n_labels + 1,); a count."""

    of_row: Any
    offsets: Any
    ramp: Any


class Ops(NamedTuple):
    """What numpy and torch call by different names; `each` is the "max" or the "sum" of the runs between offsets."""

    xp: Any
    take: Callable[[Any, Any], Any]
    largest: Callable[[Any, int], Any]
    ordered: Callable[[Any], Any]
    each: Callable[[Any, str, Any], Any]


def words_in(cuts: NDArray[np.integer], groups: NDArray[np.integer], total: int) -> Words:
    """Words in pieces between `cuts`, (n_pieces + 1,), each of one of `groups`, (n_pieces,)."""
    cuts = cuts - cuts[0]
    return Words(cuts[:-1], cuts[1:], groups - min(groups, default=0), np.arange(np.diff(cuts).max(initial=0)), total)


def owners_in(owners: NDArray[np.integer] | None) -> Owners | None:
    """Rows and labels, where `owners` (n_rows,) does not decrease; None where every label has one row.

    >>> owners_in(np.array([0, 0, 1])).offsets
    array([0, 2, 3])
    """
    if owners is None or owners[-1] == len(owners) - 1:
        return None
    offsets = np.searchsorted(owners, np.arange(owners[-1] + 2))
    return Owners(np.asarray(owners, np.int64), offsets, np.arange(len(owners), dtype=np.float64))


def evidence(
    ops: Ops, labels: Any, logits: Any, best: Any, masses: Any, words: Words, top: int, owners: Owners | None = None
) -> Evidence:
    """The evidence of some images; a number that is added to all logits and masses of an image does not change it.

    The `top` largest words, at least 1, lie in the `top` pieces whose largest words have the largest shares: each of
    these pieces has one that is no smaller than any word outside of them.

    `labels` (n_images, n_rows) and `logits` (n_images, n_words) are the logits of labels and words, or of those that
    can be among the largest, but all rows of labels where there are `owners`; `best` (n_images, n_pieces) the largest
    of each piece of words; `masses` (n_images, 1 + n_groups) the log masses of the labels, then of the groups of words;
    `words` says how they lie in `logits`.
    """
    xp, log_p = ops.xp, masses[:, :1]
    log_sums = xp.logaddexp(log_p, masses[:, 1:]) if words.total else log_p
    of_labels, logs, kinds = _nearest(ops, labels, top, owners)
    label_shares = xp.exp(logs - log_p) * xp.exp(log_p - log_sums).mean(1)[:, None]
    if not words.total:
        return Evidence(of_labels, label_shares, kinds, of_labels[:, :0], label_shares[:, :0])
    log_sums = log_sums[:, words.groups]
    near = ops.ordered(ops.largest(best - log_sums, min(top, best.shape[1])))
    places = words.starts[near][:, :, None] + words.ramp
    there = places < words.ends[near][:, :, None]
    places = xp.where(there, places, 0).reshape(len(labels), near.shape[1] * len(words.ramp))
    logs = ops.take(logits, places).reshape(there.shape) - ops.take(log_sums, near)[:, :, None]
    logs = xp.where(there, logs, -np.inf).reshape(places.shape)
    order = ops.largest(logs, min(top, words.total))
    return Evidence(of_labels, label_shares, kinds, ops.take(places, order), xp.exp(ops.take(logs, order)))


def _nearest(ops: Ops, rows: Any, top: int, owners: Owners | None) -> tuple[Any, Any, Any]:
    """The labels with the largest masses, the logs of these, and the best row of each label, from logits of rows."""
    if owners is None:
        found = ops.largest(rows, min(top, rows.shape[1]))
        return found, ops.take(rows, found), found
    xp, best = ops.xp, ops.each(rows, "max", owners.offsets)
    below = rows - best[:, owners.of_row]
    logs = xp.log(ops.each(xp.exp(below), "sum", owners.offsets)) + best
    first = -ops.each(xp.where(below == 0, -owners.ramp, -owners.ramp[-1]), "max", owners.offsets)
    found = ops.largest(logs, min(top, logs.shape[1]))
    return found, ops.take(logs, found), ops.take(xp.asarray(first, dtype=xp.int64), found)


def largest(values: NDArray[np.floating], top: int) -> NDArray[np.int64]:
    """Places of the `top` largest values of each row, (n_rows, top), largest first, ties by place.

    >>> largest(np.array([[1.0, 3.0, 2.0, 3.0]]), 3)
    array([[1, 3, 2]])
    """
    if top > FEW:
        return np.argsort(-values, axis=1, kind="stable")[:, :top]
    left, found = values.copy(), np.empty((len(values), top), np.int64)
    for place in range(top):
        found[:, place] = left.argmax(axis=1)
        np.put_along_axis(left, found[:, place, None], -np.inf, 1)
    return found


NUMPY = Ops(
    np,
    lambda values, places: np.take_along_axis(values, places, 1),
    largest,
    lambda values: np.sort(values, axis=1),
    lambda values, how, offsets: REDUCE[how].reduceat(values, offsets[:-1], axis=1),
)
