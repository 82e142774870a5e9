"""`outword calibrate`: the threshold, from a few ID photos."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outword.base.terms import IN, OUT
from outword.base.wording import be, counted
from outword.cli.options import column_option, load_options, with_file, words_option
from outword.cli.progress import Progress, note_order, say, show, warn

if TYPE_CHECKING:
    from outword.detector.calibration import Scores
    from outword.detector.detector import Detector
    from outword.encoders.reading import Chunk
    from outword.vectors.source import Source


@click.command("calibrate")
@click.argument("detector", type=click.Path())
@click.argument("photos", nargs=-1, required=True, type=click.Path())
@click.option(
    "--tpr", default=0.95, show_default=True, type=click.FloatRange(0, 1, min_open=True), help="Share of ID to accept."
)
@click.option("--method", default="quantile", show_default=True, type=click.Choice(["quantile", "conformal"]))
@click.option(
    "--not",
    "others",
    multiple=True,
    type=click.Path(),
    help="Photos of other things, all that score takes. May be repeated.",
)
@click.option(
    "--marks",
    type=click.Path(),
    help='Which of PHOTOS are of the classes, and which are not: a CSV file with "path" and "mark" (in, out), such as '
    "the page of serve exports.",
)
@click.option("-o", "--output", type=click.Path(), help="Where to write the result.  [default: DETECTOR itself]")
@click.option("--json", "as_json", is_flag=True, help="Print the threshold with its provenance as JSON.")
@column_option
@words_option
@load_options()
def command(
    detector: str,
    photos: tuple[str, ...],
    tpr: float,
    method: Any,
    others: tuple[str, ...],
    marks: str | None,
    output: str | None,
    as_json: bool,
    column: str | None,
    words_per_image: str | None,
    options: Mapping[str, Any],
) -> None:
    """Fit the threshold of DETECTOR on PHOTOS that show its classes, and print it. Five photos are the least.

    PHOTOS are all that "outword score" takes: images, folders, lists, tars, Parquet, stores of "outword embed". A
    method that was fitted on photos (--id-images) needs others here, and refuses those. The same photo counts once.

    With --not, the share --tpr of PHOTOS is accepted as before, as few of the other photos as that allows, and then as
    many of PHOTOS as possible. With --marks, PHOTOS are where the marked photos are, and the others do not count.

    \b
    Example:
      outword calibrate pets.outword my-pets/ --tpr 0.95
      outword calibrate pets.outword my-pets/ --not walls/ --not cars/
      outword calibrate detector.outword.zip photos/ --marks marks.csv -o pets.outword
    """
    from outword.detector.artifact import check_target, finite
    from outword.detector.calibration import Scores, calibrate
    from outword.detector.loading import load
    from outword.errors import InputError

    if marks and others:
        raise InputError("--marks says which photos are of other things, and --not too", hint="give one of the two")
    if output is None and Path(detector).is_file():
        raise InputError(f"{detector} stays as it is", hint="say where to write the result: -o NAME.outword")
    found = with_file(load(detector, **options), words_per_image)
    check_target(output or detector)
    note_order(found)
    if found.fitted_on is None:
        say("it does not say which photos it was fitted on: use others, or the threshold will be too high")
    source, rest = _sources(found, photos, others, marks, column)
    inside = _scores(found, source, "calibrate")
    outside = _scores(found, rest, "photos of other things") if rest else Scores()
    for one in (source, rest if others else None):  # both are of the same folders where there are marks
        if one and (passed_over := one.passed_over.told()):
            say(passed_over)
    if rest and not outside.scores:
        which = "of --not" if others else "that is marked out"
        raise InputError(f"no photo {which} can be read", hint="name photos of other things, or leave it away")
    threshold, warnings = calibrate(found, inside, outside, tpr, method)
    before, found.thresholds = found.threshold, replace(found.thresholds, calibrated=threshold)
    found.save(output or detector)
    _tell_cut(output or detector, threshold.value, before, inside.once)
    if outside.once:
        _tell_others(threshold.value, inside.once, outside.once)
    for warning in warnings:
        warn(f"warning: {warning}")
    show(json.dumps(finite(asdict(threshold))) if as_json else f"{threshold.value:.6g}")


def _sources(
    detector: Detector, photos: Sequence[str], others: Sequence[str], marks: str | None, column: str | None
) -> tuple[Source, Source | None]:
    """The photos of the classes, and those of other things, if any: by what was named, or by marks."""
    from outword.scoring.marks import find_marked, read_marks
    from outword.scoring.stream import open_source
    from outword.vectors.source import find_names

    if marks is None:
        rest = open_source(detector, others, column=column) if others else None
        return open_source(detector, photos, column=column), rest
    marked = find_marked(read_marks(marks), find_names(photos, column=column))
    inside, outside = (open_source(detector, photos, column=column, only=marked[m].__contains__) for m in (IN, OUT))
    return inside, outside if marked[OUT] else None


def _scores(detector: Detector, source: Source, task: str) -> Scores:
    """The scores of the photos that can be read."""
    from outword.detector.calibration import score_photos
    from outword.vectors.reader import read

    loader, size = (detector.encoder.loader, detector.encoder.chunk) if source.has_photos else (None, 0)
    done = 0
    with Progress("images") as meter:

        def tell(chunk: Chunk) -> None:
            nonlocal done
            for name, error in chunk.unreadable:
                say(f"left out {name!r}: {error}")
            done += len(chunk.photos)
            meter(task, done, source.total())

        found = score_photos(detector, read(source.jobs(), loader, size, hashed=True), tell)
    if found.n_repeats:
        say(f"{found.n_repeats:,} of {len(found.scores):,} photos are there more than once, and count once")
    return found


def _tell_cut(path: str, cut: float, before: float | None, inside: Sequence[float]) -> None:
    """Say what was written, and what has changed."""
    was, n_in = "" if before is None else f" (it was {before:.4g})", sum(score >= cut for score in inside)
    passed = f"{n_in:,} of your {counted(len(inside), 'photo')} {be(n_in)} in"
    say(f"{path}: a photo is in if its score is {cut:.4g} or more{was}: {passed}")


def _tell_others(cut: float, inside: Sequence[float], outside: Sequence[float]) -> None:
    """Say how many photos of other things are accepted, and what would keep them out."""
    let_in = sum(score >= cut for score in outside)
    say(f"{let_in:,} of {len(outside):,} photos of other things are accepted")
    above = sum(score > max(outside) for score in inside)
    low = math.floor(100 * above / (len(inside) + 1)) / 100  # enough for either method
    if let_in and low:
        say(f"hint: --tpr {low:.2f} keeps them all out")
