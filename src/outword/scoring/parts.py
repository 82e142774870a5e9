"""Output in parts: a folder of files that are written whole, and a manifest by which a run that was killed goes on.

scores/
  part-000000-0000.parquet     rows of piece 0 of the source, from its first on; or .csv, .jsonl
  part-000000-0001.parquet     the next `PART` rows of it
  part-000001-0000.parquet
  manifest.jsonl               what the run is, and the cut that its own photos gave, where nothing else told one;
                               a line for each part once it is on the disk; the totals once all are

A part is in the manifest or it does not count. The parts of a piece are written in order, so what is done of it is
always its beginning. When a run is complete, its files and its manifest do not tell which engine it ran on, how often
it was killed, or in which order its parts came.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from outword.base.extras import pyarrow
from outword.base.files import parse_json, sha256_bytes, sha256_file, sweep
from outword.base.locks import lock_output, release
from outword.base.prediction import Prediction
from outword.base.records import read_record
from outword.encoders.reading import Span
from outword.errors import ArtifactError, InputError
from outword.photos.sources.base import PART, Piece
from outword.scoring.rows import Row, Totals, read_records, read_rows, writing
from outword.vectors.shards import write_synced
from outword.vectors.source import Job, Stored

SCHEMA = 4
T = TypeVar("T")
MOST = 10**12  # pieces, parts and rows: more are none
Begun = Mapping[int, "tuple[str, int | None]"]  # by piece: its mark, and how many photos are done, None for all
MANIFEST = "manifest.jsonl"
FOUND = "batch"  # in the first line of a manifest, where anything was found
_FILE = re.compile(r"part-([0-9]{6,})-([0-9]{4,})\.(?:csv|jsonl|parquet)")


@dataclass(frozen=True)
class Part:
    """A line of the manifest; rows and counts are `outword.scoring.rows.Totals`."""

    piece: int  # number in the source
    part: int  # number in the piece
    name: str
    mark: str  # changes where the piece does
    last: bool  # whether the piece ends here
    rows: int  # a piece without photos has a part without a file
    counts: dict[str, int]
    sha256: str  # of the file, "" where there is none


@dataclass
class _Piece:
    """What is known of a piece: what was written of it, and what has come and is not written yet."""

    mark: str
    parts: int = 0  # that are written, as are `rows`
    rows: int = 0
    last: bool = False  # whether that is all of it
    chunks: dict[int, list[Prediction]] = field(default_factory=dict)  # that are not written, by place
    end: int | None = None  # where the piece ends, once that is known


class Parts:
    """A folder of parts, to be written by one process at a time; `with Parts(...) as parts`.

    What is in memory is a little for each piece, and the rows of unfinished parts. The folder is made if need be; one
    that holds something else, or parts of a run that is not what `about` says, is refused. What `find` gives when the
    run begins, if anything, is kept in the manifest: a run that goes on has it in `found`, without finding it again.
    """

    def __init__(
        self,
        folder: Path,
        kind: str,
        about: Mapping[str, Any],
        *,
        raw_csv: bool = False,
        find: Callable[[], Mapping[str, Any] | None] = lambda: None,
    ) -> None:
        if kind == "parquet":
            pyarrow()  # without it, say so before any work
        self.folder = folder
        self.kind = kind
        self.raw_csv = raw_csv
        self.about = {"schema": SCHEMA, "format": kind, "raw_csv": raw_csv, "part_rows": PART, **about}
        self.found: Mapping[str, Any] | None = None
        self.redone: list[str] = []  # parts that were lost or damaged since they were written
        self._find = find
        self._known: dict[int, _Piece] = {}
        self._totals = Totals()
        self._size = 0  # bytes of the manifest: what it is, and the lines of parts
        self._lock: int | None = None

    def __enter__(self) -> Parts:
        check_place(self.folder)
        if self.folder.is_dir() and not (self.folder / MANIFEST).is_file():
            sweep(self.folder)
            if others := [entry.name for entry in self.folder.iterdir()]:
                message = f"{self.folder} holds other files ({min(others)}), and no {MANIFEST}"
                raise InputError(message, hint="choose another folder")
        self.folder.mkdir(exist_ok=True)
        self._lock = lock_output(self.folder)
        try:
            self._read()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        release(self._lock)
        self._lock = None

    def progress(self) -> Begun:
        """Of each piece that was begun its mark, and how many of its photos are done; None when it is finished."""
        begun = ((number, piece) for number, piece in self._known.items() if piece.parts)
        return {number: (piece.mark, None if piece.last else piece.rows) for number, piece in begun}

    def add(self, span: Span, rows: list[Prediction]) -> None:
        """Take the rows of a chunk, in any order, and write the parts that are whole; what comes twice counts once."""
        piece = self._known.setdefault(span.piece, _Piece(span.version))
        if piece.last or span.first < piece.rows:
            return
        piece.chunks[span.first] = rows
        if span.end:
            piece.end = span.first + len(rows)
        while not piece.last and (part := _whole(piece)) is not None:
            self._write(span.piece, span.name, piece, part)

    def finish(self, pieces: int) -> None:
        """Put the manifest in order, with the totals at its end; an error unless all rows of all pieces have come."""
        if any(number >= pieces for number in self._known):
            name = next(part.name for part in self.parts() if part.piece >= pieces)
            raise _changed(f"not in it any more: {name}")
        if len(self._known) < pieces or not all(piece.last for piece in self._known.values()):
            raise ArtifactError("some rows of the source have not come", hint="run the same command again")
        totals = {"complete": True, "pieces": pieces, **asdict(self.totals())}
        write_synced(self.folder / MANIFEST, chain([_line(self.about)], self._lines(), [_line(totals)]))

    def parts(self) -> Iterator[Part]:
        """The parts that are written, in the order of the source."""
        return (Part(**json.loads(line)) for line in self._lines())

    def totals(self) -> Totals:
        """Of all that is written."""
        return self._totals

    def rows(self) -> Iterator[Row]:
        """All rows that are written, in the order of the source."""
        return self._each(partial(read_rows, kind=self.kind, raw_csv=self.raw_csv))

    def records(self) -> Iterator[Prediction]:
        """The same of parts that have records."""
        return self._each(read_records)

    def _each(self, read: Callable[[Path], Iterator[T]]) -> Iterator[T]:
        """What each part has, in the order of the source."""
        for part in self.parts():
            if part.rows:
                file = self._file(part.piece, part.part)
                try:
                    yield from read(file)
                except (ValueError, TypeError, KeyError, RecursionError, csv.Error) as error:
                    raise _unreadable(file, error) from error

    def _file(self, piece: int, part: int) -> Path:
        return self.folder / f"part-{piece:06}-{part:04}.{self.kind}"

    def _write(self, number: int, name: str, piece: _Piece, rows: list[Prediction]) -> None:
        """Write the next part of a piece."""
        data, sha256 = io.BytesIO(), ""
        with writing(data, self.kind, raw_csv=self.raw_csv) as write:
            for row in rows:
                write(row)
        if rows:
            write_synced(self._file(number, piece.parts), [data.getvalue()])
            sha256 = sha256_bytes(data.getvalue())
        last = piece.rows + len(rows) == piece.end
        part = Part(number, piece.parts, name, piece.mark, last, sha256=sha256, **vars(write.totals()))
        self._append(_line(asdict(part)))
        self._take(part)

    def _take(self, part: Part) -> None:
        """Count a part that is in the manifest."""
        piece = self._known.setdefault(part.piece, _Piece(part.mark))
        piece.parts, piece.rows, piece.last = part.part + 1, piece.rows + part.rows, part.last
        self._totals += Totals(part.rows, part.counts)

    def _append(self, line: bytes) -> None:
        with (self.folder / MANIFEST).open("r+b") as file:
            file.truncate(self._size)  # without half a line of a killed run, or totals that are none any more
            file.seek(self._size)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._size += len(line)

    def _lines(self) -> Iterator[bytes]:
        """The lines of parts in the manifest, in the order of the source."""
        with (self.folder / MANIFEST).open("rb") as file:
            places, at = [], len(file.readline())
            while at < self._size:
                line = file.readline()
                found = json.loads(line)
                places.append((found["piece"], found["part"], at))
                at += len(line)
            for _, _, at in sorted(places):
                file.seek(at)
                yield file.readline()

    def _read(self) -> None:
        """Take over what an earlier run left: parts that are as they were written."""
        path = self.folder / MANIFEST
        begun = list(islice(_manifest(path), 2)) if path.exists() else []
        if path.exists() and not begun:
            raise _unreadable(path, "it is empty")
        about = dict(begun[0][0]) if begun else {}
        found = about.pop(FOUND, None)
        if len(begun) >= 2 and about.get("schema") != SCHEMA:
            raise _of_another_version(self.folder)
        if len(begun) >= 2 and about != self.about:
            other = ", ".join(sorted(key for key in about.keys() | self.about if about.get(key) != self.about.get(key)))
            message = f"{self.folder} holds the output of another run: {other} differ"
            raise InputError(message, hint="choose another folder")
        self.found = found if len(begun) >= 2 else self._find()
        if self.found is not None:
            self.about[FOUND] = self.found
        if len(begun) < 2:  # no part yet, so it is this run from now on
            write_synced(self.folder / MANIFEST, [_line(self.about)])
        self._size, dropped = len(_line(self.about)), False
        for values, line in islice(_manifest(path), 1, None):
            if "complete" in values:
                continue
            if self._is_whole(part := _part(path, values)):
                self._take(part)
                self._size += len(line)
            else:
                dropped = True
        if dropped:
            lines = islice(_manifest(path), 1, None)
            kept = (line for values, line in lines if self._has(values.get("piece"), values.get("part")))
            write_synced(self.folder / MANIFEST, chain([_line(self.about)], kept))
        self._sweep()

    def _has(self, piece: int | None, part: int | None) -> bool:
        return piece in self._known and part is not None and part < self._known[piece].parts

    def _sweep(self) -> None:
        """Remove what killed runs left: no other is writing now, and a part that is not in the manifest is none."""
        sweep(self.folder)
        for file in self.folder.iterdir():
            found = _FILE.fullmatch(file.name)
            if found and not self._has(int(found[1]), int(found[2])):
                file.unlink()

    def _is_whole(self, part: Part) -> bool:
        """Whether a part of the manifest, and all before it in its piece, are as they were written."""
        file, known = self._file(part.piece, part.part), self._known.get(part.piece)
        if part.part != (known.parts if known else 0):
            return False
        with suppress(FileNotFoundError):
            if not part.rows or sha256_file(file) == part.sha256:
                return True
        self.redone.append(file.name)
        return False


def left_over(pieces: Iterable[Piece | Stored], progress: Begun) -> Iterator[Job]:
    """What is left to do of the pieces of a source; one that was begun and has changed is an error."""
    for number, piece in enumerate(pieces):
        version, (before, done) = piece.version(), progress.get(number, (None, 0))
        if before not in (None, version):
            raise _changed(f"changed, or in the place of another: {piece.name}")
        if done is not None:
            yield Job(number, piece, done, version)


def _of_another_version(folder: Path) -> InputError:
    message = f"{folder} was begun by another version of outword, whose rows have other columns"
    return InputError(message, hint="choose another folder, or finish that one with the version that began it")


def _changed(how: str) -> InputError:
    message = f"the source is not what it was when the run began: {how}"
    return InputError(message, hint="score it into another folder")


def _whole(piece: _Piece) -> list[Prediction] | None:
    """The rows of the next part, taken out, if all of them are there."""
    # Chunks come in any order, from any number of scorers. No chunk crosses the end of a part, since that is where
    # they are cut, so a part is whole once chunks follow one another from where the last part ended to its own end.
    first = place = piece.rows
    stop = first + PART if piece.end is None else min(first + PART, piece.end)
    while place < stop and place in piece.chunks:
        place += len(piece.chunks[place])
    if place < stop:
        return None
    # A piece without photos is one empty chunk, at `first`, which is `stop` as well.
    places = sorted(at for at in piece.chunks if first <= at < max(stop, first + 1))
    return [row for at in places for row in piece.chunks.pop(at)]


def _line(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values).encode() + b"\n"


def _manifest(path: Path) -> Iterator[tuple[dict[str, Any], bytes]]:
    """The lines of a manifest with what they say; a last one that was cut off by a kill does not count."""
    with path.open("rb") as file:
        for number, line in enumerate(file):
            if line.endswith(b"\n"):
                try:
                    values = parse_json(line)
                    if not isinstance(values, dict) or ("schema" in values) != (number == 0):
                        raise ValueError(f"line {number + 1}")
                except ValueError as error:
                    raise _unreadable(path, error) from error
                yield values, line


def _part(path: Path, values: Mapping[str, Any]) -> Part:
    try:
        part = read_record(Part, values, "a line")
        sizes = part.piece, part.part, part.rows, *part.counts.values()
        if not all(0 <= size < MOST for size in sizes) or sum(part.counts.values()) != part.rows:
            raise ValueError(f"the line of part {part.part} of piece {part.piece}")
    except ValueError as error:
        raise _unreadable(path, error) from error
    return part


def _unreadable(path: Path, error: object) -> ArtifactError:
    return ArtifactError(f"{path} cannot be read: {error}", hint="choose another folder")


def check_place(folder: Path) -> None:
    """Raise unless a folder can be there: it is one, or can be made."""
    if not folder.absolute().parent.is_dir():
        raise InputError(f"{folder.absolute().parent} is not a folder", hint="make it first")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is there and is no folder", hint="choose another name")
