"""One self-contained HTML page of scored images (page.html): no script, no request to anywhere."""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from outword.base.files import whole_file
from outword.base.html import render
from outword.base.prediction import Prediction, cells, in_words, with_kind
from outword.base.terms import IN, OUT
from outword.detector.detector import Detector
from outword.detector.labels_report import LabelReport
from outword.encoders.base import Pixels
from outword.photos.decode import thumbnail
from outword.scoring.rows import Row

_NAMED = 8  # labels that the head of the page names
_CLASSES = 50  # that can be chosen, those with the most photos
_EXPECTED = 50  # labels whose odds are listed, the worst
_BINS = 48
_FINE = 4096  # bins in which scores are counted that are too many to be kept
_Heap = list[tuple[float, int, "Card"]]


@dataclass(frozen=True)
class Card:
    """What the page shows of an image: its row, a thumbnail, JPEG bytes or b"", a remark on its label, the p needed.

    `row["words"]` are pairs of a word and its share, or a text where the row was read from a file.
    """

    row: Row
    thumbnail: bytes = b""
    remark: str = ""
    needed: float | None = None

    @property
    def seen(self) -> tuple[str, str]:
        """What the image is taken for, and in which sense: as a label, or what it looks like, or what is nearest."""
        if self.row["verdict"] == OUT and self.row["looks_like"]:
            return "looks like:", self.row["looks_like"]
        return "as" if self.row["verdict"] == IN else "nearest", self.nearest

    @property
    def nearest(self) -> str:
        """The nearest label, with the kind of it that matched."""
        return with_kind(self.row["nearest"], self.row["kind"])

    @property
    def fits(self) -> str:
        """What p says, and what is needed, in plain words."""
        return in_words(self.row["p"], self.row["basis"], self.needed, self.row["verdict"])


def card_of(detector: Detector, record: Prediction, pixels: Pixels | None = None) -> Card:
    """What the page shows of a record."""
    row = {**cells(record), "words": record.words}
    view = b"" if pixels is None else thumbnail(Image.fromarray(pixels))
    return replace(card_of_row(detector, row), thumbnail=view, needed=record.needed)


def card_of_row(detector: Detector, row: Row) -> Card:
    """What the page shows of a row; the remark says how well the encoder knows the label, where that is shown."""
    card = Card(row, needed=detector.needed)
    if card.seen[1] != card.nearest:
        return card
    return replace(card, remark=detector.coverage.get(row["nearest"], ""))


@dataclass(frozen=True)
class Summary:
    """What the head of the page says about the detector."""

    labels: Sequence[str]  # all of them; the first are named
    encoder: str
    method: str
    threshold: float | None  # the score at which "in" begins; None while the method has none
    calibration: str = ""  # how the threshold was found, such as "95 % of 200 photos"; "" where no photos were seen
    expected: Sequence[LabelReport] = ()  # what to expect of each label, the worst first; empty if it is not known

    @classmethod
    def of(cls, detector: Detector) -> Summary:
        """What there is to say of a detector."""
        how = detector.how_cut if detector.cut else ""
        odds = [one for one in detector.labels_report if one.share is not None]
        worst_first = sorted(odds, key=lambda one: one.share or 0.0)
        return cls(detector.labels, detector.card.encoder.name, detector.method, detector.threshold, how, worst_first)


