"""Thresholds: by hand, against scipy, and the conformal guarantee by simulation."""

import numpy as np
import pytest
from scipy.stats import beta

from outword.calibrate import conformal_p_values, fit_threshold, tpr_interval
from outword.errors import InputError, ParameterError


@pytest.mark.parametrize(("n", "rank"), [(5, 1), (20, 2), (500, 25), (100_000, 5000)])
def test_interval_is_the_beta_distribution(n, rank):
    np.testing.assert_allclose(tpr_interval(n, rank), beta(n - rank + 1, rank).ppf([0.05, 0.95]), atol=1e-6)


def test_quantile_by_hand():
    threshold = fit_threshold(np.arange(100.0), tpr=0.95)
    assert threshold.value == 5.0
    assert threshold.low < 0.95 < threshold.high
    assert threshold.n_photos == 100
    assert threshold.warning == "" or "uncertain" in threshold.warning


def test_five_photos_run_with_a_warning_of_the_width():
    threshold = fit_threshold([5.0, 1.0, 3.0, 2.0, 4.0])
    assert threshold.value == 1.0
    assert "5 photos leave the threshold uncertain" in threshold.warning
    assert "between 0.55 and 0.99" in threshold.warning


def test_many_photos_need_no_warning():
    assert fit_threshold(np.random.default_rng(0).random(2000)).warning == ""


def test_conformal_guarantee_by_simulation():
    # P(accept an ID image) >= tpr, over calibration sets and test images; and not wasteful: <= tpr + 1/(n+1)
    rng, n, tpr, runs = np.random.default_rng(0), 30, 0.9, 20_000
    scores = rng.standard_normal((runs, n + 1))
    accepted = [fit_threshold(row[:n], tpr, "conformal").value <= row[n] for row in scores[:4000]]
    error = 3 * np.sqrt(tpr * (1 - tpr) / 4000)
    assert tpr - error <= np.mean(accepted) <= tpr + 1 / (n + 1) + error
    p = np.array([conformal_p_values(row[:n], row[n:])[0] for row in scores])
    for level in (0.05, 0.1, 0.5):
        assert (p <= level).mean() <= level + 3 * np.sqrt(level / runs)


def test_conformal_agrees_with_its_p_values():
    rng = np.random.default_rng(1)
    cal, new = rng.random(50), rng.random(200)
    threshold = fit_threshold(cal, 0.9, "conformal")
    np.testing.assert_array_equal(conformal_p_values(cal, new) > 0.1, new >= threshold.value)


def test_conformal_with_too_few_photos_accepts_everything_and_says_so():
    threshold = fit_threshold(np.arange(10.0), 0.95, "conformal")
    assert threshold.value == -np.inf
    assert "bring at least 19 photos" in threshold.warning
    assert fit_threshold(np.arange(19.0), 0.95, "conformal").value == 0.0
    assert "a tpr of 1" in fit_threshold(np.arange(10.0), 1.0, "conformal").warning


def test_bad_input():
    with pytest.raises(InputError, match="at least 5 readable ID photos, got 4"):
        fit_threshold([1.0] * 4)
    with pytest.raises(InputError, match="at least 5"):
        fit_threshold([np.nan] * 6)
    for method in ("quantile", "conformal"):
        with pytest.raises(ParameterError, match="tpr must be"):
            fit_threshold(np.arange(6.0), 1.5, method)
    with pytest.raises(ParameterError, match="method must be"):
        fit_threshold(np.arange(6.0), 0.9, "magic")
