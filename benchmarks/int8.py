"""What `mini` would gain and lose with an image tower that computes in 8-bit integers; the package ships none.

    python benchmarks/int8.py PATH

The shipped tower is quantised into a temporary folder; the demo's photos set the ranges. Then both towers are compared:
images a second, vectors, and AUROC for the lists of labels of `bench_mini.py`, whose PATH this is: a folder of photos.
The text tower stays as it is. Needs the package onnx. The first run encodes words and photos: minutes.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from bench_mini import PARENTS, wild_vectors
from common import Bench, Task, draw, parents, read_bench
from outword.detector.recipe import make_detector
from outword.encoders.mini.encoder import DATA, Mini
from outword.encoders.ort import session, usable_cpus
from outword.maths.numerics import Array
from outword.photos.decode import open_image
from outword.photos.walk import find_images
from perf.encoder import FILES, IMAGES, ROUNDS, decoded
from perf.jpegs import PHOTOS, write_jpegs
from perf.tables import Goal, Table, markdown, times

METHODS = [("debiased", "density"), ("neglabel", "quantile"), ("maxlogit", "")]
DRAWS = 5
POINTS = 0.2  # of AUROC: so much would be given for the speed
PARTS = [(0, 0, 1, 1), (0, 0, 0.5, 0.5), (0.5, 0.5, 1, 1), (0.25, 0.25, 0.75, 0.75)]  # of a photo that sets the ranges
STEM = 63  # largest weight of the first convolution: which of its products are added in pairs is not known, see `steps`
MARGIN = 1.05  # room above the largest activation seen, as far as the clip at 6 leaves any


def main() -> None:
    """Quantise, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    root = parser.parse_args().path.resolve()
    bench, towers = read_bench(root), {"as shipped": Mini(), "int8": Mini()}
    pixels = demo_pixels(towers["int8"])
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "image.onnx"
        onnx.save_model(quantised(onnx.load(DATA / "image.onnx"), pixels), file)
        towers["int8"]._image_tower = session(file)  # set up as the shipped one is
        print(markdown(speed(towers, write_jpegs(Path(scratch), FILES))), flush=True)
    photos = {name: towers["int8"].encode_images(find_images([root / name])) for name in bench.photos}
    quick = replace(bench, photos=photos)
    print(f"\n{markdown(vectors(towers, bench, quick, pixels))}\n\n{markdown(accuracy(bench, quick))}")


def demo_pixels(mini: Mini) -> np.ndarray:
    """The demo's photos and three cuttings of each, as the image tower reads them."""
    found = []
    for image in map(open_image, find_images([PHOTOS])):
        boxes = [[int(share * side) for share, side in zip(part, image.size * 2, strict=True)] for part in PARTS]
        found += [mini.preprocess(image.crop(box)) for box in boxes]
    return np.stack(found)


def speed(towers: dict[str, Mini], files: list[Path]) -> Table:
    """Images a second, alone and while other threads decode."""
    pixels = np.stack([towers["int8"].loader(file) for file in files[:IMAGES]])
    alone = times({name: (lambda m=m: m.encode_pixels(pixels)) for name, m in towers.items()}, ROUNDS)
    beside = times({name: (lambda m=m: decoded(m, files, m.encode_pixels)) for name, m in towers.items()}, ROUNDS)
    rows = [
        {
            "": name,
            "images/s alone": 1e3 * IMAGES / alone[name],
            "ratio": alone["as shipped"] / alone[name],
            "images/s, decoding beside": 1e3 * FILES / beside[name],
            "ratio ": beside["as shipped"] / beside[name],
        }
        for name in towers
    ]
    return Table(f"mini on {usable_cpus()} cores, by image tower", rows)


