"""Mistakes in class folders: photos that look like another class or like none, the same photo twice, unreadable ones.

The folders right below the one that is given are the classes, by their names; photos may lie deeper. All vectors are in
memory, 4 bytes a number. How mistakes are found is in `outword.maths.mislabelled`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Literal, overload

import numpy as np
from numpy.typing import NDArray

from outword.base.files import PathLike
from outword.base.reports import Report, Say, quiet
from outword.base.wording import a_few, counted
from outword.detector.cached import fit_cached
from outword.detector.detector import Detector
from outword.detector.judge import judge
from outword.encoders import Encoder
from outword.encoders.base import Vectors
from outword.encoders.reading import Photo
from outword.errors import InputError
from outword.maths.mislabelled import Evidence, Logits, evidence
from outword.maths.numerics import Array, blocks
from outword.photos.twins import Twins
from outword.scoring.album import Card, Section, write_album
from outword.vectors.id_images import class_among, label_keys
from outword.vectors.names import name_vectors
from outword.vectors.reader import vectors_of
from outword.vectors.same_photo import first_of_each, known_by
from outword.vectors.source import find_source
from outword.words.label_lists import words_of
from outword.words.labels import Labels, read_labels
from outword.words.prompts import get_prompts

FindingName = Literal["another class", "none of the classes", "duplicate", "unreadable"]
OTHER: FindingName = "another class"
NONE: FindingName = "none of the classes"
DUPLICATE: FindingName = "duplicate"
UNREADABLE: FindingName = "unreadable"
ORDER: tuple[FindingName, ...] = (DUPLICATE, OTHER, NONE, UNREADABLE)
MEANING = {
    DUPLICATE: "the same photo is in the folder of another class",
    OTHER: "surest first",
    NONE: "surest first",
    UNREADABLE: "could not be read",
}
SURE = 0.5  # findings that are less sure are not listed


@dataclass(frozen=True)
class Finding:
    """What seems wrong with a photo of a class folder.

    Attributes:
        path: of the photo.
        label: the class of its folder.
        finding: "another class", "none of the classes", "duplicate" (of a photo of another class), or "unreadable".
        suggestion: the class that it seems to be of; "" for none.
        sure: how sure the finding is, 0 to 1, measured where one photo of 20 is wrong; None for what is no estimate.
        looks_like: what the photo looks like, best first; this decides nothing.
        same_as: of a duplicate, the path of the other photo.
        error: of an unreadable photo, why.
    """

    path: str
    label: str
    finding: FindingName
    suggestion: str = ""
    sure: float | None = None
    looks_like: tuple[str, ...] = ()
    same_as: str = ""
    error: str = ""


@dataclass(frozen=True)
class Checked(Sequence[Finding]):
    """What was found in class folders: duplicates, then what is surest first, then what cannot be read.

    Attributes:
        findings: a photo is in one of them at most.
        counts: how many photos each class has, in the order of their names.
        n_beside: photos that lie in no class folder; they were not checked.
        weights: how much the names of the classes count, and how much the photos that lie in a folder.
    """

    findings: tuple[Finding, ...]
    counts: dict[str, int]
    n_beside: int = 0
    weights: tuple[float, float] = (0.0, 0.0)

    def __len__(self) -> int:
        return len(self.findings)

    @overload
    def __getitem__(self, place: int) -> Finding: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Finding, ...]: ...
    def __getitem__(self, place: int | slice) -> Finding | tuple[Finding, ...]:
        return self.findings[place]

    @property
    def n_photos(self) -> int:
        """How many photos were checked, those that cannot be read too."""
        return sum(self.counts.values())

    @property
    def share(self) -> float:
        """The share of them with a finding."""
        return len(self) / max(1, self.n_photos)

    @property
    def by_finding(self) -> dict[str, int]:
        """How many findings there are of each kind."""
        found = Counter(one.finding for one in self)
        return {name: found[name] for name in ORDER if found[name]}

    def write_page(self, path: PathLike) -> None:
        """Write a page with a thumbnail of each; the photos are read again."""
        sections = []
        for name in ORDER:
            cards = [_card(one) for one in self if one.finding == name]
            sections.append(Section(f"{name.capitalize()} ({len(cards):,})", MEANING[name], cards))
        share = f"{len(self):,} ({100 * self.share:.1f} %)"
        facts = {"classes": f"{len(self.counts):,}", "photos": f"{self.n_photos:,}", "findings": share}
        write_album(Path(path), "outword check", facts, sections)


@dataclass(eq=False)
class _Folders:
    """The photos of class folders, as they are read."""

    labels: Labels
    good: list[Photo] = field(default_factory=list)
    classes: list[int] = field(default_factory=list)
    vectors: list[Vectors] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    unreadable: list[Finding] = field(default_factory=list)
    n_beside: int = 0


def check(
    folder: PathLike,
    encoder: Encoder,
    *,
    sure: float = SURE,
    report: Report = quiet,
    say: Say = quiet,
) -> Checked:
    """What seems wrong in a folder of class folders; see `outword.check`."""
    top = Path(folder)
    if not top.is_dir():
        raise InputError(f"{top} is not a folder", hint="name a folder of folders, one a class")
    labels = read_labels(top, say=say)
    read = _read(top, labels, encoder, report, say)
    counts = {label: read.counts[label] for label in labels}
    if missing := [label for label, number in counts.items() if not number]:
        warnings.warn(f"there is no photo in the folder of {a_few(missing)}", stacklevel=3)
    if read.n_beside:
        say(f"{counted(read.n_beside, 'photo')} in no class folder: not checked")
    if not read.good:
        return Checked(tuple(read.unreadable), counts, read.n_beside)
    detector, _ = fit_cached(labels, encoder, report=report)
    images, classes = np.concatenate(read.vectors), np.array(read.classes)
    names = name_vectors(encoder, get_prompts(encoder.prompts), list(labels), report)
    known = evidence(images, classes, names, logits_of(detector))
    scores = _scores(detector.fixed(), images)
    found = _suspects(read, known, scores, sure)
    found |= _duplicates(read, images, known.sure_of_other())
    rows = sorted(found, key=lambda row: (found[row].finding != DUPLICATE, -(found[row].sure or 0), row))
    listed = _with_looks(detector, images, [(row, found[row]) for row in rows])
    return Checked((*listed, *read.unreadable), counts, read.n_beside, known.weights)


def _read(top: Path, labels: Labels, encoder: Encoder, report: Report, say: Say) -> _Folders:
    """All photos of the folder, with their classes."""
    read, source = _Folders(labels), find_source([top], encoder)
    label_of, names = _label_of(top, labels), list(labels)
    done = 0
    for chunk in vectors_of(encoder, source):
        kept = []
        for photo, vector in chunk.pairs():
            number = label_of(photo.name)
            if number is None:
                read.n_beside += 1
                continue
            read.counts[names[number]] += 1
            if photo.error:
                read.unreadable.append(Finding(photo.name, names[number], UNREADABLE, error=photo.reason))
                continue
            read.good.append(photo)
            read.classes.append(number)
            kept.append(vector)
        read.vectors += [np.stack(kept)] if kept else []
        done += len(chunk.photos)
        report("check", done, source.total())
    if passed_over := source.passed_over.told():
        say(passed_over)
    return read


def _label_of(top: Path, labels: Labels) -> Callable[[str], int | None]:
    """What gives the number of the label of a photo by the first folder below `top`; None for a photo beside them."""
    keys, texts = label_keys(list(labels)), {label.text: number for number, label in enumerate(labels.values())}
    above = len(PurePath(top).parts)
    known: dict[str, int | None] = {}

    def number_of(path: str) -> int | None:
        below = PurePath(path).parts[above:]
        if len(below) < 2:
            return None
        name = below[0]
        if name not in known:
            known[name] = texts.get(words_of(name), class_among((name,), keys))
        return known[name]

    return number_of


def logits_of(detector: Detector) -> Logits:
    """What gives the logit of each label's best name, (n, n_labels)."""
    rows, temperature = np.asarray(detector.scorer.labels_, np.float32), detector.card.encoder.temperature
    owners = detector.scorer.owners_
    starts = np.arange(len(rows)) if owners is None else np.searchsorted(owners, np.arange(len(detector.labels)))

    def logits(images: NDArray[np.floating]) -> Array:
        return np.maximum.reduceat(images @ rows.T, starts, axis=1).astype(np.float64) / temperature

    return logits


