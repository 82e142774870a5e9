"""Metrics against scikit-learn, with ties, constants, infinities and ten million scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import auc, average_precision_score, roc_auc_score, roc_curve

from outword.errors import InputError, ParameterError
from outword.maths.metrics import accepted, aupr, auroc, fpr_at_tpr, threshold_at_tpr

some = st.integers(-5, 5) | st.floats(-10, 10) | st.sampled_from([-np.inf, np.inf])
some_scores = st.lists(some, min_size=1, max_size=60).map(np.array)


def assert_as_scikit_learn(inside, outside):
    """All figures in both conventions; scikit-learn gets ranks for scores, as it refuses infinities."""
    values = np.unique(np.concatenate([inside, outside]), return_inverse=True)[1]
    truth = np.repeat([True, False], [len(inside), len(outside)])
    for positive, is_positive, ranks in (("id", truth, values), ("ood", ~truth, -values)):
        fpr, tpr, _ = roc_curve(is_positive, ranks, drop_intermediate=False)
        assert auroc(inside, outside) == pytest.approx(auc(fpr, tpr), abs=1e-12)
        first = np.argmax(tpr >= 0.95 - 1e-12)
        assert fpr_at_tpr(inside, outside, positive=positive) == pytest.approx(fpr[first], abs=1e-12)
        wanted = average_precision_score(is_positive, ranks)
        assert aupr(inside, outside, positive=positive) == pytest.approx(wanted, abs=1e-12)


@settings(max_examples=200, deadline=None)
@given(some_scores, some_scores)
def test_small_cases_against_scikit_learn(inside, outside):
    assert_as_scikit_learn(inside, outside)
    truth, finite = np.repeat([1, 0], [len(inside), len(outside)]), np.clip(np.concatenate([inside, outside]), -11, 11)
    assert auroc(inside, outside) == pytest.approx(roc_auc_score(truth, finite))


def normal(n, mean=0):
    return np.random.default_rng([mean, n]).normal(mean, 1, n)


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        pytest.param(normal(5000, 1).round(1), normal(4000).round(1), id="ties"),
        pytest.param(np.ones(300), np.ones(200), id="constant"),
        pytest.param(np.zeros(300), np.ones(200), id="two constants, the wrong way round"),
        pytest.param(np.r_[np.full(9, -np.inf), normal(80, 1), np.full(70, np.inf)], normal(90), id="infinite ID"),
        pytest.param(normal(100, 1), np.r_[np.full(70, -np.inf), normal(20), np.full(10, np.inf)], id="infinite OOD"),
        pytest.param(np.full(30, np.inf), np.r_[np.full(20, np.inf), -np.inf], id="infinite ties"),
        pytest.param(normal(100_000, 1).round(2), normal(7).round(2), id="few OOD"),
        pytest.param(normal(3, 1).round(2), normal(100_000).round(2), id="few ID"),
        pytest.param(np.array([0.5]), normal(1000), id="one ID"),
        pytest.param(normal(1000), np.array([0.5]), id="one OOD"),
        pytest.param(np.array([1.0]), np.array([1.0]), id="one each, tied"),
        pytest.param(np.array([1e-300]), np.array([0.0]), id="one each, hardly apart"),
    ],
)
def test_hard_cases_against_scikit_learn(inside, outside):
    assert_as_scikit_learn(inside, outside)


def test_ten_million_scores_against_scikit_learn():
    """float32 of scores near 8 have steps of a millionth: most of the ten million are tied."""
    inside, outside = ((8 + normal(5_000_000, mean) / 8).astype(np.float32) for mean in (1, 0))
    assert len(np.unique(np.concatenate([inside, outside]))) < 3_000_000
    assert_as_scikit_learn(inside, outside)


def test_by_hand_and_at_the_limits():
    assert auroc([1.0], [1.0]) == 0.5
    assert auroc([2.0, np.inf], [-np.inf, 1.0]) == 1.0
    assert fpr_at_tpr(np.arange(100.0), np.arange(100.0)) == 0.95
    assert threshold_at_tpr(np.arange(20.0), 0.95) == 1.0
    assert threshold_at_tpr([3.0], 1.0) == 3.0
    assert threshold_at_tpr([1.0, 2.0], 1e-12) == 2.0
    assert aupr([3.0, 1.0], [2.0]) == pytest.approx(1 / 2 * 1 + 1 / 2 * 2 / 3)
    assert aupr([3.0, 1.0], [2.0], positive="ood") == 1 / 2
    assert aupr([1.0], [1.0, 1.0, 1.0]) == 1 / 4


@pytest.mark.parametrize("n", [20, 100, 50_000, 9_999_980])
@pytest.mark.parametrize("percent", [1, 7, 29, 57, 95, 99, 100])
def test_accepted_is_not_misled_by_binary_fractions(percent, n):
    assert accepted(percent / 100, n) == -(-percent * n // 100)
    assert accepted(1 - (100 - percent) / 100, n) == -(-percent * n // 100)


def test_integers_and_float32_are_scores_too():
    assert fpr_at_tpr([1, 2, 3], np.array([0, 2], np.uint8), positive="ood") == fpr_at_tpr(
        [1.0, 2, 3], [0.0, 2], positive="ood"
    )


def test_the_two_conventions_differ():
    """The same scores are .43 in one convention and .91 in the other.

    95 of 100 ID scores are at least 2, and so are 43 of 100 OOD scores. 95 of 100 OOD scores are at most 3 (94 are at
    most 2.5), and so are 91 of 100 ID scores.
    """
    inside = np.repeat([0.0, 2.0, 4.0], [5, 86, 9])
    outside = np.repeat([1.0, 2.5, 3.0], [57, 37, 6])
    assert fpr_at_tpr(inside, outside, positive="id") == pytest.approx(0.43)
    assert fpr_at_tpr(inside, outside, positive="ood") == pytest.approx(0.91)


@pytest.mark.parametrize("bad", [[], [np.nan], [[1.0]]])
def test_bad_scores(bad):
    with pytest.raises(InputError, match="id_scores must be a non-empty"):
        auroc(bad, [1.0])
    with pytest.raises(InputError, match="ood_scores must be a non-empty"):
        aupr([1.0], bad)


def test_bad_parameters():
    with pytest.raises(ParameterError, match="tpr must be"):
        fpr_at_tpr([1.0], [1.0], tpr=0)
    with pytest.raises(ParameterError, match="positive must be"):
        fpr_at_tpr([1.0], [1.0], positive="cat")
