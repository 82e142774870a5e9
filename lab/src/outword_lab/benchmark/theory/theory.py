"""How far the debiased score is from the score it estimates, against the number of words: the paper's Theorem 2.

With unit vectors, h = kappa cos (kappa is `scale` here, one over the temperature) and a wild distribution
Q = tau P+ + (1 - tau) P-, the theorem is about

    S_unbiased = P / (P + lam E_{P-}[e^h])            P = sum over the labels of e^h
    S_debiased = P / (P + lam Lambda),                Lambda = (q - tau g) / (1 - tau)
    delta = |log S_debiased - log S_unbiased|

where q is the mean of e^h over m words drawn from Q, and g that over n words drawn from P+. All words are known here:
the expectations are exact, and only q and g are drawn. `lam` is fixed, at the paper's group size.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from outword.base.checks import number, whole_number
from outword.base.reports import Report, quiet
from outword.encoders.mini.encoder import Mini
from outword.errors import InputError, ParameterError
from outword.maths.mining import Density
from outword.maths.numerics import Array, blocks, unit_rows
from outword.photos.walk import find_images
from outword.vectors.wild import encode_words, mine
from outword.words.corpora import get_corpus
from outword.words.forms import drop_labels
from outword.words.prompts import get_prompts
from outword_lab.benchmark.run.suite import Theorem

LAMBDA = 120.0
MAX_SCALE = 175.0  # e^(4 kappa) leaves float64 at 177
REPLICATES = 1000
GOAL, SLACK = -0.5, 0.05
FEWEST = 3  # sizes that a line is fitted to
BEYOND = 10  # knees; see `Curve`
Axis = Literal["m", "n", "both"]
AXES: tuple[Axis, ...] = ("m", "n", "both")
Seed = int | Sequence[int]


@dataclass(frozen=True)
class Setting:
    """Unit vectors of images, labels and words; words are drawn alike from `positives` (P+) and `negatives` (P-)."""

    name: str
    images: Array
    labels: Array
    positives: Array
    negatives: Array


@dataclass(frozen=True)
class Point:
    """delta at one size: its mean over draws and images, with a 95 % interval over draws; None where none is defined.

    A draw is undefined for an image with P + lam Lambda <= 0, which has no logarithm; the means are of the others.
    """

    size: int  # m, n, or both
    mean: float | None
    low: float | None
    high: float | None
    worst: float | None  # mean over draws of the image for which it is largest: the theorem speaks of every image
    undefined: float  # share of (draw, image) pairs
    bound: float  # the theorem's, as printed
    corrected: float  # see `corrected_bound`


@dataclass(frozen=True)
class Slope:
    """Of log delta by log size, with a 95 % interval over draws, on the sizes from `first` to `last`."""

    value: float
    low: float
    high: float
    first: int
    last: int

    @property
    def meets_goal(self) -> bool:
        """Whether it is -0.5 within 0.05."""
        return abs(self.value - GOAL) <= SLACK


@dataclass(frozen=True)
class Curve:
    """delta against m (with the exact mean over P+), against n (with that over Q), or against m = n.

    Its knee is the size at which the standard deviation of a sampled mean (q, g or P + lam Lambda) is as large as what
    it estimates, for the image for which that is largest. delta falls as 1/sqrt(size) well above it; below, a few words
    that are drawn seldom decide.
    """

    setting: str
    scale: float
    axis: Axis
    tau: float
    lam: float
    images: int
    labels: int
    words: int
    draws: int
    knee: float
    points: tuple[Point, ...]  # one a size
    slope: Slope | None  # of all sizes without undefined draws, if those are 3 or more
    beyond: Slope | None  # of those that are at least 10 knees


def make_setting(name: str, images: ArrayLike, labels: ArrayLike, words: ArrayLike, tau: float) -> Setting:
    """A setting in which the share `tau` of the words that is nearest to a label is P+, and the rest P-.

    >>> near = make_setting("axes", [[1, 0]], [[0, 1]], [[1, 0], [0, 1], [3, 4], [4, 3]], tau=0.5)
    >>> near.positives
    array([[0. , 1. ],
           [0.6, 0.8]])
    """
    x, y, w = unit_rows(images, "images"), unit_rows(labels, "labels"), unit_rows(words, "words")
    share = round(tau * len(w))
    if not 0 < share < len(w):
        raise InputError(f"{len(w)} words cannot be parted at tau {tau}", hint="give more words")
    nearest = np.concatenate([(w[rows] @ y.T).max(axis=1) for rows in blocks(len(w), len(y))])
    order = np.argsort(-nearest, kind="stable")
    return Setting(name, x, y, w[order[:share]], w[order[share:]])


def synthetic_setting(tau: float, n_images: int) -> Setting:
    """Planted concepts, 300 with a label and 300 without; 20 words around each, and images around half of each kind."""
    rng = np.random.default_rng(0)

    def near(rows: Array) -> Array:
        return unit_rows(rows + unit_rows(rng.standard_normal(rows.shape)))

    concepts = unit_rows(rng.standard_normal((600, 64)))
    words = near(np.repeat(concepts, 20, axis=0))
    images = near(concepts[np.arange(n_images) % 2 * 300 + rng.integers(300, size=n_images)])
    return make_setting("synthetic", images, concepts[:300], words, tau)


def mini_setting(tau: float, n_images: int, report: Report = quiet) -> Setting:
    """The embedded encoder: ImageNet's names, the mined words that come with it, and the packaged photos."""
    encoder = Mini()
    names = list(dict.fromkeys(encoder.lexicon.names[node] for node in encoder.lexicon.classes))
    prompts = get_prompts(encoder.prompts)
    labels = encode_words(encoder, prompts.render(names, ["label"] * len(names)), report)
    wild = mine(encoder, get_corpus("wordnet"), prompts, Density(), labels, report)
    kept, _ = drop_labels(wild.words, names)
    photos = list(find_images([Path(str(files("outword"))) / "demo" / "photos"]))
    return make_setting("mini", encoder.encode_images(photos[:n_images]), labels, wild.vectors[kept], tau)


