"""Files here and behind URLs under the same calls; a remote call that fails is tried again, with growing waits."""

from __future__ import annotations

import errno
import io
import os
import random
import re
import tempfile
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from outword.base.extras import install, require
from outword.errors import ImageError, MissingExtraError, UnreachableError
from outword.photos.ahead import pool_of
from outword.photos.decode import Blob, check_bytes, read_bytes
from outword.photos.decode import open_file as open_local

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

Result = TypeVar("Result")

WAITS = (0.1, 0.4, 1.6, 6.4)  # seconds before a remote call is tried again, more or less
THREADS = 16  # that read remote photos
AHEAD = 32  # photos that are read before they are asked for
OUTAGE = 32  # photos in a row that are out of reach: it is not the photos
FIRST = 8 << 20  # bytes of a remote photo that are read before its size is asked for
BLOCK = 4 << 20  # bytes of a remote archive that are read together
NEXT = 3  # blocks that are read before they are asked for, where an archive is read in order
KEPT = 8  # blocks that are in memory
DEPTH = 64  # folders below a remote one that are gone through: a link on a server may lead back to where it is
TOO_DEEP = f"over {DEPTH} folders deep"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_WEB = ("http", "https")
_FINAL = (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError, NotImplementedError)
_UNUSABLE = (TypeError, ValueError, AttributeError, ImportError, IsADirectoryError)  # of one that needs more than a URL
_BOTO = re.compile("Credential|Profile|Validation")  # errors of botocore that are the user's
_TIMES = ("ETag", "etag", "LastModified", "last_modified", "Last-Modified", "updated", "mtime", "created")


@dataclass(frozen=True)
class Link(os.PathLike[str]):
    """A photo that is still to be read: the name that it will have, and the path or URL where it is."""

    name: str
    where: str

    def __fspath__(self) -> str:
        return self.name


class Missing(ImageError):
    """A remote file or folder that is not there."""


def is_remote(path: str) -> bool:
    """Whether a path is a URL.

    >>> is_remote("s3://bucket/a.jpg"), is_remote("a:/b.jpg")
    (True, False)
    """
    return "://" in path and _URL.match(path) is not None


def ending(path: str) -> str:
    """The end of a path by which files are told, in lower case; what follows "?" in a web address is no part of it.

    >>> ending("https://host/a/B.JPG?w=3")
    'https://host/a/b.jpg'
    """
    return (re.split("[?#]", path)[0] if path.startswith(("http://", "https://")) else path).lower()


def named(suffixes: tuple[str, ...]) -> Callable[[str], bool]:
    """A test whether a file has one of these suffixes; a folder has none."""
    return lambda path: ending(path).endswith(suffixes) and (is_remote(path) or not os.path.isdir(path))  # noqa: PTH112


def protocol(url: str) -> str:
    """What comes before "://", in lower case."""
    return url.partition("://")[0].lower()


def open_file(path: str, *, buffer: int = 1 << 16) -> IO[bytes]:
    """Open a file for reading at any place, or raise `ImageError` in plain words.

    One that a web server does not give in parts is fetched to the disk first. A place that does not answer is an
    `UnreachableError`, here and below: what it would have said is not known.
    """
    if not is_remote(path):
        return open_local(path, buffer)
    system, inside = _system(path)
    info = _info(path)
    if info["type"] == "directory":
        raise ImageError("is a directory", hint="name the files in it")
    if protocol(path) in _WEB and not _try(path, lambda: _has_ranges(system, inside)):
        return _try(path, lambda: _download(system, inside))
    return io.BufferedReader(_Blocks(path, system, inside, info["size"]), buffer)


def read_file(path: str) -> bytes:
    """The content of a photo, or `ImageError` in plain words; in one request, if it is not very large."""
    if not is_remote(path):
        return read_bytes(Path(path))
    system, inside = _system(path)
    if protocol(path) in _WEB:
        return _try(path, lambda: _read_web(system, inside))
    data = _try(path, lambda: _read_first(system, inside))
    if len(data) != FIRST:
        return data
    size = _info(path)["size"] or 0
    check_bytes(size)
    return data + (_try(path, lambda: bytes(system.cat_file(inside, start=FIRST, end=size))) if size > FIRST else b"")


