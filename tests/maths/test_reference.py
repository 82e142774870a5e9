"""What scores of unrelated photos give: p-values and what they promise, cuts, and thresholds made of them."""

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outword.errors import InputError, ParameterError
from outword.maths.reference import balanced_cut, look_unrelated, p_values, reference_cut, share_let_in
from outword.maths.thresholds import Threshold, by_hand, fit_reference, fit_threshold, measured, read_threshold

SCORES = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=8)


@given(scores=SCORES, reference=SCORES)
def test_p_values_are_counted(scores, reference):
    slow = [(1 + sum(r >= s for r in reference)) / (len(reference) + 1) for s in scores]
    np.testing.assert_array_equal(p_values(scores, sorted(reference)), slow)


def test_without_a_reference_nothing_is_unusual():
    assert p_values([-1.0, 9.0], []).tolist() == [1, 1]


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("n", [7, 40])
def test_the_promise_of_p_values_by_simulation(n, rounded):
    runs = 20_000
    drawn = np.random.default_rng(n).standard_normal((runs, n + 1))
    scores = drawn.round(0) if rounded else drawn  # ties
    p = np.array([p_values(row[n:], np.sort(row[:n]))[0] for row in scores])
    for level in (1 / (n + 1), 0.05, 0.25, 0.5):
        assert (p <= level).mean() <= level + 3 * np.sqrt(level / runs)
    assert rounded or (p <= 0.5).mean() > 0.5 - 1 / (n + 1) - 0.02  # and not wasteful


def test_photos_of_another_kind_break_the_promise():
    rng = np.random.default_rng(0)
    reference = np.sort(rng.standard_normal(1000))
    assert (p_values(1 + rng.standard_normal(2000), reference) <= 0.05).mean() > 0.2


@given(reference=SCORES, fpr=st.sampled_from([0.0, 0.05, 0.25, 0.5, 0.9]))
def test_the_cut_is_the_smallest_that_lets_no_more_in(reference, fpr):
    cut = reference_cut(reference, fpr)
    assert share_let_in(reference, cut) <= fpr
    assert share_let_in(reference, np.nextafter(cut, -np.inf)) > fpr


def test_reference_cut_by_hand():
    values = np.arange(1.0, 101.0)
    assert reference_cut(values) == np.nextafter(95.0, 100)
    assert reference_cut(values, 0.29) == np.nextafter(71.0, 100)
    assert reference_cut(values, 0.0) == np.nextafter(100.0, 200)
    assert reference_cut([1.0, 2.0, 2.0, 2.0], 0.5) == np.nextafter(2.0, 3)  # equal scores stay out together


@pytest.mark.parametrize("fpr", [-0.1, 1.0, np.nan])
def test_a_share_that_is_none_is_refused(fpr):
    with pytest.raises(ParameterError, match="fpr must be at least 0 and under 1"):
        reference_cut([1.0, 2.0], fpr)


@pytest.mark.parametrize(
    ("reference", "pseudo", "cut"),
    [
        ([0, 1], [3, 9], 2.0),  # separable: the middle of the gap
        ([1], [1], 1.0),
        ([0, 1, 2, 5], [3, 4, 6, 7], 3.5),  # a quarter is wrong on both sides
        ([0, 4], [1, 2, 3, 5], 2.5),  # a half is
        ([3, 4], [1, 2], 2.5),  # all is wrong, equally
        ([0] * 9, [0, 1, 1, 1], np.nextafter(0, 1)),  # equal scores: all nine, or one of four
        ([0, 1, 1, 1], [1] * 9, 1.0),
    ],
)
def test_balanced_cut_by_hand(reference, pseudo, cut):
    assert balanced_cut(reference, pseudo) == cut


@given(reference=SCORES, pseudo=SCORES)
def test_the_balanced_cut_has_the_smallest_difference(reference, pseudo):
    def difference(cut):
        return abs(np.mean(np.array(reference) >= cut) - np.mean(np.array(pseudo) < cut))

    places = np.arange(-5, 5.25, 0.25)
    cut = balanced_cut(reference, pseudo)
    assert difference(cut) == pytest.approx(min(map(difference, places)))
    equal = [place for place in places if difference(place) == difference(cut) == 0]
    assert not equal or min(equal) - 0.25 <= cut <= max(equal)


