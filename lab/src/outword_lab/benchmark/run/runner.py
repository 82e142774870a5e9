"""Runs a suite: every set is encoded once, every method is fitted once a seed, and what is done is not done again."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from outword.base.reports import Report
from outword.detector.fitting import LabelCache
from outword.detector.inputs import missing_inputs, not_handed
from outword.detector.recipe import CORPUS, make_detector
from outword.encoders import Encoder
from outword.errors import InputError, OutwordError
from outword.maths.methods import Need
from outword.maths.mining import MINERS
from outword.words.corpora import get_corpus
from outword_lab.benchmark.run.catalogue import TRAIN, Found, find_set, folder_ood
from outword_lab.benchmark.run.measure import Cell
from outword_lab.benchmark.run.photos import SetPhotos, below, encoded
from outword_lab.benchmark.run.results import Condition, Outcome, Place, Results, Row, Skipped
from outword_lab.benchmark.run.suite import FOLDER, SWEPT, Entry, Suite
from outword_lab.benchmark.run.task import Task, half, make_task

UNREAD = 10  # photos of a set that are named


@dataclass(frozen=True)
class Plan:
    """A method to be measured: a condition, how the method takes part, the point of a sweep, and a seed."""

    condition: Condition
    entry: Entry
    point: str = ""
    n_labels: int | None = None
    seed: int = 0


@dataclass
class Runner:
    """One run of a suite on the sets in `root`; the caller has locked the folder of the results."""

    suite: Suite
    root: Path | None  # None where no set lies in a folder
    results: Results
    store: Path  # where vectors are kept
    encoders: Callable[[str], Encoder]  # by the names that the suite has for them
    samples: int  # of the bootstrap
    only: Collection[str] | None  # the methods to run, by the names of their rows; None stands for all
    report: Report
    skipped: list[Skipped] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._titles: dict[str, str] = {}
        self._unread: dict[str, list[tuple[str, str]]] = {}
        self._done = self.results.read()
        self._rows: list[Row] = []
        self._label_caches: dict[str, LabelCache] = {}  # by list of labels
        words = self.root and self.root / "words.txt"
        self._words = words if words and words.exists() else None

    def run(self) -> Outcome:
        """Run what is not done yet; all rows, in the order of the suite, and what was left out."""
        inside = [find_set(self.root, name) for name in self.suite.id]
        outside = [found for name in self.suite.ood for found in self._outside(name)]
        names = [found.data_set.name for found in outside]
        if twice := [name for name in names if names.count(name) > 1]:
            raise InputError(
                f"OOD sets must have different names, got two called {twice[0]}", hint="rename your folder"
            )
        present = [self._present(sets) for sets in (inside, outside)]
        for what, there, sets in zip(("ID", "OOD"), present, (inside, outside), strict=True):
            if not there:
                raise InputError(
                    f"none of the suite's {what} sets is in {self.root}. {sets[0].data_set.title}: {sets[0].advice}",
                    hint=f"see what is there: outword data check {self.root} --suite {self.suite.name}",
                )
        for name in self.suite.encoders:
            try:
                encoder = self.encoders(name)
            except OutwordError as error:
                if len(self.suite.encoders) == 1:
                    raise
                self._skip("encoder", name, str(error))
            else:
                self._run_encoder(name, encoder, *present)
        if not self._rows:
            why = [left for left in self.skipped if left.kind != "set" or left.reason.startswith("skipped")]
            reasons = "; ".join(f"{left.what}: {left.reason}" for left in why)
            raise InputError(f"nothing could be run ({reasons})", hint="provide what is lacking")
        suite = replace(self.suite, ood=tuple(names), methods=tuple(self._asked()))
        return Outcome(suite, self.results.folder, self._rows, self.skipped, self._titles, self._unread)

    def _asked(self) -> list[Entry]:
        """The methods that are to be run."""
        return [entry for entry in self.suite.methods if self.only is None or entry.shown in self.only]

    def _outside(self, name: str) -> list[Found]:
        """The OOD sets that a name stands for."""
        if name != FOLDER:
            return [find_set(self.root, name)]
        top = self.root or Path()  # that there is one was seen with the ID set
        found = folder_ood(top)
        used = {place for one in found for place in one.data_set.folders}
        if loose := [path for path in (top / "ood").glob("[!.]*") if str(path) not in used]:
            more = f" and {len(loose) - 1:,} more" if len(loose) > 1 else ""
            self._skip("set", "ood", f"left out, a set is a folder, an archive or a list: {min(loose).name}{more}")
        return found

    def _present(self, sets: Sequence[Found]) -> list[Found]:
        """The sets that are there; a line for each that is not, or not just as it should be."""
        for found in sets:
            self._titles[found.data_set.name] = found.data_set.title
            if found.status == "missing":
                self._skip("set", found.data_set.name, f"missing, skipped: {found.advice}")
            elif found.advice:
                self._skip("set", found.data_set.name, f"{found.status}: {found.advice}")
        return [found for found in sets if found.status != "missing"]

    def _skip(self, kind: str, what: str, reason: str, where: Condition | tuple[()] = ()) -> None:
        told = reason.replace(f"{self.root}{os.sep}", "ROOT/")  # so that tables do not differ between machines
        skipped = Skipped(kind, what, told, where)
        if skipped not in self.skipped:
            self.skipped.append(skipped)

    def _run_encoder(self, name: str, encoder: Encoder, inside: Sequence[Found], outside: Sequence[Found]) -> None:
        ood = [photos for found in outside if (photos := self._encoded(encoder, found))]
        taking = [entry for entry in self._asked() if name in (entry.encoders or self.suite.encoders)]
        for entry in self._asked():
            if entry.shown not in [one.shown for one in taking]:
                self._skip("method", entry.shown, f"it is for {', '.join(entry.encoders)}")
        # All methods of the suite decide, whichever are asked for: that must not change what is scored.
        fitted = _any_fitted(encoder, self.suite.methods)
        there = self._train() if fitted else None
        train = self._encoded_train(encoder, there) if there and _any_fitted(encoder, taking) else None
        self._label_caches.clear()
        for found in inside:
            photos = self._encoded(encoder, found)
            if photos is None or not ood:
                continue
            split = fitted and there is None and self.suite.train == FOLDER and self._halves(photos)
            self._look(photos, train, ood)
            tasks = cache(partial(make_task, photos, train, split=split))  # one for all methods of a seed
            for corpus in self.suite.corpora or ("",):
                plans = list(self._plans((photos.name, name, corpus), taking))
                for number, plan in enumerate(plans):
                    place = ", ".join(part for part in (*plan.condition, plan.entry.shown, plan.point) if part)
                    self.report(f"{place}, seed {plan.seed}", number, len(plans))
                    self._run_plan(plan, encoder, photos, ood, tasks, split)

    def _halves(self, photos: SetPhotos) -> bool:
        """Whether there are photos to draw for fitting, that is, most classes have two or more; says how many."""
        known = photos.shown[photos.shown >= 0] if (photos.shown >= 0).any() else photos.shown
        _, counts = np.unique(known, return_counts=True)
        if np.mean(counts > 1) <= 0.5:
            return False
        drawn = len(half(photos.shown, np.arange(len(photos.paths)), 0))
        told = f"each seed draws {drawn:,} of {len(photos.paths):,} photos to fit on; the others are scored"
        self._skip("set", photos.name, told)
        return True

    def _look(self, photos: SetPhotos, train: SetPhotos | None, ood: Sequence[SetPhotos]) -> None:
        """Say what is odd about the ID photos: some without a class, classes without photos, photos that come twice."""
        known, n = photos.shown >= 0, len(photos.paths)
        if known.any() and not known.all():
            told = f"{(~known).sum():,} of {n:,} photos show no label by their folder, and are scored all the same"
            self._skip("set", photos.name, told)
        if known.any() and (bare := sorted({*range(len(photos.labels))} - {*photos.shown.tolist()})):
            more = f" and {len(bare) - 1:,} more labels" if len(bare) > 1 else ""
            self._skip("set", photos.name, f"no photo shows {list(photos.labels)[bare[0]]}{more}")
        for other in [*ood, *([train] if train else [])]:
            if twice := len({*photos.digests} & {*other.digests}):
                where = "the photos to fit on" if other is train else f"those of {other.name}"
                self._skip("set", photos.name, f"{twice:,} photos are among {where}, too")

    def _encoded(self, encoder: Encoder, found: Found) -> SetPhotos | None:
        """The photos of a set; None, and a line, where none can be read."""
        name = f"{encoder.name}: {found.data_set.title}"
        try:
            photos = encoded(encoder, found, self.store, lambda done: self.report(name, done, found.count))
        except InputError as error:
            self._skip("set", found.data_set.name, f"skipped: {error.message}")
            return None
        if bad := [(below(path, self.root), reason) for path, reason in photos.unreadable[:UNREAD]]:
            self._unread[photos.name] = bad
        return photos

    def _train(self) -> Found | None:
        """Where the photos to fit on lie, if there are any."""
        name = self.suite.train
        if name is None:
            return None
        found = find_set(self.root, TRAIN if name == FOLDER else name)
        self._titles[found.data_set.name] = found.data_set.title
        if found.status != "missing":
            return self._present([found])[0]
        if name != FOLDER:
            self._skip("set", name, f"missing, so that there are no photos to fit on: {found.advice}")
        elif self.root and (self.root / "train").exists():
            self._skip("set", found.data_set.name, f"missing: {found.advice}")
        return None

    def _encoded_train(self, encoder: Encoder, found: Found) -> SetPhotos | None:
        photos = self._encoded(encoder, found)
        if photos and photos.unreadable:
            self._skip("set", photos.name, f"{len(photos.unreadable):,} images could not be read")
        if photos and (photos.shown < 0).any():
            self._skip("set", photos.name, f"{(photos.shown < 0).sum():,} photos show no label by their folder")
        return photos

    def _plans(self, condition: Condition, taking: Sequence[Entry]) -> Iterator[Plan]:
        """Every method, point and seed of a condition, in the order of the tables."""
        points = [(sweep.parameter, value) for sweep in self.suite.sweep for value in sweep.values]
        for parameter, value in points or [("", 0)]:
            for entry in taking:
                for seed in range(self.suite.seeds):
                    yield _plan(condition, entry, parameter, value, seed)

    def _run_plan(
        self,
        plan: Plan,
        encoder: Encoder,
        photos: SetPhotos,
        ood: list[SetPhotos],
        tasks: Callable[..., Task],
        split: bool,
    ) -> None:
        """Measure a method, unless its rows are there; one that lacks something is a line in the table."""
        drawn = split or plan.n_labels is not None
        try:
            recipe = plan.entry.recipe(
                encoder,
                seed=plan.seed,
                corpus=plan.condition[2] or None,
                words=self._words,
                prompts=self.suite.prompts,
                keep_label_words=self._keeps(plan.entry),
            )
            place = Place(*plan.condition, plan.entry.shown, plan.point)
            task = tasks(seed=plan.seed if drawn else 0, n_labels=plan.n_labels)
            cell = Cell(place, recipe, task, photos, ood, plan.seed, drawn, self.samples)
            if missing := missing_inputs(recipe, cell.id_images):
                raise missing
            if lack := not_handed(recipe.method, recipe.wants):
                raise lack
            if cell.chance or plan.seed == 0:  # one seed stands for all where nothing is drawn
                self._measure(cell)
        except OutwordError as error:
            at = f", {plan.point}" if plan.point else ""
            reason = error.message.partition(": pass --")[0]  # options of other verbs: see the help of this one
            self._skip("method", f"{plan.entry.shown}{at}", reason, plan.condition)

    def _keeps(self, entry: Entry) -> bool:
        """Whether words about labels are kept for a method."""
        return self.suite.keep_label_words if entry.keep_label_words is None else entry.keep_label_words

    def _measure(self, cell: Cell) -> None:
        if not all(key in self._done and self.results.has(self._done[key].cell) for key in cell.keys.values()):
            measured = cell.measure(self._label_caches.setdefault(cell.task.fingerprint, {}), self.report)
            rows, boot = cell.rows(measured)
            worst = cell.worst(measured, self.root) if cell.seed == 0 else None
            arrays = measured.scores | {f"boot/{name}": kept for name, kept in boot.items()}
            self.results.keep(cell.name, arrays, worst)
            self.results.append(rows)
            self._done |= {row.key: row for row in rows}
        for one in cell.outside:  # what could not be read may have changed, though no figure has
            row = self._done[cell.keys[one.name]]
            self._rows.append(replace(row, unread_id=len(cell.inside.unreadable), unread_ood=len(one.unreadable)))


def _any_fitted(encoder: Encoder, entries: Sequence[Entry]) -> bool:
    """Whether a method needs ID images; one whose parameters are wrong, which is said later, does not."""
    for entry in entries:
        with suppress(OutwordError):
            if Need.ID_IMAGES in make_detector(entry.method, encoder.temperature, entry.params).wants():
                return True
    return False


def _plan(condition: Condition, entry: Entry, parameter: str, value: float, seed: int) -> Plan:
    """A plan at a point of a sweep: the method, its miner or the number of labels is changed."""
    if not parameter:
        return Plan(condition, entry, seed=seed)
    point, (where, name) = f"{parameter}={value:g}", SWEPT[parameter]
    if where == "labels":
        return Plan(condition, entry, point, int(value), seed)
    if parameter == "L" and entry.miner and hasattr(MINERS.get(entry.miner), "share"):
        corpus = condition[2] or entry.corpus or CORPUS
        name, value = "share", min(1.0, value / len(get_corpus(corpus)))  # such a rule counts in shares
    changed: Any = {where: {**getattr(entry, where), name: value}}
    return Plan(condition, replace(entry, **changed), point, None, seed)
