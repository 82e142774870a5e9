"""Photos inside archives: tar files and Parquet tables are read in order, never unpacked, and each photo has a name.

What an archive calls its photos is not trusted. Such a name only ever becomes the part of an item's name that follows
the archive's own path: it is cleaned (`_inner`), never joined to a folder and never opened. `read_items` opens the
archive, which the user named, and compares names.
"""

from __future__ import annotations

import os
import re
import tarfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from outword.errors import ImageError
from outword.images import SUFFIXES, Blob, check_bytes, find_images, read_bytes
from outword.shards import pyarrow

Item: TypeAlias = "Path | Blob"

TARS = (".tar", ".tar.gz", ".tgz")
ARCHIVES = (*TARS, ".parquet")
ROWS = 64  # of a Parquet table that are in memory at a time
LONGEST = 1 << 20  # bytes of a long name or of extended attributes in a tar; photos have some hundred
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ROW = re.compile(r"([0-9]+)(-|$)")
_NAMES = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)


def find_items(paths: Iterable[str | os.PathLike[str]]) -> Iterator[Item]:
    """Yield the photos behind `paths`: like `find_images`, and those inside archives as blobs, in the archive's order.

    A `.tar`, `.tar.gz` or `.tgz` file gives the image files in it; a member is called ARCHIVE/member/name. A `.parquet`
    file gives its rows: the column `image` has the bytes, or a struct of `bytes` and `path` as Hugging Face writes it;
    an integer column `label` is the class. A row is called FILE.parquet/LABEL/ROW-NAME, so that here, too, the nearest
    folder is the class; without label or name that part is left out. From a folder come images and Parquet files, but
    no tar files: those often lie beside what was unpacked from them.

    A damaged archive gives what comes before the damage, and then a blob under its own name that says what is wrong.
    """
    for path in find_images(paths, suffixes=SUFFIXES | {".parquet"}):
        if is_archive(path):
            yield from _inside(path)
        else:
            yield path


def find_names(paths: Iterable[str | os.PathLike[str]]) -> Iterator[str]:
    """The names of the items that `find_items` yields, without the photos; damage is passed over."""
    for path in find_images(paths, suffixes=SUFFIXES | {".parquet"}):
        if is_archive(path):
            yield from (blob.name for blob in _inside(path, contents=False) if blob.name != os.fspath(path))
        else:
            yield os.fspath(path)


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Whether a file is taken for an archive, by its name; a folder is not."""
    return os.fspath(path).lower().endswith(ARCHIVES) and not Path(path).is_dir()


def read_items(names: Collection[str]) -> dict[str, bytes | ImageError]:
    """The content of photos by the names that they had; each archive is read once."""
    found: dict[str, bytes | ImageError] = dict.fromkeys(names, ImageError("no such file in the archive"))
    inside: defaultdict[str, set[str]] = defaultdict(set)
    for name in names:
        if archive := _archive_of(name):
            inside[archive].add(name)
        else:
            found[name] = _attempt(Path(name))
    for archive, wanted in inside.items():
        for blob in _inside(Path(archive), only=wanted):
            if blob.name in wanted:
                found[blob.name] = _attempt(blob)
    return found


def _attempt(item: Item) -> bytes | ImageError:
    try:
        return read_bytes(item)
    except ImageError as error:
        return error


def _archive_of(name: str) -> str | None:
    """The first part of a name that is the path of an archive."""
    ends = (match.start() for match in re.finditer(r"[/\\]", name) if name[: match.start()].lower().endswith(ARCHIVES))
    return next((name[:end] for end in ends if Path(name[:end]).is_file()), None)


def _inside(path: Path, *, contents: bool = True, only: Collection[str] | None = None) -> Iterator[Blob]:
    """The photos of an archive, and a blob that says what is wrong with it, if anything is.

    Without `contents` their data is empty; with `only`, so is that of all others.
    """
    parquet = path.name.lower().endswith(".parquet")
    if parquet:
        pyarrow()  # without it, say so
    try:
        yield from _rows(path, contents, only) if parquet else _members(path, contents, only)
    except ImageError as error:
        yield Blob(os.fspath(path), error)
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else "damaged archive"
        yield Blob(os.fspath(path), ImageError(reason, hint="fetch or copy it again"))
    except Exception:  # hostile bytes make parsers raise nearly anything
        yield Blob(os.fspath(path), ImageError("damaged archive", hint="fetch or copy it again"))


def _inner(name: str) -> str:
    """A name from inside an archive without what could be taken for a path elsewhere, or break a line.

    >>> _inner("/../etc//./a\\nb.jpg")
    '_/etc/a_b.jpg'
    """
    parts = ("_" if part == ".." else part for part in _CONTROL.sub("_", name).split("/") if part not in ("", "."))
    return "/".join(parts)


class _Strict(tarfile.TarInfo):
    """A header of a tar: what `tarfile` takes for the end of the archive, though it is damage, is an error."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Strict:
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            raise tarfile.SubsequentHeaderError(str(error)) from error  # type: ignore[attr-defined]
        if header.type in _NAMES and header.size > LONGEST:
            raise tarfile.SubsequentHeaderError("a name is too long")  # type: ignore[attr-defined]
        return header


