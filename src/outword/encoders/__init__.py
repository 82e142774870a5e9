"""Encoders by name: `get_encoder("mini")` is embedded and works offline; CLIP and others come from a hub or folder."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

from outword.base.extras import need
from outword.encoders import hub
from outword.encoders.base import Coverage, Encoder, check_batch_size
from outword.encoders.names import ENCODERS, canonical, parse
from outword.errors import ParameterError

__all__ = ["ENCODERS", "Coverage", "Encoder", "get_encoder"]
Resize = Literal["bicubic", "bilinear"]
Precision = Literal["fp32", "fp16", "bf16"]


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

    Args:
        name: see `outword list encoders`: "mini", "clip-vit-b-16", "open_clip:ARCH/TAG", "hf:ORG/NAME", "hf:/path",
            "onnx:/path".
        resize: how images are resized; by default as the model's own configuration says. "bilinear" is what the
            paper's released code does with CLIP.
        device: "cpu", "cuda", "cuda:1", "mps"; by default CUDA where there is some, else the CPU. What was exported
            runs on "cpu" (onnxruntime, the default) or "openvino".
        precision: by default fp16 on CUDA and fp32 elsewhere; what was exported has its own.
        batch_size: images that go through together on a GPU; by default what suits it. On the CPU it changes no bit.
        download: whether weights that are not on this machine may be fetched; if not, that is an error.
    """
    for option, value in (("resize", resize), ("device", device), ("precision", precision)):
        if not isinstance(value, str | None):
            raise ParameterError(f"{option} must be a string, got {value!r}", hint="leave it out")
    check_batch_size(batch_size)
    name = canonical(name)
    with nullcontext() if download or parse(name).library in ("mini", "onnx") else hub.closed(name):
        return _get(name, resize, device, precision, batch_size)


@lru_cache(maxsize=4)
def _get(
    name: str, resize: Resize | None, device: str | None, precision: Precision | None, batch_size: int | None
) -> Encoder:
    parsed = parse(name)
    if resize not in (None, "bicubic", "bilinear"):
        raise ParameterError(f"resize must be bicubic or bilinear, got {resize!r}", hint="leave it out")
    if parsed.library == "mini":
        if device not in (None, "cpu") or resize or precision or batch_size:
            raise ParameterError("mini runs on the CPU as it is, without options", hint="leave them out")
        from outword.encoders.mini.encoder import Mini

        return Mini()
    if parsed.library == "onnx":
        from outword.encoders.onnx.encoder import OnnxEncoder

        folder = Path(parsed.what)
        exported = OnnxEncoder(folder, name=name, device=device, precision=precision, batch_size=batch_size)
        if resize not in (None, exported.card["preprocess"]["interpolation"]):
            hint = f"leave --resize out, or export it again with --resize {resize}"
            raise ParameterError(f"{name} was exported with another resize than {resize}", hint=hint)
        return exported
    need("torch", name, "hf" if parsed.library == "hf" else "clip")
    from outword.encoders.torch.models import model_of
    from outword.encoders.torch.towers import Towers

    model = model_of(parsed)
    if resize:
        model = replace(model, preprocess=replace(model.preprocess, interpolation=resize))
    options = {"resize": resize} if resize else {}
    return Towers(
        model,
        name=name,
        options=options,
        prompts="released",
        device=device,
        precision=precision,
        batch_size=batch_size,
    )
