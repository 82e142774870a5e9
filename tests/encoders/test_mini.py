"""The embedded encoders: shapes, independence of batch and order, coverage, and that they need no torch."""

import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import outword
from outword.base.files import sha256_bytes, sha256_file
from outword.encoders import get_encoder, ort
from outword.encoders.mini import encoder
from outword.encoders.mini.encoder import DATA, PREPROCESSING, TEXT_BATCH, Mini
from outword.encoders.names import parse
from outword.encoders.texts import alike
from outword.encoders.torch.models import files_of
from outword.testing import check_encoder

WORDS = [
    "tabby cat",
    "golden retriever",
    "espresso",
    "space shuttle",
    "a rather long label about nothing",
    "",
    "猫",
    "x" * 400,
]
TEXTS = [f"a photo of a {word}" for word in WORDS]


@pytest.fixture(scope="module", params=["mini"])
def mini(request):
    return get_encoder(request.param)


@pytest.fixture(scope="module")
def pixels(mini):
    rng = np.random.default_rng(0)
    sizes = [(300, 200), (64, 64), (1, 3000), (17, 400), (500, 375)]
    return np.stack(
        [mini.preprocess(Image.fromarray(rng.integers(0, 256, (h, w, 3), dtype=np.uint8))) for h, w in sizes]
    )


def test_vectors_are_unit_rows(mini, pixels):
    for vectors, n in ((mini.encode_pixels(pixels), len(pixels)), (mini.encode_texts(TEXTS), len(TEXTS))):
        assert vectors.shape == (n, mini.dim)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_nothing_in_nothing_out(mini):
    assert mini.encode_texts([]).shape == (0, mini.dim)
    assert mini.encode_images([]).shape == (0, mini.dim)


def test_texts_lie_in_the_basis_and_images_keep_the_rest(mini, pixels):
    assert (mini.encode_texts(TEXTS)[:, -1] == 0).all()
    assert (mini.encode_pixels(pixels)[:, -1] >= 0).all()


def test_images_do_not_feel_their_batch(mini, pixels):
    whole = mini.encode_pixels(pixels)
    single = np.concatenate([mini.encode_pixels(p[None]) for p in pixels])
    backwards = mini.encode_pixels(pixels[::-1])[::-1]
    np.testing.assert_array_equal(single, whole)
    np.testing.assert_array_equal(backwards, whole)


def test_texts_do_not_feel_their_batch(mini):
    whole = mini.encode_texts(TEXTS * 20)
    single = np.concatenate([mini.encode_texts([text]) for text in TEXTS])
    np.testing.assert_array_equal(np.tile(single, (20, 1)), whole)
    np.testing.assert_array_equal(mini.encode_texts(TEXTS[::-1])[::-1], single)


def test_batches_hold_texts_of_one_length():
    lengths = np.array([3, 5, 3, 4] + [3] * 100)
    rows = list(alike(lengths, TEXT_BATCH))
    assert sorted(i for r in rows for i in r) == list(range(len(lengths)))
    assert all(len(set(lengths[r])) == 1 and len(r) <= 64 for r in rows)


def test_extreme_shapes_become_a_square(mini):
    for size in ((1, 1), (1, 30000), (30000, 1), (2, 3)):
        assert mini.preprocess(Image.new("RGB", size, "red")).shape == (260, 260, 3)


def test_a_long_text_is_cut(mini):
    short, long = (mini.encode_texts(["cat " * n]) for n in (126, 500))
    np.testing.assert_allclose(short, long, atol=1e-5)


@pytest.mark.parametrize(
    ("label", "flag"),
    [
        ("tabby cat", "known"),
        ("Golden_Retriever", "known"),
        ("golden retrievers", "known"),  # plural
        ("airliner", "known"),
        ("T-shirt", "known"),  # a synonym
        ("tee shirt", "known"),
        ("dog", "known"),  # a parent
        ("knives", "known"),
        ("fungi", "unknown"),  # a kingdom of its own in WordNet
        ("hovercraft", "through craft"),
        ("scalpel", "through knife"),
        ("trout", "through salmonid"),  # of two senses that are equally frequent the better known one
        ("bright red sports car", "head noun only"),
        ("glurb scalpel", "head noun only"),
        ("entity", "unknown"),  # everything is one
        ("person", "unknown"),  # three classes among thousands of kinds
        ("teacher", "unknown"),
        ("freedom", "unknown"),
        ("glurb", "unknown"),
        ("red glurb", "unknown"),
        ("", "unknown"),
        ("!?", "unknown"),
        ("猫", "unknown"),
    ],
)
def test_coverage(mini, label, flag):
    [found] = mini.coverage([label])
    assert (found.label, found.flag) == (label, flag)


