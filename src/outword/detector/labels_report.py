"""What a detector makes of its labels: the sense of each, how well the encoder sees it, and what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from shlex import quote
from typing import TYPE_CHECKING, Any, overload

from outword.base.html import render, visible
from outword.base.odds import Odds
from outword.base.terms import Flag, OddsWord, familiarity
from outword.base.wording import a_few
from outword.words.kinds import in_plain_words
from outword.words.nouns import nouns

if TYPE_CHECKING:
    from outword.detector.detector import Detector
    from outword.words.kinds import Meaning

ELSE = "bring some photos of it (outword tune, outword calibrate), or use CLIP (--encoder clip-vit-b-16)"
SLIP = "did you mean"
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
        broader: the nearest name of something more general that the encoder knows, where it does not know this one; ""
            where there is none but for a wide class such as "animal".
        try_names: which name to try, or how to find one, where the odds are poor; else "".
        by_hand: whether its kinds were typed by hand.
    """

    label: str
    names: tuple[str, ...]
    sense: str
    meaning: str
    kinds: tuple[str, ...]
    flag: str
    share: float | None
    word: OddsWord | str
    broader: str
    try_names: str
    by_hand: bool = False

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
        if self.by_hand and self.share is None:
            return "its kinds were typed by hand, so how many of its photos will be in was not measured"
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


def report_labels(detector: Detector) -> LabelsReport:
    """What is known of the labels of a detector; the encoder rests."""
    broader, shares = broader_names(detector), {one.label: one for one in detector.odds}
    return LabelsReport(
        _label(meaning, detector, shares.get(meaning.label), broader.get(meaning.label, ""))
        for meaning in detector.card.meanings
    )


def _label(meaning: Meaning, detector: Detector, odds: Odds | None, broader: str) -> LabelReport:
    weak = odds is not None and odds.is_weak
    return LabelReport(
        label=meaning.label,
        names=meaning.names,
        sense=meaning.sense,
        meaning=in_plain_words(meaning.gloss),
        kinds=meaning.kinds,
        flag=detector.coverage.get(meaning.label, ""),
        share=None if odds is None else round(odds.share, 4),
        word="" if odds is None else odds.word,
        broader=broader,
        try_names=names_to_try(meaning, broader, detector.card.encoder.name) if weak else "",
        by_hand=meaning.by_hand,
    )


def names_to_try(meaning: Meaning, broader: str, encoder: str) -> str:
    """Which name to try for a label that is poor or not seen, or how to find names."""
    if meaning.suggestions:
        return f"{SLIP} {' or '.join(meaning.suggestions)}?"
    if broader:
        return f'the encoder knows a broader name, which lets in more than this: "{broader}"'
    command = f"outword labels {quote(meaning.label + ',')} --photos PHOTOS"
    with_encoder = "" if encoder == "mini" else f" --encoder {quote(encoder)}"
    return f"five photos of it show which known names let it in: {command}{with_encoder}"


def broader_names(detector: Detector) -> dict[str, str]:
    """For labels that the encoder does not know as such, the nearest known name of something more general."""
    weak = {label for label, flag in detector.coverage.items() if familiarity(flag) != "known"}
    if detector.vocabulary is None or not weak:
        return {}
    found = {}
    for meaning in detector.card.meanings:
        if meaning.label in weak and (name := _broader(meaning.sense, tuple(detector.vocabulary.names))):
            found[meaning.label] = name
    return found


def _broader(wnid: str, names: tuple[str, ...]) -> str:
    """The nearest of the names above a sense; "" where there is none."""
    net = nouns()
    sense = net.by_wnid(wnid) if wnid else None
    if sense is None:
        return ""
    known = _single(names)
    return next((known[above] for above in net.above(sense) if above in known), "")


@lru_cache(maxsize=2)
def _single(names: tuple[str, ...]) -> dict[int, str]:
    """The names of single things, by their senses: no more than a few other names are kinds of them."""
    net, readable = nouns(), nouns().readable()
    senses = {readable[name]: name for name in reversed(names) if name in readable}
    counts = Counter(above for sense in senses for above in net.above(sense))
    return {sense: name for sense, name in senses.items() if counts[sense] <= FEW}
