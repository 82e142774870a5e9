"""The kernels in torch, on any device: blocked matrix products, and torch's own log-sum-exp and top-k."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from outword.errors import InputError
from outword.maths.kernels.threads import Progress
from outword.maths.numerics import UNIT_TOLERANCE, Array

CELLS = {"cpu": 1 << 23, "cuda": 1 << 28}  # of a matrix that is held at a time


class Bank:
    """Text vectors in groups, ready to be scored against.

    Args:
        vectors: (n_columns, dim), unit rows; the members of a group are neighbours.
        offsets: (n_groups + 1,), where each group begins, and where the last one ends.
        temperature: divisor of the cosines.
        precision: of the product, "float64", "float32" or "float16"; sums are float32 at least.
        device: of torch.
    """

    def __init__(
        self,
        vectors: Array,
        offsets: NDArray[np.integer],
        *,
        temperature: float = 1.0,
        precision: str = "float64",
        device: str = "cpu",
    ) -> None:
        self._scale = 1 / temperature
        self._device = torch.device(device)
        self._columns = torch.as_tensor(vectors, device=self._device).to(getattr(torch, precision))
        self._sums = torch.promote_types(self._columns.dtype, torch.float32)
        self._runs = [(size, len(list(same))) for size, same in groupby(np.diff(offsets).tolist())]
        self._block = max(1, CELLS[self._device.type] // len(vectors))

    def log_masses(self, images: Any) -> torch.Tensor:
        """`log sum exp` of the logits of each group: images (n_images, dim) to (n_images, n_groups), on the device.

        float64. An image that is zero or not finite has NaN everywhere.
        """
        empty = torch.zeros((0, sum(count for _, count in self._runs)), dtype=torch.float64, device=self._device)
        parts = [empty]
        with torch.no_grad(), torch.autocast(self._device.type, enabled=False):
            for start in range(0, len(images), self._block):
                x = unit_on(images[start : start + self._block], self._device)
                logits = (x.to(self._columns.dtype) @ self._columns.T).to(self._sums)
                parts.append(self._masses(logits.mul_(self._scale)))
        return torch.cat(parts)

    def _masses(self, logits: torch.Tensor) -> torch.Tensor:
        masses, start = [], 0
        for size, count in self._runs:
            columns = logits[:, start : start + size * count].reshape(len(logits), count, size)
            masses.append(torch.logsumexp(columns, dim=2))
            start += size * count
        return torch.cat(masses, dim=1).double()


def neighbour_density(words: Any, alpha: int, *, device: str = "cpu", progress: Progress | None = None) -> Array:
    """Sum of squared distances `2 - 2 cos` of each row to its `alpha` nearest other rows, in float64."""
    raw = tensor_on(words, torch.device(device))
    lengths = row_lengths(raw, "words")
    size = max(1, CELLS[raw.device.type] // len(raw))
    sums = []
    for start in range(0, len(raw), size):
        rows = torch.arange(start, min(start + size, len(raw)), device=raw.device)
        sums.append(nearest_sums(raw, lengths, rows, alpha))
        if progress:
            progress(min(start + size, len(raw)), len(raw))
    return np.asarray(torch.cat(sums).cpu())


def nearest_sums(words: torch.Tensor, lengths: torch.Tensor, rows: torch.Tensor, alpha: int) -> torch.Tensor:
    """The sums of some rows only, (n_rows,) float64: every cosine is computed, and the largest are taken."""
    cosines = torch.empty((len(rows), len(words)), dtype=torch.float64, device=words.device)
    own = words[rows].double() / lengths[rows, None]
    for start in range(0, len(words), 8192):
        columns = slice(start, start + 8192)
        torch.matmul(own, words[columns].double().T, out=cosines[:, columns])
    cosines /= lengths
    cosines[torch.arange(len(rows), device=words.device), rows] = -torch.inf
    return 2 * alpha - 2 * torch.topk(cosines, alpha, dim=1, sorted=True).values.sum(dim=1)


def unit_on(images: Any, device: torch.device) -> torch.Tensor:
    """Rows on a device, divided by their lengths; rows within rounding of length 1 are left as they are.

    A row that is zero or not finite becomes NaN.
    """
    x = tensor_on(images, device)
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    lengths = torch.linalg.vector_norm(x, dim=1, dtype=torch.float64)
    lengths = torch.where((lengths - 1).abs() <= UNIT_TOLERANCE, 1.0, lengths)
    return (x / torch.where(lengths < torch.inf, lengths, torch.nan)[:, None]).to(x.dtype)


def tensor_on(values: Any, device: torch.device) -> torch.Tensor:
    """An array or a tensor on a device, row after row. Floats keep their type, but for float16 arrays: float32."""
    if not isinstance(values, torch.Tensor):
        array = np.asarray(values)
        kind = np.float64 if array.dtype.itemsize > 4 else np.float32
        values = torch.from_numpy(np.require(array, kind, ["C", "W"]))  # torch wants its own bytes in plain order
    kept: torch.Tensor = values.detach()
    return kept.to(device, kept.dtype if kept.is_floating_point() else torch.float64).contiguous()


def row_lengths(rows: torch.Tensor, name: str) -> torch.Tensor:
    """Lengths of rows, (n,) float64; a row that is zero or not finite is an error."""
    parts = [torch.linalg.vector_norm(part, dim=1, dtype=torch.float64) for part in torch.split(rows, 1 << 16)]
    lengths = torch.cat(parts)
    good = (lengths > 0) & (lengths < torch.inf)
    if not bool(good.all()):
        bad = int(good.int().argmin())
        raise InputError(f"{name} must be finite and not zero, row {bad} is not", hint="drop that row")
    return lengths
