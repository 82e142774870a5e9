"""The thresholds of a detector: fitted to photos of the classes, or estimated from photos of other things."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from outword.base.odds import Odds
from outword.base.terms import Basis
from outword.maths.imagined import Sight
from outword.maths.numerics import Array
from outword.maths.reference import p_values
from outword.maths.thresholds import Threshold


@dataclass(frozen=True, eq=False)
class Thresholds:
    """What is known of where to cut, and the scores that it is known from; see `estimated_thresholds`.

    Attributes:
        calibrated: fitted to photos of the user's, or set by hand; it goes before the other.
        estimated: from photos of other things, those of a reference or those that are judged.
        reference_scores: what photos of a reference score that show none of the labels, sorted, (n,).
        alike_scores: what those score that look like a label and have no name, sorted; they may show one or not.
        imagined_scores: what imagined unrelated photos score, sorted, where the estimated threshold is imagined.
        sight: how the encoder sees, where the estimated threshold is imagined.
        odds: which share of each label's photos the estimated threshold is expected to let in; empty if not known.
    """

    calibrated: Threshold | None = None
    estimated: Threshold | None = None
    reference_scores: Array | None = None
    alike_scores: Array | None = None
    imagined_scores: Array | None = None
    sight: Sight | None = None
    odds: tuple[Odds, ...] = ()

    @property
    def chosen(self) -> Threshold | None:
        """The threshold that verdicts rest on; None if no photos were seen."""
        return self.calibrated or self.estimated

    @property
    def basis(self) -> Basis:
        """What the threshold rests on: "calibrated", "reference", "imagined", "batch", or "formula"."""
        return self.chosen.basis if self.chosen else "formula"

    def describe(self, natural: float | None) -> str:
        """How the threshold was found, in words; `natural` is the method's own, if it has one."""
        if self.chosen:
            return f"{self.chosen.told}{self._alike_counted}"
        return "no threshold yet" if natural is None else "the score's natural cut, not fitted to any photos"

    @property
    def _alike_counted(self) -> str:
        """Whether photos that look like a label and have no name were counted in the threshold."""
        if self.alike_scores is None or self.reference_scores is None or self.chosen is None:
            return ""
        if self.basis != "reference":
            return ""
        how = "with" if self.chosen.n_reference > len(self.reference_scores) else "apart from"
        return f", {how} {len(self.alike_scores):,} without names that look like the labels"

    @property
    def counted_scores(self) -> Array | None:
        """The scores that p-values count, sorted, (n,); None without a reference.

        Imagined ones count while the threshold is imagined: p is then a model's (docs/imagined.md).
        """
        if self.basis == "imagined":
            return self.imagined_scores
        if self.reference_scores is None or self.alike_scores is None:
            return self.reference_scores
        return np.sort(np.concatenate([self.reference_scores, self.alike_scores]))

    def p_values(self, scores: ArrayLike) -> Array | None:
        """The share of unrelated photos that score as high as each, (n_images,); None without a reference.

        See `outword.maths.reference.p_values` for what that promises. Photos of the reference that look like a label
        and have no name are counted as unrelated, so p may be too large and is not too small.
        """
        known = self.counted_scores
        return None if known is None or self.chosen is None else p_values(scores, known)


def estimated_thresholds(
    estimated: Threshold | None,
    reference_scores: ArrayLike | None = None,
    alike_scores: ArrayLike | None = None,
    calibrated: Threshold | None = None,
) -> Thresholds:
    """Thresholds with one from photos that show none of the labels, and what such photos score by the whole method."""
    return Thresholds(calibrated, estimated, _sorted(reference_scores), _sorted(alike_scores))


def _sorted(scores: ArrayLike | None) -> Array | None:
    """Scores in order; None where there are none."""
    found = np.zeros(0) if scores is None else np.sort(np.asarray(scores, dtype=np.float64))
    return found if len(found) else None
