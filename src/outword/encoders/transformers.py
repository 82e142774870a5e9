"""Image-text models of transformers, from a folder as `save_pretrained` writes it: CLIP, SigLIP and their relatives.

Reference: Wolf et al., Transformers, EMNLP 2020 (demonstrations).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from outword.encoders import hub
from outword.encoders.doors import need
from outword.encoders.preprocess import Preprocess
from outword.encoders.texts import Ids
from outword.encoders.towers import Model
from outword.errors import InputError, ParameterError
from outword.files import sha256_bytes, sha256_file

CAUSAL = {"clip", "metaclip_2"}  # model types whose text tower looks back only and reads its result at the end token
VOCABULARY = ("tokenizer.json", "vocab.json", "merges.txt", "vocab.txt", "spiece.model", "tokenizer.model")
_AGAIN = "fetch or copy the folder again"


def load(folder: Path, source: str) -> Model:
    """Build the model that `config.json` describes, with weights, tokenizer and preprocessing of the same folder."""
    library = need("transformers", f"hf:{folder}")
    vocabulary = [folder / name for name in VOCABULARY if (folder / name).is_file()]
    if not vocabulary:
        raise InputError(f"{folder} has no tokenizer ({VOCABULARY[0]})", hint=_AGAIN)
    parts: list[Any] = [[hub.digest(path) for path in _weights(folder)], sha256_file(folder / "config.json")]
    parts += [[path.name, hub.digest(path)] for path in vocabulary]
    return from_parts(
        _build(library, folder),
        _from_folder(library.AutoTokenizer, folder),
        _preprocess(folder),
        digest=sha256_bytes(json.dumps(parts).encode()),
        licence=hub.licence(folder / "README.md"),
        source=source,
    )


def from_parts(
    module: Any, tokenizer: Any, preprocess: Preprocess, *, digest: str, licence: str = "not stated", source: str = ""
) -> Model:
    """A model of transformers that is in memory already, with its tokenizer."""
    context = min(module.config.text_config.max_position_embeddings, tokenizer.model_max_length)
    causal = module.config.model_type in CAUSAL
    masked = not causal and "attention_mask" in tokenizer.model_input_names
    text = _text(module, tokenizer.pad_token_id if masked else None)
    with torch.inference_mode():
        dim = int(text(torch.zeros((1, context), dtype=torch.long)).shape[-1])
    return Model(
        module=module,
        image=lambda pixels: _tensor(module.get_image_features(pixels)),
        text=text,
        patches=_patches(module),
        tokenize=lambda texts: _tokenize(tokenizer, texts, context),
        count=lambda words: len(tokenizer(words)["input_ids"]),
        tokenizer=tokenizer,
        pad=tokenizer.pad_token_id,
        end=tokenizer.eos_token_id if causal else None,
        preprocess=preprocess,
        dim=dim,
        temperature=math.exp(-module.logit_scale.item()),
        digest=digest,
        licence=licence,
        source=source,
    )


def _weights(folder: Path) -> list[Path]:
    for pattern in ("model*.safetensors", "pytorch_model*.bin"):
        if found := sorted(folder.glob(pattern)):
            return found
    raise InputError(f"{folder} has no weights (model.safetensors)", hint=_AGAIN)


def _from_folder(kind: Any, folder: Path, **options: Any) -> Any:
    """`from_pretrained`, with one line for whatever is wrong with the folder."""
    try:
        return kind.from_pretrained(folder, local_files_only=True, **options)
    except Exception as error:  # a damaged folder makes it raise nearly anything
        text = " ".join(str(error).split())
        raise InputError(f"{folder} cannot be loaded: {text[:200] or type(error).__name__}", hint=_AGAIN) from None


def _build(library: Any, folder: Path) -> Any:
    _weights(folder)
    module, loaded = _from_folder(library.AutoModel, folder, dtype=torch.float32, output_loading_info=True)
    if not all(hasattr(module, part) for part in ("get_image_features", "get_text_features", "logit_scale")):
        raise InputError(
            f"{folder} holds a {type(module).__name__}, which does not project images and texts into one space",
            hint="name a model such as CLIP or SigLIP",
        )
    broken = [*loaded["missing_keys"], *(key for key, *_ in loaded["mismatched_keys"])]
    if broken:
        raise InputError(
            f"the weights in {folder} do not fit its config.json: {sorted(broken)[0]} and {len(broken) - 1} more",
            hint=_AGAIN,
        )
    return module


def _tensor(out: Any) -> Tensor:
    """Features as a tensor: newer versions give an output object."""
    features: Tensor = out if isinstance(out, Tensor) else out.pooler_output
    return features


def _text(module: Any, pad: int | None) -> Callable[[Tensor], Tensor]:
    """The text tower; `pad` is the id that its attention is kept from, for towers that were trained so."""

    def text(ids: Tensor) -> Tensor:
        mask = {} if pad is None else {"attention_mask": (ids != pad).long()}
        return _tensor(module.get_text_features(ids, **mask))

    return text


def _tokenize(tokenizer: Any, texts: Sequence[str], context: int) -> Ids:
    ids: Ids = tokenizer(list(texts), padding="max_length", truncation=True, max_length=context, return_tensors="np")[
        "input_ids"
    ]
    return ids


def _patches(module: Any) -> Callable[[Tensor], tuple[Tensor, Tensor]] | None:
    """Features of patches in the shared space: CLIP's own projection, applied to every token."""
    if module.config.model_type not in CAUSAL:
        return None

    def patches(pixels: Tensor) -> tuple[Tensor, Tensor]:
        seen = module.vision_model(pixels)
        tokens = module.vision_model.post_layernorm(seen.last_hidden_state[:, 1:])
        return module.visual_projection(seen.pooler_output), module.visual_projection(tokens)

    return patches


