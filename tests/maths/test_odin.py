"""ODIN: the score and its gradient, and the step of the pixels through an encoder of torch."""

import numpy as np
import pytest
import torch

from helpers import reference_id as reference
from helpers.tiny import clip_folder, open_clip_folder, photos, pixels_of
from outword.detectors import MSP, ODIN, Need
from outword.encoders import get_encoder
from outword.errors import ParameterError
from outword.maths.numerics import log_sum_exp, unit_rows
from outword.testing import planted_world

WORLD = planted_world(n_labels=5, n_wild=20, n_images=12, dim=8)


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    open_clip_folder("vit", root / "vit")
    open_clip_folder("resnet", root / "resnet")
    clip_folder(root / "clip")
    return {name: get_encoder(f"hf:{root / name}", batch_size=4) for name in ("vit", "resnet", "clip")}


@pytest.fixture(scope="module")
def detector():
    labels = np.random.default_rng(0).standard_normal((6, 24))
    return ODIN().fit(labels)


def pixels(encoder, count=10):
    return np.stack([encoder.preprocess(photo) for photo in photos(count)])


def log_score(detector, vectors):
    return np.log(detector.score(vectors.astype(np.float64)))


def test_by_hand():
    # logits (.6, .8) / .1 = (6, 8), over T = 4: (1.5, 2); p_2 = 1 / (1 + e^-.5)
    # W = 10 I: gradient (W_2 - p_1 W_1 - p_2 W_2) / 4 = (1 - p_2) (-10, 10) / 4
    detector = ODIN(temperature=0.1, odin_temperature=4.0).fit([[1.0, 0.0], [0.0, 1.0]])
    p = 1 / (1 + np.exp(-0.5))
    np.testing.assert_allclose(detector.score([[0.6, 0.8]]), [p])
    np.testing.assert_allclose(detector.gradient([[0.6, 0.8]]), [[-2.5 * (1 - p), 2.5 * (1 - p)]])


@pytest.mark.parametrize("head", ["labels", "probe"])
def test_equals_the_reference(head):
    found = ODIN(temperature=0.1, head=head, odin_temperature=7.0)
    found.fit(WORLD.labels, images=WORLD.train, image_labels=WORLD.classes)
    weights, bias = (WORLD.labels / 0.1, np.zeros(5)) if head == "labels" else (found.weights_, found.bias_)
    expected = reference.odin(WORLD.id_images, weights, bias, 7.0)
    np.testing.assert_allclose(found.score(WORLD.id_images), expected, rtol=1e-10)


def test_limits_and_a_reduction():
    plain = MSP(temperature=0.1).fit(WORLD.labels).score(WORLD.id_images)
    same = ODIN(temperature=0.1, odin_temperature=1.0, epsilon=0.0).fit(WORLD.labels)
    np.testing.assert_array_equal(same.score(WORLD.id_images), plain)
    hot = ODIN(odin_temperature=1e12).fit(WORLD.labels)
    np.testing.assert_allclose(hot.score(WORLD.id_images), 1 / 5)
    np.testing.assert_allclose(hot.gradient(WORLD.id_images), 0, atol=1e-9)


@pytest.mark.parametrize("head", ["labels", "probe"])
def test_the_gradient_equals_finite_differences(head):
    found = ODIN(temperature=0.1, head=head, odin_temperature=3.0)
    found.fit(WORLD.labels, images=WORLD.train, image_labels=WORLD.classes)
    weights, bias = found._head()

    def value(x):  # of vectors that need not be unit
        z = (x @ weights.T + bias) / 3.0
        return z.max(axis=1) - log_sum_exp(z)

    numeric = np.stack(
        [(value(WORLD.id_images + 1e-6 * e) - value(WORLD.id_images - 1e-6 * e)) / 2e-6 for e in np.eye(8)], axis=1
    )
    np.testing.assert_allclose(found.gradient(WORLD.id_images), numeric, atol=1e-7)


def test_pixels_are_needed_for_a_step_only():
    assert Need.PIXELS in ODIN().wants()
    assert Need.PIXELS not in ODIN(epsilon=0.0).wants()
    assert Need.PIXELS in ODIN(head="probe").wants()


