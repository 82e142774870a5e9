"""The odds of labels by what was measured of names like them, for encoders that have such figures and a reference."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from outword.base.odds import Odds
from outword.base.terms import familiarity
from outword.encoders import Encoder
from outword.maths.methods.grounded import Grounded
from outword.maths.numerics import Array, unit_rows
from outword.vectors.names import name_vectors, rival_names
from outword.words.prompts import get_prompts

if TYPE_CHECKING:
    from outword.detector.detector import Detector

CORPUS = "wordnet"


def with_measured_odds(detector: Detector, encoder: Encoder) -> Detector:
    """The detector with the odds of its labels; as it is where they were not measured for what it is made of.

    They were for the defaults of `fit`: the method `grounded`, the cut that a reference gives by itself, the kinds that
    the encoder knows, the corpus WordNet and the templates of the encoder.
    """
    cut, scorer = detector.thresholds.estimated, detector.scorer
    if cut is None or cut.basis != "reference" or not isinstance(scorer, Grounded) or not _is_plain(detector, encoder):
        return detector
    told = measured_odds(encoder, detector, cut.value)
    return replace(detector, thresholds=replace(detector.thresholds, odds=told))


def _is_plain(detector: Detector, encoder: Encoder) -> bool:
    """Whether a detector was made with the defaults that odds were measured with."""
    card = detector.card
    plain_words = card.corpus is not None and card.corpus.name == CORPUS and card.prompts.name == encoder.prompts
    return plain_words and card.kinds == "auto" and card.fpr is None and detector.scorer.params().get("b") == 1


def measured_odds(encoder: Encoder, detector: Detector, cut: float) -> tuple[Odds, ...]:
    """The odds of labels at a cut; none where the encoder has no measured ones, or cannot tell what it knows.

    A label whose kinds were typed by hand has none: that the encoder knows these says nothing of photos of the label.
    """
    labels, coverage = detector.labels, detector.coverage
    if encoder.odds is None or not coverage:
        return ()
    cosines = cosines_to_known(encoder, detector).tolist()
    pairs = zip(labels, cosines, strict=True)
    by_hand = {meaning.label for meaning in detector.card.meanings if meaning.by_hand}
    shares = {label: encoder.odds.share(familiarity(coverage[label]), cosine, cut) for label, cosine in pairs}
    return tuple(Odds(label, share) for label, share in shares.items() if label not in by_hand)


def cosines_to_known(encoder: Encoder, detector: Detector) -> Array:
    """The largest cosine of a name of each label, or of a kind of it, to a name that the encoder knows, (n_labels,)."""
    known = name_vectors(encoder, get_prompts(encoder.prompts), rival_names(encoder))
    scorer = detector.scorer
    cosines = (unit_rows(scorer.labels_) @ unit_rows(known).T).max(axis=1)
    if scorer.owners_ is None:
        return np.asarray(cosines)
    found = np.full(len(detector.labels), -1.0)
    np.maximum.at(found, scorer.owners_, cosines)
    return found
