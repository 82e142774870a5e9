"""Files of a repository of the Hugging Face hub, by plain HTTPS and the standard library alone.

They go into the cache that the hub's own tools use, in their layout, and what is there is not asked for again:

    models--ORG--NAME/refs/main                    the commit that was fetched last
    models--ORG--NAME/snapshots/COMMIT/FILE        links to what is in `blobs`
    models--ORG--NAME/blobs/HASH                   contents; a part of one is called HASH.incomplete

HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE, HF_ENDPOINT, HF_TOKEN and the proxy variables mean what they mean there. The hub
says how long a file is and which hash it has, and nothing else is accepted.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from outword.base.files import parse_json, whole_file
from outword.base.hub_settings import cache, endpoint, offline
from outword.base.locks import lock, release
from outword.base.waiting import downloading, waiting
from outword.encoders import hub
from outword.errors import InputError

LOCAL = ("localhost", "127.0.0.1", "::1")  # hosts that may be asked without TLS, where the user names one
MOST_LISTED = 64 << 20  # bytes of a repository's list of files
LARGEST = 16 << 30  # bytes of one file
BLOCK = 1 << 18
TRIES = 4  # of a file whose connection breaks
PATIENCE = 20.0  # seconds without a byte
_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_PART = re.compile(r"[\w+-][\w.+ -]*", re.ASCII)  # of a file's path
_COMMIT, _HASH = re.compile("[0-9a-f]{40}"), re.compile("[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True)
class Listing:
    """What a repository holds at a commit: by path the size of a file, and its hash (see `hub.checked_sha256`)."""

    repo: str
    commit: str
    licence: str
    files: dict[str, tuple[int, str]]


def is_repo(name: str) -> bool:
    """Whether it can be the name of a repository, ORG/NAME.

    >>> is_repo("Xenova/clip-vit-base-patch32"), is_repo("../x"), is_repo("a/b/c")
    (True, False, False)
    """
    return bool(_REPO.fullmatch(name))


def snapshot(repo: str) -> Path | None:
    """The folder with what was fetched of a repository, where there is one."""
    folder = _folder(repo)
    with suppress(OSError):
        found = folder / "snapshots" / (folder / "refs" / "main").read_text(encoding="utf-8").strip()
        return found if _COMMIT.fullmatch(found.name) and found.is_dir() else None
    return None


def listing(repo: str, instead: str) -> Listing:
    """Ask the hub what a repository holds; `instead` says what else to do where it cannot be reached."""
    hub.check_open()
    if offline():
        raise _unreachable(repo, "the list of files", "HF_HUB_OFFLINE is set", instead)
    try:
        with (
            waiting(f"asking {urlsplit(endpoint()).netloc} for {repo}"),
            _open(f"/api/models/{repo}/revision/main?blobs=true") as answer,
        ):
            data = answer.read(MOST_LISTED + 1)
        if len(data) > MOST_LISTED:
            raise ValueError(f"the list of files has more than {MOST_LISTED >> 20} MB")
        return _listed(repo, parse_json(data))
    except (OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError) as error:
        raise _unreachable(repo, "the list of files", _reason(error), instead) from None


def fetch(listed: Listing, names: Sequence[str], instead: str) -> Path:
    """Fetch files of a repository that are not in the cache yet; gives the folder that has all of them."""
    hub.check_open()
    folder = _folder(listed.repo)
    target = folder / "snapshots" / listed.commit
    missing = [name for name in names if not (target / name).is_file()]
    total = sum(listed.files[name][0] for name in missing)
    (folder / "blobs").mkdir(parents=True, exist_ok=True)
    if missing:
        about = f"{listed.repo} from {urlsplit(endpoint()).netloc}: {total / 1e6:,.1f} MB, licence {listed.licence}"
        with downloading(about, total) as report:
            done = 0
            for name in missing:
                try:
                    blob = _blob(listed, name, lambda here, before=done: report(before + here))
                except (OSError, HTTPException, ValueError) as error:
                    raise _unreachable(listed.repo, name, _reason(error), instead) from None
                _link(target / name, blob)
                done += listed.files[name][0]
    (folder / "refs").mkdir(exist_ok=True)
    with whole_file(folder / "refs" / "main") as temporary:
        temporary.write_text(listed.commit, encoding="utf-8")
    return target


def _folder(repo: str) -> Path:
    return cache() / f"models--{repo.replace('/', '--')}"


def _listed(repo: str, found: Any) -> Listing:
    """The list of files as the hub's API gives it; what has a name that could leave the folder is not in it."""
    if not _COMMIT.fullmatch(found["sha"]):
        raise ValueError(f"its commit is {found['sha']!r}")
    files = {}
    for entry in found["siblings"]:
        name, size = entry["rfilename"], entry.get("size")
        digest = (entry.get("lfs") or {}).get("sha256") or entry.get("blobId")
        if _is_plain(name) and type(size) is int and 0 <= size <= LARGEST and _HASH.fullmatch(str(digest)):
            files[name] = (size, digest)
    licence = (found.get("cardData") or {}).get("license")
    return Listing(repo, found["sha"], licence if isinstance(licence, str) else "not stated", files)


