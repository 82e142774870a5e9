"""Arrow files, streams as Hugging Face writes them or files with an index; the images in one of the columns."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from outword.base.extras import pyarrow
from outword.errors import ImageError, InputError, OutwordError
from outword.photos.decode import Blob
from outword.photos.sources import filesystems
from outword.photos.sources.base import AGAIN, Item, Kind, Piece, TableOptions, UnreadableSource, digest, refusal
from outword.photos.sources.filesystems import Link
from outword.photos.sources.tables import ROWS, fields_of, image_column, rows_of

SUFFIX = (".arrow",)
_INDEXED = b"ARROW1"


@dataclass(frozen=True)
class Arrow(Piece):
    """The rows of an Arrow file.

    Attributes:
        path: of the file.
        column: that has the images.
        file_version: of the file, as `filesystems.version` tells it.
    """

    path: str
    column: str
    file_version: tuple[int, str]

    @property
    def name(self) -> str:
        """The path of the file."""
        return self.path

    def items(self, skip: int = 0, *, contents: bool = True) -> Iterator[Item]:
        """The rows in order; behind damage nothing is read, as it is not known how many rows were lost."""
        return filesystems.fetched(self._read(skip, contents))

    def lazy_items(self, skip: int = 0) -> Iterator[Item | Link]:
        """The rows, with links for those that only say where the photo is."""
        return self._read(skip, True)

    def version(self) -> str:
        """By name, size and time of the file, and the column."""
        return digest("arrow", self.path, *self.file_version, self.column)

    def _read(self, skip: int, contents: bool) -> Iterator[Item | Link]:
        row = 0
        try:
            with _open(self.path) as (schema, batches):
                fields = fields_of(schema, self.column, contents)
                for batch in batches:
                    for start in range(max(0, skip - row), batch.num_rows, ROWS):
                        part = _projected(batch.slice(start, ROWS), self.column, fields)
                        yield from rows_of(self.path, self.column, part, row + start, contents)
                    row += batch.num_rows
        except ImageError as error:
            if skip <= row:
                yield Blob(self.path, ImageError(f"{error.message}, row {row}", hint=AGAIN))


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
def _open(path: str) -> Iterator[tuple[Any, Iterator[Any]]]:
    """The schema and the batches of an Arrow file; whatever is wrong with it is an `ImageError`."""
    pa, _ = pyarrow()
    with filesystems.open_file(path) as file:
        try:
            indexed = file.read(len(_INDEXED)) == _INDEXED
            file.seek(0)
            local = not filesystems.is_remote(path)
            source = pa.BufferReader(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) if local else file
            reader = pa.ipc.open_file(source) if indexed else pa.ipc.open_stream(source)
            yield reader.schema, _batches(reader, indexed)
        except OutwordError:
            raise
        except Exception as error:  # hostile bytes make parsers raise nearly anything
            raise ImageError(refusal(error) or "damaged archive", hint=AGAIN) from None


def _batches(reader: Any, indexed: bool) -> Iterator[Any]:
    """The batches; what points outside of them would crash, so that is looked for first."""
    for batch in map(reader.get_batch, range(reader.num_record_batches)) if indexed else reader:
        batch.validate(full=True)
        yield batch


def pieces(path: str, options: TableOptions) -> Iterator[Piece]:
    """The file as one piece."""
    version = filesystems.version(path)
    try:
        with _open(path) as (schema, _):
            column = image_column(schema, options.column, path)
    except (ImageError, InputError) as error:
        if options.strict and isinstance(error, InputError):
            raise
        yield UnreadableSource(path, error.message)
    else:
        yield Arrow(path, column, version)


KIND = Kind(filesystems.named(SUFFIX), pieces, SUFFIX)
