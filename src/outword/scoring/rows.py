"""Rows of output, one an image, as CSV, JSON lines or Parquet and back.

Texts in cells are as `outword.base.cells` writes them. Raw CSV has no `'` before what looks like a formula.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from outword.base.cells import csv_text, line_of, portable, restored, unquoted
from outword.base.extras import pyarrow
from outword.detector.judge import Shares, Verdict, with_kind
from outword.photos.twins import SAME_AS

ROWS_A_GROUP = 10_000
LONGEST = 1 << 30  # characters of a cell that is read back
_SHARE = re.compile(r"(.+?) (\d\.\d\d)(?:; |\Z)", re.DOTALL)


@dataclass(frozen=True)
class Row:
    """One line of output; `error` is empty when the image was scored, the other fields are when it was not.

    The fields are the columns. What they say is told at `outword.detector.judge.Verdict`; `label` has the kind that
    matched, and `looks_like` the best name alone.
    """

    path: str
    score: float | None = None
    verdict: str = ""  # "in", "out", or "uncalibrated" where there is no threshold
    basis: str = ""
    threshold: float | None = None  # None also where it accepts everything
    p: float | None = None
    label: str = ""
    looks_like: str = ""
    words: Shares = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # of its quality (`outword.photos.quality`), "the same as" last
    error: str = ""

    @classmethod
    def of(cls, path: str, found: Verdict, labels: Container[str], notes: Iterable[str] = ()) -> Row:
        """What is said of an image by a detector of these labels."""
        return cls(
            path,
            found.score,
            found.verdict,
            found.basis,
            finite_or_none(found.threshold),
            found.p,
            named(found.label, found.kind, labels),
            next(iter(found.looks_like), ""),
            found.fired,
            list(notes),
        )


COLUMNS = [column.name for column in fields(Row)]
NUMBERS = ("score", "threshold", "p")


def finite_or_none(threshold: float | None) -> float | None:
    """A threshold as JSON can have it."""
    return None if threshold is None or math.isinf(threshold) else threshold


Put = Callable[[Row], object]


@dataclass(frozen=True)
class Totals:
    """What a run comes to; totals of parts add up to those of the whole.

    >>> Totals(1, {"in": 1}) + Totals(2, {"error": 1, "in": 1})
    Totals(rows=3, counts={'error': 1, 'in': 2})
    """

    rows: int = 0
    counts: dict[str, int] = field(default_factory=dict)  # by verdict, with "error" for what could not be read

    def __add__(self, other: Totals) -> Totals:
        counts = Counter(self.counts) + Counter(other.counts)
        return Totals(self.rows + other.rows, dict(sorted(counts.items())))


class Writer:
    """Writes rows by `put`, and counts them."""

    def __init__(self, put: Put) -> None:
        self._put = put
        self._counts: Counter[str] = Counter()

    def __call__(self, row: Row) -> None:
        """Write a row."""
        self._counts[row.verdict or "error"] += 1
        self._put(row)

    def totals(self) -> Totals:
        """Of the rows so far."""
        return Totals() + Totals(self._counts.total(), self._counts)


def named(label: str, kind: str, labels: Container[str]) -> str:
    """The label of a row with the kind that matched, such as `dog (beagle)`, so that `label_of` gives the label back.

    The kind is left out where the two together would be taken for another of the labels.

    >>> named("cat", "tabby", {"cat", "cat (tabby)"}), named("cat", "lynx", {"cat", "cat (tabby)"})
    ('cat', 'cat (lynx)')
    """
    text = with_kind(label, kind)
    return text if label_of(text, labels) == label else label


def label_of(text: str, labels: Container[str]) -> str:
    """The label of a row, given as `named` has it; what is no label at all is left as it is.

    >>> [label_of(text, {"dog", "crane (bird)"}) for text in ("dog (beagle)", "crane (bird)", "dog (Rex (mine))")]
    ['dog', 'crane (bird)', 'dog']
    """
    known = text
    while known not in labels and " (" in known:
        known = known.rpartition(" (")[0]
    return known if known in labels else text


def flat_words(row: Row) -> str:
    """The wild words that fired, as `raccoon 0.41; coati 0.20`."""
    return "; ".join(f"{word} {share:.2f}" for word, share in row.words)


def flat_notes(row: Row) -> str:
    """The notes, as `blurred; the same as a.jpg`."""
    return "; ".join(row.notes)


def csv_cell(text: str) -> str:
    """What `csv_text` was given, not raw.

    >>> csv_cell(csv_text("=cmd.jpg"))
    '=cmd.jpg'
    """
    return restored(unquoted(text))


_known_text = lru_cache(1 << 14)(csv_text)  # labels and the like come again and again


def _each_text(row: Row, change: Callable[[str], str]) -> Row:
    changed: dict[str, Any] = {name: change(value) for name, value in vars(row).items() if isinstance(value, str)}
    words = [(change(word), share) for word, share in row.words]
    return replace(row, **changed, words=words, notes=[change(note) for note in row.notes])


def csv_line(row: Row, *, raw: bool = False) -> bytes:
    """A row as CSV has it.

    >>> csv_line(Row("a, b.jpg", -0.5, "in", "batch", -1.0, 0.04, "dog (beagle)", "beagle", [("raccoon", 0.41)]))
    b'"a, b.jpg",-0.5,in,batch,-1.0,0.04,dog (beagle),beagle,raccoon 0.41,,\\n'
    """
    texts = (row.verdict, row.basis, row.label, row.looks_like, row.error)
    verdict, basis, label, looks_like, error = (_known_text(text, raw=raw) if text else "" for text in texts)
    path, words, notes = (csv_text(text, raw=raw) for text in (row.path, flat_words(row), flat_notes(row)))
    score, threshold, p = ("" if n is None else repr(n) for n in (row.score, row.threshold, row.p))
    return line_of([path, score, verdict, basis, threshold, p, label, looks_like, words, notes, error])


@contextmanager
def writing(file: IO[bytes], kind: str, *, raw_csv: bool = False) -> Iterator[Writer]:
    """What writes rows to `file` as csv, raw or not, jsonl or parquet; all of them are there when the block ends."""
    with _csv(file, raw_csv) if kind == "csv" else _WRITERS[kind](file) as put:
        yield Writer(put)


def read_rows(path: Path, kind: str, *, raw_csv: bool = False) -> Iterator[Row]:
    """The rows of a file that `writing` wrote, in order; shares are as exact as the format keeps them."""
    for row in _read_csv(path, raw_csv) if kind == "csv" else _READERS[kind](path):
        yield _each_text(row, restored)


@contextmanager
def _csv(file: IO[bytes], raw: bool) -> Iterator[Put]:
    file.write(line_of(COLUMNS))
    yield lambda row: file.write(csv_line(row, raw=raw))


def _read_csv(path: Path, raw: bool) -> Iterator[Row]:
    csv.field_size_limit(max(LONGEST, csv.field_size_limit()))  # of the whole process
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        next(lines)
        for line in lines:
            cells = dict(zip(COLUMNS, line, strict=True))
            texts = {name: cell if raw else unquoted(cell) for name, cell in cells.items() if name not in NUMBERS}
            numbers = {name: float(cells[name]) if cells[name] else None for name in NUMBERS}
            lists = {"words": _shares(texts["words"]), "notes": _notes(texts["notes"])}
            yield Row(**{**texts, **numbers, **lists})  # type: ignore[arg-type]


@contextmanager
def _jsonl(file: IO[bytes]) -> Iterator[Put]:
    def put(row: Row) -> None:
        row = _each_text(row, portable)
        words = [{"word": word, "share": share} for word, share in row.words]
        file.write(json.dumps({**vars(row), "words": words}).encode() + b"\n")

    yield put


def _read_jsonl(path: Path) -> Iterator[Row]:
    with path.open("rb") as file:
        for found in map(json.loads, file):
            yield Row(**{**found, "words": [(word["word"], word["share"]) for word in found["words"]]})


@contextmanager
def _parquet(file: IO[bytes]) -> Iterator[Put]:
    pa, parquet = pyarrow()
    schema = pa.schema([(name, pa.float64() if name in NUMBERS else pa.string()) for name in COLUMNS])
    rows: list[tuple[Any, ...]] = []
    with parquet.ParquetWriter(file, schema) as writer:

        def flush() -> None:
            columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
            writer.write_table(pa.table(list(map(list, columns)), schema))
            rows.clear()

        def put(row: Row) -> None:
            row = _each_text(row, portable)
            cells = {**vars(row), "words": flat_words(row), "notes": flat_notes(row)}
            rows.append(tuple(cells[name] for name in COLUMNS))
            if len(rows) == ROWS_A_GROUP:
                flush()

        yield put
        flush()


def _read_parquet(path: Path) -> Iterator[Row]:
    _, parquet = pyarrow()
    with parquet.ParquetFile(path) as table:
        for batch in table.iter_batches(ROWS_A_GROUP):
            for found in batch.to_pylist():
                yield Row(**{**found, "words": _shares(found["words"]), "notes": _notes(found["notes"])})


def _shares(flat: str) -> Shares:
    """What `flat_words` wrote.

    >>> _shares("ice cream 0.41; coati 0.20"), _shares("")
    ([('ice cream', 0.41), ('coati', 0.2)], [])
    """
    return [(word, float(share)) for word, share in _SHARE.findall(flat)]


def _notes(flat: str) -> list[str]:
    """What `flat_notes` wrote; the name of a photo may have semicolons itself.

    >>> _notes("blurred; the same as a; b.jpg"), _notes("")
    (['blurred', 'the same as a; b.jpg'], [])
    """
    own, same, name = flat.partition(SAME_AS)
    return [*filter(None, own.split("; ")), *([same + name] if same else [])]


_WRITERS = {"jsonl": _jsonl, "parquet": _parquet}
_READERS = {"jsonl": _read_jsonl, "parquet": _read_parquet}