def vectors(towers: dict[str, Mini], bench: Bench, quick: Bench, pixels: np.ndarray) -> Table:
    """How far the vectors of the two are apart, and whether those of one depend on the batch."""
    cosines = np.concatenate([(bench.photos[name] * quick.photos[name]).sum(axis=1) for name in bench.photos])
    rows = [
        {"": f"median cosine of a photo's two vectors, {len(cosines)} photos", "value": f"{np.median(cosines):.4f}"},
        {"": "least cosine", "value": f"{cosines.min():.4f}"},
    ]
    for name, mini in towers.items():
        change = mini.encode_pixels(pixels) - np.concatenate([mini.encode_pixels(row[None]) for row in pixels])
        rows.append({"": f"largest change when a batch is split, {name}", "value": f"{np.abs(change).max():.1e}"})
    return Table("Vectors of both image towers", rows)


def accuracy(bench: Bench, quick: Bench) -> Table:
    """AUROC of both by list of labels and method: the mean over OOD sets and draws."""
    rows, change = [], {}
    for (title, tasks), (_, others) in zip(lists(bench), lists(quick), strict=True):
        for method, miner in METHODS:
            found = []
            for task, other in zip(tasks, others, strict=True):
                detector = make_detector(method, bench.encoder.temperature, {})
                detector.fit(task.labels, wild_vectors(bench, task, miner, "wordnet"))
                found.append([mean_auroc(task, detector.score), mean_auroc(other, detector.score)])
            before, after = 100 * np.mean(found, axis=0)
            change[f"{method}, {title}"] = after - before
            figures = {"as shipped": f"{before:.2f}", "int8": f"{after:.2f}", "points": f"{after - before:+.2f}"}
            rows.append({"labels": title, "method": method, **figures})
    low, high = min(change, key=change.get), max(change, key=change.get)
    reached = f"{change[low]:+.2f} ({low}) to {change[high]:+.2f} ({high}), mean {np.mean([*change.values()]):+.2f}"
    met = max(-change[low], change[high]) <= POINTS
    return Table("AUROC on bench-mini by image tower", rows, [Goal(f"every cell within {POINTS} points", reached, met)])


def lists(bench: Bench) -> Iterator[tuple[str, list[Task]]]:
    """The lists of labels of `bench_mini.py`."""
    yield "all names", [draw(bench, len(bench.names), 0)]
    for size in (100, 10):
        yield f"{size} names", [draw(bench, size, seed) for seed in range(DRAWS)]
    yield "broad names", [parents(bench, PARENTS)]


def mean_auroc(task: Task, score: Callable[[Array], Array]) -> float:
    """The mean over OOD sets."""
    return float(np.mean([auroc for auroc, _ in task.figures(score).values()]))


def quantised(model: onnx.ModelProto, pixels: np.ndarray) -> onnx.ModelProto:
    """The shipped tower in integers: every `Conv`, with the `Clip` behind it, becomes a `QLinearConv`.

    Bytes go in as they are: (x - 127) / 128 is a step and a zero point. Weights have a step per output channel, see
    `steps`, activations one per tensor, from what `pixels` make of them; a clip at 6 is where the bytes end. Sums of
    two branches and the pooling are in float32.
    """
    graph, known, seen = model.graph, constants(model.graph), watch(model, pixels)
    clipped = {node.input[0]: node.output[0] for node in graph.node if node.op_type == "Clip"}
    [entry] = [node.output[0] for node in graph.node if node.op_type == "Div"]
    at = {entry: (np.float32(1 / 128), np.uint8(127))}  # step and zero point of every tensor that is bytes
    nodes, stored = [], []

    def put(kind: str, x: list[str], values: list, out: str, attributes=()) -> str:
        names = [f"q{len(stored) + i}" for i in range(len(values))]
        stored.extend(numpy_helper.from_array(np.asarray(v), name) for v, name in zip(values, names, strict=True))
        nodes.append(helper.make_node(kind, [*x, *names], [out]))
        nodes[-1].attribute.extend(attributes)
        return out

    def floats(x: str) -> str:
        return put("DequantizeLinear", [x], [*at[x]], f"{x}_float_{len(nodes)}")

    for node in graph.node:
        x, out = node.input[0], clipped.get(node.output[0], node.output[0])
        if node.op_type == "Transpose":
            put("Transpose", [x], [], entry, node.attribute)
        elif node.op_type == "Conv":
            q, step, bias = integers(known[node.input[1]], known[node.input[2]], at[x][0], seen[x][0])
            _, low, high = seen[out]
            at[out] = span(low, high if out == node.output[0] else min(6.0, MARGIN * high))
            values = [*at[x], q, step, np.zeros(len(q), np.int8), *at[out], bias]
            put("QLinearConv", [x], values, out, node.attribute)
        elif node.op_type == "Add":
            at[out] = span(*seen[out][1:])
            total = put("Add", [floats(name) for name in node.input], [], f"{out}_sum")
            put("QuantizeLinear", [total], [*at[out]], out)
        elif node.op_type == "GlobalAveragePool":
            put("GlobalAveragePool", [floats(x)], [], out)
        elif node.op_type in ("Flatten", "Identity"):
            nodes.append(node)
    made = helper.make_graph(nodes, graph.name, graph.input, graph.output, stored)
    return helper.make_model(made, opset_imports=model.opset_import, ir_version=model.ir_version)


