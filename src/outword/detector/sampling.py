"""A look at a source before it is judged, where nothing but its own photos tells where to cut.

Up to 2,000 photos are decoded and encoded for it, in flat memory: those whose names have the smallest sha256. So it
does not matter which engine runs, how many photos are a batch, or in which order the source is listed, and a second
look finds the same. The source is listed once for the look and for the run, and to its end before the first row.

Names of plain files and of rows of stores cost nothing, and all of them take part. Those inside of archives (tars and
tables) cost reading, so that of many archives the 100 whose names have the smallest sha256 are opened, and of these the
first 8,192 photos in all, as many of each, take part. No archive is read any further than that.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import islice

import numpy as np

from outword.base.reports import Report, quiet
from outword.detector.batches import MOST, Batch, Smallest, is_refined, look, most_wanted, vectors_of_readable
from outword.detector.cuts import FEWEST
from outword.detector.detector import Detector
from outword.encoders.base import Vectors
from outword.photos.sources.base import PART, Files, Item, Piece, UnreadableSource
from outword.vectors.source import Source, Stored

ARCHIVES = 100  # that are opened
INSIDE = PART  # photos of archives that take part
Place = Piece | Stored | None  # where a name is found; None for a plain file


def look_at(detector: Detector, source: Source, report: Report = quiet) -> Batch:
    """What some photos of a source find out about themselves; nothing is encoded where they are too few."""
    chosen = choose(source, most_wanted(detector))
    if len(chosen) < FEWEST and not is_refined(detector):
        return Batch(len(chosen), 0.0)
    return look(detector, _vectors(detector, chosen, report))


def choose(source: Source, most: int = MOST) -> Smallest[Place]:
    """The names of the photos to look at, each with where it is found."""
    chosen, archives = Smallest[Place](most), Smallest[Piece](ARCHIVES)
    for piece in source.pieces():
        if isinstance(piece, Files | Stored):
            for name in piece.names():
                chosen.add(name, piece if isinstance(piece, Stored) else None)
        elif not isinstance(piece, UnreadableSource):
            archives.add(piece.name, piece)
    for _, archive in archives.items():
        for name in islice(archive.names(), -(-INSIDE // len(archives))):
            chosen.add(name, archive)
    return chosen


def _vectors(detector: Detector, chosen: Smallest[Place], report: Report) -> Vectors:
    """The vectors of what was chosen and can be read, (n, dim)."""
    names: defaultdict[Place, list[str]] = defaultdict(list)
    for name, place in chosen.items():
        names[place].append(name)
    found = [np.zeros((0, detector.scorer.labels_.shape[1]), np.float32)]
    found += [place.opened.vectors_at(some) for place, some in names.items() if isinstance(place, Stored)]
    photos = {place: some for place, some in names.items() if not isinstance(place, Stored)}
    if photos:
        found.append(vectors_of_readable(detector.encoder, _items(photos), report))
    return np.concatenate(found)


def _items(photos: dict[Piece | None, list[str]]) -> Iterator[Item]:
    """The photos with these names."""
    for piece, names in photos.items():
        yield from Files(tuple(names)).items() if piece is None else _inside(piece, names)


def _inside(archive: Piece, names: Collection[str]) -> Iterator[Item]:
    """The photos of an archive with these names; it is read up to the last of them."""
    left = set(names)
    for item in archive.find(frozenset(names)):
        if os.fspath(item) in left:
            left.remove(os.fspath(item))
            yield item
        if not left:
            return
