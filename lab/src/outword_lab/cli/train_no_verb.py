"""`outword train-no`: a text tower that says no, for the method clipn."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from outword.cli.choices import Named
from outword.cli.options import encoder_options
from outword.cli.progress import Progress, say, show


@click.command("train-no")
@click.argument("captions", type=click.Path(path_type=Path))
@click.option("--encoder", required=True, type=Named("encoders"), help="A CLIP. See: outword list encoders")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="FILE.safetensors to write.  [default: CAPTIONS.safetensors]",
)
@click.option("--epochs", default=10, show_default=True, help="How often each pair is seen.")
@click.option("--batch", default=512, show_default=True, help="Pairs that are compared with each other.")
@click.option("--rate", default=3e-4, show_default=True, help="Of learning, at the beginning; it goes down to 0.")
@click.option("--seed", default=0, show_default=True, help="Of the order of the pairs.")
@encoder_options
def command(
    captions: Path,
    encoder: str,
    output: Path | None,
    epochs: int,
    batch: int,
    rate: float,
    seed: int,
    runtime: Mapping[str, Any],
) -> None:
    """Train a second text tower that says no, on photos with captions, and print the encoder that it makes.

    CAPTIONS are JSON lines, {"image": "a.jpg", "text": "a cat on a mat"}; paths begin at the folder of the file. The
    encoder must be a CLIP of open_clip or transformers, or of the small world; it stays as it is. What was learned is
    kept after each epoch: the same command goes on where it was killed.

    The authors of CLIPN used about 2.9 million pairs, 10 epochs, batches of 512 on each of 4 GPUs. No figure is claimed
    for a tower of your own: compare it, on photos that you know.

    \b
    Example:
      outword train-no captions.jsonl --encoder clip-vit-b-16 -o no.safetensors
      outword fit labels.txt --encoder clipn:no.safetensors --method clipn
    """
    from outword.base.extras import require
    from outword.encoders import get_encoder

    require("torch", "train-no")
    from outword_lab.learning.no_tower import Course, train_no

    output = output or captions.with_suffix(".safetensors")
    with Progress("pairs") as progress:
        loaded = get_encoder(encoder, **runtime)
        pairs = train_no(captions, loaded, output, Course(epochs, batch, rate, seed), progress, say)
    left_out = f", {len(pairs.unreadable):,} photos could not be read" if pairs.unreadable else ""
    say(f"trained on {len(pairs.texts):,} captions of {len(pairs.vectors):,} photos{left_out}")
    show(f"clipn:{output}")
