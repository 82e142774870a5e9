"""`outword labels`: what is made of class names, without making a detector."""

from __future__ import annotations

import json
from collections.abc import Mapping
from textwrap import shorten
from typing import Any

import click

from outword.cli.options import encoder_options, own_column_option
from outword.cli.choices import Named
from outword.cli.progress import Progress, print_table, say, show, warn

WIDEST = 60  # characters of a cell
COLOURS = {"good": "green", "fair": None, "poor": "yellow", "not seen": "red"}


@click.command("labels")
@click.argument("labels", type=click.Path())
@click.option("--encoder", default="mini", show_default=True, type=Named("encoders"), help="See: outword list encoders")
@own_column_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a list, a record for each label.")
@encoder_options
def command(labels: str, encoder: str, label_column: str | None, as_json: bool, runtime: Mapping[str, Any]) -> None:
    """Say what is made of class names: sense, kinds, how well the encoder sees each, and what to do.

    LABELS are what "outword fit" takes, and the odds are those that it gives: which share of the photos of a label will
    be in. No detector is made. With an encoder that has no measured odds, such as CLIP, they are worked out as fit does,
    which encodes some thousand names the first time.

    \b
    Example:
      outword labels "raccoon, dog"
      outword labels labels.txt --json
    """
    from outword.detector.fitting import labels_report
    from outword.detector.labels_report import ELSE, TITLES, row_of
    from outword.encoders import get_encoder
    from outword.words.labels import read_labels

    names = read_labels(labels, column=label_column, say=say)
    with Progress("words") as meter:
        found = labels_report(names, encoder=get_encoder(encoder, **runtime), report=meter)
    if as_json:
        show(json.dumps(found.as_json(), indent=2, ensure_ascii=False))
        return
    rows = [[shorten(cell, WIDEST, placeholder=" ...") for cell in row_of(one)[:-1]] for one in found]
    print_table(TITLES[:-1], rows, colour=_colour)
    for one in found.weak:
        warn(f"{one.label}: {one.try_names}")
    if found.weak:
        warn(f"or {ELSE}")


def _colour(title: str, cell: str) -> str | None:
    return COLOURS.get(cell.partition(",")[0]) if title == "odds" else None
