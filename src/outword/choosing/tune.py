"""The best detector for photos of the user's: every method on the same vectors, chosen by nested validation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from outword.base.checks import number
from outword.base.files import PathLike
from outword.base.reports import Report, Say, quiet
from outword.base.wording import a_few
from outword.choosing.compare import Tried, applicable, none_applies, opened, read_sets, taking_part, there
from outword.choosing.folds import FOLDS, Candidate, Dealt, Share, best_of, expected, promised
from outword.choosing.photos import Photos, once
from outword.detector.calibration import STRANGE, check_disjoint
from outword.detector.cuts import FEWEST as FEWEST_UNRELATED
from outword.detector.cuts import alike_in, named_in
from outword.detector.detector import Detector
from outword.detector.fitting import fit, prepare
from outword.detector.judge import judge
from outword.detector.recipe import Recipe, resolve
from outword.encoders import Encoder, get_encoder
from outword.errors import InputError
from outword.maths.methods import DETECTORS, Need
from outword.maths.methods.needs import of_photo
from outword.maths.reference import look_unrelated
from outword.vectors.id_images import IdImages, find_stray, read_id_images
from outword.vectors.reference import Reference, find_reference
from outword.words.labels import Given, Label, check_labels

FEWEST = 2 * FOLDS  # photos of the classes, and of other things
OUTSIDE, STAND_IN = "OOD", "reference"  # what the other photos are called
WIDE = 0.1  # the width of an interval above which more photos are asked for
SAME = 0.999  # the cosine from which on a photo of the reference is one of the user's
BLOCK = 1024  # photos that are compared with the reference at a time


@dataclass(frozen=True)
class Tuned:
    """The detector, what is to be expected of it, and the methods that it was chosen from."""

    detector: Detector  # calibrated
    tpr: Share  # of new photos of the classes that are in; the choice of the method is accounted for
    tnr: Share  # of new photos of other things that are out
    candidates: tuple[Candidate, ...]  # the chosen one first, then by AUROC
    agreed: int  # how many of the five choices without a fold were the same
    stand_in: bool  # whether the encoder's reference stood in for photos of other things
    warnings: tuple[str, ...]

    @property
    def reason(self) -> str:
        """Why this method, and what to expect, in two sentences."""
        best, *rest = self.candidates
        why = f"{best.name} is the only method that applies"
        if rest:
            next_best = f"then {rest[0].name} with {rest[0].auroc:.4f}"
            if equal := sum(one.auroc == best.auroc for one in rest):
                next_best = f"as {equal} that come{'s' * (equal == 1)} after it in the list of methods"
            why = (
                f"{best.name} is chosen from {len(self.candidates)} methods, as it ranks your photos best above the "
                f"others: AUROC {best.auroc:.4f}, {next_best}; without a fold, the choice was the same {self.agreed} "
                f"times of {FOLDS}"
            )
        others = "ordinary photos (the reference)" if self.stand_in else "the other photos"
        return (
            f"{why}. Expected of new photos like these: {self.tpr} of yours in and {self.tnr} of {others} out, with "
            "90 % intervals."
        )


def tune(
    labels: Given,
    inside: PathLike | Iterable[PathLike],
    outside: PathLike | Iterable[PathLike] = (),
    *,
    encoder: str | Encoder = "mini",
    methods: Iterable[str] | None = None,
    corpus: str | None = None,
    words: PathLike | None = None,
    kinds: str | None = None,
    tpr: float | None = None,
    report: Report = quiet,
    tell: Say = quiet,
) -> Tuned:
    """The best detector for some photos, calibrated on them, and what to expect of it.

    Each photo is encoded once, and counts once wherever it lies. The result depends on the contents of the files and,
    where these tell the classes, on the folders; on no order, batch or number of threads.

    Args:
        labels: the class names, as for `outword.fit`.
        inside: photos that show the classes, ten at least, all that `outword.fit` takes as `id_images`. Where all lie
            in folders with the names of labels, methods take part that learn the classes from photos.
        outside: photos that show none of them, ten at least; without any the encoder's reference stands in.
        encoder: a name, or what `get_encoder` gave.
        methods: the names of those that may be chosen; by default all but those that learn prompts, which take long.
            Those that look at more of a photo than its vector, or at photos before it, take no part.
        corpus: where wild words come from, by name or a text file; by default what each method was published with.
        words: a word list of yours, for the methods that want one.
        kinds: whether labels stand for their kinds, as for `outword.fit`.
        tpr: the share of the photos to accept; None balances both errors.
        report: called with (task, done, total) during long work.
        tell: called with a line for each method that is left out, and why.
    """
    if tpr is not None:
        number("tpr", tpr, above=0, most=1, hint="0.95 is usual")
    own_paths, other_paths = there(inside), there(outside)
    typed, used = check_labels(labels), encoder if isinstance(encoder, Encoder) else get_encoder(encoder)
    names = [*typed]
    stray = find_stray(used, own_paths, names)
    taking = entries(methods, kinds, tell)
    recipes = applicable(taking, used, corpus=corpus, words=words, id_images=own_paths, stray=stray, tell=tell)
    if not recipes:
        raise none_applies()
    reference = None if other_paths else _reference(used)
    own = read_id_images(used, own_paths, names, with_classes=False, report=report)
    own = own.some(once(own.known, tell), names)
    _check_enough("the classes", len(own.vectors), 'bring more; "outword fit" needs none')
    doubts: list[str] = []
    if reference:
        others = unrelated(used, reference, typed, own, doubts.append)
    else:
        others = _outside(used, other_paths, report, tell)
    check_disjoint(own.known, others.known)
    found = tune_vectors(recipes, typed, own, others, tpr=tpr, report=report, tell=tell)
    return replace(found, warnings=(*_strange(found.detector, typed, own), *doubts, *found.warnings))


def tune_vectors(
    recipes: Mapping[str, Recipe],
    labels: Mapping[str, Label],
    inside: IdImages,
    outside: Photos,
    *,
    tpr: float | None = None,
    report: Report = quiet,
    tell: Say = quiet,
) -> Tuned:
    """The same of photos that are encoded, each of which is there once; their order is that in which they are dealt.

    `recipes` are what `applicable` gives, by the names of their rows, and all have the same encoder. What stands in
    for photos of other things is called "reference".
    """
    photos = Dealt(dict(labels), inside, outside)
    tried = photos.trials(recipes, report, tell)
    best, choices = best_of(tried), [best_of(tried, fold) for fold in range(FOLDS)]
    detector, final, warnings = photos.calibrated(best, tpr, report)
    yours, others = expected(best, choices, final, tpr)
    found = sorted((trial.candidate(tpr) for trial in tried), key=lambda one: (one.name != best.name, -one.auroc))
    agreed = sum(choice is best for choice in choices)
    told = tuple(filter(None, [*warnings, promised(detector, yours), *_open(others)]))
    return Tuned(detector, yours, others, tuple(found), agreed, outside.name == STAND_IN, told)


def _open(tnr: Share) -> Iterator[str]:
    """What is left open of the photos of other things, if it is much; the threshold warns of those of the classes."""
    if tnr.high - tnr.low > WIDE:
        yield (
            f"the expected TNR is uncertain: it lies between {tnr.low:.2f} and {tnr.high:.2f} with 90 % confidence; "
            "more photos of either kind narrow it"
        )


def _strange(detector: Detector, labels: Mapping[str, Label], own: IdImages) -> Iterator[str]:
    """What is odd about photos without classes, as the names alone judge them, where the method takes any photos."""
    if Need.LABELS in detector.scorer.wants() or own.classes is not None:
        return  # what the calibration tells is by the names, or the folders tell
    by_names = fit(labels, encoder=detector.encoder)
    if by_names.thresholds.reference_scores is None:
        return
    verdicts = [*judge(by_names, own.vectors, 1)]
    strange = int(look_unrelated([one.score for one in verdicts], by_names.thresholds.reference_scores).sum())
    if strange > STRANGE * len(verdicts):
        yield f"{strange:,} of your {len(verdicts):,} photos look like none of your classes"
    shown = {one.label for one in verdicts if one.verdict == "in"}
    if lacking := [label for label in labels if label not in shown]:
        yield f"no photo of yours shows {a_few(lacking)}: what is chosen here, and told of it, may not hold there"


def entries(methods: Iterable[str] | None = None, kinds: str | None = None, tell: Say = quiet) -> list[Tried]:
    """The methods that may be chosen, for `applicable`; those that learn the classes from photos have no kinds."""
    asked = [name for name in DETECTORS if not DETECTORS[name].trains] if methods is None else methods
    found = []
    for name in asked:
        if name not in DETECTORS:
            raise DETECTORS.unknown(name)
        if more := _more_than_vectors(name):
            tell(f"left out: {name}: it looks at {more}, and what is compared are vectors")
        else:
            found.append(name)
    return taking_part(found, kinds)


def _more_than_vectors(method: str) -> str:
    """What a method looks at beside the vector of a photo, if there is no way without it."""
    kind = DETECTORS[method]
    if kind.sees_order:
        return "photos scored before"
    wanted = [] if kind.on_vectors else of_photo(kind.needs)
    return wanted[0].value if wanted else ""


def _check_enough(whose: str, n: int, hint: str) -> None:
    if n < FEWEST:
        raise InputError(f"{FOLDS} folds need at least {FEWEST} different photos of {whose}, got {n}", hint=hint)


def _outside(encoder: Encoder, paths: Sequence[str], report: Report, tell: Say) -> Photos:
    """The user's photos of other things, in the order of their contents."""
    (photos,) = read_sets(encoder, [opened(encoder, OUTSIDE, paths)], report, tell)
    rows = once(photos.known, tell).tolist()
    _check_enough("other things", len(rows), "bring more, or none: then ordinary photos stand in (the reference)")
    names, digests = ([all_of[row] for row in rows] for all_of in (photos.paths, photos.digests))
    return Photos(OUTSIDE, names, photos.vectors[rows], photos.unreadable, digests, photos.given)


