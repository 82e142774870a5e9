"""The rows of a fitted method's label vectors: which label each belongs to, and which kind of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outword.base.prediction import with_kind
from outword.maths.kernels.evidence import Evidence
from outword.words.kinds import Meaning


@dataclass(frozen=True, eq=False)
class LabelRows:
    """What each row of label vectors stands for.

    Attributes:
        labels: the labels.
        owners: the label of each row.
        kinds: the name of each row that is a kind; "" for a label's own names.
    """

    labels: Sequence[str]
    owners: Sequence[int]
    kinds: Sequence[str]

    def name(self, row: int) -> str:
        """The label of a row, with the kind of it: `dog (beagle)`."""
        return with_kind(self.labels[self.owners[row]], self.kinds[row])

    def kinds_of(self, evidence: Evidence) -> list[str]:
        """The kind of the nearest label that matched, of each image; "" where it is the label itself."""
        if not evidence.labels.shape[1]:
            return [""] * len(evidence.labels)
        return [self.kinds[row] for row in evidence.kinds[:, 0].tolist()]


def label_rows(
    labels: Sequence[str], rows: Sequence[str], owners: NDArray[np.int64] | None, meanings: Sequence[Meaning]
) -> LabelRows:
    """What the rows stand for, which are called `rows`; without `owners` each is a label."""
    if owners is None:
        return LabelRows(labels, range(len(rows)), [""] * len(rows))
    own = [{meaning.label, *meaning.names} for meaning in meanings]
    kinds = ["" if name in own[label] else name for name, label in zip(rows, owners.tolist(), strict=True)]
    return LabelRows(labels, owners.tolist(), kinds)
