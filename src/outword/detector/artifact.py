"""A saved detector: a directory of JSON, safetensors and readable text, written whole, checked when read, no pickle.

pets.outword/
  detector.json          what it is: schema, method and parameters, encoder, threshold, fingerprints of the rest
  vectors.safetensors    the arrays; hashes of the photos that it was fitted on, scores of those of other things, if any
  labels.txt             the ID labels, one a line
  rows.txt               the names and kinds that stand for them, one a line, in the order of the vectors
  wild.txt               the wild words, one a line, best first
  vocabulary.txt         the names that say what a photo looks like, one a line; empty where there are none
"""

from __future__ import annotations

import errno
import io
import json
import math
import shutil
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file
from safetensors.numpy import save as serialize

from outword.base.files import PathLike, free_folder, parse_json, read_folder, sha256_bytes, sha256_file, whole_folder
from outword.errors import ArtifactError

SCHEMA = 2
CARD, VECTORS = "detector.json", "vectors.safetensors"
TEXTS = ("labels", "rows", "wild", "vocabulary")  # of `Saved`, each a text file
NO_ZIP = zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError  # or encrypted
GROWTH, SMALL = 10, 1 << 20  # vectors hardly get smaller in a zip file, so one that grows more is no detector
FILES = {CARD, VECTORS, *(f"{name}.txt" for name in TEXTS)}


@dataclass(frozen=True)
class Saved:
    """What a directory holds: `card` is the JSON, `arrays` by name, and names in order, those of rows and all."""

    card: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    labels: list[str]
    wild: list[str]
    rows: list[str]
    vocabulary: list[str]


def save(path: PathLike, saved: Saved) -> Path:
    """Write a detector to `path`, replacing a detector that is there; nothing else is ever replaced."""
    target = check_target(path)
    with whole_folder(target) as new:
        for name, data in contents(saved).items():
            (new / name).write_bytes(data)
    return target


def zipped(saved: Saved, folder: str) -> bytes:
    """The same as a zip file, whose one folder has this name; equal detectors give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:  # stored as it is: vectors hardly get smaller
        for name, data in contents(saved).items():
            entry = zipfile.ZipInfo(f"{folder}/{name}")
            entry.external_attr = 0o644 << 16
            file.writestr(entry, data)
    return buffer.getvalue()


def check_target(path: PathLike) -> Path:
    """Raise unless a detector may be written to `path`: it is free, or holds a detector and nothing else."""
    return free_folder(path, card=CARD, names=FILES, what="a saved detector")


def load(path: PathLike) -> Saved:
    """Read a detector back, from its folder or a zip file of it; what is newer, missing or changed is refused."""
    source = Path(path)
    return _load_zip(source) if source.is_file() else read_folder(source, _load)


def is_saved(path: PathLike) -> bool:
    """Whether there is a detector at a path, or a zip file of one; nothing of it is checked."""
    source = Path(path)
    try:
        if not source.is_file():
            return read_folder(source, lambda folder: (folder / CARD).is_file())
        with zipfile.ZipFile(source) as file:
            return any(PurePosixPath(name).name == CARD for name in file.namelist())
    except (*NO_ZIP, OSError):  # or no path at all
        return False


def finite(values: dict[str, Any]) -> dict[str, Any]:
    """The same with None for infinity, which JSON does not have."""
    return {key: None if isinstance(v, float) and math.isinf(v) else v for key, v in values.items()}


def _load_zip(path: Path) -> Saved:
    """Read a detector from a zip file, of which nothing but the files of a detector is unpacked, under their names."""
    try:
        with zipfile.ZipFile(path) as file, tempfile.TemporaryDirectory(prefix="outword-") as folder:
            for name, entry in _entries(path, file).items():
                with file.open(entry) as packed, (Path(folder) / name).open("wb") as unpacked:
                    shutil.copyfileobj(packed, unpacked)  # which ends at the size that the entry announces
            return _load(Path(folder), path)
    except (*NO_ZIP, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # that is a place outside of a damaged file
            raise ArtifactError(f"{path} cannot be unpacked: {error}", hint="check the path, and the disk") from error
        raise ArtifactError(
            f"{path} is not a saved detector: {error}", hint="name its folder, or a zip file of it"
        ) from error


def _entries(path: Path, file: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The files of a detector by name, which lie in one folder of a zip file, or in none; what else is there stays."""
    places = [PurePosixPath(entry.filename) for entry in file.infolist()]
    pairs = [(place, entry) for place, entry in zip(places, file.infolist(), strict=True) if place.name in FILES]
    pairs = [(place, entry) for place, entry in pairs if place.parts[0] != "__MACOSX"]  # which macOS adds
    found = {place.name: entry for place, entry in pairs}
    if len(found) < len(pairs) or len({place.parent for place, _ in pairs}) > 1:
        raise ArtifactError(f"{path} holds more than one detector", hint="unpack it, and name one of the folders")
    size, most = sum(entry.file_size for entry in found.values()), GROWTH * path.stat().st_size + SMALL
    if size > most:
        raise ArtifactError(f"{path} would unpack to {size:,} bytes, and {most:,} are the most", hint="unpack it first")
    return found


