"""Edits of an ONNX graph, in place: no traces of how it was made, weights in half precision, products in int8."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, save_model

LARGE = 1024  # numbers from which on a matrix is stored smaller
LIMIT = 2**31 - 2**20  # bytes that fit into one file, with room for the graph itself
WEIGHT = 63  # weights in int8 are -63..63, see `quantize`
FLOAT = TensorProto.FLOAT


def tidy(model: ModelProto, shape: list[str | int], dim: int) -> ModelProto:
    """Name the axes, and drop what says where and by whom the graph was made: the same model gives the same bytes.

    `shape` is that of the one input, where names stand for any size; the one output is (n, dim).
    """
    graph = model.graph
    graph.name, model.producer_name, model.producer_version = "tower", "", ""
    del graph.value_info[:], graph.metadata_props[:], model.metadata_props[:], model.functions[:]
    given, got = graph.input[0], graph.output[0]
    given.CopyFrom(helper.make_tensor_value_info(given.name, given.type.tensor_type.elem_type, shape))
    got.CopyFrom(helper.make_tensor_value_info(got.name, FLOAT, ["n", dim]))
    for part in (*graph.node, *graph.initializer):
        part.doc_string = ""
        del part.metadata_props[:]
    return _with(model, list(graph.node), list(graph.initializer))


def halve(model: ModelProto) -> ModelProto:
    """Store large weights in float16; they are cast to float32 when the model is loaded, and computed with as before.

    Rows of a table are cast as they are looked up, so that the table itself stays small in memory.
    """
    weights = {weight.name: weight for weight in model.graph.initializer}
    halves = {name: half for name, weight in weights.items() if (half := _half(weight)) is not None}
    tables = _only_looked_up(model) & set(halves)
    nodes = [_node("Cast", [halves[name].name], name, to=FLOAT) for name in halves if name not in tables]
    for node in model.graph.node:
        if node.op_type == "Gather" and node.input[0] in tables:
            found = f"{node.output[0]}.half"
            inputs = [halves[node.input[0]].name, node.input[1]]
            nodes.append(_node("Gather", inputs, found, axis=_given(node, "axis", 0)))
            nodes.append(_node("Cast", [found], node.output[0], to=FLOAT))
        else:
            nodes.append(node)
    return _with(model, nodes, [halves.get(name, weight) for name, weight in weights.items()])


def _half(weight: TensorProto) -> TensorProto | None:
    """A large matrix in float16, unless a number in it is too large for that."""
    values = numpy_helper.to_array(weight)
    if values.dtype != np.float32 or values.ndim < 2 or values.size < LARGE or np.abs(values).max() > 65504:
        return None
    return numpy_helper.from_array(values.astype(np.float16), f"{weight.name}.half")


def _only_looked_up(model: ModelProto) -> set[str]:
    used = [(name, (node.op_type, at)) for node in model.graph.node for at, name in enumerate(node.input)]
    return {name for name, how in used if how == ("Gather", 0)} - {name for name, how in used if how != ("Gather", 0)}


def quantize(model: ModelProto) -> ModelProto:
    """Products with large weights in integers: each row of the input and each column of the weights has its own scale.

    Of an input X, a row a token, b is the least number in a row, s the range of that row over 255; of the weights W, t
    is the largest absolute number in a column over 63. With Q = round((X - b) / s) and V = round(W / t):

        X W  ~  s t Q V + b t (column sums of V)

    Q V is exact, and so a row's result does not depend on its batch, as it would with onnxruntime's own dynamic
    quantisation, which has one scale for all rows together and is less exact for it. V has 7 bits because many
    processors add two products of bytes in 16 bits, cutting off what is too large, and 2 * 255 * 63 is not: all of them
    give the same result. Convolutions, and whatever else is no product with weights, stay in float.
    """
    edit = _Integers(model)
    for node in model.graph.node:
        if (matrix := _matrix(node, edit.weights)) is None:
            edit.nodes.append(node)
        else:
            edit.product(node, matrix)
    return _with(model, edit.nodes, list(edit.weights.values()))


class _Integers:
    """The nodes and weights of the new graph, as far as it is built."""

    def __init__(self, model: ModelProto) -> None:
        self.nodes: list[NodeProto] = []
        self.weights = {weight.name: weight for weight in model.graph.initializer}
        self._rows: set[str] = set()
        self._one, self._zero = self._constant("int8.one", np.float32(1)), self._constant("int8.zero", np.uint8(0))
        self._last, self._255 = self._constant("int8.last", [-1]), self._constant("int8.255", np.float32(255))
        self._least = self._constant("int8.least", np.float32(1e-30))

    def product(self, node: NodeProto, matrix: NDArray[np.float32]) -> None:
        """`X W` of a MatMul, `X W + bias` of a Gemm."""
        x, out = node.input[0], node.output[0]
        self._integers(x)
        t = np.maximum(np.abs(matrix).max(axis=0) / WEIGHT, np.float32(1e-30))
        v = np.rint(matrix / t).astype(np.int8)
        V, scale = self._constant(f"{out}.V", v), self._constant(f"{out}.t", t)
        sums = self._constant(f"{out}.sums", v.sum(axis=0, dtype=np.int32).astype(np.float32) * t)
        self._add("MatMulInteger", [f"{x}.Q", V, self._zero], f"{out}.QV")
        self._add("Cast", [f"{out}.QV"], f"{out}.float", to=FLOAT)
        self._add("Mul", [f"{out}.float", scale], f"{out}.tQV")
        self._add("Mul", [f"{out}.tQV", f"{x}.s"], f"{out}.stQV")
        self._add("Mul", [f"{x}.b", sums], f"{out}.shift")
        bias = list(node.input[2:])
        self._add("Add", [f"{out}.stQV", f"{out}.shift"], f"{out}.sum" if bias else out)
        if bias:
            self._add("Add", [f"{out}.sum", *bias], out)

    def _integers(self, x: str) -> None:
        """Q, b and s of an input; several products may share it."""
        if x in self._rows:
            return
        self._rows.add(x)
        self._add("ReduceMin", [x, self._last], f"{x}.b", keepdims=1)
        self._add("ReduceMax", [x, self._last], f"{x}.max", keepdims=1)
        self._add("Sub", [f"{x}.max", f"{x}.b"], f"{x}.range")
        self._add("Div", [f"{x}.range", self._255], f"{x}.step")
        self._add("Max", [f"{x}.step", self._least], f"{x}.s")
        self._add("Sub", [x, f"{x}.b"], f"{x}.above")
        self._add("Div", [f"{x}.above", f"{x}.s"], f"{x}.steps")
        self._add("QuantizeLinear", [f"{x}.steps", self._one, self._zero], f"{x}.Q")

    def _add(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> None:
        self.nodes.append(_node(kind, inputs, output, **attributes))

    def _constant(self, name: str, value: Any) -> str:
        self.weights[name] = numpy_helper.from_array(np.asarray(value), name)
        return name


def _matrix(node: NodeProto, weights: dict[str, TensorProto]) -> NDArray[np.float32] | None:
    """The weights W of a product X W, (in, out), if they are constant and large."""
    if node.op_type not in ("MatMul", "Gemm") or node.input[1] not in weights:
        return None
    values = numpy_helper.to_array(weights[node.input[1]])
    usual = [_given(node, key, default) for key, default in (("alpha", 1.0), ("beta", 1.0), ("transA", 0))] == [1, 1, 0]
    if values.dtype != np.float32 or values.ndim != 2 or values.size < LARGE or not usual:
        return None
    return values.T if _given(node, "transB", 0) else values


def _given(node: NodeProto, name: str, default: Any) -> Any:
    found = [attribute for attribute in node.attribute if attribute.name == name]
    return helper.get_attribute_value(found[0]) if found else default


def _node(kind: str, inputs: list[str], output: str, **attributes: Any) -> NodeProto:
    return helper.make_node(kind, inputs, [output], name=output, **attributes)


def _with(model: ModelProto, nodes: list[NodeProto], weights: list[TensorProto]) -> ModelProto:
    """The model with other nodes and weights, in place: a copy of 2 GB or more is beyond the library.

    Weights that no node reads are left out.
    """
    graph = model.graph
    used = {name for node in nodes for name in node.input}
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(weight for weight in weights if weight.name in used)
    return model


def write(model: ModelProto, path: Path) -> list[str]:
    """Save a model, with its weights in a file of their own where they are too many for one; gives the names."""
    if sum(len(weight.raw_data) for weight in model.graph.initializer) < LIMIT:
        path.write_bytes(model.SerializeToString(deterministic=True))
        return [path.name]
    data = f"{path.name}.data"
    save_model(model, path, save_as_external_data=True, location=data, size_threshold=LARGE)
    return [path.name, data]
