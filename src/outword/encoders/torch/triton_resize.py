"""Photos of any size to the square of pixels that a model reads, on a CUDA device, all of a batch in two launches.

It is Pillow's own resize, step by step: across, rounded to bytes, then down; weights in float64, of which 22 bits are
kept; sums in integers. So pixels are those of `outword.encoders.preprocess.Preprocess`, whatever is in the batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from outword.encoders.preprocess import Preprocess

ROWS, BYTES = 16, 128  # of a tile
SUPPORT = {"bicubic": 2, "bilinear": 1}  # pixels that the filter reaches to either side


class Photo(NamedTuple):
    """Pixels (height, width, 3) as they are stored, at an address of a device; turned as EXIF says, 1 to 8."""

    address: int
    height: int
    width: int
    orientation: int


def resize(photos: Mapping[int, Photo], preprocess: Preprocess, out: Tensor) -> None:
    """Photos to their places in `out`, (n, side, side, 3), all of it bytes on one device.

    Where a model wants the whole photo squashed, Pillow may go down first, and some pixels differ by a few levels.
    """
    side, places, spans, rows = preprocess.side, [], [], 0
    kept = cache(preprocess.kept)  # many photos are of one size
    for place, photo in photos.items():
        width, height, start, down, right = _turned(*photo)
        across, along, first, last = kept(width, height)
        places.append((start + first * down, down, right, width, last - first, rows * 3 * side, place))
        spans.append(across + along)
        rows += last - first
    middle = torch.empty(rows * 3 * side, dtype=torch.uint8, device=out.device)
    # Pillow reads a box in float32
    tables = np.array(places, np.int64), np.array(spans, np.float32).astype(np.float64)
    where, what = (torch.from_numpy(table).to(out.device) for table in tables)
    options = {"SIDE": side, "ROWS": ROWS, "BYTES": BYTES, "SUPPORT": SUPPORT[preprocess.interpolation]}
    wide, most = triton.cdiv(3 * side, BYTES), int(tables[0][:, 4].max())
    _across[(len(photos), triton.cdiv(most, ROWS), wide)](where, what, middle, **options)
    _down[(len(photos), triton.cdiv(side, ROWS), wide)](where, what, middle, out, **options)


def _turned(start: int, height: int, width: int, turn: int) -> tuple[int, int, int, int, int]:
    """Of a photo when it is turned: width, height, where its first pixel lies, and the steps down and to the right."""
    down, right = 3 * width, 3
    if turn in (3, 4, 6, 7):  # the last row of the file comes first
        start, down = start + (height - 1) * down, -down
    if turn in (2, 3, 7, 8):
        start, right = start + (width - 1) * right, -right
    return (height, width, start, right, down) if turn >= 5 else (width, height, start, down, right)


@triton.jit
def _weight(x, SUPPORT: tl.constexpr):
    """The filter at a distance: bicubic (a = -0.5) where it reaches two pixels, else a triangle."""
    x = tl.abs(x)
    if SUPPORT == 1:
        return tl.where(x < 1, 1 - x, 0.0)
    return tl.where(x < 1, (1.5 * x - 2.5) * x * x + 1, tl.where(x < 2, (((x - 5) * x + 8) * x - 4) * -0.5, 0.0))


@triton.jit
def _reach(place, begin, end, size, SIDE: tl.constexpr, SUPPORT: tl.constexpr):
    """Of pixels of the result: where the middle of each lies, the first pixel that counts, how many, their total."""
    scale = (end - begin) / SIDE
    wide = tl.maximum(scale, 1.0)
    centre = begin + (tl.minimum(place, SIDE - 1).to(tl.float64) + 0.5) * scale  # beyond the edge nothing is stored
    first = tl.maximum((centre - SUPPORT * wide + 0.5).to(tl.int32), 0)
    count = tl.minimum((centre + SUPPORT * wide + 0.5).to(tl.int32), size.to(tl.int32)) - first
    total = tl.zeros_like(centre)
    for k in range(0, tl.max(count, 0)):
        weight = _weight((first + k - centre + 0.5) * (1 / wide), SUPPORT)
        total += tl.where(k < count, weight, 0.0)
    return centre, first, count, total, wide


@triton.jit
def _whole(k, centre, first, count, total, wide, SUPPORT: tl.constexpr):
    """The weight of the k-th pixel that counts, as an integer of 22 bits behind the point, as Pillow has it."""
    weight = _weight((first + k - centre + 0.5) * (1 / wide), SUPPORT) / total * 4194304
    return tl.where(k < count, (weight + tl.where(weight < 0, -0.5, 0.5)).to(tl.int32), 0)


@triton.jit
def _byte(total):
    """A sum of bytes times weights of 22 bits, rounded, as a byte."""
    return tl.minimum(tl.maximum((total + 2097152) >> 22, 0), 255).to(tl.uint8)


@triton.jit
def _across(where, what, middle, SIDE: tl.constexpr, ROWS: tl.constexpr, BYTES: tl.constexpr, SUPPORT: tl.constexpr):
    """Rows of a photo to SIDE pixels each."""
    image = tl.program_id(0).to(tl.int64)
    n_rows = tl.load(where + image * 7 + 4)
    row = tl.program_id(1).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    if tl.program_id(1) * ROWS < n_rows:
        photo = tl.load(where + image * 7).to(tl.pointer_type(tl.uint8))
        down, right = tl.load(where + image * 7 + 1), tl.load(where + image * 7 + 2)
        byte = tl.program_id(2) * BYTES + tl.arange(0, BYTES)
        begin, end = tl.load(what + image * 4), tl.load(what + image * 4 + 1)
        centre, first, count, total, wide = _reach(byte // 3, begin, end, tl.load(where + image * 7 + 3), SIDE, SUPPORT)
        inside = (row < n_rows)[:, None] & (byte < 3 * SIDE)[None, :]
        sums = tl.zeros((ROWS, BYTES), tl.int32)
        for k in range(0, tl.max(count, 0)):
            at = (first + k).to(tl.int64) * right + byte % 3
            value = tl.load(photo + row[:, None] * down + at[None, :], mask=inside & (k < count)[None, :], other=0)
            sums += value.to(tl.int32) * _whole(k, centre, first, count, total, wide, SUPPORT)[None, :]
        place = tl.load(where + image * 7 + 5) + row[:, None] * (3 * SIDE) + byte[None, :]
        tl.store(middle + place, _byte(sums), mask=inside)


@triton.jit
def _down(where, what, middle, out, SIDE: tl.constexpr, ROWS: tl.constexpr, BYTES: tl.constexpr, SUPPORT: tl.constexpr):
    """Columns of what `_across` made to SIDE pixels each."""
    image = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    byte = tl.program_id(2) * BYTES + tl.arange(0, BYTES)
    begin, end = tl.load(what + image * 4 + 2), tl.load(what + image * 4 + 3)
    centre, first, count, total, wide = _reach(row, begin, end, tl.load(where + image * 7 + 4), SIDE, SUPPORT)
    start = tl.load(where + image * 7 + 5)
    inside = (row < SIDE)[:, None] & (byte < 3 * SIDE)[None, :]
    sums = tl.zeros((ROWS, BYTES), tl.int32)
    for k in range(0, tl.max(count, 0)):
        at = start + (first + k).to(tl.int64) * (3 * SIDE)
        value = tl.load(middle + at[:, None] + byte[None, :], mask=inside & (k < count)[:, None], other=0)
        sums += value.to(tl.int32) * _whole(k, centre, first, count, total, wide, SUPPORT)[:, None]
    place = (tl.load(where + image * 7 + 6) * SIDE + row)[:, None] * (3 * SIDE) + byte[None, :]
    tl.store(out + place, _byte(sums), mask=inside)
