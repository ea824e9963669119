"""Columns at the limits of float64: learners that standardise them, against long doubles."""

import inspect
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import rankcore as rc
from rankcore._core.declaration import public_learners

pytestmark = [pytest.mark.kernel, pytest.mark.filterwarnings("ignore:.*squares vanish")]

N, D = 200, 5
EXACT = np.longdouble
QID = np.repeat(np.arange(N // 20), 20)
# What is put in place of a column of mean 0 and deviation 1.
COLUMNS = {
    "as it is": lambda z: z,
    "constant 1e150": lambda z: np.full_like(z, 1e150),
    "constant 1e200": lambda z: np.full_like(z, 1e200),
    "constant 1e-310": lambda z: np.full_like(z, 1e-310),
    "constant 0.1": lambda z: np.full_like(z, 0.1),
    "mean of 1e9 deviations": lambda z: 1e9 + z,
    "mean of 1e11 deviations": lambda z: 1e11 + z,
    "deviation 1e140": lambda z: 1e140 * z,
    "deviation 1e-140": lambda z: 1e-140 * z,
    "whole numbers near 2^62": lambda z: 2.0**62 + np.round(1e8 * z),
    "rounding errors of 2^62": lambda z: 2.0**62 + 1024 * (z > 0),
    "whole numbers up to 2^63": lambda z: np.round(2.0**60 * z),
    "one value of 1e140": lambda z: np.where(np.arange(N) == 7, 1e140, z),
}
each_column = pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
each_form = pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])


def learners():
    """Return the public learners that standardise rows."""
    found = [
        one
        for one in public_learners()
        if "standardize" in inspect.signature(one).parameters and one is not rc.RankSVMCV
    ]
    return {one.__name__: one(random_state=0) for one in found}


each_learner = pytest.mark.parametrize("learner", learners().values(), ids=learners())


