"""An exported encoder gives what torch gives, without torch, whatever its precision; damaged folders are refused."""

import json
import shutil
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from click.testing import CliRunner
from onnx import helper, numpy_helper

import outword
from helpers.tiny import OPEN_CLIP, TEXTS, clip_folder, open_clip_folder, photos, siglip_folder, word_tokenizer
from outword.cli import main
from outword.encoders import get_encoder
from outword.encoders.onnx import export as exporting
from outword.encoders.onnx import graph
from outword.encoders.onnx.encoder import CARD, IMAGE, NAMES, TEXT, TOKENIZER, OnnxEncoder, fingerprint
from outword.encoders.onnx.export import export
from outword.errors import ArtifactError, MissingExtraError, OutwordError, ParameterError
from outword.maths.thresholds import by_hand
from outword.testing import check_encoder

MODELS = [*(f"open_clip-{kind}" for kind in OPEN_CLIP), "clip", "siglip"]
pytestmark = pytest.mark.filterwarnings("ignore:.*were cut")
LONG = " ".join(["word"] * 300)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The torch encoder and the folder of a model in a precision; each tower is traced once."""
    root = tmp_path_factory.mktemp("export")
    for kind in OPEN_CLIP:
        open_clip_folder(kind, root / f"open_clip-{kind}")
    clip_folder(root / "clip")
    siglip_folder(root / "siglip")
    patch = pytest.MonkeyPatch()
    encoders, traced, trace = {}, {}, exporting._traced

    def once(tower):
        key = id(tower.module), tower.reads
        traced[key] = traced.get(key) or trace(tower).SerializeToString()
        return onnx.load_from_string(traced[key])

    patch.setattr(exporting, "_traced", once)

    def make(name, precision="fp32"):
        if name not in encoders:
            encoders[name] = get_encoder(f"hf:{root / name}", device="cpu", precision="fp32")
        encoder = encoders[name]
        target = root / f"{name}-{precision}"
        if not target.exists():
            export(encoder, target, precision=precision)
        return encoder, target

    yield make
    patch.undo()


def opened(folder, **options):
    return OnnxEncoder(folder, name=f"onnx:{folder}", **options)


@pytest.mark.parametrize("name", MODELS)
def test_fp32_equals_torch(name, made):
    encoder, folder = made(name)
    copy = opened(folder)
    np.testing.assert_allclose(copy.encode_images(photos()), encoder.encode_images(photos()), atol=2e-6)
    np.testing.assert_allclose(copy.encode_texts([*TEXTS, LONG]), encoder.encode_texts([*TEXTS, LONG]), atol=2e-6)
    assert (copy.dim, copy.temperature, copy.prompts) == (encoder.dim, encoder.temperature, encoder.prompts)
    assert (copy.licence, copy.source, copy.min_side) == (encoder.licence, encoder.source, encoder.min_side)
    assert copy.exported_from == encoder.fingerprint != copy.fingerprint
    check_encoder(copy)


@pytest.mark.parametrize(("name", "precision"), [*((name, "fp32") for name in MODELS), (MODELS[0], "int8")])
def test_a_bundle_has_the_exported_image_tower(name, precision, made, tmp_path):
    copy = opened(made(name)[1])
    detector = outword.fit(["cat", "dog"], encoder=copy, method="mcm").with_threshold(by_hand(0.5))
    about = outword.bundle(detector, tmp_path / "d.onnx", precision=precision, resize=False)
    session = onnxruntime.InferenceSession(tmp_path / "d.onnx")
    pixels = np.stack([copy.preprocess(photo) for photo in photos()])
    score, shares = session.run(["score", "shares"], {"pixels": pixels})
    wanted = detector.scorer.score(copy.encode_pixels(pixels))
    np.testing.assert_allclose(score, wanted, atol=1e-4 if precision == "fp32" else 0.01)
    assert about["side"] == str(copy.preprocess.side) and shares.shape == (5, 2)
    assert {one.version for one in onnx.load(tmp_path / "d.onnx").opset_import if not one.domain} == {17}


@pytest.mark.parametrize(("name", "precision"), [*((name, "int8") for name in MODELS), (MODELS[0], "fp16")])
def test_smaller_is_near(name, precision, made):
    encoder, folder = made(name, precision)
    copy = opened(folder)
    for mine, theirs in (
        (copy.encode_images(photos()), encoder.encode_images(photos())),
        (copy.encode_texts(TEXTS), encoder.encode_texts(TEXTS)),
    ):
        assert (mine * theirs).sum(axis=1).min() > (0.99999 if precision == "fp16" else 0.995)
    check_encoder(copy)


@pytest.mark.parametrize("name", MODELS)
def test_int8_does_not_depend_on_the_batch(name, made):
    _, folder = made(name, "int8")
    copy = opened(folder)
    pixels = np.stack([copy.preprocess(photo) for photo in photos()])
    together = copy.encode_pixels(pixels)
    np.testing.assert_array_equal(np.concatenate([copy.encode_pixels(row[None]) for row in pixels]), together)
    alone = np.concatenate([copy.encode_texts([text]) for text in TEXTS])
    np.testing.assert_array_equal(alone, copy.encode_texts(TEXTS))


def test_the_card(made):
    encoder, folder = made("open_clip-vit", "int8")
    card = json.loads((folder / CARD).read_text())
    assert (card["schema"], card["precision"], card["forced"]) == (1, "int8", False)
    assert card["name"] == encoder.name
    assert card["text"] == {
        **{"tokenizer": "clip", "context": 77, "pad": 0, "end": 49407, "clean": "lower", "zero": None}
    }
    assert card["preprocess"]["side"] == 32
    for tower, count in (("image", 22), ("text", 46)):
        cosine = card["cosine"][tower]
        assert cosine["n"] == count
        assert 0.99 <= cosine["min"] <= cosine["mean"] < 1
    assert {name: (folder / name).stat().st_size for name in card["files"]} == {
        name: file["bytes"] for name, file in card["files"].items()
    }


def test_sizes(made):
    sizes = {p: (made("open_clip-vit", p)[1] / IMAGE).stat().st_size for p in ("fp32", "fp16", "int8")}
    assert sizes["int8"] < sizes["fp16"] < 0.6 * sizes["fp32"]


def test_the_same_model_gives_the_same_files(made, tmp_path):
    encoder, folder = made("clip", "int8")
    card = export(encoder, tmp_path / "again", precision="int8")
    assert card == json.loads((folder / CARD).read_text())


def test_it_runs_without_torch(made):
    encoder, folder = made("open_clip-vit")
    program = f"""
