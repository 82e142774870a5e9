"""Photos imagined from texts alone: what photos of named things would score, before anybody shows one.

docs/imagined.md has the formulas, and where the constants come from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword.base.checks import number, whole_number
from outword.errors import InputError
from outword.maths.kernels.rows import product, whole_width
from outword.maths.kernels.threads import parallel_for
from outword.maths.numerics import Array, matrix, unit_rows
from outword.maths.reference import lower_cut

PHOTOS = 1200  # of names; another 1,200 move a cut by about .1, and the share of right verdicts by .1 point
OF_LABELS = 6400  # of all labels together
OF_A_LABEL = (16, 64)  # of one label, at least and at most
ALIKE = 0.8  # cosine of centred texts above which an encoder hardly tells two names apart
TENTH = 10  # the second moment compares the best name with the one at this place
SAMPLE = 300  # photos of names that gain and noise are found with
_RATIOS: Final = np.geomspace(0.05, 10.0, 28)  # of gain to noise: the table that the ratio of photos is read off
KEPT = 64  # sights whose photos are kept
TOO_FAR = 0.3  # of how far imagined photos of a label lie from those of others; chosen on half of ImageNet's classes
LEVEL_WEIGHT = 2  # photos that the level of a family counts as
SIGHT_WEIGHT = 100  # photos that its gain and noise count as
CLIPS, CLIPS_WITHIN = 0.01, 1e-4  # the temperature of CLIPs, whose logit scale is at most 100
SAME = 1e-6  # how far texts are from their mean, in any direction, where an encoder has one vector for all
ROWS = 48  # photos whose logits are held at a time

Floats = NDArray[np.float32]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Sight:
    """How an encoder sees photos of things that it has names for.

    Attributes:
        gain: beta, how far a photo lies towards its own name; above 0.
        noise: r, the length of whatever else is in a photo; above 0.
        level: c0, the mean logit of a photo over all texts.
        spread: s, the standard deviation of that mean over photos; 0 or more.
    """

    gain: float
    noise: float
    level: float
    spread: float

    def __post_init__(self) -> None:
        number("gain", self.gain, above=0, hint="CLIP has 0.2")
        number("noise", self.noise, above=0, hint="CLIP has 1")
        number("level", self.level, least=-1e6, hint="CLIP has 18.7")
        number("spread", self.spread, least=0, hint="CLIP has 1.6")

    def at(self, own: float, temperature: float) -> Sight:
        """The same for logits at another temperature than the encoder's own.

        >>> Sight(0.2, 1.0, 18.0, 1.5).at(0.01, 0.02)
        Sight(gain=0.2, noise=1.0, level=9.0, spread=0.75)
        """
        factor = own / temperature
        return replace(self, level=factor * self.level, spread=factor * self.spread)


FAMILIES: Final = {"clip": Sight(gain=0.2, noise=1.0, level=18.7, spread=1.6)}
"""What is known of families of encoders, with logits at their own temperature; docs/imagined.md has the source."""


def family_of(temperature: float) -> Sight | None:
    """The constants of an encoder's family: CLIP's for a temperature of 0.01, where CLIPs end; else None.

    >>> family_of(0.01).gain, family_of(0.0085)
    (0.2, None)
    """
    return FAMILIES["clip"] if abs(temperature - CLIPS) < CLIPS_WITHIN else None


@dataclass(frozen=True)
class Seen:
    """What photos show of an encoder's sight, whatever they are of.

    Attributes:
        photos: how many there are.
        level: their mean logit over all texts.
        lead: by how much the best text leads the mean of all, the mean over photos.
        tenth: by how much it leads the tenth best.
    """

    photos: int
    level: float
    lead: float
    tenth: float


def see(logits: ArrayLike) -> Seen:
    """The level and the moments of some photos, one at least.

    Args:
        logits: (n_photos, n_texts); where there are fewer than ten texts, the last stands for the tenth.

    >>> see([[5.0, 1.0, 0.0], [3.0, 3.0, 0.0]])
    Seen(photos=2, level=2.0, lead=2.0, tenth=4.0)
    """
    values = matrix(logits, "logits")
    if not values.size:
        raise InputError(f"logits must be of one photo at least, got shape {values.shape}", hint="use the constants")
    lead, tenth = _moments(values)
    return Seen(len(values), _mean(values.mean(axis=1, dtype=np.float64)), lead, tenth)


def _moments(logits: NDArray[np.floating]) -> tuple[float, float]:
    place = max(0, logits.shape[1] - TENTH)
    best = logits.max(axis=1)
    tenth = np.partition(logits, place, axis=1)[:, place]
    return _mean(best - logits.mean(axis=1)), _mean(best - tenth)


def _mean(values: NDArray[np.floating]) -> float:
    """The mean, the same bits in any order."""
    return math.fsum(values.tolist()) / len(values)


def refined(family: Sight, seen: Seen | None, gain: float, noise: float) -> Sight:
    """The sight of a family with what n photos show of it: without photos its constants, with many what they show.

        c    = (2 c0 + n c_seen) / (n + 2)
        beta = beta0^(100 / (n + 100)) beta_seen^(n / (n + 100)),     r likewise

    So nothing jumps at some number of photos.

    Args:
        family: its constants.
        seen: what the photos show; None where there are none.
        gain: that of the photos (`Imagination.moments`).
        noise: likewise.

    >>> refined(Sight(0.2, 1.0, 18.0, 1.6), Seen(2, 20.0, 9.0, 3.0), 0.2, 1.0).level
    19.0
    """
    if seen is None:
        return family
    share = seen.photos / (seen.photos + LEVEL_WEIGHT)
    weight = seen.photos / (seen.photos + SIGHT_WEIGHT)
    return Sight(
        gain=_rounded(family.gain ** (1 - weight) * gain**weight),
        noise=_rounded(family.noise ** (1 - weight) * noise**weight),
        level=(1 - share) * family.level + share * seen.level,
        spread=family.spread,
    )


def _rounded(value: float) -> float:
    """A number to three digits, so that small requests mostly share a sight but for its level."""
    return float(f"{value:.3g}")


@dataclass(frozen=True, eq=False)
class Photos:
    """Imagined photos: what of their logits does not hang on the sight.

    Photo i has the logits `c_i + beta toward[shows[i]] + r beside[noise[i]]`, with `c_i = c0 + s chance[i]`.
    """

    toward: Floats
    shows: Indices
    beside: Floats
    noise: Indices
    chance: Array

    def logits(self, sight: Sight, rows: slice = slice(None)) -> Floats:
        """Logits without the level c, (n_rows, n_texts)."""
        own = np.float32(sight.gain) * self.toward[self.shows[rows]]
        own += np.float32(sight.noise) * self.beside[self.noise[rows]]
        return own

    def levels(self, sight: Sight) -> Array:
        """The level c of each photo."""
        return sight.level + sight.spread * self.chance


@dataclass(frozen=True)
class Masses:
    """log P, log Q and the largest logit of a label, (n_photos, 3) each, as `Grounded.combine` takes them.

    Attributes:
        unrelated: of photos that show no label: first of all of them, then of the same with no name for what they show.
        one_more: of photos of one more label, in the same order.
    """

    unrelated: Array
    one_more: Array


class Imagination:
    """Photos of plain names of things, as logits of labels and words.

        x    = beta unit(t_u - m) + r z,               z ~ N(0, I / dim)
        h(v) = c + x . (t_v - m) / temperature,        c ~ N(c0, s^2)

    u is what a photo shows, m the mean of the texts of all labels and words, and h(v) the logit of text v, whose mean
    over all v is c, the level. What does not depend on beta, r, c0 and s is computed once, so another sight costs
    little. The same arrays and seed give the same bits on one machine, however many threads there are.

    Args:
        labels: (n_rows, dim), the labels with their kinds.
        words: (n_words, dim), what competes with them.
        temperature: divisor of cosines.
        names: places in `words` of the plain names of things, which are what photos show; by default all of them.
        kin: (n_names, n_words), whether a word is about the same as a name: a synonym, a kind of it, or what it is a
            kind of. Texts whose centred vectors have a cosine above 0.8 are kin in any case.
        seed: of what is shown, and of the noise.
    """

    def __init__(
        self,
        labels: ArrayLike,
        words: ArrayLike,
        temperature: float = 0.01,
        *,
        names: ArrayLike | None = None,
        kin: ArrayLike | None = None,
        seed: int = 0,
    ) -> None:
        number("temperature", temperature, least=1e-6, hint="CLIP's is 0.01")
        whole_number("seed", seed, least=0, hint="use seed=0")
        rows = unit_rows(matrix(labels, "labels"), "labels")
        others = unit_rows(matrix(words, "words", rows.shape[1]), "words")
        places = np.arange(len(others)) if names is None else _places(names, len(others))
        self._n_labels, self._seed, self._temperature = len(rows), seed, temperature
        self._texts = np.concatenate([rows, others])
        self._centred = self._texts - self._texts.mean(axis=0)
        if np.abs(self._centred).max() < SAME:
            raise InputError(
                f"labels and words must have different vectors, got the same {len(self._texts):,} times",
                hint='the encoder tells no names apart: check its weights, "outword doctor --encoder NAME"',
            )
        rng = np.random.default_rng([seed, 0])
        shown = np.resize(rng.permutation(len(places)), PHOTOS)
        self._shown = len(rows) + places[shown]
        noise = rng.standard_normal((PHOTOS, rows.shape[1]))
        self.photos = self._photos(self._shown, noise, np.arange(PHOTOS), np.arange(PHOTOS), rng)
        self._relative_masses = lru_cache(KEPT)(self._computed_masses)
        self._apart = self._not_kin(None if kin is None else _pairs(kin, len(places), len(others))[shown])

    def _photos(self, rows: Indices, noise: Array, shows: Indices, which: Indices, rng: np.random.Generator) -> Photos:
        """Photos of some texts: photo i shows `rows[shows[i]]`, with the noise `noise[which[i]]`."""
        toward = self._products(_directions(self._centred[rows]))
        beside = self._products(noise / math.sqrt(noise.shape[1]))
        return Photos(toward, shows, beside, which, rng.standard_normal(len(shows)))

    def _products(self, vectors: Array) -> Floats:
        """What vectors add to the logits of all texts, a fixed number of rows at a time: threads change no bit."""
        n = len(self._centred)
        columns = np.zeros((whole_width(n), vectors.shape[1]), np.float32)
        columns[:n] = self._centred / self._temperature
        found = np.empty((len(vectors), n), np.float32)

        def multiply(rows: slice) -> None:
            found[rows] = product(vectors[rows].astype(np.float32), columns.T)[:, :n]

        parallel_for(multiply, _runs(len(vectors)))
        return found

    def _not_kin(self, told: Flags | None) -> Floats:
        """Which words compete once what a photo shows is a label, (n_photos, n_words), as factors 0 and 1."""
        lengths = np.linalg.norm(self._centred[self._n_labels :], axis=1) / self._temperature
        alike = self.photos.toward[:, self._n_labels :] > ALIKE * lengths
        alike[np.arange(len(alike)), self._shown - self._n_labels] = True
        kin = alike if told is None else alike | told
        return np.where(kin, np.float32(0), np.float32(1))

    def masses(self, sight: Sight) -> Masses:
        """What a method is made of, of photos of names: as unrelated photos, and as photos of one more label.

        An unrelated photo is counted twice. Once the words that name what it shows compete with the labels. Once they
        and their kin do not: much of the world has no name here. A photo of one more label has its own name among the
        labels, and the kin of that does not compete.
        """
        found = self._relative_masses(sight.gain, sight.noise) + self.photos.levels(sight)[:, None]
        return Masses(found[:2].reshape(-1, 3), found[2])

    def _computed_masses(self, gain: float, noise: float) -> Array:
        """The same without the level of each photo, (3, n_photos, 3)."""
        sight = Sight(gain, noise, 0.0, 0.0)
        n, at = len(self._shown), np.arange(ROWS)
        found = np.empty((3, n, 3))

        def work(rows: slice) -> None:
            logits = self.photos.logits(sight, rows)
            own = logits[at[: len(logits)], self._shown[rows]]
            named, nameless = self._two_sums(logits, self._apart[rows])
            found[0, rows], found[1, rows], found[2, rows] = named, nameless, nameless
            found[2, rows, 0] = np.logaddexp(nameless[:, 0], own)
            found[2, rows, 2] = np.maximum(nameless[:, 2], own)

        parallel_for(work, _runs(n))
        return found

    def label_masses(self, sight: Sight, owners: ArrayLike | None = None) -> Array:
        """The same of photos of each label, (n_labels, n_photos, 3): 16 to 64 each, which show its rows in turn.

        Args:
            sight: how the encoder sees.
            owners: (n_rows,), which label each row of the labels belongs to; by default each row is a label.
        """
        own = np.arange(self._n_labels) if owners is None else np.asarray(owners, np.int64)
        turns = [np.flatnonzero(own == label) for label in range(own.max() + 1)]
        least, most = OF_A_LABEL
        each = min(max(OF_LABELS // len(turns), least), most)
        shows = np.concatenate([np.resize(rows, each) for rows in turns])
        rng = np.random.default_rng([self._seed, 1])
        noise = rng.standard_normal((each, self._texts.shape[1]))
        photos = self._photos(np.arange(self._n_labels), noise, shows, np.tile(np.arange(each), len(turns)), rng)
        found = np.empty((len(shows), 3))

        def work(rows: slice) -> None:
            found[rows], _ = self._two_sums(photos.logits(sight, rows), None)

        parallel_for(work, _runs(len(shows)))
        found += photos.levels(sight)[:, None]
        return found.reshape(len(turns), each, 3)

    def _two_sums(self, logits: Floats, apart: Floats | None) -> tuple[Array, Array]:
        """log P, log Q and the peak with all words, and with those that are `apart` from what a photo shows."""
        k = self._n_labels
        top = logits.max(axis=1, keepdims=True)
        masses = np.exp(logits - top)
        words, tiny = masses[:, k:], np.finfo(np.float32).tiny
        found = np.empty((2, len(logits), 3))
        found[:, :, 0] = np.log(masses[:, :k].sum(axis=1, dtype=np.float64) + tiny)
        found[0, :, 1] = np.log(words.sum(axis=1, dtype=np.float64) + tiny)
        found[1, :, 1] = np.log((words if apart is None else words * apart).sum(axis=1, dtype=np.float64) + tiny)
        found[:, :, :2] += top
        found[:, :, 2] = logits[:, :k].max(axis=1)
        return found[0], found[1]

    def see(self, images: ArrayLike) -> Seen:
        """What photos show of the encoder's sight, (n_images, dim), in any order."""
        return see(self._logits(images))

    def _logits(self, images: ArrayLike) -> Array:
        """Logits of photos, (n_images, n_texts): those of a photo are the same bits in any company."""
        x = unit_rows(matrix(images, "images", self._texts.shape[1]), "images")
        n = len(self._texts)
        columns = np.zeros((whole_width(n), self._texts.shape[1]))
        columns[:n] = self._texts
        return np.asarray(product(x, columns.T)[:, :n] / self._temperature)

    def moments(self, seen: Seen) -> tuple[float, float]:
        """The gain and the noise with which imagined photos have the moments that were seen.

        Both moments grow in proportion to gain and noise together, so their quotient depends on gain / noise alone,
        and rises with it: that ratio is read off a table. Then the lead says how large both are.
        """
        leads, quotients = self._by_ratio
        rising = np.maximum.accumulate(quotients)
        place = np.log(_RATIOS)
        ratio = math.exp(float(np.interp(seen.tenth / max(seen.lead, 1e-6), rising, place)))
        lead = float(np.interp(math.log(ratio), place, leads))
        noise = max(seen.lead, 1e-6) / lead
        return ratio * noise, noise

    @cached_property
    def _by_ratio(self) -> tuple[Array, Array]:
        """The lead of imagined photos with noise 1, and the quotient of both moments, for each ratio of the table."""
        toward, beside = self.photos.toward[:SAMPLE], self.photos.beside[:SAMPLE]
        found = np.array([_moments(np.float32(ratio) * toward + beside) for ratio in _RATIOS])
        return found[:, 0], found[:, 1] / found[:, 0]

    def sight_of(self, images: ArrayLike) -> Sight:
        """How an encoder of no known family sees, from photos of anything, (n_images, dim), two at least."""
        logits = self._logits(images)
        seen = see(logits)
        gain, noise = self.moments(seen)
        return Sight(gain, noise, seen.level, float(logits.mean(axis=1).std()))

    def refined(self, family: Sight, images: ArrayLike) -> Sight:
        """The sight of a family, refined by the photos that are asked about, (n_images, dim); there may be none."""
        if not len(np.asarray(images)):
            return family
        seen = self.see(images)
        return refined(family, seen, *self.moments(seen))


