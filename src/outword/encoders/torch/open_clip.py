"""Models of open_clip: an architecture with the weights of a tag or a file, or a folder with `open_clip_config.json`.

Reference: Ilharco et al., OpenCLIP, github.com/mlfoundations/open_clip.
"""

from __future__ import annotations

import copy
import json
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from outword.base.checks import unknown
from outword.base.extras import quiet_logs, require
from outword.base.files import sha256_bytes
from outword.encoders import hub
from outword.encoders.base import in_short
from outword.encoders.configs import AGAIN, of_open_clip, read_json
from outword.encoders.names import KNOWN, Parsed
from outword.encoders.preprocess import Preprocess
from outword.encoders.texts import Ids
from outword.encoders.torch import image_tower
from outword.encoders.torch.models import OPEN_CLIP, VOCABULARY, WEIGHTS, by_hand
from outword.encoders.torch.towers import Model, check_towers, features
from outword.errors import InputError

_WAY = ("mean", "std", "interpolation", "resize_mode")  # what is said of images


@dataclass(frozen=True)
class Place:
    """Where a model is, and what is known of its weights."""

    arch: str  # an architecture of open_clip, or "local-dir:" and a folder
    weights: Path
    way: dict[str, Any] = field(default_factory=dict)  # images are prepared so, where the architecture says otherwise
    quick_gelu: bool | None = None  # whether the weights want OpenAI's activation; None for what the architecture says
    licence: str = "not stated"
    source: str = "a local file"


def find(parsed: Parsed) -> Place:
    """An architecture with the weights of a tag, of a file, or of a tag whose file lies elsewhere."""
    library = require("open_clip", f"open_clip:{parsed.what}")
    if parsed.what not in library.list_models():
        raise unknown("architecture of open_clip", parsed.what, library.list_models(), "open_clip.list_models()")
    if parsed.file and not Path(parsed.file).is_file():
        raise InputError(f"{parsed.file} is not a file", hint="name the file with the weights, open_clip:ARCH@/path")
    return _of_tag(library, parsed) if parsed.tag else _of_file(library, parsed.what, Path(parsed.file))


def _of_tag(library: Any, parsed: Parsed) -> Place:
    """The weights of a tag, fetched from the hub if need be."""
    arch, tag = parsed.what, parsed.tag
    known = library.get_pretrained_cfg(arch, tag)
    if not known:
        tags = library.list_pretrained_tags_by_model(arch)
        raise unknown(f"weights of {arch}", tag, tags, f"TAG is one of {', '.join(tags) or 'none'}")
    repo, _, name = known["hf_hub"].rpartition("/")
    listed = next((k for k in KNOWN.values() if k.stands_for == f"open_clip:{arch}/{tag}"), None)
    return Place(
        arch,
        Path(parsed.file) if parsed.file else _fetched(repo, name, _instead(library, parsed, repo)),
        {key: known[key] for key in _WAY},
        bool(known.get("quick_gelu")) or None,
        listed.licence if listed else hub.licence(hub.cached(repo, ["README.md"])),
        listed.source if listed else f"{repo} on the hub",
    )


def _instead(library: Any, parsed: Parsed, repo: str) -> str:
    """How to bring a tag by hand: the file with the weights, or the whole folder where it has its own tokenizer."""
    if _config(library, parsed.what)["text_cfg"].get("hf_tokenizer_name"):
        return by_hand(repo)
    fetch = f'where the hub can be reached, run "hf download {repo}", copy the file with the weights here'
    return f"{fetch}, and say --encoder open_clip:{parsed.what}/{parsed.tag}@/path/to/it"


def _fetched(repo: str, name: str, instead: str) -> Path:
    """The file with the weights, and the model card beside it."""
    names = [name.rsplit(".", 1)[0] + ".safetensors", name] if name else WEIGHTS["open_clip"]
    found = hub.cached(repo, names)
    if found is None:
        found = hub.fetch(repo, names, instead)
        with suppress(InputError):  # not every repository has one
            hub.fetch(repo, ["README.md"], instead)
    return found


