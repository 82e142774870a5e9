"""Runs a suite: every set is encoded once, every method is fitted once a seed, and what is done is not done again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from outword.benchmark.catalogue import Found, find_set, folder_ood
from outword.benchmark.measure import Measured, Place, Setting, make_rows, row_keys, score_sets, settle
from outword.benchmark.photos import Photos, encoded
from outword.benchmark.results import Outcome, Results, Row, Skipped
from outword.benchmark.suite import FOLDER, SWEPT, Entry, Suite
from outword.benchmark.task import Task, make_task
from outword.benchmark.worst import worst_images
from outword.detectors import Need
from outword.encoders import Encoder
from outword.encoders.base import Vectors
from outword.errors import InputError, OutwordError
from outword.pipeline import make_detector, prepare
from outword.prompts import Prompts
from outword.wild import Report, quiet

SAMPLES = 1000  # of the bootstrap
Condition = tuple[str, str, str]


@dataclass(frozen=True)
class Cell:
    """One fitted method: a condition, the method as it takes part, the point of a sweep, and a seed."""

    condition: Condition
    entry: Entry
    point: str = ""
    n_labels: int | None = None
    seed: int = 0


class Runner:
    """One run of a suite.

    Args:
        suite: what to run.
        root: where the data sets are.
        results: the folder that the run leaves; it is locked by the caller.
        store: where vectors are kept.
        get_encoder: gives an encoder of the suite by its name.
        samples: of the bootstrap.
        report: called with (task, done, total).
    """

    def __init__(
        self,
        suite: Suite,
        root: Path,
        results: Results,
        *,
        store: Path,
        get_encoder: Callable[[str], Encoder],
        samples: int = SAMPLES,
        report: Report = quiet,
    ) -> None:
        self.suite = suite
        self.root = root
        self.results = results
        self.store = store
        self.get_encoder = get_encoder
        self.samples = samples
        self.report = report
        self.skipped: list[Skipped] = []
        self._done = results.read()
        self._rows: list[Row] = []
        self._remembered: dict[str, dict[Prompts, Vectors]] = {}  # label vectors, by list of labels
        words = root / "words.txt"
        self._words = words if words.exists() else None

    def run(self) -> Outcome:
        """Run what is not done yet; all rows, in the order of the suite, and what was left out."""
        own = FOLDER in self.suite.ood
        inside = self._present([find_set(self.root, name) for name in self.suite.id])
        outside = self._present(folder_ood(self.root) if own else [find_set(self.root, n) for n in self.suite.ood])
        for what, found in (("ID", inside), ("OOD", outside)):
            if not found:
                raise InputError(
                    f"none of the suite's {what} sets is in {self.root}",
                    hint=f"see what is there: outword data check {self.root} --suite {self.suite.name}",
                )
        for name in self.suite.encoders:
            try:
                encoder = self.get_encoder(name)
            except OutwordError as error:
                self._skip("encoder", name, str(error))
            else:
                self._run_encoder(name, encoder, inside, outside)
        if not self._rows:
            reasons = "; ".join(f"{skipped.what}: {skipped.reason}" for skipped in self.skipped)
            raise InputError(f"nothing could be run ({reasons})", hint="provide what is lacking")
        sets = [*inside, *outside] if own else [find_set(self.root, n) for n in (*self.suite.id, *self.suite.ood)]
        titles = {found.data_set.name: found.data_set.title for found in sets}
        ood = tuple(found.data_set.name for found in outside) if own else self.suite.ood
        return Outcome(replace(self.suite, ood=ood), self.results.folder, self._rows, self.skipped, titles)

    def _present(self, sets: Sequence[Found]) -> list[Found]:
        """The sets that are there; a line for each that is not, or not whole."""
        for found in sets:
            if found.status == "missing":
                self._skip("set", found.data_set.name, f"missing, skipped: {found.advice}")
            elif found.status == "incomplete":
                self._skip("set", found.data_set.name, f"incomplete: {found.advice}")
        return [found for found in sets if found.status != "missing"]

    def _skip(self, kind: str, what: str, reason: str, where: Condition | tuple[()] = ()) -> None:
        told = reason.replace(str(self.root), "ROOT")  # so that tables do not differ between machines
        skipped = Skipped(kind, what, told, where)
        if skipped not in self.skipped:
            self.skipped.append(skipped)

    def _run_encoder(self, name: str, encoder: Encoder, inside: Sequence[Found], outside: Sequence[Found]) -> None:
        ood = [self._encoded(encoder, found) for found in outside]
        for found in inside:
            photos, train = self._encoded(encoder, found), self._train(encoder)
            for corpus in self.suite.corpora or ("",):
                condition = (photos.name, name, corpus)
                wanted = [(cell, self._wants(encoder, cell.entry)) for cell in self._cells(condition)]
                split = train is None and any(Need.ID_IMAGES in wants for _, wants in wanted)
                for number, (cell, _) in enumerate(wanted):
                    place = ", ".join(part for part in (*condition, cell.entry.shown, cell.point) if part)
                    self.report(f"{place}, seed {cell.seed}", number, len(wanted))
                    self._run_cell(cell, encoder, photos, train, ood, split=split)

    def _encoded(self, encoder: Encoder, found: Found) -> Photos:
        def report(done: int) -> None:
            self.report(f"{encoder.name}: {found.data_set.title}", done, found.count)

        return encoded(encoder, found, self.store, report)

    def _train(self, encoder: Encoder) -> Photos | None:
        """The photos to fit on, if the suite names some and a method asks for them."""
        name = self.suite.train
        if name is None or not any(Need.ID_IMAGES in self._wants(encoder, entry) for entry in self.suite.methods):
            return None
        found = find_set(self.root, f"{FOLDER}-train" if name == FOLDER else name)
        if found.status == "missing":
            if name != FOLDER:
                self._skip("set", name, f"missing, so methods that need ID images are left out: {found.advice}")
            return None
        return self._encoded(encoder, found)

    def _wants(self, encoder: Encoder, entry: Entry) -> tuple[Need, ...]:
        """What a method needs; nothing where its parameters are wrong, which is said later."""
        try:
            return make_detector(entry.method, encoder.temperature, entry.params).wants()
        except OutwordError:
            return ()

    def _cells(self, condition: Condition) -> Iterator[Cell]:
        """Every method, point and seed of a condition, in the order of the tables."""
        points = [(sweep.parameter, value) for sweep in self.suite.sweep for value in sweep.values]
        for parameter, value in points or [("", 0)]:
            for entry in self.suite.methods:
                if entry.encoders and condition[1] not in entry.encoders:
                    continue
                for seed in range(self.suite.seeds):
                    yield _cell(condition, entry, parameter, value, seed)

    def _run_cell(
        self, cell: Cell, encoder: Encoder, photos: Photos, train: Photos | None, ood: Sequence[Photos], *, split: bool
    ) -> None:
        """Measure a method, unless its rows are there; one that lacks something is a line in the table."""
        try:
            task = make_task(photos, train, seed=cell.seed, n_labels=cell.n_labels, split=split)
            setting = settle(
                cell.entry,
                encoder,
                task,
                seed=cell.seed,
                corpus=cell.condition[2] or None,
                words=self._words,
                prompts=self.suite.prompts,
                keep_label_words=self.suite.keep_label_words,
            )
            chance = setting.chance or split or cell.n_labels is not None
            if chance or cell.seed == 0:
                self._measure(cell, setting, chance, task, encoder, photos, ood)
        except OutwordError as error:
            at = f", {cell.point}" if cell.point else ""
            self._skip("method", f"{cell.entry.shown}{at}", error.message, cell.condition)

    def _measure(
        self,
        cell: Cell,
        setting: Setting,
        chance: bool,
        task: Task,
        encoder: Encoder,
        photos: Photos,
        ood: Sequence[Photos],
    ) -> None:
        place = Place(*cell.condition, cell.entry.shown, cell.point)
        config = {
            **setting.config,
            "id": {"name": photos.name, "images": len(task.rows), "fingerprint": photos.fingerprint},
            "labels": {"count": len(task.labels), "fingerprint": task.labels_fingerprint},
            "seed": cell.seed,
            "samples": self.samples,
        }
        keys = row_keys(config, place, ood)
        if not all(key in self._done for key in keys.values()):
            remembered = self._remembered.setdefault(task.labels_fingerprint, {})
            prepared = prepare(task.labels, encoder=encoder, report=self.report, remembered=remembered, **setting.given)
            started = time.perf_counter()
            detector = prepared.fit()
            fitted = time.perf_counter()
            scores = score_sets(detector, encoder, photos, task.rows, ood, cell.seed)
            measured = Measured(scores, (fitted - started, time.perf_counter() - fitted), chance)
            rows, boot = make_rows(place, config, keys, measured, photos, ood)
            worst = worst_images(detector, scores, photos, task.rows, ood, self.root) if cell.seed == 0 else None
            self.results.keep(rows[0].cell, scores | {f"boot/{name}": kept for name, kept in boot.items()}, worst)
            self.results.append(rows)
            self._done |= {row.key: row for row in rows}
        self._rows += [self._done[key] for key in keys.values()]


def _cell(condition: Condition, entry: Entry, parameter: str, value: float, seed: int) -> Cell:
    """A cell at a point of a sweep: the method, its miner or the number of labels is changed."""
    if not parameter:
        return Cell(condition, entry, seed=seed)
    point, (where, name) = f"{parameter}={value:g}", SWEPT[parameter]
    if where == "labels":
        return Cell(condition, entry, point, int(value), seed)
    changed: Any = {where: {**getattr(entry, where), name: value}}
    return Cell(condition, replace(entry, **changed), point, None, seed)
