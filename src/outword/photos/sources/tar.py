"""Tar files, plain or compressed, as WebDataset has them: read in order, never unpacked, damage passed over.

What is read stands in proportion to the file. A compressed one may give `FREE` bytes, and `RATIO` more for each byte of
its own; then one item says so, and the rest is not read. Photos hardly shrink at all, and files with nothing but a
number in them 70 to 250 times. Nor has any honest archive `CHAIN` extended headers before a member, or `PLACES` damaged
places without a photo between them.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import tarfile
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any, cast

from outword.errors import ImageError, UnreachableError
from outword.photos.decode import Blob, check_bytes
from outword.photos.formats import SUFFIXES
from outword.photos.sources import filesystems
from outword.photos.sources.base import AGAIN, FilePiece, Kind, digest, inner, refusal

SUFFIX = (".tar", ".tar.gz", ".tgz")
LONGEST = 1 << 20  # bytes of a long name or of extended attributes; photos have some hundred
FREE = 64 << 20  # bytes that any compressed file may give
RATIO = 400  # bytes that it may give besides for each of its own
CHAIN = 16  # extended headers before a member; tools write up to three
GLOBALS = 1000  # attributes that hold for all members; tools write one
PLACES = 16  # that are damaged, without a photo between them, before the rest is given up
BUFFER = 1 << 20  # bytes that are read at a time
HEADERS = 1 << 12  # the same, where the photos are passed over
_BLOCK = tarfile.BLOCKSIZE
_CHECKSUM = re.compile(rb"[0-7 \0]{8}")  # of a header, at byte 148: quick to tell what is none
_RECORD = re.compile(rb"([0-9]{1,7}) [^=\n][^=]*=")  # how a record of extended attributes begins, with its length
_NAMES = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_PACKED: tuple[tuple[bytes, Callable[..., Any]], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ\0", lzma.open),
)
Wanted = Callable[[int, str], bool]  # whether the photo with this number and name is read


@dataclass(frozen=True)
class Tar(FilePiece):
    """The image files of a tar: regular ones, hidden ones left out; each is called ARCHIVE/member/name."""

    def items(self, skip: int = 0, *, contents: bool = True) -> Iterator[Blob]:
        """The photos in the order of the tar; after damage it goes on at the next header that is sound."""
        buffer = BUFFER if contents else HEADERS
        for number, blob in enumerate(self._read(lambda number, _: contents and number >= skip, buffer)):
            if number >= skip:
                yield blob

    def find(self, names: Collection[str]) -> Iterator[Blob]:
        """The photos, but only those with these names have data."""
        return self._read(lambda _, name: name in names)

    def version(self) -> str:
        """By name, size and time of the file."""
        return digest("tar", self.path, *filesystems.version(self.path))

    def _read(self, wanted: Wanted, buffer: int = BUFFER) -> Iterator[Blob]:
        try:
            with filesystems.open_file(self.path, buffer=buffer) as file:
                yield from _walk(file, self.path, wanted)
        except ImageError as error:
            yield Blob(self.path, error)


def _opener(file: IO[bytes]) -> Callable[[IO[bytes]], IO[bytes]] | None:
    """What decompresses a file, by how it begins; None where it is not compressed."""
    head = file.read(6)
    file.seek(0)
    return next((opener for start, opener in _PACKED if head.startswith(start)), None)


def _walk(file: IO[bytes], path: str, wanted: Wanted) -> Iterator[Blob]:
    """The photos of a tar, and a blob for each stretch of it that is damaged."""
    opener = _opener(file)
    size = None if opener else file.seek(0, io.SEEK_END)
    plain = cast("IO[bytes]", _Forward(opener(file), file)) if opener else file
    at, number, places_lost = 0, 0, 0
    start: int | None = 0
    while start is not None:
        try:
            at = plain.seek(start)
            archive = _Archive(fileobj=plain, tarinfo=_Strict)
            while (member := archive.next()) is not None:
                archive.members = []  # type: ignore[attr-defined]  # it would keep all of them
                end = archive.offset
                if member.size < 0 or end <= at or (member.isreg() and not member.name):  # an extension may say so
                    raise tarfile.ReadError
                if name := _photo(member):
                    name = f"{path}/{name}"
                    yield Blob(name, _content(plain, size, member, wanted(number, name)))
                    number, places_lost = number + 1, 0
                at = end
            if not _is_end(plain, at + _BLOCK):
                raise tarfile.ReadError
            return
        except UnreachableError:
            raise
        except Exception as error:  # hostile bytes make parsers raise nearly anything
            at = at if size is None else min(at, size)
            places_lost += 1
            yield Blob(path, ImageError(_told(error, at, places_lost), hint=AGAIN))
            number += 1
            if (refusal(error) and not isinstance(error, MemoryError)) or places_lost == PLACES:
                return
            seen = size is None or isinstance(error, _Chained)  # and not to be looked at again
            unread = -(-plain.tell() // _BLOCK) * _BLOCK if seen else 0  # the first block that was not read
            start = _sound(plain, max(at + _BLOCK, unread))


def _told(error: Exception, at: int, places_lost: int) -> str:
    chained = f"over {CHAIN} extended headers in a row" if isinstance(error, _Chained) else ""
    end = f", the {PLACES}th place without a photo between: the rest is not read" if places_lost == PLACES else ""
    return f"{refusal(error) or chained or 'damaged'} at byte {at}{end}"


def _photo(member: tarfile.TarInfo) -> str:
    """The cleaned name of a member that is a photo; "" for any other."""
    name = inner(member.name)
    image = PurePosixPath(name).suffix.lower() in SUFFIXES and not name.startswith(".") and "/." not in name
    return name if image and member.isreg() and not member.issparse() else ""


def _content(file: IO[bytes], size: int | None, member: tarfile.TarInfo, wanted: bool) -> bytes | ImageError:
    """The data of a member, b"" if it is not wanted; an error if the tar ends before it does, wanted or not.

    In a compressed tar all members are read alike: where damage is met depends on how much is read at a time.
    """
    if size is not None and member.offset_data + member.size > size:
        raise tarfile.ReadError
    try:
        check_bytes(member.size)
    except ImageError as error:
        return error if wanted else b""
    if not wanted and size is not None:
        return b""
    file.seek(member.offset_data)
    data = file.read(member.size)
    if len(data) < member.size:
        raise tarfile.ReadError
    return data if wanted else b""


def _is_end(file: IO[bytes], at: int) -> bool:
    """Whether nothing but zeros follows, as behind the last photo; a compressed file is read to its end, and checked.

    Anything else stays to be read: behind a header that was lost to zeros, or in a tar that was appended to this one.
    """
    file.seek(at)
    length = _BLOCK  # and then more and more: of a damaged file, no more than that is lost
    while some := file.read(length):
        if some.count(0) != len(some):
            zeros = len(some) - len(some.lstrip(b"\0"))
            file.seek(at + zeros - zeros % _BLOCK)
            return False
        at += len(some)
        length = min(2 * length, BUFFER)
    return True


def _sound(file: IO[bytes], at: int) -> int | None:
    """Where the next sound header is, from `at` on; None if there is none."""
    try:
        file.seek(at)
        while block := file.read(_BLOCK):
            if _is_header(block):
                return at
            at += len(block)
    except (ImageError, UnreachableError):  # the file itself could not be read
        raise
    except Exception:  # as above; that the data is damaged is told already
        pass
    return None


def _is_header(block: bytes) -> bool:
    with suppress(tarfile.HeaderError):
        return bool(_CHECKSUM.match(block, 148) and _Strict.frombuf(block, "utf-8", "surrogateescape"))
    return False


class _Forward:
    """What comes out of a compressed file, in proportion to it; only the last read can be taken back.

    To go back any further means to decompress all of it again.
    """

    def __init__(self, file: IO[bytes], packed: IO[bytes]) -> None:
        self._file, self._packed = file, packed
        self._at, self._most = 0, FREE  # bytes that came out, and that may
        self._last, self._again = b"", 0  # what was read, and how many bytes of its end are to be read once more

    def tell(self) -> int:
        return self._at - self._again

    def seek(self, at: int) -> int:
        if self._at - at > len(self._last):
            raise io.UnsupportedOperation("too far back")
        self._again = max(0, self._at - at)
        while self._at < at and self._more(at - self._at):
            self._last = b""
        return self.tell()

    def read(self, size: int) -> bytes:
        start = len(self._last) - self._again
        if size <= self._again:
            self._again -= size
            return self._last[start : start + size]
        data = self._last[start:] + self._more(size - self._again)
        if len(data) < size:  # it is large, or the last
            data = self._large(data, size)
        self._last, self._again = data, 0
        return data

    def _large(self, start: bytes, size: int) -> bytes:
        whole = io.BytesIO()  # it hands out what it holds, without a copy
        whole.write(start)
        while data := self._more(size - whole.tell()):
            whole.write(data)
        return whole.getvalue()

    def _more(self, size: int) -> bytes:
        data = self._file.read(min(size, BUFFER))
        self._at += len(data)
        if self._at > self._most:
            self._most = FREE + RATIO * self._packed.tell()
            if self._at > self._most:
                raise ImageError(f"decompresses to over {FREE >> 20} MiB and {RATIO} times its size")
        return data


class _Archive(tarfile.TarFile):
    chain = 0  # extended headers since the last member


class _Chained(Exception):
    """Extended headers without end; they are passed over when this is raised."""


class _Strict(tarfile.TarInfo):
    """A header of a tar: what `tarfile` takes for the end of the archive, though it is damage, is an error.

    The methods of `tarfile` that are replaced here take time or memory out of proportion, or call themselves for each
    extended header.
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Strict:
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            raise tarfile.SubsequentHeaderError(str(error)) from error  # type: ignore[attr-defined]
        if header.size < 0 or (header.type in _NAMES and header.size > LONGEST):
            raise tarfile.SubsequentHeaderError("a size that cannot be")  # type: ignore[attr-defined]
        return header

    def _proc_member(self, archive: Any) -> _Strict:
        if self.type not in _NAMES:
            archive.chain = 0
        else:
            archive.chain += 1
            if archive.chain > CHAIN:
                _pass_chain(archive.fileobj, self)
                raise _Chained
            self._check_attributes(archive)
        member: _Strict = super()._proc_member(archive)  # type: ignore[misc]
        return member

    def _check_attributes(self, archive: Any) -> None:
        """Raise unless the records of a pax header are where they say, and those for all members are few."""
        if self.type in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK):
            return
        start = archive.fileobj.tell()
        data, at = archive.fileobj.read(self.size), 0
        archive.fileobj.seek(start)
        while at < len(data) and data[at]:
            found = _RECORD.match(data, at)
            at += int(found[1]) if found else 0
            if not found or found.end() >= at or data[at - 1 : at] != b"\n":
                raise tarfile.SubsequentHeaderError("records that overlap")  # type: ignore[attr-defined]
        if len(archive.pax_headers) > GLOBALS:
            raise tarfile.SubsequentHeaderError("too many attributes")  # type: ignore[attr-defined]

    def _proc_sparse(self, archive: Any) -> _Strict:
        """Go over the map of a sparse member, which is not kept: it may be as large as the tar."""
        extended = self._sparse_structs[1]  # type: ignore[attr-defined]
        while extended:
            extended = archive.fileobj.read(_BLOCK)[504]
        self.sparse = b""  # any that is not None
        self.offset_data = archive.fileobj.tell()
        archive.offset = self.offset_data - (-self.size // _BLOCK) * _BLOCK
        return self

    def _proc_gnusparse_10(self, member: Any, *_: object) -> None:
        member.sparse = b""  # the same, of a newer kind


def _pass_chain(file: IO[bytes], header: tarfile.TarInfo) -> None:
    """Go to the first header behind one that was just read, and is extended, which is not."""
    at = file.tell() - _BLOCK
    with suppress(tarfile.HeaderError):
        while header.type in _NAMES:
            at = file.seek(at + _BLOCK - (-header.size // _BLOCK) * _BLOCK)
            header = _Strict.frombuf(file.read(_BLOCK), "utf-8", "surrogateescape")
    file.seek(at)


KIND = Kind(filesystems.named(SUFFIX), lambda path, options: [Tar(path)], SUFFIX)
