"""`outword export`: an encoder as a folder that runs without torch."""

from __future__ import annotations

import json
from typing import Any

import click

from outword.cli.choices import Named
from outword.cli.options import resize_option
from outword.cli.progress import say, show


@click.command("export")
@click.argument("encoder", type=Named("encoders"))
@click.option("-o", "--output", required=True, type=click.Path(), help="The folder to write.")
@click.option(
    "--precision",
    type=click.Choice(["fp32", "fp16", "int8"]),
    default="fp32",
    show_default=True,
    help="fp16 halves the size; int8 is under a third of it, and quicker.",
)
@resize_option
@click.option("--force", is_flag=True, help="Write it even if it comes out far from the original (cosine below 0.99).")
@click.option("--json", "as_json", is_flag=True, help="Print the folder's card as JSON.")
def command(encoder: str, output: str, precision: Any, force: bool, as_json: bool, resize: Any) -> None:
    """Write ENCODER to a folder: both towers, tokenizer and preprocessing. Needs torch now, but never again.

    The folder is compared with torch before it is kept. Prints its path; use it as onnx:PATH wherever an encoder is
    named.

    \b
    Example:
      outword export clip-vit-b-16 -o clip-int8 --precision int8
      outword fit labels.txt --encoder onnx:clip-int8
    """
    import outword

    def step(line: str) -> None:
        say(f"{line} ...")

    card = outword.export(encoder, output, precision=precision, resize=resize, force=force, say=step)
    for tower, cosine in card["cosine"].items():
        say(f"{tower}: cosine to torch {cosine['min']:.5f} at least, {cosine['mean']:.5f} on average, of {cosine['n']}")
    total = sum(file["bytes"] for file in card["files"].values())
    say(f"{total / 1e6:,.1f} MB in {precision}")
    show(json.dumps(card) if as_json else output)
