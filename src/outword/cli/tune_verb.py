"""`outword tune`: the best detector for photos of yours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from outword.cli.choices import Named, named
from outword.cli.options import corpus_option, encoder_options, kinds_option, own_column_option
from outword.cli.progress import Progress, print_table, say, show, warn

if TYPE_CHECKING:
    from outword.choosing.tune import Tuned

TITLES = ("method", "AUROC", "TPR %", "TNR %")


@click.command("tune")
@click.argument("labels", type=click.Path())
@click.option("--id", "inside", multiple=True, required=True, type=click.Path(), help="Photos of the classes. Repeat.")
@click.option(
    "--ood",
    "outside",
    multiple=True,
    type=click.Path(),
    help="Photos of other things, counted together. Repeat.  [default: the encoder's reference]",
)
@click.option(
    "-o", "--output", default="best.outword", show_default=True, type=click.Path(), help="Where to write the detector."
)
@click.option(
    "--tpr",
    type=click.FloatRange(0, 1, min_open=True),
    help="The share of photos of the classes to accept.  [default: balances both errors]",
)
@click.option(
    "--methods",
    metavar="A,B,C",
    help="See: outword list methods  [default: every one that applies, but those that learn prompts]",
)
@click.option("--encoder", default="mini", show_default=True, type=Named("encoders"), help="See: outword list encoders")
@corpus_option
@click.option("--words", type=click.Path(), help="A word list of yours, one a line, for the methods that want one.")
@kinds_option
@own_column_option
@click.option(
    "--json", "as_json", is_flag=True, help="Print what was found as JSON: all methods, threshold, intervals."
)
@encoder_options
def command(
    labels: str,
    label_column: str | None,
    inside: tuple[str, ...],
    outside: tuple[str, ...],
    output: str,
    methods: str | None,
    encoder: str,
    as_json: bool,
    runtime: Mapping[str, Any],
    **options: Any,
) -> None:
    """Make the best detector for your photos: try the methods, choose one, calibrate it, and say what to expect.

    LABELS are as for "outword fit", photos all that "outword score" takes; ten of a kind are the least, a hundred tell
    much more. Photos in folders with the names of labels let methods in that learn the classes from photos. Without
    --ood, the ordinary photos that are the encoder's reference stand in for other things.

    The photos are dealt into five folds: those of each are judged by the method that was chosen, fitted and cut on the
    others. Their shares are what to expect of new photos like these: TPR of yours that are in, TNR of other things that
    are out. Prints the path of the detector; the table and the reason are on stderr. With another encoder than mini the
    first run encodes the words of each method, which takes minutes; --methods leaves some out. See docs/tune.md.

    \b
    Example:
      outword tune labels.txt --id my-photos/ -o best.outword
      outword tune labels.txt --id my-photos/ --ood other-photos/ --tpr 0.95
    """
    from outword.choosing.tune import tune
    from outword.detector.artifact import check_target
    from outword.encoders import get_encoder
    from outword.maths.methods import DETECTORS
    from outword.words.corpora import get_corpus
    from outword.words.labels import read_labels

    names = read_labels(labels, column=label_column, say=say)
    chosen = None if methods is None else named(methods, DETECTORS, "method", "outword list methods")
    check_target(output)
    for given in filter(None, (options["corpus"], options["words"])):
        get_corpus(given)
    used = get_encoder(encoder, **runtime)
    with Progress("items") as meter:
        found = tune(names, inside, outside, encoder=used, methods=chosen, report=meter, tell=say, **options)
    found.detector.save(output)
    _tell(found)
    show(json.dumps({"path": output, **_facts(found)}, indent=2) if as_json else output)


def _tell(found: Tuned) -> None:
    """The table of the methods, the reason, and what to beware of, on stderr."""
    rows = [(one.name, f"{one.auroc:.4f}", f"{100 * one.tpr:.1f}", f"{100 * one.tnr:.1f}") for one in found.candidates]
    print_table(TITLES, rows, right=TITLES[1:], err=True)
    say("(each method by itself; what to expect, below, also counts that one had to be chosen)")
    if found.stand_in:
        say(f"no photos of other things were given: {found.tnr.n:,} ordinary photos without your classes stand in")
    say(found.reason)
    for warning in found.warnings:
        warn(f"warning: {warning}")


def _facts(found: Tuned) -> dict[str, Any]:
    from outword.choosing.folds import FOLDS
    from outword.detector.artifact import finite

    detector = found.detector
    assert detector.calibration_ is not None
    return {
        "method": found.candidates[0].name,
        "threshold": finite(asdict(detector.calibration_)),
        "expected": {"tpr": asdict(found.tpr), "tnr": asdict(found.tnr)},
        "stand_in": found.stand_in,
        "folds": FOLDS,
        "agreed": found.agreed,
        "reason": found.reason,
        "warnings": found.warnings,
        "candidates": [asdict(one) for one in found.candidates],
    }
