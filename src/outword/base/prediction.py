"""What is said of one photo, and the table of its columns: all other forms of it are made from the two.

A column is a field of `Prediction`, which says how its values are written. Files of rows (`outword.scoring.rows`),
pandas and notebooks (`outword.detector.predictions`), the service (`outword.serve.schemas`) and its page follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import partial
from operator import attrgetter
from typing import Any, Literal

from outword.base.cells import rounded_below
from outword.base.terms import IN, OUT, UNCALIBRATED, Basis, VerdictName

Shares = tuple[tuple[str, float], ...]  # names and their shares, the largest first
Cell = str | float | None


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Form:
    """How the values of a column are written, step by step.

    Attributes:
        name: what the page of the service calls the form (`serve/static/exports.js`).
        json: makes JSON of a value, for the answers of the service.
        read: makes the value of that again.
        row: makes of that what a line of JSON has.
        flat: makes of that one text or number, for CSV, Parquet, pandas and notebooks.
    """

    name: str
    json: Callable[[Any], Any] = _same
    read: Callable[[Any], Any] = _same
    row: Callable[[Any], Any] = _same
    flat: Callable[[Any], Cell] = _same


def _chained(*steps: Callable[[Any], Any]) -> Callable[[Any], Any] | None:
    """One step after the other; None where there is nothing to do."""
    found = None
    for step in steps:
        if step is not _same:
            found = step if found is None else partial(_one_after, found, step)
    return found


def _one_after(first: Callable[[Any], Any], second: Callable[[Any], Any], value: Any) -> Any:
    return second(first(value))


@dataclass(frozen=True)
class Column:
    """A line of the table: a field of `Prediction`."""

    name: str
    form: Form
    about: str
    in_table: bool

    def json(self, record: Prediction) -> Any:
        """The value of a record as JSON has it."""
        return self.form.json(getattr(record, self.name))

    @property
    def row(self) -> Callable[[Any], Any] | None:
        """What makes what a line of JSON has of a value of this column; None where that is the value itself."""
        return _chained(self.form.json, self.form.row)

    @property
    def flat(self) -> Callable[[Any], Cell] | None:
        """What makes one text or number of a value of this column; None where that is the value itself."""
        return _chained(self.form.json, self.form.row, self.form.flat)


def finite_or_none(number: float | None) -> float | None:
    """A number as JSON can have it, which has no infinity: None for a threshold that accepts everything."""
    return None if number is None or math.isinf(number) else number


def _best(names: Sequence[str]) -> str:
    """The first of names that are in order, or "".

    >>> _best(["maze", "gate"]), _best([])
    ('maze', '')
    """
    return names[0] if names else ""


def _shares(key: str) -> Form:
    """Names and their shares, the names under this key."""

    def json(pairs: Shares) -> list[dict[str, Any]]:
        return [{key: name, "share": share} for name, share in pairs]

    def read(listed: Sequence[Mapping[str, Any]]) -> Shares:
        return tuple((one[key], one["share"]) for one in listed)

    def flat(listed: Sequence[Mapping[str, Any]]) -> str:
        return "; ".join(f"{one[key]} {one['share']:.2f}" for one in listed)

    return Form("shares", json, read, flat=flat)


TEXT = Form("text")
NUMBER = Form("number", finite_or_none)
TEXTS = Form("texts", list, tuple, flat="; ".join)
BEST = Form("best", list, tuple, row=_best)  # names in order, of which a row has the first
LABELS, WORDS = _shares("label"), _shares("word")


def _column(form: Form, about: str, *, in_table: bool = True) -> dict[str, Any]:
    """What a field says of itself; what is not in the table is in Python and in answers of the service alone."""
    return {"form": form, "about": about, "in_table": in_table}


@dataclass(frozen=True)
class Prediction:
    """What is said of one photo. With an `error` the rest but the path is empty.

    Its fields are the columns of the table, in order, but for `needed` and `labels`, which are in no table.

    Attributes:
        path: of the photo, or its place in the list, such as `photos[3]`.
        verdict: "in" or "out"; "uncalibrated" where there is no threshold.
        label: the label that the photo is taken for; "" where it is out.
        kind: the kind of the nearest label that matched; "" where that is the label itself.
        nearest: the nearest label, whatever the verdict is.
        score: higher means more in-distribution.
        threshold: the score from which on a photo is in; None where there is none.
        p: the share of unrelated photos that score as high (`outword.maths.reference.p_values`); None if not known.
        needed: the p of a photo whose score is the threshold, hence the largest that is in; None if not known.
        basis: what the threshold rests on: "calibrated", "reference", "imagined", "batch" or "formula".
        looks_like: plain names of what the photo looks like, best first; they decide nothing.
        labels: the nearest labels, with their shares.
        words: the wild words that fired, or words named for this photo, with their shares.
        notes: on the quality of the photo, such as "blurred"; "the same as" an earlier photo is the last.
        error: why the photo could not be read or scored.
    """

    path: str = field(metadata=_column(TEXT, "Of the photo, or its place in the list."))
    _: KW_ONLY
    verdict: VerdictName | Literal[""] = field(
        default="", metadata=_column(TEXT, '"in" or "out"; "uncalibrated" where there is no threshold.')
    )
    label: str = field(default="", metadata=_column(TEXT, "What it is taken for; empty where it is out."))
    kind: str = field(
        default="",
        metadata=_column(TEXT, "The kind of the nearest label that matched; empty for the label itself."),
    )
    nearest: str = field(default="", metadata=_column(TEXT, "The nearest label, whatever the verdict is."))
    score: float | None = field(
        default=None, metadata=_column(NUMBER, "Higher means more in-distribution; null if it could not be read.")
    )
    threshold: float | None = field(
        default=None, metadata=_column(NUMBER, "In from this score on; null if there is none.")
    )
    p: float | None = field(
        default=None, metadata=_column(NUMBER, "The share of unrelated photos that score as high, if it is known.")
    )
    needed: float | None = field(
        default=None, metadata=_column(NUMBER, "The largest p that is in, if it is known.", in_table=False)
    )
    basis: Basis | Literal[""] = field(
        default="",
        metadata=_column(TEXT, 'Of the threshold: "calibrated", "reference", "imagined", "batch" or "formula".'),
    )
    looks_like: tuple[str, ...] = field(
        default=(), metadata=_column(BEST, "Readable names, best first; they decide nothing.")
    )
    labels: Shares = field(default=(), metadata=_column(LABELS, "The nearest, with their shares.", in_table=False))
    words: Shares = field(default=(), metadata=_column(WORDS, "Wild words that fired."))
    notes: tuple[str, ...] = field(
        default=(),
        metadata=_column(TEXTS, "Of its quality, or that it is the same as another; they decide nothing."),
    )
    error: str = field(default="", metadata=_column(TEXT, "Why it could not be read, else empty."))

    @property
    def named(self) -> str:
        """The nearest label with the kind that matched: `dog (beagle)`."""
        return with_kind(self.nearest, self.kind)

    @property
    def fits(self) -> str:
        """What p says, and what is needed to be in, in plain words; "" where there is no p."""
        return in_words(self.p, self.basis, self.needed, self.verdict)

    @property
    def why(self) -> str:
        """What speaks for the verdict, in plain words: what the photo is taken for, and how well it fits; or the error.

        >>> Prediction("a.jpg", verdict="in", nearest="dog", kind="beagle", p=0.004, needed=0.021).why
        'as dog (beagle), fits better than 99.6 % of unrelated photos; 97.9 % are needed'
        """
        if self.error:
            return self.error
        other = f"looks like {self.looks_like[0]}" if self.looks_like else f"nearest to {self.named}"
        seen = f"as {self.named}" if self.verdict == IN else other
        return ", ".join(filter(None, [seen, self.fits]))

    @property
    def told(self) -> str:
        """The verdict with what speaks for it.

        >>> Prediction("a.jpg", verdict="out", nearest="dog", basis="formula", looks_like=("maze",)).told
        'out (uncalibrated), looks like maze'
        """
        unsure = self.basis == "formula" and self.verdict != UNCALIBRATED
        return f"{self.verdict or 'error'}{f' ({UNCALIBRATED})' if unsure else ''}, {self.why}"


FIELDS = tuple(Column(one.name, **one.metadata) for one in fields(Prediction))
COLUMNS = tuple(column for column in FIELDS if column.in_table)  # of all tables: in files, Python and on the page
HEADER = [column.name for column in COLUMNS]
_values = attrgetter(*HEADER)
_ROW = [column.row for column in COLUMNS]
_FLAT = [column.flat for column in COLUMNS]


def cells(record: Prediction) -> dict[str, Cell]:
    """The columns of a table.

    >>> cells(Prediction("a.jpg", words=(("raccoon", 0.412), ("coati", 0.2))))["words"]
    'raccoon 0.41; coati 0.20'
    """
    return _made(record, _FLAT)


def json_cells(record: Prediction) -> dict[str, Any]:
    """The same for a line of JSON, which may have lists.

    >>> json_cells(Prediction("a.jpg", words=(("raccoon", 0.412),)))["words"]
    [{'word': 'raccoon', 'share': 0.412}]
    """
    return _made(record, _ROW)


def _made(record: Prediction, steps: Sequence[Callable[[Any], Any] | None]) -> dict[str, Any]:
    row = {}
    for name, step, value in zip(HEADER, steps, _values(record), strict=True):  # rows are written by the million
        row[name] = value if step is None else step(value)
    return row


def csv_cells(record: Prediction) -> list[Cell]:
    """The columns of a table for CSV, whose numbers have `outword.base.cells.DIGITS`.

    A score that is out and would be rounded to the threshold is the number before it: in is what is at or above it.

    >>> csv_cells(Prediction("a.jpg", verdict="out", score=0.12345649, threshold=0.1234565))[5:7]
    [0.123455, 0.1234565]
    """
    row = cells(record)
    if record.verdict == OUT and record.score is not None and record.threshold is not None:
        row["score"] = rounded_below(record.score, record.threshold)
    return list(row.values())


def label_of(verdict: str, nearest: str) -> str:
    """The label that a photo is taken for, of the nearest one: none where the photo is out.

    >>> label_of("in", "dog"), label_of("out", "dog"), label_of("uncalibrated", "dog")
    ('dog', '', 'dog')
    """
    return "" if verdict == OUT else nearest


def with_kind(label: str, kind: str) -> str:
    """A label with the kind of it that matched.

    >>> with_kind("dog", "beagle"), with_kind("dog", "")
    ('dog (beagle)', 'dog')
    """
    return f"{label} ({kind})" if kind else label


def better_than(p: float) -> str:
    """The share of unrelated photos that a p-value leaves behind, rounded down.

    >>> [better_than(p) for p in (1.0, 0.5, 0.04, 0.008, 1 / 2001, 1e-6)]
    ['0 %', '50 %', '96 %', '99.2 %', '99.95 %', '99.99 %']
    """
    share = math.floor(10_000 * (1 - p) + 1e-6) / 100
    return f"{share:.{1 if p >= 0.001 else 2}f}".rstrip("0").removesuffix(".") + " %"


def in_words(p: float | None, basis: Basis | Literal[""] = "", needed: float | None = None, verdict: str = "") -> str:
    """What a p-value says, and the one that is `needed` to be in; "" for None. Imagined photos are called so.

    >>> in_words(0.07, needed=0.021)
    'fits better than 93 % of unrelated photos; 97.9 % are needed'
    >>> in_words(0.0209, needed=0.0209, verdict="out")
    'fits better than 97.9 % of unrelated photos; a little more is needed'
    >>> in_words(0.5, "imagined")
    'fits better than 50 % of imagined unrelated photos'
    """
    if p is None:
        return ""
    others = "imagined unrelated photos" if basis == "imagined" else "unrelated photos"
    fits = f"fits better than {better_than(p)} of {others}"
    if needed is None:
        return fits
    if verdict == OUT and better_than(p) == better_than(needed):
        return f"{fits}; a little more is needed"
    return f"{fits}; {better_than(needed)} are needed"
