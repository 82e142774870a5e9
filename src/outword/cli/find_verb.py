"""`outword find`: the best photos of a phrase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from outword.base.prediction import HEADER, cells, in_words, json_cells
from outword.cli.choices import Named
from outword.cli.failures import check_outcome
from outword.cli.listing import check_listing, listing_options, put_listing, shown_path
from outword.cli.options import column_option, encoder_options
from outword.cli.progress import Progress, say, warn
from outword.errors import InputError

if TYPE_CHECKING:
    from outword.scoring.finding import Match

COLOURS = {"in": "green", "out": "red"}


@click.command("find")
@click.argument("phrases", metavar="PHRASES", type=click.Path())
@click.argument("photos", nargs=-1, required=True, metavar="PHOTOS...", type=click.Path())
@click.option(
    "--top", default=20, show_default=True, type=click.IntRange(1, 10_000), help="How many photos of each phrase."
)
@click.option("--encoder", default="mini", show_default=True, type=Named("encoders"), help="See: outword list encoders")
@column_option
@listing_options
@encoder_options
def command(
    phrases: str,
    photos: tuple[str, ...],
    top: int,
    encoder: str,
    column: str | None,
    listing: Mapping[str, Any],
    runtime: Mapping[str, Any],
) -> None:
    """Find the photos that fit a phrase best.

    PHRASES are one or several, with commas between them, or a file with one a line; they are read as labels are:
    "jaguar#animal" says which jaguar. PHOTOS are all that "outword score" takes. Photos of a store of "outword embed"
    are found without encoding anything.

    Photos are ranked by the score of a detector with the phrase as its only label: how well they fit it, less how well
    they fit names of other things. The column "better than" is the share of unrelated photos that fit less well, and
    the verdict says whether the photo is taken for one of the phrase at all: the best of photos without a red car are
    out. Exits with 1 if no photo could be read, or if there is nothing at one of PHOTOS.

    \b
    Example:
      outword find "red car" photos/ --top 5
      outword find "dog, cat" photos.store --html found.html
      outword find raccoon photos/ -0 | xargs -0 cp -t raccoons/
    """
    import outword
    from outword.encoders import get_encoder
    from outword.words.labels import read_labels

    check_listing(listing)
    typed = read_labels(phrases, say=say)
    if any(not path for path in photos):
        raise InputError("a path must not be empty", hint="name photos, or a folder of them")
    with Progress("images") as progress:
        found = outword.find(
            typed,
            photos,
            encoder=get_encoder(encoder, **runtime),
            top=top,
            column=column,
            report=progress,
            say=say,
        )
    for path, reason in found.unreadable:
        warn(f"{path}: {reason}")
    if (more := found.n_unreadable - len(found.unreadable)) > 0:
        warn(f"and {more:,} more that could not be read")
    several = len(typed) > 1
    titles = ("phrase", "photo", "better than", "verdict", "looks like", "notes")[not several :]
    put_listing(
        listing,
        rows=[_row(match) for match in found],
        flat=[{"phrase": match.phrase, "rank": match.rank, **cells(match.photo)} for match in found],
        columns=["phrase", "rank", *HEADER],
        titles=titles,
        cells=[_cells(match, photos)[not several :] for match in found],
        paths=found.paths,
        write_page=lambda page: found.write_page(page, column=column),
        colours=COLOURS,
    )
    check_outcome(photos, found.n_photos, found.n_unreadable)


def _row(match: Match) -> dict[str, Any]:
    """What a program gets: the columns of "outword score", behind the phrase and the rank."""
    return {
        "phrase": match.phrase,
        "rank": match.rank,
        **json_cells(match.photo),
    }


def _cells(match: Match, given: Sequence[str]) -> tuple[str, ...]:
    """What a person gets."""
    photo = match.photo
    fits = in_words(photo.p).removeprefix("fits better than ").removesuffix(" of unrelated photos")
    seen = photo.looks_like[0] if photo.looks_like else ""
    path = shown_path(photo.path, given)
    return (match.phrase, path, fits or f"score {photo.score:.4g}", photo.verdict, seen, "; ".join(photo.notes))
