"""A detector as its files have it: see `outword.detector.artifact`, and `outword.detector.loading` for the way back."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from outword.detector import artifact
from outword.maths.thresholds import Threshold

if TYPE_CHECKING:
    from outword.detector.detector import Detector

FITTED_ON, REFERENCE, VOCABULARY = "fitted_on", "reference_scores", "vocabulary"  # arrays that are not the method's
ALIKE, IMAGINED = "alike_scores", "imagined_scores"  # nor these


def saved_form(detector: Detector) -> artifact.Saved:
    """What the files of a detector hold."""
    thresholds, arrays = detector.thresholds, detector.scorer.state()
    if detector.fitted_on is not None and len(detector.fitted_on):
        arrays[FITTED_ON] = detector.fitted_on
    if thresholds.reference_scores is not None:
        arrays[REFERENCE] = thresholds.reference_scores
    if thresholds.alike_scores is not None:
        arrays[ALIKE] = thresholds.alike_scores
    if thresholds.imagined_scores is not None:
        arrays[IMAGINED] = thresholds.imagined_scores
    names: list[str] = []
    if detector.vocabulary is not None:
        arrays[VOCABULARY] = detector.vocabulary.vectors
        names = list(detector.vocabulary.names)
    cuts: dict[str, object] = {"calibration": _table(thresholds.calibrated), "cut": _table(thresholds.estimated)}
    if thresholds.sight is not None:
        cuts["sight"] = asdict(thresholds.sight)
    if thresholds.odds:
        cuts["odds"] = {one.label: one.share for one in thresholds.odds}
    card = {**detector.card.as_json(), **cuts}
    return artifact.Saved(card, arrays, detector.labels, detector.wild, detector.rows, names)


def zipped(detector: Detector, folder: str = "detector.outword") -> bytes:
    """The folder that `Detector.save` writes, under this name in a zip file."""
    return artifact.zipped(saved_form(detector), folder)


def _table(threshold: Threshold | None) -> dict[str, object] | None:
    if threshold is None:
        return None
    table = artifact.finite(asdict(threshold))
    if not threshold.n_asked:  # so detectors from before there was this have the same fingerprint
        del table["n_asked"]
    return table
