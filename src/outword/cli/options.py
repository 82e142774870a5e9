"""Options that several verbs share: which encoder, and what it runs on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from outword.base.files import parse_json
from outword.cli.choices import Named
from outword.errors import ParameterError

if TYPE_CHECKING:
    from outword.detector.detector import Detector

Command = Callable[..., Any]
Option = Callable[[Command], Command]

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
kinds_option = click.option(
    "--kinds",
    type=click.Choice(["auto", "known", "all", "off"]),
    help="What stands for a label beside its name: its kinds in WordNet, those that the encoder knows, or all.  "
    "[default: the method's own]",
)
labels_option = click.option(
    "--labels",
    metavar="LABELS",
    type=click.Path(),
    help='Class names in place of a detector: "cat, dog", a file as for fit, or - for standard input.',
)
raw_csv_option = click.option(
    "--raw-csv",
    is_flag=True,
    help="CSV for programs only: without the ' before names and labels that a spreadsheet would take for formulas.",
)
label_column_option = click.option(
    "--label-column", help="Of labels in a table: the column with their names.  [default: guessed, and said]"
)
own_column_option = click.option(  # for verbs that have no other column
    "--column",
    "--label-column",
    "label_column",
    help="Of LABELS in a table: their column.  [default: guessed, and said]",
)
column_option = click.option(
    "--column", help="Of Parquet and data sets: the column with photos or paths.  [default: image, else path]"
)
words_option = click.option(
    "--words-per-image",
    type=click.Path(),
    help='What each photo shows, for methods that want to know (zoc): JSON lines, {"path": ..., "words": [...]}.',
)
verbose_option = click.option(
    "-v", "--verbose", is_flag=True, help="Also say what runs where, and what decodes photos."
)
trust_option = click.option(
    "--trust-encoder", is_flag=True, help="Fetch the encoder from the hub though a file names it, not you."
)
_RUNTIME: dict[str, Option] = {
    "device": click.option(
        "--device", metavar="NAME", help="cpu, cuda, cuda:1, mps; of onnx: openvino.  [default: cuda if any, else cpu]"
    ),
    "precision": click.option(
        "--precision",
        type=click.Choice(["fp32", "fp16", "bf16", "int8"]),
        help="[default: fp16 on cuda, fp32 elsewhere; of a published export int8]",
    ),
    "batch_size": click.option(
        "--batch-size", type=click.IntRange(min=1), help="Images that go through a GPU together.  [default: automatic]"
    ),
}


fixed_option = click.option(
    "--fixed-threshold",
    is_flag=True,
    help="Judge by the detector's own threshold; do not refine it by the photos that are scored.",
)


def together(into: str, **options: Option) -> Option:
    """Options by name; the verb gets those that were given as one mapping, `into`, which cannot be changed."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_dictionary(**given: Any) -> Any:
            own = {name: given.pop(name) for name in options}
            some = {name: value for name, value in own.items() if value is not None}
            return command(**given, **{into: MappingProxyType(some)})

        wrapped: Command = with_dictionary
        for option in reversed(options.values()):
            wrapped = option(wrapped)
        return wrapped

    return decorate


def load_options(about: str = "Where its encoder is now, e.g. onnx:DIR.  [default: where it was]") -> Option:
    """What `outword.load` takes, as the mapping `options`; `about` is the help of `--encoder`."""
    encoder = click.option("--encoder", type=Named("encoders"), help=about)
    return together("options", encoder=encoder, trust_encoder=trust_option, **_RUNTIME)


judge_options = load_options(  # for verbs that take a detector or labels
    "With --labels what encodes, else where the detector's encoder is now.  [default: mini, or where it was]"
)
encoder_options = together("runtime", resize=resize_option, **_RUNTIME)  # what `get_encoder` takes
engine_options = together(
    "engine",
    engine=click.option(
        "--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True, help="What runs it."
    ),
    address=click.option(
        "--address", help="Of a Ray cluster to join.  [default: $RAY_ADDRESS, else one is started and shut down]"
    ),
)


def without_encoder(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `outword.load` for a detector that was made of labels here.

    It has the encoder that the user named, if any, so that this may be downloaded wherever the detector is loaded.
    """
    rest = {name: value for name, value in options.items() if name != "encoder"}
    return {**rest, "trust_encoder": options["trust_encoder"] or "encoder" in options}


def read_setting(option: str, text: str, example: str) -> tuple[str, Any]:
    """The name and the value of `NAME=VALUE`: `tau=0.4` to ("tau", 0.4)."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ParameterError(f"{option} takes NAME=VALUE, got {text!r}", hint=f"for example {option} {example}")
    try:
        return name, parse_json(value)
    except ValueError:
        return name, value


def with_refining(detector: Detector, *, fixed: bool) -> Detector:
    """The detector, with a threshold that stays as it is where `--fixed-threshold` was given."""
    return detector.fixed() if fixed else detector


def with_file(detector: Detector, path: str | None) -> Detector:
    """The detector with the file of `--words-per-image`, if one is named; an error for a method that wants none."""
    import outword
    from outword.maths.methods import Need

    if path is None:
        return detector
    if Need.WORDS not in detector.scorer.wants():
        raise ParameterError(f"{detector.method} does not look at {Need.WORDS.value}", hint="leave them out")
    return detector.with_words(outword.read_words_per_image(path))
