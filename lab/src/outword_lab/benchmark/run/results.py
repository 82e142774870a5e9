"""What a run leaves, to go on from or to report: rows in JSON lines, scores behind them, what software made them."""

from __future__ import annotations

import errno
import json
import os
import platform
import subprocess
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from outword._version import __version__
from outword.base.files import parse_json, whole_file
from outword.base.locks import lock_output, release
from outword.base.records import read_record
from outword.errors import InputError
from outword.maths.numerics import Array
from outword_lab.benchmark.run.suite import Suite

ROWS = "rows.jsonl"
CARD = "suite.txt"  # says which suite a folder holds results of; those of its parts are in folders below
PACKAGES = ("numpy", "pillow", "onnxruntime", "safetensors", "torch", "open_clip_torch", "transformers", "scipy")
Condition = tuple[str, str, str]  # ID set, encoder, corpus


@dataclass(frozen=True)
class Place:
    """Where a row belongs: its condition, its method and the point of a sweep."""

    id: str
    encoder: str
    corpus: str  # "" where each method has its own words
    entry: str  # what the method is called
    point: str = ""  # such as "tau=0.4"

    @property
    def condition(self) -> Condition:
        """ID set, encoder and corpus."""
        return self.id, self.encoder, self.corpus


@dataclass(frozen=True, kw_only=True)
class Row(Place):
    """The figures of one method on one OOD set, with all that they hang on; figures are those of `outword.metrics`."""

    key: str  # sha256 of the configuration: a run that is resumed looks for it
    cell: str  # names the file with the scores, which all OOD sets of a fitted method share
    seed: int  # of everything that is drawn by chance
    chance: bool  # whether anything is; if not, one seed stands for all
    ood: str
    n_id: int  # images that were scored
    n_ood: int
    unread_id: int  # images that could not be read
    unread_ood: int
    auroc: float
    aupr_id: float  # with ID as the positives
    aupr_ood: float
    fpr95_id: float
    fpr95_ood: float
    auroc_ci: tuple[float, float]  # 95 % interval over images, by bootstrap; NaN without one
    fpr95_ci: tuple[float, float]  # with ID as the positives
    fit_seconds: float  # of the method itself on vectors
    score_seconds: float  # of ID and OOD together
    config: Mapping[str, Any]  # the exact configuration, with fingerprints
    versions: Mapping[str, str]
    commit: str


@dataclass(frozen=True)
class Skipped:
    """What was left out of a run, and why, in one line."""

    kind: str  # "set", "encoder" or "method"
    what: str
    reason: str
    where: tuple[str, ...] = ()  # the condition in which a method was left out; () for what concerns all


@dataclass(frozen=True)
class Worst:
    """An image that a method gets wrong: an OOD image that looks ID (`set` is its set), or the other way round."""

    path: str
    set: str
    inside: bool
    score: float
    label: str
    words: Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Outcome:
    """A run as tables, plots and the report see it: rows in the order of the suite, and what was left out."""

    suite: Suite
    folder: Path
    rows: Sequence[Row]
    skipped: Sequence[Skipped] = ()
    titles: Mapping[str, str] = field(default_factory=dict)  # of the sets, by name
    unread: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)  # path and reason, by set

    def title(self, name: str) -> str:
        """The title of a set, or its name where it has none."""
        return self.titles.get(name, name)

    def conditions(self) -> list[Condition]:
        """(id, encoder, corpus), in the order of the suite."""
        return list(dict.fromkeys(row.condition for row in self.rows))

    def select(self, condition: Condition | None = None, **wanted: Any) -> list[Row]:
        """The rows of a condition with these values, such as entry="mcm"."""
        return [
            row
            for row in self.rows
            if condition in (None, row.condition) and all(getattr(row, name) == value for name, value in wanted.items())
        ]

    def scores(self, row: Row) -> tuple[Array, Array]:
        """ID scores and OOD scores behind a row."""
        with np.load(self.folder / "scores" / f"{row.cell}.npz", allow_pickle=False) as kept:
            own = f"id/{row.ood}" if f"id/{row.ood}" in kept else "id"  # a method that sees the order has several
            return kept[own], kept[f"ood/{row.ood}"]

    def replicates(self, row: Row) -> Array:
        """AUROC and FPR95 of each bootstrap sample, (n_samples, 2); samples are the same for all methods."""
        with np.load(self.folder / "scores" / f"{row.cell}.npz", allow_pickle=False) as kept:
            return np.asarray(kept[f"boot/{row.ood}"])

    def worst(self, row: Row) -> list[Worst]:
        """The images that the method of a row gets most wrong; of seed 0, over all OOD sets."""
        path = self.folder / "scores" / f"{row.cell}.json"
        try:
            return [Worst(**found) for found in parse_json(path.read_bytes())] if path.exists() else []
        except (ValueError, TypeError) as error:
            raise InputError(f"{path} cannot be read: {error}", hint="remove it, and run the suite again") from None


