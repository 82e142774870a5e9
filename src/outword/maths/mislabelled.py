"""Which photos of class folders are in the wrong folder, from their vectors and the names of the classes.

Two opinions on each photo x are put together, neither of which knows in which folder c it is itself:

    n_k(x) = the logit of the name of class k, the best of its kinds
    s_k(x) = cos(x, m_k),   m_k = the sum of the photos of class k, without x, and of its name, all less their means

    P(k | x) = softmax_k(a n_k(x) + b s_k(x)),   a, b >= 0 the most likely ones, given the folders

So names count as far as they agree with the folders: not at all where the encoder does not know them. A photo may be
of another class where P(k | x) of another k is high. It may be of none where the score of a detector of all names is
low for these photos, and x is unlike the others of its folder:

    u(x) = z(-score(x)) + z(-s_c(x)),   z(v) = (v - median) / (90th percentile - median)

So up to a tenth of the photos may be wrong before they hide each other. How sure either is comes from logistic curves,
fitted to photos that were put into wrong folders on purpose (benchmarks/check.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outword.maths.numerics import Array, blocks

Classes = NDArray[np.int64]
Floats = NDArray[np.floating]
Logits = Callable[[Floats], Array]  # images (n, dim) to n_k(x), (n, n_classes)

STEPS = 30  # of Newton's method, for two weights
PRIOR = 1e-3  # weights are drawn to 0 by this, so that they are finite where all folders are right
SAMPLE = 10_000  # photos that weights are found from
FEWEST = 10  # photos that say how far from the others is far
FAR = 0.9  # the quantile whose distance from the median is 1
OTHER_CURVE = 1.27, -5.49  # of the log-odds of another class, to how sure that is: slope and offset
NONE_CURVE = 1.95, -6.95  # of u(x), the same


@dataclass(frozen=True)
class Evidence:
    """What speaks against the folder of each photo.

    Attributes:
        nearest: the class that the photo is most likely of, other than its own, (n,).
        odds: the log-odds of that class against the own one, (n,).
        own: s_c(x), (n,).
        weights: a and b, of opinions with a spread of 1 each.
    """

    nearest: Classes
    odds: Array
    own: Array
    weights: tuple[float, float]

    def sure_of_other(self) -> Array:
        """How sure it is that a photo is of `nearest`, 0 to 1."""
        return _curve(self.odds, OTHER_CURVE)

    def sure_of_none(self, scores: Array) -> Array:
        """How sure it is that a photo is of no class, 0 to 1; 0 for fewer than `FEWEST` photos."""
        if len(scores) < FEWEST:
            return np.zeros(len(scores))
        return _curve(outlying(-scores) + outlying(-self.own), NONE_CURVE)

    def seems_other(self, scores: Array) -> NDArray[np.bool_]:
        """Whether a photo is rather of `nearest` than of none, if it is wrong: names do not speak against all."""
        fits_some = (self.odds > 0) & (outlying(-scores) < 1)
        return fits_some | (self.sure_of_other() >= self.sure_of_none(scores))


def evidence(images: Floats, classes: Classes, names: Floats, logits: Logits, seed: int = 0) -> Evidence:
    """What speaks against each photo's folder.

    Classes that no photo is of are no candidates; where there is one class alone, the odds of others are 0.

    Args:
        images: (n, dim) unit rows.
        classes: (n,) the class of each photo's folder.
        names: (n_classes, dim) unit rows, of the names of the classes.
        logits: gives n_k(x) of some images.
        seed: of the sample that weights are found from.
    """
    n_photos, (there, places) = len(images), np.unique(classes, return_inverse=True)
    folders = Folders.of(images, classes, names)
    sample = np.arange(n_photos)
    if n_photos > SAMPLE:
        sample = np.sort(np.random.default_rng(seed).choice(n_photos, SAMPLE, replace=False))

    def opinions(rows: NDArray[np.int64]) -> tuple[Array, Array]:
        """Both opinions on some photos, (n, n_there, 2), and s_c(x) of each, (n,)."""
        alike = folders.likeness(images[rows], classes[rows])
        both = np.stack([logits(images[rows])[:, there], alike[:, there]], axis=2)
        return both - both.mean(axis=1, keepdims=True), alike[np.arange(len(rows)), classes[rows]]

    seen, _ = opinions(sample)
    spreads = seen.std(axis=(0, 1))
    scales = np.divide(1.0, spreads, out=np.zeros(2), where=spreads > 1e-9)
    found = most_likely_weights(seen * scales, places[sample]) if len(there) > 1 else np.zeros(2)
    odds, nearest, own = np.zeros(n_photos), classes.copy(), np.zeros(n_photos)
    for some in blocks(n_photos, 2 * len(names) + images.shape[1]):
        rows = np.arange(n_photos)[some]
        both, own[some] = opinions(rows)
        joined = both @ (found * scales)
        held = joined[np.arange(len(rows)), places[rows]].copy()
        joined[np.arange(len(rows)), places[rows]] = -np.inf
        if len(there) > 1:
            nearest[some], odds[some] = there[joined.argmax(axis=1)], joined.max(axis=1) - held
    return Evidence(nearest, odds, own, (float(found[0]), float(found[1])))


@dataclass(frozen=True, eq=False)
class Folders:
    """The sums m_k of classes, (n_classes, dim), and the mean of all photos, (dim,)."""

    sums: Array
    mean: Array

    @classmethod
    def of(cls, images: Floats, classes: Classes, names: Floats) -> Folders:
        """Those of photos in class folders."""
        mean, sums = images.mean(axis=0, dtype=np.float64), _unit(names - names.mean(axis=0))
        for some in blocks(len(images), images.shape[1]):
            np.add.at(sums, classes[some], _unit(images[some] - mean))
        return cls(sums, mean)

    def likeness(self, images: Floats, classes: Classes) -> Array:
        """s_k(x) of photos that are in the sums, (n, n_classes).

        >>> x = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        >>> Folders.of(x, np.array([0, 0, 1]), np.eye(2)).likeness(x, np.array([0, 0, 1])).round(2)
        array([[ 1., -1.],
               [ 1., -1.],
               [-1.,  1.]])
        """
        x = _unit(images - self.mean)
        found = x @ _unit(self.sums).T
        found[np.arange(len(x)), classes] = (x * _unit(self.sums[classes] - x)).sum(axis=1)
        return found


def most_likely_weights(opinions: Array, places: NDArray[np.intp]) -> Array:
    """The most likely weights, none below 0, of opinions (n, n_classes, n_opinions), if all folders were right.

    >>> right, says = np.array([0, 1, 0, 1]), np.array([[1.0, 0], [0, 1.0], [1.0, 0], [0.9, 1.0]])
    >>> most_likely_weights(np.stack([says, -says], axis=2), right)[1]
    np.float64(0.0)
    """
    used = list(range(opinions.shape[2]))
    found = np.zeros(len(used))
    while used:
        some = _unbounded_weights(opinions[:, :, used], places)
        if some.min() >= 0:
            found[used] = some
            break
        del used[int(some.argmin())]
    return found


def outlying(values: Array) -> Array:
    """How far each value is above the median, where the 90th percentile is 1 above it.

    >>> outlying(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 30.0])).round(1)
    array([-0.2, -0.1, -0. ,  0. ,  0.1,  1.9])
    """
    median, far = np.quantile(values, [0.5, FAR])
    found: Array = (values - median) / (far - median) if far > median else np.zeros(len(values))
    return found


def _unbounded_weights(opinions: Array, places: NDArray[np.intp]) -> Array:
    """The most likely weights, by Newton's method: the likelihood has one top, and no step may lead down."""
    n_photos, _, n_opinions = opinions.shape
    own = opinions[np.arange(n_photos), places]

    def loss(at: Array) -> float:
        logits = opinions @ at
        top = logits.max(axis=1)
        spans = np.log(np.exp(logits - top[:, None]).sum(axis=1)) + top
        return float((spans - own @ at).mean() + PRIOR * (at @ at))

    found = np.zeros(n_opinions)
    for _ in range(STEPS):
        logits = opinions @ found
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        means = np.einsum("nk,nkj->nj", shares, opinions)
        squares = np.einsum("nk,nki,nkj->ij", shares, opinions, opinions) - means.T @ means
        slope = (own - means).mean(axis=0) - 2 * PRIOR * found
        step = np.linalg.solve(squares / n_photos + 2 * PRIOR * np.eye(n_opinions), slope)
        before = loss(found)
        while np.abs(step).max() > 1e-6 and loss(found + step) > before:
            step /= 2
        if np.abs(step).max() <= 1e-6:
            break
        found = found + step
    return found


def _curve(values: Array, curve: tuple[float, float]) -> Array:
    slope, offset = curve
    return 1 / (1 + np.exp(-np.clip(slope * values + offset, -50, 50)))


def _unit(rows: Floats) -> Array:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    found: Array = np.asarray(rows, dtype=np.float64) / np.maximum(lengths, 1e-12)
    return found
