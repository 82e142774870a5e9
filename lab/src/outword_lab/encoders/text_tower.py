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
from outword.encoders.torch.image_tower import blocks_of_transformers, no_scales
from outword.encoders.torch.towers import Model

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

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.weights[POSITIONS].device

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the weights."""
        return self.weights[POSITIONS].dtype

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

    def read(self, shared: Tensor, *texts: tuple[Tensor, Tensor], together: int | None = None) -> Tensor:
        """Unit vectors (n, dim) in float32 or better of texts that begin alike.

        Args:
            shared: (p, width), the embeddings that all begin with; there may be none.
            texts: embeddings (n, length, width) of each text from there on, and where each ends, (n,); long and short
                texts may come apart.
            together: if given, so many texts are read at a time, and once more when gradients are asked for, in place
                of what would have to be kept for that.
        """
        if together is None:
            found = self._read(shared, *texts)
        else:
            split = (zip(*(torch.split(rows, together) for rows in text), strict=True) for text in texts)
            parts = (part for some in split for part in some)
            found = torch.cat([checkpoint(self._read, shared, part, use_reentrant=False) for part in parts])
        return normalize(found if found.dtype == torch.float64 else found.float(), dim=-1)

    def _read(self, shared: Tensor, *texts: tuple[Tensor, Tensor]) -> Tensor:
        """Features of texts. All tokens go through the products together; only attention looks at texts one by one."""
        p, positions = len(shared), self.weights[POSITIONS]
        placed = [own + positions[p : p + own.shape[1]] for own, _ in texts]
        tokens = torch.cat([shared + positions[:p], *(own.flatten(0, 1) for own in placed)])
        shapes = [(1, p), *(own.shape[:2] for own in placed)]
        for layer in range(self.layers - 1):
            q, k, v = (self._apart(part, shapes) for part in self._qkv(layer, tokens))
            told = [_attend(q[0], k[0], v[0], None, _behind(q[0]))]
            told += [_attend(*part, (k[0], v[0]), _behind(part[0])) for part in zip(q[1:], k[1:], v[1:], strict=True)]
            tokens = self._rest(layer, tokens, torch.cat(told))
        q, k, v = (self._apart(part, shapes) for part in self._qkv(self.layers - 1, tokens))
        told, last = [], []  # only the ends are read from here on
        for (_, ends), q_, k_, v_, own in zip(texts, q[1:], k[1:], v[1:], self._apart(tokens, shapes)[1:], strict=True):
            rows = torch.arange(len(ends), device=ends.device)
            hidden = torch.arange(own.shape[1], device=ends.device) > ends[:, None, None]
            told.append(_attend(q_[rows, ends][:, None], k_, v_, (k[0], v[0]), hidden))
            last.append(own[rows, ends])
        read = self._rest(self.layers - 1, torch.cat(last), torch.cat(told))
        return self._norm("ln_final", read) @ self.weights[PROJECTION]

    def _apart(self, tokens: Tensor, shapes: Sequence[Sequence[int]]) -> list[Tensor]:
        """Rows (n_tokens, ...) by what they belong to, (n, length, ...) each: the beginning, then texts."""
        parts = torch.split(tokens, [n * length for n, length in shapes])
        return [part.view(*shape, *tokens.shape[1:]) for part, shape in zip(parts, shapes, strict=True)]

    def _qkv(self, layer: int, tokens: Tensor) -> list[Tensor]:
        """Queries (scaled), keys and values (n_tokens, heads, width / heads)."""
        name = f"transformer.resblocks.{layer}"
        found = self._linear(f"{name}.attn.in_proj", self._norm(f"{name}.ln_1", tokens), "_")
        q, k, v = (part.view(len(tokens), self.heads, -1) for part in found.chunk(3, dim=-1))
        return [q * q.shape[-1] ** -0.5, k, v]

    def _rest(self, layer: int, tokens: Tensor, told: Tensor) -> Tensor:
        """What follows the attention, which gave `told` (n_tokens, width)."""
        name = f"transformer.resblocks.{layer}"
        tokens = tokens + self._linear(f"{name}.attn.out_proj", told)
        wide = self._linear(f"{name}.mlp.c_fc", self._norm(f"{name}.ln_2", tokens))
        return tokens + self._linear(f"{name}.mlp.c_proj", self.activation(wide))

    def _linear(self, name: str, x: Tensor, mark: str = ".") -> Tensor:
        return linear(x, self.weights[f"{name}{mark}weight"], self.weights[f"{name}{mark}bias"])

    def _norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return layer_norm(x, x.shape[-1:], weight, bias, self.epsilon)


def _attend(q: Tensor, k: Tensor, v: Tensor, shared: tuple[Tensor, Tensor] | None, hidden: Tensor) -> Tensor:
    """What tokens (n, length, heads, d) are told by those of their own text that are not hidden, and by shared ones.

    Gives (n * length, heads * d); weights are made in float32 at least, as in the libraries.
    """
    n, length, heads, d = q.shape
    q, k, v = (part.permute(2, 0, 1, 3) for part in (q, k, v))
    logits = (q @ k.mT).masked_fill(hidden, -torch.inf)
    if shared:
        k_shared, v_shared = (part[0].transpose(0, 1) for part in shared)
        flat = q.reshape(heads, n * length, d)  # one product for all texts
        logits = torch.cat([(flat @ k_shared.mT).view(heads, n, length, -1), logits], dim=-1)
    exact = torch.float64 if q.dtype == torch.float64 else torch.float32
    weights = logits.softmax(-1, dtype=exact).to(q.dtype)
    own = weights[..., -k.shape[2] :]
    told = own @ v
    if shared:
        of_shared = weights[..., : v_shared.shape[1]].reshape(heads, n * length, -1)
        told = told + (of_shared @ v_shared).view_as(told)
    return told.permute(1, 2, 0, 3).reshape(n * length, heads * d)


def _behind(q: Tensor) -> Tensor:
    """What comes behind each token of a text (n, length, ...), (length, length)."""
    places = torch.arange(q.shape[1], device=q.device)
    return places > places[:, None]


Parts = tuple[dict[str, Tensor], int, Callable[[Tensor], Tensor], float]


def make_text_tower(model: Model) -> TextTower | None:
    """The tower of a model, of the weights as they are now; None for one that is not CLIP's."""
    found = _of_transformers(model.module) if hasattr(model.module, "config") else _of_open_clip(model.module)
    return None if found is None or model.end is None else TextTower(*found, model.tokenize, model.end)


def _of_open_clip(module: Any) -> Parts | None:
    """Weights, heads, activation and epsilon of the text tower of open_clip; None for blocks that are not CLIP's."""
    inner = getattr(module, "text", module)
    blocks = getattr(getattr(inner, "transformer", None), "resblocks", ())
    if not blocks or not no_scales(blocks):
        return None
    kept = ("token_embedding.", POSITIONS, "transformer.resblocks.", "ln_final.")
    weights = {name: weight for name, weight in inner.named_parameters() if name.startswith(kept)}
    projection = inner.text_projection
    if not isinstance(projection, Tensor):  # a layer, or none
        return None
    first = blocks[0]
    return {**weights, PROJECTION: projection}, first.attn.num_heads, first.mlp.gelu, first.ln_1.eps


def _of_transformers(module: Any) -> Parts | None:
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
    weights |= blocks_of_transformers(tower.encoder.layers)
    weights |= {f"{name}.{kind}": getattr(part, kind) for name, part in parts.items() for kind in ("weight", "bias")}
    first = tower.encoder.layers[0]
    return weights, first.self_attn.num_heads, first.mlp.activation_fn, first.layer_norm1.eps
