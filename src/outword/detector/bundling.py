"""A detector as one ONNX file: photos in, scores and verdicts out, wherever onnxruntime runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from outword.base.extras import require
from outword.base.files import PathLike, check_outputs, whole_file
from outword.errors import ArtifactError, ParameterError
from outword.maths.methods import DETECTORS, VectorDetector
from outword.maths.methods.needs import of_photo
from outword.maths.numerics import log_sum_exp

if TYPE_CHECKING:
    from onnx import ModelProto

    from outword.detector.detector import Detector
    from outword.encoders.onnx.traced import Graph, Traced

PRECISIONS = ("fp32", "fp16", "int8")
FORMAT = "1"  # of inputs, outputs and metadata
MOST_BYTES = 2**31 - 2**20  # that one ONNX file holds


def bundle(
    detector: Detector, path: PathLike, *, precision: Literal["fp32", "fp16", "int8"] = "fp32", resize: bool = True
) -> dict[str, str]:
    """Write a detector to one ONNX file: pixels in, score, verdict and label out, without this package.

    The file has resizing, image tower, vectors of labels and words, method and threshold. Its input `pixels` are bytes
    (n, height, width, 3), red first, photos of one size at a time, upright. Its outputs are `score` (n,), `verdict`
    (n,), whether the score is at or above the threshold, `label` (n,), the place of the nearest label, `shares` (n,
    n_labels), and `labels` (n_labels,), their names. The threshold is fixed: photos that are asked about refine none.

    Args:
        detector: its method must score by vectors alone, and have a threshold; its encoder is `mini` or an export.
        path: the file, which is replaced.
        precision: how large matrices are stored, "fp16" in half the space, "int8" in a quarter; the image tower of
            `mini` is int8 in all of them, and that of an export in fp32 follows.
        resize: False leaves resizing out; `pixels` are then (n, side, side, 3), prepared as the encoder does it.

    Returns:
        The metadata of the file, texts by name: among others `labels` and `card` as JSON, `threshold` and `precision`.
    """
    if precision not in PRECISIONS:
        raise ParameterError(f"precision must be fp32, fp16 or int8, got {precision!r}", hint="leave it out for fp32")
    check_outputs(path)
    check_bundled(detector)
    require("onnx", "a bundle", "bundle")
    model = _model(detector, precision, resize)
    if model.ByteSize() > MOST_BYTES:
        told = f"the bundle would have {model.ByteSize() / 1e9:.1f} GB, and one ONNX file holds 2 GB"
        raise ArtifactError(told, hint="use --precision fp16 or int8")
    with whole_file(Path(path)) as temporary:
        temporary.write_bytes(model.SerializeToString(deterministic=True))
    return {one.key: one.value for one in model.metadata_props}


def check_bundled(detector: Detector) -> None:
    """Raise unless a graph can have the detector's method and its threshold."""
    scorer, name = detector.in_force, detector.method
    if not is_bundled(type(scorer)) or scorer.sees_order or of_photo(scorer.wants()) or _learned(scorer):
        able = ", ".join(one for one, method in DETECTORS.items() if is_bundled(method))
        what = f"{name} with a learned head" if is_bundled(type(scorer)) else name
        raise ParameterError(f"method {what} cannot be put into an ONNX graph", hint=f"fit one of these: {able}")
    if detector.threshold is None:
        hint = '"outword calibrate" finds one on photos of your classes'
        raise ParameterError(f"a bundle needs a threshold, and {name} has none yet", hint=hint)


def is_bundled(method: type[VectorDetector]) -> bool:
    """Whether the method says itself that a graph can have its score; one that derives from it may score otherwise."""
    return bool(vars(method).get("in_graph", False)) and not method.sees_order


def _learned(scorer: VectorDetector) -> bool:
    """Whether it learned classes of its own, from photos."""
    return scorer.class_logits(np.eye(1, scorer.labels_.shape[1])) is not None


def _model(detector: Detector, precision: Any, resize: bool) -> ModelProto:
    from onnx import TensorProto, helper

    from outword.encoders.onnx.traced import Graph, Traced

    graph, encoder = Graph(precision), detector.encoder
    side = encoder.side or getattr(encoder.preprocess, "side", 0)
    sizes = ["height", "width"] if resize else [side, side]
    given = helper.make_tensor_value_info("pixels", TensorProto.UINT8, ["n", *sizes, 3])
    vectors = encoder.image_graph(graph, Traced(graph, "pixels"), resize=resize)
    score = detector.in_force.formula(vectors)
    shares = _shares(graph, detector, vectors)
    threshold, n_labels = detector.threshold, len(detector.labels)
    outputs: dict[str, tuple[Traced, Any, list[int | str]]] = {
        "score": (score, TensorProto.FLOAT, ["n"]),
        "verdict": (graph.node("GreaterOrEqual", score, np.float32(threshold)), TensorProto.BOOL, ["n"]),
        "label": (graph.node("ArgMax", shares, axis=1, keepdims=0), TensorProto.INT64, ["n"]),
        "shares": (shares, TensorProto.FLOAT, ["n", n_labels]),
        "labels": (graph.constant(np.array(detector.labels)), TensorProto.STRING, [n_labels]),
    }
    return graph.model(given, outputs, _about(detector, precision, side))


def _shares(graph: Graph, detector: Detector, vectors: Traced) -> Traced:
    """The share of each label, (n, n_labels): see `outword.maths.kernels.evidence`."""
    scorer = detector.in_force
    rows, words = scorer.label_formula(vectors, detector.card.encoder.temperature)
    log_p = log_sum_exp(rows)[..., None]
    logs = rows - log_p
    if scorer.owners_ is not None:
        logs = np.log(np.exp(logs) @ np.eye(len(detector.labels))[scorer.owners_] + 1e-37)
    if words is None:
        return np.exp(logs)  # type: ignore[no-any-return]
    top = np.maximum(log_p, words)
    total = np.log(np.exp(log_p - top) + np.exp(words - top)) + top
    return np.exp(logs) * np.exp(log_p - total).mean(axis=1, keepdims=True)  # type: ignore[no-any-return]


def _about(detector: Detector, precision: str, side: int) -> Mapping[str, str]:
    """What the file says of itself, as texts."""
    odds = {one.label: one.share for one in detector.odds}
    tables = {"labels": detector.labels, "odds": odds, "card": detector.card.as_json()}
    return {
        "outword": FORMAT,
        "threshold": repr(float(detector.threshold)),  # type: ignore[arg-type]
        "threshold_from": detector.how_cut,
        "basis": detector.basis,
        "precision": precision,
        "side": str(side),
        **{name: json.dumps(table, ensure_ascii=False) for name, table in tables.items()},
    }