def _is_plain(name: Any) -> bool:
    """Whether a path of a repository stays inside it, on any system."""
    return isinstance(name, str) and all(_PART.fullmatch(part) for part in name.split("/"))


def _blob(listed: Listing, name: str, report: Any) -> Path:
    """The content of a file, fetched and checked; what a killed process has fetched of it is gone on with."""
    size, digest = listed.files[name]
    blobs = _folder(listed.repo) / "blobs"
    whole, part = blobs / digest, blobs / f"{digest}.incomplete"
    if whole.is_file():
        return whole
    path = f"/{listed.repo}/resolve/{listed.commit}/{quote(name)}"
    with _alone(blobs):
        for last in (*[False] * (TRIES - 1), True):
            if whole.is_file():  # another process has fetched it meanwhile
                return whole
            try:
                _receive(path, part, size, report)
                break
            except HTTPError:
                raise
            except (OSError, HTTPException):
                if last:
                    raise
                time.sleep(0.2)
        if not hub.has_hash(part, digest):
            part.unlink()
            raise ValueError("what came is not what the hub says that it is: its hash is another one")
        part.replace(whole)
    return whole


def _receive(path: str, part: Path, size: int, report: Any) -> None:
    """Append what is missing to a part; a server that cannot begin in the middle begins anew."""
    have = part.stat().st_size if part.is_file() else 0
    if have > size:
        part.unlink()
        have = 0
    if have == size and part.is_file():
        return
    with _open(path, {"Range": f"bytes={have}-"} if have else {}) as answer:
        if answer.status != 206 or not str(answer.headers.get("Content-Range", "")).startswith(f"bytes {have}-"):
            have = 0
        with part.open("ab" if have else "wb") as file:
            while block := answer.read(BLOCK):
                have += len(block)
                if have > size:
                    file.truncate(0)
                    raise ValueError(f"more came than the {size:,} bytes that the hub says")
                file.write(block)
                report(have)
    if have < size:
        raise ConnectionError(f"{have:,} of {size:,} bytes came")


def _link(target: Path, blob: Path) -> None:
    """Give a content its name: by a link, as the hub's tools do, or a copy where the system has no links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)  # a link whose blob is gone
    try:
        target.symlink_to(os.path.relpath(blob, target.parent))
    except FileExistsError:  # another process was first
        return
    except OSError:
        with whole_file(target) as temporary:
            shutil.copyfile(blob, temporary)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """A block that one process at a time goes through; others wait."""
    while True:
        try:
            handle = lock(folder)
            break
        except BlockingIOError:
            time.sleep(0.1)
    try:
        yield
    finally:
        release(handle)


class _Redirects(HTTPRedirectHandler):
    """Follows to where it is safe to go, and shows the token to no other host."""

    max_redirections = 5

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        """The next request."""
        _check_address(newurl, local=urlsplit(endpoint()).hostname in LOCAL)
        found = super().redirect_request(req, fp, code, msg, headers, newurl)
        if found is not None and urlsplit(newurl).netloc != urlsplit(req.full_url).netloc:
            found.remove_header("Authorization")
        return found


def _open(path: str, headers: dict[str, str] | None = None) -> Any:
    """An answer of the hub."""
    _check_address(endpoint(), local=True)
    request = Request(
        endpoint() + path, headers={"User-Agent": "outword", "Accept-Encoding": "identity", **(headers or {})}
    )
    if token := os.environ.get("HF_TOKEN"):
        request.add_header("Authorization", f"Bearer {token}")
    opener: OpenerDirector = build_opener(_Redirects)
    return opener.open(request, timeout=PATIENCE)


def _check_address(url: str, *, local: bool) -> None:
    """Raise unless an address is one of HTTPS, or of this machine where that is allowed."""
    found = urlsplit(url)
    if found.scheme == "https" or (found.scheme == "http" and local and found.hostname in LOCAL):
        return
    told = f"the hub must be asked by https, or on this machine, got {found.scheme}://{found.hostname}"
    raise InputError(told, hint="set HF_ENDPOINT to an address that begins with https://")


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        meant = {
            401: "it does not exist, or needs a token (HF_TOKEN)",
            403: "it may not be fetched without a token (HF_TOKEN) that is allowed to",
        }
        return f"HTTP {error.code}, {meant.get(error.code, error.reason)}"
    reason = getattr(error, "reason", error)
    return " ".join(str(reason).split())[:200] or type(error).__name__


def _unreachable(repo: str, name: str, reason: str, instead: str) -> InputError:
    return InputError(f"cannot fetch {name} of {repo} from the hub: {reason}", hint=instead)
