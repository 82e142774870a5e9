"""`outword filter`: keep the photos that show one of the classes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outword.base.wording import counted
from outword.cli.failures import check_outcome
from outword.cli.fit_verb import check_either, fit_plainly
from outword.cli.options import (
    column_option,
    engine_options,
    fixed_option,
    judge_options,
    label_column_option,
    labels_option,
    raw_csv_option,
    with_file,
    with_refining,
    without_encoder,
    words_option,
)
from outword.cli.progress import Progress, print_table, say, show
from outword.errors import InputError

if TYPE_CHECKING:
    from outword.detector.detector import Detector
    from outword.words.labels import Label


@click.command("filter")
@click.argument("sources", nargs=-1, required=True, type=click.Path())
@labels_option
@label_column_option
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
@click.option(
    "--drop-duplicates", is_flag=True, help="Of photos that are the same, keep the first; the rest are listed."
)
@raw_csv_option
@column_option
@words_option
@fixed_option
@engine_options
@judge_options
def command(
    sources: tuple[str, ...],
    labels: str | None,
    label_column: str | None,
    detector: str | None,
    output: str,
    raw_csv: bool,
    words_per_image: str | None,
    fixed_threshold: bool,
    options: Mapping[str, Any],
    engine: Mapping[str, Any],
    **given: Any,
) -> None:
    """Keep the photos of SOURCES that are in-distribution, and print how many are kept of each label.

    SOURCES are all that "outword score" takes. The folder gets images/LABEL/ with the photos, kept.txt with their
    paths, counts.csv, borderline.html with the photos nearest to the threshold, and scores/ with the rows of all; with
    --labels also the detector that was made of them, and with --drop-duplicates duplicates.csv, with what was dropped
    and what it is the same as. Exits with 1 if no images were found, or none of them could be read.

    \b
    Example:
      outword filter photos/ --labels labels.txt -o kept/
      outword filter "shards/{000..099}.tar" --detector pets.outword -o kept/ --engine ray
    """
    from outword.detector.loading import load
    from outword.scoring.filtering import LINES, filter
    from outword.words.labels import read_labels

    check_either("filter", detector, labels, " photos/ -o kept/", detector_as="--detector")
    here = options if detector else without_encoder(options)
    names = read_labels(labels, column=label_column, say=say) if labels is not None else {}

    def judge(place: Path) -> Detector:
        """The detector, once all else is checked and the folder is ours."""
        if detector:
            loaded = with_refining(load(detector, **options), fixed=fixed_threshold)
            return _checked(with_file(loaded, words_per_image), detector)
        made = with_refining(_made(place, names, str(labels), options), fixed=fixed_threshold)
        progress.restart()
        return with_file(made, words_per_image)

    with redirect_stdout(sys.stderr), Progress("images") as progress:  # Ray prints there when a process dies
        given |= engine
        tally = filter(judge, sources, output, raw_csv=raw_csv, options=here, report=progress, say=say, **given)
    if sys.stdout is not None and sys.stdout.isatty():
        print_table(LINES, tally.lines(), right=LINES[-1:])
    else:
        show(tally.csv(raw=raw_csv), nl=False)
    counts = f"kept {tally.kept.total():,} of {counted(tally.rows, 'image')}, {counted(tally.errors, 'error')}"
    counts += f", in {Path(output)}"
    if given["drop_duplicates"]:
        counts += f"; {tally.duplicates:,} {'was' if tally.duplicates == 1 else 'were'} the same as others"
    lost = f"; {tally.missed:,} of the kept could not be read any more" if tally.missed else ""
    if tally.rows:
        say(counts + lost)
    check_outcome(sources, tally.rows, tally.errors)


def _made(path: Path, names: Mapping[str, Label], labels: str, options: Mapping[str, Any]) -> Detector:
    """The detector of an earlier run in the same folder, if it is for these labels; else a new one."""
    from outword.detector.loading import load
    from outword.encoders.names import canonical

    if not path.exists():
        made = fit_plainly(labels, names, options)
        made.save(path)
        return _checked(made, str(path))
    found = load(path, **without_encoder(options))
    prompts = {name: label.prompt for name, label in names.items() if label.prompt}
    typed = [label.text for label in names.values()]  # its kinds too
    made_for = found.labels, found.card.label_prompts, [meaning.text for meaning in found.card.meanings]
    if made_for != (list(names), prompts, typed):
        raise InputError(f"{path} was made for other labels than those of {labels}", hint="choose another folder")
    encoder = options.get("encoder")
    if encoder and canonical(encoder) != (used := found.card.encoder.name):
        raise InputError(f"{path} was made with the encoder {used}, not {encoder}", hint="choose another folder")
    return _checked(found, str(path))


def _checked(detector: Detector, path: str) -> Detector:
    """Raise unless the detector can filter."""
    from outword.scoring.filtering import check_judge

    check_judge(detector, path)
    return detector
