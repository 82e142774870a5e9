"""Thresholds: by hand, against scipy, and the conformal guarantee by simulation."""

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import beta

from helpers.reference import conformal_p_values
from outword.errors import InputError, ParameterError
from outword.maths.thresholds import by_hand, fit_marks, fit_threshold, read_threshold, share_bounds, tpr_interval


@pytest.mark.parametrize(("n", "rank"), [(5, 1), (20, 2), (500, 25), (100_000, 5000)])
def test_interval_is_the_beta_distribution(n, rank):
    np.testing.assert_allclose(tpr_interval(n, rank), beta(n - rank + 1, rank).ppf([0.05, 0.95]), atol=1e-6)


def test_quantile_by_hand():
    threshold = fit_threshold(np.arange(100.0), tpr=0.95)
    assert (threshold.value, threshold.margin) == pytest.approx((5 - 0.099, 0.099))
    assert threshold.low < 0.95 < threshold.high
    assert threshold.n_photos == 100
    assert threshold.warning == "" or "uncertain" in threshold.warning


def test_five_photos_run_with_a_warning_of_the_width():
    threshold = fit_threshold([5.0, 1.0, 3.0, 2.0, 4.0])
    assert threshold.value + threshold.margin == 1.0
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
    assert fit_threshold(np.arange(19.0), 0.95, "conformal").value == pytest.approx(-0.018)
    assert "a tpr of 1" in fit_threshold(np.arange(10.0), 1.0, "conformal").warning


@pytest.mark.parametrize("method", ["quantile", "conformal"])
def test_a_photo_that_decided_is_accepted_again_by_a_device_that_rounds_otherwise(method):
    rng = np.random.default_rng(0)
    for _ in range(12):
        scores = 30 + rng.standard_normal(rng.integers(25, 60))
        threshold = fit_threshold(scores, 0.95, method)
        again = scores + 1e-4 * rng.uniform(-1, 1, len(scores))
        np.testing.assert_array_equal(again >= threshold.value, scores >= threshold.value + threshold.margin)
    assert fit_threshold([1.0] * 6).margin == 0  # nothing tells what is small


def test_the_margin_stops_before_the_next_score():
    threshold = fit_threshold([*np.arange(2.0, 21.0), 2.0001], tpr=0.95)
    assert threshold.value == pytest.approx(2.00005)


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


@pytest.mark.parametrize(
    ("inside", "outside", "cut", "value"),
    [
        ([3, 4], [1], 2.5, 2.5),  # nothing is wrong: nothing moves
        ([3, 4], [1], 0.5, 2.0),  # the middle between the two around it
        ([3, 4], [1], 9.0, 2.0),
        ([3, 4], [], 5.0, 3.0),  # only as far as it must
        ([3, 4], [], 1.0, 1.0),
        ([], [2], 1.0, np.nextafter(2, 9)),
        ([], [2], 5.0, 5.0),
        ([3, 3.5, 4], [1, 3.2], 2.0, 2.0),  # one mistake is left, wherever it goes: it stays
        ([1], [2], 5.0, 5.0),  # two places with one mistake each: the nearer
        ([1], [2], 0.5, 0.5),
        ([3], [], -np.inf, -np.inf),  # everything is accepted already
        ([3], [2], -np.inf, 2.5),
        ([5], [1], None, 3.0),  # a method without a cut of its own
        ([5], [], None, 5.0),
    ],
)
def test_marks_by_hand(inside, outside, cut, value):
    assert fit_marks(inside, outside, cut).value == value


@given(
    inside=st.lists(st.integers(-5, 5), max_size=6),
    outside=st.lists(st.integers(-5, 5), max_size=6),
    cut=st.none() | st.integers(-6, 6),
)
def test_marks_make_the_fewest_mistakes(inside, outside, cut):
    assume(inside or outside)

    def mistakes(t):
        return sum(s < t for s in inside) + sum(s >= t for s in outside)

    threshold = fit_marks(inside, outside, cut)
    assert mistakes(threshold.value) == min(mistakes(t) for t in np.arange(-6, 6.25, 0.25))
    assert cut is None or mistakes(cut) > mistakes(threshold.value) or threshold.value == cut
    assert 0 <= threshold.low <= threshold.high <= 1


