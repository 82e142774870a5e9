"""CLIP's text tower from token embeddings on, so that some of them can be learned; all weights are frozen.

The tokens that every text begins with are read once for all, and each text from there on: no token sees what comes
behind it, so that this is the same network in far fewer operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding, layer_norm, linear, normalize
from torch.utils.checkpoint import checkpoint

from outword.encoders.texts import Ids

TOKENS, POSITIONS, PROJECTION = "token_embedding.weight", "positional_embedding", "text_projection"


@dataclass(frozen=True, eq=False)
class TextTower:
    """A causal tower whose result is read at the end token; weights go by the names of OpenAI's CLIP."""

    weights: Mapping[str, Tensor]
    heads: int
    activation: Callable[[Tensor], Tensor]
    epsilon: float  # of the norms
    tokenize: Callable[[Sequence[str]], Ids]  # texts to ids (n, context): start, the text, end, and whatever fills up
    end: int  # the id of the end

    @property
    def width(self) -> int:
        """Of a token."""
        return self.weights[TOKENS].shape[1]

    @property
    def context(self) -> int:
        """How many tokens it reads."""
        return len(self.weights[POSITIONS])

    @property
    def layers(self) -> int:
        """How many blocks it has."""
        return sum(name.endswith(".ln_1.weight") for name in self.weights)

    def to(self, dtype: torch.dtype, device: torch.device | None = None) -> TextTower:
        """The same tower in another precision, or elsewhere."""
        moved = {name: weight.detach().to(device, dtype) for name, weight in self.weights.items()}
        return replace(self, weights=moved)

    def embed(self, ids: Tensor) -> Tensor:
        """Token ids to their embeddings (..., width), without positions."""
        return embedding(ids, self.weights[TOKENS])

    def ends(self, ids: Ids) -> Ids:
        """Where each text (n, context) ends."""
        return np.asarray((ids == self.end).argmax(axis=1))

    def read(self, shared: Tensor, own: Tensor, ends: Tensor, *, together: int | None = None) -> Tensor:
        """Unit vectors (n, dim) in float32 or better of texts that begin alike.

        Args:
            shared: (p, width), the embeddings that all begin with; there may be none.
            own: (n, length, width), those of each text from there on.
            ends: (n,), where in `own` each text ends.
            together: if given, so many texts are read at a time, and once more when gradients are asked for, in place
                of what would have to be kept for that.
        """
        if together is None:
            found = self._read(shared, own, ends)
        else:
            parts = zip(*(torch.split(rows, together) for rows in (own, ends)), strict=True)
            found = torch.cat([checkpoint(self._read, shared, *part, use_reentrant=False) for part in parts])
        return normalize(found if found.dtype == torch.float64 else found.float(), dim=-1)

    def _read(self, shared: Tensor, own: Tensor, ends: Tensor) -> Tensor:
        p, length = len(shared), own.shape[1]
        positions = self.weights[POSITIONS]
        head, tail = shared + positions[:p], own + positions[p : p + length]
        places = torch.arange(length, device=own.device)
        hidden = places > places[:, None]  # what comes behind a token
        for layer in range(self.layers - 1):
            head, tail = self._block(layer, head, tail, tail, hidden)
        end = tail[torch.arange(len(tail), device=own.device), ends][:, None]  # only this is read from here on
        _, end = self._block(self.layers - 1, head, end, tail, (places > ends[:, None])[:, None, None])
        return self._norm("ln_final", end[:, 0]) @ self.weights[PROJECTION]

    def _block(self, layer: int, head: Tensor, tail: Tensor, seen: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens (p, width) that all texts share, and (n, length, width) that look at those and at `seen`."""
        name = f"transformer.resblocks.{layer}"
        q_head, k_head, v_head = self._qkv(name, head[None])
        q, k, v = self._qkv(name, seen)
        if tail is not seen:
            q = self._qkv(name, tail)[0]
        behind = torch.ones(len(head), len(head), dtype=torch.bool, device=head.device).triu(1)
        around = _weights(q_head @ k_head.mT, behind) @ v_head
        n, heads, length, dim = q.shape
        flat = q.transpose(0, 1).reshape(heads, n * length, dim)  # one product for all texts
        to_head = (flat @ k_head[0].mT).view(heads, n, length, len(head)).transpose(0, 1)
        to_own = (q @ k.mT).masked_fill(hidden, -torch.inf)
        weights = _weights(torch.cat([to_head, to_own], dim=-1))
        of_head, of_own = weights[..., : len(head)], weights[..., len(head) :]
        flat = of_head.transpose(0, 1).reshape(heads, n * length, len(head)) @ v_head[0]
        told = flat.view(heads, n, length, dim).transpose(0, 1) + of_own @ v
        return self._rest(name, head, around[0]), self._rest(name, tail, told)

    def _qkv(self, name: str, tokens: Tensor) -> list[Tensor]:
        """Queries (scaled), keys and values (n, heads, length, width / heads)."""
        found = self._linear(f"{name}.attn.in_proj", self._norm(f"{name}.ln_1", tokens), "_")
        shape = *tokens.shape[:2], self.heads, self.width // self.heads
        q, k, v = (part.view(*shape).transpose(1, 2) for part in found.chunk(3, dim=-1))
        return [q * q.shape[-1] ** -0.5, k, v]

    def _rest(self, name: str, tokens: Tensor, told: Tensor) -> Tensor:
        """What follows the attention, whose heads gave `told` (..., heads, length, width / heads)."""
        tokens = tokens + self._linear(f"{name}.attn.out_proj", told.transpose(-3, -2).flatten(-2))
        wide = self._linear(f"{name}.mlp.c_fc", self._norm(f"{name}.ln_2", tokens))
        return tokens + self._linear(f"{name}.mlp.c_proj", self.activation(wide))

    def _linear(self, name: str, x: Tensor, mark: str = ".") -> Tensor:
        return linear(x, self.weights[f"{name}{mark}weight"], self.weights[f"{name}{mark}bias"])

    def _norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return layer_norm(x, x.shape[-1:], weight, bias, self.epsilon)


def _weights(logits: Tensor, hidden: Tensor | None = None) -> Tensor:
    """Attention weights; in float32 at least, as the libraries have it."""
    if hidden is not None:
        logits = logits.masked_fill(hidden, -torch.inf)
    return logits.softmax(-1, dtype=None if logits.dtype == torch.float64 else torch.float32).to(logits.dtype)


Parts = tuple[dict[str, Tensor], int, Callable[[Tensor], Tensor], float]


def maker(
    parts: Callable[[Any], Parts | None], module: Any, tokenize: Callable[[Sequence[str]], Ids], end: int | None
) -> Callable[[], TextTower] | None:
    """What makes the tower of a library's module; None where the module cannot be driven so."""
    if end is None or parts(module) is None:
        return None

    def make() -> TextTower:
        found = parts(module)
        assert found is not None
        return TextTower(*found, tokenize, end)

    return make


def of_open_clip(inner: Any) -> Parts | None:
    """Weights, heads, activation and epsilon of a text tower of open_clip; None for blocks that are not CLIP's."""
    blocks = getattr(getattr(inner, "transformer", None), "resblocks", ())
    scaled = any(not isinstance(part, torch.nn.Identity) for block in blocks for part in _scales(block))
    if not blocks or scaled or type(blocks[0]).__name__ != "ResidualAttentionBlock":
        return None
    kept = ("token_embedding.", POSITIONS, "transformer.resblocks.", "ln_final.")
    weights = {name: weight for name, weight in inner.named_parameters() if name.startswith(kept)}
    projection = inner.text_projection
    if not isinstance(projection, Tensor):  # a layer, or none
        return None
    first = blocks[0]
    return {**weights, PROJECTION: projection}, first.attn.num_heads, first.mlp.gelu, first.ln_1.eps


def _scales(block: Any) -> tuple[Any, ...]:
    return getattr(block, "ls_1", None), getattr(block, "ls_2", None)


def of_transformers(module: Any) -> Parts | None:
    """The same of a CLIP of transformers; None for other models."""
    if module.config.model_type not in ("clip", "metaclip_2"):
        return None
    tower = module.text_model
    weights = {
        TOKENS: tower.embeddings.token_embedding.weight,
        POSITIONS: tower.embeddings.position_embedding.weight,
        PROJECTION: module.text_projection.weight.T,
    }
    parts = {"ln_final": tower.final_layer_norm}
    for number, layer in enumerate(tower.encoder.layers):
        name, attention = f"transformer.resblocks.{number}", layer.self_attn
        parts |= {f"{name}.ln_1": layer.layer_norm1, f"{name}.ln_2": layer.layer_norm2}
        parts |= {f"{name}.mlp.c_fc": layer.mlp.fc1, f"{name}.mlp.c_proj": layer.mlp.fc2}
        parts |= {f"{name}.attn.out_proj": attention.out_proj}
        for kind in ("weight", "bias"):
            rows = [getattr(part, kind) for part in (attention.q_proj, attention.k_proj, attention.v_proj)]
            weights[f"{name}.attn.in_proj_{kind}"] = torch.cat(rows)
    weights |= {f"{name}.{kind}": getattr(part, kind) for name, part in parts.items() for kind in ("weight", "bias")}
    first = tower.encoder.layers[0]
    return weights, first.self_attn.num_heads, first.mlp.activation_fn, first.layer_norm1.eps