def bound(scale: float, tau: float, m: int | None, n: int | None) -> float:
    """The theorem's bound on the mean of delta, as printed; a size of None is infinite.

        1/(1-tau) sqrt(pi e^(3 kappa) / (2m)) + tau/(1-tau) sqrt(pi e^(3 kappa) / (2n))

    >>> round(bound(1.0, 0.5, 100, None), 3)
    1.123
    """
    return math.sqrt(math.pi / 2) * math.exp(1.5 * scale) * _rate(tau, m, n)


def corrected_bound(scale: float, tau: float, m: int | None, n: int | None) -> float:
    """A bound that can be proved for a score whose Lambda is kept at e^-kappa or above.

        (e^(2 kappa) - 1) / 2 * (1/(1-tau) 1/sqrt(m) + tau/(1-tau) 1/sqrt(n))

    E_{P-}[e^h] >= e^-kappa as well, so that |log a - log b| <= |a - b| / min(a, b) gives
    delta <= e^kappa |Lambda - E_{P-}[e^h]|. The mean of m values within e^kappa - e^-kappa of each other has a standard
    deviation of at most half of that over sqrt(m), and its mean absolute deviation is no larger.

    >>> round(corrected_bound(1.0, 0.5, 100, None), 3)
    0.639
    """
    return math.expm1(2 * scale) / 2 * _rate(tau, m, n)


def _rate(tau: float, m: int | None, n: int | None) -> float:
    return ((1 / math.sqrt(m) if m else 0.0) + (tau / math.sqrt(n) if n else 0.0)) / (1 - tau)


@dataclass(frozen=True)
class Masses:
    """What deviations are computed from; each row, an image at a scale, has e^h in a unit of its own."""

    tau: float
    base: Array  # P / lam + E_{P-}[e^h], (n_rows,)
    words: Array  # e^h of positives, then negatives, (n_words, n_rows)
    wild: Array  # probability of each word under Q, (n_words,)
    positive: Array  # probability of each positive under P+, (n_positives,)
    room: Array  # E_{P-}[e^h] - e^-kappa, how far Lambda falls to its floor, (n_rows,)


def exact_masses(setting: Setting, scale: ArrayLike, tau: float, lam: float = LAMBDA) -> Masses:
    """The masses of a setting; `scale` is kappa in h = kappa cos, one number or one an image."""
    k = np.asarray(scale, np.float64)
    h = (np.concatenate([setting.labels, setting.positives, setting.negatives]) @ setting.images.T) * k
    top = h.max(axis=0)
    e = np.exp(h - top)
    y, p, q = np.split(e, np.cumsum([len(setting.labels), len(setting.positives)]))
    wild = np.repeat([tau / len(p), (1 - tau) / len(q)], [len(p), len(q)])
    base, room = y.sum(axis=0) / lam + q.mean(axis=0), q.mean(axis=0) - np.exp(-k - top)
    return Masses(tau, base, e[len(y) :], wild, np.full(len(p), 1 / len(p)), room)


def deviation(masses: Masses, m: int | None, n: int | None, draws: int, seed: Seed, floored: bool = False) -> Array:
    """`log S_debiased - log S_unbiased`, (draws, n_rows); NaN where P + lam Lambda <= 0.

    m and n are how many words are drawn from Q and from P+, with replacement; None takes the exact mean. `floored`
    keeps Lambda at e^-kappa or above, as in debiased contrastive learning (Chuang et al. 2020).
    """
    for_m, for_n = np.random.default_rng(seed).spawn(2)
    q = _errors(masses.words, masses.wild, m, draws, for_m)
    g = _errors(masses.words, masses.positive, n, draws, for_n)
    error = (q - masses.tau * g) / (1 - masses.tau)  # of Lambda
    share = (np.maximum(error, -masses.room) if floored else error) / masses.base
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(share > -1, -np.log1p(share), np.nan) + 0.0


