"""Marks: which photos show one of the classes and which do not, from a file, and the photos that they are of.

The file is a CSV with the columns `path` and `mark`, which is `in`, `out` or empty; what the page of `outword serve`
exports is one. A path of it may be the end of a photo's path: `pets/cat.jpg`, or `cat.jpg`.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from outword.base.cells import csv_cell
from outword.base.files import PathLike, read_small
from outword.base.terms import IN, OUT
from outword.base.wording import a_few
from outword.errors import InputError

LARGEST = 64 << 20  # bytes of a file of marks


def read_marks(path: PathLike) -> dict[str, str]:
    """The marks of a file, `in` or `out` by path; raises where there are none, or they contradict each other."""
    hint = 'it is a CSV file with the columns "path" and "mark", which is "in" or "out"; the page exports one'
    try:
        text = read_small(Path(path), LARGEST).decode("utf-8-sig")
        rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    except (OSError, ValueError, csv.Error) as error:
        raise InputError(f"the marks {path} cannot be read: {error}", hint=hint) from None
    found: dict[str, str] = {}
    for row in rows:
        name, mark = (row.get(column) for column in ("path", "mark"))
        if name is None or mark is None:
            raise InputError(f"the marks {path} lack the columns path and mark", hint=hint)
        if mark not in (IN, OUT, ""):
            raise InputError(f"a mark in {path} must be in or out, got {mark!r} for {name!r}", hint=hint)
        if mark and found.setdefault(csv_cell(name), mark) != mark:
            raise InputError(f"{name!r} is marked in and out in {path}", hint="remove one of the two")
    if not found:
        raise InputError(f"there are no marks in {path}", hint=hint)
    return found


def find_marked(marks: Mapping[str, str], photos: Iterable[str]) -> dict[str, set[str]]:
    """The photos that are marked `in`, and those marked `out`, of all that there are; each mark must have its photo."""
    by_name: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for photo in photos:
        parts = _parts(str(Path(photo).absolute()))  # marks may have more of the path than `./cat.jpg` has
        by_name[parts[-1]][photo] = parts
    found: dict[str, set[str]] = {IN: set(), OUT: set()}
    missing = []
    for name, mark in marks.items():
        end = _parts(name)
        alike = by_name.get(end[-1], {})
        fitting = {name} & alike.keys() or {photo for photo, parts in alike.items() if parts[-len(end) :] == end}
        if len(fitting) > 1:
            hint = "give fewer folders, or write more of the path into the marks"
            raise InputError(f"the mark {name!r} may be of {a_few(sorted(map(repr, fitting)))}", hint=hint)
        missing += [] if fitting else [repr(name)]
        found[mark] |= fitting
    if missing:
        told = f"{len(missing):,} of {len(marks):,} marked photos are not among the photos given: {a_few(missing)}"
        raise InputError(told, hint="give the photos that were marked, or the folder that they are in")
    if both := found[IN] & found[OUT]:
        raise InputError(f"marked in and out: {a_few(sorted(map(repr, both)))}", hint="remove one of the two")
    return found


def _parts(path: str) -> tuple[str, ...]:
    return PurePosixPath(path.replace("\\", "/")).parts or ("",)
