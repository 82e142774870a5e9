"""Photos with captions, from a file of JSON lines to vectors: each photo is read and encoded once."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outword.base.files import parse_json, read_lines
from outword.base.reports import Report, quiet
from outword.base.wording import a_few
from outword.encoders import Encoder
from outword.encoders.base import Vectors
from outword.encoders.reading import read_photos
from outword.errors import InputError
from outword.photos.decode import Blob
from outword.photos.sources import read_items
from outword.photos.sources.filesystems import is_remote
from outword.vectors.reader import encoded
from outword_lab.rendered import is_rendered

Captions = list[tuple[str, str]]  # the name of a photo, and what is said of it


@dataclass(frozen=True)
class Pairs:
    """Photos with captions; a photo may have several."""

    vectors: Vectors  # (n_photos, dim), unit rows
    photos: NDArray[np.intp]  # (n_pairs,), which photo each caption is of
    texts: list[str]  # (n_pairs,)
    unreadable: list[tuple[str, str]]  # name and reason of the photos that are left out


def read_captions(path: Path) -> Captions:
    """What a file of JSON lines says, {"image": PATH, "text": CAPTION} each; paths begin at the file's folder.

    A path may be absolute, a URL, of a photo in an archive, or of the rendered world (`world:train/cat/000.png`).
    """
    try:
        lines = ((number, line.decode("utf-8").strip()) for number, line in enumerate(read_lines(path), 1))
        return [_caption(path, number, line) for number, line in lines if line]
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}", hint="name a file of JSON lines") from None


def _caption(path: Path, number: int, line: str) -> tuple[str, str]:
    try:
        found: Any = parse_json(line)
    except ValueError as error:
        found = str(error)
    image, text = (found.get(key) if isinstance(found, dict) else None for key in ("image", "text"))
    if not (isinstance(image, str) and isinstance(text, str) and image.strip() and text.strip()):
        hint = 'write {"image": "a.jpg", "text": "a cat on a mat"}, a line each'
        raise InputError(f"line {number} of {path} should say an image and a text, got {line[:80]!r}", hint=hint)
    return image if is_rendered(image) or is_remote(image) else str(path.absolute().parent / image), text


def encode_captions(encoder: Encoder, captions: Captions, report: Report = quiet) -> Pairs:
    """Encode the photos; those that cannot be read are left out, with their captions, and counted."""
    wanted = list(dict.fromkeys(image for image, _ in captions))
    rows: dict[str, int] = {}
    parts, unreadable = [np.zeros((0, encoder.dim), np.float32)], list[tuple[str, str]]()
    photos = (Blob(name, data) for name, data in read_items(wanted))
    for chunk in read_photos(photos, encoder.loader, encoder.chunk):
        rows |= {photo.name: len(rows) + place for place, photo in enumerate(chunk.good)}
        parts.append(encoded(encoder, chunk))
        unreadable += chunk.unreadable
        report("encoding photos", len(rows) + len(unreadable), len(wanted))
    if unreadable:
        told = a_few([f"{name!r}: {reason}" for name, reason in unreadable])
        warnings.warn(f"{len(unreadable):,} of {len(wanted):,} photos are left out ({told})", stacklevel=2)
    kept = [(rows[image], text) for image, text in captions if image in rows]
    shown = np.array([row for row, _ in kept], np.intp)
    return Pairs(np.concatenate(parts), shown, [text for _, text in kept], unreadable)