def _members(path: Path, contents: bool, only: Collection[str] | None) -> Iterator[Blob]:
    """The image files of a tar: regular ones, hidden ones left out."""
    with tarfile.open(path, tarinfo=_Strict) as archive:
        while (member := archive.next()) is not None:
            archive.members = []  # type: ignore[attr-defined]  # it would keep all of them
            inner = _inner(member.name)
            image = Path(inner).suffix.lower() in SUFFIXES and not inner.startswith(".") and "/." not in inner
            if not image or not member.isreg() or member.issparse():
                continue
            name = f"{os.fspath(path)}/{inner}"
            wanted = contents and (only is None or name in only)
            yield Blob(name, _content(archive, member) if wanted else b"")


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes | ImageError:
    try:
        check_bytes(member.size)
    except ImageError as error:
        return error
    file = archive.extractfile(member)
    return file.read() if file else b""


def _rows(path: Path, contents: bool, only: Collection[str] | None) -> Iterator[Blob]:
    """The rows of a Parquet table; a group of rows that has none of `only` is not read."""
    _, parquet = pyarrow()
    wanted = None if only is None else {_row_of(name) for name in only}
    with parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as table:
        columns = _columns(table.schema_arrow, contents)
        row = 0
        for group in range(table.num_row_groups):
            end = row + table.metadata.row_group(group).num_rows
            if wanted is None or not wanted.isdisjoint(range(row, end)):
                for batch in table.iter_batches(ROWS, row_groups=[group], columns=columns):
                    yield from _batch(os.fspath(path), batch, row)
                    row += batch.num_rows
            row = end


def _columns(schema: Any, contents: bool) -> list[str]:
    """What is read of a Parquet table; `ImageError` if it has no images."""
    pa, _ = pyarrow()
    kind = schema.field("image").type if "image" in schema.names else pa.null()
    columns = ["label"] if "label" in schema.names and pa.types.is_integer(schema.field("label").type) else []
    if pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0:
        return [*columns, "image.path", *(["image.bytes"] if contents else [])]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [*columns, "image"] if contents else columns
    raise ImageError('no column "image" with the bytes of images', hint="write the table as Hugging Face does")


def _batch(table: str, batch: Any, row: int) -> Iterator[Blob]:
    """Some rows of a Parquet table as blobs; `row` is the number of the first."""
    empty = [None] * batch.num_rows
    labels, images = (
        batch.column(name).to_pylist() if name in batch.schema.names else empty for name in ("label", "image")
    )
    for number, (label, image) in enumerate(zip(labels, images, strict=True), row):
        data, path = (image.get("bytes"), image.get("path")) if isinstance(image, dict) else (image, None)
        folder = "" if label is None else f"{label}/"
        inner = _inner((path or "").replace("\\", "/")).rpartition("/")[2]
        yield Blob(f"{table}/{folder}{number}{'-' * bool(inner)}{inner}", data or b"")


def _row_of(name: str) -> int:
    """The number of the row in the name of an item; -1 if there is none."""
    match = _ROW.match(name.rpartition("/")[2])
    return int(match[1]) if match else -1
