"""Resizing as Pillow does it, as two products with matrices: no runtime's own way of resizing comes in between.

Of a length of W pixels, the part from `begin` to `end` becomes `side` pixels. With s = (end - begin) / side, and f the
filter, stretched by s where that is above 1:

    A_xj = f((x + 1/2 - begin - (j + 1/2) s) / max(s, 1)),   each column divided by its sum

Rows and columns of pixels are multiplied with it, across first, and rounded to bytes after each, as Pillow rounds. The
formulas take arrays, and values of a graph (`traced`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from outword.encoders.onnx.traced import Graph, Traced

Box = tuple[Any, Any, Any, Any]  # left, top, right, bottom, in pixels of the image


def resized(graph: Graph, pixels: Traced, side: int, interpolation: str, box: Callable[[Any, Any], Box]) -> Traced:
    """Pixels (n, height, width, 3) of any size to (n, side, side, 3), both in bytes; `box` is of width and height."""
    shape = graph.node("Shape", pixels)
    height, width = (graph.cast(graph.node("Gather", shape, np.int64(axis)), np.float32) for axis in (1, 2))
    left, top, right, bottom = box(width, height)
    x = graph.node("Transpose", graph.cast(pixels, np.float32), perm=[0, 3, 1, 2])
    across = weights(_places(graph, width), left, right, side, interpolation)
    down = weights(_places(graph, height), top, bottom, side, interpolation)
    x = _bytes(graph.node("MatMul", x, across))
    x = _bytes(graph.node("MatMul", graph.node("Transpose", down, perm=[1, 0]), x))
    return graph.cast(graph.node("Transpose", x, perm=[0, 2, 3, 1]), np.uint8)


def _places(graph: Graph, length: Traced) -> Traced:
    """0, 1, ..., one for each pixel."""
    return graph.node("Range", np.float32(0), length, np.float32(1))


def _bytes(x: Any) -> Any:
    return np.floor(x + 0.5).clip(0.0, 255.0)


def weights(places: Any, begin: Any, end: Any, side: int, interpolation: str) -> Any:
    """The matrix A, (length, side), of `places` 0, 1, ... (length,)."""
    scale = (end - begin) / side
    centres = (np.arange(side, dtype=np.float32) + 0.5) * scale + begin
    distance = (places[..., None] + 0.5 - centres) / np.maximum(scale, 1.0)
    found = FILTERS[interpolation](np.abs(distance))
    return found / found.sum(axis=0, keepdims=True)


def bicubic(x: Any) -> Any:
    """Keys' filter with a = -1/2, of distances x >= 0."""
    near = (1.5 * x - 2.5) * x * x + 1.0
    far = ((2.5 - 0.5 * x) * x - 4.0) * x + 2.0
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


def bilinear(x: Any) -> Any:
    """The triangle, of distances x >= 0."""
    return np.maximum(1.0 - x, 0.0)


FILTERS = {"bicubic": bicubic, "bilinear": bilinear}
