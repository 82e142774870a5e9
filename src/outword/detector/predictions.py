"""Verdicts of a list of photos as records, for Python; a photo that cannot be read is one with an error."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, overload

import numpy as np

from outword.base.cells import csv_line, line_of
from outword.base.files import PathLike, check_outputs, whole_file
from outword.base.html import render, visible
from outword.base.prediction import HEADER, Prediction, cells, csv_cells
from outword.base.terms import VerdictName
from outword.base.wording import a_few, counted
from outword.detector import batches
from outword.detector.cuts import FEWEST
from outword.detector.judge import judge_chunks, with_twins
from outword.detector.thumbnails import SIDE, Kept, sketches, thumbnails
from outword.encoders.base import Vectors, as_list, is_one
from outword.encoders.reading import Chunk, name_of, read_photos
from outword.errors import InputError, MissingExtraError
from outword.photos.decode import ImageLike
from outword.photos.twins import Twins
from outword.vectors.reader import encoded, read

if TYPE_CHECKING:
    from outword.detector.detector import Detector

PRINTED, SHOWN = 10, 50  # photos in text, and in a notebook's table


class Predictions(Sequence[Prediction]):
    """Records in the order of the photos; a slice is one of these, too.

    Printed, it is a line a photo; in a notebook, a table with thumbnails: of files, which are read when it is shown,
    and of photos that were in memory, up to some memory (`outword.detector.thumbnails`).

    Args:
        records: of the photos.
        photos: what their thumbnails are made of; without, there are none.
    """

    def __init__(self, records: Iterable[Prediction], photos: Iterable[Kept] = ()) -> None:
        self._records = tuple(records)
        self._photos = tuple(photos)

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, place: int) -> Prediction: ...
    @overload
    def __getitem__(self, place: slice) -> Predictions: ...
    def __getitem__(self, place: int | slice) -> Prediction | Predictions:
        if isinstance(place, slice):
            return Predictions(self._records[place], self._photos[place])
        return self._records[place]

    def __repr__(self) -> str:
        lines = [visible(f"{one.path}: {one.told}") for one in self._records[:PRINTED]]
        more = [f"and {len(self) - PRINTED:,} more"] if len(self) > PRINTED else []
        return "\n".join([f"<outword.Predictions: {self._summary}>", *lines, *more])

    def _repr_html_(self) -> str:
        """The table that a notebook shows: the first photos, and the columns in which they have anything."""
        some = self[:SHOWN]
        rows = [cells(one) for one in some]
        names = [name for name in HEADER if any(row[name] not in (None, "") for row in rows)]
        views = [view for _, view in thumbnails(enumerate(some._photos))]
        pictured = list(zip_longest(views, rows, fillvalue=b""))
        more = len(self) - len(some)
        values = {"summary": self._summary, "names": names, "rows": pictured, "more": more, "side": SIDE}
        return str(render("detector/predictions.html", **values))

    @property
    def _summary(self) -> str:
        """How many photos there are, and of what kind: `4 photos, 1 in, 1 out, 2 errors`."""
        counts = Counter(one.verdict for one in self._records)
        told = [f"{counts[kind]:,} {kind}" for kind in get_args(VerdictName) if counts[kind]]
        errors = [counted(counts[""], "error")] if counts[""] else []
        return ", ".join([counted(len(self), "photo"), *told, *errors])

    def to_pandas(self) -> Any:
        """A DataFrame, a row a photo: `table[table.verdict == "in"]`. What has several texts is one, as `a; b`."""
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            message = f"to_pandas needs pandas, which cannot be imported: {error}"
            raise MissingExtraError(message, hint="pip install pandas") from None
        return pandas.DataFrame([cells(one) for one in self], columns=HEADER)

    def to_csv(self, path: PathLike) -> None:
        """Write a CSV file, a line a photo; it appears whole or not at all.

        The columns are those of `to_pandas`. Cells are as "outword score" has them: UTF-8, and with a `'` before what
        a spreadsheet would take for a formula (`outword.base.cells`); a threshold that accepts everything is empty.
        """
        target = Path(path)
        check_outputs(target)
        with whole_file(target) as temporary, temporary.open("wb") as file:
            file.write(line_of(HEADER))
            file.writelines(csv_line(csv_cells(one)) for one in self)


def predict(detector: Detector, photos: ImageLike | Iterable[ImageLike]) -> Predictions:
    """Judge photos, or a single one; see `Detector.predict`."""
    from outword.detector.sources import is_place

    given = [photos] if is_one(photos) else as_list(photos)
    if any(map(is_place, given)):
        return _of_places(detector, given)
    chunks: Iterable[Chunk] = read_photos(given, detector.encoder.loader, detector.encoder.chunk)
    if _is_refined_by_all(detector, given):
        settled, chunks = _refined(detector, chunks)
    else:
        settled = _settled(detector, given)
    records = list(_records(settled, chunks))
    readable = (None if record.error else photo for record, photo in zip(records, given, strict=True))
    return Predictions(records, sketches(readable))


def _of_places(detector: Detector, given: list[Any]) -> Predictions:
    """Judge all photos of folders, archives and so on, as `outword score` does."""
    from outword.detector.sampling import look_at
    from outword.detector.sources import is_path, open_source

    if not all(map(is_path, given)):
        raise InputError(
            "photos in memory and folders, archives or patterns cannot stand in one list",
            hint="predict the two one after the other",
        )
    source, settled = open_source(detector, given), detector
    if batches.is_wanted(detector):
        found = look_at(detector, source)
        settled = found.applied(detector)
        if found.warning:
            warnings.warn(found.warning, stacklevel=4)
    loader, size = (settled.encoder.loader, settled.encoder.chunk) if source.has_photos else (None, 0)
    records = list(_records(settled, read(source.jobs(), loader, size)))
    if not records:
        told = source.passed_over.told()
        raise InputError(f"no photos found in {a_few(list(map(str, given)))}", hint=told or "check the path")
    return Predictions(records, [None if one.error else one.path for one in records])


def _is_refined_by_all(detector: Detector, photos: list[ImageLike]) -> bool:
    """Whether all photos refine an imagined threshold, and their vectors are the same bits in any batch."""
    refined = batches.is_wanted(detector) and batches.is_refined(detector)
    return refined and len(photos) <= batches.most_wanted(detector) and not detector.encoder.feels_batch


def _refined(detector: Detector, chunks: Iterable[Chunk]) -> tuple[Detector, list[Chunk]]:
    """The detector with the threshold that photos refine, and the photos as vectors: no photo is encoded twice."""
    kept = [chunk.with_values(encoded(detector.encoder, chunk)) for chunk in chunks]
    vectors = dict[str, Vectors]()
    for chunk in kept:
        for photo, vector in chunk.pairs():
            if vector is not None:
                vectors.setdefault(photo.name, vector)
    rows = np.stack([*vectors.values()]) if vectors else np.zeros((0, detector.encoder.dim), np.float32)
    return batches.look(detector, rows).applied(detector), kept


def _settled(detector: Detector, photos: list[ImageLike]) -> Detector:
    """The detector with the threshold that these photos make of it; a warning where they bend it."""
    if not batches.is_wanted(detector) or (len(photos) < FEWEST and not batches.is_refined(detector)):
        return detector
    chosen = batches.Smallest[ImageLike](batches.most_wanted(detector))
    for place, photo in enumerate(photos):
        chosen.add(name_of(photo, place), photo)
    vectors = batches.vectors_of_readable(detector.encoder, [photo for _, photo in chosen.items()])
    found = batches.look(detector, vectors)
    if found.warning:
        warnings.warn(found.warning, stacklevel=4)
    return found.applied(detector)


def _records(detector: Detector, chunks: Iterable[Chunk]) -> Iterator[Prediction]:
    with Twins() as twins:
        for said in judge_chunks(detector, chunks):
            yield from with_twins(said, twins)
