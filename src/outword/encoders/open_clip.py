"""Models of open_clip: an architecture with the weights of a tag or a file, or a folder with `open_clip_config.json`.

Reference: Ilharco et al., OpenCLIP, github.com/mlfoundations/open_clip.
"""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor

from outword.encoders import hub
from outword.encoders.doors import need
from outword.encoders.names import KNOWN, Parsed
from outword.encoders.preprocess import Preprocess
from outword.encoders.texts import Ids
from outword.encoders.towers import Model
from outword.errors import InputError, MissingExtraError, ParameterError, unknown
from outword.files import sha256_bytes

CONFIG = "open_clip_config.json"


@dataclass(frozen=True)
class Place:
    """Where a model is: its name for open_clip, the file with its weights, and what its tag says of it."""

    model: str
    weights: Path
    tag: dict[str, Any] = field(default_factory=dict)
    licence: str = "not stated"
    source: str = ""


def find(parsed: Parsed) -> Place:
    """An architecture with the weights of a tag or a file."""
    return _of_file(parsed.what, parsed.file) if parsed.file else _of_tag(parsed.what, parsed.tag)


def _of_tag(arch: str, tag: str) -> Place:
    """The weights of a tag, fetched from the hub if need be."""
    library = need("open_clip", f"open_clip:{arch}/{tag}")
    known = library.get_pretrained_cfg(_known_arch(library, arch), tag)
    if not known:
        tags = library.list_pretrained_tags_by_model(arch)
        error = unknown(f"weights of {arch}", tag, tags, "")
        guess = error.hint.partition(" see ")[0] if "mean" in error.hint else ""
        raise ParameterError(error.message, hint=f"{guess} {arch} has {', '.join(tags) or 'none'}".strip())
    repo, _, name = known["hf_hub"].rpartition("/")
    names = [name.rsplit(".", 1)[0] + ".safetensors", name] if name else [*_DEFAULT_NAMES]
    quick = "-quickgelu" if known.get("quick_gelu") and not arch.endswith("-quickgelu") else ""
    instead = (
        f'where the hub can be reached, run "hf download {repo} {names[0]}", copy the file here, and say '
        f"--encoder open_clip:{arch}{quick}@/path/{names[0]}"
    )
    weights = hub.fetch(repo, names, instead)
    listed = [k for k in KNOWN.values() if k.stands_for == f"open_clip:{arch.removesuffix('-quickgelu')}/{tag}"]
    if listed:
        return Place(arch, weights, known, listed[0].licence, listed[0].source)
    return Place(arch, weights, known, hub.licence(weights.parent / "README.md"), f"{repo} on the hub")


def _of_file(arch: str, file: str) -> Place:
    """An architecture of open_clip with weights of your own; images are prepared as its tags say."""
    library = need("open_clip", f"open_clip:{arch}@{file}")
    path, arch = Path(file), _known_arch(library, arch)
    if not path.is_file():
        raise InputError(f"{file} is not a file", hint="name the file with the weights, open_clip:ARCH@/path/to/it")
    tags = [library.get_pretrained_cfg(arch, tag) for tag in library.list_pretrained_tags_by_model(arch)]
    ways = {json.dumps({key: tag[key] for key in _WAY}) for tag in tags}
    return Place(arch, path, json.loads(ways.pop()) if len(ways) == 1 else {}, source="a local file")


def vocabulary(arch: str) -> list[Path]:
    """The files of a tokenizer that is not open_clip's own, fetched from the hub if need be."""
    library = need("open_clip", f"open_clip:{arch}")
    repo = _config(library, arch)["text_cfg"].get("hf_tokenizer_name")
    if not repo:
        return []
    instead = f'where the hub can be reached, run "hf download {repo}", and copy its folder into the hub\'s cache here'
    folder = hub.snapshot(repo, lambda _: ("tokenizer.json", "*.model"), instead)
    return sorted(path for path in folder.iterdir() if path.suffix in (".json", ".model", ".txt"))


def in_folder(folder: Path, source: str) -> Place:
    """A folder with `open_clip_config.json` and weights, as `open_clip.push_to_hf_hub` writes it."""
    weights = sorted(folder.glob("*.safetensors")) or sorted([*folder.glob("*.bin"), *folder.glob("*.pt*")])
    if not weights:
        raise InputError(f"{folder} has no weights (*.safetensors)", hint="copy them there too")
    preferred = [path for path in weights if path.name in _DEFAULT_NAMES]
    card = folder / "README.md"
    return Place(f"local-dir:{folder}", (preferred or weights)[0], licence=hub.licence(card), source=source)


