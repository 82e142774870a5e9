"""The encoder `clipn:FILE`: a checkpoint of the published layout, and a tower that stands beside an encoder."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import outword
from conftest import call
from helpers import clipn_file
from helpers.tiny import TEXTS, photos, pixels_of, unit
from outword.encoders import get_encoder
from outword.errors import InputError
from outword.testing import check_encoder


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The path of a checkpoint, and the models that it was made of."""
    made = clipn_file.models()
    return clipn_file.write(tmp_path_factory.mktemp("clipn") / "epoch_10.pt", clipn_file.state(*made)), made


@pytest.fixture
def weights(published):
    return clipn_file.state(*published[1])


def load(path):
    return get_encoder(f"clipn:{path}", device="cpu")


def beside(path, change=None, **facts):
    return clipn_file.beside(get_encoder("world-s"), path, change, **facts)


def test_a_checkpoint_is_the_librarys_own_model(published):
    path, (model, other, prompts) = published
    encoder = load(path)
    images = photos()
    with torch.no_grad():
        expected = unit(model.encode_image(pixels_of(encoder.inner, images)))
        texts = unit(model.encode_text(torch.from_numpy(encoder.inner.model.tokenize(TEXTS))))
    np.testing.assert_allclose(encoder.encode_images(images), expected, atol=1e-5)
    np.testing.assert_allclose(encoder.encode_texts(TEXTS), texts, atol=1e-5)
    np.testing.assert_allclose(encoder.encode_no_texts(TEXTS), clipn_file.say_no(other, prompts, TEXTS), atol=1e-5)
    assert encoder.temperature == pytest.approx(float(np.exp(-model.logit_scale.item())))
    assert (encoder.licence, encoder.offers) == ("not stated", ("patches", "pixels", "no"))


def test_a_checkpoint_is_an_ordinary_encoder(published):
    encoder = load(published[0])
    check_encoder(encoder)
    patches = encoder.encode_images(photos(2), patches=True)[1]
    assert patches.shape == (2, 16, encoder.dim)
    assert encoder.encode_no_texts([]).shape == (0, encoder.dim)
    alone = np.concatenate([encoder.encode_no_texts([text]) for text in TEXTS])
    np.testing.assert_allclose(alone, encoder.encode_no_texts(TEXTS), atol=2e-6)
    with pytest.raises(InputError, match="texts must be a list"):
        encoder.encode_no_texts("a cat")


def test_safetensors_give_the_same_vectors(published, weights, tmp_path):
    save_file({name: weight.contiguous() for name, weight in weights.items()}, tmp_path / "a.safetensors")
    one, other = load(published[0]), load(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(one.encode_no_texts(TEXTS), other.encode_no_texts(TEXTS))
    assert one.fingerprint != other.fingerprint  # another file


def test_labels_go_through_both_towers_alike(published, tmp_path):
    encoder = load(published[0])
    labels = {"cat": "", "crane": "a crane, the bird"}
    made = outword.fit(labels, encoder=encoder, method="clipn", prompts="a photo of a {}")
    expected = encoder.encode_no_texts(["a photo of a cat", "a crane, the bird"])
    np.testing.assert_allclose(made.scorer.negatives_[0], expected, atol=1e-6)
    made.save(tmp_path / "d.outword")
    again = outword.load(tmp_path / "d.outword")
    np.testing.assert_array_equal(again.score(photos()), made.score(photos()))


def test_an_encoder_that_cannot_say_no_is_told_so():
    with pytest.raises(InputError, match="clipn needs an encoder that can say no, clipn:FILE: mini cannot"):
        outword.fit(["cat", "dog"], method="clipn")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.pop("module.prompt_no"), "no prompt_no of shape"),
        (lambda w: w.pop("module.ln_final_no.bias"), "no ln_final_no.bias"),
        (lambda w: w.pop("module.ln_post.bias", None) or w.pop("module.visual.ln_post.bias"), "does not fit together"),
        (lambda w: w.pop("module.logit_scale"), "no logit_scale"),
        (lambda w: w.update({"module.prompt_no": torch.zeros(16, 20, 128)}), "prompt_no in .* has the shape"),
        (lambda w: w.update({"module.text_projection_no": torch.zeros(128, 5)}), "text_projection_no in .* has the sh"),
        (lambda w: w.update({"module.visual.positional_embedding": torch.zeros(16, 128)}), "15 patches"),
        (lambda w: w.update({"module.token_embedding.weight": torch.zeros(100, 128)}), "has 100 tokens"),
        (lambda w: w.update({"module.token_embedding.weight": torch.zeros(49408, 96)}), "64 numbers are a head"),
        (lambda w: w.update({"module.visual.conv1.weight": torch.zeros(128)}), "it is no ViT of CLIP"),
        (lambda w: [w.pop(key) for key in [*w] if "_no" in key], "no weights of a tower that says no"),
        (lambda w: w.pop("module.visual.conv1.weight"), "does not say which encoder"),
    ],
)
def test_what_is_wrong_with_a_checkpoint_is_one_line(weights, tmp_path, change, message):
    change(weights)
    with pytest.raises(InputError, match=message) as caught:
        load(clipn_file.write(tmp_path / "a.pt", weights))
    assert caught.value.hint
    assert "\n" not in caught.value.message


