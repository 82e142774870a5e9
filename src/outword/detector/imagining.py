"""A cut from photos imagined around names (`outword.maths.imagined`), for encoders that have no reference.

docs/imagined.md has the rule, docs/clip.md what it is worth on a real CLIP.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from outword.base.arrays import read_arrays, write_arrays
from outword.base.cache import cache_dir
from outword.base.odds import Odds
from outword.detector.positives import kin_of
from outword.detector.thresholds import Thresholds
from outword.encoders import Encoder
from outword.encoders.base import Vectors
from outword.errors import OutwordError
from outword.maths.imagined import (
    Imagination,
    Sight,
    family_of,
    imagined_cut,
    odds,
)
from outword.maths.methods.grounded import Grounded
from outword.maths.reference import share_let_in
from outword.maths.thresholds import Threshold
from outword.words.corpora import senses_of_things
from outword.words.kinds import choices_of, lineage
from outword.words.nouns import PHYSICAL, nouns

if TYPE_CHECKING:
    from outword.detector.detector import Detector

DEMO = Path(str(files("outword"))) / "demo" / "photos"
FEWEST_NAMES = 50  # plain names of things among the words; fewer say too little of what else photos may show
Flags = NDArray[np.bool_]


def can_be_imagined(detector: Detector) -> bool:
    """Whether the method is made of what imagined photos have, and enough plain names compete with the labels."""
    return isinstance(detector.scorer, Grounded) and len(_things(_Texts(detector))) >= FEWEST_NAMES


def find_sight(detector: Detector, encoder: Encoder) -> Sight | None:
    """How an encoder sees: its own constants, its family's, or those that the demo's photos show; None without any."""
    if not can_be_imagined(detector):
        return None
    own = encoder.sight or family_of(encoder.temperature)
    if own is not None:
        return own.at(encoder.temperature, _temperature(detector))
    try:
        photos = demo_vectors(encoder)
    except (OutwordError, NotImplementedError):  # it may have texts alone
        return None
    return imagination(detector).sight_of(photos)


def demo_vectors(encoder: Encoder) -> Vectors:
    """The vectors of the demo's photos, (n_photos, dim), which are kept after the first time."""
    kept = cache_dir() / "sight" / f"{encoder.fingerprint[:32]}.safetensors"
    found = (read_arrays(kept) or {}).get("vectors")
    if found is None:
        found = encoder.encode_images(sorted(DEMO.glob("*.jpg")))
        write_arrays(kept, {"vectors": found})
    return found


def cut_by_imagining(detector: Detector, sight: Sight, n_asked: int = 0) -> Detector:
    """The detector with the cut that imagined photos give.

    Args:
        detector: of the method `grounded` (`can_be_imagined`); a calibrated threshold stays before the cut.
        sight: how its encoder sees.
        n_asked: the number of photos that refined the sight.
    """
    scorer = cast(Grounded, detector.scorer)
    masses = imagination(detector).masses(sight)
    unrelated = np.asarray(scorer.combine(masses.unrelated))
    one_more = np.asarray(scorer.combine(masses.one_more))
    value = imagined_cut(unrelated, one_more)
    plain = Threshold(value, "imagined", share_let_in(one_more, value), len(one_more), 0.0, 1.0, n_asked=n_asked)
    threshold = replace(plain, fpr=share_let_in(unrelated, value), n_reference=len(unrelated))
    before = detector.thresholds
    made = Thresholds(before.calibrated, threshold, imagined_scores=np.sort(unrelated), sight=sight, odds=before.odds)
    return replace(detector, thresholds=made)


def with_odds(detector: Detector) -> Detector:
    """The detector with the odds of its labels: which share of its photos will pass, by imagined ones."""
    thresholds, scorer = detector.thresholds, cast(Grounded, detector.scorer)
    assert thresholds.sight is not None and thresholds.estimated is not None
    masses = imagination(detector).label_masses(thresholds.sight, scorer.owners_)
    scores = scorer.combine(masses.reshape(-1, 3)).reshape(masses.shape[:2])
    shares = odds(scores, thresholds.estimated.value)
    told = tuple(Odds(label, share) for label, share in zip(detector.labels, shares.tolist(), strict=True))
    return replace(detector, thresholds=replace(thresholds, odds=told))


