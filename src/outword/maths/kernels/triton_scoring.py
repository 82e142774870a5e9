"""Grouped log-sum-exp on CUDA, fused: tiles of logits live in registers, and the N x labels matrix is never written.

The bank is laid out in tiles of 128 columns, each of one group; what a group does not fill is masked. A tile of 128
images x 128 columns is multiplied on the tensor cores, its rows are reduced to `log2 sum 2^logit` with the tile's own
maximum, and that number is all that leaves the chip. A second, small kernel adds up the tiles of each group. Where the
nearest labels and words are wanted too, a tile also gives its largest logits with their places, while it is there: the
largest of all are among these. Labels of several rows have sums, so that their tiles are written out.

Two precisions. float16 rounds the vectors to 11 bits and multiplies once. float32 splits each number into two halves
of 11 bits, `x = high + low / 2048`, and multiplies three times (`high high + (high low + low high) / 2048`), which
keeps 22 bits; tensor cores cut bits off when they add, so every 64 products are added up apart and then in float32.

The mean m of the bank is taken out first: `x . u = x . (u - m) + x . m`, and the last term, one number an image, is
added in float64 at the end. Texts of one model are alike, so what is rounded is smaller, and so is the error.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from triton.tools.tensor_descriptor import TensorDescriptor

from outword.maths.kernels.choice import interpreted
from outword.maths.kernels.evidence import Evidence, Owners, Words, evidence, words_in
from outword.maths.kernels.torch_blas import TORCH, joined, owners_on, tensor_on, words_on
from outword.maths.numerics import UNIT_TOLERANCE, Array

TILE = 128  # images and columns of a tile
STEP = 64  # dimensions that are multiplied at a time
BLOCK = 1 << 16  # images that are scored together, fewer where there are many tiles
LOW = 2048.0  # 2^11: what the lower halves are multiplied with, so that they are not too small for float16
LOG2E = 1.4426950408889634


class Bank:
    """Text vectors in groups (see `kernels.make_bank`) on a CUDA device, ready to be scored against."""

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
    ) -> None:
        self._device = device()
        self._scale = LOG2E / temperature
        self._split, self._peak = precision == "float32", peak
        u = torch.as_tensor(vectors, dtype=torch.float64, device=self._device)
        self._mean = u.mean(dim=0)
        place, used, tile = tiles_of(offsets)
        first = min(first, len(offsets) - 1)
        of_tile = np.repeat(np.arange(len(tile) - 1), np.diff(tile))
        start = TILE * (np.arange(len(used)) - tile[of_tile]) + np.asarray(offsets)[of_tile]
        start[tile[first] :] -= offsets[first]  # among the words
        self._used, self._start, self._tile = (torch.as_tensor(a, device=self._device) for a in (used, start, tile))
        self._first, self._n_labels, self._n_words = first, int(offsets[1]), int(offsets[-1] - offsets[first])
        self._label_tiles, self._before, self._word_tiles = int(tile[1]), int(tile[first]), of_tile[tile[first] :]
        self._words: dict[int, Words] = {}
        self._owners = owners_on(owners, self._device)
        tiles = torch.zeros((len(self._used) * TILE, padded(u.shape[1])), dtype=torch.float64, device=self._device)
        tiles[place, : u.shape[1]] = u - self._mean
        high = tiles.half()
        self._high = described(high)
        self._low = described(((tiles - high) * LOW).half()) if self._split else self._high

    def log_masses(self, images: Any) -> torch.Tensor:
        """See `kernels.Bank`; on the device, in float64, or float32 where the precision is float16."""
        with at_device(self._device):
            return torch.cat([self._block(part, 0)[0] for part in self._blocks(images, len(self._used))])

    def evidence(self, images: Any, top: int) -> tuple[torch.Tensor, Evidence]:
        """Log masses, and the `top` labels and words, from one product; all on the device."""
        with at_device(self._device):
            most = self._label_tiles * TILE if self._owners else 0
            cells = max(most, min(top, TILE) * len(self._used))
            return joined([self._judged(part, top) for part in self._blocks(images, cells)])

    def _blocks(self, images: Any, cells: int) -> list[Any]:
        """Images that are scored together, of each of which so many numbers are kept; none where there are none."""
        size = min(BLOCK, max(TILE, TILE * BLOCK // cells))
        return [images[start : start + size] for start in range(0, len(images) or 1, size)]

    def _judged(self, images: Any, top: int) -> tuple[torch.Tensor, Evidence]:
        masses, shift, logits, places, rows = self._block(images, kept := min(top, TILE))
        logits, rows = (part.double() * (self._scale / LOG2E) for part in (logits, rows))
        of_groups = masses - shift[:, None] / LOG2E
        of_groups = torch.cat([of_groups[:, :1], of_groups[:, self._first : len(self._tile) - 1]], dim=1)
        labels, near = (part[:, : self._label_tiles * kept] for part in (logits, places))
        labels = rows[:, : self._n_labels] if self._owners else labels
        words, nearest = (part[:, self._before * kept :] for part in (logits, places))
        pieces = self._kept_words(kept)
        found = evidence(TORCH, labels, words, words[:, ::kept], of_groups, pieces, top, self._owners)
        found = found._replace(words=TORCH.take(nearest, found.words))
        if self._owners:
            return masses, found
        most = min(top, self._n_labels)
        named = TORCH.take(near, found.labels[:, :most])
        return masses, found._replace(labels=named, label_shares=found.label_shares[:, :most], kinds=named)

    def _kept_words(self, kept: int) -> Words:
        """How words lie among the logits that are kept of each tile."""
        if kept not in self._words:
            cuts = kept * np.arange(len(self._word_tiles) + 1)
            self._words[kept] = words_on(words_in(cuts, self._word_tiles, self._n_words), self._device)
        return self._words[kept]

    def _block(self, images: Any, top: int) -> tuple[torch.Tensor, ...]:
        """Log masses (and peak), what the mean adds to all logits of an image, and `top` products a tile with places.

        If any are wanted, and labels have several rows, also the products of all rows. Tiles know their largest
        logits, so that the peak takes no pass of its own; logits are to base 2, masses to e.
        """
        x = tensor_on(images, self._device)
        n, n_tiles, n_groups = len(x), len(self._used), len(self._tile) - 1
        high = torch.empty((n, self._high.shape[1]), dtype=torch.float16, device=self._device)
        low = torch.empty_like(high) if self._split else high
        shift = torch.empty(n, dtype=torch.float64, device=self._device)
        kind = torch.float64 if self._split else torch.float32
        masses = torch.empty((n_groups + self._peak, n), dtype=kind, device=self._device)
        most = torch.empty((n, n_tiles * top), device=self._device)
        places = torch.empty((n, n_tiles * top), dtype=torch.int64, device=self._device)
        whole = self._label_tiles if top and self._owners else 0
        rows = torch.empty((n, whole * TILE), device=self._device)
        if not n:
            return masses.T, shift, most, places, rows
        _halve[(n,)](
            x, self._mean, high, low, shift, x.stride(0), self._scale, UNIT_TOLERANCE,
            DIM=x.shape[1], WIDTH=high.shape[1], POWER=triton.next_power_of_2(high.shape[1]), SPLIT=self._split,
            num_warps=1,
        )  # fmt: skip
        tops, logs = torch.empty((2, n_tiles, n), device=self._device)
        programs = resident()
        _tile_masses[(programs,)](
            described(high), described(low), self._high, self._low,
            self._used, self._start, tops, logs, most, places, rows, n, n_tiles, top, whole, self._scale, 1.0,
            DIM=high.shape[1], SPLIT=self._split, TOLD=top > 0, WHOLE=whole > 0,
            SIZE=TILE, DEPTH=STEP, PROGRAMS=programs, num_warps=8 if self._split else 4,
            num_stages=2 if whole else 3,  # a tile on its way out takes the memory of a stage
        )  # fmt: skip
        _group_masses[(triton.cdiv(n, TILE), n_groups)](tops, logs, self._tile, shift, masses, n, SIZE=TILE)
        if self._peak:
            masses[-1] = (tops[: self._label_tiles].amax(dim=0) + shift) / LOG2E
        return masses.T, shift, most, places, rows


@triton.jit
def _halve(
    x, mean, high, low, shift, stride, scale, tolerance,
    DIM: tl.constexpr, WIDTH: tl.constexpr, POWER: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """One image: the halves of its unit vector, and its logit with the mean of the bank, to base 2.

    An image that is zero or not finite has NaN there, and so for all of its masses.
    """
    row = tl.program_id(0).to(tl.int64)
    k = tl.arange(0, POWER)
    wide: tl.constexpr = tl.float64 if SPLIT else tl.float32
    values = tl.load(x + row * stride + k, mask=k < DIM, other=0.0).to(wide)
    top = tl.max(tl.abs(values), 0)  # taken out first: squares of very long and very short rows have no float32
    sane = (top > 1e-37) & (top < float("inf"))
    scaled = values * (1 / tl.where(sane, top, 1.0).to(wide))
    length = tl.sqrt(tl.sum(scaled * scaled, 0))
    fine = sane & (length < float("inf"))
    unit = scaled * (1 / tl.where(fine, length, 1.0).to(wide))
    values = tl.where(tl.abs(length * top - 1) <= tolerance, values, unit)
    values = tl.where(fine, values, 0.0)
    along = tl.sum(values * tl.load(mean + k, mask=k < DIM, other=0.0).to(wide), 0)
    tl.store(shift + row, tl.where(fine, along * scale, float("nan")).to(tl.float64))
    upper = values.to(tl.float16)
    tl.store(high + row * WIDTH + k, upper, mask=k < WIDTH)
    if SPLIT:
        tl.store(low + row * WIDTH + k, ((values - upper.to(wide)) * 2048).to(tl.float16), mask=k < WIDTH)


@triton.jit
def _tile_masses(
    x, x_low, bank, bank_low, used, start, tops, logs, most, places, whole,
    n_images, n_tiles, n_most, n_whole, scale, one,
    DIM: tl.constexpr, SPLIT: tl.constexpr, TOLD: tl.constexpr, WHOLE: tl.constexpr,
    SIZE: tl.constexpr, DEPTH: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """Of each image and each tile of columns: the largest logit, and log2 of the sum of 2^(logit - largest).

    If TOLD, also the `n_most` largest products, -inf after the last, with their places. If WHOLE, also all products of
    the first `n_whole` tiles.

    A program takes one tile after the other, 32 rows of tiles at a time, so that what is read stays in the L2 cache.
    """
    bands = tl.cdiv(n_images, SIZE)
    column = tl.arange(0, SIZE)
    for turn in tl.range(tl.program_id(0), bands * n_tiles, PROGRAMS, flatten=True):
        first = turn // (32 * n_tiles) * 32
        here = tl.minimum(bands - first, 32)
        band = first + turn % (32 * n_tiles) % here
        tile = turn % (32 * n_tiles) // here
        logits = tl.zeros((SIZE, SIZE), tl.float32)
        rest = tl.zeros((SIZE, SIZE), tl.float32)
        for k in range(0, DIM, DEPTH):
            a = x.load([band * SIZE, k])
            b = bank.load([tile * SIZE, k])
            if SPLIT:
                rest = tl.dot(a, bank_low.load([tile * SIZE, k]).T, rest)
                rest = tl.dot(x_low.load([band * SIZE, k]), b.T, rest)
                logits += tl.dot(a, b.T) * one  # `one` keeps the compiler from adding on the tensor cores
            else:
                logits = tl.dot(a, b.T, logits)
        if SPLIT:
            logits += rest * (1 / 2048)
        logits = tl.where((column < tl.load(used + tile))[None, :], logits, float("-inf"))
        top = tl.max(logits, 1) * scale
        total = tl.sum(tl.exp2(logits * scale - top[:, None]), 1)
        rows = band * SIZE + tl.arange(0, SIZE)
        at = tile.to(tl.int64) * n_images + rows
        tl.store(tops + at, top, mask=rows < n_images)
        tl.store(logs + at, tl.log2(total), mask=rows < n_images)
        if WHOLE:
            at = rows.to(tl.int64)[:, None] * (n_whole * SIZE) + tile * SIZE + column[None, :]
            tl.store(whole + at, logits, mask=(rows < n_images)[:, None] & (tile < n_whole))
        if TOLD:
            begin = tl.load(start + tile)
            at = (rows.to(tl.int64) * n_tiles + tile) * n_most
            for place in range(n_most):
                value, found = tl.max(logits, 1, return_indices=True)
                tl.store(most + at + place, value, mask=rows < n_images)
                tl.store(places + at + place, begin + found, mask=rows < n_images)
                logits = tl.where(column[None, :] == found[:, None], float("-inf"), logits)


@triton.jit
def _group_masses(tops, logs, first, shift, masses, n_images, SIZE: tl.constexpr):
    """Add up the tiles of a group: `log sum exp` to base e, with the shift of each image."""
    group = tl.program_id(1)
    rows = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    inside = rows < n_images
    begin, end = tl.load(first + group), tl.load(first + group + 1)
    most = tl.load(tops + begin * n_images + rows, mask=inside, other=0.0)
    log = tl.load(logs + begin * n_images + rows, mask=inside, other=0.0)
    if end > begin + 1:
        for tile in range(begin + 1, end):
            most = tl.maximum(most, tl.load(tops + tile * n_images + rows, mask=inside, other=0.0))
        total = tl.zeros((SIZE,), tl.float32)
        for tile in range(begin, end):
            above = tl.load(tops + tile * n_images + rows, mask=inside, other=0.0) - most
            total += tl.exp2(above + tl.load(logs + tile * n_images + rows, mask=inside, other=0.0))
        log = tl.log2(total)
    found = most.to(tl.float64) + log.to(tl.float64) + tl.load(shift + rows, mask=inside, other=0.0)
    found = (found * 0.6931471805599453).to(masses.dtype.element_ty)
    tl.store(masses + group.to(tl.int64) * n_images + rows, found, mask=inside)


def tiles_of(offsets: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Where each column goes, how many columns of each tile are used, and at which tile each group begins.

    >>> place, used, first = tiles_of(np.array([0, 2, 132]))
    >>> place[[0, 1, 2, 129, 130]].tolist(), used.tolist(), first.tolist()
    ([0, 1, 128, 255, 256], [2, 128, 2], [0, 1, 3])
    """
    sizes = np.diff(offsets)
    counts = -(-sizes // TILE)
    first = np.cumsum([0, *counts])
    place = np.concatenate([TILE * begin + np.arange(size) for begin, size in zip(first, sizes, strict=False)])
    used = np.minimum(TILE, np.concatenate([np.arange(size, 0, -TILE) for size in sizes]))
    return place, used, first


def device() -> torch.device:
    """The current CUDA device; the CPU where Triton interprets, which is slow and for tests."""
    return torch.device("cpu") if interpreted() else torch.device("cuda", torch.cuda.current_device())


def at_device(chosen: torch.device) -> AbstractContextManager[object]:
    """A block whose kernels run on this device, whatever the current one is."""
    return nullcontext() if chosen.type == "cpu" else torch.cuda.device(chosen)


def resident() -> int:
    """How many programs share the tiles: two a multiprocessor, so that one multiplies while the other adds up."""
    if interpreted():
        return 2
    return 2 * torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count


def described(matrix: torch.Tensor) -> TensorDescriptor:
    """A matrix as kernels load it, tile by tile; beyond its edge there are zeros."""
    return TensorDescriptor.from_tensor(matrix, (TILE, STEP))


def padded(dim: int) -> int:
    """The width that vectors are padded to, with zeros."""
    return -(-dim // STEP) * STEP