@given(reference=SCORES, pseudo=SCORES, seed=st.integers(0, 9))
def test_the_balanced_cut_moves_no_further_than_the_scores(reference, pseudo, seed):
    rng = np.random.default_rng(seed)
    moved = [side + 0.1 * rng.uniform(-1, 1, len(side)) for side in (reference, pseudo)]
    assert abs(balanced_cut(*moved) - balanced_cut(reference, pseudo)) <= 0.1 + 1e-9


@pytest.mark.parametrize("values", [[], [np.nan], [[1.0]]])
def test_scores_must_be_some(values):
    for ask in (reference_cut, lambda v: balanced_cut(v, [1.0]), lambda v: share_let_in(v, 0.0)):
        with pytest.raises(InputError, match="reference must be a non-empty"):
            ask(values)


def test_a_threshold_of_a_reference():
    unrelated, named = np.arange(100.0), np.arange(80.0, 180.0)
    found = fit_reference(unrelated, named)
    assert (found.value, found.tpr, found.fpr, found.target_fpr) == (89.5, 0.9, 0.1, None)
    assert (found.basis, found.warning) == ("reference", "")
    assert found.told == "both errors equal on 100 unrelated and 100 labelled reference photos"
    apart = fit_reference(unrelated, np.arange(150.0, 250.0))  # balanced it would be about 124: stricter than need be
    assert (apart.value, apart.fpr, apart.tpr, apart.target_fpr) == (reference_cut(unrelated), 0.05, 1.0, 0.05)
    asked = fit_reference(unrelated, named, fpr=0.02)
    assert (asked.fpr, asked.tpr, asked.target_fpr) == (0.02, 0.82, 0.02)
    assert asked.told == "lets in 2% of 100 unrelated photos"
    batch = fit_reference(unrelated, method="batch")
    assert (batch.basis, batch.tpr, batch.fpr, batch.target_fpr) == ("batch", None, None, 0.05)
    assert batch.told.startswith("lets in 5% of 100 photos of this batch that look unrelated; how many unrelated")
    assert read_threshold(asdict(batch)) == batch
    assert read_threshold({**asdict(batch), "fpr": 0.05}).fpr == 0.05  # as older versions wrote it


@pytest.mark.parametrize("found", [fit_reference([1.0], [2.0]), fit_reference([1.0], fpr=0.1, method="batch")])
def test_it_is_read_back(found):
    assert read_threshold(asdict(found)) == found


def test_a_table_of_before_there_were_references_is_read():
    old = fit_threshold(np.arange(20.0))
    new = ("fpr", "target_fpr", "n_reference")
    assert read_threshold({key: value for key, value in asdict(old).items() if key not in new}) == old
    assert old.basis == Threshold(1.0, "hand", None, 0, 0.0, 1.0).basis == "calibrated"


@pytest.mark.parametrize(
    "change", [{"fpr": None}, {"fpr": 1.5}, {"target_fpr": 1.0}, {"n_reference": -1}, {"n_photos": -1}, {"tpr": -0.1}]
)
def test_a_table_that_is_none_is_refused(change):
    with pytest.raises(ValueError, match="must"):
        read_threshold({**asdict(fit_reference([1.0], [2.0])), **change})


def test_photos_that_look_unrelated():
    reference = np.arange(99.0)
    scores = [0.0, 94.0, 94.5, 95.0, 200.0]
    assert look_unrelated(scores, reference).tolist() == [True, True, False, False, False]
    assert look_unrelated([1e9], np.arange(10.0)).tolist() == [True]  # ten photos cannot tell


def test_a_threshold_of_the_users_own_says_when_it_lets_much_in():
    reference = np.arange(1000.0)
    fitted = fit_threshold(np.arange(500.0, 2500.0))
    assert (fitted.warning, fitted.fpr) == ("", None)
    wide = measured(fitted, reference)
    assert (wide.fpr, wide.n_reference, wide.value) == (0.4, 1000, fitted.value)
    assert wide.warning == "it lets in 40% of 1,000 unrelated photos"
    assert measured(by_hand(900.0), reference).warning == ""  # a tenth
    assert measured(by_hand(899.0), reference).warning == "it lets in 10% of 1,000 unrelated photos"
    few = measured(fit_threshold(np.arange(5.0)), reference)
    assert few.warning.startswith("5 photos leave the threshold uncertain")
    assert few.warning.endswith("; it lets in 100% of 1,000 unrelated photos")
    assert measured(fitted, None) is fitted
    assert read_threshold(asdict(wide)) == wide