def load(place: Place) -> Model:
    """Build the network, put the weights into it, and read the rest from its configuration."""
    library = need("open_clip", place.model)
    module, config = _build(library, place)
    tokenizer = _tokenizer(library, place.model)
    visual = module.visual
    pool = getattr(module, "text_pool_type", None) or getattr(getattr(module, "text", None), "pool_type", "")
    text, causal = _text(module)
    ends: dict[Any, int | None] = {
        "argmax": getattr(tokenizer, "eot_token_id", None),
        "eos": config.get("text_cfg", {}).get("eos_id", 2),
    }
    dim = _dim(text, tokenizer.context_length)
    return Model(
        module=module,
        image=_image(visual),
        text=text,
        patches=_patches(visual),
        tokenize=lambda texts: _tokenize(tokenizer, texts),
        count=lambda words: _count(tokenizer, words),
        tokenizer=tokenizer,
        pad=getattr(getattr(tokenizer, "tokenizer", None), "pad_token_id", 0) or 0,
        end=ends.get(pool) if causal else None,
        preprocess=_preprocess(place, visual.preprocess_cfg),
        dim=dim,
        temperature=math.exp(-module.logit_scale.item()),
        digest=sha256_bytes(json.dumps([hub.digest(place.weights), config], sort_keys=True).encode()),
        licence=place.licence,
        source=place.source,
    )


_WAY = ("mean", "std", "interpolation", "resize_mode")  # what a tag says of images
_DEFAULT_NAMES = ("open_clip_model.safetensors", "open_clip_pytorch_model.bin")


def _known_arch(library: Any, arch: str) -> str:
    if arch not in library.list_models():
        raise unknown("architecture of open_clip", arch, library.list_models(), "open_clip.list_models()")
    return arch


def _build(library: Any, place: Place) -> tuple[Any, dict[str, Any]]:
    """The network with its weights, and its configuration; safetensors, or torch.load with weights_only."""
    config = _config(library, place.model)
    quick = bool(place.tag.get("quick_gelu") or config.get("quick_gelu"))
    local = place.model.startswith("local-dir:")
    try:
        if place.weights.suffix != ".safetensors":
            torch.load(
                place.weights, map_location="meta", weights_only=True
            )  # its own words are clearer than the library's
        module = library.create_model(
            place.model,
            pretrained=None if local else str(place.weights),
            force_quick_gelu=quick,
            weights_only=True,
            require_pretrained=True,
        )
    except (SafetensorError, pickle.UnpicklingError, EOFError, OSError, RuntimeError, ValueError, TypeError) as error:
        raise _refused(place, error) from None
    return module, {**config, "quick_gelu": quick}


def _config(library: Any, model: str) -> dict[str, Any]:
    try:
        config = library.get_model_config(model)
    except (OSError, ValueError) as error:
        raise InputError(f"{model.removeprefix('local-dir:')}/{CONFIG} cannot be read: {error}", hint=_AGAIN) from None
    missing = {"embed_dim", "vision_cfg", "text_cfg"} - set(config)
    if missing:
        raise InputError(
            f"the configuration of {model} has no {', '.join(sorted(missing))}",
            hint="both towers must project into one space, of embed_dim dimensions",
        )
    return dict(config)


_AGAIN = "fetch or copy the file again"


def _refused(place: Place, error: Exception) -> InputError:
    """One line about weights that cannot be loaded."""
    text = " ".join(str(error).split())
    if "loading state_dict" in text:
        detail = text.partition(":")[2].strip()
        return InputError(
            f"{place.weights} does not fit {place.model}: {detail[:160]}", hint="name the architecture it belongs to"
        )
    if isinstance(error, pickle.UnpicklingError) or "TorchScript" in text:
        return InputError(
            f"{place.weights} holds more than weights, and is not unpickled", hint="convert it to safetensors"
        )
    if isinstance(error, TypeError):
        return InputError(f"{place.model} cannot be built: {text[:160]}", hint="check its configuration")
    return InputError(f"{place.weights} cannot be read: {text[:160]}", hint=_AGAIN)


