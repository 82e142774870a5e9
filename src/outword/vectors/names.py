"""Names as vectors: those that come with the package, those that were encoded before, and the rest; and plain names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from outword.base.arrays import Arrays, read_arrays, write_arrays
from outword.base.cache import cache_dir
from outword.base.files import sha256_bytes, whole_file
from outword.base.reports import Report, quiet
from outword.encoders import Encoder
from outword.encoders.base import Coverage, Vectors
from outword.vectors.wild import encode_words
from outword.words.corpora import senses_of_things
from outword.words.nouns import nouns
from outword.words.prompts import Prompts, get_prompts

SHIPPED_NAMES = Path(str(files("outword"))) / "encoders" / "data" / "names"


def readable_names(encoder: Encoder) -> list[str]:
    """The plain names that an encoder knows; all of them where it cannot tell which."""
    return _known(encoder, [*nouns().readable()])


def rival_names(encoder: Encoder) -> list[str]:
    """The names of what photos can show that an encoder knows; all of them where it cannot tell which."""
    return _known(encoder, [*senses_of_things()])


def _known(encoder: Encoder, names: list[str]) -> list[str]:
    return [name for name, is_known in zip(names, are_known(encoder, names), strict=True) if is_known]


def are_known(encoder: Encoder, names: Sequence[str]) -> list[bool]:
    """Which names of WordNet, as it spells them, an encoder knows; all of them where it cannot tell.

    What the package has vectors of is all that is known (tools/build_names.py): then there is nothing to work out.
    """
    if shipped := _shipped_of(encoder):
        return [name in shipped for name in names]
    found = encoder.coverage(names)
    return [one.familiarity == "known" for one in found] if found else [True] * len(names)


def coverage(encoder: Encoder, names: Sequence[str]) -> list[Coverage]:
    """How well an encoder knows each name, as its `coverage` says; it is asked about those alone that are not shipped.

    So a list of names that it knows loads nothing of it.
    """
    shipped = _shipped_of(encoder)
    rest = iter(encoder.coverage(asked) if (asked := [name for name in names if name not in shipped]) else ())
    found = [Coverage(name, "known") if name in shipped else next(rest, None) for name in names]
    return [one for one in found if one is not None]


def _shipped_of(encoder: Encoder) -> dict[str, int]:
    """The names that the package has vectors of for an encoder; none where it has no file for it."""
    shipped = _shipped(shipped_names(names_key(encoder, get_prompts(encoder.prompts))))
    return shipped[0] if shipped else {}


def name_vectors(encoder: Encoder, prompts: Prompts, names: Sequence[str], report: Report = quiet) -> Vectors:
    """Vectors of names in the templates of labels, (n_names, dim), unit rows; what is new is encoded and kept."""
    key = names_key(encoder, prompts)
    rows, shipped = _shipped(shipped_names(key)) or ({}, np.zeros((0, encoder.dim), np.float32))
    found = {name: shipped[rows[name]] for name in names if name in rows}
    cached, left = cache_dir() / "names" / f"{key}.safetensors", [name for name in names if name not in found]
    if left:
        found |= _kept(cached, left, encoder.dim)
    if new := [*dict.fromkeys(name for name in left if name not in found)]:
        vectors = encode_words(encoder, prompts.render(new, ["label"] * len(new)), report)
        found |= dict(zip(new, vectors, strict=True))
        _keep(cached, dict(zip(new, vectors, strict=True)), encoder.dim)
    return np.stack([found[name] for name in names]) if names else np.zeros((0, encoder.dim), np.float32)


def names_key(encoder: Encoder, prompts: Prompts) -> str:
    """sha256 of all that the vectors of names depend on."""
    return sha256_bytes(json.dumps([encoder.text_fingerprint or encoder.fingerprint, prompts.label]).encode())


def shipped_names(key: str) -> Path:
    """Where the package keeps the vectors of a key, if it has them."""
    return SHIPPED_NAMES / f"{key[:16]}.safetensors"


def write_names(path: Path, vectors: dict[str, Vectors]) -> None:
    """Write the file of names that comes with the package, whole or not at all."""
    with whole_file(path) as temporary:
        save_file(_arrays(vectors), temporary)


def _arrays(vectors: dict[str, Vectors]) -> Arrays:
    """`names`, a line each in UTF-8 and sorted, and `vectors` (n_names, dim)."""
    names = sorted(vectors)
    text = np.frombuffer("\n".join(names).encode(), np.uint8)
    return {"names": text, "vectors": np.stack([vectors[name] for name in names])}


@lru_cache(maxsize=4)
def _shipped(path: Path) -> tuple[dict[str, int], Vectors] | None:
    """The names that come with the package, each with its row, and their vectors; read once."""
    arrays = load_file(path) if path.exists() else None
    return None if arrays is None else (_rows(arrays["names"]), arrays["vectors"])


def _rows(names: NDArray[np.uint8]) -> dict[str, int]:
    return {name: row for row, name in enumerate(names.tobytes().decode().split("\n"))}


def _kept(path: Path, wanted: Sequence[str], dim: int) -> dict[str, Vectors]:
    """Of the names of a file, those that are wanted, with their vectors; none where it is not there or not whole."""
    arrays = read_arrays(path) or {}
    names, vectors = arrays.get("names"), arrays.get("vectors")
    if names is None or vectors is None:
        return {}
    rows = _rows(names)
    if vectors.shape != (len(rows), dim) or vectors.dtype != np.float32:
        return {}
    return {name: vectors[rows[name]] for name in wanted if name in rows}


def _keep(path: Path, new: dict[str, Vectors], dim: int) -> None:
    """Add names to a file; of two processes that do so at once one may win, and the other's are encoded again."""
    arrays = read_arrays(path) or {}
    before = arrays["names"].tobytes().decode().split("\n") if "names" in arrays else []
    write_arrays(path, _arrays(_kept(path, before, dim) | new))
