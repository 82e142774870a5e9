"""`outword labels`: what is made of class names, without making a detector."""

from __future__ import annotations

import json
from collections.abc import Mapping
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import click

from outword.cli.choices import Named
from outword.cli.options import encoder_options, own_column_option
from outword.cli.progress import Progress, print_table, say, show, warn
from outword.errors import InputError

if TYPE_CHECKING:
    from outword.choosing.suggesting import SuggestedKinds
    from outword.encoders import Encoder

WIDEST = 60  # characters of a cell
COLOURS = {"good": "green", "fair": None, "poor": "yellow", "not seen": "red"}


@click.command("labels")
@click.argument("labels", type=click.Path())
@click.option("--encoder", default="mini", show_default=True, type=Named("encoders"), help="See: outword list encoders")
@own_column_option
@click.option(
    "--photos",
    multiple=True,
    type=click.Path(),
    help="Photos of the label, five or more, where LABELS is a single name: find known names that let them in.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a list, a record for each label.")
@encoder_options
def command(
    labels: str,
    encoder: str,
    label_column: str | None,
    photos: tuple[str, ...],
    as_json: bool,
    runtime: Mapping[str, Any],
) -> None:
    """Say what is made of class names: sense, kinds, how well the encoder sees each, and what to do.

    LABELS are what "outword fit" takes, and the odds are those that it gives: which share of the photos of a label will
    be in. Nothing is written but to the cache. With an encoder that is new, some thousand names are encoded first.

    With --photos, names that the encoder knows and that fit these photos are suggested as kinds of the label, with the
    share of the photos that would be in; the last line of the output is a label that "outword fit" takes.

    \b
    Example:
      outword labels "raccoon, dog"
      outword labels labels.txt --json
      outword labels receipt, --photos receipts/
    """
    from outword.detector.cached import fit_cached
    from outword.detector.labels_report import ELSE, TITLES, row_of
    from outword.words.labels import read_labels

    names = read_labels(labels, column=label_column, say=say)
    _check_one(len(names), photos)
    with Progress("words") as meter:
        detector, _ = fit_cached(names, encoder, report=meter, **runtime)
    found = detector.labels_report
    suggested = _suggested([label.text for label in names.values()], photos, detector.encoder)
    if as_json:
        more = [{"suggested": one.as_json()} for one in suggested] or [{} for _ in found]
        records = [{**record, **own} for record, own in zip(found.as_json(), more, strict=True)]
        show(json.dumps(records, indent=2, ensure_ascii=False))
        return
    rows = [[shorten(cell, WIDEST, placeholder=" ...") for cell in row_of(one)[:-1]] for one in found]
    print_table(TITLES[:-1], rows, colour=_colour)
    if any(one.odds for one in found):
        say("odds say how many photos of a label will be in, not that they get this label rather than another of yours")
    for one in found.weak:
        warn(f"{one.label}: {one.try_names}")
    if found.weak:
        warn(f"or {ELSE}")
    for kinds in suggested:
        say(kinds.told)
        show(kinds.line)


def _check_one(n_labels: int, photos: tuple[str, ...]) -> None:
    if photos and n_labels != 1:
        raise InputError(f"--photos is for a single label, got {n_labels}", hint="ask for one label after the other")


def _suggested(labels: list[str], photos: tuple[str, ...], encoder: Encoder) -> list[SuggestedKinds]:
    """The kinds of a label that photos suggest; nothing without photos."""
    from outword.choosing.suggesting import suggest_kinds

    if not photos:
        return []
    with Progress("photos") as meter:
        return [suggest_kinds(label, photos, encoder=encoder, report=meter) for label in labels]


def _colour(title: str, cell: str) -> str | None:
    return COLOURS.get(cell.partition(",")[0]) if title == "odds" else None
