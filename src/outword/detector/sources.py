"""What a detector can judge: places that photos lie in, and stores of vectors of its encoder."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeGuard

from outword.base.files import PathLike
from outword.detector.detector import Detector
from outword.detector.inputs import check_handed, check_store
from outword.errors import InputError
from outword.photos.sources import is_source
from outword.photos.sources.base import unfiled
from outword.photos.sources.filesystems import is_remote
from outword.photos.sources.patterns import is_pattern
from outword.vectors.source import Identity, Only, Source, find_source
from outword.vectors.store import called, is_store


def is_path(photo: object) -> TypeGuard[PathLike]:
    """Whether it is the path or URL of something, and no photo in memory."""
    return isinstance(photo, str | os.PathLike)


def is_place(photo: object) -> TypeGuard[PathLike]:
    """Whether it is a path that may stand for several photos: a folder, archive, list, table, pattern, URL or store."""
    if not is_path(photo):
        return False
    path = os.fspath(photo)
    if not isinstance(path, str) or not path:
        return False
    if is_remote(path) or unfiled(path) or is_source(path) or is_store(path):
        return True
    return os.path.isdir(path) or (is_pattern(path) and not os.path.lexists(path))  # noqa: PTH112  # may be too long


def open_source(
    detector: Detector, given: Iterable[PathLike], *, column: str | None = None, only: Only | None = None
) -> Source:
    """What is to be scored: stores have vectors of the detector's encoder, or else of the one that stands for it here.

    See `outword.vectors.source.find_source` for what can be given; `only` says which photos of it count, by name.
    """
    if not isinstance(detector, Detector):
        raise InputError(f"a detector must be one, got {detector!r}", hint='load it: outword.load("pets.outword")')
    paths, made = list(given), detector.card.encoder
    if paths:
        check_handed(detector)
    for path in filter(is_store, paths):
        check_store(detector.method, detector.scorer, path)
    otherwise = (lambda: detector.encoder) if detector.encoder_override else None
    wanted = Identity(made.fingerprint, called(made.name, made.fingerprint, made.options))
    return find_source(paths, wanted, column=column, only=only, otherwise=otherwise)
