"""Cleaning a source: the photos that are in-distribution as copies or links, a list of their paths, and counts.

kept/
  detector.outword     what judged, if it was fitted here
  scores/              the rows of all photos (see `outword.scoring.parts`)
  images/LABEL/        the photos that are kept, or links to them
  kept.txt             their paths, one a line
  counts.csv           how many are kept of each label, how many are left out, and how many could not be read
  borderline.html      those nearest to the threshold
  duplicates.csv       those that were dropped as they are the same as others, if that was asked for

Labels and the names of photos are not trusted: they become names of folders and files only after `safe_name`. A run
that was killed goes on when it is started again, and ends with the same files as one that was not.
"""

from __future__ import annotations

import csv
import io
import os
import re
import shlex
import stat
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count, groupby, islice, zip_longest
from pathlib import Path
from typing import Any

from outword.base.cells import csv_text
from outword.base.checks import unknown
from outword.base.files import PathLike, sha256_bytes, sweep, whole_file
from outword.base.locks import lock_output, release
from outword.base.processors import usable_cpus
from outword.base.reports import Report, Say, quiet
from outword.base.terms import IN
from outword.base.wording import be, counted
from outword.detector.batches import is_wanted
from outword.detector.detector import Detector
from outword.errors import ImageError, InputError, OutwordError
from outword.photos.ahead import decode_ahead, weight
from outword.photos.decode import read_bytes, with_image
from outword.photos.formats import FORMATS, HEAD, SUFFIXES, format_of
from outword.photos.quality import Fingerprint, fingerprint
from outword.photos.sources import tar
from outword.photos.sources.base import PART, Files, Item, Piece, unfiled
from outword.photos.sources.filesystems import Link, fetched, is_remote
from outword.photos.sources.patterns import check_there
from outword.photos.twins import Twins
from outword.scoring import runs
from outword.scoring.page import Borderline, card_of_row
from outword.scoring.parts import MANIFEST, Part, Parts, check_place
from outword.scoring.rows import Row
from outword.scoring.runs import Scoring
from outword.scoring.stream import open_source
from outword.vectors.source import Source, Stored

DETECTOR, SCORES, IMAGES = "detector.outword", "scores", "images"
LIST, COUNTS, PAGE, DUPLICATES = "kept.txt", "counts.csv", "borderline.html", "duplicates.csv"
WAYS = ("copy", "link", "list")
IT = "the detector"  # what it is called where it has no path
SAID = 10  # photos that cannot be copied or listed are named up to here, and counted from there on
LINES = ("photos", "label", "number")  # titles of the counts
NAMES = {DETECTOR, SCORES, IMAGES, LIST, COUNTS, PAGE, DUPLICATES}
DUPLICATE = "duplicate"  # in place of the verdict of a row that is in, and dropped
SIDE = 128  # pixels that photos may be decoded at to be compared
AHEAD = 64  # photos that are decoded before they are compared
LONGEST = 100  # bytes of a name that is made of a text; file systems take 255
DIGITS = 16  # of the sha256 of a path, by which files of the same name differ
Wants = Callable[[Row], bool]
Done = tuple[Row, "ImageError | None"]  # a row that is kept, and why its photo is not there
_NOT_IN_NAMES = frozenset('/\\:*?"<>| ')
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)  # no files on Windows