def constants(graph: onnx.GraphProto) -> dict[str, Array]:
    """What the graph stores, and what its `Cast` and `Mul` nodes restore from that: the weights in float32."""
    found = {stored.name: numpy_helper.to_array(stored) for stored in graph.initializer}
    for node in graph.node:
        if all(name in found for name in node.input):
            x, *scale = (found[name] for name in node.input)
            found[node.output[0]] = x * scale[0] if node.op_type == "Mul" else x.astype(np.float32)
    return found


def watch(model: onnx.ModelProto, pixels: np.ndarray) -> dict[str, tuple[Array, float, float]]:
    """Mean by channel, least and largest value of every tensor that becomes bytes, as the shipped tower makes them."""
    names = [node.output[0] for node in model.graph.node if node.op_type in ("Div", "Conv", "Clip", "Add")]
    watched = onnx.ModelProto.FromString(model.SerializeToString())
    watched.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    tower = onnxruntime.InferenceSession(watched.SerializeToString(), providers=["CPUExecutionProvider"])
    found = {name: [] for name in names}
    for row in pixels:
        for name, x in zip(names, tower.run(names, {"pixels": row[None]}), strict=True):
            found[name].append((x.mean(axis=(0, 2, 3)), float(x.min()), float(x.max())))
    columns = {name: list(zip(*rows, strict=True)) for name, rows in found.items()}
    return {name: (np.mean(mean, axis=0), min(low), max(high)) for name, (mean, low, high) in columns.items()}


def integers(w: Array, bias: Array, input_step: np.float32, mean: Array) -> tuple[Array, Array, Array]:
    """A kernel in int8, its steps, and the bias in int32.

    The bias takes what rounding the kernel does to the mean of the result, `mean` being that of the input by channel.
    """
    # The bias is in steps of input and weight: where a kernel is all but zero, a larger step keeps it within 32 bits.
    step = np.maximum(steps(w), np.abs(bias) / (2**24 * input_step)).astype(np.float32)
    q = np.rint(w / step[:, None, None, None]).astype(np.int8)
    lost = (w - q * step[:, None, None, None].astype(np.float64)).sum(axis=(2, 3))
    bias = bias + (lost[:, 0] * mean if w.shape[1] == 1 else lost @ mean)
    return q, step, np.rint(bias / (step.astype(np.float64) * input_step)).astype(np.int32)


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


def span(low: float, high: float) -> tuple[np.float32, np.uint8]:
    """Step and zero point of bytes for numbers from `low` to `high`; 0 is one of them, for the padding."""
    low, high = min(low, 0.0), max(high, 0.0)
    step = np.float32((high - low) / 255)
    return step, np.uint8(np.rint(-low / step))


if __name__ == "__main__":
    main()
