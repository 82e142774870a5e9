"""Learning on a GPU: as on the CPU up to rounding, the same bits each time, and in bfloat16. Needs CUDA."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.numpy import load_file

from outword.detectors import DETECTORS
from outword.encoders import get_encoder
from outword.vectors.id_images import IdImages
from outword_lab.encoders.world import DATA
from outword_lab.learning import names as in_names
from outword_lab.learning.no_tower import Course, train_no
from outword_lab.learning.prompts import Task, learn

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
LABELS = ["hammer", "saw", "cat", "tape measure"]


def learned(method, device, precision, **params):
    encoder = get_encoder(f"hf:{DATA / 's'}", device=device, precision=precision)
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((16, encoder.dim)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    photos = IdImages(vectors, np.arange(16) % 4, dict.fromkeys(LABELS, 4), [])
    words = ["apple", "car", "sailboat"] if method == "lapt" else []
    kind = DETECTORS[method](epochs=3, context=3, batch=8, **params)
    return learn(kind, encoder, Task([[label] for label in LABELS], words, [photos])).contexts


@pytest.mark.parametrize("method", ["coop", "fa", "lsn", "negprompt", "lapt"])
def test_as_on_the_cpu_and_the_same_each_time(method, monkeypatch):
    on_cpu, on_gpu = (learned(method, device, "fp32") for device in ("cpu", "cuda"))
    again = learned(method, "cuda", "fp32")
    for name, context in on_cpu.items():
        np.testing.assert_allclose(on_gpu[name], context, atol=1e-4)
        np.testing.assert_array_equal(again[name], on_gpu[name])
    half = learned(method, "cuda", "fp16")  # which is bfloat16 while it learns
    for name, context in on_cpu.items():
        np.testing.assert_allclose(half[name], context, atol=0.02)
    monkeypatch.setattr(in_names.Names, "at_once", False)  # without a graph
    for name, context in learned(method, "cuda", "fp32").items():
        np.testing.assert_allclose(context, on_gpu[name], atol=1e-5)


def test_a_tower_that_says_no_is_trained_as_on_the_cpu(tmp_path):
    for place in range(4):
        Image.new("RGB", (64, 64), (60 * place, 0, 0)).save(tmp_path / f"{place}.png")
    pairs = [{"image": f"{place}.png", "text": f"a photo of a {label}"} for place, label in enumerate(LABELS)]
    (tmp_path / "captions.jsonl").write_text("\n".join(map(json.dumps, pairs)))
    found = {}
    for device in ("cpu", "cuda"):
        encoder = get_encoder(f"hf:{DATA / 's'}", device=device, precision="fp32")
        train_no(tmp_path / "captions.jsonl", encoder, tmp_path / f"{device}.safetensors", Course(2, 4, 1e-4, 0))
        found[device] = load_file(tmp_path / f"{device}.safetensors")
    for name, weight in found["cpu"].items():
        np.testing.assert_allclose(found["cuda"][name], weight, atol=1e-3)
