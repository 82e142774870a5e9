"""`outword embed`: photos to a store of embeddings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click

from outword.base.wording import counted
from outword.cli.choices import Named
from outword.cli.failures import check_outcome
from outword.cli.options import column_option, encoder_options, verbose_option
from outword.cli.progress import Progress, say, show, warn


@click.command("embed")
@click.argument("sources", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", "folder", required=True, type=click.Path(), help="The store: a new folder, or a store.")
@click.option("--encoder", default="mini", show_default=True, type=Named("encoders"), help="See: outword list encoders")
@click.option(
    "--format", "kind", default="safetensors", show_default=True, type=click.Choice(["safetensors", "parquet"])
)
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
@column_option
@verbose_option
@encoder_options
def command(
    sources: tuple[str, ...],
    folder: str,
    encoder: str,
    kind: str,
    as_json: bool,
    column: str | None,
    verbose: bool,
    runtime: Mapping[str, Any],
) -> None:
    """Keep the embeddings of SOURCES in a store, and print its path.

    SOURCES are images, folders, globs, text files of paths, tars, Parquet files, data sets of Hugging Face on disk, or
    URLs of any of these.

    A second run encodes only what is new; one that was killed goes on where it was. "outword score" and "outword
    calibrate" take the store wherever they take photos. Exits with 1 if no images were found, if none of them could be
    read, or if there is nothing at one of SOURCES.

    \b
    Example:
      outword embed photos/ -o photos.store
      outword score pets.outword photos.store
    """
    from outword.encoders import get_encoder
    from outword.vectors.embed import embed
    from outword.vectors.source import find_source

    loaded = get_encoder(encoder, **runtime)
    if verbose:
        say(loaded.setting)
    source = find_source(sources, loaded, column=column)
    with Progress("images") as progress:
        summary = embed(
            loaded, source.items(), folder, kind=kind, report=lambda done: progress("embed", done, source.total())
        )
    if told := source.passed_over.told():
        say(told)
    for file in summary.damaged:
        warn(f"warning: {file} was damaged and is set aside")
    for file in summary.lost:
        warn(f"warning: {file} is gone")
    for path, error in summary.failed:
        say(f"{path!r}: {error}")
    seen = summary.encoded + summary.reused + summary.errors
    counts = f"{summary.encoded:,} encoded, {summary.reused:,} reused, {counted(summary.errors, 'error')}"
    if seen:
        say(f"{counted(seen, 'image')}: {counts}; the store has {summary.rows:,}")
    show(json.dumps({"path": folder, **asdict(summary)}) if as_json else folder)
    check_outcome(sources, seen, summary.errors)
