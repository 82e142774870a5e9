"""The methods on labels and words: by hand, at their limits, reduced to others, and against slow references."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from helpers import reference_labels as reference
from outword.detectors import CSP, EOE, GLMCM, MCM, MSP, AdaNeg, Entropy, NegLabel, Var
from outword.errors import InputError, ParameterError
from outword.maths.methods.adaneg import Memory
from outword.maths.numerics import unit_rows
from outword.metrics import auroc
from outword.testing import planted_world

LABELS = [[1.0, 0.0], [0.0, 1.0]]


@pytest.fixture(scope="module")
def world():
    return planted_world(n_labels=7, n_wild=43, n_images=40, dim=12)


# --- Entropy and Var


def test_entropy_and_var_by_hand():
    # x = (.6, .8), T = .2 / log 3: the logits differ by log 3, so p = 1/4, 3/4
    t = 0.2 / np.log(3)
    found = Entropy(temperature=t).fit(LABELS).score([[0.6, 0.8]])[0]
    assert found == pytest.approx(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    assert Var(temperature=t).fit(LABELS).score([[0.6, 0.8]])[0] == pytest.approx(0.25**2)  # both .25 from the mean


def test_entropy_and_var_between_their_bounds():
    world = planted_world()
    k, images = len(world.labels), world.id_images
    np.testing.assert_allclose(Entropy(temperature=1e9).fit(world.labels).score(images), -np.log(k))  # all are equal
    np.testing.assert_allclose(Var(temperature=1e9).fit(world.labels).score(images), 0, atol=1e-15)
    np.testing.assert_allclose(Entropy(temperature=1e-4).fit(world.labels).score(images), 0, atol=1e-6)  # one has all
    np.testing.assert_allclose(Var(temperature=1e-4).fit(world.labels).score(images), (k - 1) / k**2, rtol=1e-6)
    assert Entropy().fit(world.labels[:1]).score(images[:1])[0] == pytest.approx(0)
    assert Var().fit(world.labels[:1]).score(images[:1])[0] == pytest.approx(0)


def test_two_classes_rank_alike_under_entropy_var_and_msp(world):
    # with two classes all three are functions of the larger probability p: var = (p - 1/2)^2
    images = world.id_images
    p = MSP(temperature=0.5).fit(world.labels[:2]).score(images)
    np.testing.assert_allclose(Var(temperature=0.5).fit(world.labels[:2]).score(images), (p - 0.5) ** 2)
    entropy = Entropy(temperature=0.5).fit(world.labels[:2]).score(images)
    np.testing.assert_allclose(entropy, p * np.log(p) + (1 - p) * np.log(1 - p))


@pytest.mark.parametrize("temperature", [1.0, 0.05])
def test_entropy_and_var_equal_the_formula(world, temperature):
    for kind, slow in ((Entropy, reference.entropy), (Var, reference.var)):
        found = kind(temperature=temperature).fit(world.labels).score(world.ood_images)
        np.testing.assert_allclose(found, slow(world.ood_images, world.labels, temperature), rtol=1e-9)


def test_a_probe_takes_the_place_of_the_labels():
    world = planted_world(n_labels=3, dim=8)
    for kind, score in ((Entropy, lambda p: (p * np.log(p)).sum(axis=1)), (Var, lambda p: p.var(axis=1))):
        detector = kind(head="probe", temperature=0.5).fit(images=world.train, image_labels=world.classes)
        masses = np.exp(world.ood_images @ detector.weights_.T + detector.bias_)  # no temperature
        expected = score(masses / masses.sum(axis=1, keepdims=True))
        np.testing.assert_allclose(detector.score(world.ood_images), expected, rtol=1e-9, atol=1e-12)


def test_published_temperature_is_one_whatever_the_encoders():
    for kind in (Entropy, Var, GLMCM, EOE):
        assert kind().temperature == 1.0
        assert kind.own_temperature
    with pytest.raises(ParameterError, match='head must be "labels" or "probe"'):
        Entropy(head="tail").fit(LABELS)


# --- GL-MCM


def test_glmcm_by_hand():
    # whole: cosines (0, 1); patches: (1, 0) and (-1, 0); the best probability is e/(1+e) for the whole and for patch 1
    found = GLMCM(weight=0.5).fit(LABELS).score([[0.0, 1.0]], patches=[[[1.0, 0.0], [-1.0, 0.0]]])
    assert found[0] == pytest.approx(1.5 * np.e / (1 + np.e))


def test_glmcm_without_patches_weight_is_mcm_and_with_the_image_as_patch_twice_mcm(world):
    mcm = MCM().fit(world.labels).score(world.id_images)
    whole = world.id_images[:, None, :]
    nothing = GLMCM(weight=0.0).fit(world.labels).score(world.id_images, patches=-whole)
    np.testing.assert_array_equal(nothing, mcm)
    np.testing.assert_allclose(GLMCM().fit(world.labels).score(world.id_images, patches=whole), 2 * mcm, rtol=1e-14)


def test_glmcm_equals_the_formula_and_does_not_depend_on_blocks_or_lengths(world, monkeypatch):
    patches = np.random.default_rng(1).standard_normal((len(world.id_images), 5, 12))
    detector = GLMCM(temperature=0.3, weight=0.7).fit(world.labels)
    found = detector.score(world.id_images, patches=patches)
    expected = reference.glmcm(world.id_images, patches, world.labels, 0.3, 0.7)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    monkeypatch.setattr("outword.maths.numerics.CELLS", 3 * 5 * 7)
    np.testing.assert_allclose(detector.score(world.id_images, patches=3 * patches), found, rtol=1e-12)


def test_an_id_object_in_a_corner_counts():
    # the whole image shows something else; one patch of nine shows a label
    world = planted_world()
    images = world.ood_images
    parts = np.repeat(images[:, None, :], 9, axis=1)
    corner = parts.copy()
    corner[:, 4] = world.id_images
    detector = GLMCM(temperature=0.1).fit(world.labels)
    inside, outside = detector.score(images, patches=corner), detector.score(images, patches=parts)
    assert auroc(inside, outside) > 0.9
    assert (inside >= outside).all()


def test_glmcm_memory_stays_within_a_block():
    rng = np.random.default_rng(0)
    detector = GLMCM().fit(rng.standard_normal((2000, 16)))
    images, patches = rng.standard_normal((64, 16)), rng.standard_normal((64, 196, 16)).astype(np.float32)
    tracemalloc.start()
    detector.score(images, patches=patches)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150e6  # 64 x 196 x 2000 numbers would be 200 MB, and several of them are needed


@pytest.mark.parametrize(
    ("patches", "message"),
    [
        (None, r"GLMCM needs patches, got none. hint: pass patches="),
        (np.ones((2, 2)), r"patches must have the shape \(2, n_patches, 2\), got \(2, 2\)"),
        (np.ones((3, 1, 2)), r"got \(3, 1, 2\)"),
        (np.ones((2, 1, 3)), r"got \(2, 1, 3\)"),
        (np.ones((2, 0, 2)), r"got \(2, 0, 2\)"),
        (np.full((2, 1, 2), np.nan), "patches must be finite"),
        (np.zeros((2, 1, 2)), "patches must have no zero row"),
        ([[["a", "b"]], [["a", "b"]]], "patches must be a two-dimensional array of numbers"),
    ],
)
def test_bad_patches(patches, message):
    with pytest.raises(InputError, match=message):
        GLMCM().fit(LABELS).score([[1.0, 0.0], [0.0, 1.0]], patches=patches)


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_bad_weight_of_patches(weight):
    with pytest.raises(ParameterError, match=r"weight must be a number of at least 0, got .*hint: the published"):
        GLMCM(weight=weight).fit(LABELS)


# --- CSP


def test_csp_is_neglabel_with_other_words(world):
    params = {"temperature": 0.1, "n_groups": 4, "seed": 3}
    ours, theirs = (kind(**params).fit(world.labels, world.wild) for kind in (CSP, NegLabel))
    np.testing.assert_array_equal(ours.score(world.ood_images), theirs.score(world.ood_images))
    assert ours.default_threshold_ == theirs.default_threshold_
    assert (CSP.miner, CSP.corpus, CSP.prompts) == ("conjugated", "conjugated:wordnet", "csp")


# --- EOE


def test_eoe_by_hand():
    # T = 1 / log 4, cosines 1, 0 | .5, 0: masses 4, 1 | 2, 1; S = 4/8 - beta 2/8
    labels, words = [[1.0, 0.0], [0.0, 1.0]], [[0.5, np.sqrt(0.75)], [0.0, -1.0]]
    detector = EOE(temperature=1 / np.log(4), beta=0.25).fit(labels, words)
    assert detector.score([[1.0, 0.0]])[0] == pytest.approx(4 / 8 - 0.25 * 2 / 8)


def test_eoe_without_beta_is_the_softmax_with_further_classes(world):
    detector = EOE(temperature=0.2, beta=0.0).fit(world.labels, world.wild)
    both = np.concatenate([world.labels, world.wild])
    masses = np.exp(world.ood_images @ both.T / 0.2)
    expected = masses[:, :7].max(axis=1) / masses.sum(axis=1)
    np.testing.assert_allclose(detector.score(world.ood_images), expected, rtol=1e-12)


def test_words_far_away_leave_msp(world):
    # words opposite to the one image: e^{-1/T} is nothing at T = .01
    image = world.id_images[:1]
    far = EOE(temperature=0.01).fit(world.labels, -image).score(image)
    np.testing.assert_allclose(far, MSP(temperature=0.01).fit(world.labels).score(image), rtol=1e-12)


@pytest.mark.parametrize("temperature", [1.0, 0.05])
def test_eoe_equals_the_formula(world, temperature):
    found = EOE(temperature=temperature, beta=0.25).fit(world.labels, world.wild).score(world.ood_images)
    expected = reference.eoe(world.ood_images, world.labels, world.wild, temperature, 0.25)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_bad_eoe():
    for beta in (-0.1, float("nan")):
        with pytest.raises(ParameterError, match=r"beta must be a number of at least 0, got .*hint: the published"):
            EOE(beta=beta).fit(LABELS, LABELS)
    with pytest.raises(InputError, match="EOE needs wild words, got none"):
        EOE().fit(LABELS)


# --- AdaNeg


def stream(world, seed=0):
    """ID and OOD images, mixed, and the order that they came in."""
    images = np.concatenate([world.id_images, world.ood_images])
    return images[np.random.default_rng(seed).permutation(len(images))]


def ready(world, **params):
    return AdaNeg(**{"temperature": 0.1, "n_groups": 3, **params}).fit(world.labels, world.wild)


def test_adaneg_by_hand():
    # T = 1 / log 16: e^h = 16^cos. One label (1, 0), one word (0, 1), x = (0, 1): P = 1, Q = 16, S_nl = 1/17 < .25.
    # x equals its word: remembered, the proxy is (0, 1) still, and S = 1/17 + .1/17.
    detector = AdaNeg(temperature=1 / np.log(16), n_groups=1, beta=0.0).fit([[1.0, 0.0]], [[0.0, 1.0]])
    assert detector.score([[0.0, 1.0]])[0] == pytest.approx(1.1 / 17)
    # Then x = (-.8, .6): e^h = 16^-.8 and 16^.6, S_nl = 1 / (1 + 16^1.4) < .25: remembered too. With beta = 0 the
    # proxy is the mean of (0, 1), (0, 1), (-.8, .6): (-.8, 2.6) / sqrt(7.4), cosine (.64 + 1.56) / sqrt(7.4).
    cos = 2.2 / np.sqrt(7.4)
    expected = 1 / (1 + 16 ** (cos + 0.8)) + 0.1 / (1 + 16**1.4)
    assert detector.score([[-0.8, 0.6]])[0] == pytest.approx(expected)


def test_weights_of_a_proxy_by_hand():
    # text (0, 1), image (1, 0); x = (1, 0): weights e^-beta and 1; the proxy is (1, e^-beta), beta = log 2: (1, 1/2)
    memory = Memory(length=3)
    assert memory.store(5, np.array([0.0, 1.0]), np.array([1.0, 0.0]), 0.3)
    assert memory.cosines(5, np.array([[1.0, 0.0]]), np.log(2))[0] == pytest.approx(1 / np.sqrt(1.25))


def test_a_sharp_proxy_is_the_nearest_vector_however_far_that_is():
    # text (0, 1), image (1, 0), x = (-.6, .8) and (-.8, -.6): nearest the text at .8 and -.6, whatever vanishes
    memory = Memory(length=3)
    assert memory.store(5, np.array([0.0, 1.0]), np.array([1.0, 0.0]), 0.3)
    found = memory.cosines(5, np.array([[-0.6, 0.8], [-0.8, -0.6]]), 1000.0)
    np.testing.assert_allclose(found, [0.8, -0.6], rtol=1e-14)


@pytest.mark.parametrize(
    "params",
    [{}, {"memory": 2}, {"memory": 1, "gap": 0.1}, {"beta": 0.0, "threshold": 0.6}]
    + [{"beta": beta} for beta in (12.0, 20.0, 100.0, 1000.0)],
)
def test_adaneg_equals_the_rule_image_by_image(world, params):
    detector, images = ready(world, **params), stream(world)
    low = detector.threshold - detector.gap * detector.threshold
    high = detector.threshold + detector.gap * (1 - detector.threshold)
    expected = reference.adaneg(
        images, world.labels, world.wild[detector.groups_], 0.1, detector.memory, low, high, detector.beta, 0.1
    )
    np.testing.assert_allclose(detector.score(images), expected, rtol=1e-10)


def test_a_gap_of_one_stores_nothing_and_leaves_neglabel(world):
    text = NegLabel(temperature=0.1, n_groups=3).fit(world.labels, world.wild).score(stream(world))
    np.testing.assert_allclose(ready(world, gap=1.0, weight=0.1).score(stream(world)), 1.1 * text, rtol=1e-12)


def test_the_stream_is_used(world):
    images, still = stream(world), ready(world, gap=1.0).score(stream(world))
    assert np.abs(ready(world).score(images) - still).max() > 0.1


def test_batches_do_not_matter(world):
    images = np.concatenate([stream(world, seed) for seed in range(4)])  # 320 images, more than are held at a time
    whole = ready(world, memory=2).score(images)
    for size in (1, 7, 100):
        detector = ready(world, memory=2)
        parts = [detector.score(images[start : start + size]) for start in range(0, len(images), size)]
        np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-10)


def test_memory_in_several_pages(world, monkeypatch):
    whole = ready(world).score(stream(world))
    monkeypatch.setattr("outword.maths.methods.adaneg.PAGE_CELLS", 2 * 11 * 12)  # two labels a page
    parts = ready(world)
    found = [parts.score(part) for part in np.array_split(stream(world), 9)]  # later parts meet pages that are full
    np.testing.assert_allclose(np.concatenate(found), whole, rtol=1e-10)


def test_reset_gives_the_first_scores_again(world):
    detector, images = ready(world), stream(world)
    first = detector.score(images)
    assert not np.array_equal(detector.score(images), first)  # the memory is full of them by now
    detector.reset()
    np.testing.assert_array_equal(detector.score(images), first)


def test_a_saved_detector_starts_afresh(world):
    detector, images = ready(world), stream(world)
    first = detector.score(images)
    again = AdaNeg(**detector.params()).restore(detector.state())
    assert set(detector.state()) == {"labels", "wild", "groups"}
    np.testing.assert_array_equal(again.score(images), first)


@pytest.mark.parametrize("memory", [1, 3, 100])
def test_after_the_stream_the_memory_is_the_same_for_any_order(world, memory):
    # room for all, or the images of the smallest entropy: neither depends on the order
    probes, found = planted_world(n_labels=7, n_wild=43, n_images=20, dim=12, seed=9).ood_images, []
    for seed in range(3):
        detector = ready(world, memory=memory)
        detector.score(stream(world, seed))
        detector.gap = 1.0  # from here on nothing is stored
        found.append(detector.score(probes))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-10)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-10)
    assert np.abs(found[0] - ready(world, gap=1.0).score(probes)).max() > 0.01


def test_against_a_frozen_memory_the_order_does_not_matter(world):
    detector = ready(world)
    detector.score(stream(world))
    detector.gap = 1.0
    probes = stream(world, seed=1)
    np.testing.assert_allclose(detector.score(probes[::-1])[::-1], detector.score(probes), rtol=1e-10)


def test_the_part_of_neglabel_never_changes_with_the_order(world):
    images = stream(world)
    text = NegLabel(temperature=0.1, n_groups=3).fit(world.labels, world.wild).score(images)
    for order in (np.arange(len(images)), np.arange(len(images))[::-1]):
        with_text, without = (ready(world, weight=weight).score(images[order]) for weight in (2.0, 0.0))
        np.testing.assert_allclose((with_text - without)[np.argsort(order)], 2 * text, rtol=1e-9)


def test_an_image_sees_those_before_it_and_none_after(world):
    images = stream(world)
    whole = ready(world).score(images)
    np.testing.assert_allclose(ready(world).score(images[:50]), whole[:50], rtol=1e-10)
    swapped = images.copy()
    swapped[[0, 1]] = images[[1, 0]]
    np.testing.assert_allclose(ready(world).score(swapped)[2:], whole[2:], rtol=1e-10)


def test_two_labels_of_one_name_do_not_depend_on_rounding():
    world = planted_world(n_labels=7, n_wild=43, n_images=60, dim=12)
    twice = replace(ready(world), n_groups=1).fit(np.repeat(world.labels, 2, axis=0), world.wild)
    whole = twice.score(world.id_images)
    twice.reset()
    alone = np.concatenate([twice.score(row[None]) for row in world.id_images])
    np.testing.assert_allclose(alone, whole, rtol=1e-10)


def test_memory_grows_with_the_images_that_are_stored_only():
    rng = np.random.default_rng(0)
    labels, wild = rng.standard_normal((10, 64)), rng.standard_normal((5000, 64))
    detector = AdaNeg(temperature=0.05).fit(labels, wild)
    images = unit_rows(wild[:300] + 0.1 * rng.standard_normal((300, 64)))
    detector.score(images[:50])
    tracemalloc.start()
    detector.score(images)
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 10e6  # a place for each of 10 images of 5010 labels would be 26 MB


def test_adaneg_has_no_default_threshold(world):
    assert ready(world).default_threshold_ is None
    assert AdaNeg.sees_order


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"memory": 0}, "memory must be a whole number between 1 and 1000, got 0"),
        ({"memory": 2.5}, "memory must be"),
        ({"memory": True}, "memory must be"),
        ({"threshold": -0.1}, "threshold must be a number of at least 0 and at most 1, got -0.1"),
        ({"gap": 1.1}, "gap must be a number of at least 0 and at most 1, got 1.1"),
        ({"gap": float("nan")}, "gap must be"),
        ({"beta": -1.0}, "beta must be a number of at least 0 and at most 1000, got -1.0"),
        ({"weight": float("inf")}, "weight must be a number of at least 0, got inf"),
        ({"n_groups": 44}, "n_groups must be between"),
    ],
)
def test_bad_parameters_of_adaneg(world, params, message):
    with pytest.raises(ParameterError, match=message) as error:
        ready(world, **params)
    assert error.value.hint