def version(path: str) -> tuple[int, str]:
    """Size and time of a file, or whatever else shows that it has changed; (-1, "") if there is none."""
    try:
        if not is_remote(path):
            found = Path(path).stat()
            return found.st_size, str(found.st_mtime_ns)
        info = _info(path)
    except (ImageError, OSError, ValueError):
        return -1, ""
    return info.get("size") or 0, next((str(info[key]) for key in _TIMES if info.get(key)), "")


def exists(path: str) -> bool:
    """Whether there is a file or a folder of that name; `ImageError` if that cannot be told."""
    try:
        return bool(_info(path)) if is_remote(path) else os.path.lexists(path)
    except Missing:
        return False


def is_file(path: str) -> bool:
    """Whether a path is that of a file; `ImageError` if there is nothing behind a URL, or it cannot be told.

    Web servers have files only; an address that ends with "/" is taken for a page with links to files.
    """
    if not is_remote(path):
        return os.path.isfile(path)  # noqa: PTH113  # a path with a null character is none
    if protocol(path) in _WEB:
        return not ending(path).endswith("/")
    return bool(_info(path)["type"] == "file")


def scan(folder: str) -> Iterator[tuple[str, bool]]:
    """The names in a remote folder, sorted, each with whether it is a folder; `ImageError` if it cannot be listed.

    Hidden ones are left out. A bucket on S3 is listed page by page, as it gives sorted names by itself; other places
    list a folder in one go.
    """
    system, path = _system(folder)
    pages = _pages_of_s3 if hasattr(system, "call_s3") else _only_page
    for page in pages(folder, system, path):
        yield from sorted(entry for entry in page if entry[0][:1] not in ("", "."))


def fetched(items: Iterable[Path | Blob | Link]) -> Iterator[Path | Blob]:
    """The items in order, with links read ahead by threads; what cannot be read is a blob with an error.

    Photos out of reach are such too, but `OUTAGE` of them in a row are an `UnreachableError` instead.
    """
    lost: list[Path | Blob] = []  # those out of reach since the last answer
    for item, outage in _in_order(items):
        lost.append(item)
        if outage is None:
            yield from lost
            lost.clear()
        elif len(lost) == OUTAGE:
            raise outage
    yield from lost


Fetched = tuple["Path | Blob", "UnreachableError | None"]


def _in_order(items: Iterable[Path | Blob | Link]) -> Iterator[Fetched]:
    waiting: deque[Callable[[], Fetched]] = deque()
    with pool_of(THREADS, "outword-fetch") as pool:  # it has no thread before there is a link
        for item in items:
            if isinstance(item, Link):
                waiting.append(pool.submit(_fetch, item).result)
            elif waiting:
                waiting.append(partial(_fetch, item))
            else:
                yield item, None
            if len(waiting) >= AHEAD:
                yield waiting.popleft()()
        while waiting:
            yield waiting.popleft()()


def _fetch(link: Path | Blob | Link) -> Fetched:
    if not isinstance(link, Link):
        return link, None
    try:
        return Blob(link.name, read_file(link.where)), None
    except ImageError as error:
        return Blob(link.name, error), None
    except UnreachableError as error:
        return Blob(link.name, ImageError(error.message.removeprefix(f"{link.where} "))), error


def check_packages(url: str) -> None:
    """Raise `MissingExtraError` if the packages for a URL are not installed."""
    with suppress(ImageError):
        _kind(url)


def _system(url: str) -> tuple[Any, str]:
    """The file system of fsspec behind a URL, and the path in it."""
    try:
        kind = _kind(url)
    except MissingExtraError as error:
        raise ImageError(error.message, hint=error.hint) from None

    def made() -> tuple[Any, str]:
        try:
            options = tuple(sorted(kind._get_kwargs_from_urls(url).items()))
            return _made(kind, options, os.getpid()), kind._strip_protocol(url)
        except _UNUSABLE as error:
            raise ImageError(f"{protocol(url)}:// cannot be used: {_text(error)}") from error

    return _try(url, made)


