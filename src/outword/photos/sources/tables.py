"""Photos in the columns of a table, Parquet or Arrow: which column it is, and the items that rows become."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from outword.base.extras import pyarrow
from outword.errors import InputError
from outword.photos.decode import Blob
from outword.photos.sources.base import Item, at, inner
from outword.photos.sources.filesystems import Link

ROWS = 64  # that are in memory at a time
_ROW = re.compile(r"([0-9]+)(-|$)")


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
            yield at(image, contents)
        elif isinstance(image, dict):
            yield _from_struct(name, image.get("bytes"), image.get("path"), contents)
        else:
            yield Blob(name, image or b"")


def row_of(name: str) -> int:
    """The number of the row in the name of an item; -1 if there is none."""
    match = _ROW.match(name.rpartition("/")[2])
    return int(match[1]) if match else -1


def _from_struct(name: str, data: bytes | None, path: str | None, contents: bool) -> Item | Link:
    last = inner((path or "").replace("\\", "/")).rpartition("/")[2]
    name = f"{name}-{last}" if last else name
    return Link(name, path) if contents and data is None and path else Blob(name, data or b"")


def _is_struct(kind: Any) -> bool:
    """Whether it is a struct with bytes; of a column that has paths only the type may be unknown."""
    pa, _ = pyarrow()
    return pa.types.is_struct(kind) and _has(kind, "bytes", lambda kind: _is_binary(kind) or pa.types.is_null(kind))


def _has(struct: Any, field: str, test: Callable[[Any], bool]) -> bool:
    index = struct.get_field_index(field)
    return index >= 0 and test(struct.field(index).type)


def _is_binary(kind: Any) -> bool:
    return _is_any(kind, "is_binary", "is_large_binary", "is_fixed_size_binary", "is_binary_view")


def _is_text(kind: Any) -> bool:
    return _is_any(kind, "is_string", "is_large_string", "is_string_view")


def _is_usable(kind: Any) -> bool:
    return _is_binary(kind) or _is_text(kind) or _is_struct(kind)


def _is_any(kind: Any, *tests: str) -> bool:
    """Whether a type passes one of the tests that this version of pyarrow has."""
    pa, _ = pyarrow()
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(getattr(pa.types, test, lambda _: False)(kind) for test in tests)