@dataclass(frozen=True)
class Results:
    """The folder of a run."""

    folder: Path

    @contextmanager
    def locked(self, suite: str) -> Iterator[None]:
        """Hold the folder for a run of a suite; a second run at the same time, or of another suite, is refused."""
        self.folder.mkdir(parents=True, exist_ok=True)
        handle = lock_output(self.folder)
        try:
            self._claim(suite)
            yield
        finally:
            release(handle)

    def _claim(self, suite: str) -> None:
        """See that the folder is empty, or holds an earlier run of this suite."""
        card = self.folder / CARD
        other = card.read_text(encoding="utf-8").strip() if card.exists() else ""
        left = (path for name in (ROWS, "curves.jsonl", f"*/{CARD}") for path in self.folder.glob(name))
        if other and other != suite and any(left):
            raise InputError(
                f"{self.folder} holds results of the suite {other}, not of {suite}",
                hint=f"give another folder with -o; --store {self.folder / 'store'} shares the embeddings",
            )
        if not other and any(path.name[0] != "." for path in self.folder.iterdir()):
            raise InputError(f"{self.folder} is not empty and holds no results", hint="give another folder with -o")
        with whole_file(card) as temporary:
            temporary.write_text(f"{suite}\n", encoding="utf-8")

    def read(self) -> dict[str, Row]:
        """The rows by key, the newest where a key was written twice; half a line of a killed run is cut off."""
        path = self.folder / ROWS
        if not path.exists():
            return {}
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(path, whole)
        rows = [self._row(number, line) for number, line in enumerate(data[:whole].splitlines(), 1)]
        return {row.key: row for row in rows}

    def _row(self, number: int, line: bytes) -> Row:
        try:
            table = parse_json(line)
            return read_record(Row, {f.name: table[f.name] for f in fields(Row)}, "it")
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"line {number} of {self.folder / ROWS} is no row of this version: {error!r}",
                hint="remove the line, or give another folder with -o",
            ) from None

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows in one write, and see that they are on disk."""
        text = "".join(json.dumps(asdict(row), sort_keys=True) + "\n" for row in rows)
        handle = os.open(self.folder / ROWS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        with os.fdopen(handle, "ab", buffering=0) as file:
            written = file.write(text.encode())
            os.fsync(handle)
        if written != len(text.encode()):
            raise OSError(errno.ENOSPC, "a row could not be written whole", str(self.folder / ROWS))

    def has(self, cell: str) -> bool:
        """Whether the scores of a cell are there, and whole."""
        try:
            with (self.folder / "scores" / f"{cell}.npz").open("rb") as file, zipfile.ZipFile(file):
                return True
        except (OSError, zipfile.BadZipFile):
            return False

    def keep(self, cell: str, arrays: Mapping[str, Array], worst: Sequence[Worst] | None) -> None:
        """Write the scores of a cell, and its worst images, each whole or not at all."""
        folder = self.folder / "scores"
        folder.mkdir(exist_ok=True)
        if worst is not None:
            with whole_file(folder / f"{cell}.json") as temporary:
                temporary.write_text(json.dumps([asdict(found) for found in worst]), encoding="utf-8")
        with whole_file(folder / f"{cell}.npz") as temporary, temporary.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]


@cache
def versions() -> dict[str, str]:
    """Versions of what figures may hang on."""
    found = {"outword": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


@cache
def commit() -> str:
    """The commit of outword's sources, with "+" where files differ from it; "" where they are not under git."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", str(here.parent)) else "")
    except (OSError, subprocess.SubprocessError):
        return ""
