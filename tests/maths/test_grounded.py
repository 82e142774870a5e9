"""The default score: its formula, a value by hand, what it reduces to, its cut, and one more label for each image."""

from dataclasses import replace

import numpy as np
import pytest

from helpers import reference
from outword.detectors import CSP, DETECTORS, AdaNeg, Debiased, Grounded, MaxLogit, NegLabel
from outword.errors import InputError, ParameterError
from outword.kernels import using
from outword.maths.methods.grouped import log_odds
from outword.testing import planted_world


@pytest.fixture(scope="module")
def world():
    return planted_world(n_labels=40, n_wild=203, n_images=30)


@pytest.fixture(scope="module")
def images(world):
    return np.concatenate([world.id_images, world.ood_images, world.labels[:3], -world.labels[:3]])


def ready(world, kind=Grounded, **params):
    return kind(**{"temperature": 0.05, "n_groups": 10, **params}).fit(world.labels, world.wild)


@pytest.mark.parametrize("tau", [0.0, 0.2, 0.5, "auto"])
@pytest.mark.parametrize("b", [0.0, 1.0, 2.5])
def test_the_formula(world, tau, b):
    detector = ready(world, tau=tau, b=b)
    groups = world.wild[detector.groups_]
    some = np.concatenate([world.id_images[:10], world.ood_images[:10]])
    expected = reference.grounded(some, world.labels, groups, detector.tau_, 0.05, b)
    np.testing.assert_allclose(detector.score(some), expected, rtol=1e-9)


def test_by_hand():
    # cos = log(mass) / log(16) gives e^h = mass: labels 8 and 4, words 2, 1 | 1, 4, as for `debiased`
    t = 1 / np.log(16)

    def vector(mass):
        cos = np.log(mass) * t
        return [cos, np.sqrt(1 - cos**2)]

    detector = Grounded(temperature=t, tau=0.25, n_groups=2, policy="paper", b=2.0)
    detector.fit([vector(8), vector(4)], [vector(2), vector(1), vector(1), vector(4)], groups=[[0, 1], [2, 3]])
    # P = 12, a = 4.5, m = 1 - 2 / (.75 2) .25 = 2/3; r = 1/3, 5/9: S_d = (1 + 9/11) / 2, 1/S_d - m = 11/10 - 2/3
    np.testing.assert_allclose(detector.score([[1.0, 0.0]]), -np.log(13 / 30) + 2 * np.log(8), rtol=1e-14)


def test_one_group_and_one_label_are_two_logits():
    detector = Grounded(temperature=0.1, n_groups=1, tau=0.0, b=0.5).fit([[1.0, 0.0]], [[0.0, 1.0]])
    assert detector.score([[0.6, 0.8]])[0] == pytest.approx(6 - 8 + 0.5 * 6, abs=1e-12)


@pytest.mark.parametrize("ratio", [-1e6, -40.0, 0.0, 40.0, 1e6])
def test_log_odds_of_ratios_beyond_the_range(ratio):
    for m in (1.0, 0.15, 1e-12):
        assert log_odds(m, np.array([[ratio]]))[0] == pytest.approx(-ratio, abs=1e-14)
    both = log_odds(1.0, np.array([[ratio, -ratio]]))[0]
    assert both == pytest.approx(0.0, abs=1e-12)  # what one group loses the other wins


@pytest.mark.parametrize("tau", [0.0, 0.5, "auto"])
def test_without_the_peak_it_has_the_order_and_the_verdicts_of_debiased(world, images, tau):
    ours, theirs = ready(world, b=0.0, tau=tau), ready(world, Debiased, sigma=0.0, tau=tau)
    found, want = ours.score(images), theirs.score(images)
    apart = want[:, None] > want * (1 + 1e-12)
    assert (found[:, None] > found)[apart].all()
    np.testing.assert_array_equal(found >= ours.default_threshold_, want >= theirs.default_threshold_)
    cut = theirs.default_threshold_
    assert ours.default_threshold_ == pytest.approx(-np.log(1 / cut - 1 + theirs._c_tau()))


def test_a_large_weight_has_the_order_of_maxlogit(world, images):
    found, want = ready(world, b=1e6).score(images), MaxLogit().fit(world.labels).score(images)
    assert (found[:, None] > found)[want[:, None] > want + 1e-5].all()