def _tokenizer(library: Any, model: str) -> Any:
    try:
        return library.get_tokenizer(model)
    except ImportError:
        raise MissingExtraError(
            f"the tokenizer of {model} needs transformers", hint='pip install "outword[hf]"'
        ) from None
    except (OSError, ValueError) as error:
        first = " ".join(str(error).split())[:160]
        hint = 'fetch it first with "outword pull", or name a folder that has all files: hf:/path/to/folder'
        raise InputError(f"the tokenizer of {model} cannot be loaded: {first}", hint=hint) from None


def _tokenize(tokenizer: Any, texts: Sequence[str]) -> Ids:
    ids: Ids = tokenizer(list(texts)).numpy()
    return ids


def _count(tokenizer: Any, text: str) -> int:
    if hasattr(tokenizer, "encode"):  # CLIP's own; start and end are added later
        return len(tokenizer.encode(text)) + 2
    return len(tokenizer.tokenizer(text)["input_ids"])


def _text(module: Any) -> tuple[Callable[[Tensor], Tensor], bool]:
    """The text tower for ids of any length up to the context, and whether a token never sees what comes behind it."""
    inner = getattr(module, "text", module)
    mask = getattr(inner, "attn_mask", None)
    if mask is None or getattr(inner, "cls_emb", None) is not None or getattr(inner, "use_pad_mask", False):
        return module.encode_text, False
    prefix = "" if inner is module else "text."

    def cut(ids: Tensor) -> Tensor:
        """The library's own forward, with position vectors and mask cut to the length of the batch."""
        length = ids.shape[1]
        short = {
            f"{prefix}attn_mask": inner.attn_mask[:length, :length],
            f"{prefix}positional_embedding": inner.positional_embedding[:length],
        }
        out = torch.func.functional_call(module, short, kwargs={"text": ids})
        features: Tensor = out["text_features"] if isinstance(out, dict) else out[1]
        return features

    return cut, True


def _dim(text: Callable[[Tensor], Tensor], context: int) -> int:
    with torch.inference_mode():
        return int(text(torch.zeros((1, context), dtype=torch.long)).shape[-1])


def _image(visual: Any) -> Callable[[Tensor], Tensor]:
    def image(pixels: Tensor) -> Tensor:
        out: Tensor | tuple[Tensor, Tensor] = visual(pixels)
        return out[0] if isinstance(out, tuple) else out

    return image


def _patches(visual: Any) -> Callable[[Tensor], tuple[Tensor, Tensor]] | None:
    """Features of patches in the shared space, for the towers of CLIP."""
    if type(visual).__name__ == "VisionTransformer" and visual.pool_type == "tok" and visual.attn_pool is None:
        visual.output_tokens = True
        norm = visual.ln_post if visual.final_ln_after_pool else (lambda tokens: tokens)

        def of_transformer(pixels: Tensor) -> tuple[Tensor, Tensor]:
            pooled, tokens = visual(pixels)
            tokens = norm(tokens)
            return pooled, tokens @ visual.proj if visual.proj is not None else tokens

        return of_transformer
    if type(visual).__name__ == "ModifiedResNet":

        def of_resnet(pixels: Tensor) -> tuple[Tensor, Tensor]:
            """Each place of the last map, through the value and the output projection of the pooling attention."""
            x = visual.stem(pixels)
            for layer in (visual.layer1, visual.layer2, visual.layer3, visual.layer4):
                x = layer(x)
            places = x.flatten(2).transpose(1, 2)
            return visual.attnpool(x), visual.attnpool.c_proj(visual.attnpool.v_proj(places))

        return of_resnet
    return None


def _preprocess(place: Place, found: dict[str, Any]) -> Preprocess:
    """open_clip's preprocessing dictionary in our words."""
    given = found | {key: place.tag[key] for key in _WAY if key in place.tag}
    size = given["size"]
    height, width = size if isinstance(size, Sequence) else (size, size)
    way, interpolation = given["resize_mode"], given["interpolation"]
    if height != width or way not in ("shortest", "squash") or interpolation not in ("bicubic", "bilinear"):
        raise ParameterError(
            f"{place.model} wants images of {height} x {width}, resized {way} and {interpolation}",
            hint="squares, shortest or squash, bicubic or bilinear are supported",
        )
    mean, std = tuple(given["mean"]), tuple(given["std"])
    return Preprocess(width, 0 if way == "squash" else width, interpolation, mean, std)
