"""`outword explain`: why a photo is in or out, and which mined words are likely positives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from outword.base.html import visible
from outword.base.prediction import HEADER
from outword.base.terms import IN, UNCALIBRATED
from outword.cli.failures import check_outcome
from outword.cli.fit_verb import find_judge, split_detector
from outword.cli.options import (
    column_option,
    judge_options,
    label_column_option,
    labels_option,
    with_file,
    words_option,
)
from outword.cli.progress import print_table, say, show
from outword.errors import ImageError, InputError, OutwordError

if TYPE_CHECKING:
    from outword.detector.detector import Detector
    from outword.detector.judge import Explanation
    from outword.encoders.reading import Photo


@click.command("explain")
@click.argument("sources", nargs=-1, metavar="[DETECTOR] [SOURCES]...", type=click.Path())
@labels_option
@label_column_option
@click.option("--top", default=5, show_default=True, type=click.IntRange(1, 1000), help="How many labels and words.")
@click.option("--audit", is_flag=True, help="List the mined words closest to a label: likely false negatives.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, a line for each photo.")
@column_option
@words_option
@judge_options
def command(
    sources: tuple[str, ...],
    labels: str | None,
    label_column: str | None,
    top: int,
    audit: bool,
    as_json: bool,
    column: str | None,
    words_per_image: str | None,
    options: Mapping[str, Any],
) -> None:
    """Say why each photo of SOURCES is in or out: how well it fits, what it looks like, and which words decided.

    SOURCES are all that "outword score" takes, stores of "outword embed" too. A photo that cannot be read is a line
    with its path and error, and the others are explained all the same. Exits with 1 if no photo could be read, or if
    there is nothing at one of SOURCES.

    \b
    Example:
      outword explain pets.outword photo.jpg
      outword explain --labels "cat, dog" photo.jpg
      outword explain pets.outword shard.tar --json
      outword explain pets.outword --audit --top 20
    """
    from outword.maths.methods import Need
    from outword.scoring.stream import open_source
    from outword.vectors.reader import read

    detector, sources = split_detector("explain", sources, labels)
    if not sources and not audit:
        raise InputError("there is nothing to explain", hint="name a photo, or ask for --audit")
    judge, _ = find_judge(detector, labels, label_column, options)
    found = with_file(judge, words_per_image)
    if audit:
        _audit(found, top, as_json)
    by_names = bool({Need.LABELS, Need.ID_LABELS} & {*found.scorer.wants()})
    source, n_photos, n_errors = open_source(found, sources, column=column), 0, 0
    for chunk in read(source.jobs(), found.encoder.loader if source.has_photos else None, 1):
        for photo, value in chunk.pairs():
            n_photos += 1
            told = _explain(found, photo, value, top)
            if isinstance(told, OutwordError):
                n_errors += 1
                wrong = told.message.removeprefix(f"{photo.name!r}: ")
                line = json.dumps({"path": photo.name, "error": wrong})
                show(line if as_json else visible(f"{photo.name}: error: {wrong}"))
            elif as_json:
                show(json.dumps(_values(told)))
            else:
                _tell(told, by_names)
    if passed_over := source.passed_over.told():
        say(passed_over)
    if sources:
        check_outcome(sources, n_photos, n_errors)


def _explain(detector: Detector, photo: Photo, value: Any, top: int) -> Explanation | OutwordError:
    """The explanation of a photo, decoded or encoded, or what is wrong with it."""
    if photo.error:
        return photo.error
    from outword.detector.judge import explain

    try:
        told = explain(detector, value, top, name=photo.name)
    except ImageError as error:  # nobody has words for it
        return error
    return replace(told, notes=photo.look.notes)


def _values(told: Explanation) -> dict[str, Any]:
    """What the line of a photo has that could be read: the columns of the table, and what an explanation adds."""
    from outword.detector.artifact import finite

    values = finite({"fits": told.fits, **asdict(told)})
    del values["error"]
    columns = {name: values[name] for name in HEADER if name in values}
    return columns | values


def _tell(told: Explanation, by_names: bool) -> None:
    seen = f", as {told.named}" if told.verdict == IN else f", nearest to {told.named}"
    note = f" ({UNCALIBRATED})" if told.basis == "formula" and told.verdict != UNCALIBRATED else ""
    threshold = "none" if told.threshold is None else f"{told.threshold:.4g}"
    used = "".join(f", {name} {value:.4g}" for name, value in told.in_use.items())
    lines = [
        f"{told.path}: {told.verdict}{note}{seen}",
        told.fits,
        f"looks like: {', '.join(told.looks_like)}" if told.looks_like else "",
        f"the photo is {', '.join(told.notes)}" if told.notes else "",
        f"score {told.score:.4f}, threshold {threshold} ({told.cut}){used}",
        "what decided:" if by_names else "the nearest names, which have no part in the score:",
    ]
    for line in filter(None, lines):
        show(visible(line))
    rows = [(f"{share:.1%}", "label", label, told.coverage.get(label, "")) for label, share in told.labels]
    rows += [(f"{share:.1%}", "wild word", word, "") for word, share in told.words]
    print_table(("share", "", "name", "known to the encoder"), rows)


def _audit(detector: Detector, top: int, as_json: bool) -> None:
    from outword.detector.audit import audit

    rows = audit(detector, top)
    if as_json:
        show(json.dumps([{"word": w, "label": y, "cosine": c} for w, y, c in rows]))
        return
    if not detector.wild:
        say(f"{detector.method} has no wild words: there is nothing to list")
        return
    cells = [(f"{cosine:.3f}", word, label) for word, label, cosine in rows]
    print_table(("cosine", "wild word", "nearest label"), cells)
    corpus = detector.card.corpus
    if corpus is not None and (left := corpus.left_out):
        say(f"left out because they are about a label: {', '.join(left[:20])} ({len(left)})")
