"""Photos in a column of a table: stretches of row groups of Parquet, and Arrow, as streams or with an index."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

from outword.base.extras import pyarrow
from outword.errors import ImageError, InputError, OutwordError, UnreachableError
from outword.photos.decode import Blob
from outword.photos.sources import base, filesystems
from outword.photos.sources.base import FilePiece, Item, Kind, LazyPiece, Piece, TableOptions, UnreadableSource
from outword.photos.sources.filesystems import Link

ROWS = 64  # that are in memory at a time
BUFFER = 1 << 20  # bytes of a column of Parquet that are read at a time
UNPACKED = 64 << 20  # bytes that the rows in memory may have: in a dictionary, all of them may name its largest value
_INDEXED = b"ARROW1"
_ROW = re.compile(r"([0-9]+)(-|$)")


@dataclass(frozen=True)
class Table(LazyPiece, FilePiece):
    """Rows of a file with a table."""

    column: str  # that has the images
    file_version: tuple[int, str]  # as `filesystems.version` tells it


@dataclass(frozen=True)
class Arrow(Table):
    """The rows of an Arrow file; behind damage nothing is read, as it is not known how many rows were lost."""

    def version(self) -> str:
        """By name, size and time of the file, and the column."""
        return base.digest("arrow", self.path, *self.file_version, self.column)

    def lazy_items(self, skip: int = 0, *, contents: bool = True) -> Iterator[Item | Link]:
        """The rows in order, with links for those that only say where the photo is."""
        row = 0
        try:
            with _opened(self.path) as file:
                schema, batches = _arrow(file, self.path)
                fields = fields_of(schema, self.column, contents)
                for batch in batches:
                    batch.validate(full=True)  # what points outside of it would crash
                    for start in range(max(0, skip - row), batch.num_rows, ROWS):
                        part = _projected(batch.slice(start, ROWS), self.column, fields)
                        yield from rows_of(self.path, self.column, part, row + start, contents)
                    row += batch.num_rows
        except ImageError as error:
            if skip <= row:
                yield Blob(self.path, ImageError(f"{error.message}, row {row}", hint=base.AGAIN))


@dataclass(frozen=True)
class Groups(Table):
    """Some row groups of a Parquet file; of a damaged one the rows before the damage, then one item that says so."""

    start: int  # the number of the first group
    stop: int  # of the first that is not in it
    first: int  # the number of the first row
    rows: int  # how many there are

    @property
    def name(self) -> str:
        """The path of the file, and the rows."""
        return f"{self.path} rows {self.first} to {self.first + self.rows - 1}"

    def find(self, names: Collection[str]) -> Iterator[Item]:
        """The rows with these names, of the groups that may have such."""
        matches = (_ROW.match(name.rpartition("/")[2]) for name in names)
        rows = {int(match[1]) for match in matches if match}
        return filesystems.fetched(item for item in self.lazy_items(only=rows) if os.fspath(item) in names)

    def version(self) -> str:
        """By name, size and time of the file, the column and the groups."""
        return base.digest("parquet", self.path, *self.file_version, self.column, self.start, self.stop)

    def count(self) -> int:
        """The number of rows."""
        return self.rows

    def lazy_items(
        self, skip: int = 0, *, contents: bool = True, only: Collection[int] | None = None
    ) -> Iterator[Item | Link]:
        """The rows in order, of all groups, or of those that have one of the rows `only`; links as in `Arrow`."""
        try:
            with _opened(self.path) as file:
                table = _parquet(file)
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
            reason = f"{base.refusal(error)} in" if base.refusal(error) else reason
        if rows[0] + skip <= row:
            told = f"{reason} row group {group} (rows {rows[0]} to {end - 1})"
            yield Blob(self.path, ImageError(told, hint=base.AGAIN))
        return row - rows[0] + 1


def image_column(schema: Any, column: str | None, table: str) -> str:
    """The column that has the images, the one that is named or else what looks like one; `InputError` if none does."""
    kinds = {field.name: field.type for field in schema}
    if column is None:
        structs = [name for name, kind in kinds.items() if _is_struct(kind) and kind.get_field_index("path") >= 0]
        guesses = ["image", *(structs if len(structs) == 1 else []), "path"]
        column = next((name for name in guesses if name in kinds and _is_usable(kinds[name])), "image")
    there = ", ".join(map(str, kinds))
    if column not in kinds:
        raise InputError(f'{table} has no column "{column}", it has: {there}', hint="name one of them with --column")
    if not _is_usable(kinds[column]):
        raise InputError(
            f'column "{column}" of {table} has {kinds[column]}, not images: bytes, structs with bytes, or paths',
            hint=f"name another one with --column, it has: {there}",
        )
    return column


def fields_of(schema: Any, column: str, contents: bool) -> list[str]:
    """What is read of a table: an integer column `label`, and of the images what they are, or only what names them."""
    pa, _ = pyarrow()
    label = column != "label" and "label" in schema.names and pa.types.is_integer(schema.field("label").type)
    kind = schema.field(column).type
    if _is_struct(kind):
        inside = ["path"] * _has(kind, "path", _is_text) + ["bytes"] * contents
        images = [f"{column}.{name}" for name in inside]
    else:
        images = [column] if contents or _is_text(kind) else []
    return ["label"] * label + images


def rows_of(table: str, column: str, batch: Any, first: int, contents: bool) -> Iterator[Item | Link]:
    """Some rows of a table as items; `batch` has the fields that are read, `first` is the number of its first row.

    A row is called FILE/LABEL/ROW-NAME, so that the nearest folder is the class; without label or name that part is
    left out. A row of a column of paths is called what its path is.
    """
    empty = [None] * batch.num_rows
    images = batch.column(column).to_pylist() if column in batch.schema.names else empty
    labels = batch.column("label").to_pylist() if column != "label" and "label" in batch.schema.names else empty
    for number, (label, image) in enumerate(zip(labels, images, strict=True), first):
        name = f"{table}/{number}" if label is None else f"{table}/{label}/{number}"
        if isinstance(image, str):
            yield base.at(image, contents)
        elif isinstance(image, dict):
            yield _from_struct(name, image.get("bytes"), image.get("path"), contents)
        else:
            yield Blob(name, image or b"")


def _from_struct(name: str, data: bytes | None, path: str | None, contents: bool) -> Item | Link:
    last = base.inner((path or "").replace("\\", "/")).rpartition("/")[2]
    name = f"{name}-{last}" if last else name
    return Link(name, path) if contents and data is None and path else Blob(name, data or b"")


def _is_struct(kind: Any) -> bool:
    """Whether it is a struct with bytes; of a column that has paths only the type may be unknown."""
    pa, _ = pyarrow()
    return pa.types.is_struct(kind) and _has(kind, "bytes", lambda kind: _is_binary(kind) or pa.types.is_null(kind))


def _has(struct: Any, field: str, test: Callable[[Any], bool]) -> bool:
    index = struct.get_field_index(field)
    return index >= 0 and test(struct.field(index).type)


def _is_usable(kind: Any) -> bool:
    return _is_binary(kind) or _is_text(kind) or _is_struct(kind)


def _is_any(tests: Iterable[str], kind: Any) -> bool:
    """Whether a type passes one of the tests that this version of pyarrow has."""
    pa, _ = pyarrow()
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(getattr(pa.types, test, lambda _: False)(kind) for test in tests)


_is_binary = partial(_is_any, ("is_binary", "is_large_binary", "is_fixed_size_binary", "is_binary_view"))
_is_text = partial(_is_any, ("is_string", "is_large_string", "is_string_view"))


def _projected(batch: Any, column: str, fields: list[str]) -> Any:
    """The fields of some rows."""
    pa, _ = pyarrow()
    whole = [name for name in fields if name in ("label", column)]  # a column may be called what a field of another is
    inside = [name.removeprefix(f"{column}.") for name in fields if name not in whole]
    if not inside:
        return batch.select(whole)
    struct = pa.StructArray.from_arrays([batch.column(column).field(name) for name in inside], inside)
    return pa.RecordBatch.from_arrays([*map(batch.column, whole), struct], [*whole, column])


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    """A file with a table; whatever is wrong with it, in the block too, is an `ImageError`."""
    pyarrow()  # that it is missing is told first
    with filesystems.open_file(path) as file:
        try:
            yield file
        except OutwordError:
            raise
        except Exception as error:  # hostile bytes make parsers raise nearly anything
            raise ImageError(base.refusal(error) or "damaged archive", hint=base.AGAIN) from None


def _parquet(file: IO[bytes]) -> Any:
    return pyarrow()[1].ParquetFile(file, pre_buffer=False, buffer_size=BUFFER)


def _arrow(file: IO[bytes], path: str) -> tuple[Any, Iterator[Any]]:
    """The schema of an Arrow file, and its batches."""
    pa, _ = pyarrow()
    indexed = file.read(len(_INDEXED)) == _INDEXED
    file.seek(0)
    local = not filesystems.is_remote(path)
    source = pa.BufferReader(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) if local else file
    reader = pa.ipc.open_file(source) if indexed else pa.ipc.open_stream(source)
    return reader.schema, map(reader.get_batch, range(reader.num_record_batches)) if indexed else iter(reader)


def _arrow_pieces(file: IO[bytes], path: str, column: str | None, version: tuple[int, str]) -> Iterator[Piece]:
    """The file as one piece."""
    yield Arrow(path, image_column(_arrow(file, path)[0], column, path), version)


def _parquet_pieces(file: IO[bytes], path: str, column: str | None, version: tuple[int, str]) -> Iterator[Piece]:
    """Row groups together, as long as they have at most `base.PART` rows."""
    table = _parquet(file)
    column = image_column(table.schema_arrow, column, path)
    start = first = rows = 0
    for group in range(table.num_row_groups):
        size = table.metadata.row_group(group).num_rows
        if rows and rows + size > base.PART:
            yield Groups(path, column, version, start, group, first, rows)
            start, first, rows = group, first + rows, 0
        rows += size
    if rows:
        yield Groups(path, column, version, start, table.num_row_groups, first, rows)


def _pieces(found: Callable[..., Iterator[Piece]], path: str, options: TableOptions) -> list[Piece]:
    """What `found` makes of a file; one without the column, or that cannot be read, is an `UnreadableSource`."""
    version = filesystems.version(path)
    try:
        with _opened(path) as file:
            return list(found(file, path, options.column, version))
    except (ImageError, InputError) as error:
        if options.strict and isinstance(error, InputError):
            raise
        return [UnreadableSource(path, error.message)]


PARQUET = Kind(filesystems.named((".parquet",)), partial(_pieces, _parquet_pieces), (".parquet",))
ARROW = Kind(filesystems.named((".arrow",)), partial(_pieces, _arrow_pieces), (".arrow",))
