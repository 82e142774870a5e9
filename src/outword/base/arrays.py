"""Files of arrays with a hash of what is in them, which is checked when they are read: entries of the cache."""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save_file

from outword.base.cache import not_kept, touch, trim
from outword.base.files import whole_file

Arrays = dict[str, NDArray[Any]]


def read_arrays(path: Path) -> Arrays | None:
    """The arrays of an entry; None where it is not there, not whole, or not what was written."""
    try:
        arrays = checked_arrays(path)
    except (OSError, ValueError):
        return None
    touch(path)
    return arrays


def checked_arrays(path: Path) -> Arrays:
    """The arrays of a file that `write_arrays` or `save_checked` wrote; `ValueError` where they are not those."""
    data = path.read_bytes()
    try:
        arrays = dict(load(data))
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        written = header.get("__metadata__", {}).get("sha256")
    except MemoryError:
        raise
    except Exception as error:  # damaged bytes make parsers raise nearly anything
        raise ValueError(f"it is damaged: {error!r}") from None
    if written is None:
        raise ValueError("it has no hash, as those of older versions")
    if written != _digest(path.name, arrays):
        raise ValueError("it is damaged: its content is not what its hash says")
    return arrays


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Keep arrays as an entry; where the cache cannot be written, a warning: the work is done again next time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_checked(path, arrays)
    except (OSError, SafetensorError) as error:
        warnings.warn(not_kept(error), stacklevel=2)
        return
    trim(path)


def save_checked(path: Path, arrays: Arrays) -> None:
    """Write arrays with their hash to a file, whole or not at all; the hash is of the file's name, too."""
    with whole_file(path) as temporary:
        save_file(arrays, temporary, {"sha256": _digest(path.name, arrays)})


def _digest(name: str, arrays: Arrays) -> str:
    """sha256 of arrays with their names, types and shapes, under the name of their file."""
    digest = hashlib.sha256(name.encode())
    for key in sorted(arrays):
        array = arrays[key]
        digest.update(json.dumps([key, array.dtype.str, array.shape]).encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