def filter(
    detector: Detector | Callable[[Path], Detector],
    source: PathLike | Iterable[PathLike],
    folder: PathLike,
    *,
    how: str = "copy",
    drop_duplicates: bool = False,
    engine: str = "local",
    address: str | None = None,
    raw_csv: bool = False,
    column: str | None = None,
    options: Mapping[str, Any] | None = None,
    report: Report = quiet,
    say: Say = quiet,
) -> Tally:
    """Keep the photos of a source that are in-distribution; a run that was killed goes on.

    Args:
        detector: what judges, or what gives it, by the path in the folder where it may be kept.
        source: see `outword.scoring.run`, as for all that is not told here.
        folder: for what is kept: see this module.
        how: "copy" or "link" the photos, or "list" their paths, which is always done.
        drop_duplicates: of photos that are the same, keep the first; those that would be kept are decoded again for it.
        say: gets remarks, such as which photo cannot be copied.
    """
    given, folder = runs.as_paths(source), Path(folder)
    if how not in WAYS:
        raise unknown("way to keep photos", how, WAYS, "outword filter --help")
    runs.check_apart(folder, given)
    check_there(given)
    if how == "link":
        for path in given:
            if is_remote(path) or unfiled(path) or tar.KIND.takes(path):  # a table may hold paths
                raise _not_linked(path)
    engine_there = runs.engine_of(engine, address, options or {}, say)
    with claimed(folder):
        judge = detector if isinstance(detector, Detector) else detector(folder / DETECTOR)
        check_judge(judge)
        opened = open_source(judge, given, column=column)
        scoring = Scoring(judge, opened, engine_there, options or {}, False, report, say)
        about = {**scoring.about(), **({"drop_duplicates": True} if drop_duplicates else {})}
        with Parts(folder / SCORES, "csv", about, raw_csv=raw_csv, find=scoring.look) as parts:
            scoring = scoring.settled(parts.found)
            check_cut(scoring.detector)
            scoring.fill(parts)
            judged = Judged(parts, _drop(scoring, parts, folder / DUPLICATES) if drop_duplicates else ())
            tally = _count(scoring, judged, folder, missed=_keep(scoring, judged, folder, how))
            with whole_file(folder / COUNTS) as temporary:
                temporary.write_text(tally.csv(raw=raw_csv), encoding="utf-8")
    return tally


def check_judge(detector: Detector, name: str = IT) -> None:
    """Raise unless a detector can filter, or may once it has seen the photos; its `name` is its path if it has one."""
    runs.check_resumable(detector, hint="use a detector of another method")
    if not is_wanted(detector):
        check_cut(detector, name)


def check_cut(detector: Detector, name: str = IT) -> None:
    """Raise unless there is a threshold to filter by."""
    if detector.threshold is None:
        path = "DETECTOR" if name == IT else shlex.quote(name)
        hint = f"outword calibrate {path} PHOTOS... -o calibrated.outword"
        raise InputError(f"{name} has no threshold, and {detector.method} has none by itself", hint=hint)


@dataclass(frozen=True)
class Judged:
    """The rows of all photos, with `DUPLICATE` for the verdict of those that are dropped, by place among the kept."""

    written: Parts
    dropped: Sequence[int] = ()  # in rising order

    def parts(self) -> Iterator[Part]:
        """The parts that rows lie in."""
        return self.written.parts()

    def rows(self) -> Iterator[Row]:
        """All rows, in the order of the source."""
        kept, later = count(), iter(self.dropped)
        dropped = next(later, None)
        for row in self.written.rows():
            if row["verdict"] == IN and next(kept) == dropped:
                dropped = next(later, None)
                yield {**row, "verdict": DUPLICATE}
            else:
                yield row


def _drop(scoring: Scoring, parts: Parts, path: Path) -> Sequence[int]:
    """Which of the photos that are kept are the same as an earlier one, by place among them; they are listed at `path`.

    A photo that cannot be read any more is the same as no other. 8 bytes are in memory for each that is dropped.
    """

    def seen(wanted: tuple[Row, Item]) -> Fingerprint | None:
        return with_image(wanted[1], fingerprint, min_side=SIDE)

    dropped = array("q")
    kept = items_of(scoring.source, Judged(parts), lambda row: row["verdict"] == IN)
    ahead = decode_ahead(kept, seen, workers=usable_cpus(), ahead=AHEAD, weigh=lambda wanted: weight(wanted[1]))
    with Twins() as twins, whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(["path", "same_as"])
        for place, ((row, _), found) in enumerate(ahead):
            first = None if isinstance(found, OutwordError) else twins.first(row["path"], found)
            if first is not None:
                dropped.append(place)
                lines.writerow([csv_text(name, raw=parts.raw_csv) for name in (row["path"], first)])
            scoring.report("compare", place + 1, None)
    return dropped


