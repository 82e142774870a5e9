"""One file of a store: rows of path, content and vector; written whole, named by its own hash, checked when read.

Beside the files lies a list of them, by which a file that is gone is missed. It is what `sha256sum -c` reads. A file is
listed once it is on the disk, so one that is not listed is whole all the same: its process was killed in between, or it
is older than the list.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from outword.base.extras import pyarrow
from outword.base.files import sha256_bytes, sha256_file, whole_file
from outword.encoders.base import Vectors
from outword.errors import ArtifactError

UNREADABLE = bytes(32)  # stands for the sha256 of a file that could not be read
MAX_BYTES = 1 << 30  # a shard of 1024 rows has a few MB
UNIT_TOLERANCE = 0.01  # vectors that were computed in half precision are that far from length 1, or less
LIST = "shards.sha256"
_NAME = re.compile(r"([0-9]{6,})-([0-9a-f]{16})\.(safetensors|parquet)")
_LINE = re.compile(rf"([0-9a-f]{{64}})  ({_NAME.pattern})")


class DamagedShard(ArtifactError):
    """A shard is not what was written."""


@dataclass(frozen=True)
class Shard:
    """Rows in the order in which the files came."""

    paths: list[bytes]  # in the bytes that the file system has for them
    digests: list[bytes]  # sha256 of the content of each, `UNREADABLE` where it could not be read
    errors: list[str]  # why a file has no vector, else ""
    vectors: Vectors  # (n_rows, dim), unit rows; NaN where there is an error


def shard_files(folder: Path) -> list[Path]:
    """The shards of a folder, oldest first; what else lies there is passed over."""
    found = [(int(match[1]), file) for file in folder.iterdir() if (match := _NAME.fullmatch(file.name))]
    return [file for _, file in sorted(found)]


def write_shard(folder: Path, shard: Shard, kind: str) -> Path:
    """Add a shard to a folder. Processes that do so at once may share a number; the hash tells their files apart."""
    data = _PACK[kind](shard)
    files = shard_files(folder)
    number = int(files[-1].name.partition("-")[0]) + 1 if files else 0
    path = folder / f"{number:06}-{sha256_bytes(data)[:16]}.{kind}"
    write_synced(path, [data])
    with (folder / LIST).open("ab") as file:
        file.write(_line(path.name, sha256_bytes(data)))
    return path


def listed(folder: Path) -> dict[str, str]:
    """The names of the shards that a folder should have, each with its sha256; none where there is no list."""
    try:
        text = (folder / LIST).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return {}
    lines = text.split("\n")[:-1]  # a kill may cut the last
    return {match[2]: match[1] for match in map(_LINE.fullmatch, lines) if match}


def list_anew(folder: Path, files: Iterable[Path]) -> None:
    """Write the list of a folder, unless it says so already: just these files."""
    before = listed(folder)
    now = {file.name: before.get(file.name) or sha256_file(file) for file in files}
    if now != before:
        write_synced(folder / LIST, [_line(name, sha256) for name, sha256 in now.items()])


def lost(folder: Path, names: Sequence[str]) -> DamagedShard:
    """That shards are listed and not there."""
    more = f", nor are {len(names) - 1:,} more" if len(names) > 1 else ""
    return DamagedShard(f"{folder / names[0]} is in {LIST} and not there any more{more}", hint=_again(folder))


def _line(name: str, sha256: str) -> bytes:
    return f"{sha256}  {name}\n".encode()


def write_synced(path: Path, blocks: Iterable[bytes]) -> None:
    """Write a file whole, and have it on the disk, name included, before going on."""
    with whole_file(path) as temporary, temporary.open("wb") as file:
        file.writelines(blocks)
        file.flush()
        os.fsync(file.fileno())
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read_shard(path: Path, dim: int) -> Shard:
    """Read a shard; `DamagedShard` unless it is what its name says and its vectors have `dim` dimensions."""
    wanted, kind = path.stem.partition("-")[2], path.suffix.lstrip(".")
    if kind == "parquet":
        pyarrow()
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES} bytes")
        data = path.read_bytes()
        if sha256_bytes(data)[:16] != wanted:
            raise ValueError("its content is not what its name says")
        shard = _UNPACK[kind](data)
        _check(shard, dim)
    except Exception as error:  # hostile bytes make parsers raise nearly anything
        if isinstance(error, OSError) and error.errno is not None:  # of the disk, not of a parser
            raise
        raise DamagedShard(f"{path} is damaged: {error}", hint=_again(path.parent)) from error
    return shard


def _again(folder: Path) -> str:
    return f'"outword embed SOURCE -o {folder.parent}" goes on without it and encodes its images again'


def _check(shard: Shard, dim: int) -> None:
    n, vectors = len(shard.paths), shard.vectors
    kinds = [{type(value) for value in column} for column in (shard.paths, shard.digests, shard.errors)]
    sizes = {len(shard.digests), len(shard.errors), len(vectors)}
    if kinds != [{bytes}, {bytes}, {str}] or sizes != {n} or {len(digest) for digest in shard.digests} != {32}:
        raise ValueError("its columns do not fit together")
    if vectors.dtype != np.float32 or vectors.shape != (n, dim):
        raise ValueError(f"its vectors must be float32 ({n}, {dim}), got {vectors.dtype} {vectors.shape}")
    lengths = np.linalg.norm(vectors[[not error for error in shard.errors]], axis=1)
    if not (np.abs(lengths - 1) <= UNIT_TOLERANCE).all():
        raise ValueError("its vectors must have length 1")


def _to_safetensors(shard: Shard) -> bytes:
    paths, path_ends = _join(shard.paths)
    errors, error_ends = _join([error.encode("utf-8", "backslashreplace") for error in shard.errors])
    sha256 = np.frombuffer(b"".join(shard.digests), np.uint8).reshape(-1, 32)
    names = ("paths", "path_ends", "sha256", "errors", "error_ends", "vectors")
    columns = (paths, path_ends, sha256, errors, error_ends, np.ascontiguousarray(shard.vectors))
    return save_tensors(dict(zip(names, columns, strict=True)))


def _from_safetensors(data: bytes) -> Shard:
    found = load_tensors(data)
    errors = [error.decode() for error in _split(found["errors"], found["error_ends"])]
    digests = [digest.tobytes() for digest in found["sha256"]]
    return Shard(_split(found["paths"], found["path_ends"]), digests, errors, found["vectors"])


def _join(texts: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Texts end to end, and where each of them ends."""
    return np.frombuffer(b"".join(texts), np.uint8), np.cumsum([len(text) for text in texts], dtype=np.int64)


