"""Published ONNX exports: every layout of a local hub, the way there, and what is refused."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from conftest import PHOTOS
from helpers.repositories import COMMIT, near, serving, write_repositories, write_siglip
from helpers.tiny import photos
from outword.base import hub_settings
from outword.encoders import download, get_encoder, present
from outword.encoders.onnx import layouts
from outword.encoders.onnx.outside import check_outside
from outword.errors import ArtifactError, InputError, ParameterError

CLIP = "onnx:Xenova/clip-vit-base-patch32"
TEXTS = ["the nice cat", "a photo of a dog", "X-ray, 3 of them"]
WITHOUT_TORCH = (
    "import sys\n"
    "for name in ('torch', 'open_clip', 'transformers', 'huggingface_hub', 'tokenizers', 'onnx'):\n"
    "    sys.modules[name] = None\n"
    "from outword.cli import main\n"
    "main()\n"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("repositories")
    write_repositories(root / "hub", root / "clip")
    write_siglip(root / "hub", root / "siglip")
    return root


@pytest.fixture
def hub(made, tmp_path, monkeypatch):
    """A local hub, and an empty cache."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    for name in ("HF_HUB_OFFLINE", "HF_HUB_CACHE", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    with serving(made / "hub") as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        fresh()
        yield server
    fresh()


def fresh():
    """Forget the encoders of this process."""
    from outword import encoders

    encoders._get.cache_clear()


def cached(tmp_path):
    return tmp_path / "hf" / "hub" / "models--Xenova--clip-vit-base-patch32"


@pytest.fixture(scope="module")
def original(made):
    encoder = get_encoder(f"hf:{made / 'clip'}", device="cpu")
    return encoder.encode_images(photos(4)), encoder.encode_texts(TEXTS)


# every layout


@pytest.mark.parametrize(
    "name",
    [f"{CLIP}@fp32", "onnx:immich-app/ViT-B-32__openai", "onnx:org/vision+org/text"],
)
def test_each_layout_gives_the_vectors_of_torch(hub, original, name):
    encoder = get_encoder(name)
    own = photos(4)
    if "immich" in name:  # its images are not cut out of larger ones
        pixels = np.stack([encoder.preprocess(image) for image in own])
        assert near(encoder.encode_pixels(pixels), get_encoder(f"{CLIP}@fp32").encode_pixels(pixels), 1 - 1e-5)
    else:
        assert near(encoder.encode_images(own), original[0], 1 - 1e-5)
    assert near(encoder.encode_texts(TEXTS), original[1], 1 - 1e-5)
    assert encoder.temperature == 0.01
    assert encoder.name == (name if "@" in name else f"{name}@fp32")


def test_a_folder_is_read_as_a_repository_is(hub, made, original):
    folder = made / "hub" / "Xenova" / "clip-vit-base-patch32"
    encoder = get_encoder(f"onnx:{folder}", precision="fp32")
    assert near(encoder.encode_texts(TEXTS), original[1], 1 - 1e-5)
    assert hub.asked == []
    assert get_encoder(CLIP, precision="fp32").fingerprint == encoder.fingerprint


def test_int8_is_the_default_and_no_vector_feels_another(hub, original):
    encoder = get_encoder(CLIP)
    assert encoder.name == f"{CLIP}@int8" and encoder.licence == "mit"
    together, alone = encoder.encode_texts(TEXTS), encoder.encode_texts(TEXTS[1:2])
    np.testing.assert_array_equal(together[1:2], alone)
    images = photos(4)
    np.testing.assert_array_equal(encoder.encode_images(images)[2:3], encoder.encode_images(images[2:3]))
    assert near(encoder.encode_images(images), original[0], 0.95)
    fetched = [path for path, *_ in hub.asked if path.endswith(".onnx")]
    assert [Path(path).name for path in fetched] == ["vision_model_quantized.onnx", "text_model_quantized.onnx"]


def test_siglip_needs_the_library_of_its_tokens_and_reads_whole_rows(hub, made, monkeypatch):
    reference = get_encoder(f"hf:{made / 'siglip'}", device="cpu")
    encoder = get_encoder("onnx:onnx-community/siglip2-base-patch16-224-ONNX")
    own = photos(4)
    assert near(encoder.encode_images(own), reference.encode_images(own), 1 - 1e-5)
    texts = ["nice cat", "dog"]
    assert near(encoder.encode_texts(texts), reference.encode_texts(texts), 1 - 1e-5)
    assert encoder.temperature == pytest.approx(1 / 112.67)
    fresh()
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match="needs tokenizers") as told:
        get_encoder("onnx:onnx-community/siglip2-base-patch16-224-ONNX").encode_texts(texts)
    assert "[onnx]" in told.value.hint or "onnx" in told.value.hint


# the way there


