"""Sums of the columns of rows and of their squares, from which statistics of data sets come."""

import numpy as np
import pytest
import scipy.sparse as sp

from rankcore._core.scales import deviations_of
from rankcore._ext.column_stats import add_moments


def matrix():
    """Columns of different widths."""
    return np.random.default_rng(0).normal(size=(240, 5)) * [0.01, 1, 300, 0.2, 5] + [0, 3, 0, 0, 0]


def moments_of(X):
    """Add the values of rows that are not 0 to moments."""
    rows = sp.csr_array(X)
    moments = np.zeros((2, rows.shape[1]))
    add_moments(rows.indices.astype(np.int32), rows.data, moments)
    return moments


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_deviations_are_numpys(dtype):
    X = matrix().astype(dtype)
    found = deviations_of(moments_of(X), len(X))
    np.testing.assert_allclose(found, X.astype(np.float64).std(axis=0), rtol=1e-9, atol=1e-12)


def test_deviations_that_are_rounding_errors_or_overflow_are_0():
    X = np.column_stack([np.full(100, 0.1), 1e12 + np.arange(100.0), 1e300 * np.arange(100.0)])
    assert deviations_of(moments_of(X), 100).tolist() == [0.0, 0.0, 0.0]


def test_kernels_of_moments_check_their_arrays():
    columns, values = np.array([0, 3], np.int32), np.ones(2)
    with pytest.raises(ValueError, match="found column 3; there are 3"):
        add_moments(columns, values, np.zeros((2, 3)))
    with pytest.raises(ValueError, match="found column 0; there are 0"):
        add_moments(columns, values, np.zeros((2, 0)))
    with pytest.raises(ValueError, match="2 values do not fit 1 columns"):
        add_moments(columns[:1], values, np.zeros((2, 4)))
    with pytest.raises(ValueError, match="moments has 3 rows"):
        add_moments(columns, values, np.zeros((3, 4)))
    moments = np.zeros((2, 4))
    add_moments(columns, np.array([np.nan, -3.0]), moments)
    add_moments(columns[:0], values[:0], moments)
    assert moments.tolist() == [[0, 0, 0, -3], [0, 0, 0, 9]]