def _of_file(library: Any, arch: str, path: Path) -> Place:
    """An architecture of open_clip with weights of your own; images are prepared as its tags say."""
    tags = [library.get_pretrained_cfg(arch, tag) for tag in library.list_pretrained_tags_by_model(arch)]
    ways = {json.dumps({key: tag[key] for key in _WAY}) for tag in tags}
    if len(ways) > 1:
        told = f"the weights of {arch} differ in how images are prepared, and OpenAI's way is taken for {path.name}"
        hint = f"if it is one of them, name its tag: open_clip:{arch}/TAG@{path}"
        warnings.warn(f"{told}; {hint}", stacklevel=2)
    return Place(arch, path, json.loads(ways.pop()) if len(ways) == 1 else {})


def in_folder(folder: Path, source: str) -> Place:
    """A folder with `open_clip_config.json` and weights, as `open_clip.push_to_hf_hub` writes it."""
    others = [*sorted(folder.glob("*.safetensors")), *sorted(folder.glob("*.bin")), *sorted(folder.glob("*.pt"))]
    usual = [folder / name for name in WEIGHTS["open_clip"] if (folder / name).is_file()]
    if not usual and len(others) != 1:
        found = ", ".join(path.name for path in others) or "nothing"
        raise InputError(f"{folder} has no weights ({WEIGHTS['open_clip'][0]}), it has {found}", hint=AGAIN)
    return Place(f"local-dir:{folder}", (usual or others)[0], licence=hub.licence(folder / "README.md"), source=source)


def load(place: Place) -> Model:
    """Build the network, put the weights into it, and read the rest from its configuration."""
    library = require("open_clip", place.arch)
    config = _config(library, place.arch)
    quick = bool(config.get("quick_gelu") if place.quick_gelu is None else place.quick_gelu)
    module = _build(library, place, quick)
    tokenizer, tokens = _tokenizer(library, place.arch, config["text_cfg"])
    parts = [hub.checked_sha256(place.weights), {**config, "quick_gelu": quick}, tokens]
    model = from_parts(
        module,
        tokenizer,
        of_open_clip(module.visual.preprocess_cfg | place.way, place.arch),
        dim=int(config["embed_dim"]),
        digest=sha256_bytes(json.dumps(parts, sort_keys=True).encode()),
        licence=place.licence,
        source=place.source,
    )
    check_towers(model, place.arch.removeprefix("local-dir:"))
    return model


def from_parts(
    module: Any, tokenizer: Any, preprocess: Preprocess, *, dim: int, digest: str, licence: str, source: str
) -> Model:
    """A model of open_clip that is in memory already, with its tokenizer."""
    text, end = _text(module, getattr(tokenizer, "eot_token_id", None))

    def tokenize(texts: Sequence[str]) -> Ids:
        return np.asarray(tokenizer(list(texts)))

    return Model(
        module=module,
        image=lambda pixels: features(module.visual(pixels)),
        text=text,
        patches=_patches(module.visual),
        tokenize=tokenize,
        count=lambda words: _count(tokenizer, words),
        tokenizer=tokenizer,
        pad=getattr(getattr(tokenizer, "tokenizer", None), "pad_token_id", 0) or 0,
        end=end,
        preprocess=preprocess,
        dim=dim,
        temperature=math.exp(-module.logit_scale.item()),
        digest=digest,
        licence=licence,
        source=source,
        image_tower=lambda: image_tower.of_open_clip(module.visual) if _is_clip_vit(module.visual) else None,
    )


def _config(library: Any, arch: str) -> dict[str, Any]:
    if arch.startswith("local-dir:"):
        whole = read_json(Path(arch.removeprefix("local-dir:")) / OPEN_CLIP)
        config = whole.get("model_cfg", whole)
    else:
        config = library.get_model_config(arch)
    missing = {"embed_dim", "vision_cfg", "text_cfg"} - set(config)
    if missing or not all(isinstance(config[key], dict) for key in ("vision_cfg", "text_cfg")):
        told = f"the configuration of {arch} has no {', '.join(sorted(missing)) or 'vision_cfg and text_cfg'}"
        raise InputError(told, hint="both towers must project into one space, of embed_dim dimensions")
    return dict(config)


