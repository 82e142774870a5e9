"""`outword check`: mistakes in class folders."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from outword.base.wording import be, counted
from outword.cli.choices import Named
from outword.cli.failures import Unread, check_outcome
from outword.cli.listing import check_listing, listing_options, put_listing, shown_path
from outword.cli.options import encoder_options
from outword.cli.progress import Progress, say
from outword.errors import InputError, ParameterError

if TYPE_CHECKING:
    from outword.scoring.checking import Checked, Finding

COLUMNS = ("path", "label", "finding", "suggestion", "sure", "looks_like", "same_as", "error")
TITLES = ("photo", "folder", "finding", "seems to be", "sure", "looks like")
COLOURS = {"another class": "yellow", "none of the classes": "red", "duplicate": "yellow", "unreadable": "red"}
_LIMIT = re.compile(r"(\d+(?:\.\d+)?)\s*(%?)")


@click.command("check")
@click.argument("folder", type=click.Path())
@click.option(
    "--max-wrong",
    metavar="LIMIT",
    help="Exit with 1 if more photos than this are listed: a share such as 1%, or a number.  [default: no limit]",
)
@click.option(
    "--sure",
    default=0.5,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="List what is at least so sure.",
)
@click.option("--encoder", default="mini", show_default=True, type=Named("encoders"), help="See: outword list encoders")
@listing_options
@encoder_options
def command(
    folder: str,
    max_wrong: str | None,
    sure: float,
    encoder: str,
    listing: Mapping[str, Any],
    runtime: Mapping[str, Any],
) -> None:
    """List the photos of class folders that seem to be in the wrong one.

    FOLDER has a folder for each class, whose name is the label, as for "outword fit"; ImageNet's numbers are names,
    too. Listed are photos that seem to be of another class, of none of them, that are the same as a photo of another
    class, and those that cannot be read; the surest first. Both the names and the photos that lie in each folder count,
    the names as far as the encoder knows them (docs/how-to/check.md).

    Exits with 0 whatever is found, unless --max-wrong says how much is too much: then with 1. Also with 1 if no photo
    could be read, and with 2 if the command or the folder is wrong.

    \b
    Example:
      outword check train/
      outword check train/ --html mistakes.html --max-wrong 1%
      outword check train/ --sure 0.9 -0 | xargs -0 mv -t suspects/
    """
    import outword
    from outword.encoders import get_encoder

    check_listing(listing)
    limit = _limit(max_wrong) if max_wrong is not None else None
    with Progress("images") as progress:
        found = outword.check(folder, encoder=get_encoder(encoder, **runtime), sure=sure, report=progress, say=say)
    put_listing(
        listing,
        rows=[asdict(one) for one in found],
        flat=[{**asdict(one), "looks_like": "; ".join(one.looks_like)} for one in found],
        columns=COLUMNS,
        titles=TITLES,
        cells=[_cells(one, folder) for one in found],
        paths=[one.path for one in found],
        write_page=found.write_page,
        colours=COLOURS,
    )
    _tell(found)
    check_outcome([folder], found.n_photos, found.by_finding.get("unreadable", 0))
    if limit is not None and len(found) > limit(found.n_photos):
        listed = f"{len(found):,} of {counted(found.n_photos, 'photo')} {be(len(found))} listed"
        told = f"{listed}, and {max_wrong} may be"
        raise Unread(InputError(told, hint="look at them with --html PAGE, or raise --max-wrong"))


def _limit(text: str) -> Any:
    """What gives the most photos that may be listed, by the number of all."""
    found = _LIMIT.fullmatch(text.strip())
    number, percent = (float(found[1]), found[2]) if found else (-1.0, "")
    if not found or (percent and number > 100) or (not percent and number != int(number)):
        raise ParameterError(
            f"--max-wrong must be a share from 0% to 100% or a whole number, got {text!r}", hint="--max-wrong 1%"
        )
    return (lambda n_photos: n_photos * number / 100) if percent else (lambda n_photos: number)


def _cells(one: Finding, folder: str) -> tuple[str, ...]:
    """What a person gets."""
    sure = "" if one.sure is None else f"{100 * one.sure:.0f} %"
    seen = one.looks_like[0] if one.looks_like else ""
    why = one.error or (one.same_as and f"the same as {shown_path(one.same_as, [folder])}") or seen
    return shown_path(one.path, [folder]), one.label, one.finding, one.suggestion, sure, why


def _tell(found: Checked) -> None:
    """Say how many there are of what."""
    if not found.n_photos:
        return
    parts = [f"{number:,} {name}" for name, number in found.by_finding.items()]
    classes = counted(len(found.counts), "class", "classes")
    say(f"{counted(found.n_photos, 'photo')} of {classes}: {', '.join(parts) or 'nothing to list'}")
    names, photos = found.weights
    if names + photos > 0:
        say(f"what counted: names {100 * names / (names + photos):.0f} %, the photos of each folder the rest")
