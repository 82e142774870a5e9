"""One self-contained HTML page of scored images: no script, no request to anywhere, everything escaped."""

from __future__ import annotations

import base64
import heapq
import html
import math
from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from itertools import groupby, pairwise
from pathlib import Path
from string import Template
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from outword.base.files import whole_file

_BINS = 48
_FINE = 4096  # bins in which scores are counted that are too many to be kept
_Heap = list[tuple[float, int, "PageRow"]]


@dataclass(frozen=True)
class PageRow:
    """One image on the page.

    Attributes:
        path: its name; anything may be in it.
        score: higher means more in-distribution; None for an image that could not be scored.
        verdict: begins with "in" or "out", such as "in (uncalibrated)".
        label: the nearest label.
        words: the wild words that fired, each with its share, 0 to 1.
        error: why it could not be scored, else "".
        thumbnail: JPEG bytes, or b"".
        note: a remark on the label, such as its coverage flag.
    """

    path: str
    score: float | None
    verdict: str
    label: str
    words: Sequence[tuple[str, float]]
    error: str
    thumbnail: bytes
    note: str = ""


@dataclass(frozen=True)
class Summary:
    """What the head of the page says about the detector.

    Attributes:
        labels: how many labels it has.
        encoder: name of the encoder.
        method: name of the method.
        threshold: the score at which "in" begins; None while the method has none.
        calibration: how the threshold was found, such as "95 % of 200 photos"; "" where it was not calibrated.
    """

    labels: int
    encoder: str
    method: str
    threshold: float | None
    calibration: str = ""


class _Shown(ABC):
    """The rows that a page shows out of any number, and the first errors; all rows are counted."""

    meaning: ClassVar[Mapping[str, str]]  # of a kind of verdict

    def __init__(self, error_limit: int) -> None:
        self.error_limit = error_limit
        self.counts: Counter[str] = Counter()
        self.errors: list[PageRow] = []

    def add(self, row: PageRow) -> None:
        """Count a row, and keep it if it is among those to show so far."""
        if row.score is not None:
            self.counts[_kind(row)] += 1
            self._take(row, row.score)
            return
        self.counts["error"] += 1
        if len(self.errors) < self.error_limit:
            self.errors.append(row)

    def illustrate(self, views: Callable[[list[str]], Mapping[str, bytes]]) -> None:
        """Give the rows that were kept without a thumbnail what `views` makes of their paths."""
        found = views([row.path for row in self.rows() if not row.thumbnail])
        for kept in self._heaps():
            kept[:] = [(key, order, replace(r, thumbnail=found.get(r.path, r.thumbnail))) for key, order, r in kept]

    @abstractmethod
    def rows(self) -> list[PageRow]:
        """The rows that were kept, in the order in which they are shown, without the errors."""

    @abstractmethod
    def histogram(self, threshold: float | None) -> str:
        """How many images have which score, as SVG."""

    @abstractmethod
    def told(self) -> str:
        """What the page says where it does not show all rows; else ""."""

    @abstractmethod
    def _take(self, row: PageRow, score: float) -> None:
        """Keep a row, which is counted already, if it is to be shown."""

    @abstractmethod
    def _heaps(self) -> Iterable[_Heap]:
        """Where the rows are kept."""


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

    def __init__(self, limit: int = 1000, error_limit: int = 100) -> None:
        super().__init__(error_limit)
        self.limit = limit
        self.scores = array("d")
        self._highest: _Heap = []
        self._lowest: _Heap = []

    def rows(self) -> list[PageRow]:
        """The rows that were kept, highest score first, without the errors."""
        high = sorted(self._highest, key=lambda kept: kept[:2], reverse=True)
        low = sorted(self._lowest, key=lambda kept: kept[:2])
        return [row for _, _, row in high + low]

    def histogram(self, threshold: float | None) -> str:
        """All scores."""
        return _histogram(self.scores, np.ones(len(self.scores), dtype=np.int64), threshold)

    def told(self) -> str:
        """How many images are shown."""
        shown, total = len(self.rows()), len(self.scores)
        if shown == total:
            return ""
        return f"Showing {shown:,} of {total:,} scored images: those with the highest and those with the lowest scores."

    def _take(self, row: PageRow, score: float) -> None:
        self.scores.append(score)
        half = self.limit // 2
        # What falls out of the highest is a candidate for the lowest, and what falls out of those is in the middle.
        heapq.heappush(self._highest, (score, -len(self.scores), row))
        if len(self._highest) > half:
            score, order, row = heapq.heappop(self._highest)
            heapq.heappush(self._lowest, (-score, -order, row))
        if len(self._lowest) > half:
            heapq.heappop(self._lowest)

    def _heaps(self) -> Iterable[_Heap]:
        return self._highest, self._lowest


