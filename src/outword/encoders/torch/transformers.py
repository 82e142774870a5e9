"""Image-text models of transformers, from a folder as `save_pretrained` writes it: CLIP, SigLIP and their relatives.

Reference: Wolf et al., Transformers, EMNLP 2020 (demonstrations).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from outword.base.extras import quiet_logs, require
from outword.base.files import sha256_bytes
from outword.encoders import hub
from outword.encoders.configs import AGAIN, read_json, read_preprocess
from outword.encoders.preprocess import Preprocess
from outword.encoders.texts import Ids
from outword.encoders.torch import image_tower
from outword.encoders.torch.models import CONFIG, VOCABULARY, weights_of
from outword.encoders.torch.towers import Model, check_towers, features
from outword.errors import InputError

# Text towers that look back only and read their result at the end token: CLIP's, and those that were made after it.
CAUSAL = {f"{name}_text_model" for name in ("clip", "metaclip_2", "clipseg", "groupvit", "owlvit")}
PASSING = {"transformers_version", "_name_or_path", "architectures", "dtype", "torch_dtype"}  # say nothing of the model


def load(folder: Path, source: str) -> Model:
    """Build the model that `config.json` describes, with weights, tokenizer and preprocessing of the same folder."""
    library = require("transformers", f"hf:{folder}")
    vocabulary = [folder / name for name in (*VOCABULARY, "tokenizer_config.json") if (folder / name).is_file()]
    weights = weights_of(folder)
    for found, what in ((vocabulary, f"tokenizer ({VOCABULARY[0]})"), (weights, "weights (model.safetensors)")):
        if not found:
            raise InputError(f"{folder} has no {what}", hint=AGAIN)
    preprocess = read_preprocess(folder)
    config = {key: value for key, value in read_json(folder / CONFIG).items() if key not in PASSING}
    parts = [config, *(hub.checked_sha256(path) for path in (*weights, *vocabulary))]
    with quietly(library):
        module, tokenizer = _build(library, folder), from_folder(library.AutoTokenizer, folder)
    digest, licence = sha256_bytes(json.dumps(parts, sort_keys=True).encode()), hub.licence(folder / "README.md")
    model = from_parts(module, tokenizer, preprocess, digest=digest, licence=licence, source=source)
    check_towers(model, str(folder))
    return model


def from_parts(
    module: Any, tokenizer: Any, preprocess: Preprocess, *, digest: str, licence: str = "not stated", source: str = ""
) -> Model:
    """A model of transformers that is in memory already, with its tokenizer."""
    texts = module.config.text_config
    context = min(texts.max_position_embeddings, tokenizer.model_max_length)
    causal = texts.model_type in CAUSAL
    masked = not causal and "attention_mask" in tokenizer.model_input_names
    pad, end = tokenizer.pad_token_id, tokenizer.eos_token_id
    if pad is None or (masked and pad == end) or (causal and end is None):
        told = f"the tokenizer of this {module.config.model_type} has no padding or end token of its own"
        raise InputError(told, hint="save the tokenizer that the model was trained with beside it")

    def text(ids: Tensor) -> Tensor:
        mask = {"attention_mask": (ids != pad).long()} if masked else {}  # for towers that were trained so
        return features(module.get_text_features(ids, **mask))

    def tokenize(texts: Sequence[str]) -> Ids:
        way = {"padding": "max_length", "truncation": True, "max_length": context, "return_tensors": "np"}
        return np.asarray(tokenizer(list(texts), **way)["input_ids"])

    with torch.inference_mode():
        dim = features(module.get_text_features(torch.zeros((1, 2), dtype=torch.long))).shape[-1]
    return Model(
        module=module,
        image=lambda pixels: features(module.get_image_features(pixels)),
        text=text,
        patches=_patches(module),
        tokenize=tokenize,
        count=lambda words: _count(tokenizer, words),
        tokenizer=tokenizer,
        pad=pad,
        end=end if causal else None,
        preprocess=preprocess,
        dim=dim,
        temperature=math.exp(-module.logit_scale.item()),
        digest=digest,
        licence=licence,
        source=source,
        image_tower=lambda: image_tower.of_transformers(module),
    )


@contextmanager
def quietly(library: Any) -> Iterator[None]:
    """No bars for a load of a second, and no reports: what is wrong is said in one line."""
    shown = library.logging.is_progress_bar_enabled()
    library.logging.disable_progress_bar()
    try:
        with quiet_logs():
            yield
    finally:
        if shown:
            library.logging.enable_progress_bar()


def from_folder(kind: Any, folder: Path, **options: Any) -> Any:
    """`from_pretrained`, never with code of the folder's own, and with one line for whatever is wrong with it."""
    try:
        return kind.from_pretrained(folder, local_files_only=True, trust_remote_code=False, **options)
    except Exception as error:  # a damaged folder makes it raise nearly anything
        text = " ".join(str(error).split())
        if "weights_only" in text:
            told = f"the weights in {folder} hold more than weights, and are not unpickled"
            raise InputError(told, hint="convert them to safetensors") from None
        if "trust_remote_code" in text or "custom code" in text:
            hint = "name a model that transformers itself knows"
            raise InputError(f"{folder} wants to run code of its own, which is refused", hint=hint) from None
        raise InputError(f"{folder} cannot be loaded: {text[:200] or type(error).__name__}", hint=AGAIN) from None


def _build(library: Any, folder: Path) -> Any:
    module, loaded = from_folder(
        library.AutoModel, folder, dtype=torch.float32, output_loading_info=True, ignore_mismatched_sizes=True
    )
    if not all(hasattr(module, part) for part in ("get_image_features", "get_text_features", "logit_scale")):
        told = f"{type(module).__name__}, which does not project images and texts into one space with a logit scale"
        raise InputError(f"{folder} holds a {told}", hint="name a model such as CLIP or SigLIP")
    broken = [*loaded["missing_keys"], *(key for key, *_ in loaded["mismatched_keys"])]
    if broken:
        more = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
        raise InputError(f"the weights in {folder} do not fit its config.json: {sorted(broken)[0]}{more}", hint=AGAIN)
    return module.eval()


def _count(tokenizer: Any, text: str) -> int:
    with quiet_logs():  # that it is too long is what we want to know
        return len(tokenizer(text)["input_ids"])


def _patches(module: Any) -> Callable[[Tensor], tuple[Tensor, Tensor]] | None:
    """Features of patches in the shared space, for the towers of CLIP; None for the others."""
    if module.config.model_type not in ("clip", "metaclip_2") or not module.vision_model.encoder.layers:
        return None
    vision = module.vision_model
    *layers, last = vision.encoder.layers

    def patches(pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Each patch through the value path of the last layer, the final norm and the projection."""
        z = vision.pre_layrnorm(vision.embeddings(pixels))
        for layer in layers:
            z = layer(z, None)
        tokens = [last(z, None)[:, 0], value_path(last, z[:, 1:])]  # of the image, of its patches
        pooled, parts = (module.visual_projection(vision.post_layernorm(token)) for token in tokens)
        return pooled, parts

    return patches


def value_path(layer: Any, z: Tensor) -> Tensor:
    """What a layer makes of tokens (n, n_tokens, width) when each attends to itself alone.

    The same as `outword.encoders.torch.open_clip.value_path`, in the words of transformers.
    """
    u = z + layer.self_attn.out_proj(layer.self_attn.v_proj(layer.layer_norm1(z)))
    v: Tensor = u + layer.mlp(layer.layer_norm2(u))
    return v
