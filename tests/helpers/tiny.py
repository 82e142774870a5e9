"""Small models with random weights, built from a configuration and saved in each format that outword loads."""

import json
from functools import cache

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file

from outword.base.extras import require

open_clip = require("open_clip", "the tests")
transformers = require("transformers", "the tests")
TEXTS = [
    "the nice cat",
    "This is a red photo",
    "a photo of a very old locomotive that stands at the end of the line, in the rain",
    "x",
    "the nice cat",
    "Größe, 12 straße; naïve — 'tis",
]
DIM = 24
_TEXT = {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}
OPEN_CLIP = {
    "vit": {
        "embed_dim": DIM,
        "quick_gelu": True,
        "vision_cfg": {"image_size": 32, "layers": 2, "width": 64, "head_width": 32, "patch_size": 8},
        "text_cfg": _TEXT,
    },
    "resnet": {
        "embed_dim": DIM,
        "vision_cfg": {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "patch_size": None},
        "text_cfg": _TEXT,
    },
    "siglip": {
        "embed_dim": 64,
        "init_logit_bias": -10,
        "custom_text": True,
        "vision_cfg": {
            "image_size": 160,
            "timm_model_name": "test_vit",
            "timm_model_pretrained": False,
            "timm_proj": "none",
        },
        "text_cfg": {
            **_TEXT,
            "context_length": 16,
            "vocab_size": 60,
            "width": 64,
            "hf_tokenizer_name": "words",
            "no_causal_mask": True,
            "pool_type": "last",
            "proj_bias": True,
        },
    },
}


def photos(count=5, seed=0):
    """Smooth random pictures of different shapes."""
    rng = np.random.default_rng(seed)
    shapes = [(70, 90), (90, 70), (64, 64), (200, 61), (33, 47)]
    small = [rng.integers(256, size=(6, 8, 3), dtype=np.uint8) for _ in range(count)]
    return [Image.fromarray(s).resize(shapes[i % 5][::-1], Image.Resampling.BICUBIC) for i, s in enumerate(small)]


def pixels_of(encoder, images):
    """What the model reads, by the plain formula: (n, 3, side, side), normalised."""
    given = encoder.model.preprocess
    x = np.stack([encoder.preprocess(image) for image in images]).astype(np.float64) / 255
    return torch.tensor((x - given.mean) / given.std).permute(0, 3, 1, 2).float()


def unit(features):
    return torch.nn.functional.normalize(features, dim=-1).detach().numpy()


def open_clip_folder(kind, folder):
    """A folder as the hub keeps it; gives the library's model too."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "open_clip_config.json").write_text(
        json.dumps(
            {"model_cfg": OPEN_CLIP[kind], "preprocess_cfg": {"resize_mode": "squash"} if kind == "siglip" else {}}
        )
    )
    if kind == "siglip":
        word_tokenizer().save_pretrained(folder)
    model = open_clip_model(kind)
    save_file({k: v.contiguous() for k, v in model.state_dict().items()}, folder / "open_clip_model.safetensors")
    return model


@cache
def open_clip_model(kind):
    """The library's own model, with random weights that are far from their zero start."""
    config = json.loads(json.dumps(OPEN_CLIP[kind]))
    custom = config.pop("custom_text", False)
    torch.manual_seed(0)
    with torch.random.fork_rng():
        model = (open_clip.CustomTextCLIP if custom else open_clip.CLIP)(**config)
        for parameter in model.parameters():
            if parameter.ndim == 1 and parameter.numel() > 1:
                parameter.data += 0.1 * torch.randn_like(parameter)
    return model.eval()