def _reference(encoder: Encoder) -> Reference:
    """The reference of an encoder, which there must be."""
    if (found := find_reference(encoder)) is None:
        raise InputError(
            f"there must be photos of other things, as {encoder.name} has no reference to stand in for them, got none",
            hint=f'pass --ood PHOTOS, or make one: "outword reference PHOTOS --encoder {encoder.name}"',
        )
    return found


def unrelated(
    encoder: Encoder, reference: Reference, labels: Mapping[str, Label], inside: IdImages, tell: Say = quiet
) -> Photos:
    """The photos of a reference that show no label and are none of the user's, in the order of the reference.

    `tell` is called where photos without names look like a label: they are left out, though some may be unrelated.
    """
    plain = prepare(resolve(encoder, "maxlogit", {}, kinds="auto"), labels).finish()
    vectors = reference.vectors.astype(np.float32)
    nearest = np.full(len(vectors), -1.0)
    for start in range(0, len(inside.vectors), BLOCK):
        nearest = np.maximum(nearest, (vectors @ inside.vectors[start : start + BLOCK].T).max(axis=1))
    alike = alike_in(plain, reference)
    rows = np.flatnonzero(~named_in(plain, reference) & ~alike & (nearest < SAME))
    if alike.any():
        tell(
            f"{alike.sum():,} of {len(reference):,} photos of the reference look like your classes and have no names, "
            "so they are left out: of all ordinary photos fewer may be out than the expected TNR says"
        )
    if len(rows) < FEWEST_UNRELATED:
        raise InputError(
            f"at least {FEWEST_UNRELATED} photos of the reference must show none of the labels, got {len(rows)}",
            hint="pass photos of other things with --ood",
        )
    return Photos(STAND_IN, [*map(str, rows.tolist())], vectors[rows])