def _keep(scoring: Scoring, parts: Judged, folder: Path, how: str) -> int:
    """Copy or link the photos, and say which cannot be; gives the number of these."""
    if how == "list":
        return 0
    images, missed = Images(folder / IMAGES, scoring.detector.labels), 0
    done = copy_kept(scoring.source, parts, images) if how == "copy" else link_kept(parts, images)
    for number, (row, error) in enumerate(done, start=1):
        scoring.report(how, number, None)
        if error:
            missed += 1
            if missed <= SAID:
                scoring.say(f"warning: no {how} of {row['path']!r}: {error.message}")
    return missed


def _count(scoring: Scoring, parts: Judged, folder: Path, *, missed: int) -> Tally:
    """Write the list and the page, and count."""
    tally, sample, unlisted = Tally(scoring.detector.labels, missed=missed), Borderline(), 0
    total = parts.written.totals().rows
    with whole_file(folder / LIST) as temporary, temporary.open("wb") as file:
        for row in parts.rows():
            tally.add(row)
            if tally.rows % 1000 == 0:
                scoring.report("count", tally.rows, total)
            if row["verdict"] == DUPLICATE:
                continue
            sample.add(card_of_row(scoring.detector, row))
            if row["verdict"] == IN and _is_line(row["path"]):
                file.write(os.fsencode(row["path"]) + b"\n")
            elif row["verdict"] == IN:
                unlisted += 1
                if unlisted <= SAID:
                    scoring.say(f"warning: {row['path']!r} is kept, but cannot stand in {LIST}")
    if unlisted:
        scoring.say(f"{counted(unlisted, 'kept photo')} {be(unlisted)} not in {LIST}: a path there is one line")
    scoring.write_page(folder / PAGE, sample, "outword: borderline cases")
    return tally


def safe_name(text: str) -> str:
    """A name for one file or folder on any system, whatever the text is; not hidden, and `LONGEST` bytes at most.

    >>> [safe_name(text) for text in ("tabby cat", "../x", "a/b", "CON", "...", "")]
    ['tabby_cat', '_x', 'a_b', '_CON', '_', '_']
    """
    plain = "".join(c if c.isprintable() and c not in _NOT_IN_NAMES else "_" for c in text)
    name = plain.encode()[:LONGEST].decode(errors="ignore").strip(".")
    return f"_{name}" if not name or _DEVICE.fullmatch(name) else name


def folder_names(labels: Iterable[str]) -> dict[str, str]:
    """A folder for each label, another for each, also where upper and lower case are the same.

    >>> folder_names(["tabby cat", "a/b", "a b"])
    {'tabby cat': 'tabby_cat', 'a/b': 'a_b-c14cddc033f64b9d', 'a b': 'a_b-c8687a08aa5d6ed2'}
    """
    names = {label: safe_name(label) for label in labels}
    uses = Counter(name.casefold() for name in names.values())
    return {label: name if uses[name.casefold()] == 1 else f"{name}-{_hash(label)}" for label, name in names.items()}


def _hash(text: str) -> str:
    return sha256_bytes(text.encode("utf-8", "surrogateescape"))[:DIGITS]