class Borderline(_Shown):
    """The rows nearest to the threshold, on either side of it, and the first errors; all have a verdict, in or out.

    Those are the lowest scores that are in and the highest that are out. Of equal scores the first ones count. Memory
    does not grow with the number of rows.
    """

    meaning: ClassVar[Mapping[str, str]] = {
        "in": "kept, nearest to the threshold first",
        "out": "left out, nearest to the threshold first",
    }

    def __init__(self, limit: int = 60, error_limit: int = 100) -> None:
        super().__init__(error_limit)
        self.limit = limit
        self.spread = Spread()
        self._near: dict[str, _Heap] = {"in": [], "out": []}

    def rows(self) -> list[PageRow]:
        """What is in, then what is out, each nearest to the threshold first."""
        ranked = (sorted(near, key=lambda kept: kept[:2], reverse=True) for near in self._near.values())
        return [row for near in ranked for _, _, row in near]

    def histogram(self, threshold: float | None) -> str:
        """All scores, in bins that are finer than those that are drawn."""
        return _histogram(*self.spread.values(), threshold)

    def told(self) -> str:
        """How many images are shown."""
        shown, total = len(self.rows()), self.counts["in"] + self.counts["out"]
        if shown == total:
            return ""
        return f"Showing {shown:,} of {total:,} scored images: those nearest to the threshold on either side."

    def _take(self, row: PageRow, score: float) -> None:
        self.spread.add(score)
        kind = _kind(row)
        near = self._near[kind]
        heapq.heappush(near, (-score if kind == "in" else score, -self.counts[kind], row))
        if len(near) > self.limit:
            heapq.heappop(near)

    def _heaps(self) -> Iterable[_Heap]:
        return self._near.values()


class Spread:
    """How often there is which score, for any number of them: up to `most` different ones, or else so many bins.

    The width of a bin is a power of two, which grows with what comes in, so that bins only ever merge.

    >>> spread = Spread(most=4)
    >>> for score in (0.25, 0.75, 1.5, 2.0, 2.5, 2.5, float("inf")):
    ...     spread.add(score)
    >>> spread.values()
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
    template = Template(resources.files("outword.scoring").joinpath("page.html").read_text(encoding="utf-8"))
    sections = (_section(kind, list(group), sample) for kind, group in groupby(sample.rows(), key=_kind))
    told = sample.told()
    page = template.substitute(
        title=escape(title),
        style=shared_style(),
        facts=_facts(summary),
        notice="" if summary.calibration else _NOTICE,
        tallies=_tallies(sample.counts),
        histogram=sample.histogram(summary.threshold),
        shown=f"<p>{told}</p>" if told else "",
        sections="\n".join(sections),
        errors=_errors(sample.errors, sample.counts["error"]),
    )
    with whole_file(Path(path)) as temporary:
        temporary.write_text(page, encoding="utf-8")


def shared_style() -> str:
    """The style that all pages have in common, to be put into one that stands alone."""
    return resources.files("outword.scoring").joinpath("style.css").read_text(encoding="utf-8").rstrip()


_NOTICE = (
    '<p class="notice" role="note"><b>uncalibrated</b>: no threshold was fitted to photos. If there is one, it is the '
    "score's natural cut, classes against wild words. With a few photos of your classes, "
    "<code>outword calibrate DETECTOR PHOTOS...</code> fits it.</p>"
)


def _kind(row: PageRow) -> str:
    """The first word of the verdict: "in" or "out"."""
    return row.verdict.split(" ")[0]


def escape(text: str) -> str:
    """Escape for HTML, inside quotes too; control, bidirectional and undecodable characters become visible escapes."""
    return html.escape(visible(text), quote=True)


def visible(text: str) -> str:
    """A text in one line, with what cannot be seen or encoded as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def score_text(value: float) -> str:
    """A score in a few digits."""
    return f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e4 else f"{value:.3g}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def _facts(summary: Summary) -> str:
    found = summary.calibration or "uncalibrated"
    facts = {
        "labels": f"{summary.labels:,}",
        "encoder": summary.encoder,
        "method": summary.method,
        "threshold": f"{'none' if summary.threshold is None else score_text(summary.threshold)} ({found})",
    }
    return "".join(f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())


def _tallies(counts: Counter[str]) -> str:
    words = {"in": "in", "out": "out", "uncalibrated": "without a verdict", "error": "errors"}
    return "".join(
        f'<li><a class="{kind}" href="#{kind}"><b>{counts[kind]:,}</b> {word}</a></li>'
        for kind, word in words.items()
        if counts[kind]
    )