def imagined_cut(unrelated: ArrayLike, one_more: ArrayLike) -> float:
    """The lower of two cuts: with equal errors on either side, or letting in 5 % of the unrelated photos.

    The first is the better one where both sides overlap. Where they hardly do, it would keep out photos of labels that
    the encoder sees less well, for the sake of a few others.

    Args:
        unrelated: scores of photos that show no label.
        one_more: scores of photos of one more label.
    """
    return lower_cut(unrelated, one_more)[0]


def odds(scores: ArrayLike, cut: float) -> Array:
    """The share of each label's photos that will be in, (n_labels,), from the scores of its imagined photos.

        odds_j  = mean over i of Phi((s_ij - 0.3 (m_j - m) - cut) / sigma)
        sigma^2 = mean over j of the variance of s_ij

    m_j is the mean score of a label's imagined photos, and m the mean of these. Labels lie less far apart than imagined
    photos say, hence the 0.3. And real photos of a label share something that nobody imagined, so that all of them
    score higher or lower: a shift with the deviation that photos of one label have. docs/clip.md compares these odds
    with what was found.

    Args:
        scores: (n_labels, n_photos), of photos of each label.
        cut: the score from which on a photo is in.

    >>> odds([[0.0, 2.0], [9.0, 11.0]], 1.0).round(3)
    array([0.814, 1.   ])
    """
    values = matrix(scores, "scores")
    deviation = math.sqrt(values.var(axis=1).mean())
    means = values.mean(axis=1, keepdims=True)
    values = values - TOO_FAR * (means - means.mean())
    if not deviation:
        return np.asarray((values >= cut).mean(axis=1))
    places = (values - cut) / (deviation * math.sqrt(2))
    chances = [(1 + math.erf(place)) / 2 for place in places.ravel().tolist()]
    return np.asarray(np.reshape(chances, values.shape).mean(axis=1))