def histogram(
    scores: Sequence[float] | NDArray[np.float64], times: NDArray[np.int64], threshold: float | None
) -> dict[str, Any]:
    """What page.html draws of scores, each so many times; nothing where none is finite."""
    values = np.asarray(scores, dtype=np.float64)
    values, times = values[np.isfinite(values)], times[np.isfinite(values)]
    if not values.size:
        return {}
    least, most = float(values.min()), float(values.max())
    thresholds = [] if threshold is None or not np.isfinite(threshold) else [threshold]
    low, high = min([least, *thresholds]), max([most, *thresholds])
    high = max(high, low + 1e-9 * (max(abs(low), abs(high)) or 1.0))  # 48 bins need room between floats
    counts, edges = np.histogram(values, bins=_BINS, range=(low, high), weights=times)
    kinds = ["in" if threshold is not None and a + b >= 2 * threshold else "out" for a, b in pairwise(edges)]
    return {
        "bins": _BINS,
        "edges": edges.tolist(),
        "counts": counts.tolist(),
        "heights": np.maximum(100 * counts / counts.max(), 1.5).tolist(),
        "kinds": kinds,
        "thresholds": [(cut, _BINS * (cut - edges[0]) / (edges[-1] - edges[0])) for cut in thresholds],
        "total": int(times.sum()),
        "least": least,
        "most": most,
    }


class _Shown(ABC):
    """The rows that a page shows out of any number, and the first errors; all rows are counted."""

    meaning: ClassVar[Mapping[str, str]]  # of a kind of verdict
    which: ClassVar[str]  # are shown
    best_last: ClassVar[bool]  # whether the best of the second heap end the page, and do not begin their section

    def __init__(self, limit: int, error_limit: int) -> None:
        self.limit = limit
        self.error_limit = error_limit
        self.counts: Counter[str] = Counter()
        self.classes: Counter[str] = Counter()  # how many photos are taken for each label
        self.errors: list[Card] = []
        self._heaps: tuple[_Heap, _Heap] = [], []  # the worst that is kept on top

    def add(self, card: Card) -> None:
        """Count a row, and keep it if it is among those to show so far."""
        if card.row["score"] is not None:
            self.counts[card.row["verdict"]] += 1
            if card.row["label"]:
                self.classes[card.row["label"]] += 1
            self._take(card, card.row["score"])
            return
        self.counts["error"] += 1
        if len(self.errors) < self.error_limit:
            self.errors.append(card)

    def illustrate(self, views: Callable[[list[str]], Mapping[str, bytes]]) -> None:
        """Give the rows that were kept without a thumbnail what `views` makes of their paths."""
        found = views([card.row["path"] for card in self.cards() if not card.thumbnail])
        for kept in self._heaps:
            for place, (key, order, card) in enumerate(kept):
                view = found.get(card.row["path"], card.thumbnail)
                kept[place] = key, order, replace(card, thumbnail=view)

    def cards(self) -> list[Card]:
        """The rows that were kept, in the order in which they are shown, without the errors."""
        ranked = [sorted(heap, key=lambda kept: kept[:2]) for heap in self._heaps]
        last = ranked[1] if self.best_last else ranked[1][::-1]
        return [card for _, _, card in ranked[0][::-1] + last]

    @abstractmethod
    def histogram(self, threshold: float | None) -> dict[str, Any]:
        """How many images have which score."""

    def description(self) -> str:
        """What the page says where it does not show all rows; else ""."""
        shown, total = len(self.cards()), self.counts.total() - self.counts["error"]
        return "" if shown == total else f"Showing {shown:,} of {total:,} scored images: {self.which}."

    @abstractmethod
    def _take(self, card: Card, score: float) -> None:
        """Keep a row, which is counted already, if it is to be shown."""


class Sample(_Shown):
    """The rows with the highest and the lowest scores, and the first errors.

    Rows with equal scores rank in the order in which they were added. All scores are kept for the histogram at 8 bytes
    each; the rest of the memory does not grow.
    """

    meaning: ClassVar[Mapping[str, str]] = {
        "in": "one of the classes, highest score first",
        "out": "none of the classes, highest score first",
        "uncalibrated": "no threshold yet, highest score first",
    }
    which = "those with the highest and those with the lowest scores"
    best_last = True

    def __init__(self, limit: int = 1000, error_limit: int = 100) -> None:
        super().__init__(limit, error_limit)
        self.scores = array("d")

    def histogram(self, threshold: float | None) -> dict[str, Any]:
        """All scores."""
        return histogram(self.scores, np.ones(len(self.scores), dtype=np.int64), threshold)

    def _take(self, card: Card, score: float) -> None:
        self.scores.append(score)
        (highest, lowest), half = self._heaps, self.limit // 2
        # What falls out of the highest is a candidate for the lowest, and what falls out of those is in the middle.
        heapq.heappush(highest, (score, -len(self.scores), card))
        if len(highest) > half:
            score, order, card = heapq.heappop(highest)
            heapq.heappush(lowest, (-score, -order, card))
        if len(lowest) > half:
            heapq.heappop(lowest)


