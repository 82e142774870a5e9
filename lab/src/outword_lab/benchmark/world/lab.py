"""What the questions are asked of: photos of the world and its phrases as vectors, and lists of labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from outword.base.files import sha256_bytes
from outword.base.reports import Report, quiet
from outword.encoders import Encoder
from outword.encoders.base import Vectors
from outword.maths.metrics import auroc
from outword.maths.numerics import Array
from outword.vectors.reference import Reference
from outword.vectors.wild import encode_words
from outword.words.nouns import nouns
from outword.words.prompts import get_prompts
from outword_lab.benchmark.run.catalogue import WORLD, find_set
from outword_lab.benchmark.run.photos import SetPhotos, encoded
from outword_lab.world.phrases import Phrase, corpus
from outword_lab.world.sets import NOTHING
from outword_lab.world.things import FAMILIES, ID_FAMILIES, UNSEEN_FAMILIES, seen, things

PROMPTS = "mcm"
STRANGE = ("near", "far", "ground", "clutter", "shuffled")  # sets that show none of the things in training
OTHER = "other"  # photos of things that are in training and not in a list
DRAWS = 10  # lists of each length
LENGTHS = (5, 10, 25)
Scorer = Callable[[Vectors], Array]


@dataclass(frozen=True)
class List:
    """A list of labels, and the things that they stand for."""

    labels: tuple[str, ...]
    things: tuple[str, ...]


def exact_lists(length: int, draws: int = DRAWS) -> list[List]:
    """Lists of nouns by chance, of all that a model knows."""
    drawn = [np.random.default_rng([length, draw]).choice(seen(), length, replace=False) for draw in range(draws)]
    return [List(names, names) for names in (tuple(sorted(one.tolist())) for one in drawn)]


def broad_lists(length: int = 3, draws: int = DRAWS) -> list[List]:
    """Lists of families by chance."""
    known = [family for family in FAMILIES if family not in UNSEEN_FAMILIES]
    drawn = [np.random.default_rng([length, draw]).choice(known, length, replace=False) for draw in range(draws)]
    return [List(names, seen(names)) for names in (tuple(sorted(one.tolist())) for one in drawn)]


def the_list() -> List:
    """The list of the tables: 25 things of five families."""
    return List(seen(ID_FAMILIES), seen(ID_FAMILIES))


@dataclass(frozen=True, eq=False)
class Lab:
    """Vectors of an encoder: of sets by name, each with the thing that a photo shows, and of the corpus."""

    encoder: Encoder
    vectors: dict[str, Vectors] = field(repr=False)
    shown: dict[str, NDArray[np.str_]] = field(repr=False)
    words: Vectors = field(repr=False)

    @property
    def phrases(self) -> tuple[Phrase, ...]:
        """What the rows of `words` say."""
        return corpus()

    @cached_property
    def rows(self) -> dict[str, int]:
        """Rows of `words` by text."""
        return {phrase.text: row for row, phrase in enumerate(self.phrases)}

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of all vectors."""
        parts = [self.words, *(self.vectors[name] for name in sorted(self.vectors))]
        return sha256_bytes(b"".join(np.ascontiguousarray(part).tobytes() for part in parts))

    def names(self, texts: Sequence[str]) -> Vectors:
        """Vectors of texts of the corpus."""
        return self.words[[self.rows[text] for text in texts]]

    def inside(self, given: List) -> Vectors:
        """Photos of the things of a list."""
        return np.concatenate([self.vectors[name][np.isin(self.shown[name], given.things)] for name in ("id", OTHER)])

    def outside(self, given: List) -> dict[str, Vectors]:
        """Photos that show none of them, by set."""
        rest = [self.vectors[name][~np.isin(self.shown[name], given.things)] for name in ("id", OTHER)]
        strange = {name: self.vectors[name][~np.isin(self.shown[name], given.things)] for name in STRANGE[:2]}
        return {OTHER: np.concatenate(rest), **strange, **{name: self.vectors[name] for name in STRANGE[2:]}}

    def ranked(self, given: List, score: Scorer) -> dict[str, float]:
        """AUROC of a score by set."""
        own = score(self.inside(given))
        return {name: auroc(own, score(images)) for name, images in self.outside(given).items()}

    def mean_rank(self, given: List, score: Scorer) -> float:
        """AUROC of a score, the mean over the sets."""
        return float(np.mean([*self.ranked(given, score).values()]))

    def reference(self) -> Reference:
        """Ordinary photos of the world, as `outword reference` keeps them, with what they show."""
        names = self.shown["reference"].tolist()
        wnids = [wnid(name) if name != NOTHING else "" for name in names]
        return Reference(
            self.vectors["reference"], tuple(names), tuple(wnids), ("world",) * len(names), "the rendered world"
        )


def wnid(thing: str) -> str:
    """WordNet's number of a thing: the first of its senses that lies below its family."""
    net = nouns()
    above = net.senses(things()[thing].family)
    return net.wnid(next(sense for sense in net.senses(thing) if not {*above}.isdisjoint(net.above(sense))))


def open_lab(encoder: Encoder, store: Path, report: Report = quiet) -> Lab:
    """Encode what the questions need, or read it from the store that the tables have filled."""
    vectors, shown = dict[str, Vectors](), dict[str, NDArray[np.str_]]()
    for name in ("id", OTHER, *STRANGE, "reference"):
        photos = encoded_set(encoder, name, store, report)
        vectors[name] = photos.vectors
        shown[name] = shown_things(photos)
    texts = [phrase.text for phrase in corpus()]
    words = encode_words(encoder, get_prompts(PROMPTS).render(texts, ["label"] * len(texts)), report)
    return Lab(encoder, vectors, shown, words)


def encoded_set(encoder: Encoder, name: str, store: Path, report: Report = quiet) -> SetPhotos:
    """A set of the world, from the store if it is there."""
    found = find_set(None, f"{WORLD}{name}")
    return encoded(encoder, found, store, lambda done: report(found.data_set.title, done, found.count))


def shown_things(photos: SetPhotos) -> NDArray[np.str_]:
    """What each photo shows, by its name."""
    return np.array([path.split("/")[-2] for path in photos.paths])
