"""An ONNX graph that is written by doing: formulas of arrays, given a `Traced` value, leave their operations in it.

So a method's score and an encoder's preprocessing stand in the graph as they stand in their own files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, ValueInfoProto, checker, helper, numpy_helper

from outword.base.files import sha256_bytes

Precision = Literal["fp32", "fp16", "int8"]
OPSET, IR_VERSION = 17, 8  # what runtimes for browsers and phones have
LARGE = 1024  # numbers from which on a matrix is stored smaller
UFUNCS: dict[Any, str] = {
    **{np.add: "Add", np.subtract: "Sub", np.multiply: "Mul", np.true_divide: "Div", np.power: "Pow"},
    **{np.minimum: "Min", np.maximum: "Max", np.less: "Less", np.greater_equal: "GreaterOrEqual"},
    **{np.exp: "Exp", np.log: "Log", np.sqrt: "Sqrt", np.absolute: "Abs", np.negative: "Neg"},
    **{np.floor: "Floor", np.rint: "Round"},
}


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """A value that the graph will have; what is done with it becomes a node. It has what formulas use of an array."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            return NotImplemented
        if ufunc is np.matmul:
            return self.graph.product(*inputs)
        if ufunc not in UFUNCS:
            return NotImplemented
        return self.graph.node(UFUNCS[ufunc], *(_floats(value) for value in inputs))

    def __array_function__(self, function: Any, types: Any, given: Sequence[Any], options: Mapping[str, Any]) -> Any:
        if function is np.concatenate:
            return self.graph.node("Concat", *given[0], axis=options["axis"])
        if function is np.where:
            return self.graph.node("Where", given[0], *(_floats(value) for value in given[1:]))
        return NotImplemented

    def __getitem__(self, key: Any) -> Traced:
        """`[:, 0]`, `[..., 0]`, `[:, None]`, `[..., None]` and `[:, 1:3]`."""
        _, last = key
        axis = -1 if key[0] is Ellipsis else 1
        if last is None:
            return self.graph.node("Unsqueeze", self, np.array([axis]))
        if isinstance(last, slice):
            stop = np.iinfo(np.int64).max if last.stop is None else last.stop
            return self.graph.node("Slice", self, *(np.array([at]) for at in (last.start or 0, stop, axis)))
        return self.graph.node("Gather", self, np.int64(last), axis=axis)

    def max(self, axis: int, keepdims: bool = False) -> Traced:
        """The largest along an axis."""
        return self.graph.node("ReduceMax", self, axes=[axis], keepdims=int(keepdims))

    def sum(self, axis: int, keepdims: bool = False) -> Traced:
        """The sum along an axis."""
        return self.graph.node("ReduceSum", self, np.array([axis]), keepdims=int(keepdims))

    def mean(self, axis: int, keepdims: bool = False) -> Traced:
        """The mean along an axis."""
        return self.graph.node("ReduceMean", self, axes=[axis], keepdims=int(keepdims))

    def var(self, axis: int) -> Traced:
        """The variance along an axis."""
        apart = self - self.mean(axis, keepdims=True)
        return (apart * apart).mean(axis)  # type: ignore[no-any-return]

    def clip(self, min: float, max: float | None = None) -> Traced:
        """Within bounds."""
        least = self.graph.node("Max", self, np.float32(min))
        return least if max is None else self.graph.node("Min", least, np.float32(max))

    def reshape(self, *shape: int) -> Traced:
        """In another shape."""
        return self.graph.node("Reshape", self, np.array(shape))


