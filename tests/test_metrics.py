"""Metrics against scikit-learn, with ties, constants and infinities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from outword.errors import InputError, ParameterError
from outword.metrics import aupr, auroc, fpr_at_tpr, threshold_at_tpr

scores = st.lists(st.integers(-5, 5) | st.floats(-10, 10), min_size=1, max_size=60).map(np.array)


@settings(max_examples=200, deadline=None)
@given(scores, scores)
def test_against_scikit_learn(inside, outside):
    truth, values = np.repeat([1, 0], [len(inside), len(outside)]), np.concatenate([inside, outside])
    assert auroc(inside, outside) == pytest.approx(roc_auc_score(truth, values))
    assert aupr(inside, outside) == pytest.approx(average_precision_score(truth, values))
    assert aupr(inside, outside, positive="ood") == pytest.approx(average_precision_score(1 - truth, -values))
    fpr, tpr, _ = roc_curve(truth, values, drop_intermediate=False)
    assert fpr_at_tpr(inside, outside) == pytest.approx(fpr[np.argmax(tpr >= 0.95 - 1e-9)])
    fpr, tpr, _ = roc_curve(1 - truth, -values, drop_intermediate=False)
    assert fpr_at_tpr(inside, outside, positive="ood") == pytest.approx(fpr[np.argmax(tpr >= 0.95 - 1e-9)])


def test_by_hand_and_at_the_limits():
    assert auroc([1.0], [1.0]) == 0.5
    assert auroc([2.0, np.inf], [-np.inf, 1.0]) == 1.0
    assert fpr_at_tpr(np.arange(100.0), np.arange(100.0)) == 0.95
    assert threshold_at_tpr(np.arange(20.0), 0.95) == 1.0
    assert threshold_at_tpr([3.0], 1.0) == 3.0


def test_the_two_conventions_differ():
    inside, outside = np.r_[np.zeros(10), np.ones(90)], np.r_[np.full(50, -1.0), np.full(50, 0.5)]
    assert fpr_at_tpr(inside, outside, positive="id") == 0.5
    assert fpr_at_tpr(inside, outside, positive="ood") == pytest.approx(0.1)


@pytest.mark.parametrize("bad", [[], [np.nan], [[1.0]]])
def test_bad_scores(bad):
    with pytest.raises(InputError, match="id_scores must be a non-empty"):
        auroc(bad, [1.0])


def test_bad_parameters():
    with pytest.raises(ParameterError, match="tpr must be"):
        fpr_at_tpr([1.0], [1.0], tpr=0)
    with pytest.raises(ParameterError, match="positive must be"):
        fpr_at_tpr([1.0], [1.0], positive="cat")
