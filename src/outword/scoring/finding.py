"""The photos that fit a phrase best, out of any number, in flat memory.

A phrase is the only label of a detector, so that what ranks photos is the score that verdicts rest on: how well a photo
fits the phrase, less how well it fits names of other things. Only the best so far are kept; photos are read once,
whatever the number of phrases. Of equal scores, the photo that comes first in the source counts.
"""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import overload

import numpy as np

from outword.base.files import PathLike
from outword.base.prediction import Prediction, in_words
from outword.base.reports import Report, Say, quiet
from outword.base.terms import familiarity
from outword.detector.cached import fit_cached
from outword.detector.detector import Detector
from outword.detector.judge import judge
from outword.encoders import Encoder
from outword.encoders.base import Vectors
from outword.encoders.reading import Chunk, Photo
from outword.photos.twins import Twins
from outword.scoring.album import Card, Section, write_album
from outword.vectors.reader import vectors_of
from outword.vectors.source import Source
from outword.words.labels import Labels, check_labels

TOP = 20
NAMED_ERRORS = 10
WEAK = {"head noun only": "by its last word alone", "unknown": "not at all"}  # how an encoder may know a phrase


@dataclass(frozen=True)
class Match:
    """A photo among the best of a phrase.

    Attributes:
        phrase: as it was typed.
        rank: its place among the photos for that phrase, 1 for the best.
        photo: what a detector of the phrase says of it. Scores of two phrases cannot be compared, `p` can. A note says
            which better photo it is the same as.
    """

    phrase: str
    rank: int
    photo: Prediction

    @property
    def path(self) -> str:
        """Of the photo."""
        return self.photo.path


@dataclass(frozen=True)
class Matches(Sequence[Match]):
    """The best photos of each phrase, phrase by phrase, best first; and what was read.

    Attributes:
        matches: of all phrases.
        n_photos: how many photos were there.
        n_unreadable: how many of them could not be read.
        unreadable: path and reason of the first of these.
    """

    matches: tuple[Match, ...]
    n_photos: int
    n_unreadable: int = 0
    unreadable: tuple[tuple[str, str], ...] = ()

    def __len__(self) -> int:
        return len(self.matches)

    @overload
    def __getitem__(self, place: int) -> Match: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Match, ...]: ...
    def __getitem__(self, place: int | slice) -> Match | tuple[Match, ...]:
        return self.matches[place]

    @property
    def paths(self) -> list[str]:
        """The paths of the photos, each once: the best of all phrases, then the second best, and so on."""
        ordered = sorted(self.matches, key=lambda match: match.rank)
        return list(dict.fromkeys(match.path for match in ordered))

    def write_page(self, path: PathLike, *, column: str | None = None) -> None:
        """Write a page with a thumbnail of each; the photos are read again. `column` is that of tables with photos."""
        sections = [
            Section(phrase, "best first", [_card(match) for match in self if match.phrase == phrase])
            for phrase in dict.fromkeys(match.phrase for match in self)
        ]
        facts = {"photos": f"{self.n_photos:,}", "could not be read": f"{self.n_unreadable:,}"}
        write_album(Path(path), "outword find", facts, sections, column=column)


@dataclass(frozen=True, eq=False)
class _Kept:
    """A photo that is among the best so far."""

    photo: Photo
    vector: Vectors


@dataclass(eq=False)
class _Best:
    """The best photos of a phrase so far."""

    detector: Detector
    top: int
    heap: list[tuple[float, int, _Kept]] = field(default_factory=list)  # the worst that is kept on top

    def add(self, chunk: Chunk, vectors: Vectors, first: int) -> None:
        """Take what is better than what is kept; `first` is how many good photos came before."""
        scores = judge(self.detector, vectors, top=0).scores
        for place, (photo, score) in enumerate(zip(chunk.good, scores.tolist(), strict=True)):
            key = score, -(first + place)
            if len(self.heap) == self.top and key <= self.heap[0][:2]:
                continue
            heapq.heappush(self.heap, (*key, _Kept(photo, vectors[place].copy())))
            if len(self.heap) > self.top:
                heapq.heappop(self.heap)

    def matches(self, phrase: str) -> Iterator[Match]:
        """What was kept, best first."""
        ranked = sorted(self.heap, key=lambda entry: entry[:2], reverse=True)
        if not ranked:
            return
        kept = [one for _, _, one in ranked]
        names = [one.photo.name for one in kept]
        scores = np.array([score for score, _, _ in ranked])
        records = judge(self.detector, np.stack([one.vector for one in kept]), names=names, scores=scores)
        with Twins() as twins:
            for rank, (one, record) in enumerate(zip(kept, records, strict=True), start=1):
                notes = twins.note(one.photo.name, one.photo.look.fingerprint)
                yield Match(phrase, rank, replace(record, notes=(*one.photo.look.notes, *notes)))


def find(
    phrases: Sequence[str] | Labels,
    source: Source,
    encoder: Encoder,
    *,
    top: int = TOP,
    report: Report = quiet,
    say: Say = quiet,
) -> Matches:
    """The `top` photos of a source for each phrase; see `outword.find`."""
    typed = check_labels(phrases)
    best = {phrase: _Best(detector, top) for phrase, detector in _detectors(typed, encoder, report).items()}
    n_good = done = n_unreadable = 0
    unreadable: list[tuple[str, str]] = []
    for chunk in vectors_of(encoder, source):
        if len(chunk.values):
            for one in best.values():
                one.add(chunk, chunk.values, n_good)
        n_good += len(chunk.good)
        n_unreadable += len(chunk.unreadable)
        unreadable += chunk.unreadable[: NAMED_ERRORS - len(unreadable)]
        done += len(chunk.photos)
        report("find", done, source.total())
    if passed_over := source.passed_over.told():
        say(passed_over)
    found = [match for phrase, one in best.items() for match in one.matches(phrase)]
    return Matches(tuple(found), done, n_unreadable, tuple(unreadable))


def _detectors(phrases: Labels, encoder: Encoder, report: Report) -> dict[str, Detector]:
    """A detector for each phrase, whose threshold no photos move; warns of phrases that the encoder does not know."""
    made = {}
    for shown, label in phrases.items():
        detector, _ = fit_cached(Labels({shown: label}), encoder, report=report)
        _warn_of_unknown(shown, detector, encoder)
        made[shown] = detector.fixed()
    return made


def _warn_of_unknown(phrase: str, detector: Detector, encoder: Encoder) -> None:
    flag = detector.coverage.get(phrase)
    how = WEAK.get(familiarity(flag)) if flag else None
    if how:
        told = f'{encoder.name} knows "{phrase}" {how}: what it finds is a guess; try --encoder clip-vit-b-16'
        warnings.warn(told, stacklevel=4)


def _card(match: Match) -> Card:
    photo = match.photo
    fits = in_words(photo.p, photo.basis) or f"score {photo.score:.4g}"
    lines = [(f"{match.rank}.", fits), ("verdict", photo.verdict)]
    lines += [("looks like", photo.looks_like[0])] if photo.looks_like else []
    lines += [("note", "; ".join(photo.notes))] if photo.notes else []
    return Card(photo.path, lines)