class Images:
    """The folder of the photos that are kept, made when the first one comes; one process writes to it at a time."""

    def __init__(self, folder: Path, labels: Iterable[str]) -> None:
        self.folder = folder
        self._folders = folder_names(labels)
        self._new = folder / ".new"  # the one that is being written; no label has this name
        self._new.unlink(missing_ok=True)

    def wants(self, row: Row) -> bool:
        """Whether a row is kept, and its photo is not there yet.

        A file that is there is whole, and is told by its size where that of the original can be known at once. It also
        counts where the original is gone.
        """
        if row["verdict"] != IN:
            return False
        stem, suffix = self._place(row)
        suffixes = [suffix] if suffix else [kind.suffix for kind in FORMATS]  # of its name, or else by its content
        sizes = {_size(Path(stem + one)) for one in suffixes} - {0}
        wanted = _size(Path(row["path"]), follow=True)  # 0 in an archive, or behind a URL
        return wanted not in sizes if wanted else not sizes

    def copy(self, row: Row, data: bytes) -> None:
        """Write the photo of a row, if it is not there."""
        stem, suffix = self._place(row)
        place = Path(stem + (suffix or format_of(data[:HEAD]).suffix))
        if _size(place) != len(data):
            self._put(place, lambda new: new.write_bytes(data))

    def link(self, row: Row) -> None:
        """Link to the photo of a row; `ImageError` if it is gone, `InputError` if it is no file of its own."""
        if not os.path.lexists(row["path"]):
            if is_remote(row["path"]) or unfiled(row["path"]) or _is_packed(row["path"]):
                raise _not_linked(row["path"])
            raise ImageError("no such file")
        place, target = Path("".join(self._place(row))), str(Path(row["path"]).absolute())
        if not (place.is_symlink() and os.fspath(place.readlink()) == target):
            self._put(place, lambda new: new.symlink_to(target))

    def _place(self, row: Row) -> tuple[str, str]:
        """Where the photo of a row goes: a path without its suffix, and the suffix; "" if its name has none of ours."""
        last = re.split(r"[/\\]", row["path"])[-1]
        suffix = next((end for end in SUFFIXES if last.lower().endswith(end)), "")
        name = safe_name(last[: len(last) - len(suffix)])
        folder = self.folder / self._folders[row["label"]]
        return str(folder / f"{name}-{_hash(row['path'])}"), suffix

    def _put(self, place: Path, make: Callable[[Path], object]) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        self._new.unlink(missing_ok=True)
        make(self._new)
        self._new.replace(place)  # unlike `whole_file` it does not write through a link, to the original


def _size(place: Path, *, follow: bool = False) -> int:
    """Bytes of a file; 0 where there is none, and for a link that is not followed."""
    try:
        found = place.stat(follow_symlinks=follow)
    except (OSError, ValueError):
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def copy_kept(source: Source, parts: Judged, images: Images) -> Iterator[Done]:
    """Copy the photos that are kept and not there yet, in order; what cannot be read any more is passed over."""
    for row, item in items_of(source, parts, images.wants):
        try:
            images.copy(row, read_bytes(item))
            yield row, None
        except ImageError as error:
            yield row, error


def items_of(source: Source, parts: Judged, wants: Wants) -> Iterator[tuple[Row, Item]]:
    """The rows that are wanted, each with its photo, in order.

    The source is gone through again beside its rows. Of plain files, also those that a table names, only those that are
    wanted are read, and of archives only those that have something wanted.
    """
    for piece, ahead, rows in zip_longest(source.pieces(), _by_piece(parts), _by_piece(parts)):
        if piece is None or ahead is None or rows is None:
            raise _changed("it has more or fewer photos")
        first = next((place for place, row in enumerate(ahead) if wants(row)), None)
        if first is not None:
            rest = first, islice(rows, first, None), wants
            yield from _of_files(piece, *rest) if isinstance(piece, Files | Stored) else _of_archive(piece, *rest)


def link_kept(parts: Judged, images: Images) -> Iterator[Done]:
    """Link to the photos that are kept, in order; what is gone is passed over."""
    for row in (row for row in parts.rows() if row["verdict"] == IN):
        try:
            images.link(row)
            yield row, None
        except ImageError as error:
            yield row, error


def _by_piece(parts: Judged) -> Iterator[Iterator[Row]]:
    """The rows of each piece of the source."""
    rows = parts.rows()
    for _, group in groupby(parts.parts(), key=lambda part: part.piece):
        some = islice(rows, sum(part.rows for part in group))
        yield some
        deque(some, maxlen=0)  # what was not asked for