def test_files_that_are_no_weights(tmp_path):
    with pytest.raises(InputError, match="is not a file"):
        load(tmp_path / "absent.pt")
    for name in ("a.pt", "a.safetensors"):
        (tmp_path / name).write_bytes(b"nothing of the kind")
        with pytest.raises(InputError, match=r"cannot be read|more than weights"):
            load(tmp_path / name)


def test_a_tower_beside_an_encoder(tmp_path):
    encoder, world = load(beside(tmp_path / "a.safetensors")), get_encoder("world-s")
    texts = ["a photo of a dog.", "red hammer"]
    np.testing.assert_allclose(encoder.encode_no_texts(texts), world.encode_texts(texts), atol=2e-3)  # a copy as yet
    np.testing.assert_array_equal(encoder.encode_texts(texts), world.encode_texts(texts))
    np.testing.assert_array_equal(encoder.encode_images(photos()), world.encode_images(photos()))
    assert encoder.exported_from == world.fingerprint != encoder.fingerprint
    assert encoder.coverage(["cat", "xyz"]) == world.coverage(["cat", "xyz"])


@pytest.mark.parametrize(
    ("change", "facts", "message"),
    [
        (None, {"fingerprint": "0" * 64}, "was trained with another world-s"),
        (None, {"encoder": "world-m"}, "was trained with another world-m"),
        (None, {"encoder": "clipn:a.safetensors"}, "no encoder for it"),
        (None, {"options": {"device": "cpu"}}, "no encoder for it"),
        (None, {"options": 3}, "does not say which encoder"),
        (None, {"format": "outword no 99"}, "does not say which encoder"),
        (lambda w: w.pop("ln_final_no.weight"), {}, "no ln_final_no.weight"),
        (lambda w: w.update({"ln_final_no.more": torch.zeros(2)}), {}, "has ln_final_no.more, and the tower"),
        (lambda w: w.pop("prompt_no"), {}, "no prompt_no of shape"),
        (lambda w: w.update({"prompt_no": torch.zeros(16, 3, 4)}), {}, "prompt_no in .* has the shape"),
    ],
)
def test_what_is_wrong_with_a_tower_beside_an_encoder_is_one_line(tmp_path, change, facts, message):
    with pytest.raises(InputError, match=message):
        load(beside(tmp_path / "a.safetensors", change, **facts))


def test_verbs_that_look_after_files(tmp_path):
    path = beside(tmp_path / "a.safetensors")
    assert str(path) in call("pull", f"clipn:{path}").stdout
    told = call("export", f"clipn:{path}", "-o", tmp_path / "onnx", code=2).stderr
    assert "is used as it is" in told
    assert "clipn:NAME: a CLIP with a second text tower" in call("list", "encoders").stdout


def test_an_encoder_that_only_the_file_names_is_not_fetched(tmp_path):
    with pytest.raises(InputError, match="a file names it, not you"):
        load(beside(tmp_path / "a.safetensors", encoder="hf:someone/something"))
