"""Kinds for a label that the encoder does not know well, found from a few photos of it: names that it does know.

`receipt` is no class of `mini`, and photos of receipts look like a menu to it. So `receipt > menu` lets them in, and
menus with them. docs/labels.md says what that is worth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from outword.base.checks import whole_number
from outword.base.files import PathLike
from outword.base.odds import LEAST
from outword.base.reports import Report, quiet
from outword.base.wording import counted
from outword.choosing.photos import once
from outword.choosing.tune import SAME
from outword.detector.cuts import below_each_other, moved, named_in
from outword.detector.detector import Detector
from outword.detector.fitting import prepare
from outword.detector.positives import kin_of
from outword.detector.recipe import METHOD, resolve
from outword.encoders import Encoder, get_encoder
from outword.encoders.base import Vectors
from outword.errors import InputError
from outword.maths.methods.grounded import Grounded
from outword.maths.numerics import Array, unit_rows
from outword.maths.reference import FPR, p_values
from outword.vectors.id_images import read_id_images
from outword.vectors.names import rival_names
from outword.vectors.reference import Reference, find_reference
from outword.words.corpora import senses_of_things
from outword.words.kinds import understand
from outword.words.labels import Given, check_labels

FEWEST = 5  # photos of the label
ENOUGH = 200  # photos that are looked at; more say nothing new
KINDS = 3
NEAREST = 5  # names of each photo that are tried
LEAST_GAIN = 0.03  # of `_how_unusual`, for one more kind
WORTH_IT = 0.05  # more of the photos in than of unrelated ones, else no kinds are suggested
RAREST = FPR / 10  # p-values below this are all the same


@dataclass(frozen=True)
class Shares:
    """Which share of the photos would be in, and which share of unrelated ones, those of the encoder's reference."""

    own: float
    unrelated: float

    @property
    def lead(self) -> float:
        """How much more of the photos than of unrelated ones would be in."""
        return self.own - self.unrelated


@dataclass(frozen=True)
class SuggestedKinds:
    """Known names as kinds of a label, and what they are worth; `print` shows both.

    Attributes:
        label: as it was typed.
        kinds: the names, the one that brings most first; none where they are of no use.
        alone: what would be in with the label alone.
        with_kinds: what would be in with kinds, on photos that these were not chosen with: each half of the photos
            is counted with the kinds that the other half chose. Unrelated photos that show one of the kinds count, too.
        n_photos: how many different photos were looked at.
        n_unrelated: how many photos of the reference show no such label.
        unreadable: path and reason of photos that could not be read.
    """

    label: str
    kinds: tuple[str, ...]
    alone: Shares
    with_kinds: Shares
    n_photos: int
    n_unrelated: int
    unreadable: tuple[tuple[str, str], ...] = ()

    @property
    def line(self) -> str:
        """The label with its kinds, as a label list has it."""
        return f"{self.label} > {' | '.join(self.kinds)}" if self.kinds else self.label

    @property
    def told(self) -> str:
        """What the kinds are worth, in a sentence."""
        alone, found = self.alone, self.with_kinds
        told = f"of {counted(self.n_photos, 'photo')}, {alone.own:.0%} would be in with the name alone"
        if not self.kinds and alone.own >= LEAST["good"]:
            return f"{told}; it needs no kinds"
        if not self.kinds:
            return f"{told}; no names that the encoder knows bring in more, so bring the photos to outword tune"
        unrelated = f"of {counted(self.n_unrelated, 'unrelated photo')}, {alone.unrelated:.1%}"
        return (
            f"{told}, {found.own:.0%} with these kinds (counted on photos that they were not chosen with); {unrelated} "
            f"and {found.unrelated:.1%}"
        )

    def as_json(self) -> dict[str, Any]:
        """A dict that JSON can hold."""
        return {**asdict(self), "line": self.line}

    def __str__(self) -> str:
        return f"{self.line}\n{self.told}"


