"""An exported image tower in the older operations that runtimes for browsers and phones have."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, checker, helper, load_model, numpy_helper

from outword.encoders.onnx.graph import LIMIT, halve, quantize
from outword.encoders.onnx.traced import OPSET, Precision
from outword.errors import ArtifactError

REDUCTIONS = ("ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceProd", "ReduceSumSquare")
LATER = {  # attributes that came later, of which exports have what was so before
    "Split": ("num_outputs",),
    "Cast": ("saturate", "round_mode"),
    **dict.fromkeys(REDUCTIONS, ("noop_with_empty_axes",)),
}


def image_tower(path: Path, precision: Precision) -> ModelProto:
    """The image tower of an export, smaller where the precision says so and the export is in fp32 yet."""
    stored = path.with_name(f"{path.name}.data")
    if stored.exists() or path.stat().st_size > LIMIT:
        hint = "use an encoder with a smaller image tower, or export it in fp16 or int8"
        raise ArtifactError(f"{path} is too large for one ONNX file, which holds 2 GB", hint=hint)
    model = load_model(path)
    if precision == "int8":
        model = quantize(model)
    return lowered(model if precision == "fp32" else halve(model))


def lowered(model: ModelProto) -> ModelProto:
    """The model in opset 17, in place."""
    graph = model.graph
    constants = {weight.name: numpy_helper.to_array(weight) for weight in graph.initializer if weight.dims}
    constants |= {node.output[0]: _value(node) for node in graph.node if node.op_type == "Constant"}
    nodes: list[NodeProto] = []
    for node in graph.node:
        if node.op_type in REDUCTIONS and len(node.input) > 1:
            axes = constants[node.input[1]].ravel().tolist()
            del node.input[1:]
            node.attribute.append(helper.make_attribute("axes", axes))
        for later in [one for one in node.attribute if one.name in LATER.get(node.op_type, ())]:
            node.attribute.remove(later)
        nodes += _gelu(node) if node.op_type == "Gelu" else [node]
    del graph.node[:], graph.value_info[:]
    graph.node.extend(nodes)
    kept = [one for one in model.opset_import if one.domain]
    del model.opset_import[:]
    model.opset_import.extend([helper.make_opsetid("", OPSET), *kept])
    try:
        checker.check_model(model)
    except checker.ValidationError as error:
        told = f"the image tower cannot be written in opset {OPSET}: {' '.join(str(error).split())[:200]}"
        raise ArtifactError(told, hint="use another encoder") from None
    return model


def _value(node: NodeProto) -> Any:
    value = helper.get_attribute_value(node.attribute[0])
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def _gelu(node: NodeProto) -> list[NodeProto]:
    """x (1 + g) / 2, with g = erf(x / sqrt 2), or tanh(sqrt(2 / pi) (x + .044715 x^3)) where it is approximate."""
    x, out = node.input[0], node.output[0]
    approximate = any(helper.get_attribute_value(one) == b"tanh" for one in node.attribute)
    made: list[NodeProto] = []

    def add(kind: str, *inputs: str, last: str = "") -> str:
        name = last or f"{out}.gelu{len(made)}"
        made.append(helper.make_node(kind, list(inputs), [name], name=name))
        return name

    def number(value: float) -> str:
        name = f"{out}.gelu{len(made)}"
        tensor = numpy_helper.from_array(np.array(value, np.float32), name)
        made.append(helper.make_node("Constant", [], [name], name=name, value=tensor))
        return name

    if approximate:
        cubed = add("Mul", add("Mul", x, x), x)
        inner = add("Add", x, add("Mul", cubed, number(0.044715)))
        g = add("Tanh", add("Mul", inner, number(math.sqrt(2 / math.pi))))
    else:
        g = add("Erf", add("Mul", x, number(math.sqrt(0.5))))
    add("Mul", add("Mul", x, number(0.5)), add("Add", g, number(1.0)), last=out)
    return made