def _errors(words: Array, p: Array, size: int | None, draws: int, rng: np.random.Generator) -> Array:
    """Mean of `size` words drawn with probabilities `p`, less the exact mean, (draws, n_rows)."""
    out = np.zeros((draws, words.shape[1]))
    if size is not None:
        for rows in blocks(draws, len(p)):
            counts = rng.multinomial(size, p, size=len(out[rows]))  # how often each word was drawn
            out[rows] = (counts / size - p) @ words[: len(p)]
    return out


def _knees(masses: Masses, axis: Axis) -> Array:
    """The knee (see `Curve`) of each row: variance of a single draw over the squared mean, the largest of the means."""
    drawn = [(masses.wild, 1.0)] * (axis != "n") + [(masses.positive, masses.tau)] * (axis != "m")
    means = [p @ masses.words[: len(p)] for p, _ in drawn]
    own = [p @ (masses.words[: len(p)] / mean - 1) ** 2 for (p, _), mean in zip(drawn, means, strict=True)]
    shares = [weight * mean / ((1 - masses.tau) * masses.base) for (_, weight), mean in zip(drawn, means, strict=True)]
    together = np.sum([share**2 * variance for share, variance in zip(shares, own, strict=True)], axis=0)
    return np.asarray(np.max([*own, together], axis=0))


@dataclass(frozen=True)
class Case:
    """A case made to break the printed bound: P+ lies on the image, the one label opposite, P- at a cosine to it.

    tau = 1/2, lam = 120, n is infinite. `of_bound` and `of_corrected` are the mean of delta over the bounds.
    """

    cosine: float
    scale: float
    m: int
    floored: bool
    of_bound: float
    of_corrected: float


def hard_cases(draws: int = 20_000) -> list[Case]:
    """The printed bound for kappa = 3, where it is not that of the proof: broken by either score, for a P- of its own.

    P- opposite the image has the smallest mean, which is also the floor of Lambda, so that the floored score errs one
    way only, and keeps the bound; a little room above the floor is enough to break it, too.
    """
    tau, found = 0.5, []
    for cosine, scale, m in ((-1.0, 3.0, 10**7), (-0.98, 3.0, 10**8)):
        vectors = ([[1.0, 0.0]], [[-1.0, 0.0]], [[1.0, 0.0]], [[cosine, math.sqrt(1 - cosine**2)]])
        masses = exact_masses(Setting("", *map(unit_rows, vectors)), scale, tau)
        for floored in (False, True):
            delta = float(np.abs(deviation(masses, m, None, draws, 0, floored)).mean())
            bounds = [delta / of(scale, tau, m, None) for of in (bound, corrected_bound)]
            found.append(Case(cosine, scale, m, floored, *bounds))
    return found


def slope(sizes: Sequence[int], deltas: Array) -> Slope | None:
    """Slope of the logarithm of the mean over draws by log size, and its 95 % interval, by bootstrap over draws.

    Sizes come smallest first; `deltas` is (n_sizes, n_draws), finite, with independent draws at each size. Gives None
    for fewer than 3 sizes, and for words that are all alike, which have no delta.

    >>> slope([10, 100, 1000], np.array([[1.0, 1.0], [0.1, 0.1], [0.01, 0.01]]))
    Slope(value=-1.0, low=-1.0, high=-1.0, first=10, last=1000)
    """
    if len(sizes) < FEWEST or not deltas.any(axis=1).all():
        return None
    x = np.log(sizes) - np.log(sizes).mean()
    means = np.column_stack([deltas.mean(axis=1), _resampled(deltas, np.ones_like(deltas))])
    slopes = np.round(x @ np.log(means) / (x @ x), 12)
    low, high = np.quantile(slopes[1:], [0.025, 0.975])
    return Slope(float(slopes[0]), float(low), float(high), sizes[0], sizes[-1])


def _resampled(totals: Array, counts: Array) -> Array:
    """Means of bootstrap samples of the draws, (n_sizes, REPLICATES): sums of `totals` over sums of `counts`."""
    rng = np.random.default_rng(0)
    out = np.empty((len(totals), REPLICATES))
    for row, (total, count) in enumerate(zip(totals, counts, strict=True)):
        chosen = rng.integers(len(total), size=(REPLICATES, len(total)))
        out[row] = total[chosen].sum(axis=1) / np.maximum(count[chosen].sum(axis=1), 1)
    return out


