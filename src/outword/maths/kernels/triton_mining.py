"""Exact density mining on CUDA without a T x T matrix, and without a top-k over T numbers.

Let `c` be the cosine of two words and `c'` the product of their vectors in float16: `|c' - c| <= e`, see `error_bound`.

1. Guess. Of each word, its products with a sample of the words; a threshold that about 256 words should reach.
2. Mark. All products, in tiles on the tensor cores. Of each tile only a bit a product leaves the chip: whether it
   reaches the threshold of its row. Where the bits of all words are held at once, each pair is multiplied once, and has
   a bit for either word.
3. Settle. Of each word, the marked words are read from the bits, their products computed again, and the alpha-th
   largest of these, `v`, found. At least alpha cosines are `>= v - e`, so each of the alpha nearest has a product
   `>= v - 2 e`. Cosines of those, and of no others, are computed in float64, and the alpha largest are summed. Words
   that lie close to one another are done together (`_order`): they read the same words, which the cache still has.

The result is exact if no word was missed, that is, if the threshold was `<= v - 2 e` and the marked words fit into
the space set aside for them. Both are checked for each word; the few that fail are done again the plain way, with all
of their cosines in float64. So a bad guess costs time and never changes a result.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from outword.base.reports import Steps
from outword.maths.kernels.torch_blas import plain_sums, row_lengths, tensor_on
from outword.maths.kernels.triton_scoring import STEP, TILE, described, device, padded, resident
from outword.maths.numerics import Array

RANK = 16  # the threshold is about this number's place among the products with the sample
WANTED = 256  # words that should reach the threshold, at least
MOST_ALPHA = 400  # above it, sorting what was marked costs more than it saves
FEWEST = 16_384  # words, under which a sample says too little
FEW = 4  # words whose vectors are read together
CENTRES = 1024  # words of the sample that others are put in order by
BITS = 1 << 33  # that are held at a time: 1 GB
BANDS = 16  # rows of tiles that are done together
PARTS = 8  # words that are done the plain way have one of so many parts of the cells


def neighbour_density(
    words: Any, alpha: int, *, progress: Steps | None = None, fewest: int = FEWEST, seed: int = 0
) -> Array:
    """See `kernels.neighbour_density`; with fewer words than `fewest` all cosines are computed in float64.

    The seed is that of the sample, and has no part in the result.
    """
    raw = tensor_on(words, device())
    lengths = row_lengths(raw, "words")
    if len(raw) < fewest or alpha > MOST_ALPHA:
        every = torch.arange(len(raw), device=raw.device)
        return np.asarray(plain_sums(raw, lengths, every, alpha, progress, PARTS).cpu())
    miner = _Miner(raw, lengths, alpha, seed)
    sums = torch.empty(len(raw), dtype=torch.float64, device=raw.device)
    settled = torch.empty(len(raw), dtype=torch.int32, device=raw.device)
    size = max(TILE, BITS // len(raw) // TILE * TILE)
    for start in range(0, len(raw), size):
        rows = slice(start, min(start + size, len(raw)))
        miner.block(rows, sums[rows], settled[rows])
        if progress and rows.stop < len(raw):
            progress(rows.stop, len(raw))
    rest = torch.nonzero(settled == 0)[:, 0]
    sums[rest] = plain_sums(raw, lengths, rest, alpha, None, PARTS)
    if progress:
        progress(len(raw), len(raw))
    return np.asarray(sums.cpu())


def error_bound(dim: int) -> float:
    """How far a product of unit vectors in float16, added up in float32, is from the cosine, at most.

    Rounding to 11 bits changes a number by 2^-11 of it at most, and `sum |x_i y_i| <= 1`: 2^-10 for both factors. Each
    of `dim` additions cuts off 2^-23 at most; twice that is allowed for, numbers too small for float16 included.
    """
    return 2.0**-10 + dim * 2.0**-22


class _Miner:
    """The words in float16 with what the three steps need."""

    def __init__(self, raw: torch.Tensor, lengths: torch.Tensor, alpha: int, seed: int) -> None:
        self.raw, self.lengths, self.alpha = raw, lengths, alpha
        dim = raw.shape[1]
        self.margin = 2 * error_bound(dim)
        self.half = torch.zeros((len(raw), padded(dim)), dtype=torch.float16, device=raw.device)
        for start in range(0, len(raw), 1 << 16):
            rows = slice(start, start + (1 << 16))
            self.half[rows, :dim] = (raw[rows] / lengths[rows, None]).half()
        self.power = triton.next_power_of_2(self.half.shape[1])
        wanted = max(WANTED, 5 * alpha // 2)
        self.space = triton.next_power_of_2(2 * wanted)
        generator = torch.Generator(device=raw.device).manual_seed(seed)
        count = max(32 * RANK, RANK * len(raw) // wanted)
        self.sample = self.half[torch.randperm(len(raw), generator=generator, device=raw.device)[:count]]

    def block(self, rows: slice, sums: torch.Tensor, settled: torch.Tensor) -> None:
        """Sums of some rows; `settled` says of which they hold."""
        part = self.half[rows]
        largest = self._tiles(part, self.sample, 16, torch.float32, None)  # of every 16 products with the sample
        thresholds = torch.topk(largest, RANK, dim=1).values[:, -1] - self.margin
        whole = len(part) == len(self.half)
        bits = self._pairs(thresholds) if whole else self._tiles(part, self.half, 32, torch.int32, thresholds)
        grid, space = (len(part),), self.space
        marked = torch.empty((len(part), space), dtype=torch.int32, device=part.device)
        numbers = torch.empty(len(part), dtype=torch.int32, device=part.device)
        _list_marked[grid](bits, marked, numbers, bits.shape[1], SPACE=space, CELLS=1024)

        def products(words: torch.Tensor, lengths: torch.Tensor | None) -> torch.Tensor:
            kind = torch.float32 if lengths is None else torch.float64
            out = torch.empty((len(part), space), dtype=kind, device=part.device)
            _products[grid](
                words, lengths, order, marked, numbers, out, rows.start,
                WIDTH=words.shape[1], POWER=self.power, SPACE=space, FEW=FEW, num_warps=1,
            )  # fmt: skip
            return out

        order = self._order(part)
        near = products(self.half, None)
        _keep_near[grid](near, marked, numbers, thresholds, settled, self.margin, self.alpha, SPACE=space)
        _sum_nearest[grid](products(self.raw, self.lengths), numbers, sums, self.alpha, SPACE=space, num_warps=1)

    def _order(self, part: torch.Tensor) -> torch.Tensor:
        """The rows of a part, those with the same nearest word of some behind one another."""
        return torch.argsort((part @ self.sample[:CENTRES].T).argmax(dim=1))

    def _pairs(self, thresholds: torch.Tensor) -> torch.Tensor:
        """The bits of all words, of which each pair is multiplied once."""
        words, programs = described(self.half), resident()
        width = triton.cdiv(len(self.half), TILE) * (TILE // 32)
        out = torch.empty((len(self.half), width), dtype=torch.int32, device=self.half.device)
        _marked_once[(programs,)](
            words, thresholds, out, len(self.half),
            WIDTH=self.half.shape[1], SIZE=TILE, DEPTH=STEP, BANDS=BANDS, PROGRAMS=programs, num_warps=4, num_stages=3,
        )  # fmt: skip
        return out

    def _tiles(
        self, part: torch.Tensor, columns: torch.Tensor, per: int, kind: torch.dtype, thresholds: torch.Tensor | None
    ) -> torch.Tensor:
        """Reduce all products, in tiles, to one number for every `per` columns."""
        width = triton.cdiv(len(columns), TILE) * (TILE // per)
        out = torch.empty((len(part), width), dtype=kind, device=part.device)
        programs = resident()
        _reduced[(programs,)](
            described(part), described(columns), thresholds, out, len(part), len(columns),
            WIDTH=part.shape[1], SIZE=TILE, DEPTH=STEP, PER=per, PROGRAMS=programs, num_warps=4, num_stages=3,
        )  # fmt: skip
        return out


@triton.jit
def _reduced(
    rows, columns, thresholds, out, n_rows, n_columns,
    WIDTH: tl.constexpr, SIZE: tl.constexpr, DEPTH: tl.constexpr, PER: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """Of every PER products of a row, a bit for each, whether it reaches the threshold; without those, the largest.

    A program takes one tile after the other, 32 rows of tiles at a time, so that what is read stays in the L2 cache.
    """
    count: tl.constexpr = SIZE // PER
    bands, n_tiles = tl.cdiv(n_rows, SIZE), tl.cdiv(n_columns, SIZE)
    bit = (1 << (tl.arange(0, SIZE) % PER)).to(tl.int32)
    for turn in tl.range(tl.program_id(0), bands * n_tiles, PROGRAMS, flatten=True):
        first = turn // (32 * n_tiles) * 32
        here = tl.minimum(bands - first, 32)
        band = first + turn % (32 * n_tiles) % here
        tile = turn % (32 * n_tiles) // here
        products = tl.zeros((SIZE, SIZE), tl.float32)
        for k in range(0, WIDTH, DEPTH):
            products = tl.dot(rows.load([band * SIZE, k]), columns.load([tile * SIZE, k]).T, products)
        at = band * SIZE + tl.arange(0, SIZE)
        inside = tile * SIZE + tl.arange(0, SIZE) < n_columns
        if thresholds is None:
            found = tl.max(tl.reshape(tl.where(inside[None, :], products, -4.0), (SIZE, count, PER)), 2)
        else:
            least = tl.load(thresholds + at, mask=at < n_rows, other=4.0)
            reached = (products >= least[:, None]) & inside[None, :]
            found = tl.xor_sum(tl.reshape(tl.where(reached, bit[None, :], 0), (SIZE, count, PER)), 2)
        place = at.to(tl.int64)[:, None] * (n_tiles * count) + (tile * count + tl.arange(0, count))[None, :]
        tl.store(out + place, found, mask=(at < n_rows)[:, None])


@triton.jit
def _marked_once(
    words, thresholds, out, n_words,
    WIDTH: tl.constexpr, SIZE: tl.constexpr, DEPTH: tl.constexpr, BANDS: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """A bit for each word of a pair, whether their product reaches its threshold; tiles above the diagonal alone.

    BANDS rows of tiles are taken together, from the diagonal on; the square there is done in full, and its bits are
    written twice, alike.
    """
    count: tl.constexpr = SIZE // 32
    n_tiles = tl.cdiv(n_words, SIZE)
    bit = (1 << (tl.arange(0, SIZE) % 32)).to(tl.int32)
    for first in range(0, n_tiles, BANDS):
        here = tl.minimum(n_tiles - first, BANDS)
        for turn in tl.range(tl.program_id(0), here * (n_tiles - first), PROGRAMS, flatten=True):
            band, tile = first + turn % here, first + turn // here
            products = tl.zeros((SIZE, SIZE), tl.float32)
            for k in range(0, WIDTH, DEPTH):
                products = tl.dot(words.load([band * SIZE, k]), words.load([tile * SIZE, k]).T, products)
            row, column = band * SIZE + tl.arange(0, SIZE), tile * SIZE + tl.arange(0, SIZE)
            inside = (row < n_words)[:, None] & (column < n_words)[None, :]
            least = tl.load(thresholds + row, mask=row < n_words, other=4.0)
            reached = (products >= least[:, None]) & inside
            found = tl.xor_sum(tl.reshape(tl.where(reached, bit[None, :], 0), (SIZE, count, 32)), 2)
            place = row.to(tl.int64)[:, None] * (n_tiles * count) + (tile * count + tl.arange(0, count))[None, :]
            tl.store(out + place, found, mask=(row < n_words)[:, None])
            least = tl.load(thresholds + column, mask=column < n_words, other=4.0)
            reached = (products >= least[None, :]) & inside
            found = tl.trans(tl.xor_sum(tl.reshape(tl.where(reached, bit[:, None], 0), (count, 32, SIZE)), 1))
            place = column.to(tl.int64)[:, None] * (n_tiles * count) + (band * count + tl.arange(0, count))[None, :]
            tl.store(out + place, found, mask=(column < n_words)[:, None])


@triton.jit
def _list_marked(bits, marked, numbers, n_cells, SPACE: tl.constexpr, CELLS: tl.constexpr):
    """The words that were marked for a row, as a list, and how many they are; those beyond SPACE are dropped."""
    row = tl.program_id(0).to(tl.int64)
    number = 0
    for cell in range(0, n_cells, CELLS):
        at = cell + tl.arange(0, CELLS)
        word = tl.load(bits + row * n_cells + at, mask=at < n_cells, other=0)
        ones = word - ((word >> 1) & 0x55555555)  # how many bits are set, in parallel for all bits of a word
        ones = (ones & 0x33333333) + ((ones >> 2) & 0x33333333)
        ones = (ones + (ones >> 4)) & 0x0F0F0F0F
        ones = (ones * 0x01010101) >> 24
        place = number + tl.cumsum(ones, 0) - ones
        for _ in range(tl.max(ones, 0)):  # the lowest bit that is set; as a float, its exponent is its place
            low = (word & -word).to(tl.float32).to(tl.int32, bitcast=True)
            found = at * 32 + ((low >> 23) & 255) - 127
            tl.store(marked + row * SPACE + place, found, mask=(word != 0) & (place < SPACE))
            place += 1
            word &= word - 1
        number += tl.sum(ones, 0)
    tl.store(numbers + row, number)


@triton.jit
def _products(
    words, lengths, order, marked, numbers, products, start,
    WIDTH: tl.constexpr, POWER: tl.constexpr, SPACE: tl.constexpr, FEW: tl.constexpr,
):  # fmt: skip
    """The products of a row with the words that were marked for it, or with lengths the cosines; with itself, -4."""
    kind: tl.constexpr = tl.float32 if lengths is None else tl.float64
    row = tl.load(order + tl.program_id(0))
    k = tl.arange(0, POWER)
    x = tl.load(words + (start + row) * WIDTH + k, mask=k < WIDTH, other=0.0).to(kind)
    held = tl.minimum(tl.load(numbers + row), SPACE)
    for first in range(0, held, FEW):
        at = first + tl.arange(0, FEW)
        other = tl.load(marked + row * SPACE + at, mask=at < held, other=0).to(tl.int64)
        inside = (at < held)[:, None] & (k < WIDTH)[None, :]
        y = tl.load(words + other[:, None] * WIDTH + k[None, :], mask=inside, other=0.0).to(kind)
        product = tl.sum(y * x[None, :], 1)
        if lengths is not None:
            product /= tl.load(lengths + start + row) * tl.load(lengths + other)
        product = tl.where(other == start + row, -4.0, product)
        tl.store(products + row * SPACE + at, product, mask=at < held)


@triton.jit
def _keep_near(products, marked, numbers, thresholds, settled, margin, alpha, SPACE: tl.constexpr):
    """Keep of the marked words those that may be among the alpha nearest; whether none of those can be missing."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, SPACE)
    number = tl.load(numbers + row)
    other = tl.load(marked + row * SPACE + at, mask=at < number, other=0)
    product = tl.load(products + row * SPACE + at, mask=at < number, other=-4.0)
    least = tl.sum(tl.where(at == alpha - 1, tl.sort(product, descending=True), 0.0), 0) - margin
    near = (product >= least) & (product > -3)
    tl.debug_barrier()  # all have read before the first writes
    tl.store(marked + row * SPACE + tl.cumsum(near.to(tl.int32), 0) - 1, other, mask=near)
    tl.store(numbers + row, tl.sum(near.to(tl.int32), 0))
    tl.store(settled + row, ((number <= SPACE) & (least >= tl.load(thresholds + row))).to(tl.int32))


@triton.jit
def _sum_nearest(cosines, numbers, sums, alpha, SPACE: tl.constexpr):
    """`2 - 2 cos`, summed over the alpha largest cosines of a row."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, SPACE)
    cosine = tl.load(cosines + row * SPACE + at, mask=at < tl.load(numbers + row), other=-4.0)
    nearest = tl.sort(cosine, descending=True)
    tl.store(sums + row, tl.sum(tl.where(at < alpha, 2 - 2 * nearest, 0.0), 0))
