"""`outword score`: photos to rows."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import IO, Any, cast

import click

from outword.cli.failures import Unread, check_outcome
from outword.cli.fit_verb import find_judge, split_detector
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
from outword.cli.progress import Progress, TerminalRows, note_order, say
from outword.errors import ImageError, InputError


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
    "--format", type=click.Choice(["csv", "jsonl", "parquet"]), help="[default: by the suffix of -o, else csv]"
)
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

    Exits with 0 if photos were scored, also if some of them are rows with an error; with 1, after the rows are written,
    if no images were found, if none of them could be read, or if there is nothing at one of PATHS, and at the first
    error with --strict; with 2 if the command is wrong.

    \b
    Example:
      outword score --labels "cat, dog" photos/ --html page.html
      outword score pets.outword photos/ --html page.html > scores.csv
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
    if output is None and sys.stdout is None:
        raise InputError("stdout is closed", hint="write to a file with -o")
    rows = output or _stdout(given["format"])
    try:
        with redirect_stdout(sys.stderr), Progress("images") as progress:  # Ray prints there when a process dies
            given |= engine
            totals = run(found, paths, rows, strict=strict, options=here, report=progress, say=say, **given)
    except ImageError as error:
        if not strict:
            raise
        strictly = ImageError(f"{error.message} (--strict)", hint="without --strict it is a row, and the run goes on")
        raise Unread(strictly) from error
    parts = ", ".join(f"{count:,} {what}" for what, count in totals.counts.items())
    if totals.rows:
        say(f"{counted(totals.rows, 'image')}: {parts}")
    check_outcome(paths, totals.rows, totals.counts.get("error", 0))


def _stdout(kind: str | None) -> IO[bytes]:
    """What rows are written to where no file is named."""
    if not sys.stdout.isatty():
        return sys.stdout.buffer
    if kind == "parquet":
        raise InputError("Parquet is not for a terminal", hint="write to a file with -o")
    return cast("IO[bytes]", TerminalRows(sys.stdout.buffer))
