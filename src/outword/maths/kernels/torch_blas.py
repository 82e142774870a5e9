"""The kernels in torch, on any device: blocked matrix products, and torch's own log-sum-exp and top-k."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from outword.base.reports import Steps
from outword.errors import InputError
from outword.maths.kernels.evidence import Evidence, Ops, Owners, Words, evidence, words_in
from outword.maths.numerics import UNIT_TOLERANCE, Array

CELLS = {"cpu": 1 << 23, "cuda": 1 << 28}  # of a matrix that is held at a time


class Bank:
    """Text vectors in groups (see `kernels.make_bank`), on a device; sums are float32 at least."""

    def __init__(
        self,
        vectors: Array,
        offsets: NDArray[np.integer],
        *,
        temperature: float,
        precision: str,
        first: int,
        owners: Owners | None,
        peak: bool,
        device: str,
    ) -> None:
        self._scale, self._peak = 1 / temperature, peak
        self._device = torch.device(device)
        self._columns = torch.as_tensor(vectors, device=self._device).to(getattr(torch, precision))
        self._sums = torch.promote_types(self._columns.dtype, torch.float32)
        self._runs = [(size, len(list(same))) for size, same in groupby(np.diff(offsets).tolist())]
        self._n_groups = len(offsets) - 1
        self._block = max(1, CELLS[self._device.type] // len(vectors))
        self._first, self._n_labels, self._before = first, int(offsets[1]), int(offsets[min(first, len(offsets) - 1)])
        words = words_in(np.asarray(offsets[first:]), np.arange(len(offsets[first:]) - 1), len(vectors) - self._before)
        self._words, self._owners = words_on(words, self._device), owners_on(owners, self._device)

    def log_masses(self, images: Any) -> torch.Tensor:
        """See `kernels.Bank`; on the device, in float64."""
        with torch.no_grad(), torch.autocast(self._device.type, enabled=False):
            return torch.cat([self._masses(logits) for logits in self._logits(images)])

    def evidence(self, images: Any, top: int) -> tuple[torch.Tensor, Evidence]:
        """Log masses, and the `top` labels and words, from one product; all on the device."""
        parts = []
        with torch.no_grad(), torch.autocast(self._device.type, enabled=False):
            for logits in self._logits(images):
                masses = self._masses(logits)
                best = self._by_group(logits, torch.amax)[:, self._first :]
                of_groups = torch.cat([masses[:, :1], masses[:, self._first : self._n_groups]], dim=1)
                labels, words = logits[:, : self._n_labels], logits[:, self._before :]
                found = evidence(TORCH, labels, words, best, of_groups, self._words, top, self._owners)
                parts.append((masses, found))
        return joined(parts)

    def _logits(self, images: Any) -> Iterator[torch.Tensor]:
        """Of a block of images at a time; of none where there are none."""
        for start in range(0, len(images) or 1, self._block):
            x = unit_on(images[start : start + self._block], self._device)
            yield (x.to(self._columns.dtype) @ self._columns.T).to(self._sums).mul_(self._scale)

    def _masses(self, logits: torch.Tensor) -> torch.Tensor:
        """Log masses in float64, and the peak of the labels after them where it is wanted."""
        masses = self._by_group(logits, torch.logsumexp)
        if self._peak:
            masses = torch.cat([masses, logits[:, : self._n_labels].amax(dim=1, keepdim=True)], dim=1)
        return masses.double()

    def _by_group(self, logits: torch.Tensor, reduce: Callable[..., torch.Tensor]) -> torch.Tensor:
        """Logits (n_images, n_columns) to (n_images, n_groups)."""
        found, start = [], 0
        for size, count in self._runs:
            columns = logits[:, start : start + size * count].reshape(len(logits), count, size)
            found.append(reduce(columns, dim=2))
            start += size * count
        return torch.cat(found, dim=1)


TORCH = Ops(
    torch,
    lambda values, places: torch.take_along_dim(values, places, 1),
    lambda values, top: torch.sort(values, dim=1, descending=True, stable=True).indices[:, :top],
    lambda values: torch.sort(values, dim=1).values,
    lambda values, how, offsets: torch.segment_reduce(values.T.contiguous(), how, offsets=offsets, unsafe=True).T,
)


def words_on(words: Words, device: torch.device) -> Words:
    """The same with tensors on a device."""
    starts, ends, groups, ramp = (torch.as_tensor(part, device=device) for part in words[:-1])
    return Words(starts, ends, groups, ramp, words.total)


def owners_on(owners: Owners | None, device: torch.device) -> Owners | None:
    """The same with tensors on a device."""
    return owners and Owners(*(torch.as_tensor(part, device=device) for part in owners))


def joined(parts: list[tuple[torch.Tensor, Evidence]]) -> tuple[torch.Tensor, Evidence]:
    """Log masses and evidence of blocks of images, as one."""
    masses, found = zip(*parts, strict=True)
    return torch.cat(masses), Evidence(*map(torch.cat, zip(*found, strict=True)))


def begin_copies(tensors: Sequence[torch.Tensor]) -> Callable[[], list[NDArray[Any]]]:
    """Copy tensors of a CUDA device to pinned memory behind what is queued there; what is returned waits for that."""
    copies = [torch.empty(t.shape, dtype=t.dtype, pin_memory=True).copy_(t, non_blocking=True) for t in tensors]
    done = torch.cuda.Event()  # type: ignore[no-untyped-call]
    done.record(torch.cuda.current_stream(tensors[0].device))

    def wait() -> list[NDArray[Any]]:
        done.synchronize()
        return [copy.numpy() for copy in copies]

    return wait


def neighbour_density(words: Any, alpha: int, *, device: str = "cpu", progress: Steps | None = None) -> Array:
    """Sum of squared distances `2 - 2 cos` of each row to its `alpha` nearest other rows, in float64."""
    raw = tensor_on(words, torch.device(device))
    lengths = row_lengths(raw, "words")
    every = torch.arange(len(raw), device=raw.device)
    size = max(1, CELLS[raw.device.type] // len(raw))
    sums = torch.empty(len(raw), dtype=torch.float64, device=raw.device)
    for start in range(0, len(raw), size):
        some = slice(start, start + size)
        sums[some] = nearest_sums(raw, lengths, every[some], alpha)
        if progress:
            progress(min(some.stop, len(raw)), len(raw))
    return np.asarray(sums.cpu())


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
