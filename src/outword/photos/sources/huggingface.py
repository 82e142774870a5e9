"""Datasets of Hugging Face on disk, as `save_to_disk` writes them: Arrow files, in a folder for each split."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

from outword.errors import ImageError
from outword.photos.formats import SUFFIXES
from outword.photos.sources import filesystems
from outword.photos.sources.base import Kind, Piece, TableOptions, UnreadableSource, inner
from outword.photos.sources.tables import ARROW

LONGEST = 4 << 20  # bytes of a list of files; one of 40,000 files has about as many
_STATE, _INFO, _SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"


def _takes(path: str) -> bool:
    top = path.rstrip("/")
    if PurePosixPath(path).suffix.lower() in SUFFIXES or path.startswith(("http://", "https://")):
        return False  # without asking a server for each photo
    return filesystems.exists(f"{top}/{_SPLITS}") or all(
        filesystems.exists(f"{top}/{name}") for name in (_STATE, _INFO)
    )


def _pieces(path: str, options: TableOptions) -> Iterator[str | Piece]:
    """The Arrow files in the order of the dataset; the splits in theirs. Names are those of files beside the list.

    A split is a dataset without splits, so that none can lead back to where it is named.
    """
    top = path.rstrip("/")
    if not filesystems.exists(f"{top}/{_SPLITS}"):
        yield from _arrow_files(top, options)
        return
    for split in _listed(f"{top}/{_SPLITS}", lambda card: card["splits"]):
        yield from _arrow_files(f"{top}/{split}", options) if isinstance(split, str) else [split]


def _arrow_files(top: str, options: TableOptions) -> Iterator[str | Piece]:
    for name in _listed(f"{top}/{_STATE}", lambda card: [one["filename"] for one in card["_data_files"]]):
        yield from ARROW.pieces(f"{top}/{name}", options) if isinstance(name, str) else [name]


def _listed(card: str, names_of: Callable[[Any], Iterable[str]]) -> list[str | Piece]:
    """The names in a list of files or splits, each once; what is wrong with it is the only piece."""
    try:
        with filesystems.open_file(card) as file:
            text = file.read(LONGEST + 1)
        if len(text) > LONGEST:
            return [UnreadableSource(card, f"too large: over {LONGEST} bytes")]
        return list(dict.fromkeys(PurePosixPath(inner(name)).name for name in names_of(json.loads(text))))
    except ImageError as error:
        return [UnreadableSource(card, error.message)]
    except (ValueError, LookupError, TypeError, RecursionError):
        return [UnreadableSource(card, "damaged list of the files of a dataset")]


KIND = Kind(_takes, _pieces)
