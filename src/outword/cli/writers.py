"""Rows to stdout, or into a file that appears whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from outword.base.files import whole_file
from outword.errors import InputError

if TYPE_CHECKING:
    from outword.scoring.rows import Write

FORMATS = ["csv", "jsonl", "parquet"]


def chosen_format(output: str | None, kind: str | None, default: str = "csv") -> str:
    """The format that was asked for: by name, or else by the suffix of the file."""
    suffix = Path(output or "").suffix.lstrip(".")
    if not kind and suffix and suffix not in FORMATS:
        raise InputError(f'-o must end in .csv, .jsonl or .parquet, got ".{suffix}"', hint="or say --format csv")
    return kind or suffix or default


@contextmanager
def open_writer(output: str | None, kind: str, *, raw_csv: bool = False) -> Iterator[Write]:
    """A function that writes rows; the file is there when the block ends well, and not at all otherwise."""
    from outword.scoring.rows import writing

    if output is None:
        if sys.stdout is None:
            raise InputError("stdout is closed", hint="write to a file with -o")
        with writing(sys.stdout.buffer, kind, raw_csv=raw_csv) as write:
            yield write
        sys.stdout.buffer.flush()
        return
    with (
        whole_file(Path(output)) as temporary,
        temporary.open("wb") as file,
        writing(file, kind, raw_csv=raw_csv) as write,
    ):
        yield write
