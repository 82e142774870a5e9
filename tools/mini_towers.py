"""The two networks behind `mini`, each written twice: in plain torch (the reference) and as an ONNX graph (what ships).

Both graphs keep their weights small on disk and compute in float32: a weight is stored as int8 with one scale per
output channel, or as float16, and `Cast` and `Mul` nodes restore it. onnxruntime folds those nodes when it loads the
graph, so nothing depends on the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, checker, helper, numpy_helper

Weights = Mapping[str, torch.Tensor]
Array = NDArray[np.floating]

SIDE = 260  # pixels that EfficientNet-Lite2 was trained with
# EfficientNet-Lite2: per stage, how many blocks, the depthwise kernel, and the stride of its first block.
STAGES = ((1, 3, 1), (3, 3, 2), (3, 5, 2), (4, 3, 2), (4, 5, 1), (5, 5, 2), (1, 3, 1))
BN_EPS = 1e-3
LAYERS, HEADS, WIDTH = 6, 12, 384  # MiniLM-L6
LN_EPS = 1e-12
INT8_ABOVE = 200_000  # weights; smaller kernels are sensitive: with all 1x1 in int8 the least cosine falls to .978
MAX_TOKENS = 128


@dataclass(frozen=True)
class Conv:
    """One convolution of Lite2 with its batch normalisation; `relu6` says whether a clip to [0, 6] follows."""

    name: str
    norm: str
    stride: int
    relu6: bool
    adds: str = ""  # "keep": remember the input for a shortcut; "add": add the remembered input to the result


def lite2_layers() -> list[Conv]:
    """Every convolution of EfficientNet-Lite2 in order: stem, 21 inverted bottlenecks, head."""
    layers, index = [Conv("_conv_stem", "_bn0", 2, True)], 0
    for repeats, _, stride in STAGES:
        for repeat in range(repeats):
            at = f"_blocks.{index}."
            shortcut = repeat > 0  # same size and width in and out
            first = [Conv(at + "_expand_conv", at + "_bn0", 1, True, "keep" if shortcut else "")] if index else []
            depthwise = Conv(at + "_depthwise_conv", at + "_bn1", stride if repeat == 0 else 1, True)
            project = Conv(at + "_project_conv", at + "_bn2", 1, False, "add" if shortcut else "")
            layers += [*first, depthwise, project]
            index += 1
    return [*layers, Conv("_conv_head", "_bn1", 1, True)]


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """TensorFlow's "same": output ceil(size / stride), the odd pixel of padding at the end."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


def folded(weights: Weights, layer: Conv) -> tuple[Array, Array]:
    """Kernel and bias with the batch normalisation inside: w g / sqrt(var + eps), beta - mean g / sqrt(var + eps)."""
    w = weights[f"{layer.name}.weight"].double().numpy()
    gamma, beta, mean, var = (
        weights[f"{layer.norm}.{k}"].double().numpy() for k in ("weight", "bias", "running_mean", "running_var")
    )
    scale = gamma / np.sqrt(var + BN_EPS)
    return (w * scale[:, None, None, None]).astype(np.float32), (beta - mean * scale).astype(np.float32)


