"""Tar files, plain or compressed, as WebDataset has them: read in order, never unpacked, damage passed over."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any, cast

from outword.errors import ImageError, UnreachableError
from outword.images import SUFFIXES, Blob, check_bytes
from outword.sources import places
from outword.sources.base import AGAIN, Kind, Piece, Wish, digest, inner, refusal

SUFFIX = (".tar", ".tar.gz", ".tgz")
LONGEST = 1 << 20  # bytes of a long name or of extended attributes; photos have some hundred
BUFFER = 1 << 20  # bytes that are read at a time
HEADERS = 1 << 12  # the same, where the photos are passed over
_BLOCK = tarfile.BLOCKSIZE
_NAMES = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_PACKED: tuple[tuple[bytes, Callable[..., Any]], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ\0", lzma.open),
)
Wanted = Callable[[int, str], bool]  # whether the photo with this number and name is read


@dataclass(frozen=True)
class Tar(Piece):
    """The image files of a tar: regular ones, hidden ones left out; each is called ARCHIVE/member/name."""

    path: str

    @property
    def name(self) -> str:
        """The path of the tar."""
        return self.path

    def items(self, skip: int = 0, *, contents: bool = True) -> Iterator[Blob]:
        """The photos in the order of the tar; after damage it goes on at the next header that is sound."""
        buffer = BUFFER if contents else HEADERS
        for number, blob in enumerate(self._read(lambda number, _: contents and number >= skip, buffer)):
            if number >= skip:
                yield blob

    def find(self, names: Collection[str]) -> Iterator[Blob]:
        """The photos, but only those with these names have data."""
        return self._read(lambda _, name: name in names)

    def mark(self) -> str:
        """By name, size and time of the file."""
        return digest("tar", self.path, *places.version(self.path))

    def _read(self, wanted: Wanted, buffer: int = BUFFER) -> Iterator[Blob]:
        try:
            with places.open_file(self.path, buffer=buffer) as file:
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
    plain = cast("IO[bytes]", _Forward(opener(file))) if opener else file
    at, number = 0, 0
    start: int | None = 0
    while start is not None:
        try:
            at = plain.seek(start)
            archive = tarfile.TarFile(fileobj=plain, tarinfo=_Strict)
            while (member := archive.next()) is not None:
                archive.members = []  # type: ignore[attr-defined]  # it would keep all of them
                end = archive.offset
                if member.size < 0 or end <= at or (member.isreg() and not member.name):  # an extension may say so
                    raise tarfile.ReadError
                if name := _photo(member):
                    name = f"{path}/{name}"
                    yield Blob(name, _content(plain, size, member, wanted(number, name)))
                    number += 1
                at = end
            if not _is_end(plain, at + _BLOCK):
                raise tarfile.ReadError
            return
        except UnreachableError:
            raise
        except Exception as error:  # hostile bytes make parsers raise nearly anything
            reason = refusal(error)
            at = at if size is None else min(at, size)
            yield Blob(path, ImageError(f"{reason or 'damaged'} at byte {at}", hint=AGAIN))
            number += 1
            if reason and not isinstance(error, MemoryError):
                return
            start = _sound(plain, at + _BLOCK if size is not None else _ahead(plain, at))


def _photo(member: tarfile.TarInfo) -> str:
    """The cleaned name of a member that is a photo; "" for any other."""
    name = inner(member.name)
    image = PurePosixPath(name).suffix.lower() in SUFFIXES and not name.startswith(".") and "/." not in name
    return name if image and member.isreg() and not member.issparse() else ""


def _content(file: IO[bytes], size: int | None, member: tarfile.TarInfo, wanted: bool) -> bytes | ImageError:
    """The data of a member, b"" if it is not wanted; an error if the tar ends before it does, wanted or not.

    In a compressed tar all members are read alike: where damage is met depends on how much is read at a time.
    """
    try:
        check_bytes(member.size)
    except ImageError as error:
        return error if wanted else b""
    if size is not None and member.offset_data + member.size > size:
        raise tarfile.ReadError
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
    while block := file.read(_BLOCK):
        if block.strip(b"\0"):
            file.seek(at)
            return False
        at += len(block)
    return True


def _ahead(file: IO[bytes], at: int) -> int:
    """The first block of a compressed file that was not read."""
    return max(at + _BLOCK, -(-file.tell() // _BLOCK) * _BLOCK)


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
    try:
        _Strict.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


class _Forward:
    """What comes out of a compressed file, where only the last read can be taken back.

    To go back any further means to decompress all of it again.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._last = self._again = b""  # what was read, and what of it is to be read once more

    def tell(self) -> int:
        return self._file.tell() - len(self._again)

    def seek(self, at: int) -> int:
        back = self._file.tell() - at
        if back > len(self._last):
            raise io.UnsupportedOperation("too far back")
        self._again = self._last[len(self._last) - back :] if back > 0 else b""
        if back < 0:
            self._file.seek(at)
        return self.tell()

    def read(self, size: int) -> bytes:
        again, self._again, self._last = self._again[:size], self._again[size:], b""
        self._last = again + self._file.read(size - len(again))
        return self._last


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
        if header.size < 0 or (header.type in _NAMES and header.size > LONGEST):
            raise tarfile.SubsequentHeaderError("a size that cannot be")  # type: ignore[attr-defined]
        return header


def _pieces(path: str, wish: Wish) -> Iterator[Piece]:
    yield Tar(path)


KIND = Kind(places.named(SUFFIX), _pieces, SUFFIX)
