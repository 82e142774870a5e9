"""Embeddings on disk: a folder of shards for each encoder, read back in the order of their paths.

photos.store/
  4f0c29a1b7d35e68/                          one folder an encoder, named by its fingerprint's first 16 digits
    encoder.json                             what the encoder is; schema
    000000-9b1f0c44d2e8a7c3.safetensors      rows, named by number and hash; or .parquet (see `outword.vectors.shards`)
    shards.sha256                            the shards that should be there; stores of before there was one have none
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from outword.base.files import PathLike, parse_json, sha256_bytes, sweep
from outword.base.records import mistyped
from outword.encoders import Encoder
from outword.encoders.base import Vectors
from outword.encoders.names import named_now
from outword.errors import ArtifactError, ImageError, InputError
from outword.vectors import shards
from outword.vectors.shards import UNREADABLE, DamagedShard, Shard, read_shard, write_synced

SCHEMA = 1
CARD = "encoder.json"
READ_ROWS = 16384  # rows that are read together, by shard: 32 MB at 512 dimensions
_FOLDER = re.compile("[0-9a-f]{16}")
_KINDS: dict[str, Any] = {
    "schema": int,
    "dim": int,
    "name": str,
    "fingerprint": str,
    "options?": {str: str},
    "decoder?": str,
}


class Store:
    """The rows of one encoder. The newest row of a path counts. Vectors stay on disk until `rows` reads them.

    To `repair` is to set damaged shards aside, and list them in `damaged`, with those that are gone in `lost`; without
    it the first one is an error.
    """

    def __init__(self, folder: Path, dim: int, *, repair: bool = False) -> None:
        self.folder = folder
        self.dim = dim
        self.damaged: list[Path] = []
        self._files: list[Path] = []
        self._starts: list[int] = []  # number of the first row of each file
        self._digests = bytearray()  # of all rows, 32 bytes each
        self._errors: dict[int, str] = {}  # by number of the row
        self._newest: dict[bytes, int] = {}  # path to number of its row
        known = shards.listed(folder)  # before the folder is looked at: a shard is listed after it is there
        files = shards.shard_files(folder)
        self.lost = sorted(known.keys() - {file.name for file in files})
        if self.lost and not repair:
            raise shards.lost(folder, self.lost)
        for file in files:
            try:
                self._add(file, read_shard(file, dim))
            except (DamagedShard, FileNotFoundError):
                if not repair:
                    raise
                self.damaged.append(file)
                with suppress(FileNotFoundError):  # another process was there first
                    file.rename(file.with_name(f"{file.name}.damaged"))
        if repair:
            shards.list_anew(folder, self._files)

    def __len__(self) -> int:
        """The number of paths."""
        return len(self._newest)

    def rows(self) -> Iterator[tuple[str, Vectors | ImageError]]:
        """Each path with its vector (dim,), or with the reason why it has none; sorted by the bytes of the path."""
        paths = sorted(self._newest)
        for start in range(0, len(paths), READ_ROWS):
            part = paths[start : start + READ_ROWS]
            numbers = [self._newest[path] for path in part]
            for path, number, vector in zip(part, numbers, self.vectors(numbers), strict=True):
                error = self.error(number)
                yield os.fsdecode(path), ImageError(error) if error else vector

    def version(self) -> str:
        """sha256 of the names of its files, which are named by their content, as they were when it was opened."""
        return sha256_bytes("\n".join(sorted(file.name for file in self._files)).encode())

    def paths(self) -> Iterator[str]:
        """The paths, in the order of `rows`; no vector is read."""
        return map(os.fsdecode, sorted(self._newest))

    def vectors(self, numbers: Sequence[int]) -> Vectors:
        """Vectors (n, dim) of rows by number; each shard that has some of them is read once."""
        wanted = np.asarray(numbers, dtype=np.int64)
        which = np.searchsorted(self._starts, wanted, side="right") - 1
        out = np.empty((len(wanted), self.dim), np.float32)
        for place in np.unique(which).tolist():
            here = which == place
            out[here] = read_shard(self._files[place], self.dim).vectors[wanted[here] - self._starts[place]]
        return out

    def vectors_at(self, paths: Iterable[str]) -> Vectors:
        """Vectors (n, dim) of those of some paths that have one; each shard that has some of them is read once."""
        numbers = [self._newest[os.fsencode(path)] for path in paths]
        return self.vectors([number for number in numbers if not self.error(number)])

    def error(self, number: int) -> str:
        """Why a row has no vector; "" if it has one."""
        return self._errors.get(number, "")

    def digest(self, path: str) -> bytes:
        """sha256 of the content that a path has."""
        return self._digest(self._newest[os.fsencode(path)])

    def contents(self) -> dict[bytes, int]:
        """sha256 of all file contents that were seen, each with the number of a row that has it."""
        digests = map(self._digest, range(len(self._digests) // 32))
        return {digest: number for number, digest in enumerate(digests) if digest != UNREADABLE}

    def holds(self, path: bytes, digest: bytes, error: str) -> bool:
        """Whether the newest row of a path says just this."""
        number = self._newest.get(path, -1)
        return number >= 0 and self._digest(number) == digest and self.error(number) == error

    def append(self, shard: Shard, kind: str) -> int:
        """Write a shard; returns the number of its first row."""
        self._add(shards.write_shard(self.folder, shard, kind), shard)
        return self._starts[-1]

    def _digest(self, number: int) -> bytes:
        return bytes(self._digests[32 * number : 32 * number + 32])

    def _add(self, file: Path, shard: Shard) -> None:
        first = len(self._digests) // 32
        self._files.append(file)
        self._starts.append(first)
        self._digests += b"".join(shard.digests)
        self._newest.update(zip(shard.paths, range(first, first + len(shard.paths)), strict=True))
        self._errors.update((number, error) for number, error in enumerate(shard.errors, first) if error)


def is_store(path: PathLike) -> bool:
    """Whether `path` is a folder with embeddings of some encoder."""
    return bool(_cards(Path(path)))


def any_paths(folder: PathLike) -> Iterator[str]:
    """The paths that a store has vectors of, of the first of its encoders."""
    card = _cards(Path(folder))[0]
    return Store(card.parent, int(_read_card(card)["dim"])).paths()


def called(name: str, fingerprint: str, options: Mapping[str, str]) -> str:
    """An encoder as it is asked for on the command line: its name, and options such as `--resize bilinear`."""
    return " ".join([named_now(name, fingerprint), *(f"--{key} {value}" for key, value in options.items())])


def open_store(folder: PathLike, fingerprint: str, name: str) -> Store:
    """The embeddings in `folder` of the encoder with this fingerprint; `name` is said where there are none."""
    card = Path(folder) / fingerprint[:16] / CARD
    cards = _cards(Path(folder))
    if card not in cards:
        known = [_read_card(other) for other in cards]
        names = {called(one["name"], one["fingerprint"], one.get("options", {})) for one in known}
        others = ", ".join(sorted(names)) or "no encoder"
        message = f"{os.fspath(folder)} has no embeddings of {name} ({fingerprint[:16]}), it has those of {others}"
        raise InputError(message, hint=f"outword embed SOURCE -o {os.fspath(folder)} --encoder {name}")
    return Store(card.parent, _checked_dim(card, fingerprint))


def make_store(folder: PathLike, encoder: Encoder) -> Store:
    """The embeddings of `encoder` in `folder`, to be added to; a folder that holds something else is refused."""
    top = Path(folder)
    if top.exists() and not (top.is_dir() and (is_store(top) or _only_begun(top))):
        raise InputError(f"{top} is there and is no store", hint="choose another name, or remove it")
    if not top.absolute().parent.is_dir():
        raise InputError(f"{top.parent} is not a folder", hint="make it first")
    own = top / encoder.fingerprint[:16]
    own.mkdir(parents=True, exist_ok=True)
    if not (own / CARD).exists():
        names = ("name", "fingerprint", "dim", "temperature", "licence", "source")
        own_card = {"schema": SCHEMA, **{n: getattr(encoder, n) for n in names}, "options": dict(encoder.options)}
        card = {**own_card, "decoder": encoder.decoder}
        write_synced(own / CARD, [(json.dumps(card, indent=2) + "\n").encode()])
    if _checked_dim(own / CARD, encoder.fingerprint) != encoder.dim:
        raise _bad_card(own / CARD, f"dim must be {encoder.dim}")
    decoder = _read_card(own / CARD).get("decoder", "pillow")
    if decoder != encoder.decoder:
        message = f"{top} has vectors of photos that {decoder} decoded, and here it would be {encoder.decoder}"
        raise InputError(message, hint=f"set OUTWORD_DECODER={decoder}, or choose another name")
    sweep(own)
    return Store(own, encoder.dim, repair=True)


def _only_begun(folder: Path) -> bool:
    """Whether a folder is empty, or as a first run leaves it that was killed before its first file."""
    return all(_FOLDER.fullmatch(entry.name) and entry.is_dir() for entry in folder.iterdir())


def _cards(folder: Path) -> list[Path]:
    """What describes the encoders that a folder has embeddings of."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if _FOLDER.fullmatch(entry.name))
        return [folder / name / CARD for name in names if (folder / name / CARD).is_file()]
    except (OSError, ValueError):
        return []


def _checked_dim(path: Path, fingerprint: str) -> int:
    card = _read_card(path)
    if card["fingerprint"] != fingerprint:
        raise _bad_card(path, f"fingerprint must be {fingerprint}, got {card['fingerprint']}")
    return int(card["dim"])


def _read_card(path: Path) -> dict[str, Any]:
    try:
        card = parse_json(path.read_bytes())
        schema = card["schema"]
    except (ValueError, KeyError, TypeError) as error:
        raise _bad_card(path, repr(error)) from error
    if type(schema) is int and schema > SCHEMA:
        raise ArtifactError(f"{path} has schema {schema}, newer than {SCHEMA}", hint="upgrade outword")
    if wrong := mistyped(card, _KINDS):
        raise _bad_card(path, wrong)
    if schema != SCHEMA or not 0 < card["dim"] < 1 << 16:
        raise _bad_card(path, "schema or dim")
    return dict(card)


def _bad_card(path: Path, reason: str) -> ArtifactError:
    return ArtifactError(f"{path} cannot be used: {reason}", hint=f"remove {path.parent} and embed again")
