"""The reference arithmetic, and the kernels against it."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outword.errors import InputError
from outword.maths.kernels.numpy_blas import Bank
from outword.maths.numerics import grouped_log_sum_exp, log_sum_exp, unit_rows


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
