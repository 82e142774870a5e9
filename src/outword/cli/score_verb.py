"""`outword score`: photos to rows."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import IO, TYPE_CHECKING, Any, cast

import click

from outword.cli.failures import Unread, check_outcome
from outword.cli.fit_verb import find_judge, split_detector
from outword.cli.listing import PathLines
from outword.cli.options import (
    column_option,
    engine_options,
    fixed_option,
    judge_options,
    label_column_option,
    labels_option,
    raw_csv_option,
    verbose_option,
    with_file,
    with_refining,
    words_option,
)
from outword.cli.photo_table import PhotoTable
from outword.cli.progress import Progress, TerminalRows, note_order, say
from outword.errors import ImageError, InputError

if TYPE_CHECKING:
    from outword.detector.detector import Detector

TABLE, PATHS = "table", "paths"


@click.command("score")
@click.argument("paths", nargs=-1, metavar="[DETECTOR] PATHS...", type=click.Path())
@labels_option
@label_column_option
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    help="File to write, whole or not at all; or FOLDER/, written in parts, where a second run goes on.  "
    "[default: stdout]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice([TABLE, "csv", "jsonl", "parquet"]),
    help="[default: by the suffix of -o, else a table on a terminal, and csv to a pipe]",
)
@click.option(
    "--only",
    type=click.Choice(["in", "out", "uncalibrated", "error"]),
    help="Write the photos with this verdict alone, or those that could not be read.",
)
@click.option("--paths", "paths_alone", is_flag=True, help="Print paths and nothing else, one a line.")
@click.option("-0", "--null", is_flag=True, help="The same with a zero byte behind each path, for xargs -0.")
@raw_csv_option
@click.option("--html", type=click.Path(), help="Also write a page with thumbnails, sorted by score.")
@click.option("--strict", is_flag=True, help="Stop at the first image that cannot be read (exit 1).")
@column_option
@words_option
@fixed_option
@verbose_option
@engine_options
@judge_options
def command(
    paths: tuple[str, ...],
    labels: str | None,
    label_column: str | None,
    output: str | None,
    form: str | None,
    paths_alone: bool,
    null: bool,
    strict: bool,
    words_per_image: str | None,
    fixed_threshold: bool,
    verbose: bool,
    options: Mapping[str, Any],
    engine: Mapping[str, Any],
    **given: Any,
) -> None:
    """Score PATHS and write a row for each photo: verdict, label, nearest label, score and what it rests on.

    PATHS are images, folders, globs, text files of paths, tars, Parquet files, data sets of Hugging Face on disk, or
    URLs of any of these, such as s3://bucket/photos/. A store of "outword embed" is scored without encoding anything.

    Higher scores mean more in-distribution; p is the share of unrelated photos that score as high. An image that cannot
    be read is a row with an error, and the run goes on. For an encoder without a reference the threshold is from photos
    imagined from names, and up to 200 of PATHS refine it: basis is "imagined" (docs/imagined.md).

    On a terminal it prints a table of the photos with the highest and the lowest scores; to a pipe, to a file, or with
    --format csv, all of them, with all columns.

    Exits with 0 if photos were scored, also if some of them are rows with an error; with 1, after the rows are written,
    if no images were found, if none of them could be read, or if there is nothing at one of PATHS, and at the first
    error with --strict; with 2 if the command is wrong.

    \b
    Example:
      outword score --labels "cat, dog" photos/ --html page.html
      outword score pets.outword photos/ --html page.html > scores.csv
      outword score pets.outword photos/ --only in -0 | xargs -0 cp -t kept/
      outword score pets.outword "shards/{000..099}.tar" -o scores/ --format parquet
    """
    from outword import kernels
    from outword.base.wording import counted
    from outword.scoring.runs import run

    detector, paths = split_detector("score", paths, labels)
    if not paths:
        raise InputError("score needs PATHS, what to score", hint="name photos, or a folder of them")
    judge, here = find_judge(detector, labels, label_column, options)
    found = with_refining(with_file(judge, words_per_image), fixed=fixed_threshold)
    note_order(found)
    if verbose:
        say(found.encoder.setting)
        say(f"scores by {' in '.join(kernels.chosen())}")
    form, rows = _rows(found, output, _form(form, output, paths_alone or null, given["raw_csv"]), null)
    try:
        with redirect_stdout(sys.stderr), Progress("images") as progress:  # Ray prints there when a process dies
            given |= engine
            totals = run(
                found, paths, rows, format=form, strict=strict, options=here, report=progress, say=say, **given
            )
    except ImageError as error:
        if not strict:
            raise
        strictly = ImageError(f"{error.message} (--strict)", hint="without --strict it is a row, and the run goes on")
        raise Unread(strictly) from error
    if isinstance(rows, PathLines | PhotoTable):
        rows.close()
    parts = ", ".join(f"{count:,} {what}" for what, count in totals.counts.items())
    if totals.rows:
        say(f"{counted(totals.rows, 'image')}: {parts}")
    check_outcome(paths, totals.rows, totals.counts.get("error", 0))


def _form(form: str | None, output: str | None, paths_alone: bool, raw_csv: bool) -> str | None:
    """The form of what is written: what was asked for, else a table on a terminal; None for what the file is called."""
    if paths_alone and (form or output):
        got = f"--format {form}" if form else f"-o {output}"
        raise InputError(f"--paths prints paths and nothing else, got {got} as well", hint="leave one of the two out")
    if form == TABLE and output:
        raise InputError("a table is for a terminal, and a file was named with -o", hint="take --format csv")
    if output is None and sys.stdout is None:
        raise InputError("stdout is closed", hint="write to a file with -o")
    if paths_alone:
        return PATHS
    is_shown = form is None and output is None and not raw_csv and sys.stdout.isatty()
    return TABLE if is_shown else form


def _rows(
    detector: Detector, output: str | None, form: str | None, null: bool
) -> tuple[str | None, str | IO[bytes] | PathLines | PhotoTable]:
    """The format of rows, and where they go."""
    if form == TABLE:
        return None, PhotoTable(detector)
    if output is not None:
        return form, output
    if form == PATHS:
        return None, PathLines(_stdout(), null=null)
    if form == "parquet" and sys.stdout.isatty():
        raise InputError("Parquet is not for a terminal", hint="write to a file with -o")
    return form, _stdout()


def _stdout() -> IO[bytes]:
    """What bytes are written to where no file is named."""
    if not sys.stdout.isatty():
        return sys.stdout.buffer
    return cast("IO[bytes]", TerminalRows(sys.stdout.buffer))