def _kind(url: str) -> Any:
    """The class of file systems behind a URL."""
    name = protocol(url)
    extra = "s3" if name in ("s3", "s3a") else "remote"
    fsspec = require("fsspec", f"{name}://", extra)
    try:
        return fsspec.get_filesystem_class(name)
    except ImportError as error:
        hint = install(extra) if extra == "s3" else str(error)
        raise MissingExtraError(f"{name}:// needs one more package", hint=hint) from None
    except ValueError:
        raise ImageError(f"{name}:// is not known to fsspec", hint="see its list of file systems") from None


@lru_cache(maxsize=32)
def _made(kind: Any, options: tuple[tuple[str, Any], ...], process: int) -> Any:
    """A file system that tries once, as `_try` does the rest, and does not wait for ever; what the user set stays."""
    system = kind(skip_instance_cache=True, **dict(options))
    if hasattr(system, "retries"):
        system.retries = 1
    if hasattr(system, "config_kwargs"):  # of botocore
        once = {"retries": {"total_max_attempts": 1}, "max_pool_connections": 2 * THREADS}
        system.config_kwargs = once | system.config_kwargs
    if "http" in kind.protocol:
        from aiohttp import ClientTimeout

        system.client_kwargs = {"timeout": ClientTimeout(None, sock_connect=10, sock_read=30)} | system.client_kwargs
    return system


def _try(url: str, call: Callable[[], Result]) -> Result:
    """Call until it works; `ImageError` if the answer is no, `UnreachableError` if there never is one."""
    attempt = 0
    while True:
        try:
            return call()
        except ImageError:
            raise
        except Exception as error:  # each file system has its own
            if _is_final(error):
                raise _refusal(error) from error
            if attempt == len(WAITS):
                raise UnreachableError(
                    f"{url} cannot be read, after {attempt + 1} attempts: {_text(error)}",
                    hint="run the same command again, it goes on where it was",
                ) from error
        time.sleep(WAITS[attempt] * random.SystemRandom().uniform(0.5, 1.5))
        attempt += 1


def _is_final(error: Exception) -> bool:
    """Whether there is no use in trying again."""
    status = _status(error)
    if status:
        return 400 <= status < 500 and status not in (408, 425, 429)
    if isinstance(error, FileNotFoundError) and type(error.__cause__).__module__.startswith("aiohttp"):
        return False  # what fsspec says of the web whenever a connection fails
    return isinstance(error, _FINAL) or _is_no_range(error) or _BOTO.search(type(error).__name__) is not None


def _is_no_range(error: Exception) -> bool:
    """Whether a file has no such bytes, as an empty one has no first byte; some say so of any bad request."""
    return _status(error) == 416 or getattr(error, "errno", None) == errno.EINVAL


def _status(error: BaseException) -> int:
    """The HTTP status that is behind an error of fsspec's web file system; 0 where there is none."""
    found = getattr(error, "status", None) or getattr(error.__cause__, "status", None)
    return found if isinstance(found, int) else 0


