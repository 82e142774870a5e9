"""What verbs print of photos for people: a table of the best and the worst."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from outword.base.prediction import Prediction, better_than
from outword.base.terms import IN
from outword.cli.progress import print_table

if TYPE_CHECKING:
    from outword.detector.detector import Detector
    from outword.scoring.page import Card

SHOWN = 40  # photos of a table: half of them with the highest scores, half with the lowest
ERRORS = 10
COLOURS = {"in": "green", "out": "red", "error": "yellow"}
Cells = tuple[str, str, str, str, str]


class PhotoTable:
    """The photos that fit best and those that fit worst, as a table on stdout; memory does not grow with their number.

    It is called with each record.
    """

    def __init__(self, detector: Detector, shown: int = SHOWN) -> None:
        from outword.scoring.page import Sample

        self._detector = detector
        self._sample = Sample(shown, ERRORS)
        self._needed: float | None = None
        self._threshold: float | None = None

    def __call__(self, record: Prediction) -> None:
        """Take a photo."""
        from outword.scoring.page import card_of

        self._sample.add(card_of(self._detector, record))
        if not record.error:
            self._needed, self._threshold = record.needed, record.threshold

    def close(self) -> None:
        """Print the table, if there was any photo."""
        rows = list(self._rows())
        titles = (
            "photo",
            "verdict",
            "nearest label",
            "looks like",
            "score" if self._needed is None else "fits better than",
        )
        if rows:
            print_table(titles, rows, colour=_colour)

    def _rows(self) -> Iterator[Cells]:
        cards, counts = self._sample.cards(), self._sample.counts
        left_out = counts.total() - counts["error"] - len(cards)
        middle = self._sample.limit // 2 if left_out else len(cards)
        n_in = sum(card.row["verdict"] == IN for card in cards)
        for place, card in enumerate(cards):
            if place == middle:
                yield f"... and {left_out:,} more", "", "", "", ""
            if place == n_in:
                yield from self._line()
            yield self._cells(card)
        if n_in == len(cards):
            yield from self._line()
        for card in self._sample.errors:
            yield card.row["path"], "error", "", card.row["error"], ""
        if more := counts["error"] - len(self._sample.errors):
            yield f"... and {more:,} more", "error", "", "", ""

    def _line(self) -> Iterator[Cells]:
        """Between what is in and what is out: what it takes to be in, where that is known."""
        if self._needed is not None:
            yield "needed to be in:", "", "", "", better_than(self._needed)
        elif self._threshold is not None:
            yield "needed to be in:", "", "", "", f"{self._threshold:.4g}"

    def _cells(self, card: Card) -> Cells:
        row = card.row
        fits = f"{row['score']:.4g}" if self._needed is None else better_than(row["p"])
        return row["path"], row["verdict"], card.nearest, row["looks_like"], fits


def _colour(title: str, cell: str) -> str | None:
    return COLOURS.get(cell) if title == "verdict" else None