def _histogram(scores: Sequence[float] | NDArray[np.float64], times: NDArray[np.int64], threshold: float | None) -> str:
    """Draw how many images have which score, as inline SVG with the threshold, if there is one, as a dashed line."""
    values = np.asarray(scores, dtype=np.float64)
    values, times = values[np.isfinite(values)], times[np.isfinite(values)]
    if not values.size:
        return ""
    least, most = float(values.min()), float(values.max())
    cuts = [] if threshold is None or not np.isfinite(threshold) else [threshold]
    low, high = min([least, *cuts]), max([most, *cuts])
    high = max(high, low + 1e-9 * (max(abs(low), abs(high)) or 1.0))  # 48 bins need room between floats
    counts, edges = np.histogram(values, bins=_BINS, range=(low, high), weights=times)
    kinds = ["in" if threshold is not None and a + b >= 2 * threshold else "out" for a, b in pairwise(edges)]
    bars = "".join(_bar(place, counts, edges, kinds[place]) for place in np.flatnonzero(counts).tolist())
    places = [_BINS * (cut - edges[0]) / (edges[-1] - edges[0]) for cut in cuts]
    lines = "".join(f'<line x1="{x:.3f}" x2="{x:.3f}" y1="-6" y2="100"/>' for x in places)
    told = "".join(
        f" The dashed line is the threshold, {score_text(cut)}: out on its left, in on its right." for cut in cuts
    )
    return (
        f'<figure class="histogram"><figcaption>Images by score.{told}</figcaption>'
        f'<svg viewBox="0 0 {_BINS} 100" preserveAspectRatio="none" role="img" aria-label="Histogram of '
        f'{times.sum():,} scores from {score_text(least)} to {score_text(most)}">{bars}{lines}</svg>'
        f"<p><span>{score_text(edges[0])}</span><span>{score_text(edges[-1])}</span></p></figure>"
    )


def _bar(place: int, counts: NDArray[np.intp], edges: NDArray[np.float64], kind: str) -> str:
    height = max(100 * counts[place] / counts.max(), 1.5)
    return (
        f'<rect class="{kind}" x="{place + 0.06}" y="{100 - height:.1f}" width="0.88" height="{height:.1f}">'
        f"<title>{score_text(edges[place])} to {score_text(edges[place + 1])}: {counts[place]:,}</title></rect>"
    )


def _section(kind: str, rows: list[PageRow], sample: _Shown) -> str:
    total = sample.counts[kind]
    number = f"{len(rows):,}" if len(rows) == total else f"{len(rows):,} of {total:,}"
    cards = "\n".join(_card(row) for row in rows)
    return (
        f'<section><h2 id="{escape(kind)}"><span class="{escape(kind)}">{escape(kind.capitalize())} ({number})</span> '
        f'<small>{sample.meaning.get(kind, "")}</small></h2>\n<ol class="cards">\n{cards}\n</ol></section>'
    )


def _card(row: PageRow) -> str:
    kind = _kind(row)
    remark = row.verdict.removeprefix(kind).strip()
    note = f" <small>({escape(row.note)})</small>" if row.note else ""
    score = "" if row.score is None else score_text(row.score)
    return (
        f'<li class="card"><div class="photo">{photo(row.path, row.thumbnail)}</div><div class="text">'
        f'<p class="verdict"><b class="{escape(kind)}">{escape(kind)}</b> <span>{score}</span> '
        f"<small>{escape(remark)}</small></p>"
        f'<p class="label"><small>nearest</small> {escape(row.label)}{note}</p>{wild_words(row.words)}'
        f'<p class="name">{escape(row.path)}</p></div></li>'
    )


def photo(path: str, jpeg: bytes) -> str:
    """An image that is part of the page; "" of no bytes."""
    if not jpeg:
        return ""
    data = base64.b64encode(jpeg).decode("ascii")
    return f'<img alt="{escape(path)}" loading="lazy" src="data:image/jpeg;base64,{data}">'


def wild_words(words: Sequence[tuple[str, float]]) -> str:
    """The words that fired as a list with bars; "" of none."""
    items = "".join(
        f"<li><span>{escape(word)}</span><span>{_percent(share)}</span>"
        f'<i style="width:{100 * min(max(share, 0.0), 1.0):.1f}%"></i></li>'
        for word, share in words
    )
    return f'<p class="wild">wild words that fired</p><ul class="words">{items}</ul>' if items else ""


def _errors(rows: list[PageRow], total: int) -> str:
    if not rows:
        return ""
    number = f"{total:,}" if len(rows) == total else f"the first {len(rows):,} of {total:,}"
    items = "\n".join(f"<li><code>{escape(row.path)}</code> {escape(row.error)}</li>" for row in rows)
    return (
        f'<section><h2 id="error"><span class="error">Errors ({number})</span> <small>could not be read</small></h2>\n'
        f'<ul class="errors">\n{items}\n</ul></section>'
    )
