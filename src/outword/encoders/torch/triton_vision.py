"""What a ViT does between its large products, in as few passes over memory as there can be; for CUDA.

Products go to the library, which is at the device's limit, but for the widest one: its activation would be a pass of
its own over the widest tensor. So it is multiplied here, and the activation is taken while a tile is on the chip.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from outword.maths.kernels.triton_scoring import resident

ROWS = 4  # tokens that a program takes
DEPTH = 64  # numbers that are multiplied at a time
TILE = (128, 256)  # rows and columns of a tile of the product


def cut_up(pixels: Tensor, scale: Tensor, shift: Tensor, patch: int, width: int, dtype: torch.dtype) -> Tensor:
    """Bytes (n, side, side, 3) to normalised patches (n * grid * grid, width), row by row, filled up with zeros."""
    n, side = pixels.shape[:2]
    grid = side // patch
    out = torch.empty((n * grid * grid, width), dtype=dtype, device=pixels.device)
    _cut_up[(triton.cdiv(len(out), ROWS),)](
        pixels.contiguous(), scale, shift, out, len(out),
        SIDE=side, GRID=grid, PATCH=patch, WIDTH=width, POWER=triton.next_power_of_2(width), ROWS=ROWS,
    )  # fmt: skip
    return out


def begin(
    patches: Tensor,
    first: Tensor,
    positions: Tensor,
    norm: tuple[Tensor, Tensor],
    epsilon: float,
    after: tuple[Tensor, Tensor],
) -> tuple[Tensor, Tensor]:
    """Tokens (n * length, width) of patches, with the class token before those of each image, and these normed.

    Positions are added, and `norm` is taken of it; the second result is norm `after` of the first.
    """
    length, width = positions.shape
    n = len(patches) // (length - 1)
    tokens = torch.empty((n * length, width), dtype=patches.dtype, device=patches.device)
    normed = torch.empty_like(tokens)
    _begin[(triton.cdiv(len(tokens), ROWS),)](
        patches, first, positions, *norm, *after, tokens, normed, len(tokens), epsilon,
        LENGTH=length, WIDTH=width, POWER=triton.next_power_of_2(width), ROWS=ROWS,
    )  # fmt: skip
    return tokens, normed


def add(tokens: Tensor, change: Tensor, norm: tuple[Tensor, Tensor], epsilon: float) -> Tensor:
    """Add a change to tokens (n, width) in place, and give the norm of what they are then."""
    normed = torch.empty_like(tokens)
    _add[(triton.cdiv(len(tokens), ROWS),)](
        tokens, change, *norm, normed, len(tokens), epsilon,
        WIDTH=tokens.shape[1], POWER=triton.next_power_of_2(tokens.shape[1]), ROWS=ROWS,
    )  # fmt: skip
    return normed


def widen(tokens: Tensor, weight: Tensor, bias: Tensor, activation: str) -> Tensor:
    """The activation, "silu" or "gelu", of `tokens @ weight.T + bias`."""
    out = torch.empty((len(tokens), len(weight)), dtype=tokens.dtype, device=tokens.device)
    rows, columns = TILE
    described = [
        TensorDescriptor.from_tensor(matrix, list(block))
        for matrix, block in ((tokens, (rows, DEPTH)), (weight, (columns, DEPTH)), (out, (rows, columns // 2)))
    ]
    count = resident()
    _widen[(count,)](
        *described, bias, len(tokens), len(weight),
        WIDTH=tokens.shape[1], ROWS=rows, COLUMNS=columns, DEPTH=DEPTH, PROGRAMS=count, SILU=activation == "silu",
        num_warps=8, num_stages=3,
    )  # fmt: skip
    return out


@triton.jit
def _cut_up(
    pixels, scale, shift, out, n_rows,
    SIDE: tl.constexpr, GRID: tl.constexpr, PATCH: tl.constexpr, WIDTH: tl.constexpr, POWER: tl.constexpr,
    ROWS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, POWER)
    image, place = row // (GRID * GRID), row % (GRID * GRID)
    corner = (image * SIDE + place // GRID * PATCH) * SIDE + place % GRID * PATCH
    inside = (row < n_rows)[:, None] & (k < 3 * PATCH * PATCH)[None, :]
    at = k // (3 * PATCH) * (3 * SIDE) + k % (3 * PATCH)
    value = tl.load(pixels + (3 * corner)[:, None] + at[None, :], mask=inside, other=0).to(tl.float32)
    value = value * tl.load(scale + k % 3)[None, :] + tl.load(shift + k % 3)[None, :]
    value = tl.where(inside, value, 0.0).to(out.dtype.element_ty)
    tl.store(out + row[:, None] * WIDTH + k[None, :], value, mask=(row < n_rows)[:, None] & (k < WIDTH)[None, :])


@triton.jit
def _normed(x, weight, bias, k, epsilon, WIDTH: tl.constexpr):
    """Layer norm of rows in float32."""
    inside = (k < WIDTH)[None, :]
    x = tl.where(inside, x, 0.0)
    centred = tl.where(inside, x - (tl.sum(x, 1) / WIDTH)[:, None], 0.0)
    scaled = centred * tl.rsqrt(tl.sum(centred * centred, 1) / WIDTH + epsilon)[:, None]
    gain = tl.load(weight + k, mask=k < WIDTH, other=0.0).to(tl.float32)
    return scaled * gain[None, :] + tl.load(bias + k, mask=k < WIDTH, other=0.0).to(tl.float32)[None, :]


@triton.jit
def _begin(
    patches, first, positions, weight, bias, next_weight, next_bias, tokens, normed, n_rows, epsilon,
    LENGTH: tl.constexpr, WIDTH: tl.constexpr, POWER: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    kind = tokens.dtype.element_ty
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, POWER)
    image, place = row // LENGTH, row % LENGTH
    inside = (row < n_rows)[:, None] & (k < WIDTH)[None, :]
    own = (image * (LENGTH - 1) + place - 1)[:, None] * WIDTH + k[None, :]
    x = tl.load(patches + own, mask=inside & (place > 0)[:, None], other=0.0).to(tl.float32)
    cls = tl.load(first + k, mask=k < WIDTH, other=0.0).to(tl.float32)
    x = tl.where((place > 0)[:, None], x, cls[None, :])
    x += tl.load(positions + place[:, None] * WIDTH + k[None, :], mask=inside, other=0.0).to(tl.float32)
    x = _normed(x.to(kind).to(tl.float32), weight, bias, k, epsilon, WIDTH).to(kind)
    at = row[:, None] * WIDTH + k[None, :]
    tl.store(tokens + at, x, mask=inside)
    tl.store(normed + at, _normed(x.to(tl.float32), next_weight, next_bias, k, epsilon, WIDTH).to(kind), mask=inside)


@triton.jit
def _add(
    tokens, change, weight, bias, normed, n_rows, epsilon,
    WIDTH: tl.constexpr, POWER: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    kind = tokens.dtype.element_ty
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, POWER)
    inside = (row < n_rows)[:, None] & (k < WIDTH)[None, :]
    at = row[:, None] * WIDTH + k[None, :]
    x = tl.load(tokens + at, mask=inside, other=0.0).to(tl.float32)
    x = (x + tl.load(change + at, mask=inside, other=0.0).to(tl.float32)).to(kind)
    tl.store(tokens + at, x, mask=inside)
    tl.store(normed + at, _normed(x.to(tl.float32), weight, bias, k, epsilon, WIDTH).to(kind), mask=inside)


@triton.jit
def _active(x, SILU: tl.constexpr):
    if SILU:
        return x / (1 + tl.exp(-x))
    return 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))


@triton.jit
def _widen(
    x, weight, out, bias, n_rows, n_columns,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, PROGRAMS: tl.constexpr,
    SILU: tl.constexpr,
):  # fmt: skip
    """A program takes one tile after the other, 8 rows of tiles at a time, so that what is read stays in the cache."""
    bands, n_tiles = tl.cdiv(n_rows, ROWS), tl.cdiv(n_columns, COLUMNS)
    half: tl.constexpr = COLUMNS // 2
    for turn in tl.range(tl.program_id(0), bands * n_tiles, PROGRAMS, flatten=True):
        first = turn // (8 * n_tiles) * 8
        here = tl.minimum(bands - first, 8)
        row = (first + turn % (8 * n_tiles) % here) * ROWS
        column = turn % (8 * n_tiles) // here * COLUMNS
        products = tl.zeros((ROWS, COLUMNS), tl.float32)
        for k in range(0, WIDTH, DEPTH):
            products = tl.dot(x.load([row, k]), weight.load([column, k]).T, products)
        left, right = tl.split(tl.permute(tl.reshape(products, (ROWS, 2, half)), (0, 2, 1)))  # less to store at a time
        at = column + tl.arange(0, half)
        left += tl.load(bias + at, mask=at < n_columns, other=0.0).to(tl.float32)[None, :]
        out.store([row, column], _active(left, SILU).to(out.dtype))
        right += tl.load(bias + at + half, mask=at + half < n_columns, other=0.0).to(tl.float32)[None, :]
        out.store([row, column + half], _active(right, SILU).to(out.dtype))