def _build(library: Any, place: Place, quick: bool) -> Any:
    """The network with its weights."""
    _check_weights(place.weights)
    shown = place.arch.removeprefix("local-dir:")
    try:
        with quiet_logs():  # it would say that the weights are random; they come next
            module = library.create_model(place.arch, force_quick_gelu=quick, load_weights=False)
    except Exception as error:  # a configuration can be wrong in any way
        raise InputError(f"{shown} cannot be built: {in_short(error)}", hint="check its configuration") from None
    try:
        library.factory.load_checkpoint(module, str(place.weights), weights_only=True)
    except Exception as error:  # weights of another network end in anything
        detail = in_short(error).removeprefix("Error(s) in loading state_dict for CLIP:").strip()
        raise InputError(f"{place.weights} does not fit {shown}: {detail}", hint="name its architecture") from None
    return module.eval()


def _check_weights(path: Path) -> None:
    """Raise unless a file holds named weights and nothing else: safetensors, or torch's with `weights_only`."""
    with only_weights(path):
        if path.suffix == ".safetensors":
            with safe_open(path, "pt") as file:
                whole = bool(file.keys())
        else:
            whole = bool(in_torch_file(path))
    if not whole:
        raise InputError(f"{path} cannot be read: it holds no weights by name", hint=AGAIN)


def in_torch_file(path: Path) -> dict[str, Tensor]:
    """The weights of a file of torch, which may be in its `state_dict`; none where it holds anything else there."""
    found = torch.load(path, map_location="cpu", weights_only=True)
    found = found.get("state_dict", found)
    named = all(isinstance(key, str) and isinstance(found[key], Tensor) for key in found)
    return dict(found) if named else {}


@contextmanager
def only_weights(path: Path) -> Iterator[None]:
    """A block that reads weights; what a file makes it raise becomes one line."""
    try:
        yield
    except Exception as error:  # bytes that are no weights make the readers raise nearly anything
        if "weights_only" in str(error) or "TorchScript" in str(error):
            hint = "convert it to safetensors"
            raise InputError(f"{path} holds more than weights, and is not unpickled", hint=hint) from None
        detail = in_short(error)
        told = "it holds no weights by name" if detail.isdigit() else detail  # of a pickle, where it stopped
        raise InputError(f"{path} cannot be read: {told}", hint=AGAIN) from None


def vocabulary(arch: str) -> Path | None:
    """The folder of a tokenizer that is not open_clip's own, fetched from the hub if need be."""
    repo = _config(require("open_clip", f"open_clip:{arch}"), arch)["text_cfg"].get("hf_tokenizer_name")
    if not repo:
        return None
    fetch = 'where the hub can be reached, fetch the whole repository of the model with "hf download"'
    instead = f"{fetch}, copy its folder here, and say --encoder hf:/path/to/folder; its tokenizer is that of {repo}"
    found = hub.snapshot(repo, lambda folder: [] if _tokens(folder) else [*VOCABULARY], instead)
    if not _tokens(found):
        raise InputError(f"{repo} on the hub has no tokenizer ({VOCABULARY[0]})", hint=instead)
    return found


def _tokens(folder: Path) -> list[Path]:
    return [folder / name for name in (*VOCABULARY, "tokenizer_config.json") if (folder / name).is_file()]


def _tokenizer(library: Any, arch: str, text: dict[str, Any]) -> tuple[Any, list[str]]:
    """The tokenizer, and the sha256 of its files; open_clip's own has none."""
    if not text.get("hf_tokenizer_name"):
        return library.get_tokenizer(arch), []
    local = arch.startswith("local-dir:")
    folder = Path(arch.removeprefix("local-dir:")) if local else vocabulary(arch)
    assert folder is not None
    require("transformers", f"the tokenizer of {arch}")
    options = {**text.get("tokenizer_kwargs", {}), "trust_remote_code": False}
    context = text.get("context_length", library.tokenizer.DEFAULT_CONTEXT_LENGTH)
    try:
        made = library.tokenizer.HFTokenizer(
            str(folder), context_length=context, tokenizer_mode=text.get("tokenizer_mode"), **options
        )
    except Exception as error:  # a damaged folder makes it raise nearly anything
        raise InputError(f"the tokenizer in {folder} cannot be loaded: {in_short(error)}", hint=AGAIN) from None
    return made, [hub.checked_sha256(path) for path in _tokens(folder)]


