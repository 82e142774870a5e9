"""The lab's encoders: the small world's, `mini` in float32, a CLIP that says no; and a decoder that names words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from outword.base.extras import require
from outword.encoders.names import ENCODERS, parse
from outword.errors import ParameterError

if TYPE_CHECKING:
    from outword.encoders import Encoder, Resize
    from outword_lab.encoders.zoc_decoder import ZOCDecoder

FLOAT = "mini in float32, as it was up to 0.1; slower, and another encoder to detectors and stores"
CLIPN = 'a CLIP with a second text tower that says no; NAME is the path of its checkpoint, or of what "train-no" wrote'
WORLD = {  # they see the small rendered world (lab/docs/world.md) and nothing else
    "world-s": "embedded, for tests of methods: a small CLIP that sees a rendered world and nothing else",
    "world-m": "the same, larger",
    "world-m-96": "the same, at 96 x 96 pixels",
}


@ENCODERS.register("mini-float", FLOAT)
def _mini_float(name: str, device: str = "cpu", **options: Any) -> Encoder:
    if device != "cpu" or options:
        raise ParameterError(f"{name} runs on the CPU as it is, without options", hint="leave them out")
    from outword_lab.encoders.mini_float import MiniFloat

    return MiniFloat()


def _world(name: str, *, resize: Resize | None = None, **options: Any) -> Encoder:
    from outword_lab.encoders.world import World

    if resize not in (None, "bicubic"):
        raise ParameterError(f"{name} resizes as it was exported, got {resize}", hint="leave --resize out")
    return World(name, **options)


for _name, _about in WORLD.items():
    ENCODERS.register(_name, _about)(_world)


@ENCODERS.register("clipn:", CLIPN)
def _clipn(name: str, **options: Any) -> Encoder:
    require("torch", name)
    from outword_lab.encoders.clipn import load

    return load(name, Path(parse(name).what), **options)


@ENCODERS.register("vectors:", "a folder of vectors of photos and of texts, for measuring; it reads no photos")
def _vectors(name: str, device: str = "cpu", **options: Any) -> Encoder:
    if device != "cpu" or options:
        raise ParameterError(f"{name} has vectors alone, without options", hint="leave them out")
    from outword_lab.encoders.vectors import open_folder

    return open_folder(name)


def zoc_decoder(path: str | Path, tokenizer: str | Path, *, device: str = "cpu") -> ZOCDecoder:
    """The text decoder of ZOC's authors, from their checkpoint, as a source of words for `Detector.with_words`.

    Args:
        path: their file, `{"net": BertGenerationDecoder.state_dict(), ...}`, as torch saved it.
        tokenizer: a folder with its tokenizer, that of `google/bert_for_seq_generation_L-24_bbc_encoder`. Nothing is
            fetched.
        device: what it runs on.
    """
    for package in ("torch", "transformers"):
        require(package, "zoc_decoder", "hf")
    from outword_lab.encoders.zoc_decoder import load

    return load(Path(path), Path(tokenizer), device)
