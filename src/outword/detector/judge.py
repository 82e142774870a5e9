"""What speaks for a verdict: the shares of labels and of wild words in the mass of an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword.maths.numerics import Array

Shares = list[tuple[str, float]]


class Perturbing(Protocol):
    """A method that moves the pixels by `epsilon` before it scores them, to the side that raises its score."""

    epsilon: float

    def gradient(self, images: ArrayLike) -> Array:
        """Gradient of the score by unit image vectors, (n_images, dim)."""


@dataclass(frozen=True)
class Evidence:
    """Labels and wild words with their share of an image's mass, largest first (see `Detector.evidence`)."""

    labels: Shares
    words: Shares


def shares(
    labels: NDArray[np.float32], words: NDArray[np.float32], temperature: float, top: int
) -> tuple[Array, NDArray[np.int64], Array]:
    """Shares of all labels and of the words that can be among the `top` largest; see `Detector.evidence`.

    With `m_b` the largest cosine of the labels and group b, all masses of that group are divided by `e^{m_b / T}`, so
    that they neither overflow nor vanish together. Words are told by the logs of their shares, which keep their order
    where the shares themselves vanish. The `top` largest words lie in the `top` groups whose largest words have the
    largest shares: each of these groups has one that is no smaller than any word outside of them.

    Args:
        labels: cosines (n_images, n_labels).
        words: cosines (n_images, n_groups, size); overwritten. `size` may be 0.
        temperature: T, the divisor of cosines.
        top: how many words are wanted, at least 1.

    Returns:
        Shares of the labels (n_images, n_labels); the groups (n_images, up to `top`) in rising order; logs of the
        shares of their words (n_images, up to `top` * size).
    """
    scale = np.float32(1 / temperature)
    top_label = labels.max(axis=1, keepdims=True)
    top_word = words.max(axis=2, initial=-np.inf)
    m = np.maximum(top_label, top_word)
    words -= m[:, :, None]
    words *= scale
    p = np.exp((labels - top_label) * scale)  # in the measure of the labels alone
    to_group = np.exp((top_label - m) * scale)  # from that measure to the group's
    sums = p.sum(axis=1, keepdims=True) * to_group + np.exp(words).sum(axis=2, dtype=np.float64)  # 1 - 1e-9 is not 1
    for_labels = p * (to_group / sums).mean(axis=1, keepdims=True)
    logs = np.log(sums)
    near = np.sort(np.argsort(logs - (top_word - m) * scale, axis=1, kind="stable")[:, :top], axis=1)
    for_words = np.take_along_axis(words, near[:, :, None], 1) - np.take_along_axis(logs, near, 1)[:, :, None]
    return for_labels, near, for_words.reshape(len(words), near.shape[1] * words.shape[2])


def largest(keys: NDArray[np.floating], top: int) -> NDArray[np.int64]:
    """Indices of the `top` largest, ties by index; only candidates are sorted, since this runs once an image."""
    enough = np.flatnonzero(keys >= np.partition(keys, -top)[-top]) if top < len(keys) else np.arange(len(keys))
    return np.asarray(enough[np.argsort(-keys[enough], kind="stable")[:top]])