def _preprocess(folder: Path) -> Preprocess:
    """`preprocessor_config.json` (or the image part of `processor_config.json`) in our words."""
    given = _processor(folder)
    size, crop = _side(given.get("size")), _side(given.get("crop_size"))
    shortest = isinstance(given.get("size"), int) or "shortest_edge" in (given.get("size") or {})
    filters = {2: "bilinear", 3: "bicubic"}
    cropped = given.get("do_center_crop", crop is not None)
    rescale = given.get("rescale_factor", 1 / 255)
    side = crop if cropped else size
    whole = size and side and given.get("resample") in filters and math.isclose(rescale, 1 / 255, rel_tol=1e-3)
    if not whole or (shortest and (not cropped or size < side)) or (not shortest and side != size):
        raise ParameterError(
            f"the preprocessing in {folder} is not supported: {json.dumps(given)[:300]}",
            hint="a short side or a square, bicubic or bilinear, and a crop in the centre are",
        )
    if not given.get("do_normalize", True):
        given = {**given, "image_mean": [0.0] * 3, "image_std": [1.0] * 3}
    return Preprocess(
        side,
        size if shortest else 0,
        filters[given["resample"]],  # type: ignore[arg-type]
        tuple(given["image_mean"]),
        tuple(given["image_std"]),
    )


def _processor(folder: Path) -> dict[str, Any]:
    for name in ("preprocessor_config.json", "processor_config.json"):
        try:
            found = json.loads((folder / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise InputError(f"{folder / name} cannot be read: {error}", hint=_AGAIN) from None
        inner = found.get("image_processor", found)
        return dict(inner)
    raise InputError(f"{folder} has no preprocessor_config.json", hint=_AGAIN)


def _side(size: Any) -> Any:
    """The side that a size means: 224, {"shortest_edge": 224} or {"height": 224, "width": 224}; None for others."""
    if isinstance(size, dict):
        sides = {size[key] for key in ("shortest_edge", "height", "width") if size.get(key)}
        return sides.pop() if len(sides) == 1 else None
    return size
