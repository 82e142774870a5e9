"""`outword explain`: why a photo is in or out, and which mined words are likely positives."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from outword.cli.options import column_option, encoder_override_option, runtime_options, trust_option
from outword.cli.progress import console
from outword.errors import ImageError, InputError

if TYPE_CHECKING:
    from outword.detector.detector import Detector
    from outword.detector.judge import Explanation


@click.command("explain")
@click.argument("detector", type=click.Path())
@click.argument("sources", nargs=-1, type=click.Path())
@click.option("--top", default=5, show_default=True, type=click.IntRange(1, 1000), help="How many labels and words.")
@click.option("--audit", is_flag=True, help="List the mined words closest to a label: likely false negatives.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, a line for each photo.")
@column_option
@encoder_override_option
@trust_option
@runtime_options
def command(
    detector: str,
    sources: tuple[str, ...],
    top: int,
    audit: bool,
    as_json: bool,
    column: str | None,
    encoder: str | None,
    trust: bool,
    runtime: dict[str, Any],
) -> None:
    """Say why each photo of SOURCES is in or out: nearest labels and wild words with their share of the mass.

    SOURCES are all that "outword score" takes, but for stores, which have no photos. A photo that cannot be read is
    named on stderr, and the others are explained all the same.

    \b
    Example:
      outword explain pets.outword photo.jpg
      outword explain pets.outword shard.tar --json
      outword explain pets.outword --audit --top 20
    """
    from outword.detector.artifact import finite
    from outword.detector.loading import load
    from outword.scoring.stream import open_source

    if not sources and not audit:
        raise click.UsageError("name a photo, or ask for --audit")
    found = load(detector, encoder=encoder, trust_encoder=trust, **runtime)
    if audit:
        _audit(found, top, as_json)
    source = open_source(found, sources, column=column)
    if source.stores:
        raise InputError(f"{source.stores[0].path} is a store, which has no photos", hint="name the photos themselves")
    explained = 0
    for photo in source.items():
        try:
            told = found.explain(photo, top)
        except ImageError as error:
            click.echo(f"error: {error.message}", err=True)
            continue
        explained += 1
        if as_json:
            click.echo(json.dumps(finite({"path": os.fspath(photo), **asdict(told)})))
        else:
            _tell(os.fspath(photo), told)
    if sources and not explained:
        raise InputError("there is no photo that can be read", hint="check the path")


def _tell(photo: str, told: Explanation) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    out = Console(highlight=False)
    threshold = "none" if told.threshold is None else f"{told.threshold:.4g}"
    used = "".join(f", {name} {value:.4g}" for name, value in told.in_use.items())
    out.print(Text(f"{photo}: {told.verdict}, score {told.score:.4f}, threshold {threshold}{used}"))
    table = Table(
        "share of its group", "kind", "name", "known to the encoder", box=None, pad_edge=False, header_style="bold"
    )
    for label, share in told.labels:
        table.add_row(f"{share:.1%}", "label", Text(label), Text(told.coverage.get(label, "")))
    for word, share in told.words:
        table.add_row(f"{share:.1%}", "wild word", Text(word), "")
    out.print(table)


def _audit(detector: Detector, top: int, as_json: bool) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = detector.audit(top)
    if as_json:
        click.echo(json.dumps([{"word": w, "label": y, "cosine": c} for w, y, c in rows]))
        return
    table = Table("cosine", "wild word", "nearest label", box=None, pad_edge=False, header_style="bold")
    for word, label, cosine in rows:
        table.add_row(f"{cosine:.3f}", Text(word), Text(label))
    Console(highlight=False).print(table)
    corpus = detector.card.get("corpus")
    if corpus and corpus["left_out"]:
        left = corpus["left_out"]
        console().print(f"left out because they equal a label: {', '.join(left[:20])} ({len(left)})", markup=False)
