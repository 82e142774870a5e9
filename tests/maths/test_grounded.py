"""The default score: its formula, a value by hand, what it reduces to, and its cut."""

import numpy as np
import pytest

from helpers import reference
from outword.detectors import DETECTORS, Debiased, Grounded, MaxLogit, NegLabel
from outword.errors import ParameterError
from outword.testing import planted_world


@pytest.fixture(scope="module")
def world():
    return planted_world(n_labels=40, n_wild=203, n_images=30)


@pytest.fixture(scope="module")
def images(world):
    return np.concatenate([world.id_images, world.ood_images, world.labels[:3], -world.labels[:3]])


def ready(world, kind=Grounded, **params):
    return kind(**{"temperature": 0.05, **params}).fit(world.labels, world.wild)


@pytest.mark.parametrize("b", [0.0, 1.0, 2.5])
def test_the_formula(world, images, b):
    expected = reference.grounded(images, world.labels, world.wild, 0.05, b)
    np.testing.assert_allclose(ready(world, b=b).score(images), expected, rtol=1e-12)


def test_by_hand():
    # cos = log(mass) / log(16) gives e^h = mass: labels 8 and 4, words 2, 1, 1, 4
    t = 1 / np.log(16)

    def vector(mass):
        cos = np.log(mass) * t
        return [cos, np.sqrt(1 - cos**2)]

    detector = Grounded(temperature=t, b=2.0).fit([vector(8), vector(4)], [vector(m) for m in (2, 1, 1, 4)])
    np.testing.assert_allclose(detector.score([[1.0, 0.0]]), np.log(12 / 8) + 2 * np.log(8), rtol=1e-14)


def test_one_label_and_one_word_are_two_logits():
    detector = Grounded(temperature=0.1, b=0.5).fit([[1.0, 0.0]], [[0.0, 1.0]])
    assert detector.score([[0.6, 0.8]])[0] == pytest.approx(6 - 8 + 0.5 * 6, abs=1e-12)


@pytest.mark.parametrize("tau", [0.0, 0.5, "auto"])
def test_without_the_peak_it_has_the_order_of_debiased_and_neglabel(world, images, tau):
    found = ready(world, b=0.0).score(images)
    for other in (ready(world, Debiased, sigma=0.0, tau=tau, n_groups=1), ready(world, NegLabel, n_groups=1)):
        want = other.score(images)
        assert (found[:, None] > found)[want[:, None] > want * (1 + 1e-12)].all()


def test_the_natural_cut_is_that_of_debiased():
    # where all groups of 120 words are alike, one group stands for all, and both verdicts are the same
    rng = np.random.default_rng(0)
    y, some = rng.normal(size=(30, 16)), rng.normal(size=(120, 16))
    images = np.concatenate([y + rng.normal(size=(30, 16)) * scale for scale in np.linspace(0, 2, 12)])
    ours = Grounded(temperature=0.1, b=0.0).fit(y, np.tile(some, (5, 1)))
    groups = np.arange(600).reshape(5, 120)
    theirs = Debiased(temperature=0.1, sigma=0.0, n_groups=5).fit(y, np.tile(some, (5, 1)), groups=groups)
    inside = theirs.score(images) >= theirs.default_threshold_
    assert 0.1 < inside.mean() < 0.9
    np.testing.assert_array_equal(ours.score(images) >= ours.default_threshold_, inside)


def test_a_large_weight_has_the_order_of_maxlogit(world, images):
    found, want = ready(world, b=1e6).score(images), MaxLogit().fit(world.labels).score(images)
    assert (found[:, None] > found)[want[:, None] > want + 1e-5].all()


def test_far_from_everything_the_peak_falls_and_the_odds_do_not():
    # an image that fades into what neither labels nor words have
    y, u = np.eye(3)[:1], np.eye(3)[1:2]
    near, far = [0.8, 0.6, 0.0], [0.2, 0.0, np.sqrt(0.96)]
    both = Grounded(temperature=0.1).fit(y, u)
    assert np.ptp(both.relative().score([near, far])) == pytest.approx(0)
    assert np.subtract(*both.score([near, far])) == pytest.approx(6)


def test_the_relative_part_shares_all_but_the_weight(world, images):
    detector = ready(world)
    scores = detector.score(images)
    alone, plain = detector.relative(), ready(world, b=0.0)
    assert alone.labels_ is detector.labels_
    assert alone.params() == plain.params()
    assert (detector.default_threshold_, alone.default_threshold_) == (None, plain.default_threshold_)
    np.testing.assert_array_equal(alone.score(images), plain.score(images))
    np.testing.assert_array_equal(detector.score(images), scores)
    assert detector.b == 1
    neglabel = ready(world, NegLabel)
    assert neglabel.relative() is neglabel


def test_a_score_is_made_of_its_masses(world, images):
    detector = ready(world)
    masses = detector.masses(images)
    np.testing.assert_array_equal(detector.combine(masses), detector.score(images))
    np.testing.assert_array_equal(detector.masses(images[7:8]), masses[7:8])


def test_only_this_method_asks_for_kinds():
    assert {name: kind.kinds for name, kind in DETECTORS.items() if kind.kinds != "off"} == {"grounded": "auto"}


@pytest.mark.parametrize("b", [-0.1, float("nan"), 1e7, "1"])
def test_bad_weights(world, b):
    with pytest.raises(ParameterError, match="b must be a number of at least 0 and at most 1"):
        ready(world, b=b)
