"""Every registered method: public checks, a value worked out by hand, a limiting case, a reduction, golden arrays."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.reference import debiased_as_printed
from outword.detectors import DETECTORS, MCM, MSP, Debiased, Energy, MaxLogit, NegLabel
from outword.errors import InputError, OutwordError, ParameterError
from outword.maths.methods.debiased import largest_tau
from outword.metrics import auroc
from outword.testing import DETECTOR_CHECKS, check_detector, planted_world

GOLDEN = np.load(Path(__file__).parents[1] / "golden" / "released_scores_k200.npz")


@pytest.mark.parametrize("check", DETECTOR_CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("name", DETECTORS)
def test_public_checks(name, check):
    check(DETECTORS[name]())


def test_public_checks_for_short_lists():
    check_detector(Debiased(n_groups=2))  # 30 labels, groups of 300 words: the cap is at work


def test_the_checks_can_fail():
    class Leaky(MaxLogit):
        def _score(self, images):
            return super()._score(images) - images.sum()  # depends on the batch

    with pytest.raises(AssertionError):
        check_detector(Leaky())


@pytest.mark.parametrize("tau", [0.0, 0.3, 0.5])
@pytest.mark.parametrize("policy", ["cap", "paper"])
def test_golden_scores_of_the_released_code(tau, policy):
    groups = GOLDEN["group_order"].reshape(int(GOLDEN["n_groups"]), -1)
    detector = Debiased(temperature=float(GOLDEN["temperature"]), tau=tau, sigma=0.0, policy=policy)
    detector.fit(labels=GOLDEN["labels"], wild=GOLDEN["wild"], groups=groups)
    np.testing.assert_allclose(detector.score(GOLDEN["images"]), GOLDEN[f"score_tau{tau}"], atol=1e-9, rtol=0)


@pytest.mark.parametrize("sigma", [0.0, 0.001])
@pytest.mark.parametrize("tau", [0.0, 0.2, 0.5])
def test_debiased_equals_the_formula_as_printed(tau, sigma):
    world = planted_world(n_labels=40, n_wild=203)
    detector = Debiased(temperature=0.05, tau=tau, sigma=sigma, n_groups=10, policy="paper")
    detector.fit(labels=world.labels, wild=world.wild)
    expected = debiased_as_printed(
        world.id_images, world.labels, world.wild[detector.groups_], detector.positives_, tau, 0.05
    )
    np.testing.assert_allclose(detector.score(world.id_images), expected, rtol=1e-10)


def test_debiased_by_hand():
    # x = y1; e^h: y 3 and 1; words 2, 1 | 1, 4 at temperature 1/log 3 scaled cosines: chosen so that e^h is whole.
    log = np.log
    t = 1 / log(16)  # cos = log(m) / log(16) gives e^h = m
    x = np.array([[1.0, 0.0]])

    def vector(mass):
        cos = log(mass) * t
        return [cos, np.sqrt(1 - cos**2)]

    detector = Debiased(temperature=t, tau=0.25, sigma=0.0, n_groups=2, policy="paper")
    groups = [[0, 1], [2, 3]]
    detector.fit(labels=[vector(8), vector(4)], wild=[vector(2), vector(1), vector(1), vector(4)], groups=groups)
    # P = 12, g = 6, a = .75/2*12 = 4.5; q = 1.5, 2.5; S_b = 4.5/(4.5+1.5-1.5), 4.5/(4.5+2.5-1.5)
    np.testing.assert_allclose(detector.score(x), (4.5 / 4.5 + 4.5 / 5.5) / 2)


def test_tau_zero_is_neglabel():
    world = planted_world()
    ours = Debiased(tau=0.0, n_groups=7, seed=3).fit(labels=world.labels, wild=world.wild)
    theirs = NegLabel(n_groups=7, seed=3).fit(labels=world.labels, wild=world.wild)
    np.testing.assert_allclose(ours.score(world.ood_images), theirs.score(world.ood_images), rtol=1e-12)


def test_debiased_is_neglabel_with_weighted_words():
    # METHOD identity: S = 1/(1 - c tau) mean_b P / (P + w sum_G e^h), w = 1/(1 - tau - tau |G|/K)
    world, t, tau = planted_world(n_labels=50, n_wild=120), 0.05, 0.5
    detector = Debiased(temperature=t, tau=tau, sigma=0.0, n_groups=6).fit(labels=world.labels, wild=world.wild)
    size, k = detector.groups_.shape[1], len(world.labels)
    mass = np.exp(world.id_images @ world.labels.T / t).sum(1, keepdims=True)
    words = np.exp(world.id_images @ world.wild.T / t)[:, detector.groups_].sum(2)
    w, c = 1 / (1 - tau - tau * size / k), size / ((1 - tau) * k)
    expected = (mass / (mass + w * words)).mean(1) / (1 - c * tau)
    np.testing.assert_allclose(detector.score(world.id_images), expected, rtol=1e-10)


def test_one_group_ranks_like_neglabel():
    world = planted_world(n_labels=40, n_wild=30)
    images = np.concatenate([world.id_images, world.ood_images])
    ours = Debiased(sigma=0.0, n_groups=1, temperature=0.1).fit(labels=world.labels, wild=world.wild)
    theirs = NegLabel(n_groups=1, temperature=0.1).fit(labels=world.labels, wild=world.wild)
    np.testing.assert_array_equal(np.argsort(ours.score(images)), np.argsort(theirs.score(images)))


def test_largest_value_of_the_papers_setting():
    rng = np.random.default_rng(0)
    labels, wild = rng.standard_normal((1000, 64)), rng.standard_normal((120, 64))
    detector = Debiased(sigma=0.0, n_groups=1).fit(labels=labels, wild=wild)
    assert detector.tau_ == 0.5
    assert detector.score(labels).max() == pytest.approx(1 / (1 - 120 / 500 * 0.5), rel=1e-6)  # 1.136


@pytest.mark.parametrize("n_labels", [1, 3, 10, 50, 119])
@pytest.mark.parametrize("sigma", [0.0, 0.001])
def test_short_lists_never_invert(n_labels, sigma):
    world = planted_world(n_labels=n_labels, n_wild=1200, dim=64)
    detector = Debiased(n_groups=10, sigma=sigma, temperature=0.05).fit(labels=world.labels, wild=world.wild)
    inside, outside = detector.score(world.id_images), detector.score(world.ood_images)
    assert (inside > 0).all()
    assert (outside > 0).all()
    assert auroc(inside, outside) > 0.99
    if sigma == 0:  # the most ID-like images score highest; noise would blur the order near the top
        assert detector.score(world.labels).min() >= inside.max() * (1 - 1e-9)


def test_cap_keeps_the_weight_and_is_the_printed_formula_for_long_lists():
    for k, tau in [(3, 0.85 * 3 / 123), (10, 0.85 * 10 / 130), (100, 0.85 * 100 / 220), (172, 0.5), (1000, 0.5)]:
        world = planted_world(n_labels=k, n_wild=1200, n_images=5)
        detector = Debiased(n_groups=10).fit(labels=world.labels, wild=world.wild)
        assert detector.tau_ == pytest.approx(tau)
        assert detector.tau_ < largest_tau(k, 120)


def test_the_score_does_not_jump_with_the_number_of_labels():
    world = planted_world(n_labels=200, n_wild=1200, dim=256)
    found = [
        Debiased(n_groups=10, sigma=0.0).fit(world.labels[:k], world.wild).score(world.labels[:1])[0]
        for k in range(100, 200)
    ]
    assert np.abs(np.diff(found)).max() < 0.1


@pytest.mark.parametrize("policy", ["cap", "paper"])
def test_auto_tau_gives_words_one_weight_for_any_number_of_labels(policy):
    for k in (3, 10, 171, 172, 1000):
        world = planted_world(n_labels=k, n_wild=1200, n_images=20)
        auto = Debiased(tau="auto", n_groups=10, sigma=0.0, policy=policy).fit(world.labels, world.wild)
        assert auto.tau_ == pytest.approx(0.85 * k / (k + 120))  # by hand: .02073 at 3, .7589 at 1000
        assert 1 / (1 - auto.tau_ / largest_tau(k, 120)) == pytest.approx(1 / 0.15)
        if k < 172:  # there it is the paper's 0.5 under the cap
            half = Debiased(tau=0.5, n_groups=10, sigma=0.0).fit(world.labels, world.wild)
            np.testing.assert_allclose(auto.score(world.id_images), half.score(world.id_images), rtol=1e-12)
    given = Debiased(tau=auto.tau_, n_groups=10, sigma=0.0, policy="paper").fit(world.labels, world.wild)
    np.testing.assert_array_equal(auto.score(world.id_images), given.score(world.id_images))


def test_cap_of_a_tau_that_no_list_admits():
    world = planted_world(n_labels=10, n_wild=1200)
    detector = Debiased(n_groups=10, tau=0.99).fit(labels=world.labels, wild=world.wild)
    assert detector.tau_ == pytest.approx(0.85 * 10 / 130)
    assert np.isfinite(detector.score(world.labels)).all()


@pytest.mark.parametrize(("k", "tau"), [(10, 0.05), (10, 0.0), (599, 0.8), (1000, 0.88)])
def test_cap_leaves_alone_what_the_rule_admits(k, tau):
    world = planted_world(n_labels=k, n_wild=1200, n_images=5)
    capped, printed = (Debiased(n_groups=10, tau=tau, sigma=0.0, policy=p) for p in ("cap", "paper"))
    scores = [one.fit(world.labels, world.wild).score(world.id_images) for one in (capped, printed)]
    assert capped.tau_ == tau
    np.testing.assert_array_equal(*scores)


def test_the_tau_in_use_is_kept():
    world = planted_world(n_labels=10, n_wild=1200)
    fitted = Debiased(n_groups=10).fit(world.labels, world.wild)
    assert fitted.in_use() == {"tau": fitted.tau_}
    state = fitted.state()
    assert Debiased(n_groups=10).restore(state | {"tau": np.array([0.03])}).tau_ == 0.03  # the kept one counts
    old = {name: array for name, array in state.items() if name != "tau"}
    assert Debiased(n_groups=10).restore(old).tau_ == fitted.tau_
    for wrong in (0.08, -0.1, [0.01, 0.02]):
        with pytest.raises(InputError, match="tau must be one number up to"):
            Debiased(n_groups=10).restore(state | {"tau": np.array(wrong)})


def test_paper_policy_names_the_largest_tau():
    world = planted_world(n_labels=10, n_wild=1200)
    with pytest.raises(ParameterError, match=r"K / \(K \+ \|G\|\) = 0.07692 .* got 0.5") as error:
        Debiased(n_groups=10, policy="paper").fit(labels=world.labels, wild=world.wild)
    assert "cap" in error.value.hint
    Debiased(n_groups=10, policy="paper", tau=10 / 130).fit(labels=world.labels, wild=world.wild)


def test_noise_that_exceeds_the_bound_is_stopped():
    labels, wild = [[1.0, 0.0]], [[0.0, 1.0]]
    detector = Debiased(temperature=0.01, tau=0.5, sigma=0.5, n_groups=1, policy="paper")
    scores = [Debiased(**{**detector.params(), "seed": s}).fit(labels, wild).score([[0.3, -0.9]])[0] for s in range(20)]
    assert all(np.isfinite(s) and s > 0 for s in scores)
    world = planted_world(n_labels=10, n_wild=1200)
    for tau in (0.5, 10 / 130):
        policy = "cap" if tau == 0.5 else "paper"
        cold = Debiased(temperature=1e-3, tau=tau, sigma=0.01, n_groups=10, policy=policy).fit(world.labels, world.wild)
        assert np.isfinite(cold.score(world.id_images)).all()


def test_default_threshold_is_where_the_id_mass_is_twice_what_all_words_would_have():
    # with every e^h of a wild word equal to 1, P = 2 (K + |G|) is on the cut
    t, k, size = 1 / np.log(1e6), 6, 10
    words = np.tile([0.0, 1.0, 0.0], (3 * size, 1))  # cos = 0: e^h = 1
    cos = np.log(2 * (k + size) / k) * t
    labels = np.tile([cos, 0.0, np.sqrt(1 - cos**2)], (k, 1))
    for method in (NegLabel, Debiased):
        params = {"sigma": 0.0} if method is Debiased else {}
        detector = method(temperature=t, n_groups=3, **params).fit(labels, words)
        assert detector.score([[1.0, 0.0, 0.0]])[0] == pytest.approx(detector.default_threshold_)
    assert MaxLogit().fit(labels).default_threshold_ is None


def test_groups_are_dealt_once_from_the_seed():
    world = planted_world()
    first, second = (Debiased(seed=s, n_groups=7).fit(labels=world.labels, wild=world.wild) for s in (0, 1))
    assert not np.array_equal(first.groups_, second.groups_)
    assert first.groups_.shape == (7, 600 // 7)
    assert first.groups_.max() < 600 - 600 % 7  # the remainder is dropped from the tail
    assert len(np.unique(first.groups_)) == first.groups_.size


def test_label_only_methods_by_hand():
    labels, image = [[1.0, 0.0], [0.0, 1.0]], [[0.6, 0.8]]
    assert MaxLogit().fit(labels).score(image)[0] == pytest.approx(0.8)
    assert MSP(temperature=0.1).fit(labels).score(image)[0] == pytest.approx(np.e**2 / (1 + np.e**2))
    assert MCM().fit(labels).score(image)[0] == pytest.approx(np.e**0.2 / (1 + np.e**0.2))
    assert Energy(temperature=0.2).fit(labels).score(image)[0] == pytest.approx(np.log(np.e**3 + np.e**4))
    assert NegLabel(temperature=0.2, n_groups=1).fit(labels[:1], labels[1:]).score(image)[0] == pytest.approx(
        1 / (1 + np.e)
    )


def test_limits_and_reductions_of_label_only_methods():
    world = planted_world()
    top = MaxLogit().fit(world.labels).score(world.id_images)
    cold = Energy(temperature=1e-4).fit(world.labels).score(world.id_images) * 1e-4
    np.testing.assert_allclose(cold, top, atol=1e-3)  # energy tends to the largest logit
    same = MSP(temperature=1.0).fit(world.labels).score(world.id_images)
    np.testing.assert_array_equal(MCM().fit(world.labels).score(world.id_images), same)
    hot = MCM(temperature=1e9).fit(world.labels).score(world.id_images)
    np.testing.assert_allclose(hot, 1 / len(world.labels))  # everything is equal when it is hot
    far = NegLabel(n_groups=1).fit(world.labels, -world.id_images[:1]).score(world.id_images[:1])
    assert far == pytest.approx(1)  # words far away take no mass


@settings(max_examples=60, deadline=None)
@given(
    k=st.integers(1, 40),
    n_wild=st.integers(1, 200),
    tau=st.floats(0, 0.999),
    temperature=st.floats(1e-3, 2),
    seed=st.integers(0, 5),
    data=st.data(),
)
def test_any_label_list_gives_finite_positive_scores(k, n_wild, tau, temperature, seed, data):
    n_groups = data.draw(st.integers(1, n_wild))
    world = planted_world(n_labels=k, n_wild=n_wild, n_images=10, dim=8, seed=seed)
    detector = Debiased(temperature=temperature, tau=tau, n_groups=n_groups, seed=seed)
    detector.fit(labels=world.labels, wild=world.wild)
    scores = detector.score(np.concatenate([world.labels, world.id_images, -world.labels]))
    assert (scores >= 0).all()
    assert not np.isnan(scores).any()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"tau": 1.0}, "tau must be a number of at least 0 and below 1, got 1.0"),
        ({"tau": -0.1}, "tau must be"),
        ({"tau": float("nan")}, "tau must be"),
        ({"tau": "best"}, "tau must be .* got 'best'"),
        ({"tau": True}, "tau must be"),
        ({"sigma": -1.0}, "sigma must be"),
        ({"temperature": 0.0}, "temperature must be a number of at least 1e-06, got 0.0"),
        ({"policy": "hope"}, "policy must be"),
        ({"n_groups": 0}, "n_groups must be between 1 and the number of wild words"),
        ({"n_groups": 601}, r"\(600\), got 601"),
        ({"n_groups": 1.5}, "n_groups must be"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_bad_parameters(params, message):
    world = planted_world()
    with pytest.raises(ParameterError, match=message) as error:
        Debiased(**params).fit(labels=world.labels, wild=world.wild)
    assert error.value.hint


@pytest.mark.parametrize(
    ("labels", "wild", "groups", "message"),
    [
        ([], [[1.0]], None, "needs labels, got none"),
        (np.zeros((0, 2)), [[1.0, 0]], None, "at least one row"),
        ([[1.0, 0]], None, None, "needs wild words"),
        ([[1.0, 0]], np.zeros((0, 2)), None, "needs wild words"),
        ([[1.0, 0]], [[1.0, 0, 0]], None, "must have 2 columns"),
        ([[0.0, 0]], [[1.0, 0]], None, "zero row"),
        ([[np.nan, 0]], [[1.0, 0]], None, "finite"),
        ([["a", "b"]], [[1.0, 0]], None, "numbers"),
        ([[1.0, 0]], [[1.0, 0]], [[5]], "from 0 to 0"),
        ([[1.0, 0]], [[1.0, 0]], [0], "n_groups, size"),
    ],
)
def test_bad_vectors(labels, wild, groups, message):
    with pytest.raises(InputError, match=message):
        Debiased(n_groups=1).fit(labels=labels, wild=wild, groups=groups)


def test_score_before_fit_and_with_wrong_columns():
    with pytest.raises(OutwordError, match="must be fitted"):
        Debiased().score([[1.0]])
    with pytest.raises(InputError, match="images must have 2 columns"):
        MaxLogit().fit([[1.0, 0.0]]).score([[1.0, 0.0, 0.0]])


def test_whole_numbers_are_vectors_too():
    assert MaxLogit().fit([[3, 4]]).score([[3, 4]]) == pytest.approx([1.0])
