"""Names behind a context: read into tokens once, and into vectors in every step."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import normalize

from outword.encoders.torch.text_tower import TextTower
from outword.errors import ParameterError

KEPT = 17  # numbers of the width of a token that a layer keeps for gradients, about
FREE = 1 << 31  # bytes of these on a CPU; on a GPU it is a third of what is free


class Names:
    """Texts `[context] name.`; a row may have several names, whose vectors are averaged.

    The context is in the place of the words of a template. Where a text ends is told by the ids, and nothing behind the
    end of the longest is read.
    """

    def __init__(self, tower: TextTower, names: Sequence[Sequence[str]], tokens: int) -> None:
        flat = [name.replace("_", " ") for some in names for name in some]
        ids = tower.tokenize([f"{name}." for name in flat])
        ends = tower.ends(ids)
        longest = int(ends.max())
        if 1 + tokens + longest > tower.context:
            name = flat[int(ends.argmax())]
            most = tower.context - 1 - longest
            raise ParameterError(
                f"a context of {tokens} tokens leaves no room for {name!r}, which has {longest - 1}, in the "
                f"{tower.context} tokens that the encoder reads",
                hint=f"set context={most} (--set context={most})" if most > 0 else "shorten that name",
            )
        self._tower, device = tower, tower.weights["positional_embedding"].device
        self._start = tower.embed(torch.from_numpy(ids[0, :1]).to(device))
        self._own = tower.embed(torch.from_numpy(ids[:, 1 : longest + 1]).to(device))
        self._ends = torch.from_numpy(ends - 1).to(device)
        self._rows = torch.tensor([row for row, some in enumerate(names) for _ in some], device=device)
        several = len(flat) > len(names)
        self._mean = torch.nn.functional.one_hot(self._rows).T.float() if several else None
        self._together = _together(tower, len(flat), tokens + longest)

    @property
    def operations(self) -> float:
        """Multiplications of one reading, about."""
        n, length, width = self._own.shape
        return 12.0 * n * length * self._tower.layers * width**2

    def vectors(self, contexts: Tensor) -> Tensor:
        """Unit vectors (n_sets, n_rows, dim) behind contexts (n_sets, [n_rows,] tokens, width)."""
        contexts = contexts.to(self._own.dtype)
        if contexts.ndim == 3:
            shared = (torch.cat([self._start, context]) for context in contexts)
            return torch.stack([self._read(one, self._own, self._ends, contexts.requires_grad) for one in shared])
        n_sets, n_rows, tokens, _ = contexts.shape
        texts = self._own.repeat(n_sets, 1, 1), self._ends.repeat(n_sets)
        own = torch.cat([contexts[:, self._rows].flatten(0, 1), texts[0]], dim=1)
        return self._read(self._start, own, texts[1] + tokens, contexts.requires_grad).view(n_sets, n_rows, -1)

    def _read(self, shared: Tensor, own: Tensor, ends: Tensor, moves: bool) -> Tensor:
        found = self._tower.read(shared, own, ends, together=self._together if moves else None)
        if self._mean is None:
            return found
        rows = found.view(-1, self._mean.shape[1], found.shape[1])
        return normalize(self._mean.to(found.dtype) @ rows, dim=-1).flatten(0, 1)


def _together(tower: TextTower, n_texts: int, length: int) -> int | None:
    """How many texts are read at a time where all at once would keep too much for their gradients; else None."""
    sample = tower.weights["positional_embedding"]
    free = torch.cuda.mem_get_info(sample.device)[0] // 3 if sample.is_cuda else FREE
    each = KEPT * length * tower.layers * tower.width * sample.element_size()
    return None if n_texts * each <= free else max(1, free // (4 * each))