def table():
    """Rows of mean 0 and deviation 1, and labels."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(N, D))
    y = np.digitize(Z @ rng.normal(size=D) + 0.3 * rng.normal(size=N), [-1.5, -0.5, 0.5, 1.5])
    return Z, y


def standardized(X, weights=None):
    """Return columns of mean 0 and deviation 1, computed in long doubles; constants are 0."""
    share = np.ones(len(X)) if weights is None else weights
    share = share.astype(EXACT) / share.sum()
    X = X.astype(EXACT)
    mean = share @ X
    centred = X - mean
    deviation = np.sqrt(share @ centred**2)
    constant = deviation <= 1e-15 * np.abs(mean)
    centred[:, constant] = 0
    return (centred / np.where(constant, 1, deviation)).astype(float)


def learned(learner, X, y, method="fit", standardize="auto", **given):
    """Return a copy that learned rows."""
    model = type(learner)(**learner.get_params()).set_params(standardize=standardize)
    if hasattr(learner, "eval_metric") and isinstance(learner, (rc.RankSVM, rc.PairwisePerceptron)):
        given["qid"] = QID[: len(y)]
    elif method == "partial_fit":
        given["classes"] = np.arange(5)
    return getattr(model, method)(X, y, **given)


def assert_alike(model, X, expected, Z):
    """Check that predictions are those of another model, but for rounding errors."""
    found, other = model.predict(X), expected.predict(Z)
    if not isinstance(model, (rc.RankSVM, rc.PairwisePerceptron)):
        assert np.mean(found != other) <= 0.01
        return
    gaps = found - other  # of a query they are equal, as only differences of scores count
    within = np.array([np.ptp(gaps[q == QID]) for q in range(QID[-1] + 1)])
    assert within.max() <= 1e-3 * np.ptp(other)


@each_learner
@each_column
@each_form
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_fit_agrees_with_columns_standardised_in_long_doubles(learner, column, form, dtype):
    X, y = table()
    X[:, 1] = column(X[:, 1])
    n_values = np.unique(X[:, 1]).size
    with np.errstate(over="ignore"):
        X = X.astype(dtype)
    if not np.isfinite(X).all() or np.unique(X[:, 1]).size < 0.9 * n_values:
        pytest.skip("float32 does not have these values")
    Z = standardized(X)
    model = learned(learner, form(X), y)
    # A pairwise perceptron divides rows by their usual length, too.
    Z /= np.sqrt(D) if isinstance(learner, rc.PairwisePerceptron) else 1.0
    assert_alike(model, form(X), learned(learner, Z, y, standardize=False), Z)


@each_learner
@each_column
@each_form
def test_a_stream_equals_that_of_columns_standardised_in_long_doubles(learner, column, form):
    X, y = table()
    X[:, 1] = column(X[:, 1])
    if not hasattr(learner, "partial_fit"):
        pytest.skip("no streams")
    if np.abs(X).max() > 1e150 and not isinstance(learner, rc.PairwisePerceptron):
        with pytest.raises(ValueError, match="the score of row 0 overflowed"):
            learned(learner, form(X), y, "partial_fit")
        return
    if np.abs(X[:, 1]).max() == 1e140 * (column is not COLUMNS["deviation 1e140"]):
        pytest.skip("in standardised rows nothing is left of the others")
    Z = standardized(X)
    model = learned(learner, form(X), y, "partial_fit")
    assert_alike(model, form(X), learned(learner, Z, y, "partial_fit"), Z)


@each_learner
@each_form
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("mean", [0.0, 100.0])
@pytest.mark.parametrize("scale", [1e-152, 1e-158, 1e-200, 1e-310])
def test_columns_whose_squares_vanish_are_constant_with_a_warning(
    learner, form, method, scale, mean
):
    X, y = table()
    constant = X.copy()
    X[:, 1] = scale * (mean + X[:, 1])
    constant[:, 1] = 0
    if not hasattr(learner, method):
        pytest.skip("no streams")
    with pytest.warns(UserWarning, match="values of column 1 are so small"):
        model = learned(learner, form(X), y, method)
    expected = learned(learner, constant, y, method)
    assert_alike(model, form(X), expected, constant)


@each_learner
@each_form
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("scale", [1e160, 1e300])
def test_columns_whose_squares_overflow_are_an_error(learner, form, method, scale):
    X, y = table()
    X[:, 1] *= scale
    if not hasattr(learner, method):
        pytest.skip("no streams")
    with pytest.raises(ValueError, match="overflowed.* scale X"):
        learned(learner, form(X), y, method)


@each_learner
@each_form
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_one_weighted_row_and_equal_rows_are_learned(learner, form, method):
    X, y = table()
    if not hasattr(learner, method):
        pytest.skip("no streams")
    weights = np.zeros(N)
    weights[[0, np.flatnonzero(y != y[0])[0]]] = 1.0  # two rows of a query
    model = learned(learner, form(1e9 + X), y, method, sample_weight=weights)
    assert np.isfinite(model.predict(form(1e9 + X))).all()
    if method == "fit":
        Z = standardized(X, weights)
        Z /= np.sqrt(D) if isinstance(learner, rc.PairwisePerceptron) else 1.0
        expected = learned(learner, Z, y, standardize=False, sample_weight=weights)
        seen = weights > 0
        found, other = model.predict(form(1e9 + X))[seen], expected.predict(Z)[seen]
        np.testing.assert_allclose(np.diff(found), np.diff(other), rtol=1e-3)
    same = np.full((N, D), 1e9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing can be learned
        model = learned(learner, form(same), y, method)
    found = model.predict(form(same))
    assert (found == found[0]).all()


@each_learner
@pytest.mark.parametrize("dtype", [np.float16, np.int64, np.uint8])
def test_other_types_predict_as_their_values_in_float64(learner, dtype):
    X, y = table()
    X = (X * 20 + 128).astype(dtype) if dtype != np.int64 else np.int64(2**53 + X * 1e8)
    model, other = (learned(learner, one, y) for one in (X, X.astype(float)))
    np.testing.assert_array_equal(model.predict(X), other.predict(X.astype(float)))
