"""Names behind a context: read into tokens once, and into vectors in every step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from outword.encoders.texts import Ids
from outword.errors import ParameterError
from outword_lab.encoders.text_tower import TextTower

PARTS = 2  # in which long lists are read, the short texts and the long ones; three are slower on a GPU
SMALL = 1e9  # multiplications of a reading below which one part is best
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
                hint=f"set context={most}, or begin with fewer words (start)" if most > 0 else "shorten that name",
            )
        self._tower, device = tower, tower.device
        rows = np.repeat(np.arange(len(names)), [len(some) for some in names])
        several = len(flat) > len(names)
        self._mean = torch.from_numpy(np.eye(len(names), dtype=np.float32)[:, rows]).to(device) if several else None
        self._start = tower.embed(torch.from_numpy(ids[0, :1]).to(device))
        self.operations = 12.0 * len(flat) * longest * tower.layers * tower.width**2  # of one reading, about
        parts = _alike(ends) if self.operations > SMALL else [np.arange(len(flat))]
        self._order = torch.from_numpy(np.argsort(np.concatenate(parts))).to(device)
        self._parts = []
        for part in parts:
            tokens_of_part = torch.from_numpy(ids[part, 1 : int(ends[part].max()) + 1]).to(device)
            places = (torch.from_numpy(array).to(device) for array in (ends[part] - 1, rows[part]))
            self._parts.append((tower.embed(tokens_of_part), *places))
        self._together = _together(tower, len(flat), tokens + longest)

    @property
    def at_once(self) -> bool:
        """Whether all texts are read at once, also where gradients are asked for."""
        return self._together is None

    def vectors(self, contexts: Tensor) -> Tensor:
        """Unit vectors (n_sets, n_rows, dim) behind contexts (n_sets, [n_rows,] tokens, width)."""
        sets = [self._read(context) for context in contexts.to(self._start.dtype)]
        return torch.stack(sets)

    def _read(self, context: Tensor) -> Tensor:
        """Unit vectors (n_rows, dim) behind a context (tokens, width), or one for each row."""
        together = self._together if context.requires_grad else None
        if context.ndim == 2:
            shared, texts = torch.cat([self._start, context]), [(name, ends) for name, ends, _ in self._parts]
        else:
            shared, parts = self._start, ((context[rows], name, ends) for name, ends, rows in self._parts)
            texts = [(torch.cat([own, name], dim=1), ends + own.shape[1]) for own, name, ends in parts]
        vectors = self._tower.read(shared, *texts, together=together)[self._order]
        return vectors if self._mean is None else normalize(self._mean.to(vectors.dtype) @ vectors, dim=-1)


def _alike(ends: Ids) -> list[Ids]:
    """Texts in parts of similar length: those that leave the fewest places empty behind an end."""
    lengths = np.unique(ends)
    cuts = [*combinations(lengths[:-1], min(PARTS, len(lengths)) - 1)]
    edges = [np.array([*cut, lengths[-1]]) for cut in cuts]
    best = min(edges, key=lambda some: int(some[np.searchsorted(some, ends)].sum()))
    return [np.flatnonzero(np.searchsorted(best, ends) == part) for part in range(len(best))]


def _together(tower: TextTower, n_texts: int, length: int) -> int | None:
    """How many texts are read at a time where all at once would keep too much for their gradients; else None."""
    free = torch.cuda.mem_get_info(tower.device)[0] // 3 if tower.device.type == "cuda" else FREE
    each = KEPT * length * tower.layers * tower.width * tower.dtype.itemsize
    return None if n_texts * each <= free else max(1, free // (4 * each))
