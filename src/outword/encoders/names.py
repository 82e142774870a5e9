"""The names that encoders go by: the paper's five, and the general forms for any model of a hub or a folder."""

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
    "onnx:": "onnx:/path/to/folder",
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


def _openai(name: str, arch: str, weights: str, parameters: int, dim: int, side: int, about: str) -> Known:
    repo = f"timm/{weights}.openai"
    source = f"OpenAI CLIP (Radford et al., ICML 2021), github.com/openai/CLIP; {repo} on the hub"
    # OpenAI trained with a logit scale of at most 100, and all five ended there: the temperature is 0.01
    return Known(name, f"CLIP, {about}", f"open_clip:{arch}/openai", repo, parameters, dim, side, 0.01, "MIT", source)


_OPENAI = (  # parameter counts and dimensions are checked by tools/check_architectures.py
    ("clip-vit-b-32", "ViT-B-32", "vit_base_patch32_clip_224", 151277313, 512, 224, "the quickest of the transformers"),
    ("clip-vit-b-16", "ViT-B-16", "vit_base_patch16_clip_224", 149620737, 512, 224, "the paper's main set-up"),
    ("clip-vit-l-14", "ViT-L-14", "vit_large_patch14_clip_224", 427616513, 768, 224, "larger and slower"),
    ("clip-vit-l-14-336", "ViT-L-14-336", "vit_large_patch14_clip_336", 427944193, 768, 336, "at a higher resolution"),
    ("clip-rn50", "RN50", "resnet50_clip", 102007137, 1024, 224, "a ResNet"),
)
KNOWN = {row[0]: _openai(*row) for row in _OPENAI}


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