def _scores(detector: Detector, images: Vectors) -> Array:
    """The score of each photo."""
    parts = [judge(detector, images[some], top=0).scores for some in blocks(len(images), images.shape[1])]
    return np.concatenate(parts)


def _suspects(read: _Folders, known: Evidence, scores: Array, sure: float) -> dict[int, Finding]:
    """By row, the photos that seem to be of another class or of none."""
    wrong = np.maximum(known.sure_of_other(), known.sure_of_none(scores))
    is_other, names, found = known.seems_other(scores), list(read.labels), {}
    for row in np.flatnonzero(wrong >= sure).tolist():
        finding, suggestion = (OTHER, names[known.nearest[row]]) if is_other[row] else (NONE, "")
        label = names[read.classes[row]]
        found[row] = Finding(read.good[row].name, label, finding, suggestion, round(float(wrong[row]), 3))
    return found


def _duplicates(read: _Folders, images: Vectors, other: Array) -> dict[int, Finding]:
    """By row, photos that are the same as one of another class: the one of the two that fits its folder less."""
    known = known_by([photo.digest for photo in read.good], images)
    firsts, names, found = first_of_each(known), list(read.labels), {}
    rows = {photo.name: row for row, photo in enumerate(read.good)}
    with Twins() as twins:
        for row, photo in enumerate(read.good):
            alike = twins.first(photo.name, photo.look.fingerprint)
            first = firsts[row] if firsts[row] != row or alike is None else rows[alike]
            if read.classes[first] == read.classes[row]:
                continue
            wrong, right = (first, row) if other[first] > other[row] else (row, first)
            label, suggestion = names[read.classes[wrong]], names[read.classes[right]]
            same_as = read.good[right].name
            found[wrong] = Finding(read.good[wrong].name, label, DUPLICATE, suggestion, same_as=same_as)
    return found


def _with_looks(detector: Detector, images: Vectors, found: Sequence[tuple[int, Finding]]) -> list[Finding]:
    """The same findings with what the photos look like."""
    listed = []
    for some in blocks(len(found), images.shape[1]):
        part = found[some]
        records = judge(detector.fixed(), images[[row for row, _ in part]], names=[one.path for _, one in part])
        for (_, one), record in zip(part, records, strict=True):
            listed.append(Finding(**{**vars(one), "looks_like": record.looks_like}))
    return listed


def _card(one: Finding) -> Card:
    lines = [("folder", one.label)]
    lines += [("seems to be", one.suggestion)] if one.suggestion else []
    lines += [("looks like", one.looks_like[0])] if one.looks_like else []
    lines += [("sure", f"{100 * one.sure:.0f} %")] if one.sure is not None else []
    lines += [("the same as", one.same_as)] if one.same_as else []
    lines += [("error", one.error)] if one.error else []
    return Card(one.path, lines)