@pytest.mark.parametrize("name", ["vit", "resnet", "clip"])
def test_no_step_is_the_plain_vector(name, encoders, detector):
    given = pixels(encoders[name])
    plain = encoders[name].encode_pixels(given)
    moved = encoders[name].encode_perturbed(given, detector.gradient, 0.0)
    assert moved.dtype == np.float32
    np.testing.assert_array_equal(moved, plain)
    assert encoders[name].encode_perturbed(given[:0], detector.gradient, 0.1).shape == (0, 24)


@pytest.mark.parametrize("name", ["vit", "resnet", "clip"])
def test_a_small_step_raises_the_score(name, encoders, detector):
    given = pixels(encoders[name], 20)
    before = log_score(detector, encoders[name].encode_pixels(given))
    after = log_score(detector, encoders[name].encode_perturbed(given, detector.gradient, 0.0014))
    assert (after > before).mean() >= 0.9
    assert (after - before).mean() > 0


@pytest.mark.parametrize("name", ["vit", "resnet", "clip"])
def test_equals_autograd_from_end_to_end(name, encoders, detector):
    encoder, epsilon = encoders[name], 0.01
    weights = torch.tensor(unit_rows(detector.labels_) / 0.01 / 1000)
    std = torch.tensor(encoder.model.preprocess.std).reshape(3, 1, 1)
    expected = []
    for photo in photos(6):
        x = pixels_of(encoder, [photo]).requires_grad_()
        vector = torch.nn.functional.normalize(encoder.model.image(x), dim=-1)
        loss = -torch.log_softmax(vector.double() @ weights.T, dim=-1).max()  # that of the predicted label
        (gradient,) = torch.autograd.grad(loss, x)
        with torch.no_grad():
            moved = x - epsilon * gradient.sign() / std
            expected.append(torch.nn.functional.normalize(encoder.model.image(moved), dim=-1).numpy())
    found = encoder.encode_perturbed(pixels(encoder, 6), detector.gradient, epsilon)
    step = np.concatenate(expected) - encoder.encode_pixels(pixels(encoder, 6))
    # a gradient of nearly 0 may change its sign; the step as a whole is the same
    assert np.linalg.norm(found - np.concatenate(expected)) < 0.05 * np.linalg.norm(step)


def test_results_do_not_depend_on_the_batch_and_short_memory_halves_it(encoders, detector, monkeypatch):
    encoder = encoders["vit"]
    given = pixels(encoder, 9)
    whole = encoder.encode_perturbed(given, detector.gradient, 0.01)
    np.testing.assert_array_equal(encoder.encode_perturbed(given[4:6], detector.gradient, 0.01), whole[4:6])
    monkeypatch.setattr(encoder, "feels_batch", True)  # as on a GPU
    image, seen = encoder.model.image, []

    def short_of_memory(x):
        seen.append(len(x))
        if len(x) > 2:
            raise torch.OutOfMemoryError("no more")
        return image(x)

    object.__setattr__(encoder.model, "image", short_of_memory)
    pairs = encoder.encode_perturbed(given, detector.gradient, 0.01)
    object.__setattr__(encoder.model, "image", image)
    encoder.batch_size = 4
    assert seen == [4, *[2] * 8, 1, 1]  # forward and forward again
    np.testing.assert_allclose(pairs, whole, atol=2e-3)


def test_an_encoder_without_gradients_says_so(detector):
    mini = get_encoder("mini")
    with pytest.raises(ParameterError, match="mini gives no gradients") as error:
        mini.encode_perturbed(np.zeros((1, 224, 224, 3), np.uint8), detector.gradient, 0.1)
    assert "epsilon=0" in error.value.hint


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epsilon": -1.0}, "epsilon must be a number of at least 0 and at most 1, got -1.0"),
        ({"epsilon": float("nan")}, "epsilon must be"),
        ({"odin_temperature": 0.0}, "odin_temperature must be a number above 0, got 0.0"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ParameterError, match=message) as error:
        ODIN(**params).fit(WORLD.labels)
    assert error.value.hint
