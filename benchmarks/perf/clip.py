"""CLIP in its true shapes with random weights, and the plain loops that ours is measured against."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from outword.base.extras import quiet_logs, require
from outword.encoders import Encoder, get_encoder
from outword.encoders.preprocess import Preprocess
from outword.words.corpora import get_corpus

NAMES = [f"the nice {word}" for word in get_corpus("wordnet").words[::93]]
MEAN, STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
SHAPES = {  # patch, width, layers, heads, dimension of the shared space
    "ViT-B-32": (32, 768, 12, 12, 512),
    "ViT-B-16": (16, 768, 12, 12, 512),
    "ViT-L-14": (14, 1024, 24, 16, 768),
}
TEXTS = {"num_hidden_layers": 1}  # of a text tower where this is about images
SMALL = {"image_size": 32, "layers": 1, "width": 64, "head_width": 32, "patch_size": 32}  # stands in for an image tower


def open_clip_encoder(name: str, folder: Path, *, images: bool = True) -> Any:
    """A model of open_clip on the CPU in fp32; with a small image tower where this is about texts only."""
    library = require("open_clip", "this benchmark")
    config: dict[str, Any] = library.get_model_config(name)
    config = config if images else config | {"vision_cfg": SMALL}
    folder.mkdir(parents=True)
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": config, "preprocess_cfg": {}}))
    torch.manual_seed(0)
    with quiet_logs():  # it would say that the weights are random
        module = library.create_model(f"local-dir:{folder}", load_weights=False)
    save_file(module.state_dict(), folder / "open_clip_model.safetensors")
    return get_encoder(f"hf:{folder}", device="cpu")


def exported(encoder: Encoder, folder: Path, precision: str) -> Any:
    """The same encoder without torch, as `outword export` writes it."""
    from outword.encoders.onnx.export import export

    export(encoder, folder, precision=precision, force=True)
    return get_encoder(f"onnx:{folder}")


@torch.inference_mode()
def padded(encoder: Any, texts: list[str]) -> np.ndarray:
    """What a plain loop does with texts: each at the full length of the context, 64 at a time."""
    ids = torch.from_numpy(encoder.model.tokenize(texts))
    parts = [encoder.model.text(ids[start : start + 64]) for start in range(0, len(ids), 64)]
    return torch.nn.functional.normalize(torch.cat(parts), dim=-1).numpy()


class NoTokenizer:
    """Stands in for a tokenizer where a benchmark is about images."""

    pad_token_id, eos_token_id, model_max_length, model_input_names = 0, 1, 77, ("input_ids",)


def transformers_clip(name: str) -> torch.nn.Module:
    """A CLIP of transformers with an image tower of true shape."""
    library = require("transformers", "this benchmark")
    patch, width, layers, heads, dim = SHAPES[name]
    vision = {"hidden_size": width, "intermediate_size": 4 * width, "num_hidden_layers": layers}
    vision |= {"num_attention_heads": heads, "patch_size": patch, "image_size": 224, "projection_dim": dim}
    config = library.CLIPConfig(text_config=TEXTS, vision_config=vision, projection_dim=dim)
    return library.CLIPModel(config).eval().requires_grad_(False)


def letters() -> Any:
    """A tokenizer whose tokens are letters: one that can be exported, where a benchmark is about images."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

    tokens = ["<pad>", "</s>", "<unk>", *"abcdefghijklmnopqrstuvwxyz "]
    inner = Tokenizer(models.WordLevel({token: i for i, token in enumerate(tokens)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    inner.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    named = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    library = require("transformers", "this benchmark")
    return library.PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=77, **named)


def towers(module: torch.nn.Module, tokenizer: Any = None, device: str | None = None) -> Encoder:
    """Our encoder around a CLIP of transformers, on the device and in the precision that are the default."""
    from outword.encoders.torch.towers import Towers
    from outword.encoders.torch.transformers import from_parts

    preprocess = Preprocess(224, 224, "bicubic", MEAN, STD)
    model = from_parts(module, tokenizer or NoTokenizer(), preprocess, digest="")
    return Towers(model, name="benchmark", options={}, prompts="released", device=device)


def normalised(pixels: np.ndarray) -> torch.Tensor:
    """Float pixels as an image processor gives them."""
    return ((torch.from_numpy(pixels) / 255 - torch.tensor(MEAN)) / torch.tensor(STD)).permute(0, 3, 1, 2).contiguous()


@torch.no_grad()
def plain_loop(module: torch.nn.Module, pixels: torch.Tensor, size: int) -> np.ndarray:
    """What the library's own example does with images, batch after batch on the GPU."""
    parts = []
    for start in range(0, len(pixels), size):
        features = module.get_image_features(pixels[start : start + size].to(module.device)).pooler_output
        parts.append((features / features.norm(dim=-1, keepdim=True)).cpu())
    return torch.cat(parts).numpy()


def operations(name: str, side: int = 224) -> float:
    """Floating-point operations of one image: patches, then projections (12 width^2) and attention of each block."""
    patch, width, layers, _, _ = SHAPES[name]
    patches = (side // patch) ** 2
    tokens = patches + 1
    return 2 * (patches * 3 * patch**2 * width + layers * (12 * tokens * width**2 + 2 * tokens**2 * width))
