"""Encoders by name: `get_encoder("mini")` is embedded and works offline; CLIP and others come from a hub or folder."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache
from inspect import signature
from pathlib import Path
from typing import Any, Literal

from outword.base.extras import require
from outword.base.registry import FUNCTIONS
from outword.encoders import hub
from outword.encoders.base import Coverage, Encoder
from outword.encoders.names import ENCODERS, KNOWN, canonical, parse
from outword.encoders.present import resolved
from outword.errors import ParameterError

__all__ = ["ENCODERS", "Coverage", "Encoder", "get_encoder"]
Resize = Literal["bicubic", "bilinear"]
Precision = Literal["fp32", "fp16", "bf16", "int8"]


def get_encoder(
    name: str = "mini",
    *,
    resize: Resize | None = None,
    device: str | None = None,
    precision: Precision | None = None,
    batch_size: int | None = None,
    download: bool = True,
) -> Encoder:
    """The encoder called `name`; loaded once a process.

    A short name, such as "clip-vit-b-16", means the model in torch where that is installed, else its published export
    to ONNX (docs/encoders.md).

    Args:
        name: see `outword list encoders`: "mini", "clip-vit-b-16", "open_clip:ARCH/TAG", "hf:ORG/NAME", "hf:/path",
            "onnx:/path", "onnx:ORG/NAME"; "best" is the best that is on this machine.
        resize: how images are resized; by default as the model's own configuration says. "bilinear" is what the
            paper's released code does with CLIP.
        device: "cpu", "cuda", "cuda:1", "mps"; by default CUDA where there is some, else the CPU. What was exported
            runs on "cpu" (onnxruntime, the default) or "openvino".
        precision: by default fp16 on CUDA and fp32 elsewhere; what was exported has its own, and of a published export
            int8 is taken where there is one.
        batch_size: images that go through together on a GPU; by default what suits it. On the CPU it changes no bit.
        download: whether weights that are not on this machine may be fetched; if not, that is an error.
    """
    for option, value in (("resize", resize), ("device", device), ("precision", precision)):
        if not isinstance(value, str | None):
            raise ParameterError(f"{option} must be a string, got {value!r}", hint="leave it out")
    if batch_size is not None and (not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1):
        raise ParameterError(f"batch_size must be at least 1, got {batch_size!r}", hint="leave it out")
    if resize not in (None, "bicubic", "bilinear"):
        raise ParameterError(f"resize must be bicubic or bilinear, got {resize!r}", hint="leave it out")
    name = canonical(name)
    name = resolved(name, precision) if device in (None, "cpu") else name  # exports run on no other device
    parsed = parse(name)
    own = parsed.library == "mini" or (parsed.library == "onnx" and Path(parsed.what).is_dir())
    open_hub = download or own
    with nullcontext() if open_hub else hub.closed(name):
        return _get(name, resize=resize, device=device, precision=precision, batch_size=batch_size)


def __getattr__(name: str) -> Any:
    if name == "zoc_decoder":  # comes with `outword-lab`
        return FUNCTIONS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@lru_cache(maxsize=4)
def _get(name: str, **options: Any) -> Encoder:
    make = ENCODERS[name if ":" not in name else f"{parse(name).library}:"]
    given = {option: value for option, value in options.items() if value is not None}
    try:
        signature(make).bind(name, **given)
    except TypeError as error:
        raise ParameterError(f"{name} cannot be made with these options: {error}", hint="leave them out") from None
    return make(name, **given)


@ENCODERS.register("mini", "embedded, offline; knows ImageNet names, their synonyms and broad parents")
def _mini(name: str, device: str = "cpu", **options: Any) -> Encoder:
    if device != "cpu" or options:
        raise ParameterError(f"{name} runs on the CPU as it is, without options", hint="leave them out")
    from outword.encoders.mini.encoder import Mini

    return Mini()


def _towers(name: str, *, resize: Resize | None = None, **options: Any) -> Encoder:
    parsed = parse(name)
    require("torch", name, "hf" if parsed.library == "hf" else "clip")
    if options.get("precision") == "int8":
        raise ParameterError(f"{name} runs on torch in fp32, fp16 or bf16, got int8", hint="export it: onnx:DIR")
    from outword.encoders.torch.models import model_of
    from outword.encoders.torch.towers import Towers

    model = model_of(parsed)
    if resize:
        model = replace(model, preprocess=replace(model.preprocess, interpolation=resize))
    return Towers(model, name=name, options={"resize": resize} if resize else {}, prompts="released", **options)


for _known in KNOWN.values():
    ENCODERS.register(_known.name, _known.about)(_towers)
ENCODERS.register("open_clip:", "any model of open_clip, with the weights of a tag or a file")(_towers)
ENCODERS.register("hf:", "any image-text model of transformers, from the hub or a folder")(_towers)


@ENCODERS.register("onnx:", 'what "outword export" wrote, or a published export, in a folder or on the hub')
def _onnx(name: str, *, resize: Resize | None = None, precision: Precision | None = None, **options: Any) -> Encoder:
    from outword.encoders.onnx import layouts
    from outword.encoders.onnx.encoder import OnnxEncoder

    what, named = layouts.split(parse(name).what)
    if precision and named and precision != named:
        raise ParameterError(f"{name} is in {named}, got precision {precision}", hint="leave --precision out")
    folder = Path(what)
    if not folder.is_dir() or (not (folder / layouts.OWN).is_file() and layouts.here(what, precision or named)):
        found = layouts.fetched(what, precision or named)
        if found.own is None:
            return _published(f"onnx:{what}@{found.precision}", found, resize=resize, **options)
        folder = found.own
    exported = OnnxEncoder(folder, name=name, precision=precision, **options)
    if resize not in (None, exported.card["preprocess"]["interpolation"]):
        hint = f"leave --resize out, or export it again with --resize {resize}"
        raise ParameterError(f"{name} was exported with another resize than {resize}", hint=hint)
    return exported


def _published(name: str, found: Any, *, device: str | None = None, **options: Any) -> Encoder:
    from outword.encoders.onnx.published import PublishedEncoder

    if device not in (None, "cpu"):
        raise ParameterError(f"a published export runs on the CPU, got device {device!r}", hint="leave it out")
    return PublishedEncoder(found, name=name, **options)