class _Seen(NamedTuple):
    """What photos have in common with the label and all words, and with each name that may be a kind."""

    masses: Array  # (n_photos, 3), `Grounded.masses`
    logits: Array  # (n_photos, n_names)

    def some(self, rows: NDArray[np.integer]) -> _Seen:
        return _Seen(self.masses[rows], self.logits[rows])


def suggest_kinds(
    label: str,
    photos: PathLike | Iterable[PathLike],
    *,
    others: Given = (),
    encoder: str | Encoder = "mini",
    most: int = KINDS,
    report: Report = quiet,
) -> SuggestedKinds:
    """Find names that an encoder knows and that fit photos of a label, to be written as its kinds.

    One name after the other is added, the one that lifts the photos most above unrelated ones, those of the encoder's
    reference. The result depends on the contents of the photos alone.

    Args:
        label: a class name without kinds, such as "receipt".
        photos: photos that show it, 5 at least, all that `outword.fit` takes as `id_images`; 200 are looked at.
        others: the other labels of your list; names that are about one of them are not suggested.
        encoder: a name, or what `get_encoder` gave; it must have a reference.
        most: how many kinds at most.
        report: called with (task, done, total) during long work.
    """
    whole_number("most", most, least=1, most=20, hint="3 are enough for most labels")
    typed = check_labels([label])
    if any(one.kinds or one.without for one in typed.values()):
        raise InputError(f"the label must be a name without kinds, got {label!r}", hint="leave out what is after >")
    used = encoder if isinstance(encoder, Encoder) else get_encoder(encoder)
    reference = _reference(used)
    own = read_id_images(used, photos, [*typed], with_classes=False, report=report)
    rows = once(own.known)[:ENOUGH]
    if len(rows) < FEWEST:
        raise InputError(
            f"kinds are found from {FEWEST} different photos at least, got {len(rows)}",
            hint="bring more photos of the label, or write kinds by hand: receipt > menu",
        )
    return suggest_from_vectors(label, own.vectors[rows], reference, used, others, most, tuple(own.left_out), report)


def suggest_from_vectors(
    label: str,
    own: Vectors,
    reference: Reference,
    encoder: Encoder,
    others: Given = (),
    most: int = KINDS,
    unreadable: tuple[tuple[str, str], ...] = (),
    report: Report = quiet,
) -> SuggestedKinds:
    """The same from the vectors of different photos, (n_photos, dim)."""
    alone = _fit(encoder, label, (), report)
    unrelated = unrelated_to(alone, reference, own)
    names, vectors = _candidates(alone, own, others)
    scorer = cast(Grounded, alone.scorer)
    seen, strange = (_Seen(scorer.masses(x), unit_rows(x) @ vectors.T / scorer.temperature) for x in (own, unrelated))
    halves = [np.arange(len(own))[start::2] for start in range(2)]
    counts = []
    for chosen, tested in (halves, halves[::-1]):
        places = _best_kinds(scorer, seen.some(chosen), strange, most)
        detector = _fit(encoder, label, [names[place] for place in places], report)
        counts.append((_shares(detector, own[tested], unrelated), len(tested)))
    with_kinds = Shares(
        own=sum(shares.own * n for shares, n in counts) / len(own),
        unrelated=sum(shares.unrelated for shares, _ in counts) / len(counts),
    )
    before = _shares(alone, own, unrelated)
    worth_it = with_kinds.lead >= before.lead + WORTH_IT
    places = _best_kinds(scorer, seen, strange, most) if worth_it else []
    kinds = tuple(names[place] for place in places)
    return SuggestedKinds(label, kinds, before, with_kinds, len(own), len(unrelated), unreadable)


def unrelated_to(detector: Detector, reference: Reference, own: Vectors) -> Vectors:
    """The photos of a reference that do not show the label by their name, and are none of the user's."""
    vectors = reference.vectors.astype(np.float32)
    among_own = (vectors @ own.T).max(axis=1) >= SAME
    rest: Vectors = vectors[~named_in(detector, reference) & ~among_own]
    return rest