def _directions(centred: Array) -> Array:
    """Unit rows; a text that is the mean of all has no direction, and stays zero."""
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    return np.asarray(centred / np.where(lengths > 1e-9, lengths, np.inf))


def _runs(n_rows: int) -> list[slice]:
    return [slice(start, stop) for start, stop in pairwise([*range(0, n_rows, ROWS), n_rows])]


def _places(names: ArrayLike, n_words: int) -> Indices:
    places = np.asarray(names)
    if places.ndim != 1 or places.dtype.kind not in "iu" or not len(places):
        raise InputError(f"names must be places of words, got shape {places.shape}", hint="one whole number a name")
    if places.min() < 0 or places.max() >= n_words:
        got = f"{places.min()} to {places.max()}"
        raise InputError(f"names must be places from 0 to {n_words - 1}, got {got}", hint="index the rows of words")
    return places.astype(np.int64)


def _pairs(kin: ArrayLike, n_names: int, n_words: int) -> Flags:
    flags = np.asarray(kin)
    if flags.shape != (n_names, n_words) or flags.dtype != bool:
        rule = f"kin must be an array of flags of shape ({n_names}, {n_words})"
        raise InputError(f"{rule}, got shape {flags.shape}, dtype {flags.dtype}", hint="names by words")
    return flags