def _count(tokenizer: Any, text: str) -> int:
    if hasattr(tokenizer, "encode"):  # CLIP's own; start and end are added later
        return len(tokenizer.encode(text)) + 2
    return len(tokenizer.tokenizer(tokenizer.clean_fn(text))["input_ids"])


def _text(module: Any, eot: int | None) -> tuple[Callable[[Tensor], Tensor], int | None]:
    """The text tower for ids of any length up to the context; and the id that ends a text, if it may be cut there.

    It may where no token sees what comes behind it and the result is read at the end token.
    """
    inner = getattr(module, "text", module)
    pool = getattr(inner, "text_pool_type", None) or getattr(inner, "pool_type", None)
    eos = getattr(inner, "text_eos_id", None) or getattr(inner, "eos_id", None)
    end = {"argmax": eot, "eos": eos}.get(str(pool))
    plain = getattr(inner, "cls_emb", None) is None and not getattr(inner, "use_pad_mask", False)
    if getattr(inner, "attn_mask", None) is None or not plain or end is None:
        return module.encode_text, None

    def cut(ids: Tensor) -> Tensor:
        """The library's own forward on a copy whose position vectors and mask are as long as the batch.

        Only the tables of names are copied, so that threads with batches of other lengths do not meet.
        """
        length = ids.shape[1]
        short = copy.copy(inner)
        short._parameters = {**inner._parameters, "positional_embedding": inner.positional_embedding[:length]}
        short._buffers = {**inner._buffers, "attn_mask": inner.attn_mask[:length, :length]}
        found: Tensor = short.encode_text(ids) if inner is module else short(ids)
        return found

    return cut, end


def _patches(visual: Any) -> Callable[[Tensor], tuple[Tensor, Tensor]] | None:
    """Features of patches in the shared space, for the towers of CLIP; None for the others."""
    if _is_clip_vit(visual):
        last = len(visual.transformer.resblocks) - 1

        def of_transformer(pixels: Tensor) -> tuple[Tensor, Tensor]:
            """Each patch through the value path of the last block, the final norm and the projection."""
            found = visual.forward_intermediates(pixels, indices=[last - 1], output_fmt="NLC")
            tokens = visual.ln_post(value_path(visual.transformer.resblocks[last], found["image_intermediates"][0]))
            return found["image_features"], tokens @ visual.proj if visual.proj is not None else tokens

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


def _is_clip_vit(visual: Any) -> bool:
    """Whether a tower is a ViT as CLIP has it: the image is the class token, and blocks are plain."""
    if type(visual).__name__ != "VisionTransformer" or visual.pool_type != "tok" or visual.attn_pool is not None:
        return False
    blocks = visual.transformer.resblocks
    return len(blocks) > 1 and type(blocks[-1]).__name__ == "ResidualAttentionBlock"


def value_path(block: Any, z: Tensor) -> Tensor:
    """What a block makes of tokens (n, n_tokens, width) when each attends to itself alone.

        u = z + W_o (W_v ln_1(z) + b_v) + b_o,   v = u + MLP(ln_2(u))

    Reference: Miyai et al., GL-MCM, IJCV 2025, after Zhou et al., "Extract Free Dense Labels from CLIP", ECCV 2022.
    """
    weight, bias = block.attn.in_proj_weight.chunk(3)[2], block.attn.in_proj_bias.chunk(3)[2]
    values = torch.nn.functional.linear(block.ln_1(z), weight, bias)
    u = z + block.ls_1(block.attn.out_proj(values))
    v: Tensor = u + block.ls_2(block.mlp(block.ln_2(u)))
    return v