class Borderline(_Shown):
    """The rows nearest to the threshold, on either side of it, and the first errors; all have a verdict, in or out.

    Those are the lowest scores that are in and the highest that are out. Of equal scores the first ones count. Memory
    does not grow with the number of rows.
    """

    meaning: ClassVar[Mapping[str, str]] = {
        "in": "kept, nearest to the threshold first",
        "out": "left out, nearest to the threshold first",
    }
    which = "those nearest to the threshold on either side"
    best_last = False

    def __init__(self, limit: int = 60, error_limit: int = 100) -> None:
        super().__init__(limit, error_limit)
        self.scores = StreamingHistogram()

    def histogram(self, threshold: float | None) -> dict[str, Any]:
        """All scores, in bins that are finer than those that are drawn."""
        return histogram(*self.scores.values(), threshold)

    def _take(self, card: Card, score: float) -> None:
        self.scores.add(score)
        verdict = card.row["verdict"]
        near = self._heaps[(IN, OUT).index(verdict)]
        heapq.heappush(near, (-score if verdict == IN else score, -self.counts[verdict], card))
        if len(near) > self.limit:
            heapq.heappop(near)


class StreamingHistogram:
    """How often there is which score, for any number of them: up to `most` different ones, or else so many bins.

    The width of a bin is a power of two, which grows with what comes in, so that bins only ever merge.

    >>> counted = StreamingHistogram(most=4)
    >>> for score in (0.25, 0.75, 1.5, 2.0, 2.5, 2.5, float("inf")):
    ...     counted.add(score)
    >>> counted.values()
    (array([1., 3.]), array([3, 3]))
    """

    def __init__(self, most: int = _FINE) -> None:
        self.most = most
        self._width = 0.0  # of a bin; 0 while scores are kept as they are
        self._counts: Counter[float] = Counter()  # by the lower end of the bin

    def add(self, score: float) -> None:
        """Count a score, unless it is infinite or no number."""
        if not math.isfinite(score):
            return
        self._counts[self._bin(score)] += 1
        if len(self._counts) > self.most:
            room = max(self._counts) - min(self._counts)
            self._width = 2.0 ** math.ceil(math.log2(2 * room / self.most))
            before, self._counts = self._counts, Counter()
            for low, count in before.items():
                self._counts[self._bin(low)] += count

    def values(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The middles of the bins in rising order, and how many scores each has."""
        lows = sorted(self._counts)
        counts = np.array([self._counts[low] for low in lows], dtype=np.int64)
        return np.array(lows, dtype=np.float64) + self._width / 2, counts

    def _bin(self, score: float) -> float:
        return math.floor(score / self._width) * self._width if self._width else score


def write_page(path: Path, sample: Sample | Borderline, *, title: str, summary: Summary) -> None:
    """Write the page of a sample of scored images to `path`; the file appears whole or not at all."""
    classes = sample.classes.most_common(_CLASSES) if len(summary.labels) > 1 else []
    page = render(
        "scoring/page.html",
        classes=classes,
        places={label: place for place, (label, _) in enumerate(classes)},
        expected=_EXPECTED,
        title=title,
        summary=summary,
        named=_NAMED,
        sample=sample,
        histogram=sample.histogram(summary.threshold),
        sections=[(kind, list(group)) for kind, group in groupby(sample.cards(), key=lambda card: card.row["verdict"])],
    )
    with whole_file(Path(path)) as temporary:
        temporary.write_text(page, encoding="utf-8")
