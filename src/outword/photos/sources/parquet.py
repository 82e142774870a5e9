"""Parquet tables: stretches of row groups, the images in one of the columns."""

from __future__ import annotations

import os
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from outword.base.extras import pyarrow
from outword.errors import ImageError, InputError, OutwordError, UnreachableError
from outword.photos.decode import Blob
from outword.photos.sources import filesystems
from outword.photos.sources.base import AGAIN, PART, Item, Kind, Piece, TableOptions, UnreadableSource, digest, refusal
from outword.photos.sources.filesystems import Link
from outword.photos.sources.tables import ROWS, fields_of, image_column, row_of, rows_of

SUFFIX = (".parquet",)
BUFFER = 1 << 20  # bytes of a column that are read at a time
UNPACKED = 64 << 20  # bytes that the rows in memory may have: in a dictionary, all of them may name its largest value


@dataclass(frozen=True)
class Groups(Piece):
    """Some row groups of a Parquet file.

    Attributes:
        path: of the file.
        column: that has the images.
        start: the number of the first group.
        stop: the number of the first group that is not in it.
        first: the number of the first row.
        rows: how many there are.
        file_version: of the file, as `filesystems.version` tells it.
    """

    path: str
    column: str
    start: int
    stop: int
    first: int
    rows: int
    file_version: tuple[int, str]

    @property
    def name(self) -> str:
        """The path of the file, and the rows."""
        return f"{self.path} rows {self.first} to {self.first + self.rows - 1}"

    def items(self, skip: int = 0, *, contents: bool = True) -> Iterator[Item]:
        """The rows in order; of a damaged group those before the damage, then one item that says so."""
        return filesystems.fetched(self._read(skip, contents))

    def lazy_items(self, skip: int = 0) -> Iterator[Item | Link]:
        """The rows, with links for those that only say where the photo is."""
        return self._read(skip, True)

    def find(self, names: Collection[str]) -> Iterator[Item]:
        """The rows with these names, of the groups that may have such."""
        rows = {row_of(name) for name in names}
        return filesystems.fetched(item for item in self._read(0, True, rows) if os.fspath(item) in names)

    def version(self) -> str:
        """By name, size and time of the file, the column and the groups."""
        return digest("parquet", self.path, *self.file_version, self.column, self.start, self.stop)

    def count(self) -> int:
        """The number of rows."""
        return self.rows

    def _read(self, skip: int, contents: bool, only: Collection[int] | None = None) -> Iterator[Item | Link]:
        """The rows without the first `skip`, of all groups, or of those that have one of the rows `only`."""
        try:
            with _open(self.path) as table:
                fields = fields_of(table.schema_arrow, self.column, contents)
                row = self.first
                for group in range(self.start, self.stop):
                    end = row + table.metadata.row_group(group).num_rows
                    if only is None or any(row <= number < end for number in only):
                        skip -= yield from self._group(table, group, fields, (row, end), skip, contents)
                    row = end
        except ImageError as error:
            if skip <= 0:
                yield Blob(self.path, error)

    def _group(
        self, table: Any, group: int, fields: list[str], rows: tuple[int, int], skip: int, contents: bool
    ) -> Generator[Item | Link, None, int]:
        """The items of a group without the first `skip`; returns how many they are with those.

        What is skipped is decoded, but not made into items: a damaged group has fewer items than rows, and only
        decoding shows the damage.
        """
        row, end = rows
        reason = "damaged"
        try:
            largest = max(1, table.metadata.row_group(group).total_byte_size)
            at_once = max(1, min(ROWS, UNPACKED // largest))
            for batch in table.iter_batches(at_once, row_groups=[group], columns=fields):
                batch.validate(full=True)  # else text that is none is damage only where it is not skipped
                past = min(max(0, rows[0] + skip - row), batch.num_rows)
                yield from rows_of(self.path, self.column, batch.slice(past), row + past, contents)
                row += batch.num_rows
            if row == end:
                return end - rows[0]
        except UnreachableError:
            raise
        except Exception as error:  # hostile bytes make parsers raise nearly anything
            reason = f"{refusal(error)} in" if refusal(error) else reason
        if rows[0] + skip <= row:
            told = f"{reason} row group {group} (rows {rows[0]} to {end - 1})"
            yield Blob(self.path, ImageError(told, hint=AGAIN))
        return row - rows[0] + 1


@contextmanager
def _open(path: str) -> Iterator[Any]:
    """A Parquet file; whatever is wrong with it is an `ImageError`."""
    _, parquet = pyarrow()
    with filesystems.open_file(path) as file:
        try:
            yield parquet.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER)
        except OutwordError:
            raise
        except Exception as error:  # hostile bytes make parsers raise nearly anything
            raise ImageError(refusal(error) or "damaged archive", hint=AGAIN) from None


def _pieces(path: str, options: TableOptions) -> Iterator[Piece]:
    version = filesystems.version(path)
    try:
        with _open(path) as table:
            column = image_column(table.schema_arrow, options.column, path)
            sizes = [table.metadata.row_group(group).num_rows for group in range(table.num_row_groups)]
    except (ImageError, InputError) as error:
        if options.strict and isinstance(error, InputError):
            raise
        yield UnreadableSource(path, error.message)
        return
    start = first = rows = 0
    for group, size in enumerate(sizes):
        if rows and rows + size > PART:
            yield Groups(path, column, start, group, first, rows, version)
            start, first, rows = group, first + rows, 0
        rows += size
    if rows:
        yield Groups(path, column, start, len(sizes), first, rows, version)


KIND = Kind(filesystems.named(SUFFIX), _pieces, SUFFIX)
