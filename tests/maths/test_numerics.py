"""The reference arithmetic, and the kernels against it."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outword.errors import InputError
from outword.maths.kernels.numpy_blas import Bank
from outword.maths.numerics import all_finite, check_directions, grouped_log_sum_exp, log_sum_exp, unit_rows


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 40), st.lists(st.integers(1, 9), min_size=1, max_size=12), st.sampled_from([1e-3, 0.01, 1.0]))
def test_kernel_equals_reference(n_images, sizes, temperature):
    rng = np.random.default_rng(n_images)
    images, bank = unit_rows(rng.standard_normal((n_images, 5))), unit_rows(rng.standard_normal((sum(sizes), 5)))
    offsets = np.cumsum([0, *sizes])
    groups = [np.arange(a, b) for a, b in pairwise(offsets)]
    expected = grouped_log_sum_exp(images @ bank.T / temperature, groups)
    for block in (1, 3, 256):
        found = Bank(bank, offsets, temperature=temperature).log_masses(images, block=block)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_log_sum_exp_does_not_overflow():
    assert log_sum_exp(np.array([[1000.0, 1000.0]]))[0] == pytest.approx(1000 + np.log(2))
    assert log_sum_exp(np.array([[-1000.0, -1000.0]]))[0] == pytest.approx(-1000 + np.log(2))


def test_unit_rows_leaves_unit_rows_within_the_tolerance():
    row = np.array([[1 + 1e-8, 0.0]])
    assert unit_rows(row, tolerance=1e-6)[0, 0] == 1 + 1e-8
    assert unit_rows(row)[0, 0] == 1
    with pytest.raises(InputError, match="row 1 is zero"):
        unit_rows([[1.0], [0.0]])


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 200])
def test_unit_rows_are_the_same_bits_in_blocks_and_into_an_array(rows):
    x = np.random.default_rng(0).normal(size=(rows, 33)).astype(np.float16)
    wide = x.astype(np.float64)
    wanted = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    out = np.empty((rows + 2, 33))
    assert unit_rows(x, out=out[2:]) is not None
    assert np.array_equal(unit_rows(x), wanted) and np.array_equal(out[2:], wanted)


def test_a_zero_row_is_named_by_its_place():
    x = np.ones((100, 3))
    x[77] = 0
    for check in (unit_rows, lambda values: check_directions(values, "vectors")):
        with pytest.raises(InputError, match="vectors must have no zero row, row 77 is zero"):
            check(x)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_seen_in_every_precision(wrong):
    for kind in (np.float16, np.float32, np.float64):
        x = np.array([0, -65504, 1e-7], kind)
        assert all_finite(x) and not all_finite(np.append(x, kind(wrong)))
