"""Datasets of Hugging Face on disk, as `save_to_disk` writes them: Arrow files, in a folder for each split."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePosixPath

from outword.errors import ImageError
from outword.images import SUFFIXES
from outword.sources import arrow, places
from outword.sources.base import Broken, Kind, Piece, Wish, inner

_STATE, _INFO, _SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"


def _takes(path: str) -> bool:
    top = path.rstrip("/")
    if PurePosixPath(path).suffix.lower() in SUFFIXES or path.startswith(("http://", "https://")):
        return False  # without asking a server for each photo
    return places.exists(f"{top}/{_SPLITS}") or all(places.exists(f"{top}/{name}") for name in (_STATE, _INFO))


def _pieces(path: str, wish: Wish) -> Iterator[Piece]:
    """The Arrow files in the order of the dataset; the splits in theirs. Names are those of files beside the list."""
    top = path.rstrip("/")
    splits = places.exists(f"{top}/{_SPLITS}")
    card = f"{top}/{_SPLITS if splits else _STATE}"
    try:
        listed = json.loads(places.read_file(card))
        found = listed["splits"] if splits else [one["filename"] for one in listed["_data_files"]]
        names = [PurePosixPath(inner(name)).name for name in found]
    except ImageError as error:
        yield Broken(card, error.message)
        return
    except (ValueError, LookupError, TypeError, RecursionError):
        yield Broken(card, "damaged list of the files of a dataset")
        return
    for name in names:
        yield from (_pieces if splits else arrow.pieces)(f"{top}/{name}", wish)


KIND = Kind(_takes, _pieces)
