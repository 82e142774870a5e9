"""`outword compare`: every method that applies, on the same embeddings."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from outword.cli.choices import Named, named
from outword.cli.options import (
    corpus_option,
    encoder_options,
    id_images_option,
    kinds_option,
    own_column_option,
    words_option,
)
from outword.cli.progress import Progress, say, show, warn

if TYPE_CHECKING:
    from outword.choosing.compare import Row

TITLES = {
    "method": "method",
    "ood": "OOD set",
    "auroc": "AUROC",
    "aupr_id": "AUPR (ID)",
    "aupr_ood": "AUPR (OOD)",
    "fpr95_id": "FPR95 (ID)",
    "fpr95_ood": "FPR95 (OOD)",
    "fit_seconds": "fit s",
    "score_seconds": "score s",
}


@click.command("compare")
@click.argument("labels", type=click.Path())
@own_column_option
@click.option("--id", "inside", multiple=True, required=True, type=click.Path(), help="ID photos, or a store. Repeat.")
@click.option("--ood", "outside", multiple=True, required=True, type=click.Path(), help="An OOD set. Repeat for more.")
@id_images_option
@click.option("--methods", metavar="A,B,C", help="See: outword list methods  [default: every one that applies]")
@click.option("--encoder", default="mini", show_default=True, type=Named("encoders"), help="See: outword list encoders")
@corpus_option
@click.option("--words", type=click.Path(), help="A word list of yours, one a line, for the methods that want one.")
@words_option
@kinds_option
@click.option("--by-set", is_flag=True, help="One row for each method and OOD set, not their mean.")
@click.option("--format", "kind", default="table", show_default=True, type=click.Choice(["table", "csv", "md", "json"]))
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@encoder_options
def command(
    labels: str,
    label_column: str | None,
    inside: tuple[str, ...],
    outside: tuple[str, ...],
    id_images: tuple[str, ...],
    methods: str | None,
    encoder: str,
    corpus: str | None,
    words: str | None,
    words_per_image: str | None,
    kinds: str | None,
    by_set: bool,
    kind: str,
    as_json: bool,
    runtime: Mapping[str, Any],
) -> None:
    """Tell the methods apart on your own photos: AUROC, AUPR, FPR95 and seconds of each.

    LABELS are what "outword fit" takes: a file, a folder of class folders, - for standard input, or "cat, dog".

    Each photo is encoded once and scored by all; all that "outword score" reads is taken. A row is printed when it is
    ready, those of quick methods first and of those that learn prompts last; all inputs are checked before anything is
    encoded. AUPR and FPR95 come in both conventions: ID or OOD as the positives. What is compared are embeddings: odin
    takes part without its step of the pixels, epsilon=0. The first run encodes the words of each method, which takes
    minutes; --methods leaves some out. Seconds are those of the method itself, on vectors. Figures are in percent, but
    fractions in CSV and JSON.

    \b
    Example:
      outword compare labels.txt --id pets/ --ood textures/ --ood places/ --id-images train/
    """
    import outword
    from outword.encoders import get_encoder
    from outword.maths.methods import DETECTORS
    from outword.words.labels import read_labels

    names = read_labels(labels, column=label_column, say=say)
    chosen = None if methods is None else named(methods, DETECTORS, "method", "outword list methods")
    named_words = outword.read_words_per_image(words_per_image) if words_per_image else None
    meter = Progress("items")
    found = outword.compare(
        names,
        inside,
        outside,
        encoder=get_encoder(encoder, **runtime),
        methods=chosen,
        id_images=id_images,
        corpus=corpus,
        words=words,
        words_per_image=named_words,
        kinds=kinds,
        report=meter,
        tell=_tell,
    )
    rows = _metered(found.by_set() if by_set else ([row] for row in found), meter)
    shown = {"method": [*found.recipes], "ood": [one.name for one in found.sets[1:]] if by_set else []}
    for line in _lines("json" if as_json else kind, rows, shown):
        show(line)


def _metered(found: Iterator[list[Row]], meter: Progress) -> Iterator[Row]:
    """The rows to print; the bar is on the screen only while the next ones are made."""
    while True:
        with meter:
            rows = next(found, None)
        if rows is None:
            return
        yield from rows


def _tell(line: str) -> None:
    (warn if line.startswith("warning") else say)(line)


def _lines(kind: str, rows: Iterable[Row], shown: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Lines of a "table", "csv", "md" or "json", each as soon as its row is there; those of JSON together at the end.

    `shown` has the methods and OOD sets that rows may have, which tell how wide the columns of a table must be.
    """
    names = [name for name in TITLES if name != "ood" or kind in ("csv", "json") or len(shown["ood"]) > 1]
    found = ([getattr(row, name) for name in names] for row in rows)
    if kind == "json":
        yield json.dumps([dict(zip(names, values, strict=True)) for values in found], indent=2)
        return
    for number, values in enumerate(found):
        if number == 0:
            yield _line(kind, names, names if kind == "csv" else [TITLES[name] for name in names], shown)
        if number == 0 and kind == "md":
            yield _line(kind, names, ["---"] * len(names), shown)
        cells = [_cell(value, name) for name, value in zip(names, values, strict=True)]
        yield _line(kind, names, values if kind == "csv" else cells, shown)


def _line(kind: str, names: Sequence[str], cells: Sequence[Any], shown: Mapping[str, Sequence[str]]) -> str:
    if kind == "csv":
        from outword.base.cells import csv_text

        text = io.StringIO()
        safe = (csv_text(cell) if isinstance(cell, str) else cell for cell in cells)
        csv.writer(text, lineterminator="").writerow(safe)
        return text.getvalue()
    if kind == "md":
        return f"| {' | '.join(cells)} |"
    widths = {name: max(map(len, [TITLES[name], *shown.get(name, ["100.00"])])) for name in names}
    return "  ".join(
        f"{cell:{'<' if name in shown else '>'}{widths[name]}}" for name, cell in zip(names, cells, strict=True)
    )


def _cell(value: Any, name: str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.2f}" if name.endswith("seconds") else f"{100 * value:.2f}"