def _reference(encoder: Encoder) -> Reference:
    if (found := find_reference(encoder)) is None:
        raise InputError(
            f"kinds are weighed against photos of other things, and {encoder.name} has no reference",
            hint=f'make one of ordinary photos: "outword reference PHOTOS --encoder {encoder.name}"',
        )
    return found


def _fit(encoder: Encoder, label: str, kinds: Sequence[str], report: Report) -> Detector:
    labels: Given = {label: list(kinds)} if kinds else [label]
    return prepare(resolve(encoder, METHOD, {}), check_labels(labels), report=report).finish(report=report)


def _shares(detector: Detector, own: Vectors, unrelated: Vectors) -> Shares:
    cut = detector.threshold
    if cut is None:
        hint = f'make one of more photos: "outword reference PHOTOS --encoder {detector.encoder.name}"'
        raise InputError("too few photos of the reference show no such label to find a threshold", hint=hint)
    own_in, unrelated_in = (detector.scorer.score(x) >= cut for x in (own, unrelated))
    return Shares(float(np.mean(own_in)), float(np.mean(unrelated_in)))


def _candidates(detector: Detector, own: Vectors, others: Given) -> tuple[list[str], Vectors]:
    """The names that may be kinds, with their vectors: those nearest to a photo that have no known name below them."""
    row = {word: place for place, word in enumerate(detector.wild)}
    senses = senses_of_things()
    names = [name for name in rival_names(detector.encoder) if name in row]
    plain = below_each_other([senses[name] for name in names]).sum(axis=0) == 1
    kin = np.zeros(len(names), bool)
    if others:
        meanings = understand(check_labels(others), "off")
        kin = np.array(kin_of(names, [senses[name] for name in names], meanings))
    allowed = [name for name, is_plain, is_kin in zip(names, plain, kin, strict=True) if is_plain and not is_kin]
    if not allowed:
        raise InputError(f"{detector.encoder.name} knows no names that could be kinds", hint="write kinds by hand")
    vectors = unit_rows(detector.scorer.wild_[[row[name] for name in allowed]])  # type: ignore[index]
    nearest = np.argsort(-(own @ vectors.T), axis=1, kind="stable")[:, :NEAREST]
    tried = np.unique(nearest)
    return [allowed[place] for place in tried], vectors[tried].astype(np.float32)


def _best_kinds(scorer: Grounded, own: _Seen, unrelated: _Seen, most: int) -> list[int]:
    """The places of the names that lift the photos most above unrelated ones, one after the other."""
    chosen: list[int] = []
    reached = _how_unusual(scorer, own, unrelated, chosen)
    while len(chosen) < most:
        left = [place for place in range(own.logits.shape[1]) if place not in chosen]
        values = [_how_unusual(scorer, own, unrelated, [*chosen, place]) for place in left]
        if not left or max(values) < reached + LEAST_GAIN:
            break
        reached = max(values)
        chosen.append(left[values.index(reached)])
    return chosen


def _how_unusual(scorer: Grounded, own: _Seen, unrelated: _Seen, chosen: Sequence[int]) -> float:
    """How far the photos are above unrelated ones: 1 if above all but one in 200, 0 if like the least of these.

    It is the mean of log p over log 0.005, where p is the p-value of a photo among unrelated ones.
    """
    p = p_values(_scores(scorer, own, chosen), np.sort(_scores(scorer, unrelated, chosen)))
    return float(np.log(np.maximum(p, RAREST)).mean() / math.log(RAREST))


def _scores(scorer: Grounded, seen: _Seen, chosen: Sequence[int]) -> Array:
    """What photos score once some of the names are kinds of the label and compete with it no longer."""
    if not chosen:
        return np.asarray(scorer.combine(seen.masses))
    logits = seen.logits[:, chosen]
    kinds = np.ones(logits.shape, bool)
    return np.asarray(scorer.combine(moved(seen.masses, logits, kinds, ~kinds)))