def run_theorem(
    theorem: Theorem,
    settings: Sequence[Setting] | None = None,
    seed: int = 0,
    report: Report = quiet,
    lam: float = LAMBDA,
) -> list[Curve]:
    """Measure delta in each setting (synthetic and `mini` by default), along each axis, at each scale, by the seed."""
    _check(theorem)
    if settings is None:
        given = (theorem.tau, theorem.images)
        settings = [synthetic_setting(*given), mini_setting(*given, report)]
    curves = []
    for at, setting in enumerate(settings):
        world = replace(setting, images=setting.images[: theorem.images])
        scales = np.repeat(np.asarray(theorem.scales, np.float64), len(world.images))
        rows = replace(world, images=np.tile(world.images, (len(theorem.scales), 1)))
        masses = exact_masses(rows, scales, theorem.tau, lam)  # all scales at once: they share the draws
        for place, axis in enumerate(AXES):
            signed = [
                deviation(masses, *_drawn(axis, size), theorem.draws, (seed, place, size)) for size in theorem.sizes
            ]
            deltas, knees = np.abs(signed), _knees(masses, axis)  # (n_sizes, draws, n_rows) and (n_rows,)
            report("theorem 2", at * len(AXES) + place + 1, len(settings) * len(AXES))
            for scale in theorem.scales:
                own = scales == scale
                curves.append(_curve(world, theorem, scale, axis, lam, float(knees[own].max()), deltas[:, :, own]))
    return curves


def _drawn(axis: Axis, size: int) -> tuple[int | None, int | None]:
    """m and n at a point of an axis."""
    return (None if axis == "n" else size), (None if axis == "m" else size)


def _curve(world: Setting, theorem: Theorem, scale: float, axis: Axis, lam: float, knee: float, deltas: Array) -> Curve:
    """A curve from delta, (n_sizes, draws, n_images)."""
    counts = np.isfinite(deltas).sum(axis=2).astype(np.float64)
    totals = np.nan_to_num(deltas).sum(axis=2)
    intervals = np.quantile(_resampled(totals, counts), [0.025, 0.975], axis=1).T
    points = tuple(
        _point(size, delta, interval, scale, theorem.tau, axis)
        for size, delta, interval in zip(theorem.sizes, deltas, intervals, strict=True)
    )
    means = dict(zip(theorem.sizes, totals / len(world.images), strict=True))
    defined = [point.size for point in points if point.undefined == 0]
    beyond = [size for size in defined if size >= BEYOND * knee]
    return Curve(
        setting=world.name,
        scale=scale,
        axis=axis,
        tau=theorem.tau,
        lam=lam,
        images=len(world.images),
        labels=len(world.labels),
        words=len(world.positives) + len(world.negatives),
        draws=theorem.draws,
        knee=knee,
        points=points,
        slope=slope(defined, np.array([means[size] for size in defined])),
        beyond=slope(beyond, np.array([means[size] for size in beyond])),
    )


def _point(size: int, delta: Array, interval: Array, scale: float, tau: float, axis: Axis) -> Point:
    defined = np.isfinite(delta)
    mean = low = high = worst = None
    if defined.any():
        mean, (low, high) = float(delta[defined].mean()), map(float, interval)
        sums, counts = np.nan_to_num(delta).sum(axis=0), defined.sum(axis=0)
        worst = float((sums / np.maximum(counts, 1)).max())
    bounds = [of(scale, tau, *_drawn(axis, size)) for of in (bound, corrected_bound)]
    return Point(size, mean, low, high, worst, float(1 - defined.mean()), *bounds)


def curve_lines(curves: Iterable[Curve], **more: Any) -> str:
    """Curves as JSON lines, each with what else is to be told of it."""
    return "".join(json.dumps({**asdict(curve), **more}, sort_keys=True) + "\n" for curve in curves)


def _check(theorem: Theorem) -> None:
    number("tau", theorem.tau, above=0, below=1, hint="0.5 is the paper's")
    whole_number("draws", theorem.draws, hint="200 give a good mean")
    whole_number("images", theorem.images, hint="32 is enough")
    for size in theorem.sizes:
        whole_number("sizes", size, hint="10,000 words, say")
    if list(theorem.sizes) != sorted(set(theorem.sizes)) or len(theorem.sizes) < FEWEST:
        rule = f"at least {FEWEST} different whole numbers, smallest first"
        raise ParameterError(f"sizes must be {rule}, got {list(theorem.sizes)}", hint="[100, 1000, 10000], say")
    for scale in theorem.scales:
        number("scales", scale, above=0, most=MAX_SCALE, hint="100 is CLIP's: one over its temperature")
    if not theorem.scales or len(set(theorem.scales)) < len(theorem.scales):
        raise ParameterError(f"scales must differ, and be one or more, got {list(theorem.scales)}", hint="[1, 25, 100]")
