"""`outword calibrate`: the threshold, from a few ID photos."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import click

from outword.cli.options import column_option, load_options
from outword.cli.progress import Progress, note_order, say, warn


@click.command("calibrate")
@click.argument("detector", type=click.Path())
@click.argument("photos", nargs=-1, required=True, type=click.Path())
@click.option(
    "--tpr", default=0.95, show_default=True, type=click.FloatRange(0, 1, min_open=True), help="Share of ID to accept."
)
@click.option("--method", default="quantile", show_default=True, type=click.Choice(["quantile", "conformal"]))
@click.option("-o", "--output", type=click.Path(), help="Where to write the result.  [default: DETECTOR itself]")
@click.option("--json", "as_json", is_flag=True, help="Print the threshold with its provenance as JSON.")
@column_option
@load_options()
def command(
    detector: str,
    photos: tuple[str, ...],
    tpr: float,
    method: Any,
    output: str | None,
    as_json: bool,
    column: str | None,
    options: dict[str, Any],
) -> None:
    """Fit the threshold of DETECTOR on PHOTOS that show its classes, and print it. Five photos are the least.

    PHOTOS are all that "outword score" takes: images, folders, lists, tars, Parquet, stores of "outword embed". A
    method that was fitted on photos (--id-images) needs others here, and refuses those.

    \b
    Example:
      outword calibrate pets.outword my-pets/ --tpr 0.95
    """
    from outword.detector.artifact import check_target, finite
    from outword.detector.loading import load
    from outword.maths.thresholds import fit_threshold
    from outword.scoring.stream import check_unfitted, open_source, score_source

    found = load(detector, **options)
    check_target(output or detector)
    note_order(found)
    if found.fitted_on is None:
        say("it does not say which photos it was fitted on: use others, or the threshold will be too high")
    source = open_source(found, photos, column=column)
    check_unfitted(found, source)
    scores: list[float] = []
    with Progress("images") as meter, found.isolated():
        for count, (row, _) in enumerate(score_source(found, source), start=1):
            meter("calibrate", count, source.total())
            if row.score is None:
                say(f"left out {row.path!r}: {row.error}")
            else:
                scores.append(row.score)
    threshold = found.calibration_ = fit_threshold(scores, tpr, method)
    found.save(output or detector)
    if threshold.warning:
        warn(f"warning: {threshold.warning}")
    click.echo(json.dumps(finite(asdict(threshold))) if as_json else f"{threshold.value:.6g}")