def _text(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _refusal(error: Exception) -> ImageError:
    text = _text(error)
    if isinstance(error, PermissionError) or _status(error) in (401, 403):
        return ImageError("permission denied", hint=text)
    if isinstance(error, IsADirectoryError):
        return ImageError("is a directory", hint="name the files in it")
    if isinstance(error, FileNotFoundError | NotADirectoryError) or _status(error) in (404, 410):
        return Missing("no such bucket" if "bucket does not exist" in text else "no such file")
    return ImageError(f"cannot be read: {text}")


def _info(url: str) -> dict[str, Any]:
    """What the file system knows of a file."""
    system, path = _system(url)
    try:
        return _try(url, lambda: dict(system.info(path)))
    except Missing:
        if hasattr(system, "call_s3") and "/" not in path:
            raise Missing("no such bucket") from None
        raise


def _read_first(system: Any, path: str) -> bytes:
    """The first bytes of a photo, which may be all."""
    try:
        return bytes(system.cat_file(path, start=0, end=FIRST))
    except Exception as error:
        if _is_no_range(error) and system.info(path)["size"] == 0:
            return b""
        raise


def _read_web(system: Any, path: str) -> bytes:
    """A photo from a web server, which need not know ranges, nor say how much there is."""
    file = _Limited()
    system.get_file(path, file)
    return file.getvalue()


class _Limited(io.BytesIO):
    """A file in memory that takes as much as a photo may have."""

    def write(self, data: ReadableBuffer) -> int:
        check_bytes(self.tell() + memoryview(data).nbytes)
        return super().write(data)


def _only_page(url: str, system: Any, path: str) -> Iterator[set[tuple[str, bool]]]:
    found = _try(url, lambda: system.ls(path, detail=True))
    system.invalidate_cache(path)  # it would keep all listings
    yield {(one["name"].rstrip("/").rpartition("/")[2], one["type"] == "directory") for one in found}


def _pages_of_s3(url: str, system: Any, path: str) -> Iterator[set[tuple[str, bool]]]:
    """The names under a prefix of a bucket; S3 sorts files and prefixes together, and gives a thousand a page."""
    bucket, _, prefix = path.partition("/")
    prefix = f"{prefix}/" if prefix else ""
    asked = {"Bucket": bucket, "Prefix": prefix, "Delimiter": "/"}
    found = False
    while asked:
        page = _try(url, partial(system.call_s3, "list_objects_v2", **asked))
        files = {(one["Key"][len(prefix) :], False) for one in page.get("Contents", ())}
        folders = {(one["Prefix"][len(prefix) : -1], True) for one in page.get("CommonPrefixes", ())}
        found = found or bool(files or folders)
        yield files | folders
        asked = asked | {"ContinuationToken": page["NextContinuationToken"]} if page.get("IsTruncated") else {}
    if prefix and not found:
        raise Missing("no such folder")


def _has_ranges(system: Any, path: str) -> bool:
    """Whether a web server gives parts of a file."""
    try:
        with system.open(path, "rb", cache_type="none") as file:
            file.seek(1)
            file.read(1)
    except ValueError:
        return False
    return True


def _download(system: Any, path: str) -> IO[bytes]:
    """A copy of a file in a temporary one, which is gone when it is closed."""
    with ExitStack() as failed:
        file = failed.enter_context(tempfile.TemporaryFile())
        system.get_file(path, file)
        file.seek(0)
        failed.pop_all()
    return file


class _Blocks(io.RawIOBase):
    """A remote file, read in blocks by threads; those behind it come ahead where it is read in order."""

    def __init__(self, url: str, system: Any, path: str, size: int) -> None:
        self._url, self._system, self._path, self._size = url, system, path, size
        self._at = 0
        self._blocks: OrderedDict[int, Future[bytes]] = OrderedDict()
        self._pool = ThreadPoolExecutor(NEXT + 1, thread_name_prefix="outword-blocks")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        if self._at >= self._size or not view:
            return 0
        number, start = divmod(self._at, BLOCK)
        part = self._block(number)[start : start + len(view)]
        view[: len(part)] = part
        self._at += len(part)
        return len(part)

    def close(self) -> None:
        if not self.closed:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._blocks.clear()
        super().close()

    def _block(self, number: int) -> bytes:
        following = NEXT if number - 1 in self._blocks else 0
        last = min(number + following, (self._size - 1) // BLOCK)
        for wanted in range(number, last + 1):
            if wanted not in self._blocks:
                self._blocks[wanted] = self._pool.submit(_try, self._url, partial(self._range, wanted * BLOCK))
            self._blocks.move_to_end(wanted)
        while len(self._blocks) > KEPT:
            self._blocks.popitem(last=False)
        return self._blocks[number].result()

    def _range(self, start: int) -> bytes:
        end = min(start + BLOCK, self._size)
        data = bytes(self._system.cat_file(self._path, start=start, end=end))
        if len(data) != end - start:
            raise OSError(f"{len(data)} bytes came for {end - start}")
        return data
