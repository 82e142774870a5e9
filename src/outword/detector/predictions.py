"""Verdicts of a list of photos as records, for Python; a photo that cannot be read is one with an error."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from PIL import Image

from outword.base.processors import usable_cpus
from outword.detector import batches
from outword.detector.cuts import FEWEST
from outword.detector.judge import Verdict, judge
from outword.encoders.base import Seen, as_list
from outword.errors import MissingExtraError, OutwordError
from outword.photos.ahead import decode_ahead, grouped
from outword.photos.decode import ImageLike
from outword.photos.twins import Twins

if TYPE_CHECKING:
    from outword.detector.detector import Detector


@dataclass(frozen=True)
class Prediction:
    """What is said of one photo; see `outword.detector.judge.Verdict`. With an `error` the rest is empty.

    `photo` is its path, or its place in the list, such as `photos[3]`; `looks_like` is the best name alone.
    """

    photo: str
    verdict: str = ""
    label: str = ""
    kind: str = ""
    p: float | None = None
    score: float | None = None
    looks_like: str = ""
    basis: str = ""
    threshold: float | None = None
    notes: tuple[str, ...] = ()  # of its quality, such as "blurred"; "the same as" an earlier photo of the list
    error: str = ""

    @classmethod
    def of(cls, photo: str, found: Verdict, notes: tuple[str, ...] = ()) -> Prediction:
        """What a verdict says."""
        seen = next(iter(found.looks_like), "")
        where = found.basis, found.threshold
        return cls(photo, found.verdict, found.label, found.kind, found.p, found.score, seen, *where, notes)


class Predictions(Sequence[Prediction]):
    """Records in the order of the photos; a slice is one of these, too."""

    def __init__(self, records: Iterable[Prediction]) -> None:
        self._records = tuple(records)

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, place: int) -> Prediction: ...
    @overload
    def __getitem__(self, place: slice) -> Predictions: ...
    def __getitem__(self, place: int | slice) -> Prediction | Predictions:
        return Predictions(self._records[place]) if isinstance(place, slice) else self._records[place]

    def __repr__(self) -> str:
        return f"Predictions({list(self._records)!r})"

    def to_pandas(self) -> Any:
        """A DataFrame, a row a photo: `table[table.verdict == "in"]`."""
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            message = f"to_pandas needs pandas, which cannot be imported: {error}"
            raise MissingExtraError(message, hint="pip install pandas") from None
        return pandas.DataFrame(list(map(asdict, self)), columns=list(Prediction.__dataclass_fields__))


def predict(detector: Detector, photos: ImageLike | Iterable[ImageLike]) -> Predictions:
    """Judge photos, or a single one; see `Detector.predict`."""
    one = isinstance(photos, str | bytes | os.PathLike | Image.Image) or (
        isinstance(photos, np.ndarray) and photos.ndim < 4
    )
    given: list[ImageLike] = [photos] if one else as_list(photos)  # type: ignore[list-item, arg-type]
    return Predictions(_records(_cut(detector, given), given))


def _cut(detector: Detector, photos: list[ImageLike]) -> Detector:
    """The detector with a cut from the photos themselves, where nothing else tells one; a warning where it bends."""
    if len(photos) < FEWEST or not batches.is_wanted(detector):
        return detector
    chosen = batches.Smallest[ImageLike](batches.MOST)
    for place, photo in enumerate(photos):
        chosen.add(batches.name_of(photo, place), photo)
    vectors = batches.vectors_of_readable(detector.encoder, [photo for _, photo in chosen.items()])
    found = batches.look(detector, vectors)
    if found.warning:
        warnings.warn(found.warning, stacklevel=4)
    return found.applied(detector)


def _records(detector: Detector, photos: list[ImageLike]) -> Iterator[Prediction]:
    encoder = detector.encoder
    loaded = enumerate(decode_ahead(photos, encoder.loader.see, workers=usable_cpus(), ahead=2 * encoder.chunk))
    with Twins() as twins:
        for part in grouped(loaded, encoder.chunk):
            named = [(batches.name_of(photo, place), result) for place, (photo, result) in part]
            yield from _told(detector, named, twins)


def _told(detector: Detector, part: list[tuple[str, Seen | OutwordError]], twins: Twins) -> Iterator[Prediction]:
    """The records of some photos: names, and what could be read."""
    good = [(name, result) for name, result in part if not isinstance(result, OutwordError)]
    names, pixels = [name for name, _ in good], [result.pixels for _, result in good]
    judged = judge(detector, np.stack(pixels), 1, names=names, lenient=True) if good else None
    verdicts, errors = iter(judged or ()), iter(() if judged is None else judged.errors)
    for name, result in part:
        if isinstance(result, OutwordError):
            yield Prediction(name, error=result.message)
        elif error := next(errors):
            yield Prediction(name, error=error)
        else:
            same = twins.note(name, result.look.fingerprint)
            yield Prediction.of(name, next(verdicts), (*result.look.notes, *same))