def _of_files(piece: Piece | Stored, first: int, rows: Iterator[Row], wants: Wants) -> Iterator[tuple[Row, Item]]:
    names = piece.names(first)
    while some := list(islice(rows, PART)):
        if [row["path"] for row in some] != list(islice(names, len(some))):
            raise _changed(piece.name)
        wanted = [row for row in some if wants(row)]
        if isinstance(piece, Stored):
            _check_plain(piece, wanted)
        yield from zip(wanted, Files(tuple(row["path"] for row in wanted)).items(), strict=True)


def _check_plain(piece: Stored, rows: Iterable[Row]) -> None:
    """Raise if a photo of a store lies in an archive."""
    for row in rows:
        if _is_packed(row["path"]):
            message = f"{row['path']} lies in an archive, and {piece.name} is a store, which has no photos"
            raise InputError(message, hint="filter the photos themselves")


def _of_archive(piece: Piece, first: int, rows: Iterator[Row], wants: Wants) -> Iterator[tuple[Row, Item]]:
    wanted: deque[Row] = deque()

    def some() -> Iterator[Item | Link]:
        items = piece.lazy_items(first)
        for row in rows:
            item = next(items, None)
            if item is None or os.fspath(item) != row["path"]:
                raise _changed(piece.name)
            if wants(row):
                wanted.append(row)
                yield item

    for item in fetched(some()):
        yield wanted.popleft(), item


def _changed(name: str) -> InputError:
    message = f"the source has changed since it was scored: {name}"
    return InputError(message, hint="filter it again, into another folder")


def _is_packed(path: str) -> bool:
    """Whether a path is that of a photo in an archive of this machine: what should be a folder is a file."""
    return any(parent.is_file() for parent in Path(path).parents)


def _not_linked(path: str) -> InputError:
    message = f"{path} cannot be linked: it is no file of its own on this machine"
    return InputError(message, hint="use --as copy; what was scored is not scored again")


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Make the folder if need be, and keep other processes from writing to it; one with anything else is refused."""
    check_place(folder)
    begun = (folder / SCORES / MANIFEST).is_file()
    names = {entry.name for entry in folder.iterdir() if entry.name[0] != "."} if folder.is_dir() else set()
    if others := names - (NAMES if begun else {DETECTOR, SCORES}):
        message = f"{folder} holds what is not of a run of this kind ({min(others)})"
        raise InputError(message, hint="choose another folder")
    folder.mkdir(exist_ok=True)
    lock = lock_output(folder)
    try:
        sweep(folder)
        yield
    finally:
        with suppress(OSError):
            folder.rmdir()  # if nothing came of it
        release(lock)


@dataclass
class Tally:
    """Rows by nearest label: how many are kept and left out; errors; and photos missed, kept but read no more.

    Duplicates are among those that are left out.
    """

    labels: Sequence[str]
    kept: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    errors: int = 0
    missed: int = 0
    duplicates: int = 0

    def add(self, row: Row) -> None:
        """Count a row."""
        if row["error"]:
            self.errors += 1
        else:
            counts = self.kept if row["verdict"] == IN else self.left_out
            counts[row["nearest"]] += 1
            self.duplicates += row["verdict"] == DUPLICATE

    @property
    def rows(self) -> int:
        """All rows, errors too."""
        return self.kept.total() + self.left_out.total() + self.errors

    def lines(self) -> list[tuple[str, str, int]]:
        """What became of the photos, of which label, and how many: the numbers add up to all photos."""
        found = [("kept", label, self.kept[label]) for label in self.labels]
        found.append(("left out", "", self.left_out.total() - self.duplicates))
        if self.duplicates:
            found.append(("duplicate", "", self.duplicates))
        return [*found, ("error", "", self.errors)]

    def csv(self, *, raw: bool = False) -> str:
        """The same as CSV; unless raw, no cell is a formula (see `outword.scoring.rows`)."""
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(LINES)
        for what, label, number in self.lines():
            lines.writerow([what, csv_text(label, raw=raw), number])
        return text.getvalue()


def _is_line(path: str) -> bool:
    """Whether a path can stand in a list, to be read back as it is (see `outword.photos.sources.listing`)."""
    return "\n" not in path and not path.endswith("\r") and bool(path.strip())