import sys
for name in ("torch", "open_clip", "transformers", "tokenizers", "onnx", "regex", "ftfy"):
    sys.modules[name] = None
from outword.encoders import get_encoder
from pathlib import Path
from outword.encoders.onnx.encoder import OnnxEncoder
vectors = OnnxEncoder(Path({str(folder)!r}), name="x").encode_texts(["the nice cat"])
print(*vectors[0])
"""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    np.testing.assert_allclose(np.array(out.split(), float), encoder.encode_texts(["the nice cat"])[0], atol=2e-6)


def test_a_cut_is_said_in_the_same_words(made):
    encoder, folder = made("clip")
    said = []
    for one in (encoder, opened(folder)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            one.encode_texts(["a cat", LONG])
        said += [str(warning.message).replace(one.name, "X") for warning in caught]
    assert said[0] == said[1]
    assert said[0].startswith("1 of 2 texts are longer than the 77 tokens that X reads and were cut")


def test_far_from_the_original_is_refused_unless_forced(made, tmp_path, monkeypatch):
    encoder, _ = made("open_clip-vit", "int8")
    monkeypatch.setattr(exporting, "LEAST", 0.99999)
    with pytest.raises(OutwordError, match=r"in int8 the text tower comes out with a cosine of 0.99\d\d .*--force"):
        export(encoder, tmp_path / "far", precision="int8")
    assert not list(tmp_path.iterdir())
    assert export(encoder, tmp_path / "far", precision="int8", force=True)["forced"]
    assert json.loads((tmp_path / "far" / CARD).read_text())["forced"]


def test_nothing_but_an_earlier_export_is_replaced(made, tmp_path):
    encoder, folder = made("open_clip-vit")
    shutil.copytree(folder, tmp_path / "earlier")
    (tmp_path / "earlier" / TEXT).write_bytes(b"")
    export(encoder, tmp_path / "earlier")
    assert opened(tmp_path / "earlier").fingerprint == opened(folder).fingerprint
    for name, content in (("notes.txt", "mine"), (CARD, "{}")):
        theirs = tmp_path / name.partition(".")[0]
        theirs.mkdir()
        (theirs / name).write_text(content)
        with pytest.raises(ArtifactError, match="exists and is not an exported encoder"):
            export(encoder, theirs)
        assert (theirs / name).read_text() == content
    with pytest.raises(ArtifactError, match="is not a folder"):
        export(encoder, tmp_path / "no" / "such")


def test_weights_too_large_for_one_file(made, tmp_path, monkeypatch):
    encoder, folder = made("open_clip-vit", "int8")
    monkeypatch.setattr(graph, "LIMIT", 10_000)
    card = export(encoder, tmp_path / "large", precision="int8")
    assert set(card["files"]) == NAMES - {CARD}
    np.testing.assert_array_equal(opened(tmp_path / "large").encode_texts(TEXTS), opened(folder).encode_texts(TEXTS))
    (tmp_path / "large" / f"{TEXT}.data").write_bytes(b"")
    with pytest.raises(ArtifactError, match=r"text.onnx.data has changed since it was exported"):
        opened(tmp_path / "large")


def _put(**values):
    return lambda card: {**card, **values}


def _into(key, **values):
    return lambda card: {**card, key: {**card[key], **values}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda card: [card], "cannot be read"),
        (lambda card: {k: v for k, v in card.items() if k != "schema"}, "cannot be read: KeyError"),
        (_put(schema=2), "has schema 2, newer than 1. hint: upgrade"),
        (_put(schema="1"), "schema is '1'"),
        (lambda card: {k: v for k, v in card.items() if k != "dim"}, "it has no dim"),
        (_put(dim=True), "dim is True"),
        (_put(dim=0), "must be above 0"),
        (_put(temperature=-1.0), "must be above 0"),
        (_put(temperature=float("nan")), "temperature is nan"),
        (_put(preprocess=None), "preprocess is None"),
        (_into("preprocess", side=10**9), "out of range"),
        (_into("preprocess", short=3), "preprocessing is unknown"),
        (_into("preprocess", mean=[0, 0]), "must be three numbers"),
        (_into("preprocess", mean=[0, 0, "x"]), r"mean\[2\] is"),
        (_into("preprocess", mode="x"), "unknown entry"),
        (_into("preprocess", interpolation="bilinear"), "has changed since"),
        (_into("text", context="77"), "context is '77'"),
        (_into("text", tokenizer="spm"), "tokenizer is unknown"),
        (_into("text", clean="x"), "tokenizer is unknown"),
        (_into("files", **{"../x": {"sha256": "", "bytes": 1}}), r"files are \.\./x"),
        (_into("files", **{IMAGE: "abc"}), "is .abc."),
        (_put(files={}), "files are"),
    ],
)
def test_damaged_cards(change, message, made, tmp_path):
    _, folder = made("open_clip-vit")
    card = json.loads((folder / CARD).read_text())
    for name in card["files"]:
        (tmp_path / name).symlink_to(folder / name)
    (tmp_path / CARD).write_text(json.dumps(change(card)))
    with pytest.raises(ArtifactError, match=message) as caught:
        opened(tmp_path)
    assert caught.value.hint
    assert "\n" not in str(caught.value)


def test_damaged_files(made, tmp_path):
    _, folder = made("open_clip-vit")
    with pytest.raises(ArtifactError, match="is not an exported encoder"):
        opened(tmp_path)
    shutil.copytree(folder, tmp_path / "copy")
    path = tmp_path / "copy" / IMAGE
    content = bytearray(path.read_bytes())
    path.write_bytes(content[:-1])
    with pytest.raises(ArtifactError, match=r"image.onnx has changed since it was exported"):
        opened(tmp_path / "copy")
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match=r"image.onnx has changed since it was exported"):
        opened(tmp_path / "copy").encode_images(photos(1))
    path.unlink()
    with pytest.raises(ArtifactError, match=r"has no image.onnx"):
        opened(tmp_path / "copy")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (IMAGE, b"no model", "cannot be loaded"),
        (IMAGE, None, r"turns \[None\] into \[24\], the card says \[32, 32, 3\]"),
        (TOKENIZER, b"{}", "cannot be read: KeyError"),
        (TOKENIZER, b"\xff", "cannot be read"),
    ],
)
def test_files_that_are_something_else(file, content, message, made, tmp_path):
    """The sums are right; what they are of is not."""
    _, folder = made("open_clip-vit")
    shutil.copytree(folder, tmp_path / "copy")
    (tmp_path / "copy" / file).write_bytes((folder / TEXT).read_bytes() if content is None else content)
    card = json.loads((folder / CARD).read_text())
    path = tmp_path / "copy" / file
    card["files"][file] = {"sha256": exporting.sha256_file(path), "bytes": path.stat().st_size}
    card["fingerprint"] = fingerprint(card)
    (tmp_path / "copy" / CARD).write_text(json.dumps(card))
    copy = opened(tmp_path / "copy")
    with pytest.raises(ArtifactError, match=message) as caught:
        copy.encode_texts(TEXTS) if file == TOKENIZER else copy.encode_images(photos(1))
    assert "\n" not in str(caught.value)


def test_options_that_do_not_fit(made):
    encoder, folder = made("open_clip-vit", "int8")
    assert opened(folder, device="cpu", precision="int8", batch_size=2).batch_size == 2
    for wrong, message in (
        ({"device": "cuda"}, "runs on cpu or openvino, got 'cuda'"),
        ({"precision": "fp16"}, "was exported in int8, got precision 'fp16'"),
        ({"precision": "bf16"}, "was exported in int8"),
    ):
        with pytest.raises(ParameterError, match=message):
            opened(folder, **wrong)
    with pytest.raises(ParameterError, match="at least 1, got 0"):
        get_encoder(f"onnx:{folder}", batch_size=0)
    with pytest.raises(ParameterError, match="fp32, fp16 or int8, got 'int4'"):
        export(encoder, folder, precision="int4")


def test_other_tokenizers_need_a_library(made, monkeypatch):
    _, folder = made("siglip")
    copy = opened(folder)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtraError, match=r"needs tokenizers.*\[onnx\]"):
        copy.encode_texts(["a cat"])


def test_a_tokenizer_that_cannot_be_copied(made, tmp_path):
    encoder, _ = made("siglip")
    with pytest.raises(OutwordError, match=r"a object cannot be exported: it has no tokenizer\.json"):
        exporting._write_tokenizer(replace(encoder.model, tokenizer=object()), tmp_path / TOKENIZER)
    other = word_tokenizer()
    other.backend_tokenizer.add_tokens(["tripod"])
    with pytest.raises(OutwordError, match="its tokens for 'tripod' are"):
        exporting._write_tokenizer(replace(encoder.model, tokenizer=other), tmp_path / TOKENIZER)


def test_a_model_that_torch_cannot_export(made, tmp_path):
    encoder, _ = made("open_clip-vit")

    def stubborn(pixels):
        return encoder.model.image(pixels) if pixels.sum().item() > 0 else pixels[:, 0, 0, :24]

    tower = exporting._Tower(encoder.model, stubborn, "x", ["n", 3, 32, 32], torch.zeros(2, 3, 32, 32))
    with pytest.raises(OutwordError, match="torch cannot export this model"):
        _original_trace(tower)


_original_trace = exporting._traced


def test_openvino(made):
    pytest.importorskip("openvino")
    _, folder = made("open_clip-vit")
    usual, other = opened(folder), opened(folder, device="openvino")
    np.testing.assert_allclose(other.encode_images(photos()), usual.encode_images(photos()), atol=2e-6)
    np.testing.assert_allclose(other.encode_texts(TEXTS), usual.encode_texts(TEXTS), atol=2e-6)
    assert other.fingerprint == usual.fingerprint
    check_encoder(other)
    quick = opened(folder, device="openvino", precision="bf16")
    assert (quick.encode_texts(TEXTS) * usual.encode_texts(TEXTS)).sum(axis=1).min() > 0.99


def test_openvino_is_an_extra(made, monkeypatch):
    _, folder = made("open_clip-vit")
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(MissingExtraError, match=r"needs openvino.*\[openvino\]"):
        opened(folder, device="openvino").encode_texts(["a cat"])


def _model(node, weights, x):
    ends = [helper.make_tensor_value_info(name, 1, ["n", "k"]) for name in ("x", "y")]
    initializers = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    made = helper.make_graph([node], "tower", ends[:1], ends[1:], initializers)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    return model, lambda m: onnxruntime.InferenceSession(m.SerializeToString()).run(None, {"x": x})[0]


def test_products_in_integers_by_hand():
    """Rows and columns that integers hold exactly come out exactly; a row of one number and a column of zeros too."""
    W = np.zeros((512, 3), np.float32)
    W[:, 0], W[0, 1] = np.arange(512) % 127 - 63, 0.5
    x = np.zeros((3, 512), np.float32)
    x[0, :256], x[1] = np.arange(256), -7.0
    x[2, 0], x[2, 1] = 255e-6, -0.0
    model, run = _model(helper.make_node("MatMul", ["x", "W"], ["y"]), {"W": W}, x)
    np.testing.assert_allclose(run(graph.quantize(model)), x @ W, rtol=1e-5, atol=1e-9)


def test_products_in_integers():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 200)).astype(np.float32) * np.geomspace(1e-3, 1e3, 40)[:, None].astype(np.float32)
    W, bias = rng.standard_normal((64, 200)).astype(np.float32), rng.standard_normal(64).astype(np.float32)
    node = helper.make_node("Gemm", ["x", "W", "bias"], ["y"], transB=1)
    model, run = _model(node, {"W": W, "bias": bias}, x)
    small = graph.quantize(model)
    y, exact = run(small) - bias, x @ W.T
    relative = np.linalg.norm(y - exact, axis=1) / np.linalg.norm(exact, axis=1)
    assert 0.005 < relative.mean() < 0.02  # the rows differ a millionfold in size, and each has its own scale
    assert relative.max() < 0.03
    stored = {weight.name: numpy_helper.to_array(weight) for weight in small.graph.initializer}
    V = stored["y.V"]
    assert V.dtype == np.int8
    assert np.abs(V).max() == graph.WEIGHT
    assert 2 * 255 * graph.WEIGHT < 2**15
    _, run = _model(node, {"W": W, "bias": bias}, x[7:8])
    np.testing.assert_array_equal(run(small)[0] - bias, y[7])


def test_halves_leave_what_does_not_fit():
    values = np.ones((64, 64), np.float32)
    values[0, 0] = 1e6
    model, _ = _model(helper.make_node("MatMul", ["x", "W"], ["y"]), {"W": values}, values)
    kinds = {weight.data_type for weight in graph.halve(model).graph.initializer}
    assert kinds == {onnx.TensorProto.FLOAT}


def test_the_verb(made, tmp_path):
    encoder, folder = made("siglip", "int8")
    result = CliRunner().invoke(main, ["export", encoder.name, "-o", str(tmp_path / "x"), "--precision", "int8"])
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{tmp_path / 'x'}\n"
    assert "image: cosine to torch 0.9" in result.stderr
    assert (tmp_path / "x" / CARD).read_text() == (folder / CARD).read_text()


def test_the_verb_prints_the_card(made, tmp_path, monkeypatch):
    encoder, _ = made("open_clip-vit")
    asked = {}
    monkeypatch.setattr("outword.functions.get_encoder", lambda name, **options: asked.update(options) or encoder)
    call = ["export", encoder.name, "-o", str(tmp_path / "x"), "--json", "--resize", "bilinear"]
    result = CliRunner().invoke(main, call)
    assert json.loads(result.stdout) == json.loads((tmp_path / "x" / CARD).read_text())
    assert asked == {"resize": "bilinear", "device": "cpu", "precision": "fp32"}


@pytest.mark.parametrize("name", ["mini", "onnx:somewhere"])
def test_the_verb_wants_a_model_of_torch(name, tmp_path):
    result = CliRunner().invoke(main, ["export", name, "-o", str(tmp_path / "x")])
    assert result.exit_code == 2
    assert "is used as it is" in result.stderr


def test_from_python_an_encoder_is_exported_as_by_the_verb(made, tmp_path):
    encoder, folder = made("open_clip-vit")
    said = []
    card = outword.export(encoder, tmp_path / "x", say=said.append)
    assert (card["fingerprint"], said) == (
        json.loads((folder / CARD).read_text())["fingerprint"],
        ["writing image.onnx", "writing text.onnx", "comparing with torch"],
    )
    with pytest.raises(ParameterError, match="mini is used as it is"):
        outword.export(outword.encoders.get_encoder("mini"), tmp_path / "y")
    assert not (tmp_path / "y").exists()


def test_by_name_an_export_stands_for_its_original(made, tmp_path, words_file):
    encoder, folder = made("clip", "int8")
    copy = get_encoder(f"onnx:{folder}", batch_size=3)
    assert (copy.name, copy.batch_size) == (f"onnx:{folder}", 3)
    np.testing.assert_array_equal(copy.encode_texts(TEXTS), opened(folder).encode_texts(TEXTS))
    options = {"corpus": words_file, "method": "debiased", "n_groups": 3}
    original = outword.fit(["cat", "dog"], encoder=encoder, **options)
    original.save(tmp_path / "pets.outword")
    moved = outword.load(tmp_path / "pets.outword", encoder=f"onnx:{folder}")
    np.testing.assert_allclose(moved.score(photos()), original.score(photos()), rtol=0.05)
    outword.fit(["cat", "dog"], encoder=f"onnx:{folder}", **options).save(tmp_path / "int8.outword")
    other = outword.load(tmp_path / "int8.outword", encoder=encoder.name)
    with pytest.raises(ArtifactError, match="is another one"):
        other.score(photos())


def test_a_store_of_an_export_stands_for_one_of_the_original(made, tmp_path, words_file):
    encoder, folder = made("clip", "int8")
    original = outword.fit(["cat", "dog"], encoder=encoder, corpus=words_file, method="debiased", n_groups=3)
    original.save(tmp_path / "pets.outword")
    store = tmp_path / "s.store"
    photo = tmp_path / "a.png"
    photos(1)[0].save(photo)

    def run(*args):
        return CliRunner().invoke(main, [str(arg) for arg in args])

    assert run("embed", photo, "-o", store, "--encoder", f"onnx:{folder}").exit_code == 0
    refused = run("score", tmp_path / "pets.outword", store)
    assert refused.exit_code == 2
    assert "has no embeddings of" in refused.stderr
    done = run("score", tmp_path / "pets.outword", store, "--encoder", f"onnx:{folder}")
    assert done.exit_code == 0, done.stderr
    again = run("score", tmp_path / "pets.outword", photo, "--encoder", f"onnx:{folder}")
    assert done.stdout == again.stdout


def test_what_is_wrong_with_an_encoder_is_said_before_any_row(made, tmp_path, words_file):
    encoder, _ = made("clip")
    outword.fit(["cat", "dog"], encoder=encoder, corpus=words_file, method="debiased", n_groups=3).save(
        tmp_path / "pets.outword"
    )
    done = CliRunner().invoke(main, ["score", str(tmp_path / "pets.outword"), str(tmp_path), "--device", "cuda:77"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "cannot be used" in done.stderr


def test_an_export_keeps_its_resize(made):
    _, folder = made("clip")
    assert get_encoder(f"onnx:{folder}", resize="bicubic").fingerprint == get_encoder(f"onnx:{folder}").fingerprint
    with pytest.raises(ParameterError, match="exported with another resize than bilinear"):
        get_encoder(f"onnx:{folder}", resize="bilinear")
