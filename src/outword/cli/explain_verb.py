"""`outword explain`: why a photo is in or out, and which mined words are likely positives."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from outword.cli.options import elsewhere_option, runtime_options, trust_option
from outword.cli.progress import console

if TYPE_CHECKING:
    from outword.detector.detector import Detector
    from outword.detector.judge import Explanation


@click.command("explain")
@click.argument("detector", type=click.Path())
@click.argument("photos", nargs=-1, type=click.Path())
@click.option("--top", default=5, show_default=True, type=click.IntRange(1, 1000), help="How many labels and words.")
@click.option("--audit", is_flag=True, help="List the mined words closest to a label: likely false negatives.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@elsewhere_option
@trust_option
@runtime_options
def command(
    detector: str,
    photos: tuple[str, ...],
    top: int,
    audit: bool,
    as_json: bool,
    encoder: str | None,
    trust: bool,
    runtime: dict[str, Any],
) -> None:
    """Say why each of PHOTOS is in or out: nearest labels and wild words with their share of the mass.

    \b
    Example:
      outword explain pets.outword photo.jpg
      outword explain pets.outword --audit --top 20
    """
    from outword.detector.artifact import finite
    from outword.detector.loading import load

    if not photos and not audit:
        raise click.UsageError("name a photo, or ask for --audit")
    found = load(detector, encoder=encoder, trust_encoder=trust, **runtime)
    if audit:
        _audit(found, top, as_json)
    for photo in photos:
        told = found.explain(photo, top)
        if as_json:
            click.echo(json.dumps(finite({"path": photo, **asdict(told)})))
        else:
            _tell(photo, told)


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
