"""Rows of output, one an image, as CSV, JSON lines or Parquet; read back, they are the cells that were written.

Numbers have six digits in CSV, which people read, and all of them in the others. The score that is written is at or
above the threshold that is written where the verdict is `in`, and below it where the verdict is `out`.

Texts in cells are as `outword.base.cells` writes them. Raw CSV has no `'` before what looks like a formula.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, get_args

from outword.base.cells import csv_line, line_of, portable, restored, unquoted
from outword.base.extras import pyarrow
from outword.base.prediction import COLUMNS, FIELDS, HEADER, NUMBER, Prediction, cells, csv_cells, json_cells
from outword.base.terms import VerdictName

ROWS_A_GROUP = 10_000
ERROR = "error"  # in place of the verdict of a photo that could not be read
ONLY = (*get_args(VerdictName), ERROR)
LONGEST = 1 << 30  # characters of a cell that is read back
Row = dict[str, Any]  # a text, or a number or None, by column
Put = Callable[[Prediction], object]


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
    """Writes records as rows by `put`, and counts all of them; with `only`, those of one verdict are written."""

    def __init__(self, put: Put, only: str | None = None) -> None:
        self._put = put
        self._only = only
        self._counts: Counter[str] = Counter()

    def __call__(self, record: Prediction) -> None:
        """Write a row."""
        what = record.verdict or ERROR
        self._counts[what] += 1
        if self._only in (None, what):
            self._put(record)

    def totals(self) -> Totals:
        """Of the rows so far."""
        return Totals() + Totals(self._counts.total(), self._counts)


@contextmanager
def writing(file: IO[bytes], kind: str, *, raw_csv: bool = False, only: str | None = None) -> Iterator[Writer]:
    """What writes records to `file` as csv, raw or not, jsonl or parquet; all of them are there when the block ends.

    As "records" they are whole, for `read_records`.
    """
    with _csv(file, raw_csv) if kind == "csv" else _WRITERS[kind](file) as put:
        yield Writer(put, only)


def read_rows(path: Path, kind: str, *, raw_csv: bool = False) -> Iterator[Row]:
    """The rows of a file that `writing` wrote, in order."""
    for row in _read_csv(path, raw_csv) if kind == "csv" else _READERS[kind](path):
        yield {name: restored(cell) if isinstance(cell, str) else cell for name, cell in row.items()}


def read_records(path: Path) -> Iterator[Prediction]:
    """The records of a file that `writing` wrote as "records"."""
    with path.open("rb") as file:
        for values in map(json.loads, file):
            yield Prediction(**{column.name: column.form.read(values[column.name]) for column in FIELDS})


@contextmanager
def _csv(file: IO[bytes], raw: bool) -> Iterator[Put]:
    file.write(line_of(HEADER))
    yield lambda record: file.write(csv_line(csv_cells(record), raw=raw))


def _read_csv(path: Path, raw: bool) -> Iterator[Row]:
    csv.field_size_limit(max(LONGEST, csv.field_size_limit()))  # of the whole process
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file)
        next(lines)
        for line in lines:
            row: Row = {}
            for column, cell in zip(COLUMNS, line, strict=True):
                if column.form is NUMBER:
                    row[column.name] = float(cell) if cell else None
                else:
                    row[column.name] = cell if raw else unquoted(cell)
            yield row


@contextmanager
def _jsonl(file: IO[bytes]) -> Iterator[Put]:
    def put(record: Prediction) -> None:
        file.write(json.dumps(_portable(json_cells(record))).encode() + b"\n")

    yield put


def _portable(value: Any) -> Any:
    """A value of JSON with its texts as `portable` has them."""
    if isinstance(value, str):
        return portable(value)
    if isinstance(value, list):
        return [_portable(one) for one in value]
    return {key: _portable(one) for key, one in value.items()} if isinstance(value, dict) else value


def _read_jsonl(path: Path) -> Iterator[Row]:
    with path.open("rb") as file:
        for values in map(json.loads, file):
            yield {column.name: column.form.flat(values[column.name]) for column in COLUMNS}


@contextmanager
def _parquet(file: IO[bytes]) -> Iterator[Put]:
    pa, parquet = pyarrow()
    kinds = [pa.float64() if column.form is NUMBER else pa.string() for column in COLUMNS]
    schema = pa.schema(list(zip(HEADER, kinds, strict=True)))
    rows: list[Row] = []
    with parquet.ParquetWriter(file, schema) as writer:

        def flush() -> None:
            writer.write_table(pa.Table.from_pylist(rows, schema))
            rows.clear()

        def put(record: Prediction) -> None:
            rows.append(_portable(cells(record)))
            if len(rows) == ROWS_A_GROUP:
                flush()

        yield put
        flush()


def _read_parquet(path: Path) -> Iterator[Row]:
    _, parquet = pyarrow()
    with parquet.ParquetFile(path) as table:
        for batch in table.iter_batches(ROWS_A_GROUP):
            yield from batch.to_pylist()


@contextmanager
def _records(file: IO[bytes]) -> Iterator[Put]:
    def put(record: Prediction) -> None:
        values = {column.name: column.json(record) for column in FIELDS}
        file.write(json.dumps(values).encode() + b"\n")

    yield put


_WRITERS = {"jsonl": _jsonl, "parquet": _parquet, "records": _records}
_READERS = {"jsonl": _read_jsonl, "parquet": _read_parquet}
