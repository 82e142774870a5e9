"""Runs: a source to rows in a file, or in a folder of parts, where a second run goes on; here or on a cluster."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from glob import has_magic
from itertools import chain
from pathlib import Path
from typing import IO, Any

from outword.base.checks import unknown
from outword.base.files import PathLike, check_outputs, whole_file
from outword.base.prediction import Prediction
from outword.base.reports import Report, Say, quiet
from outword.base.wording import be, counted
from outword.detector import batches
from outword.detector.detector import Detector
from outword.detector.judge import Said, with_twins
from outword.detector.sampling import look_at
from outword.detector.thumbnails import ON_PAGE, thumbnails
from outword.encoders.packed import decoder_on_nodes
from outword.errors import ArtifactError, ImageError, InputError
from outword.photos.budget import decoding
from outword.photos.sources import read_items
from outword.photos.sources.base import unfiled
from outword.photos.sources.filesystems import is_remote
from outword.photos.sources.patterns import braced, check_there
from outword.photos.twins import Twins
from outword.scoring.page import Borderline, Sample, Summary, card_of, card_of_row, write_page
from outword.scoring.parts import Begun, Parts, left_over
from outword.scoring.rows import ONLY, Totals, Writer, writing
from outword.scoring.stream import open_source, score_jobs, views_of
from outword.vectors.source import Source

Engine = Callable[[Detector, Source, Begun], Iterator[Said]]
Opened = Callable[[], AbstractContextManager[Writer]]
Take = Callable[[Prediction], object]
ENGINES = ("local", "ray")
FORMATS = ("csv", "jsonl", "parquet")


def run(
    detector: Detector,
    source: PathLike | Iterable[PathLike],
    output: PathLike | IO[bytes] | Take | None = None,
    *,
    format: str | None = None,
    only: str | None = None,
    engine: str = "local",
    address: str | None = None,
    strict: bool = False,
    html: PathLike | None = None,
    raw_csv: bool = False,
    column: str | None = None,
    options: Mapping[str, Any] | None = None,
    report: Report = quiet,
    say: Say = quiet,
) -> Totals:
    """Score a source, and write a row for each photo; one that cannot be read is a row with an error.

    Where the encoder has no reference, some of the photos are encoded before the first row, since they say more of the
    threshold (`outword.detector.sampling`): up to 200 refine an imagined one, unless the detector is `fixed`.

    Args:
        detector: what scores.
        source: photos, folders, globs, lists, tars, tables, URLs of these, stores: one, or several.
        output: a file, which appears whole or not at all; a folder (it is there, or its name ends in a slash), which is
            written in parts, and where a run that was killed goes on; an open file; a function, which gets each record;
            by default rows are only counted.
        only: write photos with this verdict alone, or with "error" those that could not be read; all are counted.
        format: csv, jsonl or parquet; by default as the name of the file ends, else csv.
        engine: "local", or "ray" for a cluster.
        address: of the cluster, by default $RAY_ADDRESS; without any, one is started, and shut down at the end.
        strict: raise `ImageError` for the first photo that cannot be read.
        html: a page to write too, with the highest and the lowest scores.
        raw_csv: CSV without the ' before what a spreadsheet would take for a formula.
        column: of tables, the one with the photos.
        options: those that the detector was loaded with by `outword.load`, which other nodes need, and by which a run
            that goes on is told from another one.
        report: is told of progress: the name of the task, how many are done, of how many, None while nobody knows.
        say: gets remarks, such as how many rows are there already.
    """
    given = as_paths(source)
    path = os.fspath(output) if isinstance(output, str | os.PathLike) else None
    in_parts = path is not None and (path.endswith(("/", "\\")) or Path(path).is_dir())
    check_outputs(None if in_parts else path, html)
    kind = _chosen_format(None if in_parts else path, format)
    if only is not None and only not in ONLY:
        raise unknown("verdict", only, ONLY, "outword score --help")
    if only and in_parts:
        raise InputError("only some rows cannot be written in parts", hint="write to a file, or filter the parts")
    if raw_csv and kind != "csv":
        raise InputError(f"--raw-csv is about CSV, and the format is {kind}", hint="leave it out")
    if path and (in_parts or path.lower().endswith(".parquet")):
        check_apart(Path(path), given)
    if in_parts:
        check_there(given)  # a run in parts would keep the slip for good
    found = open_source(detector, given, column=column)
    engine_there = engine_of(engine, address, options or {}, say)
    scoring = Scoring(detector, found, engine_there, options or {}, strict, report, say)
    opened = partial(_opened, output, kind, raw_csv, only)
    if engine_there is None and not in_parts:
        return _to_file(scoring.settled(scoring.look()), opened, html)
    check_resumable(detector, hint="write to a file, with --engine local")
    if in_parts:
        parts = Parts(Path(str(path)), kind, scoring.about(), raw_csv=raw_csv, find=scoring.look)
        return _to_parts(scoring, parts, html)
    with tempfile.TemporaryDirectory() as scratch:  # rows come in any order
        parts = Parts(Path(scratch) / "scores", "records", scoring.about(), find=scoring.look)
        return _from_records(scoring, parts, opened, html)


def _cut_told(detector: Detector) -> str:
    """What verdicts rest on."""
    if detector.threshold is None:
        return f"no verdicts: {detector.method} has no threshold before it is calibrated"
    note = "uncalibrated: " if detector.basis == "formula" else ""
    return f"{note}{_in_from(detector)} ({detector.how_cut})"


def _in_from(detector: Detector) -> str:
    return f"a photo is in if its score is {detector.threshold:.4g} or more"


@dataclass(frozen=True)
class Scoring:
    """A detector, a source, and how the one is to judge the other: see `run`; no engine means here."""

    detector: Detector
    source: Source
    engine: Engine | None
    options: Mapping[str, Any]
    strict: bool
    report: Report
    say: Say

    def about(self) -> dict[str, Any]:
        """What the run is, so that another does not go on with it."""
        handed = self.detector.by_hand.items()
        known = {need.value: getattr(given, "fingerprint", None) for need, given in handed}
        decoder = "pillow"
        if self.source.has_photos:
            decoder = decoder_on_nodes() if self.engine else self.detector.encoder.decoder
        return {
            **{
                name: fingerprint for name, fingerprint in known.items() if fingerprint
            },  # of files; callables have none
            **({"decoder": decoder} if decoder != "pillow" else {}),
            **({} if self.detector.refines else {"fixed": True}),
            "detector": self.detector.fingerprint,
            "column": self.source.column,
            "options": {key: value for key, value in self.options.items() if key != "trust_encoder"},
            "folder": os.getcwd() if self.source.is_relative else None,  # noqa: PTH109
            "largest": decoding().most,  # an image that takes more is a row with that error
        }

    def look(self) -> dict[str, Any] | None:
        """What the photos themselves say of where to cut, as JSON has it; None where that is known."""
        wanted = batches.is_wanted(self.detector)
        return look_at(self.detector, self.source, self.report).table() if wanted else None

    def settled(self, found: Mapping[str, Any] | None) -> Scoring:
        """The same with what `look` found now, or when the run was begun; what verdicts rest on is said."""
        if found is None:
            self.say(_cut_told(self.detector))
            return self
        try:
            batch = batches.read_batch(found)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            message = f"the cut that the run was begun with cannot be read: {error}"
            raise ArtifactError(message, hint="choose another folder") from error
        detector = batch.applied(self.detector)
        told = batch.told(detector.card.encoder.name)
        found_any = batch.cut or batch.sight
        self.say(f"{told}; {_in_from(detector)}" if found_any else f"{told}; {_cut_told(detector)}")
        if batch.warning:
            self.say(f"warning: {batch.warning}")
        return replace(self, detector=detector)

    def chunks(self) -> Iterator[Said]:
        """All rows in order, scored here, some at a time."""
        done = 0
        for chunk, rows in score_jobs(self.detector, self.source.jobs(), photos=self.source.has_photos):
            for row in rows:
                self._check(row)
            yield chunk, rows
            done += len(rows)
            self.report("score", done, self.source.total())
        self._tell_passed_over()

    def fill(self, parts: Parts) -> None:
        """Score what a folder of parts does not have yet."""
        for name in parts.redone:
            self.say(f"warning: {name} was lost or damaged, and is made again")
        if before := parts.totals().rows:
            self.say(f"{counted(before, 'row')} {be(before)} there already")
        done = 0
        for chunk, rows in (self.engine or _here)(self.detector, self.source, parts.progress()):
            for row in rows:
                self._check(row)
            parts.add(chunk.span, rows)
            done += len(rows)
            self.report("score", done, None if (total := self.source.total()) is None else total - before)
        parts.finish(self.source.n_pieces())
        self._tell_passed_over()

    def write_page(self, path: Path, sample: Sample | Borderline, title: str = "outword") -> None:
        """Write the page of a sample, whose photos are read again where there are no thumbnails yet."""
        sample.illustrate(lambda paths: dict(thumbnails(read_items(paths, column=self.source.column), ON_PAGE)))
        write_page(path, sample, title=title, summary=Summary.of(self.detector))

    def _tell_passed_over(self) -> None:
        if told := self.source.passed_over.told():
            self.say(told)

    def _check(self, row: Prediction) -> None:
        if self.strict and row.error:
            raise ImageError(f"{row.path!r}: {row.error}")


def _to_file(scoring: Scoring, opened: Opened, html: PathLike | None) -> Totals:
    """Score here, in order, and write rows as they come."""
    sample = Sample()
    if scoring.source.has_photos:
        scoring.detector.encoder  # noqa: B018  # what is wrong with it is said before anything is written
    with opened() as write, Twins() as twins:
        for chunk, unnoted in scoring.chunks():
            rows = with_twins((chunk, unnoted), twins)
            for row in rows:
                write(row)
            for row, pixels in zip(rows, views_of(chunk), strict=True) if html else ():
                sample.add(card_of(scoring.detector, row, pixels))
    if html:
        scoring.write_page(Path(html), sample)
    return write.totals()


def _to_parts(scoring: Scoring, folder: Parts, html: PathLike | None) -> Totals:
    """Score what is left into a folder of parts."""
    with folder as parts:
        scoring = scoring.settled(parts.found)
        scoring.fill(parts)
        if html:
            sample = Sample()
            for row in parts.rows():
                sample.add(card_of_row(scoring.detector, row))
            scoring.write_page(Path(html), sample)
    return _checked(scoring, parts.totals())


def _from_records(scoring: Scoring, folder: Parts, opened: Opened, html: PathLike | None) -> Totals:
    """Score on an engine that gives rows in any order, into a folder of records, and write rows in order from that."""
    with folder as parts:
        scoring = scoring.settled(parts.found)
        scoring.fill(parts)
        sample = Sample()
        with opened() as write:
            for record in parts.records():
                write(record)
                if html:
                    sample.add(card_of(scoring.detector, record))
        if html:
            scoring.write_page(Path(html), sample)
    return _checked(scoring, parts.totals())


def _checked(scoring: Scoring, totals: Totals) -> Totals:
    """The totals of a run; an error if it is to be strict, and there are some."""
    errors = totals.counts.get("error")
    if scoring.strict and errors:
        raise ImageError(f"{counted(errors, 'image')} could not be read")
    return totals


def _here(detector: Detector, source: Source, progress: Begun) -> Iterator[Said]:
    if source.has_photos:
        detector.encoder  # noqa: B018  # what is wrong with it is said before anything is written
    return score_jobs(detector, left_over(source.pieces(), progress), photos=source.has_photos)


def engine_of(engine: str, address: str | None, options: Mapping[str, Any], say: Say) -> Engine | None:
    """What scores a source elsewhere; None for here."""
    if engine not in ENGINES:
        raise unknown("engine", engine, ENGINES, "outword score --help")
    if engine == "local":
        if address:
            raise InputError("--address is that of a Ray cluster, and the engine is local", hint="add --engine ray")
        return None
    from outword.scoring.ray import score_source as score_there

    say(f"joining Ray at {address}" if address else "starting Ray")
    return lambda detector, source, progress: score_there(detector, source, progress, address=address, **options)


@contextmanager
def _opened(output: PathLike | IO[bytes] | Take | None, kind: str, raw_csv: bool, only: str | None) -> Iterator[Writer]:
    """What writes rows; a file is there when the block ends well, and not at all otherwise."""
    if output is None:
        yield Writer(quiet)
    elif callable(output):
        yield Writer(output, only)
    elif isinstance(output, str | os.PathLike):
        with (
            whole_file(Path(output)) as temporary,
            temporary.open("wb") as file,
            _opened(file, kind, raw_csv, only) as write,
        ):
            yield write
    else:
        with writing(output, kind, raw_csv=raw_csv, only=only) as write:
            yield write
        output.flush()


def _chosen_format(path: str | None, kind: str | None) -> str:
    """The format that was asked for: by name, or else by the suffix of the file."""
    if kind and kind not in FORMATS:
        raise unknown("format", kind, FORMATS, "outword score --help")
    suffix = Path(path or "").suffix.lstrip(".")
    if not kind and suffix and suffix not in FORMATS:
        raise InputError(f'-o must end in .csv, .jsonl or .parquet, got ".{suffix}"', hint="or say --format csv")
    return kind or suffix or "csv"


def as_paths(source: PathLike | Iterable[PathLike]) -> list[str]:
    """The paths of a source, also where it is a single one."""
    return [os.fspath(path) for path in ([source] if isinstance(source, str | os.PathLike) else source)]


def check_resumable(detector: Detector, *, hint: str) -> None:
    """Raise if a score depends on those before it."""
    if detector.scorer.sees_order:
        message = f"{detector.method} learns from the images that it scores, so a run cannot go on where it was"
        raise InputError(message, hint=hint)


def check_apart(folder: Path, given: Iterable[str]) -> None:
    """Raise if the output lies in the source, and so would become part of it."""
    target = folder.resolve()
    for path in chain.from_iterable(map(braced, given)):
        if not is_remote(path) and not unfiled(path) and _finds(path, target):
            message = f"{folder} lies in {path}, and would be taken for more of the source"
            raise InputError(message, hint="choose a folder elsewhere")


def _finds(given: str, target: Path) -> bool:
    """Whether a path or a pattern leads to the folder `target`, or to one above it."""
    parts = Path(given).parts
    fixed = next((place for place, part in enumerate(parts) if has_magic(part)), len(parts))
    if fixed == len(parts) or os.path.lexists(given):
        return target.is_relative_to(Path(given).resolve())
    base = Path(*parts[:fixed]).resolve()
    below = target.relative_to(base).parts if target.is_relative_to(base) else ()
    return bool(below) and (parts[fixed] == "**" or fnmatchcase(below[0], parts[fixed]))
