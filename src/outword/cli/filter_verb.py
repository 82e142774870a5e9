"""`outword filter`: keep the photos that show one of the classes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outword.cli.choices import Named
from outword.cli.fit_verb import tell_coverage
from outword.cli.options import column_option, engine_options, raw_csv_option, runtime_options, trust_option
from outword.cli.progress import Meter
from outword.cli.score_verb import Engine, about, engine_of, options_of, page_row, page_summary, score_left, views
from outword.errors import InputError

if TYPE_CHECKING:
    from outword.detector.detector import Detector
    from outword.scoring.filtering import Done, Tally
    from outword.scoring.parts import Parts
    from outword.scoring.stream import Source

SAID = 10  # photos that cannot be copied or listed are named up to here, and counted from there on


@click.command("filter")
@click.argument("sources", nargs=-1, required=True, type=click.Path())
@click.option("--labels", type=click.Path(), help="Class names, as for fit: a detector is made of them, and kept too.")
@click.option("--detector", type=click.Path(), help="A detector to use, in place of --labels.")
@click.option("-o", "--output", required=True, type=click.Path(), help="A folder; a second run goes on in it.")
@click.option(
    "--as",
    "how",
    type=click.Choice(["copy", "link", "list"]),
    default="copy",
    show_default=True,
    help="What to make of the photos that are kept; a list of their paths is always written.",
)
@raw_csv_option
@column_option
@engine_options
@click.option(
    "--encoder",
    type=Named("encoders"),
    help="With --labels what encodes, else where the detector's encoder is now.  [default: mini, or where it was]",
)
@trust_option
@runtime_options
def command(
    sources: tuple[str, ...],
    labels: str | None,
    detector: str | None,
    output: str,
    how: str,
    raw_csv: bool,
    column: str | None,
    engine: dict[str, Any],
    encoder: str | None,
    trust: bool,
    runtime: dict[str, Any],
) -> None:
    """Keep the photos of SOURCES that are in-distribution, and print label, kept, left_out.

    SOURCES are all that "outword score" takes. The folder gets images/LABEL/ with the photos, kept.txt with their
    paths, counts.csv, borderline.html with the photos nearest to the threshold, and scores/ with the rows of all.

    \b
    Example:
      outword filter photos/ --labels labels.txt -o kept/
      outword filter "shards/{000..099}.tar" --detector pets.outword -o kept/ --engine ray
    """
    from outword.detector.loading import load
    from outword.scoring.filtering import DETECTOR, check_apart, check_links, check_there, claimed
    from outword.scoring.stream import open_source
    from outword.words.labels import read_labels

    if (labels is None) == (detector is None):
        got = "neither" if labels is None else "both"
        raise InputError(f"filter takes either --labels or --detector, got {got}", hint="name one of them")
    folder = Path(output)
    check_apart(folder, sources)
    check_there(sources)
    if how == "link":
        check_links(sources)
    options = options_of(encoder if detector else None, runtime)
    trust = trust or encoder is not None
    run = engine_of(engine, {**options, "trust_encoder": trust})
    judge = _checked(load(detector, trust_encoder=trust, **options), detector) if detector else None
    names = read_labels(labels) if labels else {}
    with claimed(folder):
        if judge is None:
            judge = _made(folder / DETECTOR, names, str(labels), encoder, {**runtime, "trust_encoder": trust})
        source = open_source(judge, sources, column=column)
        _filter(judge, source, folder, how, options, run, raw_csv=raw_csv)


def _made(path: Path, names: dict[str, str], labels: str, encoder: str | None, options: dict[str, Any]) -> Detector:
    """The detector of an earlier run in the same folder, if it is for these labels; else a new one."""
    from outword.detector.fitting import fit
    from outword.detector.loading import load
    from outword.encoders import get_encoder
    from outword.encoders.names import canonical

    if not path.exists():
        runtime = {key: value for key, value in options.items() if key != "trust_encoder"}
        tower = get_encoder(encoder or "mini", **runtime)
        with Meter("words") as meter:
            made = fit(names, encoder=tower, report=meter)
        made.save(path)
        tell_coverage(made.coverage, labels)
        return _checked(made, str(path))
    found = load(path, **options)
    prompts = {name: own for name, own in names.items() if own}
    if (found.labels, found.card.get("label_prompts", {})) != (list(names), prompts):
        raise InputError(f"{path} was made for other labels than those of {labels}", hint="choose another folder")
    if encoder and canonical(encoder) != (used := found.card["encoder"]["name"]):
        raise InputError(f"{path} was made with the encoder {used}, not {encoder}", hint="choose another folder")
    return _checked(found, str(path))


def _checked(detector: Detector, path: str) -> Detector:
    """Raise unless the detector can filter; say so if nobody has set its threshold."""
    calibrate = f"outword calibrate {shlex.quote(path)} PHOTOS... -o calibrated.outword"
    if detector.scorer.sees_order:
        raise InputError(
            f"{detector.method} learns from the images that it scores, so a run cannot go on where it was",
            hint="use a detector of another method",
        )
    if detector.cut is None:
        raise InputError(f"{path} has no threshold, and {detector.method} has none by itself", hint=calibrate)
    if detector.calibration_ is None:
        click.echo(
            f"uncalibrated: photos are kept from the score's natural cut on; to fit it to your photos: {calibrate}",
            err=True,
        )
    return detector


def _filter(
    detector: Detector,
    source: Source,
    folder: Path,
    how: str,
    options: dict[str, Any],
    run: Engine | None,
    *,
    raw_csv: bool,
) -> None:
    from outword.base.files import whole_file
    from outword.scoring.filtering import COUNTS, IMAGES, SCORES, Images, copy_kept, link_kept
    from outword.scoring.parts import Parts

    next(source.pieces(), None)  # what is wrong with it is said before a run has begun
    with Parts(folder / SCORES, "csv", about(detector, source, options), raw_csv=raw_csv) as parts:
        score_left(detector, source, parts, run=run)
        missed = 0
        if how != "list":
            images = Images(folder / IMAGES, detector.labels)
            missed = _tell(how, copy_kept(source, parts, images) if how == "copy" else link_kept(parts, images))
        tally = _write(detector, parts, folder, source.column)
        counts = tally.csv(raw=raw_csv)
        with whole_file(folder / COUNTS) as temporary:
            temporary.write_text(counts, encoding="utf-8")
    click.echo(counts, nl=False)
    told = f"kept {tally.kept.total():,} of {tally.rows:,} images, {tally.errors:,} errors, in {folder}"
    lost = f"; {missed:,} of the kept could not be read any more" if missed else ""
    click.echo(told + lost if tally.rows else "no images found", err=True)


def _tell(how: str, done: Iterator[Done]) -> int:
    """Go through what is done, and say what cannot be; gives the number of these."""
    missed = 0
    with Meter("images") as meter:
        for count, (row, error) in enumerate(done, start=1):
            meter(how, count, None)
            if error:
                missed += 1
                if missed <= SAID:
                    click.echo(f"warning: no {how} of {row.path!r}: {error.message}", err=True)
    return missed


def _write(detector: Detector, parts: Parts, folder: Path, column: str | None) -> Tally:
    """Write the list and the page, and count."""
    from outword.scoring.filtering import LIST, PAGE, Tally, is_kept, listing
    from outword.scoring.page import Borderline, write_page

    tally, sample, unlisted = Tally(detector.labels), Borderline(), 0
    total = parts.totals()["rows"]
    with listing(folder / LIST) as write, Meter("rows") as meter:
        for row in parts.rows():
            tally.add(row)
            if tally.rows % 1000 == 0:
                meter("count", tally.rows, total)
            sample.add(page_row(detector, row, None))
            if is_kept(row) and not write(row.path):
                unlisted += 1
                if unlisted <= SAID:
                    click.echo(f"warning: {row.path!r} is kept, but cannot stand in {LIST}", err=True)
    if unlisted:
        click.echo(f"{unlisted:,} of the kept are not in {LIST}: a path there is one line", err=True)
    sample.illustrate(partial(views, column=column))
    write_page(folder / PAGE, sample, title="outword: borderline cases", summary=page_summary(detector))
    return tally
