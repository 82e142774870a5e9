"""`outword compare`: every method that applies, on the same embeddings."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outword.cli.choices import Named
from outword.cli.options import corpus_option, id_images_option, resize_option, runtime_options
from outword.cli.progress import Progress, console
from outword.errors import InputError, unknown

if TYPE_CHECKING:
    from outword.benchmark.run.compare import Chunk, Entrant, Row

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
WIDTH = 160  # room for the table: a narrow terminal folds its lines, but no figure is cut off
NAMED = 3  # unreadable photos that are named


@click.command("compare")
@click.argument("labels", type=click.Path())
@click.option("--id", "inside", multiple=True, required=True, type=click.Path(), help="ID photos, or a store. Repeat.")
@click.option("--ood", "outside", multiple=True, required=True, type=click.Path(), help="An OOD set. Repeat for more.")
@id_images_option
@click.option("--methods", metavar="A,B,C", help="See: outword list methods  [default: every one that applies]")
@click.option("--encoder", default="mini", show_default=True, type=Named("encoders"), help="See: outword list encoders")
@corpus_option
@click.option("--words", type=click.Path(), help="A word list of yours, one a line, for the methods that want one.")
@click.option("--by-set", is_flag=True, help="One row for each method and OOD set, not their mean.")
@click.option("--format", "kind", default="table", show_default=True, type=click.Choice(["table", "csv", "md", "json"]))
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@resize_option
@runtime_options
def command(
    labels: str,
    inside: tuple[str, ...],
    outside: tuple[str, ...],
    id_images: tuple[str, ...],
    methods: str | None,
    encoder: str,
    corpus: str | None,
    words: str | None,
    by_set: bool,
    kind: str,
    as_json: bool,
    resize: Any,
    runtime: dict[str, Any],
) -> None:
    """Tell the methods apart on your own photos: AUROC, AUPR, FPR95 and seconds of each.

    Each photo is encoded once and scored by all; the sets are all that "outword score" takes. AUPR and FPR95 come
    in both conventions: ID or OOD as the positives. What is compared are embeddings: odin takes part without its step
    of the pixels, epsilon=0. The first run encodes the words of each method, which takes minutes; --methods leaves
    some out. Seconds are those of the method itself, on vectors. Figures are in percent, but fractions in CSV and JSON.

    \b
    Example:
      outword compare labels.txt --id pets/ --ood textures/ --ood places/ --id-images train/
    """
    from outword.benchmark.run.compare import compare, enter, means, read_set
    from outword.encoders import get_encoder
    from outword.maths.methods import Need
    from outword.vectors.id_images import read_id_images
    from outword.vectors.store import is_store
    from outword.words.corpora import get_corpus
    from outword.words.labels import read_labels

    names, chosen = read_labels(labels), _chosen(methods)
    _check_paths([*inside, *outside, *id_images])
    for given in filter(None, (corpus, words)):
        get_corpus(given)
    tower = get_encoder(encoder, resize=resize, **runtime)
    _warn_of_overlap(inside, id_images)
    store = next(filter(is_store, [*inside, *outside]), None)
    left_out: list[tuple[str, str]] = []
    with Progress("images") as meter:
        known = read_id_images(tower, id_images, [*names], with_classes=False, report=meter) if id_images else None
    with Progress("words") as meter:
        entrants, _ = enter(
            names,
            tower,
            chosen,
            corpus=corpus,
            words=words,
            id_images=known,
            store=store,
            report=meter,
            on_left_out=_tell_lack,
        )
    _tell(entrants)
    patches = any(Need.PATCHES in entrant.vectors.wants() for entrant in entrants)
    with Progress("images") as meter:

        def images(task: str, paths: Sequence[str]) -> Iterator[Chunk]:
            told = partial(meter, task, total=None)
            return read_set(tower, paths, patches=patches, left_out=left_out, report=told)

        sets = {name: images(name, [path]) for name, path in _set_names(outside).items()}
        try:
            rows = compare(entrants, images("ID", inside), sets)
        finally:
            _tell_left_out(left_out)
    _show(rows if by_set else means(rows), "json" if as_json else kind)


def _tell_lack(method: str, reason: str) -> None:
    console().print(f"left out: {method}: {reason}", markup=False, soft_wrap=True)


def _tell(entrants: Sequence[Entrant]) -> None:
    """Say what is special about the methods that take part."""
    from outword.benchmark.run.compare import SEED

    if not entrants:
        raise InputError("there must be a method that applies, got none", hint="see what each of them lacks, above")
    for entrant in entrants:
        if entrant.vectors.sees_order:
            console().print(
                f"{entrant.name} learns from the images that it scores: ID and OOD images come as one stream, shuffled "
                f"by the seed {SEED}, afresh for each OOD set",
                markup=False,
                soft_wrap=True,
            )


def _tell_left_out(images: Sequence[tuple[str, str]]) -> None:
    say = console().print
    for path, reason in images[:NAMED]:
        say(f"left out {path!r}: {reason}", markup=False, soft_wrap=True)
    if len(images) > NAMED:
        say(f"and {len(images) - NAMED:,} more")


def _chosen(methods: str | None) -> list[str]:
    from outword.maths.methods import DETECTORS

    if methods is None:
        return list(DETECTORS)
    names = list(dict.fromkeys(name.strip() for name in methods.split(",") if name.strip()))
    if not names:
        raise InputError("--methods must name at least one method, got none", hint='see "outword list methods"')
    for name in names:
        if name not in DETECTORS:
            raise unknown("method", name, DETECTORS, "outword list methods")
    return names


def _check_paths(paths: Sequence[str]) -> None:
    """Raise for a path that leads nowhere, before anything is encoded."""
    from outword.photos.sources.patterns import is_there

    for path in paths:
        if not is_there(path):
            raise InputError(f"there is nothing at {path}", hint="check the path")


def _set_names(paths: Sequence[str]) -> dict[str, str]:
    """OOD sets by the last part of their path; by the whole of it where two would be called the same."""
    last = [Path(path).absolute().name for path in paths]
    return {name if last.count(name) == 1 else path: path for name, path in zip(last, paths, strict=True)}


def _warn_of_overlap(inside: Sequence[str], id_images: Sequence[str]) -> None:
    tested, fitted = ([Path(path).resolve() for path in paths] for paths in (inside, id_images))
    if any(a == b or a in b.parents or b in a.parents for a in tested for b in fitted):
        console().print(
            "warning: --id and --id-images share photos: the methods that are fitted on them look better than they are",
            style="yellow",
            soft_wrap=True,
        )


def _show(rows: Sequence[Row], kind: str) -> None:
    if kind == "json":
        click.echo(json.dumps([asdict(row) for row in rows], indent=2))
        return
    names = [name for name in TITLES if name != "ood" or len({row.ood for row in rows}) > 1 or kind == "csv"]
    cells = [[_cell(getattr(row, name), name) for name in names] for row in rows]
    if kind == "csv":
        from outword.scoring.rows import csv_text

        text = io.StringIO()
        values = ([getattr(row, name) for name in names] for row in rows)
        safe = ([csv_text(value) if isinstance(value, str) else value for value in line] for line in values)
        csv.writer(text, lineterminator="\n").writerows([names, *safe])
        click.echo(text.getvalue(), nl=False)
    elif kind == "md":
        lines = [[TITLES[name] for name in names], ["---"] * len(names), *cells]
        click.echo("\n".join(f"| {' | '.join(line)} |" for line in lines))
    else:
        from rich.console import Console
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in names:
            table.add_column(TITLES[name], justify="left" if name in ("method", "ood") else "right", no_wrap=True)
        for line in cells:
            table.add_row(*line)
        Console(highlight=False, width=WIDTH).print(table, markup=False)


def _cell(value: Any, name: str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.2f}" if name.endswith("seconds") else f"{100 * value:.2f}"
