"""The names that encoders go by: those with short names, and the general forms for any model of a hub or a folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from outword.base.registry import Registry
from outword.errors import ParameterError

if TYPE_CHECKING:
    from outword.encoders.base import Encoder

# What makes an encoder, by its name or by how its name begins: called with the whole name, and with those options of
# `get_encoder` that were given. The entry point `mine` of another package makes what is called `mine:...`; one that
# is a module registers names as they are.
ENCODERS = Registry[Callable[..., "Encoder"]]("encoder", "outword.encoders", "outword list encoders", suffix=":")
_MINI_FLOAT = "bcc8a22f6722f2bcff9491bd38e4d566587b04fc4a4ddf5429638e1faf7def64"
PREFIXES = {  # the general forms, as they are written
    "open_clip:": "open_clip:ARCH/TAG, open_clip:ARCH@/path/weights.safetensors or open_clip:ARCH/TAG@/path",
    "hf:": "hf:ORG/NAME or hf:/path/to/folder",
    "onnx:": "onnx:/path/to/folder or onnx:ORG/NAME",
}


@dataclass(frozen=True)
class Known:
    """Facts about an encoder with a short name; `stands_for` is its general form, `repo` its place on the hub."""

    name: str
    about: str
    stands_for: str
    repo: str
    parameters: int
    dim: int
    side: int
    temperature: float
    licence: str
    source: str
    onnx: str  # its published export, of which nobody needs torch
    top1: float  # accuracy in percent of naming ImageNet's photos, as published by its makers: the order of "best"


_EXPORTS = {  # published exports of OpenAI's models, and the accuracy that OpenAI published
    "clip-vit-b-32": ("Xenova/clip-vit-base-patch32", 63.3),
    "clip-vit-b-16": ("Xenova/clip-vit-base-patch16", 68.3),
    "clip-vit-l-14": ("Xenova/clip-vit-large-patch14", 75.5),
    "clip-vit-l-14-336": ("Xenova/clip-vit-large-patch14-336", 76.6),
    "clip-rn50": ("immich-app/RN50__openai", 59.8),
}


def _openai(name: str, arch: str, weights: str, parameters: int, dim: int, side: int, about: str) -> Known:
    repo = f"timm/{weights}.openai"
    source = f"OpenAI CLIP (Radford et al., ICML 2021), github.com/openai/CLIP; {repo} on the hub"
    # OpenAI trained with a logit scale of at most 100, and all five ended there: the temperature is 0.01
    general = f"open_clip:{arch}/openai"
    onnx, top1 = _EXPORTS[name]
    return Known(
        name, f"CLIP, {about}", general, repo, parameters, dim, side, 0.01, "MIT", source, f"onnx:{onnx}", top1
    )


def _mobile(size: str, parameters: int, top1: float, about: str) -> Known:
    repo = f"timm/MobileCLIP2-{size.upper()}-OpenCLIP"
    source = f"MobileCLIP2 (Faghri et al., TMLR 2025), github.com/apple/ml-mobileclip; {repo} on the hub"
    return Known(
        name=f"mobileclip2-{size}",
        about=about,
        stands_for=f"open_clip:MobileCLIP2-{size.upper()}/dfndr2b",
        repo=repo,
        parameters=parameters,
        dim=512,
        side=256,
        temperature=0.01,
        licence="apple-amlr",
        source=source,
        onnx=f"onnx:plhery/mobileclip2-onnx/{size}",
        top1=top1,
    )


_OPENAI = (  # parameter counts and dimensions are checked by tools/check_architectures.py
    ("clip-vit-b-32", "ViT-B-32", "vit_base_patch32_clip_224", 151277313, 512, 224, "the quickest of the transformers"),
    ("clip-vit-b-16", "ViT-B-16", "vit_base_patch16_clip_224", 149620737, 512, 224, "the paper's main set-up"),
    ("clip-vit-l-14", "ViT-L-14", "vit_large_patch14_clip_224", 427616513, 768, 224, "larger and slower"),
    ("clip-vit-l-14-336", "ViT-L-14-336", "vit_large_patch14_clip_336", 427944193, 768, 336, "at a higher resolution"),
    ("clip-rn50", "RN50", "resnet50_clip", 102007137, 1024, 224, "a ResNet"),
)
_MORE = (
    _mobile("s0", 74_835_073, 71.5, "MobileCLIP2, small and quick; for research only"),
    _mobile("s2", 99_243_329, 77.2, "MobileCLIP2, larger; for research only"),
    Known(
        name="siglip2-b-16",
        about="SigLIP 2, many languages",
        stands_for="open_clip:ViT-B-16-SigLIP2/webli",
        repo="timm/ViT-B-16-SigLIP2",
        parameters=375_187_970,
        dim=768,
        side=224,
        temperature=1 / 112.67,
        licence="apache-2.0",
        source="SigLIP 2 (Tschannen et al., 2025); timm/ViT-B-16-SigLIP2 on the hub",
        onnx="onnx:onnx-community/siglip2-base-patch16-224-ONNX",
        top1=78.2,
    ),
)
KNOWN = {known.name: known for known in (*(_openai(*row) for row in _OPENAI), *_MORE)}
BEST = "best"  # the best of those that are on this machine


@dataclass(frozen=True)
class Parsed:
    """A name taken apart: `library` is mini, open_clip, hf, onnx or another package's; one without a colon is itself.

    `what` is a model or a path. `tag` and `file` belong to open_clip: which weights, by tag, by path, or a tag's
    weights that lie at a path.
    """

    library: str
    what: str = ""
    tag: str = ""
    file: str = ""


def canonical(name: str) -> str:
    """The same name with an absolute path, so that it means the same in another folder.

    >>> canonical("hf:google/siglip-base-patch16-224")
    'hf:google/siglip-base-patch16-224'
    """
    if not isinstance(name, str):
        raise ParameterError(f"an encoder is named by a string, got {name!r}", hint='see "outword list encoders"')
    head, mark, given = name.partition("@" if name.startswith("open_clip:") else ":")
    path = Path(given).expanduser()
    return f"{head}{mark}{path.resolve()}" if given and path.exists() else name


def named_now(name: str, fingerprint: str) -> str:
    """What an encoder is called now that had this name when something was made with it.

    >>> named_now("mini", _MINI_FLOAT), named_now("mini", "another")
    ('mini-float', 'mini')
    """
    return "mini-float" if fingerprint == _MINI_FLOAT else name


def parse(name: str) -> Parsed:
    """Take a name apart.

    >>> parse("clip-vit-b-16")
    Parsed(library='open_clip', what='ViT-B-16', tag='openai', file='')
    >>> parse("hf:google/siglip-base-patch16-224")
    Parsed(library='hf', what='google/siglip-base-patch16-224', tag='', file='')
    """
    library, colon, what = (KNOWN[name].stands_for if name in KNOWN else name).partition(":")
    if library + colon not in ENCODERS:
        raise ENCODERS.unknown(library + colon)
    if not colon:
        return Parsed(library)
    model, at, file = what.partition("@")
    arch, _, tag = model.partition("/")
    if not what or (library == "open_clip" and not (arch and (file if at else tag))):
        raise ParameterError(f"{name!r} is not whole", hint=f"write {PREFIXES.get(library + ':', library + ':NAME')}")
    return Parsed(library, arch, tag, file) if library == "open_clip" else Parsed(library, what)