def clip_folder(folder):
    """A CLIP of transformers with CLIP's own vocabulary."""
    config = transformers.CLIPConfig(
        text_config={
            **{"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2},
            **{"vocab_size": 49408, "eos_token_id": 49407, "bos_token_id": 49406, "projection_dim": DIM},
        },
        vision_config={
            **{"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2},
            **{"image_size": 32, "patch_size": 8, "projection_dim": DIM},
        },
        projection_dim=DIM,
    )
    model = _saved(transformers.CLIPModel, config, folder)
    simple = open_clip.SimpleTokenizer()
    renamed = {"<start_of_text>": "<|startoftext|>", "<end_of_text>": "<|endoftext|>"}
    (folder / "vocab.json").write_text(json.dumps({renamed.get(k, k): v for k, v in simple.encoder.items()}))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(" ".join(pair) for pair in simple.bpe_ranks))
    tokenizer = transformers.CLIPTokenizer.from_pretrained(folder)
    tokenizer.save_pretrained(folder)
    _write_preprocessor(folder, size={"shortest_edge": 36}, crop_size={"height": 32, "width": 32}, do_center_crop=True)
    return model, tokenizer


def siglip_folder(folder):
    """A SigLIP of transformers: padding is attended to, images are squashed."""
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.SiglipConfig(
        text_config={**sizes, "vocab_size": 60, "max_position_embeddings": 16, "projection_size": 32},
        vision_config={**sizes, "image_size": 32, "patch_size": 8},
    )
    model = _saved(transformers.SiglipModel, config, folder)
    word_tokenizer().save_pretrained(folder)
    _write_preprocessor(folder, size={"height": 32, "width": 32})
    return model, transformers.AutoTokenizer.from_pretrained(folder)


def _saved(kind, config, folder):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = kind(config).eval()
    model.save_pretrained(folder)
    return model


def _write_preprocessor(folder, **given):
    values = {"resample": 3, "do_normalize": True, "image_mean": [0.5, 0.45, 0.4], "image_std": [0.25, 0.26, 0.27]}
    (folder / "preprocessor_config.json").write_text(json.dumps({**values, **given}))


def word_tokenizer():
    """A vocabulary of characters, with an end and a padding token, as SigLIP's has."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

    characters = ["<pad>", "</s>", "<unk>", *"abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ.,"]
    inner = Tokenizer(models.WordLevel({c: i for i, c in enumerate(characters)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    inner.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        model_input_names=["input_ids"],
        model_max_length=16,
    )


_SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
_CLIP_TEXT = {**_SIZES, "vocab_size": 49408, "eos_token_id": 49407, "bos_token_id": 49406}
_VISION = {**_SIZES, "image_size": 32, "patch_size": 8}
_BERT = {**_SIZES, "vocab_size": 60, "max_position_embeddings": 32}


def _dual(text):
    return transformers.VisionTextDualEncoderModel(
        transformers.VisionTextDualEncoderConfig.from_vision_text_configs(
            transformers.CLIPVisionConfig(**_VISION), text, projection_dim=DIM
        )
    )


RELATIVES = {  # other models of transformers: how to make one, and whether its tokenizer is CLIP's
    "clip that ends at 2": (
        lambda: transformers.CLIPModel(
            transformers.CLIPConfig(
                text_config={**_CLIP_TEXT, "eos_token_id": 2}, vision_config=_VISION, projection_dim=DIM
            )
        ),
        True,
    ),
    "clipseg": (
        lambda: transformers.CLIPSegModel(
            transformers.CLIPSegConfig(text_config=_CLIP_TEXT, vision_config=_VISION, projection_dim=DIM)
        ),
        True,
    ),
    "owlvit": (
        lambda: transformers.OwlViTModel(
            transformers.OwlViTConfig(text_config=_CLIP_TEXT, vision_config=_VISION, projection_dim=DIM)
        ),
        True,
    ),
    "two towers, one of CLIP": (lambda: _dual(transformers.CLIPTextConfig(**_CLIP_TEXT)), True),
    "two towers, one of BERT": (lambda: _dual(transformers.BertConfig(**_BERT)), False),
    "chinese_clip": (
        lambda: transformers.ChineseCLIPModel(
            transformers.ChineseCLIPConfig(text_config=_BERT, vision_config=_VISION, projection_dim=DIM)
        ),
        False,
    ),
}


def relative_folder(name, folder, clip):
    """A model of `RELATIVES`; `clip` is a folder whose tokenizer is CLIP's."""
    make, is_clip = RELATIVES[name]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = make().eval()
    model.save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(clip) if is_clip else _word_pieces(folder)
    tokenizer.save_pretrained(folder)
    _write_preprocessor(folder, size={"height": 32, "width": 32})
    return model, transformers.AutoTokenizer.from_pretrained(folder)


def _word_pieces(folder):
    letters = "abcdefghijklmnopqrstuvwxyz"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{c}" for c in letters)]
    (folder / "vocab.txt").write_text("\n".join(pieces))
    return transformers.BertTokenizerFast.from_pretrained(folder, model_max_length=32)
