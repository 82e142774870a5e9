"""Files of the Hugging Face hub, in the cache that its own tools use; nothing is fetched twice.

HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE, HF_ENDPOINT, HF_TOKEN and the proxy variables mean what they mean there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from outword.encoders.doors import need
from outword.errors import InputError, OutwordError
from outword.files import sha256_file

SMALL = ["*.json", "*.txt", "*.model", "README.md"]  # configuration, vocabulary, model card


def cached(repo: str, names: Sequence[str]) -> Path | None:
    """The first of these files that is in the cache already."""
    hub = need("huggingface_hub", f"hf:{repo}")
    for name in names:
        found = hub.try_to_load_from_cache(repo, name)
        if isinstance(found, str):
            return Path(found)
    return None


def fetch(repo: str, names: Sequence[str], instead: str) -> Path:
    """The first of these files that the repository has, fetched if need be; `instead` says what else to do."""
    if (found := cached(repo, names)) is not None:
        return found
    hub = need("huggingface_hub", f"hf:{repo}")
    for name in names:
        try:
            return Path(hub.hf_hub_download(repo, name))
        except hub.errors.LocalEntryNotFoundError:  # a child of EntryNotFoundError, but it means: no way to the hub
            raise _unreachable(repo, name, "it is not in the cache, and the hub cannot be reached", instead) from None
        except hub.errors.EntryNotFoundError:
            continue
        except Exception as error:  # refused, no such repository, a proxy's word: all end here, in one line
            raise _unreachable(repo, name, error, instead) from None
    raise InputError(f"{repo} on the hub has none of {', '.join(names)}", hint=instead)


def snapshot(repo: str, weights: Callable[[Path], Sequence[str]], instead: str) -> Path:
    """A folder with the small files of a repository, and of its weights the first of `weights(folder)` that it has."""
    hub = need("huggingface_hub", f"hf:{repo}")
    try:
        folder = Path(hub.snapshot_download(repo, allow_patterns=SMALL, local_files_only=True))
        if any(next(folder.glob(pattern), None) for pattern in weights(folder)):
            return folder
    except Exception:
        pass  # not in the cache, or not all of it
    try:
        folder = Path(hub.snapshot_download(repo, allow_patterns=SMALL))
        for pattern in weights(folder):
            hub.snapshot_download(repo, allow_patterns=pattern)
            if next(folder.glob(pattern), None):
                return folder
    except OutwordError:
        raise
    except Exception as error:
        raise _unreachable(repo, "config.json and model.safetensors", error, instead) from None
    raise InputError(f"{repo} on the hub has no weights ({', '.join(weights(folder))})", hint=instead)


def digest(path: Path) -> str:
    """sha256 of a file; the cache names large files by it, which saves reading them."""
    name = path.resolve().name
    return name if re.fullmatch("[0-9a-f]{64}", name) else sha256_file(path)


def licence(card: Path) -> str:
    """What a model card (README.md) says of the licence, in its head of `key: value` lines."""
    try:
        head = card.read_text(encoding="utf-8", errors="replace")[:4000]
    except OSError:
        return "not stated"
    found = re.match(r"---\n(?:.*\n)*?license:[ ]*([\w.+-]+)", head)
    return found[1] if found else "not stated"


def _unreachable(repo: str, name: str, error: Exception | str, instead: str) -> InputError:
    """Which file is missing, why, and how to bring it by hand."""
    reason = " ".join(str(error).split()) or type(error).__name__
    return InputError(f"cannot fetch {name} of {repo} from the hub: {reason[:200]}", hint=instead)
