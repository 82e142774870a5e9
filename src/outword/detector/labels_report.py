"""What a detector makes of its labels: the sense of each, how well the encoder sees it, and what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from outword.base.html import render, visible
from outword.base.odds import Odds
from outword.base.terms import Flag, OddsWord, familiarity
from outword.base.wording import a_few
from outword.detector.label_odds import first_rows
from outword.maths.numerics import unit_rows
from outword.words.forms import fold
from outword.words.kinds import in_plain_words
from outword.words.nouns import nouns

if TYPE_CHECKING:
    from outword.detector.detector import Detector
    from outword.words.kinds import Meaning

ELSE = "bring some photos of it (outword tune, outword calibrate), or use CLIP (--encoder clip-vit-b-16)"
SLIP = "did you mean"
NEAR = 3  # known names that are suggested for a label
FEW = 3  # kinds below a name of a single thing: "fox" is one, "animal" is none
KINDS = 3  # kinds that a line names


@dataclass(frozen=True)
class LabelReport:
    """What is known of a label before any photo.

    Attributes:
        label: its name.
        names: what it is called in the encoder's texts, as WordNet spells it.
        sense: WordNet's number of what it was taken for ("n02084071"), or "" where WordNet does not know it.
        meaning: what WordNet says of that sense, where there was a choice of several, else "".
        kinds: names of what lies below it, which count as it.
        flag: how well the encoder knows the name; "" where the encoder cannot tell.
        share: the expected share of its photos that will be in; None where it is not known.
        word: the word for that share: "good", "fair", "poor" or "not seen"; "" where it is not known.
        near: the nearest names that the encoder knows, where it does not know this one.
        try_names: which name to try where the odds are poor; else "".
    """

    label: str
    names: tuple[str, ...]
    sense: str
    meaning: str
    kinds: tuple[str, ...]
    flag: str
    share: float | None
    word: OddsWord | str
    near: tuple[str, ...]
    try_names: str

    @property
    def is_slip(self) -> bool:
        """Whether the name may be a slip for another one."""
        return self.try_names.startswith(SLIP)

    @property
    def next_step(self) -> str:
        """What to do where the odds are poor; else ""."""
        return f"{self.try_names}; or {ELSE}" if self.try_names else ""

    @property
    def odds(self) -> Odds | None:
        """The odds of the label; None where they are not known."""
        return None if self.share is None else Odds(self.label, self.share)

    @property
    def is_weak(self) -> bool:
        """Whether most of its photos may be kept out."""
        return self.odds is not None and self.odds.is_weak

    @property
    def why(self) -> str:
        """How the encoder knows the name where it does not know it as such: "known as a kind of bird"; else ""."""
        if not self.flag or self.flag == "known":
            return ""
        how = familiarity(Flag(self.flag))
        if how == "through":
            return f"the encoder knows it only through {self.flag.removeprefix('through ')}"
        return "the encoder knows its last word only" if how == "head noun only" else "the encoder does not know it"

    @property
    def told(self) -> str:
        """One line: the odds, and why."""
        parts = [str(self.odds) if self.odds else self.label, self.why]
        return "; ".join(filter(None, parts)) if self.odds else ": ".join(filter(None, parts))


class LabelsReport(Sequence[LabelReport]):
    """A record for each label, in their order. Printed it is a line a label, in a notebook a table."""

    def __init__(self, labels: Iterable[LabelReport]) -> None:
        self._labels = tuple(labels)

    def __len__(self) -> int:
        return len(self._labels)

    @overload
    def __getitem__(self, place: int) -> LabelReport: ...
    @overload
    def __getitem__(self, place: slice) -> LabelsReport: ...
    def __getitem__(self, place: int | slice) -> LabelReport | LabelsReport:
        if isinstance(place, slice):
            return LabelsReport(self._labels[place])
        return self._labels[place]

    def __iter__(self) -> Iterator[LabelReport]:
        return iter(self._labels)

    def __repr__(self) -> str:
        return "\n".join(visible(one.told) for one in self)

    def _repr_html_(self) -> str:
        """The table that a notebook shows."""
        return str(render("detector/labels_report.html", rows=[row_of(one) for one in self], titles=TITLES))

    @property
    def weak(self) -> LabelsReport:
        """The labels of which most photos may be kept out."""
        return LabelsReport(one for one in self if one.is_weak)

    def as_json(self) -> list[dict[str, Any]]:
        """A list of dicts that JSON can hold."""
        return [{**asdict(one), "next_step": one.next_step} for one in self]


TITLES = ("label", "taken for", "kinds", "known", "odds", "next step")


def row_of(one: LabelReport) -> tuple[str, ...]:
    """The cells of a label in a table."""
    odds = f"{one.word}, {100 * one.share:.0f} %" if one.share is not None else ""
    kinds = f"{len(one.kinds):,}: {a_few(one.kinds, KINDS)}" if one.kinds else ""
    taken_for = one.meaning or ", ".join(one.names)
    return one.label, taken_for, kinds, one.flag, odds, one.next_step


def report_labels(
    meanings: Sequence[Meaning], coverage: Mapping[str, Flag], odds: Sequence[Odds], near: Mapping[str, Sequence[str]]
) -> LabelsReport:
    """What is known of labels, given the parts of it; `odds` are those of all labels or none."""
    shares: dict[str, Odds] = {one.label: one for one in odds}
    return LabelsReport(
        _label(meaning, coverage.get(meaning.label, ""), shares.get(meaning.label), tuple(near.get(meaning.label, ())))
        for meaning in meanings
    )


def _label(meaning: Meaning, flag: str, odds: Odds | None, near: tuple[str, ...]) -> LabelReport:
    weak = odds is not None and odds.is_weak
    return LabelReport(
        label=meaning.label,
        names=meaning.names,
        sense=meaning.sense,
        meaning=in_plain_words(meaning.gloss),
        kinds=meaning.kinds,
        flag=flag,
        share=None if odds is None else round(odds.share, 4),
        word="" if odds is None else odds.word,
        near=near,
        try_names=names_to_try(meaning, near) if weak else "",
    )


def names_to_try(meaning: Meaning, near: Sequence[str]) -> str:
    """Which name to try for a label that is poor or not seen."""
    if meaning.suggestions:
        return f"{SLIP} {' or '.join(meaning.suggestions)}?"
    if near:
        return f"if these look like it, let them count as it: {meaning.label} > {' | '.join(near)}"
    return f"name known things that look like it: {meaning.label} > ... | ..."


def near_names(detector: Detector) -> dict[str, tuple[str, ...]]:
    """For labels that the encoder does not know as such, the readable names nearest to them; the encoder rests."""
    weak = [label for label, flag in detector.coverage.items() if familiarity(flag) != "known"]
    if detector.vocabulary is None or not weak:
        return {}
    rows = dict(zip(detector.labels, first_rows(len(detector.labels), detector.scorer.owners_), strict=True))
    places = [rows[label] for label in weak]
    return nearest_names(
        dict(zip(weak, detector.scorer.labels_[places], strict=True)),
        detector.vocabulary.names,
        detector.vocabulary.vectors,
    )


def nearest_names(
    labels: Mapping[str, NDArray[Any]], names: Sequence[str], vectors: NDArray[Any]
) -> dict[str, tuple[str, ...]]:
    """The names of single things nearest to the vector of each label, what it is called itself apart."""
    if not labels:
        return {}
    single = [place for place, of_single in enumerate(_are_single(tuple(names))) if of_single]
    cosines = unit_rows(np.stack([*labels.values()])) @ unit_rows(vectors[single]).T
    found = {}
    for label, row in zip(labels, cosines, strict=True):
        ordered = [names[single[place]] for place in np.argsort(-row, kind="stable")[: NEAR + 1]]
        found[label] = tuple([name for name in ordered if fold(name) != fold(label)][:NEAR])
    return found


@lru_cache(maxsize=2)
def _are_single(names: tuple[str, ...]) -> list[bool]:
    """Which names are of single things: no more than a few other names are kinds of them."""
    net, senses = nouns(), nouns().readable()
    counts = Counter(above for name in names if name in senses for above in net.above(senses[name]))
    return [name in senses and counts[senses[name]] <= FEW for name in names]
