"""The image tower of `mini` in 8-bit integers, made from that of `mini-float`; a second run gives the same bytes.

    python tools/mini_int8.py --out src/outword/encoders/data/mini/image.onnx

The photos that come with outword, and cuttings of them, set the ranges: no photo that a benchmark judges. The options
are the variants of docs/performance.md; `benchmarks/int8.py --tower FILE` says what one is worth. Needs the package
onnx, and half a minute.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, checker, helper, numpy_helper
from PIL import Image
from threadpoolctl import threadpool_limits

from outword.encoders.mini.encoder import Mini
from outword.photos.decode import open_image
from outword.photos.walk import find_images
from outword_lab.encoders.mini_float import DATA

Array = NDArray[Any]
PHOTOS = Path(str(files("outword"))) / "demo" / "photos"
CUTTINGS = 12  # of each photo, the whole one among them
SIDES = (0.35, 0.9)  # of a cutting, as a share of the photo's
ROWS = 300  # places of a photo whose channels say how inputs of a kernel go together
VALUES = 250  # of a photo's numbers in a tensor, to try ranges on
STEM = 63  # largest weight of the first convolution: which of its products are added in pairs is not known, see `steps`
MARGIN = 1.05  # room above the largest activation seen, as far as the clip at 6 leaves any
SHRUNK = np.linspace(0.5, 1.05, 23)  # shares of the whole range that are tried
DAMP = 0.01  # of the mean of the diagonal, added to it


@dataclass(frozen=True)
class Options:
    """How the tower is quantised; the defaults are what ships.

    Attributes:
        front: convolutions at the front that compute in float32; 3 are the stem and the first block.
        ranges: of activations: "error" has the least squared error on the photos, "max" the largest number seen.
        solved: weights of a 1 x 1 kernel are rounded one after the other, the rest making up for the error (GPTQ).
        even: weights of a depthwise kernel are rounded so that their sum stays.
        corrected: biases take what rounding the kernel does to the mean of the result.
        sums: how a block's last kernel gives its result: "float", as it is, or "bytes".
    """

    front: int = 3
    ranges: Literal["error", "max"] = "error"
    solved: bool = True
    even: bool = True
    corrected: bool = True
    sums: Literal["float", "bytes"] = "float"


@dataclass(frozen=True)
class Seen:
    """What photos make of a tensor."""

    low: float
    high: float
    mean: Array  # (channels,)
    some: Array  # numbers of it
    gram: Array | None  # (channels, channels), sum of products of channels over places, where a 1 x 1 kernel reads it


def cuttings() -> NDArray[np.uint8]:
    """The photos that come with outword and cuttings of them, every other one mirrored, as the tower reads them."""
    found, rng = [], np.random.default_rng(0)
    for image in map(open_image, find_images([PHOTOS])):
        found.append(Mini.preprocess(image))
        for number in range(CUTTINGS - 1):
            side = rng.uniform(*SIDES)
            left, top = rng.uniform(0, 1 - side, 2)
            shares = (left, top, left + side, top + side)
            part = image.crop(tuple(int(share * size) for share, size in zip(shares, image.size * 2, strict=True)))
            found.append(Mini.preprocess(part.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if number % 2 else part))
    return np.stack(found)


def in_integers(model: ModelProto, options: Options = Options()) -> ModelProto:
    """The tower as the photos that come with outword set it."""
    with threadpool_limits(1):  # sums in several threads round otherwise from run to run
        return quantised(model, watch(model, cuttings()), options)


def watch(model: ModelProto, pixels: NDArray[np.uint8]) -> dict[str, Seen]:
    """What the float tower makes of photos: every tensor that may become bytes."""
    names = [node.output[0] for node in model.graph.node if node.op_type in ("Div", "Conv", "Clip", "Add")]
    watched = ModelProto.FromString(model.SerializeToString())
    watched.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # the same bytes on any machine of one kind
    tower = onnxruntime.InferenceSession(watched.SerializeToString(), options, providers=["CPUExecutionProvider"])
    rng, found = np.random.default_rng(0), {name: list[tuple[Any, ...]]() for name in names}
    grams = {node.input[0]: np.zeros(()) for node in model.graph.node if _is_1x1(node)}
    for row in pixels:
        for name, x in zip(names, tower.run(names, {"pixels": row[None]}), strict=True):
            places = x[0].reshape(x.shape[1], -1).T
            some = places[rng.integers(len(places), size=min(len(places), ROWS))]
            if name in grams:
                grams[name] = grams[name] + some.T @ some
            found[name].append((x.min(), x.max(), places.mean(axis=0), rng.choice(some.ravel(), VALUES)))
    seen = {}
    for name, rows in found.items():
        low, high, mean, some = (np.array(column) for column in zip(*rows, strict=True))
        seen[name] = Seen(float(low.min()), float(high.max()), mean.mean(axis=0), some.ravel(), grams.get(name))
    return seen


def quantised(model: ModelProto, seen: Mapping[str, Seen], options: Options) -> ModelProto:
    """The float tower in integers: a `Conv`, with the `Clip` behind it, becomes a `QLinearConv`.

    Bytes go in as they are: (x - 127) / 128 is a step and a zero point. Weights have a step per output channel, see
    `steps`, activations one per tensor; a clip at 6 is where the bytes end. A block's last kernel, 1 x 1 and without a
    clip, is a `MatMulIntegerToFloat`: sums of two branches are of float32, and so is the pooling.
    """
    made, known = _Graph(), constants(model.graph)
    clipped = {node.input[0]: node.output[0] for node in model.graph.node if node.op_type == "Clip"}
    [entry] = [node.output[0] for node in model.graph.node if node.op_type == "Div"]
    made.ends = {name: _span(one, options, clip=name in clipped.values()) for name, one in seen.items()}
    made.ends[entry] = (np.float32(1 / 128), np.uint8(127))
    left = options.front
    for node in model.graph.node:
        x, out = node.input[0], clipped.get(node.output[0], node.output[0])
        if node.op_type == "Transpose":
            made.bytes[entry] = made.put("Transpose", x, perm=[0, 3, 1, 2])
        elif node.op_type == "Conv":
            w, bias = (known[name].astype(np.float32) for name in node.input[1:])
            if left > 0:
                made.float_conv(node, w, bias, out, clip=out != node.output[0])
            else:
                kernel = integers(w, bias, made.ends[x][0], seen[x], options)
                as_matmul = options.sums == "float" and out == node.output[0]
                (made.matmul if as_matmul else made.conv)(node, kernel, out)
            left -= 1
        elif node.op_type in ("Add", "GlobalAveragePool", "Flatten"):
            made.floats[out] = made.put(node.op_type, *map(made.as_floats, node.input))
            if node.op_type == "Add" and options.sums == "bytes":
                made.as_bytes(out)
                del made.floats[out]
    made.put("Identity", made.floats[model.graph.node[-1].input[0]], out="vectors")
    name, ends = f"{model.graph.name}-int8", (model.graph.input, model.graph.output)
    graph = helper.make_graph(made.nodes, name, *ends, made.stored)
    opsets = [*model.opset_import, helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=model.ir_version, producer_name="outword")


@dataclass(frozen=True)
class Kernel:
    """Weights in int8 with a step per output channel, and the bias in float64."""

    q: NDArray[np.int8]
    step: NDArray[np.float32]
    bias: NDArray[np.float64]


@dataclass
class _Graph:
    """A graph under construction: nodes, what they store, and the tensors of the float tower as bytes and floats."""

    nodes: list[NodeProto] = field(default_factory=list)
    stored: list[TensorProto] = field(default_factory=list)
    ends: dict[str, tuple[np.float32, np.uint8]] = field(default_factory=dict)  # step and zero point
    bytes: dict[str, str] = field(default_factory=dict)
    floats: dict[str, str] = field(default_factory=dict)

    def put(self, kind: str, *inputs: str | Array, out: str = "", domain: str = "", **attributes: Any) -> str:
        """Append a node; inputs are names, or arrays to store."""
        names = [one if isinstance(one, str) else self._store(one) for one in inputs]
        out = out or f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, names, [out], domain=domain, **attributes))
        return out

    def as_bytes(self, x: str) -> str:
        """A tensor of the float tower as bytes."""
        if x not in self.bytes:
            self.bytes[x] = self.put("QuantizeLinear", self.floats[x], *self.ends[x])
        return self.bytes[x]

    def as_floats(self, x: str) -> str:
        """The same in float32."""
        if x not in self.floats:
            self.floats[x] = self.put("DequantizeLinear", self.bytes[x], *self.ends[x])
        return self.floats[x]

    def float_conv(self, node: NodeProto, w: Array, bias: Array, out: str, *, clip: bool) -> None:
        """A convolution as the float tower has it."""
        y = self.put("Conv", self.as_floats(node.input[0]), w, bias, **_attributes(node))
        self.floats[out] = self.put("Clip", y, np.float32(0), np.float32(6)) if clip else y

    def conv(self, node: NodeProto, kernel: Kernel, out: str) -> None:
        """A convolution from bytes to bytes; where these end is the clip."""
        x, zero, step = node.input[0], np.zeros(len(kernel.q), np.int8), self.ends[node.input[0]][0]
        bias = np.rint(kernel.bias / (kernel.step.astype(np.float64) * step)).astype(np.int32)
        inputs = [self.as_bytes(x), *self.ends[x], kernel.q, kernel.step, zero, *self.ends[out], bias]
        self.bytes[out] = self.put("QLinearConv", *inputs, **_attributes(node))

    def matmul(self, node: NodeProto, kernel: Kernel, out: str) -> None:
        """A 1 x 1 convolution from bytes to float32."""
        step, zero = self.ends[node.input[0]]
        x, w = self.put("Transpose", self.as_bytes(node.input[0]), perm=[0, 2, 3, 1]), kernel.q[:, :, 0, 0].T.copy()
        inputs = [x, w, step, kernel.step, zero, np.zeros(len(kernel.q), np.int8), kernel.bias.astype(np.float32)]
        y = self.put("MatMulIntegerToFloat", *inputs, domain="com.microsoft")
        self.floats[out] = self.put("Transpose", y, perm=[0, 3, 1, 2])

    def _store(self, value: Array) -> str:
        self.stored.append(numpy_helper.from_array(np.asarray(value), f"c{len(self.stored)}"))
        return self.stored[-1].name


def constants(graph: onnx.GraphProto) -> dict[str, Array]:
    """What the graph stores, and what its `Cast` and `Mul` nodes restore from that: the weights in float32."""
    found = {stored.name: numpy_helper.to_array(stored) for stored in graph.initializer}
    for node in graph.node:
        if all(name in found for name in node.input):
            x, *scale = (found[name] for name in node.input)
            found[node.output[0]] = x * scale[0] if node.op_type == "Mul" else x.astype(np.float32)
    return found


def integers(w: Array, bias: Array, input_step: np.float32, seen: Seen, options: Options) -> Kernel:
    """A kernel in int8; `seen` is what photos make of its input."""
    # The bias is in steps of input and weight: where a kernel is all but zero, a larger step keeps it within 32 bits.
    step = np.maximum(steps(w), np.abs(bias) / (2**24 * input_step)).astype(np.float32)
    wide, depthwise = step[:, None, None, None].astype(np.float64), w.shape[1] == 1
    if seen.gram is not None and options.solved:
        q = solved(w[:, :, 0, 0], step, seen.gram)[:, :, None, None]
    else:
        q = even(w / wide) if depthwise and options.even else np.rint(w / wide)
    lost = (w - q * wide).sum(axis=(2, 3))
    moved = lost[:, 0] * seen.mean if depthwise else lost @ seen.mean
    return Kernel(q.astype(np.int8), step, bias.astype(np.float64) + (moved if options.corrected else 0))


def steps(w: Array) -> Array:
    """One step per output channel, so that processors with and without VNNI give the same integers.

    Those without add two neighbouring products of bytes in 16 bits and cut off what is larger: 255 (|a| + |b|) must
    fit, so no two neighbours of one sign may have more than 128 together, which is 127 before they are rounded. That
    costs less than leaving 7 bits to every weight. Depthwise kernels are not added in pairs.
    """
    flat = w.reshape(len(w), -1).astype(np.float64)
    largest = np.maximum(np.abs(flat).max(axis=1), 1e-10)
    if w.shape[1] == 1 or w.shape[-1] > 1:
        return largest / (127 if w.shape[1] == 1 else STEM)
    pairs = [np.maximum(sign * flat, 0).reshape(len(w), -1, 2).sum(axis=2).max(axis=1) for sign in (1, -1)]
    return np.maximum.reduce([largest, *pairs]) / 127


def solved(w: Array, step: Array, gram: Array) -> Array:
    """Weights (n_out, n_in) in steps, rounded input by input; what is left of them makes up for the error.

    That is GPTQ (Frantar et al., ICLR 2023): the inputs go together as `gram` says, the strongest first.
    """
    H, s = gram.astype(np.float64), step.astype(np.float64)
    H = H + DAMP * np.mean(np.diag(H)) * np.eye(len(H))
    order = np.argsort(-np.diag(H), kind="stable")
    U = np.linalg.cholesky(np.linalg.inv(H[np.ix_(order, order)])).T
    rest, q = w[:, order].astype(np.float64), np.zeros(w.shape)
    for j, place in enumerate(order):
        q[:, place] = np.clip(np.rint(rest[:, j] / s), -127, 127)
        error = (rest[:, j] - q[:, place] * s) / U[j, j]
        rest[:, j + 1 :] -= np.outer(error, U[j, j + 1 :])
    return _within(q)


def _within(q: Array) -> Array:
    """The same where neighbours of one sign have at most 128 together (see `steps`): the larger gives the rest."""
    pairs = q.reshape(len(q), -1, 2).copy()
    for sign in (1, -1):
        own = np.maximum(sign * pairs, 0)
        over, larger = np.maximum(own.sum(axis=2) - 128, 0), own.argmax(axis=2)[..., None]
        np.put_along_axis(pairs, larger, np.take_along_axis(pairs, larger, 2) - sign * over[..., None], 2)
    return pairs.reshape(q.shape)


def even(x: Array) -> Array:
    """Kernels (n, 1, side, side) in whole numbers whose sums are those of `x`, rounded: neighbouring pixels are alike.

    So many weights as it takes go to the other side, those first that are nearest to it.
    """
    flat = x.reshape(len(x), -1)
    q = np.rint(flat)
    for row, left in zip(q, flat - q, strict=True):
        short = int(np.rint(left.sum()))
        row[np.argsort(-left * np.sign(short), kind="stable")[: abs(short)]] += np.sign(short)
    return np.clip(q, -127, 127).reshape(x.shape)


def _span(seen: Seen, options: Options, *, clip: bool) -> tuple[np.float32, np.uint8]:
    """Step and zero point of bytes for a tensor; 0 is one of them, for the padding."""
    if options.ranges == "max":
        return _bytes(seen.low, min(6.0, MARGIN * seen.high) if clip else seen.high)
    tried = [_bytes(share * seen.low, min(6.0, share * seen.high) if clip else share * seen.high) for share in SHRUNK]
    return min(tried, key=lambda one: _error(seen.some, *one))


def _bytes(low: float, high: float) -> tuple[np.float32, np.uint8]:
    low, high = min(low, 0.0), max(high, 0.0)
    step = np.float32((high - low) / 255)
    return step, np.uint8(np.rint(-low / step))


def _error(x: Array, step: np.float32, zero: np.uint8) -> float:
    """The mean squared error of numbers as bytes."""
    again = (np.clip(np.rint(x / step) + int(zero), 0, 255) - int(zero)) * step
    return float(np.mean((again - x) ** 2))


def _is_1x1(node: NodeProto) -> bool:
    """Whether a node is a convolution that is not depthwise, nor the stem: it has neither padding nor stride."""
    return node.op_type == "Conv" and not any(_attributes(node)["pads"]) and _attributes(node)["strides"] == [1, 1]


def _attributes(node: NodeProto) -> dict[str, Any]:
    return {one.name: helper.get_attribute_value(one) for one in node.attribute}


def paired(model: ModelProto) -> Iterator[int]:
    """The largest sum of two neighbouring weights of one sign, of every kernel of a tower whose products are added."""
    stored = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type not in ("QLinearConv", "MatMulIntegerToFloat"):
            continue
        q = stored[node.input[3 if node.op_type == "QLinearConv" else 1]].astype(int)
        rows = q.T if q.ndim == 2 else q.reshape(len(q), -1)
        if q.ndim == 2 or q.shape[1] > 1:
            yield max(int(np.maximum(sign * rows, 0).reshape(len(rows), -1, 2).sum(axis=2).max()) for sign in (1, -1))


def main() -> None:
    """Quantise, check and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--front", type=int, default=Options.front)
    parser.add_argument("--ranges", choices=("error", "max"), default=Options.ranges)
    parser.add_argument("--sums", choices=("float", "bytes"), default=Options.sums)
    for name in ("solved", "even", "corrected"):
        parser.add_argument(f"--{name}", action=argparse.BooleanOptionalAction, default=True)
    args = vars(parser.parse_args())
    out, model = args.pop("out"), onnx.load(DATA / "image.onnx")
    made = in_integers(model, Options(**args))
    checker.check_model(made)
    if args["front"]:  # the stem's pairs are not known, see `STEM`
        assert max(paired(made)) <= 128
    onnx.save_model(made, out)
    print(f"{out.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