def test_what_is_in_the_cache_is_not_asked_for_again(hub, tmp_path, monkeypatch):
    get_encoder(CLIP)
    asked = len(hub.asked)
    assert {path.name for path in (cached(tmp_path) / "snapshots").iterdir()} == {COMMIT}
    fresh()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    get_encoder(CLIP).encode_texts(["a cat"])
    assert len(hub.asked) == asked
    with pytest.raises(InputError, match="HF_HUB_OFFLINE is set"):
        get_encoder("onnx:org/vision+org/text")


def test_the_hubs_own_tools_read_the_same_cache(hub, tmp_path):
    get_encoder(CLIP)
    code = (
        "from huggingface_hub import try_to_load_from_cache as get;"
        "print(get('Xenova/clip-vit-base-patch32', 'onnx/vision_model_quantized.onnx'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert COMMIT in done.stdout, done.stderr


def test_a_broken_connection_is_gone_on_with(hub):
    hub.fault, hub.cut_until = "cut", 8
    get_encoder(CLIP).encode_texts(["a cat"])
    ranges = [asked for _, asked, _ in hub.asked if asked]
    assert ranges and all(one.startswith("bytes=") and one != "bytes=0-" for one in ranges)


def test_what_a_killed_process_left_is_gone_on_with(hub, made, tmp_path):
    import hashlib

    source = made / "hub" / "Xenova" / "clip-vit-base-patch32" / "onnx" / "vision_model_quantized.onnx"
    data = source.read_bytes()
    blobs = cached(tmp_path) / "blobs"
    blobs.mkdir(parents=True)
    (blobs / f"{hashlib.sha256(data).hexdigest()}.incomplete").write_bytes(data[:1000])
    get_encoder(CLIP).encode_images(photos(1))
    assert "bytes=1000-" in [asked for _, asked, _ in hub.asked]
    assert not list(blobs.glob("*.incomplete"))


@pytest.mark.parametrize(
    "fault, said",
    [("other", "its hash is another one"), ("long", "more came than"), ("redirect", "asked by https")],
)
def test_a_hub_that_lies_is_refused_and_nothing_appears(hub, tmp_path, fault, said):
    hub.fault = fault
    with pytest.raises(InputError, match=said):
        get_encoder(CLIP)
    assert not list(cached(tmp_path).glob("snapshots/*/onnx/*"))
    assert present.here(present.KNOWN["clip-vit-b-32"]) is None
    hub.fault = ""
    get_encoder(CLIP)


def test_names_that_leave_the_folder_are_no_files(hub, tmp_path):
    listed = download.listing("Xenova/clip-vit-base-patch32", "")
    assert "tokenizer.json" in listed.files and not any(".." in name for name in listed.files)
    for name in ("../x", "a/../b", "/etc/passwd", "a//b", ".hidden", "c:\\x", ""):
        assert not download._is_plain(name)


def test_the_address_is_https_or_this_machine(hub, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://example.invalid")
    with pytest.raises(InputError, match="asked by https"):
        download.listing("Xenova/clip-vit-base-patch32", "")


def test_a_token_goes_to_the_hub(hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "secret")
    download.listing("Xenova/clip-vit-base-patch32", "")
    assert hub.asked[-1][2] == "Bearer secret"


def test_damage_in_the_cache_is_found(hub, tmp_path):
    get_encoder(CLIP)
    fresh()
    blob = (cached(tmp_path) / "snapshots" / COMMIT / "onnx" / "text_model_quantized.onnx").resolve()
    data = bytearray(blob.read_bytes())
    data[-5] ^= 1
    blob.write_bytes(data)
    with pytest.raises(InputError, match="is damaged"):
        get_encoder(CLIP).encode_texts(["a cat"])


def test_no_export_is_told_with_the_layouts(hub):
    with pytest.raises(InputError, match="has no ONNX export in a layout that is known"):
        get_encoder("onnx:org/text")
    with pytest.raises(InputError, match=r"cannot fetch the list of files of org/nothing .*404"):
        get_encoder("onnx:org/nothing")
    with pytest.raises(InputError, match="in fp16"):
        get_encoder(CLIP, precision="fp16")
    with pytest.raises(ParameterError, match="is in fp32, got precision int8"):
        get_encoder(f"{CLIP}@fp32", precision="int8")


# weights outside


@pytest.mark.parametrize("place", ["../weights.bin", "/etc/passwd", "sub/weights.bin", "missing.bin"])
def test_weights_outside_the_folder_are_refused(tmp_path, place):
    path = _with_weights_at(tmp_path, place)
    with pytest.raises(InputError, match="takes weights from"):
        check_outside(path)


def test_weights_beside_are_read(tmp_path):
    path = _with_weights_at(tmp_path, "tower.onnx_data")
    (tmp_path / "tower.onnx_data").write_bytes(bytes(16))
    check_outside(path)


@pytest.mark.parametrize("data", [b"", b"\xff" * 40, b"no onnx at all, but text"])
def test_what_is_no_onnx_is_refused(tmp_path, data):
    (tmp_path / "x.onnx").write_bytes(data)
    with pytest.raises(InputError, match="is no ONNX file"):
        check_outside(tmp_path / "x.onnx")


def _with_weights_at(folder, place):
    from onnx import StringStringEntryProto, TensorProto, helper

    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    weights.external_data.append(StringStringEntryProto(key="location", value=place))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", ends[:1], ends[1:], [weights])
    path = folder / "tower.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    return path


# short names


def test_a_short_name_means_torch_where_it_is_installed(monkeypatch):
    assert present.resolved("clip-vit-b-32") == "clip-vit-b-32"
    assert present.resolved("clip-vit-b-32", "int8") == CLIP
    monkeypatch.setitem(sys.modules, "torch", None)
    assert present.resolved("clip-vit-b-32") == CLIP
    assert present.resolved("mini") == "mini"


def test_a_detector_of_torch_is_not_read_by_an_export(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert present.for_torch("clip-vit-b-32") == "open_clip:ViT-B-32/openai"
    with pytest.raises(ImportError, match="needs torch"):
        get_encoder(present.for_torch("clip-vit-b-32"))


def test_best_is_the_best_that_is_here_and_fetches_nothing(hub):
    assert present.resolved("best") == "mini"
    get_encoder("onnx:onnx-community/siglip2-base-patch16-224-ONNX")
    get_encoder(CLIP)
    asked = len(hub.asked)
    assert present.best() == "onnx:onnx-community/siglip2-base-patch16-224-ONNX"
    shutil.rmtree(hub_settings.cache() / "models--onnx-community--siglip2-base-patch16-224-ONNX")
    assert present.best() == CLIP and get_encoder("best").name == f"{CLIP}@int8"
    assert len(hub.asked) == asked


def test_a_name_that_only_a_file_says_is_not_fetched(hub):
    with pytest.raises(InputError, match="a file names it, not you"):
        get_encoder(CLIP, download=False)
    assert hub.asked == []


def test_from_names_to_verdicts_without_torch(hub, tmp_path):
    """The first run of somebody who has the core install alone, and a second one offline."""
    env = {**os.environ, "OUTWORD_CACHE": str(tmp_path / "cache")}

    def run(*args, **more):
        command = [sys.executable, "-c", WITHOUT_TORCH, *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, env={**env, **more})

    score = ("score", "--labels", "cat, dog", PHOTOS / "cat.jpg", "--encoder", "clip-vit-b-32", "--format", "jsonl")
    done = run(*score)
    assert done.returncode == 0, done.stderr
    assert "fetching Xenova/clip-vit-base-patch32 from 127.0.0.1" in done.stderr
    assert "MB, licence mit" in done.stderr
    row = json.loads(done.stdout)
    assert row["verdict"] in ("in", "out"), row
    asked = len(hub.asked)
    again = run(*score, HF_HUB_OFFLINE="1")
    assert json.loads(again.stdout) == row and len(hub.asked) == asked
    pulled = run("pull", "clip-vit-b-32", "--json")
    assert {Path(one["path"]).name for one in json.loads(pulled.stdout)} >= {
        "vision_model_quantized.onnx", "text_model_quantized.onnx", "tokenizer.json", "preprocessor_config.json",
    }  # fmt: skip
    listed = {row["name"]: row for row in json.loads(run("list", "encoders", "--json").stdout)}
    assert listed["clip-vit-b-32"]["on this machine"] == "yes" and listed["clip-vit-l-14"]["on this machine"] == "no"
    saved = tmp_path / "d.outword"
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    assert run("fit", tmp_path / "labels.txt", "--encoder", "best", "-o", saved).returncode == 0
    assert json.loads((saved / "detector.json").read_text())["encoder"]["name"] == f"{CLIP}@int8"
    assert run("score", saved, PHOTOS / "cat.jpg").returncode == 0
    doctor = run("doctor", "--encoder", "clip-vit-b-32")
    assert doctor.returncode == 1 and "do not fit together" in doctor.stdout  # its weights are random


@pytest.mark.parametrize("label", ["qwertz", "receipt"])
def test_a_better_encoder_that_is_here_is_offered(hub, tmp_path, capsys, monkeypatch, label):
    from outword.cli import main

    monkeypatch.setenv("OUTWORD_CACHE", str(tmp_path / "cache"))
    fit = ["fit", f"cat, {label}", "-o", str(tmp_path / "x.outword")]
    main(fit, standalone_mode=False)
    assert "--encoder best" not in capsys.readouterr().err
    get_encoder(CLIP)
    main(fit, standalone_mode=False)
    told = capsys.readouterr().err
    assert "--encoder best" in told and f"it is on this machine: {CLIP}" in told


def test_layouts_know_their_precision():
    assert layouts.split("a/b@int8") == ("a/b", "int8")
    with pytest.raises(ArtifactError, match="there is no folder /no/such"):
        layouts.places("/no/such")
