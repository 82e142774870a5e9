"""An audit of a detector's wild words: those that are closest to a label may be positives."""

from __future__ import annotations

import numpy as np

from outword.detector.detector import Detector
from outword.maths.numerics import unit_rows


def audit(detector: Detector, top: int = 20) -> list[tuple[str, str, float]]:
    """Mined words closest to an ID label, as (word, label, cosine): likely positives among the wild words.

    A label has its kind beside it, where that is what the word is closest to. Without words there are none.
    """
    labels, wild = detector.scorer.labels_, detector.scorer.wild_
    if wild is None:
        return []
    cosines = unit_rows(wild) @ unit_rows(labels).T
    nearest, closest = cosines.argmax(axis=1), cosines.max(axis=1)
    order = np.argsort(-closest, kind="stable")[:top]
    return [(detector.wild[i], detector.label_rows.name(nearest[i]), float(closest[i])) for i in order]
