"""A checkpoint of CLIPN's published layout, with tiny sizes and random weights, and its no tower written slowly."""

import copy
import json

import numpy as np
import torch
from safetensors.torch import save_file

from helpers.tiny import DIM, open_clip
from outword_lab.encoders.clipn import to_file
from outword_lab.encoders.driven import text_tower

CONFIG = {
    "embed_dim": DIM,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 128, "head_width": 64, "patch_size": 8},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 128, "heads": 2, "layers": 2},
}
FIVE = ("transformer", "token_embedding", "positional_embedding", "ln_final", "text_projection")


def models():
    """The library's model, the same with another text tower, and sixteen prompts."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = open_clip.CLIP(**CONFIG).eval()
        other = copy.deepcopy(model)
        for name, parameter in other.named_parameters():
            if name.startswith(FIVE):
                parameter.data += 0.05 * torch.randn_like(parameter)
        prompts = 0.1 * torch.randn(16, 77, 128)
    return model, other, prompts


def state(model, other, prompts):
    """The weights by the names of the published file."""
    own = {k: v for k, v in other.state_dict().items() if k.startswith(FIVE)}
    no = {".".join([k.split(".")[0] + "_no", *k.split(".")[1:]]): v for k, v in own.items()}
    return {f"module.{k}": v.clone() for k, v in {**model.state_dict(), **no, "prompt_no": prompts}.items()}


def write(path, weights):
    torch.save({"epoch": 10, "name": "clipn", "state_dict": weights, "optimizer": {"state": {}, "lr": 1e-4}}, path)
    return path


def beside(inner, path, change=None, **facts):
    """A file as `outword train-no` writes it, with the text tower of the encoder as it is, but for a change."""
    tower = text_tower(inner)
    weights, told = to_file(inner, tower.weights, torch.zeros(16, tower.context, tower.width))
    if change:
        change(weights)
    save_file(weights, path, {"no": json.dumps({**told, **facts})})
    return path


@torch.no_grad()
def say_no(other, prompts, texts):
    """What the no tower makes of texts, by the library's own forward on all 77 tokens, in float64."""
    slow = copy.deepcopy(other).double()
    slow.positional_embedding.data += prompts.double().mean(dim=0)
    found = slow.encode_text(open_clip.get_tokenizer("ViT-B-16")(texts))
    return np.asarray(found / found.norm(dim=1, keepdim=True))
