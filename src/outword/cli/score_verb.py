"""`outword score`: photos to rows."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outword.cli.options import (
    column_option,
    elsewhere_option,
    engine_options,
    raw_csv_option,
    runtime_options,
    trust_option,
)
from outword.cli.progress import Meter, note_order
from outword.cli.writers import FORMATS, chosen_format, open_writer
from outword.errors import InputError, OutwordError

if TYPE_CHECKING:
    from outword.detector.detector import Detector
    from outword.encoders.base import Pixels
    from outword.scoring.page import PageRow, Sample, Summary
    from outword.scoring.parts import Parts
    from outword.scoring.rows import Row, Write
    from outword.scoring.stream import Scored, Source

Engine = Callable[["Detector", "Source", Any], "Iterator[Scored]"]
Rows = Callable[[], "AbstractContextManager[Write]"]


@click.command("score")
@click.argument("detector", type=click.Path())
@click.argument("paths", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    help="File to write, whole or not at all; or FOLDER/, written in parts, where a second run goes on.  "
    "[default: stdout]",
)
@click.option("--format", "kind", type=click.Choice(FORMATS), help="[default: by the suffix of -o, else csv]")
@raw_csv_option
@click.option("--html", type=click.Path(), help="Also write a page with thumbnails, sorted by score.")
@click.option("--strict", is_flag=True, help="Stop at the first image that cannot be read (exit 1).")
@column_option
@engine_options
@elsewhere_option
@trust_option
@runtime_options
def command(
    detector: str,
    paths: tuple[str, ...],
    output: str | None,
    kind: str | None,
    raw_csv: bool,
    html: str | None,
    strict: bool,
    column: str | None,
    engine: dict[str, Any],
    encoder: str | None,
    trust: bool,
    runtime: dict[str, Any],
) -> None:
    """Score PATHS and write path, score, verdict, label, words, error.

    PATHS are images, folders, globs, text files of paths, tars, Parquet files, data sets of Hugging Face on disk, or
    URLs of any of these, such as s3://bucket/photos/. A store of "outword embed" is scored without encoding anything.

    Higher scores mean more in-distribution. An image that cannot be read is a row with an error, and the run goes on.

    \b
    Example:
      outword score pets.outword photos/ --html page.html > scores.csv
      outword score pets.outword "shards/{000..099}.tar" -o scores/ --format parquet
    """
    from outword.detector.loading import load
    from outword.scoring.filtering import check_apart, check_there
    from outword.scoring.stream import open_source

    in_parts, options = is_folder(output), options_of(encoder, runtime)
    check_outputs(None if in_parts else output, html)
    kind = chosen_format(None if in_parts else output, kind)
    if raw_csv and kind != "csv":
        raise InputError(f"--raw-csv is about CSV, and the format is {kind}", hint="leave it out")
    if output and (in_parts or output.lower().endswith(".parquet")):
        check_apart(Path(output), paths)
    if in_parts:
        check_there(paths)
    found = load(detector, trust_encoder=trust, **options)
    note_order(found)
    source = open_source(found, paths, column=column)
    next(source.pieces(), None)  # what is wrong with it is said before anything is written
    run = engine_of(engine, {**options, "trust_encoder": trust})
    rows = partial(open_writer, output, kind, raw_csv=raw_csv)
    if run is None and not in_parts:
        counts, checksum = score_to_file(found, source, rows, html=html, strict=strict)
    else:
        to_parts = partial(score_to_parts, found, source, options=options, run=run, html=html, strict=strict)
        if in_parts and output:
            counts, checksum = to_parts(Path(output), kind, raw_csv=raw_csv)
        else:
            with tempfile.TemporaryDirectory() as scratch:  # rows come in any order
                counts, checksum = to_parts(Path(scratch) / "scores", "jsonl", copy=rows)
    total = counts.total()
    parts = ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))
    click.echo(f"{total:,} images: {parts}" if total else "no images found", err=True)
    if output:
        click.echo(f"{total:,} rows, checksum {checksum}", err=True)


def score_to_file(
    detector: Detector, source: Source, rows: Rows, *, html: str | None, strict: bool
) -> tuple[Counter[str], str]:
    """Score here, in order, and write as rows come, to what `rows` opens.

    Gives counts by verdict, with `error`, and the checksum.
    """
    from outword.scoring.rows import Checksum
    from outword.scoring.stream import score_source

    counts, checksum = Counter[str](), Checksum()
    sample = _sample() if html else None
    if source.has_photos:
        detector.encoder  # noqa: B018  # what is wrong with it is said before anything is written
    total = count_in_background(source)
    with rows() as write, Meter("images") as meter:
        for row, pixels in score_source(detector, source):
            _check(row, strict)
            write(row)
            checksum.add(row)
            counts[row.verdict or "error"] += 1
            meter("score", checksum.rows, total())
            if sample is not None:
                sample.add(page_row(detector, row, pixels))
    if html and sample is not None:
        _write_page(Path(html), sample, detector, source)
    return counts, checksum.hex


def score_to_parts(
    detector: Detector,
    source: Source,
    folder: Path,
    kind: str,
    *,
    options: dict[str, Any],
    run: Engine | None,
    html: str | None = None,
    strict: bool = False,
    raw_csv: bool = False,
    copy: Rows | None = None,
) -> tuple[Counter[str], str]:
    """Score what is left into a folder of parts; all rows are then written to what `copy` opens as well."""
    from outword.scoring.parts import Parts

    if detector.scorer.sees_order:
        raise InputError(
            f"{detector.method} learns from the images that it scores, so a run cannot go on where it was",
            hint="write to a file, with --engine local",
        )
    with Parts(folder, kind, about(detector, source, options), raw_csv=raw_csv) as parts:
        score_left(detector, source, parts, run=run, strict=strict)
        if copy:
            with copy() as write:
                for row in parts.rows():
                    write(row)
        if html:
            sample = _sample()
            for row in parts.rows():
                sample.add(page_row(detector, row, None))
            _write_page(Path(html), sample, detector, source)
        totals = parts.totals()
        if strict and totals["counts"].get("error"):
            raise click.ClickException(f"{totals['counts']['error']:,} images could not be read (--strict)")
    return Counter(totals["counts"]), totals["checksum"]


def about(detector: Detector, source: Source, options: dict[str, Any]) -> dict[str, Any]:
    """What a run is, so that another does not go on with it; the options are those of the encoder."""
    from outword.photos.budget import decoding

    folder = os.getcwd() if source.is_relative else None  # noqa: PTH109
    run = {"detector": detector.fingerprint, "column": source.column, "options": options, "folder": folder}
    return {**run, "largest": decoding().most}  # an image that takes more is a row with that error


def score_left(detector: Detector, source: Source, parts: Parts, *, run: Engine | None, strict: bool = False) -> None:
    """Score what a folder of parts does not have yet."""
    for name in parts.redone:
        click.echo(f"warning: {name} was lost or damaged, and is made again", err=True)
    if before := parts.totals()["rows"]:
        click.echo(f"{before:,} rows are there already", err=True)
    total, done = count_in_background(source), 0
    with Meter("images") as meter, redirect_stdout(sys.stderr):  # Ray prints there when a process dies
        for scored in (run or _here)(detector, source, parts.progress()):
            for row in scored.rows:
                _check(row, strict)
            parts.add(scored)
            done += len(scored.rows)
            meter("score", done, None if (all_of := total()) is None else all_of - before)
    parts.finish()


def _here(detector: Detector, source: Source, progress: Any) -> Iterator[Scored]:
    from outword.scoring.parts import left_over
    from outword.scoring.stream import score_jobs

    if source.has_photos:
        detector.encoder  # noqa: B018  # what is wrong with it is said before anything is written
    return score_jobs(detector, left_over(source.pieces(), progress), photos=source.has_photos)


def options_of(encoder: str | None, runtime: dict[str, Any]) -> dict[str, Any]:
    """Those of `outword.load` that were given."""
    return {**({"encoder": encoder} if encoder else {}), **runtime}


def engine_of(engine: dict[str, Any], options: dict[str, Any]) -> Engine | None:
    """What scores a source elsewhere, by the options of the command line; None for here."""
    if engine["engine"] == "local":
        if engine["address"]:
            raise InputError("--address is that of a Ray cluster, and the engine is local", hint="add --engine ray")
        return None
    from outword.scoring.ray import score_source

    address = engine["address"]
    click.echo(f"joining Ray at {address}" if address else "starting Ray", err=True)
    return lambda detector, source, progress: score_source(detector, source, progress, address=address, **options)


def is_folder(output: str | None) -> bool:
    """Whether an output is to be written in parts: a name that ends in a slash, or a folder that is there."""
    return output is not None and (output.endswith(("/", "\\")) or Path(output).is_dir())


def _check(row: Row, strict: bool) -> None:
    if strict and row.error:
        raise click.ClickException(f"{row.path!r}: {row.error} (--strict)")


def _sample() -> Sample:
    from outword.scoring.page import Sample

    return Sample()


def _write_page(path: Path, sample: Sample, detector: Detector, source: Source) -> None:
    from outword.scoring.page import write_page

    sample.illustrate(partial(views, column=source.column))
    write_page(path, sample, title="outword", summary=page_summary(detector))


def page_row(detector: Detector, row: Row, pixels: Pixels | None) -> PageRow:
    """What the page shows of a row."""
    from PIL import Image

    from outword.photos.images import thumbnail
    from outword.scoring.page import PageRow

    view = b"" if pixels is None else thumbnail(Image.fromarray(pixels))
    note = detector.coverage.get(row.label, "")
    return PageRow(row.path, row.score, row.verdict, row.label, row.words, row.error, view, note)


def views(paths: list[str], *, column: str | None = None) -> dict[str, bytes]:
    """Thumbnails of photos by the paths that they had, as far as they are still there."""
    from outword.errors import ImageError
    from outword.photos.images import thumbnail, with_image
    from outword.photos.sources import read_items

    found = {}
    for path, data in read_items(paths, column=column):
        try:
            found[path] = b"" if isinstance(data, ImageError) else with_image(data, thumbnail, min_side=160)
        except ImageError:
            found[path] = b""
    return found


def page_summary(detector: Detector) -> Summary:
    """What the page says of the detector."""
    from outword.scoring.page import Summary

    fitted = detector.calibration_
    how = fitted.told if fitted else ""
    return Summary(len(detector.labels), detector.card["encoder"]["name"], detector.method, detector.cut, how)


def check_outputs(*names: str | None) -> None:
    """Raise unless the files can be written: a folder that is there, a name that is no folder, no name twice."""
    given = [Path(name).resolve() for name in names if name]
    if len(set(given)) < len(given):
        raise InputError(f"the outputs must be different files, got {given[0]} twice", hint="choose another name")
    for name in names:
        if name and not Path(name).resolve().parent.is_dir():
            raise InputError(f"{Path(name).parent} is not a folder", hint="make it first")
        if name and Path(name).is_dir():
            raise InputError(f"{name} is a folder", hint="name a file")


def count_in_background(source: Source) -> Callable[[], int | None]:
    """A function that gives the number of images once a thread has counted them; None before that, or for ever.

    What lies behind a URL is not listed twice for this.
    """
    result: list[int] = []

    def count() -> None:
        total = 0
        with suppress(OutwordError):  # the run itself will say so
            for piece in source.pieces():
                number = piece.count()
                if number is None:
                    return
                total += number
            result.append(total)

    if not source.is_remote:
        threading.Thread(target=count, daemon=True).start()
    return lambda: result[0] if result else None
