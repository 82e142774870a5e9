"""What the photos that are asked about say of the threshold: they refine an imagined one, or stand for a reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from heapq import heappush, heapreplace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from outword.base.files import sha256_bytes
from outword.base.records import read_record
from outword.base.reports import Report, quiet
from outword.base.wording import counted
from outword.detector.artifact import finite
from outword.detector.cuts import FEWEST, UNRELATED, can_be_cut, cut_by_batch, with_cut
from outword.detector.imagining import cut_by_imagining, refined_sight
from outword.encoders import Encoder
from outword.encoders.base import Vectors
from outword.encoders.reading import read_photos
from outword.maths.imagined import Sight
from outword.maths.thresholds import Threshold, read_threshold
from outword.photos.decode import ImageLike
from outword.vectors.reader import encoded

if TYPE_CHECKING:
    from outword.detector.detector import Detector

MOST = 2000  # photos that stand for a reference
REFINING = 200  # photos that refine an imagined threshold; docs/clip.md has what 1, 5, 20 and 200 bring
# The cut was right in batches of which up to 56 % showed the classes, and too high for long lists at 65 %
# (docs/scale.md). Of a batch with a hundredth of its photos in the classes, most of what gets in is something else.
NEARLY_ALL, NEARLY_NONE = 0.6, 0.01
Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class Batch:
    """What a look at photos found."""

    n_photos: int  # that were looked at
    like: float = 0.0  # the share of them that is named like a label
    cut: Threshold | None = None  # None where they, or those that look like no label, are too few
    sight: Sight | None = None  # how the encoder sees, where they refine an imagined threshold

    def applied(self, detector: Detector) -> Detector:
        """The detector with what was found, if anything."""
        if self.sight is not None:
            return cut_by_imagining(detector, self.sight, self.n_photos)
        return with_cut(detector, self.cut) if self.cut else detector

    def told(self, encoder: str) -> str:
        """What was found, in words."""
        if self.sight is not None:
            refined = ", refined by these" if self.n_photos else ""
            return f"no reference for {encoder}: the threshold is from photos imagined from names{refined}"
        if self.cut:
            share, rest = self.cut.target_fpr or 0.0, self.cut.n_reference
            which = f"{rest:,} of these photos that look like none of your classes"
            lets_in = f"the cut lets in {100 * share:.3g}% of {which}"
            unknown = "how many unrelated photos get in is not known, and there is no p"
            return f"no reference for {encoder} and these classes: {lets_in}; {unknown}"
        few = counted(self.n_photos, "photo")
        if self.n_photos >= FEWEST:
            few = f"{round((1 - self.like) * self.n_photos):,} of {few} that look like none of your classes"
        least = FEWEST if self.n_photos < FEWEST else UNRELATED
        return f"no reference for {encoder} and these classes, and {few} are too few to find a cut from ({least})"

    @property
    def warning(self) -> str:
        """Where the rule bends: nearly all photos are named like a label, or nearly none; else empty."""
        if not self.cut or NEARLY_NONE <= self.like <= NEARLY_ALL:
            return ""
        share = f"{100 * self.like:.2g}% of these photos look like your classes"
        if self.like > NEARLY_ALL:
            return f"{share}: the cut bends there, and keeps out too many; calibrate with photos of yours"
        return f"{share}, and one in twenty of the others gets in all the same; calibrate with photos of yours"

    def table(self) -> dict[str, Any]:
        """The same as JSON can have it."""
        cut = finite(asdict(self.cut)) if self.cut else None
        table = {"n_photos": self.n_photos, "like": self.like, "cut": cut}
        return table if self.sight is None else {**table, "sight": asdict(self.sight)}


def read_batch(table: Mapping[str, Any]) -> Batch:
    """A batch from its table; `ValueError`, `TypeError` or `KeyError` where it is none.

    Tables of older versions also have `scores`, which p-values were counted from.
    """
    n_photos, like = table["n_photos"], table["like"]
    if type(n_photos) is not int or n_photos < 0 or not 0 <= float(like) <= 1:
        raise ValueError(f"n_photos and like must be a number of photos and a share, got {n_photos} and {like}")
    cut = None if table["cut"] is None else read_threshold(table["cut"])
    sight = read_record(Sight, table["sight"], "sight", "outword score --help") if "sight" in table else None
    return Batch(n_photos, float(like), cut, sight)


def is_wanted(detector: Detector) -> bool:
    """Whether the photos that are asked about move the threshold."""
    if not detector.refines:
        return False
    return is_refined(detector) or (
        detector.basis == "formula" and detector.vocabulary is not None and can_be_cut(detector)
    )


def is_refined(detector: Detector) -> bool:
    """Whether photos refine the threshold, from the first one on; else they stand for a reference, if they are many."""
    return detector.basis == "imagined"


def most_wanted(detector: Detector) -> int:
    """How many photos are looked at."""
    return REFINING if is_refined(detector) else MOST


def look(detector: Detector, vectors: NDArray[np.floating]) -> Batch:
    """What photos (n, dim) find out about themselves."""
    if is_refined(detector):
        return Batch(len(vectors), sight=refined_sight(detector, vectors))
    if len(vectors) < FEWEST:
        return Batch(len(vectors), 0.0)
    cut, like = cut_by_batch(detector, vectors)
    return Batch(len(vectors), like, cut.thresholds.estimated)


class Smallest(Generic[Value]):
    """Of any number of names those with the smallest sha256, each once, with what they stand for; memory stays flat.

    So a sample does not depend on the order in which names come, or on how many come at a time.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._heap: list[tuple[int, str]] = []  # the largest sha256 on top, as a negative number
        self._values: dict[str, Value] = {}

    def add(self, name: str, value: Value) -> None:
        """Take a name, if it is among the smallest so far."""
        key = -int(sha256_bytes(name.encode("utf-8", "surrogatepass")), 16)
        if name in self._values or (len(self._heap) == self._most and key < self._heap[0][0]):
            return
        if len(self._heap) < self._most:
            heappush(self._heap, (key, name))
        else:
            del self._values[heapreplace(self._heap, (key, name))[1]]
        self._values[name] = value

    def __len__(self) -> int:
        return len(self._heap)

    def items(self) -> list[tuple[str, Value]]:
        """Names and what they stand for, the smallest first."""
        return [(name, self._values[name]) for _, name in sorted(self._heap, reverse=True)]


def vectors_of_readable(encoder: Encoder, photos: Iterable[ImageLike], report: Report = quiet) -> Vectors:
    """Vectors of the photos that can be read, (n, dim)."""
    found, done = [np.zeros((0, encoder.dim), np.float32)], 0
    for chunk in read_photos(photos, encoder.loader, encoder.chunk):
        found.append(encoded(encoder, chunk))
        done += len(chunk.good)
        report("look", done, None)
    return np.concatenate(found)