def lite2(weights: Weights, pixels: NDArray[np.uint8]) -> Array:
    """Reference: pixels (n, 260, 260, 3) to pooled features (n, 1280), in float32 torch."""
    x = (torch.from_numpy(pixels).permute(0, 3, 1, 2).float() - 127) / 128
    kept = x
    for layer in lite2_layers():
        w = weights[f"{layer.name}.weight"]
        before, after = same_padding(x.shape[-1], w.shape[-1], layer.stride)
        kept = x if layer.adds == "keep" else kept
        x = F.conv2d(F.pad(x, (before, after, before, after)), w, stride=layer.stride, groups=x.shape[1] // w.shape[1])
        mean, var, gamma, beta = (
            weights[f"{layer.norm}.{k}"] for k in ("running_mean", "running_var", "weight", "bias")
        )
        x = F.batch_norm(x, mean, var, gamma, beta, eps=BN_EPS)
        x = x.clamp(0, 6) if layer.relu6 else x
        x = x + kept if layer.adds == "add" else x
    return x.mean((2, 3)).numpy()


def minilm(weights: Weights, ids: NDArray[np.int64]) -> Array:
    """Reference: token ids (n, length), no padding, to unit sentence vectors (n, 384), in float32 torch."""
    n, length = ids.shape

    def linear(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.layer_norm(x, (WIDTH,), weights[f"{name}.weight"], weights[f"{name}.bias"], LN_EPS)

    x = weights["embeddings.word_embeddings.weight"][torch.from_numpy(ids)]
    x = (
        x
        + weights["embeddings.position_embeddings.weight"][:length]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    x = norm(x, "embeddings.LayerNorm")
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        q, k, v = (
            linear(x, f"{at}attention.self.{part}").view(n, length, HEADS, -1).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, length, WIDTH)
        x = norm(x + linear(mixed, f"{at}attention.output.dense"), f"{at}attention.output.LayerNorm")
        inner = F.gelu(linear(x, f"{at}intermediate.dense"))
        x = norm(x + linear(inner, f"{at}output.dense"), f"{at}output.LayerNorm")
    return F.normalize(x.mean(1), dim=1).numpy()


def int8_rows(w: Array) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Weights-only quantisation: row i of `w` is about scale_i * q_i with q in -127..127."""
    flat = w.reshape(len(w), -1)
    scale = np.maximum(np.abs(flat).max(axis=1), 1e-12).astype(np.float32) / np.float32(127)
    q = np.rint(w / scale.reshape(-1, *[1] * (w.ndim - 1))).astype(np.int8)
    return np.ascontiguousarray(q), scale  # safetensors writes the bytes as they lie


@dataclass
class Graph:
    """An ONNX graph under construction; every method appends nodes and returns the name of their result."""

    nodes: list[NodeProto] = field(default_factory=list)
    constants: list[TensorProto] = field(default_factory=list)

    def constant(self, value: NDArray[np.generic]) -> str:
        """Store `value` as it is."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        """Append one node."""
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def half(self, w: Array) -> str:
        """A weight kept as float16 and read as float32."""
        return self.op("Cast", self.constant(w.astype(np.float16)), to=TensorProto.FLOAT)

    def int8(self, w: Array, *, transpose: bool = False) -> str:
        """A weight kept as int8 with one scale per output channel (row), read as float32; transposed for MatMul."""
        q, scale = int8_rows(w)
        shape = (-1, *[1] * (w.ndim - 1))
        q, scale = (q.T.copy(), scale) if transpose else (q, scale.reshape(shape))
        return self.op("Mul", self.op("Cast", self.constant(q), to=TensorProto.FLOAT), self.constant(scale))

    def model(self, name: str, inputs: Sequence[object], output: str, width: int | str) -> ModelProto:
        """The finished model; its output (n, width) is called "vectors"."""
        self.nodes.append(helper.make_node("Identity", [output], ["vectors"]))
        result = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["n", width])
        graph = helper.make_graph(self.nodes, name, list(inputs), [result], self.constants)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="outword"
        )
        checker.check_model(model)
        return model


def image_graph(weights: Weights) -> ModelProto:
    """EfficientNet-Lite2 from uint8 pixels to pooled features; large kernels in int8, all others in float16."""
    g = Graph()
    x = g.op("Cast", g.op("Transpose", "pixels", perm=[0, 3, 1, 2]), to=TensorProto.FLOAT)
    x = g.op("Div", g.op("Sub", x, g.constant(np.float32(127))), g.constant(np.float32(128)))
    low, high = g.constant(np.float32(0)), g.constant(np.float32(6))
    size, width, kept = SIDE, 3, x
    for layer in lite2_layers():
        w, bias = folded(weights, layer)
        kept = x if layer.adds == "keep" else kept
        before, after = same_padding(size, w.shape[-1], layer.stride)
        stored = g.int8(w) if w.size > INT8_ABOVE else g.half(w)
        x = g.op("Conv", x, stored, g.constant(bias), pads=[before, before, after, after],
                 strides=[layer.stride] * 2, group=width // w.shape[1])  # fmt: skip
        x = g.op("Clip", x, low, high) if layer.relu6 else x
        x = g.op("Add", x, kept) if layer.adds == "add" else x
        size, width = -(-size // layer.stride), w.shape[0]
    x = g.op("Flatten", g.op("GlobalAveragePool", x))
    pixels = helper.make_tensor_value_info("pixels", TensorProto.UINT8, ["n", SIDE, SIDE, 3])
    return g.model("efficientnet-lite2", [pixels], x, width)


def matmul_graph() -> ModelProto:
    """The product of two matrices that are given at run time."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "k"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["k", "m"])
    g = Graph()
    return g.model("matmul", [x, y], g.op("MatMul", "x", "y"), "m")


def text_graph(weights: Weights) -> ModelProto:
    """MiniLM from token ids to unit vectors; every matrix and the embedding table in int8 per row."""
    g = Graph()
    array = {name: w.numpy() for name, w in weights.items()}
    eps = g.constant(np.float32(1e-12))

    def linear(x: str, name: str) -> str:
        return g.op(
            "Add", g.op("MatMul", x, g.int8(array[f"{name}.weight"], transpose=True)), g.constant(array[f"{name}.bias"])
        )

    def norm(x: str, name: str) -> str:
        gamma, beta = g.constant(array[f"{name}.weight"]), g.constant(array[f"{name}.bias"])
        return g.op("LayerNormalization", x, gamma, beta, axis=-1, epsilon=LN_EPS)

    x = norm(_embedded(g, array), "embeddings.LayerNorm")
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        q, k, v = (linear(x, f"{at}attention.self.{part}") for part in ("query", "key", "value"))
        x = norm(
            g.op("Add", x, linear(_attention(g, q, k, v), f"{at}attention.output.dense")),
            f"{at}attention.output.LayerNorm",
        )
        inner = _gelu(g, linear(x, f"{at}intermediate.dense"))
        x = norm(g.op("Add", x, linear(inner, f"{at}output.dense")), f"{at}output.LayerNorm")
    mean = g.op("ReduceMean", x, axes=[1], keepdims=0)
    unit = g.op("Div", mean, g.op("Max", g.op("ReduceL2", mean, axes=[1], keepdims=1), eps))
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["n", "length"])
    return g.model("all-minilm-l6-v2", [ids], unit, WIDTH)


def _embedded(g: Graph, array: Mapping[str, Array]) -> str:
    """Word, position and segment embeddings; only the rows that a text needs are restored from int8."""
    q, scale = int8_rows(array["embeddings.word_embeddings.weight"])
    ids = "ids"
    rows = g.op("Cast", g.op("Gather", g.constant(q), ids), to=TensorProto.FLOAT)
    word = g.op("Mul", rows, g.op("Gather", g.constant(scale[:, None]), ids))
    place = (
        array["embeddings.position_embeddings.weight"][:MAX_TOKENS]
        + array["embeddings.token_type_embeddings.weight"][0]
    )
    zero, one = g.constant(np.array([0], np.int64)), g.constant(np.array([1], np.int64))
    length = g.op("Slice", g.op("Shape", ids), one, g.constant(np.array([2], np.int64)))
    return g.op("Add", word, g.op("Slice", g.constant(place), zero, length, zero))


def _attention(g: Graph, q: str, k: str, v: str) -> str:
    """softmax(q k' / sqrt(32)) v for each of the 12 heads."""
    split = g.constant(np.array([0, 0, HEADS, WIDTH // HEADS], np.int64))
    q = g.op("Transpose", g.op("Reshape", q, split), perm=[0, 2, 1, 3])
    k = g.op("Transpose", g.op("Reshape", k, split), perm=[0, 2, 3, 1])
    v = g.op("Transpose", g.op("Reshape", v, split), perm=[0, 2, 1, 3])
    scores = g.op("Div", g.op("MatMul", q, k), g.constant(np.float32(np.sqrt(WIDTH // HEADS))))
    mixed = g.op("Transpose", g.op("MatMul", g.op("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return g.op("Reshape", mixed, g.constant(np.array([0, 0, WIDTH], np.int64)))


def _gelu(g: Graph, x: str) -> str:
    """x (1 + erf(x / sqrt 2)) / 2, in the order that onnxruntime recognises."""
    erf = g.op("Erf", g.op("Div", x, g.constant(np.float32(np.sqrt(2)))))
    return g.op("Mul", g.op("Mul", x, g.op("Add", erf, g.constant(np.float32(1)))), g.constant(np.float32(0.5)))
