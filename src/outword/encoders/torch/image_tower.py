"""CLIP's image tower, a ViT, on a CUDA device: the same network in fewer passes over memory and fewer operations.

Its result is read at the class token, so that in the last block nothing but that token goes on behind the attention.
What lies between the products is in `triton_vision`. Towers that are not CLIP's run as their library has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import layer_norm, linear, pad, scaled_dot_product_attention

ALIKE = 64  # rows and columns of weights come in multiples of this


@dataclass(frozen=True, eq=False)
class ImageTower:
    """A ViT whose result is read at the class token; weights go by the names of OpenAI's CLIP."""

    weights: Mapping[str, Tensor]
    heads: int
    activation: str  # "silu" or "gelu"
    epsilon: float  # of the norms

    @property
    def layers(self) -> int:
        """How many blocks it has."""
        return sum(name.endswith(".ln_1.weight") for name in self.weights)

    @cached_property
    def _patch_weight(self) -> Tensor:
        """The first product as a matrix (width, patch * patch * 3), filled up to a multiple that products like."""
        flat = self.weights["conv1.weight"].permute(0, 2, 3, 1).flatten(1)
        return pad(flat, (0, -flat.shape[1] % ALIKE)).contiguous()

    def __call__(self, pixels: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        """Bytes (n, side, side, 3) to features (n, dim); `scale` and `shift` take bytes to what the model reads."""
        from outword.maths.kernels.triton_scoring import at_device

        with at_device(pixels.device):  # Triton launches on the current one
            return self._features(pixels, scale, shift)

    def _features(self, pixels: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        from outword.encoders.torch import triton_vision as fused

        w, patch = self.weights, self.weights["conv1.weight"].shape[-1]
        kind, wide = self._patch_weight.dtype, self._patch_weight.shape[1]
        patches = linear(fused.cut_up(pixels, scale, shift, patch, wide, kind), self._patch_weight)
        first, positions = w["class_embedding"], w["positional_embedding"]
        tokens, normed = fused.begin(
            patches, first, positions, self._parts("ln_pre"), self.epsilon, self._parts(_in(0, 1))
        )
        n, length = len(pixels), len(positions)
        for layer in range(self.layers - 1):
            q, k, v = self._linear(f"{_BLOCK}{layer}.attn.in_proj", normed, "_").chunk(3, dim=-1)
            told = self._attend(*(part.view(n, length, -1) for part in (q, k, v)))
            change = self._linear(f"{_BLOCK}{layer}.attn.out_proj", told.flatten(0, 1))
            normed = fused.add(tokens, change, self._parts(_in(layer, 2)), self.epsilon)
            hidden = fused.widen(normed, *self._parts(f"{_BLOCK}{layer}.mlp.c_fc"), self.activation)
            change = self._linear(f"{_BLOCK}{layer}.mlp.c_proj", hidden)
            normed = fused.add(tokens, change, self._parts(_in(layer + 1, 1)), self.epsilon)
        return self._last(tokens.view(n, length, -1)[:, 0], normed.view(n, length, -1))

    def _last(self, tokens: Tensor, normed: Tensor) -> Tensor:
        """The last block, of the class token alone, and what follows it."""
        last = self.layers - 1
        weight, bias = self._parts(f"{_BLOCK}{last}.attn.in_proj", "_")
        width = normed.shape[-1]
        q = linear(normed[:, :1], weight[:width], bias[:width])
        k, v = linear(normed, weight[width:], bias[width:]).chunk(2, dim=-1)
        tokens = tokens + self._linear(f"{_BLOCK}{last}.attn.out_proj", self._attend(q, k, v)[:, 0])
        hidden = self._linear(
            f"{_BLOCK}{last}.mlp.c_fc", layer_norm(tokens, (width,), *self._parts(_in(last, 2)), self.epsilon)
        )
        active = torch.nn.functional.silu if self.activation == "silu" else torch.nn.functional.gelu
        tokens = tokens + self._linear(f"{_BLOCK}{last}.mlp.c_proj", active(hidden))
        return layer_norm(tokens, (width,), *self._parts("ln_post"), self.epsilon) @ self.weights["proj"]

    def _attend(self, *qkv: Tensor) -> Tensor:
        """Queries, keys and values (n, length, width) to what the queries are told, (n, length, width)."""
        q, k, v = (part.view(*part.shape[:2], self.heads, -1).transpose(1, 2) for part in qkv)
        return scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)

    def _parts(self, name: str, mark: str = ".") -> tuple[Tensor, Tensor]:
        return self.weights[f"{name}{mark}weight"], self.weights[f"{name}{mark}bias"]

    def _linear(self, name: str, x: Tensor, mark: str = ".") -> Tensor:
        return linear(x, *self._parts(name, mark))


_BLOCK = "transformer.resblocks."


def _in(layer: int, norm: int) -> str:
    return f"{_BLOCK}{layer}.ln_{norm}"


def of_open_clip(visual: Any) -> ImageTower | None:
    """The tower of open_clip's `VisionTransformer`, with its weights as they are now; None where it is not CLIP's."""
    blocks = visual.transformer.resblocks
    plain = isinstance(visual.ln_pre, torch.nn.LayerNorm) and no_scales(blocks) and visual.proj is not None
    if not plain or visual.conv1.bias is not None or visual.final_ln_after_pool or visual.output_tokens:
        return None
    kept = (
        "conv1.",
        "class_embedding",
        "positional_embedding",
        "ln_pre.",
        "transformer.resblocks.",
        "ln_post.",
        "proj",
    )
    weights = {name: weight for name, weight in visual.named_parameters() if name.startswith(kept)}
    first = blocks[0]
    return _checked(weights, first.attn.num_heads, first.mlp.gelu, first.ln_1.eps)


def no_scales(blocks: Any) -> bool:
    """Whether blocks of open_clip are CLIP's: nothing is scaled behind the attention, nor behind the MLP."""
    if any(type(block).__name__ != "ResidualAttentionBlock" for block in blocks):
        return False
    return all(isinstance(part, torch.nn.Identity) for block in blocks for part in (block.ls_1, block.ls_2))


def of_transformers(module: Any) -> ImageTower | None:
    """The same of a CLIP of transformers; None for other models."""
    if module.config.model_type not in ("clip", "metaclip_2") or len(module.vision_model.encoder.layers) < 2:
        return None
    tower = module.vision_model
    if tower.embeddings.patch_embedding.bias is not None:
        return None
    weights = {
        "conv1.weight": tower.embeddings.patch_embedding.weight,
        "class_embedding": tower.embeddings.class_embedding,
        "positional_embedding": tower.embeddings.position_embedding.weight,
        "proj": module.visual_projection.weight.T,
    }
    parts = {"ln_pre": tower.pre_layrnorm, "ln_post": tower.post_layernorm}
    weights |= blocks_of_transformers(tower.encoder.layers)
    weights |= {f"{name}.{kind}": getattr(part, kind) for name, part in parts.items() for kind in ("weight", "bias")}
    first = tower.encoder.layers[0]
    return _checked(weights, first.self_attn.num_heads, first.mlp.activation_fn, first.layer_norm1.eps)


def _checked(
    weights: dict[str, Tensor], heads: int, activation: Callable[..., Any], epsilon: float
) -> ImageTower | None:
    known = {"SiLU": "silu", "SiLUActivation": "silu", "GELU": "gelu", "GELUActivation": "gelu"}
    name = known.get(type(activation).__name__)
    if getattr(activation, "approximate", "none") != "none" or name is None:
        return None
    width = weights["conv1.weight"].shape[0]
    hidden = weights[f"{_BLOCK}0.mlp.c_fc.weight"].shape[0]
    return ImageTower(weights, heads, name, epsilon) if width % ALIKE == hidden % ALIKE == 0 else None


def blocks_of_transformers(layers: Any) -> dict[str, Tensor]:
    """The weights of blocks of transformers under the names of OpenAI's CLIP."""
    weights, parts = dict[str, Tensor](), dict[str, Any]()
    for number, layer in enumerate(layers):
        name, attention = f"transformer.resblocks.{number}", layer.self_attn
        parts |= {f"{name}.ln_1": layer.layer_norm1, f"{name}.ln_2": layer.layer_norm2}
        parts |= {f"{name}.mlp.c_fc": layer.mlp.fc1, f"{name}.mlp.c_proj": layer.mlp.fc2}
        parts |= {f"{name}.attn.out_proj": attention.out_proj}
        for kind in ("weight", "bias"):
            rows = [getattr(part, kind) for part in (attention.q_proj, attention.k_proj, attention.v_proj)]
            weights[f"{name}.attn.in_proj_{kind}"] = torch.cat(rows)
    return weights | {
        f"{name}.{kind}": getattr(part, kind) for name, part in parts.items() for kind in ("weight", "bias")
    }
