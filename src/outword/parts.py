"""Output in parts: a folder of files that are written whole, and a manifest by which a run that was killed goes on.

scores/
  part-000000-0000.parquet     rows of piece 0 of the source, from its first on; or .csv, .jsonl
  part-000000-0001.parquet     the next `PART` rows of it
  part-000001-0000.parquet
  manifest.jsonl               what the run is; a line for each part once it is on the disk; the totals once all are

A part is in the manifest or it does not count. The parts of a piece are written in order, so what is done of it is
always its beginning. When a run is complete, its files and its manifest do not tell which engine it ran on, how often
it was killed, or in which order its parts came.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from outword.errors import ArtifactError, InputError
from outword.files import sha256_bytes, sha256_file
from outword.rows import Checksum, Row, read_rows, writing
from outword.shards import pyarrow, write_synced
from outword.sources.base import PART, Piece
from outword.stream import End, Job, Scored

SCHEMA = 1
Progress = Mapping[int, "tuple[str, int | None]"]  # by piece: its mark, and how many photos are done, None for all
MANIFEST = "manifest.jsonl"
_TEMPORARY = re.compile(r"\.(part-.*|manifest\.jsonl)\.[0-9a-f]{16}")


@dataclass(frozen=True)
class Part:
    """A line of the manifest.

    Attributes:
        piece, part: number of the piece in the source, and of the part in the piece.
        name, mark: of the piece; the mark changes where the piece does.
        last: whether the piece ends here.
        rows: how many; a piece without photos has a part without a file.
        counts: rows by verdict, with "error" for what could not be read.
        sha256: of the file, "" where there is none.
        checksum: of the rows (see `outword.rows.Checksum`).
    """

    piece: int
    part: int
    name: str
    mark: str
    last: bool
    rows: int
    counts: dict[str, int]
    sha256: str
    checksum: str


@dataclass
class _Growing:
    """What has come of a piece and is not written yet: rows by place, and where the piece ends, once that is known."""

    name: str
    mark: str
    written: int  # parts
    chunks: dict[int, list[Row]] = field(default_factory=dict)
    end: int | None = None


class Parts:
    """A folder of parts, to be written by one process at a time; `with Parts(...) as parts`.

    Args:
        folder: made if need be; one that holds something else is refused.
        kind: of the files, one of `outword.rows.FORMATS`.
        about: what the run is; a folder of another run is refused.
    """

    def __init__(self, folder: Path, kind: str, about: Mapping[str, Any]) -> None:
        if kind == "parquet":
            pyarrow()  # without it, say so before any work
        self.folder = folder
        self.kind = kind
        self.about = {"schema": SCHEMA, "format": kind, "part_rows": PART, **about}
        self.redone: list[str] = []  # parts that were lost or damaged since they were written
        self._done: dict[int, list[Part]] = {}  # by piece, in order
        self._growing: dict[int, _Growing] = {}
        self._pieces = 0  # of the source, when its end has come
        self._lock: int | None = None

    def __enter__(self) -> Parts:
        _check_folder(self.folder)
        self.folder.mkdir(exist_ok=True)
        self._lock = locked(self.folder)
        try:
            self._read()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def progress(self) -> Progress:
        """Of each piece that was begun its mark, and how many of its photos are done; None when it is finished."""
        return {
            number: (done[-1].mark, None if done[-1].last else sum(part.rows for part in done))
            for number, done in self._done.items()
        }

    def add(self, scored: Scored) -> None:
        """Take the rows of a chunk, in any order; parts that are whole are written."""
        if not scored.name:  # of `End`
            self._pieces = scored.number
            return
        begun = _Growing(scored.name, scored.mark, len(self._done.get(scored.number, [])))
        growing = self._growing.setdefault(scored.number, begun)
        growing.chunks[scored.first] = scored.rows
        if scored.end:
            growing.end = scored.first + len(scored.rows)
        while (rows := _whole(growing)) is not None:
            last = growing.end is not None and growing.end <= (growing.written + 1) * PART
            self._write(scored.number, growing, rows, last)
            if last:
                del self._growing[scored.number]
                return

    def finish(self) -> None:
        """Write the manifest anew, in order and with the totals, when all chunks of the source have come."""
        if gone := sorted(number for number in self._done if number >= self._pieces):
            raise _changed(self._done[gone[0]][0].name, "is not in the source any more")
        totals = {"complete": True, "pieces": self._pieces, **self.totals()}
        self._rewrite([self.about, *map(asdict, self.parts()), totals])

    def parts(self) -> list[Part]:
        """The parts that are written, in the order of the source."""
        return [part for number in sorted(self._done) for part in self._done[number]]

    def totals(self) -> dict[str, Any]:
        """Rows, rows by verdict and the checksum of all that is written."""
        checksum, counts = Checksum(), Counter[str]()
        for part in self.parts():
            checksum.add_sum(part.checksum)
            counts.update(part.counts)
        return {"rows": counts.total(), "counts": dict(sorted(counts.items())), "checksum": checksum.hex}

    def rows(self) -> Iterator[Row]:
        """All rows that are written, in the order of the source."""
        for part in self.parts():
            if part.rows:
                yield from read_rows(self._file(part.piece, part.part), self.kind)

    def _file(self, piece: int, part: int) -> Path:
        return self.folder / f"part-{piece:06}-{part:04}.{self.kind}"

    def _write(self, number: int, growing: _Growing, rows: list[Row], last: bool) -> None:
        checksum, data = Checksum(), io.BytesIO()
        with writing(data, self.kind) as write:
            for row in rows:
                write(row)
                checksum.add(row)
        if rows:
            write_synced(self._file(number, growing.written), data.getvalue())
        part = Part(
            number,
            growing.written,
            growing.name,
            growing.mark,
            last,
            len(rows),
            dict(sorted(Counter(row.verdict or "error" for row in rows).items())),
            sha256_bytes(data.getvalue()) if rows else "",
            checksum.hex,
        )
        self._append(asdict(part))
        self._done.setdefault(number, []).append(part)
        growing.written += 1

    def _append(self, line: Mapping[str, Any]) -> None:
        with (self.folder / MANIFEST).open("ab") as file:
            file.write(_line(line))
            file.flush()
            os.fsync(file.fileno())

    def _rewrite(self, lines: Iterable[Mapping[str, Any]]) -> None:
        write_synced(self.folder / MANIFEST, b"".join(map(_line, lines)))

    def _read(self) -> None:
        """Take over what an earlier run left: parts that are as they were written."""
        path = self.folder / MANIFEST
        for file in self.folder.glob(".*"):
            if _TEMPORARY.fullmatch(file.name):  # of a killed run: no other is writing now
                file.unlink()
        if not path.exists():
            self._rewrite([self.about])
            return
        about, parts = _parse(path)
        if about != self.about:
            other = ", ".join(sorted(key for key in about.keys() | self.about if about.get(key) != self.about.get(key)))
            raise InputError(
                f"{self.folder} holds the output of another run: {other} differ", hint="choose another folder"
            )
        for part in parts:
            done = self._done.setdefault(part.piece, [])
            if part.part != len(done):
                continue  # one before it was lost
            if part.rows and not self._is_whole(part):
                self.redone.append(self._file(part.piece, part.part).name)
                continue
            done.append(part)
        self._done = {number: done for number, done in self._done.items() if done}
        self._rewrite([self.about, *map(asdict, self.parts())])  # without totals, lost parts, or half a line

    def _is_whole(self, part: Part) -> bool:
        with suppress(FileNotFoundError):
            return sha256_file(self._file(part.piece, part.part)) == part.sha256
        return False


def left_over(pieces: Iterable[Piece], progress: Progress) -> Iterator[Job]:
    """What is left to do of the pieces of a source, and its `End`; one that was begun and has changed is an error."""
    number = -1
    for number, piece in enumerate(pieces):
        mark, (before, done) = piece.mark(), progress.get(number, (None, 0))
        if before not in (None, mark):
            raise _changed(piece.name, "has changed, or another one is in its place")
        if done is not None:
            yield Job(number, piece, done, mark)
    yield Job(number + 1, End())


def _changed(name: str, how: str) -> InputError:
    return InputError(
        f"the source is not what it was when the run began: {name} {how}", hint="score it into another folder"
    )


def _whole(growing: _Growing) -> list[Row] | None:
    """The rows of the next part, taken out, if all of them are there."""
    first = place = growing.written * PART
    stop = first + PART if growing.end is None else min(first + PART, growing.end)
    while place < stop and place in growing.chunks:
        place += len(growing.chunks[place])
    if place < stop:
        return None
    places = sorted(at for at in growing.chunks if first <= at < max(stop, first + 1))
    return [row for at in places for row in growing.chunks.pop(at)]


def _line(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values).encode() + b"\n"


def _parse(path: Path) -> tuple[dict[str, Any], list[Part]]:
    """What a manifest says; a last line that was cut off by a kill does not count."""
    lines = path.read_bytes().split(b"\n")[:-1]
    try:
        about, *rest = map(json.loads, lines)
        return dict(about), [Part(**found) for found in rest if "complete" not in found]
    except (ValueError, TypeError) as error:
        raise ArtifactError(
            f"{path} cannot be read: {error}", hint="choose another folder, or remove this one"
        ) from error


def _check_folder(folder: Path) -> None:
    if not folder.absolute().parent.is_dir():
        raise InputError(f"{folder.absolute().parent} is not a folder", hint="make it first")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is there and is no folder", hint="choose another name")
    if folder.is_dir() and not (folder / MANIFEST).is_file():
        others = [entry.name for entry in folder.iterdir() if not entry.name.startswith(f".{MANIFEST}")]
        if others:
            raise InputError(
                f"{folder} holds other files ({min(others)}), and no {MANIFEST}", hint="choose another folder"
            )


def locked(folder: Path) -> int | None:
    """Keep other processes from writing to the folder until what is given is closed; where the system can do that."""
    try:
        import fcntl
    except ImportError:
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        if isinstance(error, BlockingIOError):
            raise InputError(
                f"another run is writing to {folder}", hint="wait for it, or choose another folder"
            ) from None
        return None  # a file system without locks
    return handle
