"""Moments of columns, against NumPy and scikit-learn, for any division of rows and container."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from rankcore._core.inputs import as_rows
from rankcore._core.standardization import Moments, Units
from strategies import examples

pytestmark = pytest.mark.kernel


def table(n=200, d=6, seed=0, zeros=0.3):
    """Columns of different means and deviations, with some zeros."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, size=d) + rng.normal(size=d) * 100
    return X * (rng.random((n, d)) >= zeros)


def moments(X, weights=None):
    """Return the moments of rows."""
    return Moments(X.shape[1]).add(as_rows(X), weights)


def same_bits(one, other):
    """Return whether two moments are the same, bit for bit."""
    mine, theirs = (part.columns.tobytes() + part.totals.tobytes() for part in (one, other))
    return mine == theirs


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True], ids=["alike", "weighted"])
def test_moments_equal_those_of_numpy(weighted, dtype):
    X = table().astype(dtype)
    weights = np.random.default_rng(1).exponential(size=len(X)) if weighted else None
    found = moments(X, weights)
    exact = X.astype(np.longdouble)
    share = np.ones(len(X)) if weights is None else weights
    mean = np.average(exact, axis=0, weights=share)
    variance = np.average((exact - mean) ** 2, axis=0, weights=share)
    np.testing.assert_allclose(found.means(), mean.astype(float), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.variances(), variance.astype(float), rtol=1e-12)
    assert found.n_rows == len(X)
    assert found.totals[2] == np.count_nonzero(X)


@pytest.mark.parametrize("deviations", [1e4, 1e8])
@pytest.mark.parametrize("outlier", [False, True], ids=["smooth", "outlier first"])
def test_mean_many_deviations_from_zero_loses_no_digits(deviations, outlier):
    z = np.random.default_rng(0).normal(size=(5000, 1))
    X = z + deviations
    X[0] += 100 * outlier
    found = moments(X)
    exact = X.astype(np.longdouble)
    np.testing.assert_allclose(found.variances(), exact.var(axis=0).astype(float), rtol=1e-9)
    np.testing.assert_allclose(
        (found.means() - deviations), (exact - deviations).mean(axis=0).astype(float), atol=1e-7
    )


@given(seed=st.integers(0, 1000), cuts=st.lists(st.integers(0, 200), max_size=6))
@settings(max_examples=examples(30), deadline=None)
def test_division_and_container_do_not_change_a_bit(seed, cuts):
    X = table(seed=seed)
    weights = np.random.default_rng(seed).integers(0, 3, size=len(X)).astype(float)
    whole = moments(X, weights)
    explicit = sp.csr_array(X)
    explicit.data[: len(explicit.data) // 3] = 0  # stored zeros are zeros
    dense = moments(explicit.toarray(), weights)
    assert same_bits(moments(explicit, weights), dense)
    found, rows = Moments(X.shape[1]), as_rows(X)
    edges = [0, *sorted(cuts), len(X)]
    for start, stop in pairwise(edges):
        found.add(rows, weights, start, stop)
    assert same_bits(found, whole)


def test_rows_of_weight_zero_add_nothing():
    X = table()
    weights = np.arange(len(X)) % 3 > 0
    assert same_bits(moments(X, weights.astype(float)), moments(X[weights]))


def test_parts_combine_and_are_removed():
    X = table(n=300)
    X[:120, 2] = 0  # a column that the first part does not have
    first, second, whole = moments(X[:120]), moments(X[120:]), moments(X)
    together = first.copy().combine(second)
    np.testing.assert_allclose(together.means(), whole.means(), rtol=1e-12)
    np.testing.assert_allclose(together.variances(), whole.variances(), rtol=1e-12)
    assert together.totals.tolist() == whole.totals.tolist()
    rest = together.combine(first, sign=-1)
    np.testing.assert_allclose(rest.means(), second.means(), rtol=1e-9)
    np.testing.assert_allclose(rest.variances(), second.variances(), rtol=1e-9)
    empty = Moments(6).combine(whole)
    assert empty.units().center.tolist() == whole.units().center.tolist()


@pytest.mark.parametrize("centered", [True, False])
def test_units_equal_those_of_a_standard_scaler(centered):
    X = table()
    X[:, 1] = 7  # constant
    X[:, 3] = 0
    units = moments(X).units(centered)
    if centered:
        scaler = StandardScaler().fit(X)
        np.testing.assert_allclose(units.center, scaler.mean_, rtol=1e-12)
        np.testing.assert_allclose(units.deviation, scaler.scale_, rtol=1e-12)
        assert not units.standardize(as_rows(X))[:, 1].any()
    else:
        expected = np.sqrt(np.mean(X**2, axis=0))
        expected[3] = 1
        assert not units.center.any()
        np.testing.assert_allclose(units.deviation, expected, rtol=1e-12)


def test_binary_columns_are_not_scaled():
    X = (np.random.default_rng(0).random((64, 3)) < 0.6).astype(float)
    X[:, 1] = 1
    assert moments(X).units().are_raw
    half = moments(X[:32]).combine(moments(X[32:]))
    assert half.units().are_raw
    X[-1, 0] = 2
    units = moments(X).units()
    assert units.deviation[0] == pytest.approx(X[:, 0].std())
    assert units.deviation[1:].tolist() == [1, 1]
    assert units.center[1:].tolist() == [0, 0]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_sparse_rows_are_not_standardised(form):
    X = np.zeros((32, 16))
    X.reshape(-1)[::8] = np.arange(64) + 2.0
    assert moments(form(X)).units().are_raw
    X[0, 1] = 5
    assert not moments(form(X)).units().are_raw


def test_standardized_rows_have_the_same_bits_in_any_container():
    X = table()
    units = moments(X).units()
    dense = units.standardize(as_rows(X))
    assert np.array_equal(units.standardize(as_rows(sp.csr_array(X))), dense)
    np.testing.assert_allclose(dense, (X - units.center) / units.deviation, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(dense, StandardScaler().fit_transform(X), rtol=1e-9, atol=1e-9)
    order = np.array([3, 1, 3], dtype=np.int32)
    assert np.array_equal(units.standardize(as_rows(X), order), dense[order])
    single = X.astype(np.float32)
    assert np.array_equal(
        units.standardize(as_rows(single)), units.standardize(as_rows(single.astype(np.float64)))
    )


def test_mean_square_equals_that_of_standardized_rows():
    X = table()
    X[:, 0] = X[:, 0] != 0  # left alone
    X[:, 1] = 3
    found = moments(X)
    for units in (found.units(), found.units(centered=False), Units.raw(6)):
        z = units.standardize(as_rows(X))
        assert found.mean_square(units) == pytest.approx(np.mean(np.sum(z**2, axis=1)), rel=1e-9)


def test_overflowing_squares_are_detected():
    assert moments(table()).finite
    assert not moments(np.array([[1e300, 1.0], [-1e300, 2.0]])).finite
    assert moments(np.full((3, 2), 1e300)).finite  # constant


def test_mismatched_arrays_are_rejected():
    with pytest.raises(ValueError, match="do not match|are inconsistent"):
        Moments(5).add(as_rows(table()))
    with pytest.raises(ValueError, match="do not match|are inconsistent"):
        Moments(6).add(as_rows(table()), np.ones(3))
    with pytest.raises(ValueError, match="shape"):
        Moments(6, np.zeros((3, 6))).add(as_rows(table()))
    with pytest.raises(ValueError, match="no row 200"):
        Units.raw(6).standardize(as_rows(table()), np.array([200], dtype=np.int32))
