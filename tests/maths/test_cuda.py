"""The torch encoder on a CUDA device; skipped where there is none. Needs transformers, and no network."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

from transformers import CLIPConfig, CLIPModel  # noqa: E402

from outword.detectors import ODIN, Debiased  # noqa: E402
from outword.encoders.preprocess import Preprocess  # noqa: E402
from outword.encoders.torch.towers import Towers  # noqa: E402
from outword.encoders.torch.transformers import from_parts  # noqa: E402
from outword.kernels import chosen, using  # noqa: E402
from outword.mining import Density  # noqa: E402


class Words:
    """A tokenizer of numbers: "7 8" becomes start, 7, 8, end."""

    pad_token_id, eos_token_id, model_max_length, model_input_names = 0, 49407, 77, ("input_ids",)

    def __call__(self, texts, **options):
        if isinstance(texts, str):
            return {"input_ids": [49406, *map(int, texts.split()), 49407]}
        ids = np.zeros((len(texts), 77), np.int64)
        for row, text in zip(ids, texts, strict=True):
            found = self(text)["input_ids"]
            row[: len(found)] = found
        return {"input_ids": ids}


def encoder(**options):
    torch.manual_seed(0)
    config = CLIPConfig(
        text_config={
            "hidden_size": 128,
            "intermediate_size": 512,
            "num_hidden_layers": 4,
            "num_attention_heads": 2,
            "eos_token_id": 49407,
        },
        vision_config={"hidden_size": 192, "intermediate_size": 768, "num_hidden_layers": 4, "num_attention_heads": 3},
        projection_dim=64,
    )
    model = from_parts(
        CLIPModel(config).eval(), Words(), Preprocess(224, 224, "bicubic", (0.5,) * 3, (0.25,) * 3), digest=""
    )
    return Towers(model, name="test", options={}, prompts="released", **options)


@pytest.fixture(scope="module")
def pixels():
    return np.random.default_rng(0).integers(256, size=(50, 224, 224, 3), dtype=np.uint8)


TEXTS = ["7 8", "9 10 11 12 13", "300", "7 8"] * 20


def test_cuda_in_half_precision_is_the_default():
    got = encoder()
    assert (got.device.type, got.precision) == ("cuda", "fp16")
    assert next(got.model.module.parameters()).dtype == torch.float16


@pytest.mark.parametrize("precision, atol", [("fp32", 1e-5), ("fp16", 1e-3)])
def test_results_do_not_depend_on_the_batch_and_are_those_of_the_cpu(precision, atol, pixels):
    whole = encoder(precision=precision, batch_size=50)
    vectors, texts = whole.encode_pixels(pixels), whole.encode_texts(TEXTS)
    for size in (1, 7):
        np.testing.assert_allclose(
            encoder(precision=precision, batch_size=size).encode_pixels(pixels), vectors, atol=atol
        )
    np.testing.assert_allclose(np.concatenate([whole.encode_texts([t]) for t in TEXTS[:4]]), texts[:4], atol=atol)
    cpu = encoder(device="cpu")
    np.testing.assert_allclose(cpu.encode_pixels(pixels), vectors, atol=2 * atol)
    np.testing.assert_allclose(cpu.encode_texts(TEXTS), texts, atol=2 * atol)


def test_many_batches_in_flight_do_not_mix(pixels):
    got = encoder(batch_size=3)
    many = np.concatenate([pixels] * 10)
    np.testing.assert_allclose(got.encode_pixels(many), np.concatenate([got.encode_pixels(pixels)] * 10), atol=1e-3)


def test_out_of_memory_halves_the_batch(pixels):
    got = encoder(batch_size=2000, precision="fp32")
    expected = got.encode_pixels(pixels)
    many = np.concatenate([pixels] * 40)
    torch.cuda.set_per_process_memory_fraction(2.0e9 / torch.cuda.mem_get_info()[1])
    try:
        vectors = got.encode_pixels(many)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert got.batch_size < 2000
    np.testing.assert_allclose(vectors, np.concatenate([expected] * 40), atol=1e-4)


def test_patches(pixels):
    vectors, patches = encoder().encode_patches(pixels[:5])
    assert patches.shape == (5, 49, 64)
    np.testing.assert_allclose(vectors, encoder().encode_pixels(pixels[:5]), atol=1e-3)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_the_step_of_odin_goes_uphill(precision, pixels):
    got, detector = encoder(precision=precision, batch_size=7), ODIN().fit(np.eye(64)[:10])
    before = detector.score(got.encode_pixels(pixels))
    after = detector.score(got.encode_perturbed(pixels, detector.gradient, 0.0014))
    assert (after > before).mean() > 0.9
    cpu = encoder(device="cpu").encode_perturbed(pixels, detector.gradient, 0.0014)
    np.testing.assert_allclose(after, detector.score(cpu), rtol=1e-4)


def test_scoring_and_mining_follow_the_encoder_to_the_device():
    vectors = encoder().encode_texts([str(number) for number in range(1, 301)])
    assert chosen() == ("triton", "float32")
    detector = Debiased(n_groups=5).fit(vectors[:100], vectors[100:])
    with using("numpy"):
        want, rep = detector.score(vectors), Density(alpha=10).rep(vectors)
    np.testing.assert_allclose(detector.score(vectors), want, atol=1e-5)
    np.testing.assert_allclose(Density(alpha=10).rep(vectors), rep, atol=1e-12)
