"""Files of the Hugging Face hub, in the cache that its own tools use; what is there is not asked for again.

HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE, HF_ENDPOINT, HF_TOKEN and the proxy variables mean what they mean there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from outword.base.extras import quiet_logs, require
from outword.base.files import sha256_file
from outword.base.waiting import Asked, waiting
from outword.encoders.base import in_short
from outword.errors import InputError

_CUT_OFF = re.compile("offline mode|couldn't connect", re.IGNORECASE)  # libraries say so, with advice of their own
_NO_WAY = "it is not in the cache, and the hub cannot be reached"
_closed: ContextVar[str] = ContextVar("_closed", default="")  # to the encoder of this name
PATIENCE = 6.0  # seconds in which the hub answers, or cannot be reached
SMALL = ["*.json", "*.txt", "*.model", "README.md"]  # configuration, vocabulary, model card


@contextmanager
def closed(name: str) -> Iterator[None]:
    """A block in which nothing is fetched: where something had to be, that is an error about the encoder `name`.

    The libraries that build models are held to the same: a configuration may name other models in its turn.
    """
    constants = require("huggingface_hub.constants", name) if find_spec("huggingface_hub") else None
    before = getattr(constants, "HF_HUB_OFFLINE", None)
    token = _closed.set(name)
    try:
        if constants is not None:
            vars(constants)["HF_HUB_OFFLINE"] = True
        yield
    except InputError as error:
        if _CUT_OFF.search(error.message):
            raise _not_asked_for() from None
        raise
    finally:
        _closed.reset(token)
        if constants is not None:
            vars(constants)["HF_HUB_OFFLINE"] = before


def check_open() -> None:
    """Raise in a block in which nothing is fetched."""
    if _closed.get():
        raise _not_asked_for()


def _not_asked_for() -> InputError:
    name = _closed.get()
    return InputError(
        f"the encoder {name} is not on this machine and would be fetched from the hub, but a file names it, not you",
        hint=f"if you trust it, add --trust-encoder, or name it by hand: --encoder {name} (in Python "
        f'trust_encoder=True, or encoder="{name}")',
    )


def cached(repo: str, names: Sequence[str]) -> Path | None:
    """The first of these files that is in the cache already."""
    hub = require("huggingface_hub", f"hf:{repo}")
    for name in names:
        found = hub.try_to_load_from_cache(repo, name)
        if isinstance(found, str):
            return Path(found)
    return None


def checked_sha256(path: Path) -> str:
    """sha256 of a file; `InputError` where it lies in the hub's cache and is not what was fetched.

    That cache names a file by its content: a large one by its sha256, a small one by the hash that git has of it.
    """
    blob = path.resolve()
    named = blob.name if blob.parent.name == "blobs" and len(blob.name) in (40, 64) else ""
    if named and not has_hash(blob, named):
        raise InputError(
            f"{path} is damaged: it is not what was fetched", hint=f"remove {blob}, and it is fetched anew"
        )
    return named if len(named) == 64 else sha256_file(path)


def has_hash(path: Path, digest: str) -> bool:
    """Whether a file has this hash: sha256 in 64 digits, or git's own in 40."""
    return digest == (sha256_file(path) if len(digest) == 64 else _git_hash(path))


def _git_hash(path: Path) -> str:
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def fetch(repo: str, names: Sequence[str], instead: str) -> Path:
    """The first of these files that the repository has, fetched if need be; `instead` says what else to do."""
    if (found := cached(repo, names)) is not None:
        return found
    check_open()
    hub = require("huggingface_hub", f"hf:{repo}")
    _check_reachable(repo, names[0], instead)
    for name in names:
        try:
            with quiet_logs():  # five notes on trying again
                return Path(hub.hf_hub_download(repo, name))
        except hub.errors.LocalEntryNotFoundError:  # a child of EntryNotFoundError, but it means: no way to the hub
            raise _unreachable(repo, name, _NO_WAY, instead) from None
        except hub.errors.EntryNotFoundError:
            continue
        except Exception as error:  # refused, no such repository, a proxy's word: all end here, in one line
            raise _unreachable(repo, name, in_short(error, 200), instead) from None
    raise InputError(f"{repo} on the hub has none of {', '.join(names)}", hint=instead)


def snapshot(repo: str, missing: Callable[[Path], list[str]], instead: str) -> Path:
    """A folder with the small files of a repository and its weights, fetched if need be.

    `missing` gives the patterns of the files that a folder still lacks, the first choice first, and none when it is
    complete.
    """
    hub = require("huggingface_hub", f"hf:{repo}")
    try:
        folder = Path(hub.snapshot_download(repo, allow_patterns=SMALL, local_files_only=True))
        if not missing(folder):
            return folder
    except hub.errors.LocalEntryNotFoundError:
        pass  # nothing of it is in the cache
    check_open()
    wanted = "config.json"
    _check_reachable(repo, wanted, instead)
    try:
        with quiet_logs():
            folder = Path(hub.snapshot_download(repo, allow_patterns=SMALL))
            for pattern in missing(folder):
                wanted = pattern
                hub.snapshot_download(repo, allow_patterns=pattern)
                if not missing(folder):
                    return folder
    except InputError:
        raise
    except Exception as error:  # as above
        cut_off = isinstance(error, hub.errors.LocalEntryNotFoundError)
        raise _unreachable(repo, wanted, _NO_WAY if cut_off else in_short(error, 200), instead) from None
    return folder


def _check_reachable(repo: str, name: str, instead: str) -> None:
    """Raise where the hub does not answer within seconds: its own library goes on trying for half a minute and more."""
    hub, constants = require("huggingface_hub"), require("huggingface_hub.constants")
    if constants.HF_HUB_OFFLINE:  # then it does not try at all
        return
    with waiting(f"asking {urlsplit(constants.ENDPOINT).netloc} for {repo}"):
        answered = _answers(hub.hf_hub_url(repo, name))
    if not answered:
        raise _unreachable(repo, name, _NO_WAY, instead)


def _answers(url: str) -> bool:
    """Whether a server says anything at all; the names of hosts are looked up in that time, too."""

    def ask() -> bool:
        with suppress(Exception):
            require("huggingface_hub.utils").get_session().head(url, timeout=PATIENCE)
            return True
        return False

    return bool(Asked(ask, PATIENCE).answer())


def licence(card: Path | None) -> str:
    """What a model card (README.md), if there is one, says of the licence, in its head between two lines of dashes."""
    try:
        text = card.read_text(encoding="utf-8", errors="replace")[:20_000] if card else ""
    except OSError:
        return "not stated"
    head = re.match(r"---\n(.*?)^---$", text, re.DOTALL | re.MULTILINE)
    found = re.search(r"^license:[ ]*(?:\n[ ]*-[ ]*)?[\"']?([\w.+-]+)", head[1] if head else "", re.MULTILINE)
    return found[1] if found else "not stated"


def _unreachable(repo: str, name: str, reason: str, instead: str) -> InputError:
    """Which file is missing, why, and how to bring it by hand."""
    return InputError(f"cannot fetch {name} of {repo} from the hub: {reason}", hint=instead)