class Graph:
    """A graph as far as it is built. The same operation on the same values is there once."""

    def __init__(self, precision: Precision = "fp32") -> None:
        self.precision = precision
        self._nodes: list[Any] = []
        self._weights: dict[str, TensorProto] = {}
        self._known: dict[Any, list[str]] = {}
        self._domains: dict[str, int] = {"": OPSET}

    def node(self, kind: str, *inputs: Any, **attributes: Any) -> Traced:
        """The output of an operation on values and arrays."""
        return self.nodes(kind, *inputs, n_outputs=1, **attributes)[0]

    def nodes(self, kind: str, *inputs: Any, n_outputs: int, **attributes: Any) -> list[Traced]:
        """The outputs of an operation that has several."""
        names = [self._name(value) for value in inputs]
        key = kind, tuple(names), repr(sorted(attributes.items())), n_outputs
        if key not in self._known:
            outputs = [f"v{len(self._nodes)}_{place}" for place in range(n_outputs)]
            self._nodes.append(helper.make_node(kind, names, outputs, name=outputs[0], **attributes))
            self._known[key] = outputs
        return [Traced(self, name) for name in self._known[key]]

    def constant(self, value: Any) -> Traced:
        """An array that the graph holds; numbers are float32, or what else they are but float64."""
        array = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
        array = array.astype(np.float32) if array.dtype == np.float64 else array
        text = array.dtype.kind in "OU"
        content = repr(array.tolist()).encode() if text else array.tobytes()
        name = f"c{sha256_bytes(repr((array.dtype.str, array.shape)).encode() + content)[:24]}"
        if name not in self._weights:
            stored = np.array([one.encode() for one in array.tolist()], object) if text else array
            self._weights[name] = numpy_helper.from_array(stored, name)
        return Traced(self, name)

    def cast(self, value: Any, kind: Any) -> Traced:
        """A value as another type of number."""
        return self.node("Cast", value, to=helper.np_dtype_to_tensor_dtype(np.dtype(kind)))

    def product(self, x: Any, y: Any) -> Any:
        """`x @ y`; where y is a large matrix of weights, it is stored as the precision says.

        In fp16 numbers are stored in half the space, in int8 a column has one scale and numbers of -127 to 127. Both
        are made float32 when the file is loaded, and so is what is computed with them.
        """
        if isinstance(y, Traced) or np.size(y) < LARGE or self.precision == "fp32":
            return self.node("MatMul", x, y)
        if self.precision == "fp16":
            return self.node("MatMul", x, self.cast(np.asarray(y, np.float16), np.float32))
        scale = np.maximum(np.abs(y).max(axis=0) / 127, 1e-30)
        return self.stored_product(x, np.rint(y / scale).astype(np.int8)) * scale

    def stored_product(self, x: Any, y: NDArray[np.integer]) -> Traced:
        """`x @ y` of integers that stay what they are in the file."""
        return self.node("MatMul", x, self.cast(y, np.float32))

    def include(self, model: ModelProto, given: Traced) -> Traced:
        """Take over the nodes of a model with one input and one output, which is returned."""
        prefix, graph = f"t{len(self._nodes)}/", model.graph
        names = {graph.input[0].name: given.name, "": ""}

        def renamed(name: str) -> str:
            return names.setdefault(name, prefix + name)

        for weight in graph.initializer:
            copied = TensorProto()
            copied.CopyFrom(weight)
            copied.name = renamed(weight.name)
            self._weights[copied.name] = copied
        for node in graph.node:
            inputs, outputs = map(renamed, node.input), map(renamed, node.output)
            copied_node = helper.make_node(node.op_type, list(inputs), list(outputs), domain=node.domain)
            copied_node.name = copied_node.output[0]
            copied_node.attribute.extend(node.attribute)
            self._nodes.append(copied_node)
        self._domains |= {one.domain: one.version for one in model.opset_import if one.domain}
        return Traced(self, names[graph.output[0].name])

    def model(
        self,
        given: ValueInfoProto,
        outputs: Mapping[str, tuple[Traced, Any, Sequence[int | str]]],
        about: Mapping[str, str],
    ) -> ModelProto:
        """The model: its input, its outputs by name with type and shape, and what its metadata say."""
        for name, (value, _, _) in outputs.items():
            self._nodes.append(helper.make_node("Identity", [value.name], [name], name=name))
        used = {name for node in self._nodes for name in node.input}
        weights = [weight for name, weight in self._weights.items() if name in used]
        infos = [helper.make_tensor_value_info(name, kind, shape) for name, (_, kind, shape) in outputs.items()]
        graph = helper.make_graph(self._nodes, "outword", [given], infos, weights)
        opsets = [helper.make_opsetid(domain, version) for domain, version in self._domains.items()]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        helper.set_model_props(model, dict(about))
        checker.check_model(model)
        return model

    def _name(self, value: Any) -> str:
        return value.name if isinstance(value, Traced) else self.constant(value).name


def _floats(value: Any) -> Any:
    """Numbers and arrays in float32, as the values of a graph are."""
    return value if isinstance(value, Traced) else np.asarray(value, np.float32)


def unit(x: Any) -> Traced:
    """Rows of length 1; a row of zeros stays."""
    length = np.sqrt((x * x).sum(axis=-1, keepdims=True))
    return x / np.maximum(length, 1e-12)  # type: ignore[no-any-return]