def test_far_from_everything_the_peak_falls_and_the_odds_do_not():
    # an image that fades into what neither labels nor words have
    y, u = np.eye(3)[:1], np.eye(3)[1:2]
    near, far = [0.8, 0.6, 0.0], [0.2, 0.0, np.sqrt(0.96)]
    both = Grounded(temperature=0.1, n_groups=1, tau=0.0).fit(y, u)
    assert np.ptp(both.relative().score([near, far])) == pytest.approx(0)
    assert np.subtract(*both.score([near, far])) == pytest.approx(6)


def test_the_relative_part_shares_all_but_the_weight(world, images):
    detector = ready(world)
    scores = detector.score(images)
    alone, plain = detector.relative(), ready(world, b=0.0)
    assert alone.labels_ is detector.labels_
    assert alone.groups_ is detector.groups_
    assert alone.params() == plain.params()
    assert (detector.default_threshold_, alone.default_threshold_) == (None, plain.default_threshold_)
    np.testing.assert_array_equal(alone.score(images), plain.score(images))
    np.testing.assert_array_equal(detector.score(images), scores)
    assert detector.b == 1
    neglabel = ready(world, NegLabel)
    assert neglabel.relative() is neglabel


def test_only_this_method_asks_for_kinds():
    assert {name: kind.kinds for name, kind in DETECTORS.items() if kind.kinds != "off"} == {"grounded": "auto"}


def test_another_label_for_each_image_is_a_refit_where_the_number_of_labels_does_not_count(world, images):
    own = np.roll(images, 1, axis=0)
    for method in (ready(world, NegLabel), ready(world, CSP), ready(world, tau=0.0), ready(world, Debiased, tau=0.0)):
        found = method.inserted(images, 3 * own)
        for i in (0, 40, 60):
            again = replace(method).fit(np.concatenate([world.labels, own[i : i + 1]]), world.wild)
            np.testing.assert_allclose(found[i], again.score(images[i : i + 1])[0], rtol=1e-12)
    np.testing.assert_array_equal(method.inserted(images[5:6], own[5:6]), found[5:6])


def test_another_label_for_each_image_leaves_tau_and_the_number_of_labels(world):
    x, own = world.id_images[:9], world.ood_images[:9]
    for detector in (ready(world), ready(world, b=0.0)):
        groups = world.wild[detector.groups_]
        expected = reference.grounded(x, world.labels, groups, detector.tau_, 0.05, detector.b, own)
        np.testing.assert_allclose(detector.inserted(x, own), expected, rtol=1e-9)
    odds = -np.log(1 / ready(world, Debiased, sigma=0.0).inserted(x, own) - 1 + detector._c_tau())
    np.testing.assert_allclose(odds, detector.inserted(x, own), rtol=1e-9)
    noisy, plain = (ready(world, Debiased, sigma=sigma).inserted(x, own) for sigma in (1e-9, 0.0))
    np.testing.assert_allclose(noisy, plain, rtol=1e-6)


def test_a_label_that_an_image_equals_wins(world):
    x = world.ood_images
    assert (ready(world).inserted(x, x) > ready(world).score(x)).all()


def test_methods_without_insertion_say_so(world):
    for method in (MaxLogit().fit(world.labels), ready(world, AdaNeg)):
        assert method.inserted(world.id_images, world.id_images) is None
    with pytest.raises(InputError, match=r"own must be as many as images \(30\), got 2"):
        ready(world).inserted(world.id_images, world.labels[:2])
    with pytest.raises(InputError, match="own must have 48 columns"):
        ready(world).inserted(world.id_images, world.id_images[:, :7])


def test_insertion_is_float64_whatever_scores(world):
    want = ready(world).inserted(world.id_images, world.labels[:30])
    with using("numpy", "float32"):
        np.testing.assert_array_equal(ready(world).inserted(world.id_images, world.labels[:30]), want)


@pytest.mark.parametrize("b", [-0.1, float("nan"), 1e7, "1"])
def test_bad_weights(world, b):
    with pytest.raises(ParameterError, match="b must be a number of at least 0 and at most 1"):
        ready(world, b=b)
