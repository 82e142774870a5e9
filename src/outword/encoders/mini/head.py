"""The space that `mini`'s two towers share: a classifier's weights, read through the names of its classes.

Letters, for class c of 1000: W_c its weight vector less the mean of all, b_c its bias, e_c the centred unit sentence
vector of its name, v_c its taxonomy vector, s_c = [e_c ; v_c] / sqrt 2. n(.) scales to length 1. From a pooled image
feature f:

    p      = softmax of (W f + b) / 1.5 over its 10 largest
    image  = [ sqrt(.7) n(f - mu) ; sqrt(.3) n(sum_c p_c s_c) ]

From the sentence vector E and the taxonomy vector v of a text (0 when no word of it is known):

    s      = [ n(E - E_mean) ; v ] / sqrt 2
    a      = sum_c softmax_c(12 s . s_c) W_c            attention over the classifier's own weights
    r      = (E - E_mean) A                             ridge regression from words to weights
    text   = n[ sqrt(.7) n(n(a) + .5 n(r)) ; sqrt(.3) s ]

Both are then written in one orthonormal basis B of the texts, cut to the leading directions. The text is scaled to
length 1 again; the image gets a last coordinate that holds the length of what lies outside B, where texts have 0. So
image-text cosines are exactly those with the cut text, and images keep length 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

SEEN = 0.7  # share of the looks (features, weights) in the squared length; the rest is meaning (names, taxonomy)
SOFTEN = 1.5  # divisor of the classifier's logits
TOP = 10  # classes that speak for an image
SHARPNESS = 12.0  # of the attention over classes
RIDGE_SHARE = 0.5  # of n(r), added to n(a)


@dataclass(frozen=True)
class Head:
    """The arrays of the formulas above, and the matrix product that they go through."""

    W: Array  # (n_classes, n_features)
    b: Array  # (n_classes,)
    mu: Array  # (n_features,)
    e: Array  # (n_classes, n_sentence)
    E_mean: Array  # (n_sentence,)
    A: Array  # (n_sentence, n_features)
    v: Array  # (n_classes, n_nodes), unit rows
    B: Array  # (n_features + n_sentence + n_nodes, dim - 1), orthonormal columns
    multiply: Callable[[Array, Array], Array] = np.matmul

    @cached_property
    def s(self) -> Array:
        """s_c: (n_classes, n_sentence + n_nodes)."""
        return meaning(self.e, self.v)

    @cached_property
    def _looks(self) -> Array:
        """W with one column a class; images need it."""
        return np.ascontiguousarray(self.W.T)

    @cached_property
    def _meanings(self) -> Array:
        """s with one column a class; texts need it."""
        return np.ascontiguousarray(self.s.T)

    def images(self, f: Array) -> Array:
        """Pooled features (n, n_features) to unit vectors (n, dim)."""
        x = self.multiply(self.whole_images(f), self.B)
        outside = np.sqrt(np.maximum(1 - np.sum(x * x, axis=1, keepdims=True), 0))
        return unit(np.hstack([x, outside]))

    def texts(self, E: Array, v: Array) -> Array:
        """Sentence vectors (n, n_sentence) and taxonomy vectors (n, n_nodes) to unit vectors (n, dim)."""
        x = unit(self.multiply(self.whole_texts(E, v), self.B))
        return np.hstack([x, np.zeros((len(x), 1), np.float32)])

    def whole_images(self, f: Array) -> Array:
        """Image vectors before the change of basis."""
        logits = self.multiply(f, self._looks) + self.b
        top = np.argpartition(logits, -TOP, axis=1)[:, -TOP:]
        p = softmax(np.take_along_axis(logits, top, axis=1) / SOFTEN)
        return joined(unit(f - self.mu), unit(np.einsum("nk,nkd->nd", p, self.s[top])))

    def whole_texts(self, E: Array, v: Array) -> Array:
        """Text vectors before the change of basis."""
        centred = E - self.E_mean
        s = meaning(unit(centred), v)
        a = self.multiply(softmax(SHARPNESS * self.multiply(s, self._meanings)), self.W)
        looks = unit(unit(a) + RIDGE_SHARE * unit(self.multiply(centred, self.A)))
        return unit(joined(looks, s))


def meaning(e: Array, v: Array) -> Array:
    """s = [e ; v] / sqrt 2."""
    return np.hstack([e, v]) / np.float32(np.sqrt(2))


def joined(looks: Array, means: Array) -> Array:
    """[sqrt(.7) looks ; sqrt(.3) means]."""
    return np.hstack([np.float32(np.sqrt(SEEN)) * looks, np.float32(np.sqrt(1 - SEEN)) * means])


def unit(x: NDArray[np.floating[Any]]) -> Array:
    """Rows of length 1; a row of zeros stays."""
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(x / np.where(length > 0, length, 1), np.float32)


def softmax(x: NDArray[np.floating[Any]]) -> Array:
    """Rows of shares."""
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), np.float32)
