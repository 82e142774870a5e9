"""`outword bundle`: a detector as one ONNX file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from outword.base.wording import counted
from outword.cli.choices import Named
from outword.cli.options import trust_option
from outword.cli.progress import say, show


@click.command("bundle")
@click.argument("detector", type=click.Path())
@click.option("-o", "--output", required=True, type=click.Path(), help="The file to write, e.g. pets.onnx.")
@click.option(
    "--precision",
    type=click.Choice(["fp32", "fp16", "int8"]),
    default="fp32",
    show_default=True,
    help="How large matrices are stored: fp16 in half the space, int8 in a quarter.",
)
@click.option("--no-resize", is_flag=True, help="Leave resizing out: pixels come prepared, as the encoder wants them.")
@click.option("--json", "as_json", is_flag=True, help="Print the file's metadata as JSON.")
@click.option(
    "--encoder", type=Named("encoders"), help="Where its encoder is now, e.g. onnx:DIR.  [default: where it was]"
)
@trust_option
def command(
    detector: str,
    output: str,
    precision: Any,
    no_resize: bool,
    as_json: bool,
    encoder: str | None,
    trust_encoder: bool,
) -> None:
    """Write DETECTOR to one ONNX file: pixels in, score, verdict and label out, wherever onnxruntime runs.

    It holds resizing, image tower, vectors of labels and words, method and threshold. Needs the extra bundle, and no
    torch. Prints the path.

    \b
    Example:
      outword bundle pets.outword -o pets.onnx --precision int8
    """
    import outword

    loaded = outword.load(detector, encoder=encoder, trust_encoder=trust_encoder)
    about = outword.bundle(loaded, output, precision=precision, resize=not no_resize)
    size = Path(output).stat().st_size
    labels = counted(len(loaded.labels), "label")
    say(f"{labels}, {loaded.method}, threshold {float(about['threshold']):.4g}: {size / 1e6:.1f} MB in {precision}")
    show(json.dumps(about) if as_json else output)
