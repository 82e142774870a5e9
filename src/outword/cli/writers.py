"""Rows to CSV, JSON lines or Parquet, on stdout or into a file that appears whole."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING

from outword.errors import InputError
from outword.files import whole_file

if TYPE_CHECKING:
    from outword.stream import Row

FORMATS = ["csv", "jsonl", "parquet"]
COLUMNS = ["path", "score", "verdict", "label", "words", "error"]
ROWS_A_GROUP = 10_000
Write = Callable[["Row"], None]


@contextmanager
def open_writer(output: str | None, kind: str | None) -> Iterator[Write]:
    """A function that writes rows; the file is there when the block ends well, and not at all otherwise."""
    suffix = Path(output or "").suffix.lstrip(".")
    if not kind and suffix and suffix not in FORMATS:
        raise InputError(f'-o must end in .csv, .jsonl or .parquet, got ".{suffix}"', hint="or say --format csv")
    chosen = kind or suffix or "csv"
    if output is None:
        if sys.stdout is None:
            raise InputError("stdout is closed", hint="write to a file with -o")
        with _WRITERS[chosen](sys.stdout.buffer) as write:
            yield write
        sys.stdout.buffer.flush()
        return
    with whole_file(Path(output)) as temporary, temporary.open("wb") as file, _WRITERS[chosen](file) as write:
        yield write


def flat_words(row: Row) -> str:
    """The wild words that fired, as `raccoon 0.41; coati 0.20`."""
    return "; ".join(f"{word} {share:.2f}" for word, share in row.words)


@contextmanager
def _csv(file: IO[bytes]) -> Iterator[Write]:
    class Lines:
        def write(self, text: str) -> int:
            return file.write(text.encode("utf-8", "surrogateescape"))

    writer = csv.writer(Lines(), lineterminator="\n")
    writer.writerow(COLUMNS)

    def write(row: Row) -> None:
        score = "" if row.score is None else repr(row.score)
        writer.writerow([row.path, score, row.verdict, row.label, flat_words(row), row.error])

    yield write


@contextmanager
def _jsonl(file: IO[bytes]) -> Iterator[Write]:
    def write(row: Row) -> None:
        words = [{"word": word, "share": share} for word, share in row.words]
        file.write(json.dumps({**asdict(row), "words": words}).encode() + b"\n")

    yield write


@contextmanager
def _parquet(file: IO[bytes]) -> Iterator[Write]:
    from outword.shards import pyarrow

    pa, parquet = pyarrow()
    schema = pa.schema([(name, pa.float64() if name == "score" else pa.string()) for name in COLUMNS])
    rows: list[dict[str, object]] = []
    with parquet.ParquetWriter(file, schema) as writer:

        def flush() -> None:
            writer.write_table(pa.Table.from_pylist(rows, schema))
            rows.clear()

        def write(row: Row) -> None:
            path = row.path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            rows.append({**asdict(row), "path": path, "words": flat_words(row)})
            if len(rows) == ROWS_A_GROUP:
                flush()

        yield write
        flush()


_WRITERS = {"csv": _csv, "jsonl": _jsonl, "parquet": _parquet}