def refined_sight(detector: Detector, vectors: NDArray[np.floating]) -> Sight:
    """The sight of the detector's encoder, refined by the photos that are asked about, (n, dim)."""
    assert detector.thresholds.sight is not None
    return imagination(detector).refined(detector.thresholds.sight, vectors)


def refined_by(detector: Detector, vectors: NDArray[np.floating]) -> Detector:
    """The detector with an imagined cut that is refined by photos, (n, dim); as it is without any."""
    if not len(vectors):
        return detector
    return cut_by_imagining(detector, refined_sight(detector, vectors), len(vectors))


def imagination(detector: Detector) -> Imagination:
    """The imagined photos of a detector; those of the last few detectors are kept."""
    return _imagination(_Texts(detector))


class _Texts:
    """What imagined photos depend on; two are equal if they are of the same fitted method."""

    def __init__(self, detector: Detector) -> None:
        self.detector = detector
        self.scorer = detector.scorer

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Texts) and self.scorer is other.scorer

    def __hash__(self) -> int:
        return id(self.scorer)


@lru_cache(maxsize=4)
def _imagination(texts: _Texts) -> Imagination:
    detector = texts.detector
    words = detector.scorer.wild_
    assert words is not None
    things = _things(texts)
    return Imagination(
        detector.scorer.labels_,
        words,
        _temperature(detector),
        names=list(things),
        kin=_kin([*things.values()], detector.wild),
    )


def _temperature(detector: Detector) -> float:
    return cast(Grounded, detector.scorer).temperature


@lru_cache(maxsize=4)
def _things(texts: _Texts) -> dict[int, int]:
    """The words that are plain names of things and no kin of a label: the place of each, and its sense.

    These are the names of what photos can show; in a word list of the user's, what WordNet has as a physical thing.
    """
    detector, visible = texts.detector, senses_of_things()
    senses = {place: visible[word] for place, word in enumerate(detector.wild) if word in visible}
    if len(senses) < FEWEST_NAMES:
        senses = _physical(detector.wild)
    words = [detector.wild[place] for place in senses]
    kin = kin_of(words, [*senses.values()], detector.card.meanings)
    return {place: sense for (place, sense), is_kin in zip(senses.items(), kin, strict=True) if not is_kin}


def _physical(words: Sequence[str]) -> dict[int, int]:
    """The words that WordNet has as a physical thing: the place of each, and its likeliest sense."""
    net, found = nouns(), dict[int, int]()
    for place, word in enumerate(words):
        sense = next(iter(choices_of([word])), None)
        if sense is not None and net.by_wnid(PHYSICAL) in lineage(sense):
            found[place] = sense
    return found


def _kin(senses: Sequence[int], words: Sequence[str]) -> Flags:
    """Whether each word is a synonym of a sense, a kind of it, or what it is a kind of, (n_senses, n_words)."""
    rows = _places(senses)
    columns = _places(_meant(words))
    pairs = [(row, column) for sense, own in rows.items() for column in _at_or_above(sense, columns) for row in own]
    pairs += [(row, column) for sense, own in columns.items() for row in _at_or_above(sense, rows) for column in own]
    kin = np.zeros((len(senses), len(words)), bool)
    kin[tuple(np.array(pairs, np.int64).reshape(-1, 2).T)] = True
    return kin


def _meant(words: Sequence[str]) -> list[int | None]:
    """What words mean to a reader: as names of what photos can show, else in their most frequent sense."""
    net, visible = nouns(), senses_of_things()
    return [visible.get(word) or next(iter(net.senses(word)), None) for word in words]


def _places(senses: Sequence[int | None]) -> dict[int, list[int]]:
    """Where each sense is."""
    found = defaultdict[int, list[int]](list)
    for place, sense in enumerate(senses):
        if sense is not None:
            found[sense].append(place)
    return found


def _at_or_above(sense: int, places: Mapping[int, Sequence[int]]) -> Iterator[int]:
    """The places of a sense and of all above it."""
    for above in lineage(sense):
        yield from places.get(above, ())
