"""A detector as one ONNX file: what it says is what the detector says."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper
from PIL import Image

import outword
from conftest import LABELS, PHOTOS
from outword.cli import main
from outword.detector import bundling
from outword.detector.thresholds import Thresholds
from outword.encoders.mini.encoder import Mini, central
from outword.encoders.onnx.resizing import resized
from outword.encoders.onnx.traced import Graph, Traced
from outword.encoders.preprocess import Preprocess
from outword.errors import InputError, MissingExtraError, ParameterError
from outword.maths.methods import DETECTORS
from outword.maths.thresholds import by_hand

ROOT = Path(__file__).resolve().parents[2]
WEB = Path(os.environ.get("OUTWORD_ONNX_WEB", ROOT))
NAMES = sorted(PHOTOS.glob("*.jpg"))[:6]
BUNDLED = [name for name, method in DETECTORS.items() if bundling.is_bundled(method)]
SIDES = Preprocess(32, 40, "bilinear", [0.5] * 3, [0.5] * 3, "floor")
WHOLE = Preprocess(48, 0, "bicubic", [0.5] * 3, [0.5] * 3)


@pytest.fixture(scope="module")
def detector():
    return outword.fit([*LABELS, "dog"])


@pytest.fixture(scope="module")
def photos():
    return [np.asarray(Image.open(path).convert("RGB")) for path in NAMES]


def run(path, pixels, *names):
    outputs = onnxruntime.InferenceSession(path).run([*names] or None, {"pixels": pixels})
    return dict(zip(names or ("score", "verdict", "label", "shares", "labels"), outputs, strict=True))


# the methods


def traced(method, images):
    """Scores that the graph of a method gives for vectors."""
    graph = Graph()
    score = method.formula(Traced(graph, "x"))
    outputs = {"score": (score, TensorProto.FLOAT, ["n"])}
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", images.shape[1]])
    model = graph.model(given, outputs, {})
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": images})[0]


@pytest.mark.parametrize("name", BUNDLED)
@pytest.mark.parametrize("params", [{}, {"sigma": 0.1, "tau": 0.03}], ids=["", "noise"])
def test_a_method_has_the_same_scores_as_a_graph(name, params):
    if params and name != "debiased":
        return
    rng = np.random.default_rng(0)
    labels, wild, x = (rng.standard_normal((n, 16)) for n in (5, 240, 30))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    given = {"n_groups": 6} if "n_groups" in DETECTORS[name].__dataclass_fields__ else {}
    method = DETECTORS[name](temperature=0.1, **given, **params).fit(labels=labels, wild=wild, images=x)
    wanted = method.score(x)
    np.testing.assert_allclose(method.formula(x), wanted, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(traced(method, x.astype(np.float32)), wanted, atol=1e-4)


def test_what_derives_from_a_method_says_itself_that_a_graph_can_have_it():
    assert {"grounded", "debiased", "neglabel", "csp", "mcm", "msp", "maxlogit", "energy", "entropy", "var"} <= {
        *BUNDLED
    }
    assert not {"adaneg", "glmcm", "odin", "knn", "clipn", "zoc"} & {*BUNDLED}


# resizing


@pytest.mark.parametrize(
    ("side", "interpolation", "box", "plain"),
    [(260, "bicubic", central, Mini.preprocess), (32, "bilinear", SIDES.box, SIDES), (48, "bicubic", WHOLE.box, WHOLE)],
    ids=["mini", "cropped", "squashed"],
)
def test_resizing_is_that_of_pillow(side, interpolation, box, plain, photos):
    graph = Graph()
    out = resized(graph, Traced(graph, "pixels"), side, interpolation, box)
    given = helper.make_tensor_value_info("pixels", TensorProto.UINT8, ["n", "height", "width", 3])
    model = graph.model(given, {"out": (out, TensorProto.UINT8, ["n", side, side, 3])}, {})
    session = onnxruntime.InferenceSession(model.SerializeToString())
    noise = np.random.default_rng(0).integers(256, size=(331, 700, 3), dtype=np.uint8)
    for pixels in (photos[3], noise, noise[:80, :90]):
        found = session.run(None, {"pixels": pixels[None]})[0][0].astype(int)
        apart = np.abs(found - plain(Image.fromarray(pixels)))
        assert apart.max() <= 2 and (apart > 0).mean() < 0.03  # where rounding falls on the other side


# the whole


def test_the_same_pixels_have_the_same_scores(detector, photos, tmp_path):
    about = outword.bundle(detector, tmp_path / "d.onnx", resize=False)
    pixels = np.stack([Mini.preprocess(Image.fromarray(photo)) for photo in photos])
    found = run(tmp_path / "d.onnx", pixels)
    records = detector.predict(photos)
    np.testing.assert_allclose(found["score"], [one.score for one in records], atol=1e-4)
    assert [one.verdict == "in" for one in records] == found["verdict"].tolist()
    assert [one.nearest for one in records] == found["labels"][found["label"]].tolist()
    np.testing.assert_allclose(found["shares"].max(axis=1), [one.labels[0][1] for one in records], atol=1e-4)
    assert (found["shares"].sum(axis=1) < 1.0001).all() and found["shares"].shape == (len(photos), 5)
    alone = run(tmp_path / "d.onnx", pixels[:1], "score")["score"]
    np.testing.assert_allclose(alone, found["score"][:1], atol=1e-4)
    assert json.loads(about["labels"]) == detector.labels
    assert float(about["threshold"]) == detector.threshold
    assert about["side"] == "260"


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_whole_photos_of_any_size_have_the_verdicts_of_the_product(detector, photos, precision, tmp_path):
    path = tmp_path / "d.onnx"
    outword.bundle(detector, path, precision=precision)
    for photo, record in zip(photos, detector.predict(photos), strict=True):
        found = run(path, photo[None], "score", "verdict")
        assert abs(found["score"][0] - record.score) < 0.5
        assert found["verdict"][0] == (record.verdict == "in") or abs(record.score - record.threshold) < 0.2
    model = onnx.load(path)
    assert {one.domain: one.version for one in model.opset_import}[""] == 17 and model.ir_version == 8
    stored = {one.key: one.value for one in model.metadata_props}
    assert json.loads(stored["card"])["method"]["name"] == "grounded" and stored["precision"] == precision


def test_ten_labels_with_mini_have_16_megabytes_in_int8(tmp_path):
    names = "tabby cat, espresso, space shuttle, raccoon, pizza, daisy, airliner, acoustic guitar, lion, sports car"
    outword.bundle(outword.fit(names.split(", ")), tmp_path / "d.onnx", precision="int8")
    assert (tmp_path / "d.onnx").stat().st_size <= 16e6


def test_an_own_threshold_and_a_part_of_the_method_are_in_the_file(photos, tmp_path):
    detector = outword.fit(LABELS, method="debiased").with_threshold(by_hand(0.125))
    outword.bundle(detector, tmp_path / "d.onnx")
    found = run(tmp_path / "d.onnx", photos[0][None], "score", "verdict")
    assert found["verdict"][0] == (found["score"][0] >= 0.125)


def test_what_cannot_be_bundled_is_refused(detector, tmp_path, monkeypatch):
    target = tmp_path / "d.onnx"
    target.write_bytes(b"before")
    with pytest.raises(ParameterError, match=r"gradnorm cannot be put into an ONNX graph.*fit one of these: grounded"):
        outword.bundle(outword.fit(LABELS, method="gradnorm"), target)
    with pytest.raises(ParameterError, match=r"needs a threshold, and energy has none yet.*outword calibrate"):
        outword.bundle(replace(outword.fit(LABELS, method="energy"), thresholds=Thresholds()), target)
    with pytest.raises(ParameterError, match="precision must be fp32, fp16 or int8, got 'fp8'"):
        outword.bundle(detector, target, precision="fp8")
    with pytest.raises(InputError, match="is a folder"):
        outword.bundle(detector, tmp_path)
    monkeypatch.setattr(bundling, "MOST_BYTES", 1000)
    with pytest.raises(outword.OutwordError, match="one ONNX file holds 2 GB"):
        outword.bundle(detector, target)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"a bundle needs onnx.*\[bundle\]"):
        outword.bundle(detector, target)
    assert target.read_bytes() == b"before" and [*tmp_path.iterdir()] == [target]


def test_an_encoder_that_has_no_graph_says_what_to_do(detector, tmp_path, monkeypatch):
    monkeypatch.setattr(Mini, "image_graph", outword.encoders.Encoder.image_graph)
    with pytest.raises(ParameterError, match=r"mini cannot be put into an ONNX graph.*outword export mini -o DIR"):
        outword.bundle(detector, tmp_path / "d.onnx")


def test_the_verb(detector, tmp_path):
    detector.save(tmp_path / "d.outword")
    result = CliRunner().invoke(main, ["bundle", str(tmp_path / "d.outword"), "-o", str(tmp_path / "d.onnx"), "--json"])
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["precision"] == "fp32"
    assert "5 labels, grounded, threshold" in result.stderr and "MB in fp32" in result.stderr


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node here")
@pytest.mark.skipif(
    not (WEB / "node_modules/onnxruntime-web").exists(),
    reason="onnxruntime-web is not here: npm install onnxruntime-web@1.30.0, and OUTWORD_ONNX_WEB names the folder",
)
def test_under_node_it_says_the_same(detector, photos, tmp_path):
    path = tmp_path / "d.onnx"
    outword.bundle(detector, path, precision="int8")
    listed = []
    for place, photo in enumerate(photos[:4]):
        (tmp_path / f"{place}.raw").write_bytes(photo.tobytes())
        listed.append({"height": photo.shape[0], "width": photo.shape[1], "data": str(tmp_path / f"{place}.raw")})
    (tmp_path / "photos.json").write_text(json.dumps(listed))
    command = ["node", ROOT / "benchmarks/onnx_web/node.mjs", WEB, path, tmp_path / "photos.json"]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for photo, row in zip(photos, rows, strict=False):
        found = run(path, photo[None])
        assert row["verdict"] == found["verdict"][0] and row["label"] == found["labels"][found["label"][0]]
        assert abs(row["score"] - found["score"][0]) < 0.2