def _split(joined: NDArray[np.uint8], ends: NDArray[np.int64]) -> list[bytes]:
    text = joined.tobytes()
    return [text[start:end] for start, end in pairwise([0, *ends.tolist()])]


def _to_parquet(shard: Shard) -> bytes:
    pa, parquet = pyarrow()
    errors = [error.encode("utf-8", "backslashreplace").decode() for error in shard.errors]
    columns = {
        "path": pa.array(shard.paths, pa.binary()),
        "sha256": pa.array(shard.digests, pa.binary(32)),
        "error": pa.array(errors, pa.string()),
        "vector": pa.FixedSizeListArray.from_arrays(shard.vectors.ravel(), shard.vectors.shape[1]),
    }
    out = pa.BufferOutputStream()
    parquet.write_table(pa.table(columns), out, compression="none", use_dictionary=False)
    return bytes(out.getvalue())


def _from_parquet(data: bytes) -> Shard:
    pa, parquet = pyarrow()
    file = parquet.ParquetFile(pa.BufferReader(data))
    groups = (file.metadata.row_group(i) for i in range(file.metadata.num_row_groups))
    if sum(group.total_byte_size for group in groups) > MAX_BYTES:
        raise ValueError(f"it unpacks to more than {MAX_BYTES} bytes")
    table = file.read()
    paths, digests, errors = (table[name].to_pylist() for name in ("path", "sha256", "error"))
    vectors = table["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return Shard(paths, digests, errors, vectors.reshape(len(paths), -1))


_PACK: dict[str, Callable[[Shard], bytes]] = {"safetensors": _to_safetensors, "parquet": _to_parquet}
_UNPACK: dict[str, Callable[[bytes], Shard]] = {"safetensors": _from_safetensors, "parquet": _from_parquet}
