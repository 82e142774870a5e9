"""The images' half of the head (`outword.encoders.mini.head`) in an ONNX graph, its matrices as the file has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outword.encoders.mini.head import SEEN, SOFTEN, TOP, Array
from outword.encoders.onnx.traced import Graph, Traced, unit
from outword.maths.numerics import softmax


def image_vectors(
    graph: Graph, f: Traced, stored: Mapping[str, NDArray[Any]], scales: Mapping[str, Array], v: Array
) -> Traced:
    """Pooled features (n, n_features) to unit vectors (n, dim); the letters are those of the head."""
    used = v.any(axis=0)  # a node above no class counts for no image
    n_before = len(stored["mu"]) + len(stored["E_mean"])
    kept = np.concatenate([np.ones(n_before, bool), used])
    logits = graph.stored_product(f, stored["W"].T) * scales["W"] + stored["b"]
    largest, top = graph.nodes("TopK", logits, np.array([TOP]), n_outputs=2, axis=-1)
    p: Any = softmax(largest / SOFTEN)
    e = graph.cast(graph.node("Gather", stored["e"], top), np.float32) * graph.node("Gather", scales["e"][:, None], top)
    s = np.concatenate([e, graph.node("Gather", _sparse(graph, v[:, used]), top)], axis=-1) / np.sqrt(2)
    means = unit((p[..., None] * s).sum(axis=1))
    whole = np.concatenate([np.sqrt(SEEN) * unit(f - stored["mu"]), np.sqrt(1 - SEEN) * means], axis=-1)
    x = graph.stored_product(whole * scales["B"][kept], stored["B"][kept])
    outside = np.sqrt(np.maximum(1 - (x * x).sum(axis=1, keepdims=True), 0))
    return unit(np.concatenate([x, outside], axis=-1))


def _sparse(graph: Graph, v: Array) -> Traced:
    """A matrix of few numbers, from these alone; runtimes make it once, when they load the file."""
    n_rows, n_columns = v.shape
    most = int((v != 0).sum(axis=1).max())
    places = np.argsort(v == 0, axis=1, kind="stable")[:, :most].astype(np.int32)
    numbers = np.take_along_axis(v, places.astype(np.int64), axis=1)
    zeros = graph.node("ConstantOfShape", np.array([n_rows, n_columns]))
    return graph.node("ScatterElements", zeros, places, numbers, axis=1)