def _load(folder: Path, called: Path | None = None) -> Saved:
    called = called or folder  # in messages
    card = _read_card(folder, called)
    for name, wanted in card["files"].items():
        if not (folder / name).is_file():
            raise ArtifactError(f"{called} has no {name}", hint="save the detector again")
        if sha256_file(folder / name) != wanted:
            raise ArtifactError(f"{called / name} has changed since it was saved", hint="save the detector again")
    try:
        arrays = load_file(folder / VECTORS)
        return Saved(card, arrays, **{name: _read_lines(folder / f"{name}.txt") for name in TEXTS})
    except (SafetensorError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{called} cannot be read: {error}", hint="save the detector again") from error


def contents(saved: Saved) -> dict[str, bytes]:
    """The files of a saved detector by name."""
    arrays = {name: np.ascontiguousarray(array) for name, array in saved.arrays.items()}
    texts = {f"{name}.txt": "".join(f"{line}\n" for line in getattr(saved, name)).encode() for name in TEXTS}
    files = {VECTORS: serialize(arrays), **texts}
    card = {"schema": SCHEMA, **saved.card, "files": {name: sha256_bytes(data) for name, data in files.items()}}
    card["fingerprint"] = _fingerprint(card)
    return {**files, CARD: (json.dumps(card, indent=2, ensure_ascii=False) + "\n").encode()}


def fingerprint(saved: Saved) -> str:
    """sha256 of all that a detector is, its threshold included."""
    return str(json.loads(contents(saved)[CARD])["fingerprint"])


def _fingerprint(card: dict[str, Any]) -> str:
    content = {key: value for key, value in card.items() if key != "fingerprint"}
    return sha256_bytes(json.dumps(content, sort_keys=True).encode())


def _read_card(folder: Path, called: Path) -> dict[str, Any]:
    if not (folder / CARD).is_file():
        raise ArtifactError(f"{called} is not a saved detector: it has no {CARD}", hint='make one with "outword fit"')
    try:
        card = parse_json((folder / CARD).read_bytes())
        schema, changed = card["schema"], card["fingerprint"] != _fingerprint(card)
        known = type(schema) is int and schema >= 1
        whole = known and (schema != SCHEMA or set(card["files"]) == FILES - {CARD})
        json.dumps(card, ensure_ascii=False).encode()  # as it is written: half a character cannot be
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"{called / CARD} cannot be read: {error!r}", hint="save the detector again") from error
    if not whole:
        raise ArtifactError(f"{called / CARD} cannot be read: schema or files", hint="save the detector again")
    if schema > SCHEMA:
        raise ArtifactError(f"{called} has schema {schema}, newer than {SCHEMA}", hint="upgrade outword")
    if schema < SCHEMA:
        raise ArtifactError(f"{called} has schema {schema}, older than {SCHEMA}", hint="fit it again")
    if changed:
        raise ArtifactError(f"{called / CARD} has changed since it was saved", hint="save the detector again")
    return dict(card)


def _read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]