def test_names_and_synonyms_are_near_and_others_are_not(mini):
    texts = mini.encode_texts([f"a photo of a {w}" for w in ("tabby cat", "tabby", "canine", "dog", "airplane")])
    cosine = texts @ texts.T
    assert cosine[0, 1] > 0.8
    assert cosine[2, 3] > cosine[2, 4] + 0.3


def test_demo_photos_find_their_names(mini):
    names = {
        "cat": "tabby cat",
        "coffee": "espresso",
        "tripod": "tripod",
        "helmet": "crash helmet",
        "clock": "analog clock",
    }
    photos = Path(str(files("outword"))) / "demo" / "photos"
    images = mini.encode_images([photos / f"{stem}.jpg" for stem in names])
    texts = mini.encode_texts([f"a photo of a {name}" for name in names.values()])
    assert (images @ texts.T).argmax(axis=1).tolist() == list(range(len(names)))


@pytest.mark.parametrize(("name", "folder"), [("mini", DATA)])
def test_fingerprint_is_that_of_the_files(name, folder):
    card = json.loads((folder / "card.json").read_text())
    paths = {file: (folder if file == "image.onnx" else DATA) / file for file in card["files"]}
    assert card["name"] == name
    assert card["files"] == {file: sha256_file(path) for file, path in paths.items()}
    assert card["preprocessing"] == PREPROCESSING
    parts = {"files": card["files"], "preprocessing": card["preprocessing"]}
    assert card["fingerprint"] == sha256_bytes(json.dumps(parts, sort_keys=True).encode())
    assert sum(path.stat().st_size for path in files_of(parse(name))) < 36e6


def test_integers_are_the_same_on_processors_that_add_products_in_16_bits():
    onnx = pytest.importorskip("onnx")
    graph = onnx.load(DATA / "image.onnx").graph
    stored = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    places = {"QLinearConv": 3, "MatMulIntegerToFloat": 1}
    weights = [stored[node.input[places[node.op_type]]] for node in graph.node if node.op_type in places]
    assert len(weights) > 60
    for q in weights:
        rows = q.T if q.ndim == 2 else q.reshape(len(q), -1)
        if q.ndim == 4 and q.shape[1] == 1:  # depthwise: not added in pairs
            continue
        pairs = rows.astype(int).reshape(len(rows), -1, 2)
        assert (255 * np.maximum(pairs, 0).sum(axis=2)).max() <= 32767
        assert (255 * np.minimum(pairs, 0).sum(axis=2)).min() >= -32768


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["mini"])
def test_a_detector_names_its_own(tmp_path, name):
    outword.fit(["tabby cat", "espresso"], encoder=name).save(tmp_path / "new.outword")
    found = outword.load(tmp_path / "new.outword")
    assert (found.card.encoder.name, found.encoder.name) == (name, name)


def test_towers_are_loaded_when_needed_and_torch_never():
    code = """
import sys
from outword.encoders import get_encoder
mini = get_encoder("mini")
mini.coverage(["cat"])
assert "onnxruntime" not in sys.modules
mini.encode_texts(["a photo of a cat"])
assert "_image_tower" not in vars(mini) and "_text_tower" in vars(mini)
assert not {"torch", "tokenizers", "transformers"} & set(sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("asked", "given"),
    [("1", 1), ("2, 1", 2), ("64", 4), ("0", 4), ("all", 4), ("", 4)],  # of 4 processors
)
def test_a_session_keeps_to_its_share_of_the_processors(monkeypatch, asked, given):
    monkeypatch.setattr(ort, "usable_cpus", lambda: 4)
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert ort.session(DATA / "matmul.onnx").get_session_options().intra_op_num_threads == given


def test_the_card_is_what_the_encoder_says():
    fresh = Mini()
    assert (fresh.name, fresh.dim, fresh.prompts) == ("mini", 512, "mini")
    assert 0 < fresh.temperature < 0.1
    assert fresh.fingerprint == get_encoder("mini").fingerprint


def test_public_checks(mini):
    check_encoder(mini)


def test_a_thread_an_image_gives_the_same_bits_as_all_threads_for_one(monkeypatch):
    pixels = np.random.default_rng(0).integers(256, size=(7, 260, 260, 3), dtype=np.uint8)
    monkeypatch.setattr(ort, "threads", lambda: 3)
    mini, made = Mini(), []
    monkeypatch.setattr(encoder, "session", lambda path, n=None: made.append(n) or ort.session(path, n))
    many = mini.encode_pixels(pixels)
    one_by_one = np.concatenate([mini.encode_pixels(pixels[n : n + 1]) for n in range(7)])
    np.testing.assert_array_equal(many, one_by_one)
    assert sorted(n for n in made if n) == [1, 3]  # a session each, made when it is needed
