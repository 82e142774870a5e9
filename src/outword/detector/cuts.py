"""Cuts without a photo of the user's: from the reference of the encoder, or from the very photos that are asked about.

docs/verdicts.md tells how these rules were found, and on which photos.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outword.detector.thresholds import estimated_thresholds
from outword.errors import InputError
from outword.maths.kernels import Choice, chosen
from outword.maths.methods.grounded import Grounded
from outword.maths.methods.needs import of_photo
from outword.maths.numerics import Array, log_sum_exp, unit_rows
from outword.maths.thresholds import Threshold, fit_reference
from outword.vectors.names import rival_names
from outword.vectors.reference import Reference
from outword.words.corpora import senses_of_things
from outword.words.forms import fold
from outword.words.kinds import are_below, is_kind
from outword.words.nouns import nouns

if TYPE_CHECKING:
    from outword.detector.detector import Detector

FEWEST = 100  # photos of a batch, or of a reference that show none of the labels; fewer make no cut
PSEUDO = 50  # photos that stand for those of a label; fewer tell nothing of them
UNRELATED = 50  # photos of a batch that look like no label; fewer make no cut
BLOCK = 256  # photos that are named at a time
Flags = NDArray[np.bool_]


def can_be_cut(detector: Detector) -> bool:
    """Whether scores of vectors tell what photos score: not for methods that see more of a photo, or other photos."""
    return not (detector.scorer.sees_order or of_photo(detector.scorer.wants()))


def with_cut(
    detector: Detector,
    threshold: Threshold,
    reference_scores: ArrayLike | None = None,
    alike_scores: ArrayLike | None = None,
) -> Detector:
    """The detector with a cut from photos that show none of its labels, and their scores by its whole method.

    Without such scores there are no p-values. A calibrated threshold stays before the cut.
    """
    calibrated = detector.thresholds.calibrated
    thresholds = estimated_thresholds(threshold, reference_scores, alike_scores, calibrated)
    return replace(detector, thresholds=thresholds)


def cut_by_reference(
    detector: Detector, reference: Reference, fpr: float | None = None, *, unrelated: Flags | None = None
) -> Detector:
    """The detector with the cut that its encoder's reference gives; as it is where the reference cannot tell.

    Photos that show a label are left out: by their name, or if nobody named them by what they look like. With `fpr`
    that share of the rest gets in. Otherwise it is the lower of two cuts (`outword.maths.reference.lower_cut`): one in
    twenty of the rest gets in, or both errors are balanced, what the rest scores, and what photos of one more label
    would score (`pseudo_id`). `unrelated` says which photos may stand for unrelated ones, (n,), by default all.

    Photos without names that look like a label may be unrelated all the same, and then they are those with the highest
    scores. So p-values count them (`Thresholds.counted_scores`), and so does `fpr`: no more than that share gets in.
    One in twenty of the rest is no such promise, but a rule that keeps photos of the labels in.
    """
    if not can_be_cut(detector):
        return detector
    vectors = reference.vectors.astype(np.float32)
    alike = alike_in(detector, reference)
    rest = ~(named_in(detector, reference) | alike)
    allowed = np.ones(len(rest), bool) if unrelated is None else unrelated
    counted = rest & allowed
    if counted.sum() < FEWEST:
        return detector
    scorer, masses = detector.scorer, None
    balanced = fpr is None and isinstance(scorer, Grounded)
    if balanced and chosen() == Choice("numpy", "float64"):  # what `masses` computes with: once is enough for both
        masses = cast(Grounded, scorer).masses(vectors[rest])
        scores = np.asarray(cast(Grounded, scorer).combine(masses[counted[rest]]))
    else:
        scores = scorer.score(vectors[counted])
    if scores.min() == scores.max():
        hint = "methods that compare labels with each other need two of them; grounded does with one"
        raise InputError(f"{detector.method} gives every photo the same score", hint=hint)
    pseudo = np.zeros(0)
    if balanced:
        pseudo = pseudo_id(detector, vectors[rest], np.array(reference.wnids)[rest].tolist(), masses)
    alike_scores = scorer.score(vectors[alike & allowed])
    kept_out = scores if fpr is None else np.concatenate([scores, alike_scores])
    return with_cut(detector, fit_reference(kept_out, pseudo, fpr), scores, alike_scores)


def cut_by_batch(detector: Detector, vectors: NDArray[np.floating]) -> tuple[Detector, float]:
    """The detector with a cut from the photos that are to be judged, (n, dim), and the share named like a label.

    Each photo is named by the readable name, label or kind that is nearest. What is named like a label is left out;
    one in twenty of the rest gets in. The detector is as it was where there are too few photos, or too few of the
    rest: with half of 100 photos in the classes there are enough.

    This is a rule, and no promise of a share: unrelated photos that look like a label are left out with those of the
    labels, and nobody knows how many they are. So there are no p-values.
    """
    like = named_like_labels(detector, vectors)
    if len(vectors) < FEWEST or (~like).sum() < UNRELATED or not can_be_cut(detector):
        return detector, float(like.mean())
    scores = detector.scorer.score(vectors)[~like]
    return with_cut(detector, fit_reference(scores, method="batch")), float(like.mean())


def named_like_labels(detector: Detector, vectors: NDArray[np.floating]) -> Flags:
    """Which photos look more like a label or a kind of one than like any other readable name."""
    if detector.vocabulary is None:
        return np.zeros(len(vectors), bool)
    kin = np.array(is_kind(detector.vocabulary.names, detector.card.meanings))
    labels, names = unit_rows(detector.scorer.labels_).T, unit_rows(detector.vocabulary.vectors).T
    found = [np.zeros(0, bool)]
    for start in range(0, len(vectors), BLOCK):
        x = unit_rows(vectors[start : start + BLOCK])
        cosines = x @ names
        found.append(kin[cosines.argmax(axis=1)] | ((x @ labels).max(axis=1) >= cosines.max(axis=1)))
    return np.concatenate(found)


def named_in(detector: Detector, reference: Reference) -> Flags:
    """Which photos of a reference show a label by their name."""
    rows = set(map(fold, detector.rows))
    below = np.array(are_below(reference.wnids, detector.card.meanings), dtype=bool)
    same = np.array([bool(name) and fold(name) in rows for name in reference.names], dtype=bool)
    return np.asarray(below | same)


def alike_in(detector: Detector, reference: Reference) -> Flags:
    """Which photos of a reference look like a label, of those that nobody named."""
    nameless = np.array([not name and not wnid for name, wnid in zip(reference.names, reference.wnids, strict=True)])
    alike = np.zeros(len(nameless), bool)
    if nameless.any():
        alike[nameless] = named_like_labels(detector, reference.vectors[nameless].astype(np.float32))
    return alike


def pseudo_id(
    detector: Detector, vectors: NDArray[np.float32], wnids: Sequence[str], masses: Array | None = None
) -> Array:
    """What photos of one more label would score: each photo with a label of its own, as broad as the others.

    The label of a photo is a readable name at or above what it shows, the one that has about as many known kinds as
    the detector's labels have on average (of logs), kin of labels apart. Its kinds are positives for that photo and
    compete no longer, nor does what lies above it: `P' = P + sum e^h`, `Q' = Q - sum e^h`, the largest logit likewise.
    None are given where there are too few photos of names that compete, as in a word list of the user's. `masses` are
    those of the vectors (`Grounded.masses`), where they are known already.
    """
    scorer, senses = cast(Grounded, detector.scorer), senses_of_things()
    row = {word: place for place, word in enumerate(detector.wild)}
    rivals = [name for name in rival_names(detector.encoder) if name in row]
    shown = [nouns().wnid(senses[name]) for name in rivals]
    below = below_each_other([senses[name] for name in rivals])
    leaves = below.sum(axis=0) == 1  # a photo that only shows a "building" is none of any kind that is known
    places = {wnid: place for place, wnid in enumerate(shown) if leaves[place]}
    known = np.array([wnid in places for wnid in wnids])
    own = np.array([places[wnid] for wnid in wnids if wnid in places], np.int64)
    if len(own) < PSEUDO:
        return np.zeros(0)
    owners = np.arange(len(detector.rows)) if scorer.owners_ is None else scorer.owners_
    breadth = np.log(np.bincount(owners)).mean()
    label = np.where(below[own], np.abs(np.log(below.sum(axis=0)) - breadth), np.inf).argmin(axis=1)
    words = unit_rows(scorer.wild_[[row[name] for name in rivals]])  # type: ignore[index]
    logits = unit_rows(vectors[known]) @ words.T / scorer.temperature
    own_masses = scorer.masses(vectors[known]) if masses is None else masses[known]
    return np.asarray(scorer.combine(moved(own_masses, logits, below[:, label].T, below[label])))


def below_each_other(senses: Sequence[int]) -> Flags:
    """Whether the i-th sense is the j-th, or lies below it, (n, n)."""
    net, place = nouns(), {sense: at for at, sense in enumerate(senses)}
    found = np.eye(len(senses), dtype=bool)
    for at, sense in enumerate(senses):
        found[at, [place[above] for above in net.above(sense) if above in place]] = True
    return found


def moved(masses: Array, logits: Array, kinds: Flags, above: Flags) -> Array:
    """Log P, log Q and the largest logit, once kinds are labels, and neither they nor what is above them compete."""
    log_p, log_q, peak = masses.T
    own = np.where(kinds, logits, -np.inf)
    gone = log_sum_exp(np.where(kinds | above, logits, -np.inf))
    left = log_q + np.log(np.maximum(-np.expm1(np.minimum(gone - log_q, 0)), np.finfo(float).eps))
    return np.stack([np.logaddexp(log_p, log_sum_exp(own)), left, np.maximum(peak, own.max(axis=1))], axis=1)
