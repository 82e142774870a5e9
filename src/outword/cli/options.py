"""Options that several verbs share: which encoder, and what it runs on."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from outword.cli.choices import Named

Command = Callable[..., Any]


resize_option = click.option(
    "--resize",
    type=click.Choice(["bicubic", "bilinear"]),
    help="How images are resized.  [default: as the model's configuration says]",
)
corpus_option = click.option(
    "--corpus", type=Named("corpora"), help="A name, or a text file.  [default: the method's own, else wordnet]"
)
id_images_option = click.option(
    "--id-images",
    multiple=True,
    type=click.Path(),
    help="Photos of the classes, all that score takes; the nearest folder is the label. May be repeated.",
)
raw_csv_option = click.option(
    "--raw-csv",
    is_flag=True,
    help="CSV for programs only: without the ' before names and labels that a spreadsheet would take for formulas.",
)
column_option = click.option(
    "--column", help="Of Parquet and data sets: the column with photos or paths.  [default: image, else path]"
)
encoder_override_option = click.option(
    "--encoder", type=Named("encoders"), help="Where its encoder is now, e.g. onnx:DIR.  [default: where it was]"
)
trust_option = click.option(
    "--trust-encoder", "trust", is_flag=True, help="Fetch the encoder from the hub though a file names it, not you."
)


def runtime_options(command: Command) -> Command:
    """`--device`, `--precision` and `--batch-size`; the verb gets those that were given as the dictionary `runtime`."""

    @click.option(
        "--device", metavar="NAME", help="cpu, cuda, cuda:1, mps; of onnx: openvino.  [default: cuda if any, else cpu]"
    )
    @click.option(
        "--precision", type=click.Choice(["fp32", "fp16", "bf16"]), help="[default: fp16 on cuda, fp32 elsewhere]"
    )
    @click.option(
        "--batch-size",
        type=click.IntRange(min=1),
        help="Images that go through a GPU together.  [default: automatic]",
    )
    @wraps(command)
    def with_runtime(*args: Any, device: str | None, precision: str | None, batch_size: int | None, **rest: Any) -> Any:
        given = {"device": device, "precision": precision, "batch_size": batch_size}
        return command(*args, runtime={key: value for key, value in given.items() if value is not None}, **rest)

    return with_runtime


def engine_options(command: Command) -> Command:
    """`--engine` and `--address`; the verb gets them as the dictionary `engine`."""

    @click.option(
        "--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True, help="What runs it."
    )
    @click.option(
        "--address", help="Of a Ray cluster to join.  [default: $RAY_ADDRESS, else one is started and shut down]"
    )
    @wraps(command)
    def with_engine(*args: Any, engine: str, address: str | None, **rest: Any) -> Any:
        return command(*args, engine={"engine": engine, "address": address}, **rest)

    return with_engine


def options_of(encoder: str | None, runtime: dict[str, Any]) -> dict[str, Any]:
    """Those of `outword.load` that were given."""
    return {**({"encoder": encoder} if encoder else {}), **runtime}