def test_the_interval_of_marks_is_that_of_clopper_and_pearson():
    threshold = fit_marks([1, 5, 6, 7], [3, 3, 3], cut=4.0)
    assert (threshold.tpr, threshold.n_photos, threshold.n_others) == (0.75, 4, 3)
    assert threshold.low == pytest.approx(beta.ppf(0.05, 3, 2))
    assert threshold.high == pytest.approx(beta.ppf(0.95, 4, 1))
    none = fit_marks([], [3], cut=4.0)
    assert (none.tpr, none.low, none.high) == (None, 0, 1)


def test_without_a_tpr_both_errors_are_balanced():
    inside, outside = np.arange(10.0), np.arange(-16.0, 4.0)
    found = fit_threshold(inside, None, others=outside)
    assert (inside < found.value).mean() == pytest.approx((outside >= found.value).mean(), abs=0.1)
    assert found.tpr == (inside >= found.value).mean() and (found.n_photos, found.n_others) == (10, 20)
    assert (found.low, found.high) == share_bounds(10, int((inside >= found.value).sum()))
    assert (
        found.told == "both errors equal on 10 photos of the classes and 20 of other things"
        and found.basis == "calibrated"
    )
    assert read_threshold(asdict(found)) == found
    with pytest.raises(InputError, match="outside must be a non-empty"):
        fit_threshold(inside, None)


@pytest.mark.parametrize(("inside", "outside"), [([], []), ([np.nan], []), ([1], [np.inf]), ([[1]], [])])
def test_marks_must_be_scores(inside, outside):
    with pytest.raises(InputError, match="marks must be finite scores"):
        fit_marks(inside, outside, 0.0)


def test_a_threshold_says_how_it_was_found():
    assert fit_threshold(np.arange(20), 0.95).told == "quantile at a TPR of 95% from 20 photos"
    assert fit_marks([1, 2], [0], 3.0).told == "from marks: 2 of the classes, 1 of other things"
    assert by_hand(2).told == "set by hand"
    assert by_hand(2).warning == ""
    with pytest.raises(ParameterError, match="threshold must be a finite number, got nan"):
        by_hand(float("nan"))


@pytest.mark.parametrize(
    ("others", "score"),
    [
        ([0.0], 1),  # all photos are right, and none of the others
        ([1.5], 2),  # one of ten photos, as the TPR allows, for the other one
        ([1.0], 2),  # which is as high as a photo
        ([5.5], 1),  # no threshold may keep it out: then as many photos as possible
        ([5.5, 1.5], 2),
        ([2.0], 1),
    ],
)
def test_others_by_hand(others, score):
    found = fit_threshold(np.arange(1.0, 11.0), tpr=0.9, others=others)
    assert found.value + found.margin == pytest.approx(score) and 0 < found.margin <= 0.01
    assert (found.n_photos, found.n_others, found.tpr) == (10, len(others), 0.9)


@given(
    photos=st.lists(st.integers(-5, 5), min_size=5, max_size=9),
    others=st.lists(st.integers(-5, 5), min_size=1, max_size=6),
    tpr=st.sampled_from([0.5, 0.8, 0.95]),
    method=st.sampled_from(["quantile", "conformal"]),
)
def test_few_others_first_then_many_photos(photos, others, tpr, method):
    def lost(t):
        return sum(s >= t for s in others), sum(s < t for s in photos)

    highest, found = (fit_threshold(photos, tpr, method, given) for given in ((), others))
    allowed = [t for t in np.arange(-6, 6, 0.5) if t <= highest.value + highest.margin + 1e-9]
    assert found.value <= highest.value + highest.margin
    assert lost(found.value) == min(map(lost, allowed), default=lost(-np.inf))
    assert 0 <= found.low <= found.high <= 1


def test_others_are_told_and_must_be_scores():
    assert fit_threshold(np.arange(20), 0.95, others=[-1.0] * 3).told == (
        "quantile at a TPR of 95% from 20 photos and 3 of other things"
    )
    with pytest.raises(InputError, match="others must be"):
        fit_threshold(np.arange(20), others=[np.nan])
    assert fit_threshold(np.arange(9.0), 0.95, "conformal", others=[1.0]).value == -np.inf
