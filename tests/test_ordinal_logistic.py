"""Ordinal logistic regression: plain form, minimum of its loss, probabilities and sets."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import approx_fprime, minimize
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import rankcore as rc
from reference.logistic import ordinal_logistic, probabilities


def problem(n, k, seed=0, noise=1.0):
    """Rows with ranks 1 .. k of about equal frequency along one direction."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    latent = X @ [1.0, -2.0, 0.5] + noise * rng.logistic(size=n)
    cuts = np.quantile(latent, np.arange(1, k) / k)
    return X, 1 + np.searchsorted(cuts, latent)


def mean_loss(parameters, X, y, k):
    """Mean all-threshold logistic loss at weights followed by thresholds."""
    w, b = parameters[: X.shape[1]], parameters[X.shape[1] :]
    signs = np.where(y[:, None] > np.arange(1, k), 1, -1)
    return np.logaddexp(0, -signs * ((X @ w)[:, None] - b)).sum(axis=1).mean()


@pytest.mark.parametrize("step", ["decreasing", "constant"])
@pytest.mark.parametrize("form", ["dense", "float32", "csr"])
@pytest.mark.parametrize("k", [2, 3, 12])
def test_model_equals_plain_form(k, form, step):
    X, y = problem(150, k)
    X = np.where(np.abs(X) > 0.5, X, 0).astype(np.float32 if form == "float32" else np.float64)
    given = sparse.csr_array(X) if form == "csr" else X
    weights = np.random.default_rng(1).uniform(0.5, 3, 150)
    model = rc.OrdinalLogistic(step=step, standardize=False)
    model.partial_fit(given, y, sample_weight=weights)
    plain = ordinal_logistic(
        X.astype(np.float64), y, weights=weights, decreasing=step == "decreasing"
    )
    assert_allclose(model.coef_, plain["w_mean"], rtol=1e-11, atol=1e-13)
    assert_allclose(model.thresholds_, plain["b_mean"], rtol=1e-11, atol=1e-13)
    expected = probabilities(X, plain["w_mean"], plain["b_mean"])
    assert_allclose(model.predict_proba(given), expected, rtol=1e-9, atol=1e-12)


def test_step_follows_the_gradient_of_the_loss():
    k = 4
    X, y = problem(30, k)
    model = rc.OrdinalLogistic(step="constant", average=False, standardize=False)
    model.fit(X[:-1], y[:-1])
    before = np.concatenate([model.coef_, model.thresholds_])
    model.partial_fit(X[-1:], y[-1:])
    step = np.concatenate([model.coef_, model.thresholds_]) - before
    gradient = approx_fprime(before, mean_loss, 1e-7, X[-1:], y[-1:], k)
    assert_allclose(step / np.linalg.norm(step), -gradient / np.linalg.norm(gradient), atol=1e-5)


@pytest.mark.parametrize("k", [3, 8])
def test_average_approaches_the_minimum_of_the_loss(k):
    X, y = problem(2000, k)
    best = minimize(mean_loss, np.zeros(3 + k - 1), (X, y, k), method="BFGS")
    model = rc.OrdinalLogistic(eta0=0.1, step="constant", random_state=0).fit(X, y)
    found = np.concatenate([model.coef_, model.thresholds_])
    assert_allclose(found, best.x, rtol=0.05, atol=0.05)
    assert mean_loss(found, X, y, k) < best.fun * 1.001


def test_two_classes_are_logistic_regression():
    X, y = problem(3000, 2)
    model = rc.OrdinalLogistic(eta0=0.1, step="constant", random_state=0).fit(X, y)
    other = LogisticRegression(C=np.inf).fit(X, y)
    assert_allclose(model.coef_, other.coef_[0], rtol=0.05, atol=0.05)
    assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=0.02)


@pytest.mark.parametrize("loss", ["absolute", "zero_one", "squared"])
def test_prediction_minimises_the_expected_loss(loss):
    X, y = problem(400, 5)
    model = rc.OrdinalLogistic(loss=loss, random_state=0).fit(X, y)
    table = model.predict_proba(X)
    assert_allclose(table.sum(axis=1), 1)
    assert_allclose(model.predict_cumulative_proba(X)[:, :-1], table.cumsum(axis=1)[:, :-1])
    distance = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    costs = {"absolute": distance, "zero_one": distance > 0, "squared": distance**2}[loss]
    assert np.array_equal(model.predict(X), 1 + (table @ costs).argmin(axis=1))
    if loss == "absolute":
        reached = np.searchsorted(model.thresholds_, model.project(X), side="right")
        assert np.array_equal(model.predict(X), 1 + reached)


def test_chunks_of_a_stream_equal_a_fit_of_one_pass():
    X, y = problem(300, 4)
    whole = rc.OrdinalLogistic(max_iter=1, shuffle=False, standardize=False).fit(X, y)
    parts = rc.OrdinalLogistic(standardize=False)
    for rows in np.split(np.arange(300), [1, 2, 50, 64, 65, 200]):
        parts.partial_fit(X[rows], y[rows], classes=[1, 2, 3, 4])
    assert np.array_equal(whole.coef_, parts.coef_)
    assert np.array_equal(whole.thresholds_, parts.thresholds_)


def test_sets_have_coverage_until_the_model_learns_more(tmp_path):
    X, y = problem(3000, 5)
    model = rc.OrdinalLogistic(random_state=0).fit(X[:1000], y[:1000])
    model.conformalize(X[1000:2000], y[1000:2000])
    rc.save(model, tmp_path / "model")
    low, high = rc.load(tmp_path / "model").predict_set(X[2000:], coverage=0.8).T
    covered = np.mean((low <= y[2000:]) & (y[2000:] <= high))
    assert abs(covered - 0.8) < 4 * np.sqrt(0.8 * 0.2 * (1 / 1000 + 1 / 1000))
    model.partial_fit(X[:1], y[:1])
    with pytest.raises(NotFittedError, match="conformalize"):
        model.predict_set(X)


def test_long_rows_and_large_rates_raise():
    X, y = problem(100, 3)
    with pytest.raises(ValueError, match="overflowed: .*eta0"):
        rc.OrdinalLogistic().fit(X * 1e200, y)
    with pytest.raises(ValueError, match=r"OrdinalLogistic: eta0 must be"):
        rc.OrdinalLogistic(eta0=-1.0).fit(X, y)


@pytest.mark.parametrize("lengths", [[-1, 2], [3.5, 2], [65, 2], [3, 0.5]])
def test_damaged_mean_lengths_are_rejected(lengths):
    X, y = problem(30, 3)
    model = rc.OrdinalLogistic().fit(X, y)
    spec = model._spec()
    spec.arrays["squared_length"] = np.array(lengths, dtype=np.float64)
    with pytest.raises(ValueError, match="squared_length must have"):
        rc.OrdinalLogistic()._restore(spec)


@pytest.mark.parametrize("absent", [[1], [3], [5], [2, 3], [1, 4]])
def test_declared_ranks_without_rows_change_nothing_for_the_others(absent):
    occurring = np.setdiff1d(np.arange(1, 6), absent)
    X, places = problem(300, occurring.size)
    y = occurring[places - 1]
    model = rc.OrdinalLogistic(random_state=0).fit(X, y, classes=[1, 2, 3, 4, 5])
    without = rc.OrdinalLogistic(random_state=0).fit(X, y)
    assert np.array_equal(model.coef_, without.coef_)
    assert_allclose(
        model.predict_proba(X)[:, occurring - 1], without.predict_proba(X), rtol=0, atol=1e-5
    )
    for rank in absent:  # its first row
        model.partial_fit(X[:1], [rank])
    assert (model.predict_proba(X) > 0).all()


def test_shards_that_lack_ranks_keep_the_thresholds_of_those_that_have_them():
    X, y = problem(2000, 3, noise=0.3)
    learner = rc.OrdinalLogistic(random_state=0, standardize=False)
    shards = [
        clone(learner).fit(X[y != lacking], y[y != lacking], classes=[1, 2, 3])
        for lacking in (3, 1)
    ]
    for merged in (rc.merge(shards), rc.merge(shards[::-1])):
        assert merged.thresholds_[0] == pytest.approx(shards[0].thresholds_[0], rel=1e-12)
        assert merged.thresholds_[1] == pytest.approx(shards[1].thresholds_[1], rel=1e-12)
        assert (np.bincount(merged.predict(X))[1:] > 100).all()
        assert merged.partial_fit(X, y).t_ == sum(one.t_ for one in shards) + 2000


def test_merge_averages_the_mean_lengths_of_all_models():
    X, y = problem(10, 3)
    learner = rc.OrdinalLogistic(standardize=False)
    parts = [clone(learner).partial_fit(scale * X, y) for scale in (1, 10)]
    expected = np.mean([(part**2).sum(axis=1) + 1 for part in (X, 10 * X)])
    for models in (parts, parts[::-1]):
        found = rc.merge(models)._state.model["squared_length"]
        assert_allclose(found, [20, expected], rtol=1e-12)


def test_probabilities_are_equal_before_any_row_counts():
    model = rc.OrdinalLogistic(classes=[1, 2, 3, 4])
    X, y = problem(5, 4)
    model.partial_fit(X, y, sample_weight=np.zeros(5))
    assert_allclose(model.predict_proba(X), 0.25, rtol=1e-12)


def test_sets_are_withdrawn_if_a_call_fails_after_some_rows():
    X, y = problem(500, 3)
    model = rc.OrdinalLogistic(random_state=0).fit(X, y).conformalize(X, y)
    bad = X.copy()
    bad[200] = np.sign(model.coef_) * 1e308
    with pytest.raises(ValueError, match="overflowed"):
        model.partial_fit(bad, y)
    with pytest.raises(NotFittedError, match="conformalize"):
        model.predict_set(X)


@pytest.mark.parametrize(
    ("name", "values"),
    [("extremes", [5.0, -5.0]), ("ranks", [0, 0, 0]), ("ranks", [30, 1, -1])],
    ids=str,
)
def test_damaged_counts_of_ranks_and_scores_are_rejected(name, values):
    X, y = problem(30, 3)
    spec = rc.OrdinalLogistic(max_iter=1).fit(X, y)._spec()
    spec.arrays[name] = np.array(values, dtype=spec.arrays[name].dtype)
    with pytest.raises(ValueError, match="score must|ranks must have"):
        rc.OrdinalLogistic()._restore(spec)


def test_counts_of_equal_rows_are_weights():
    """A table of counts gives probabilities near those of the optimum for the repeated rows."""
    cells = np.array([[a, b] for a in (0.0, 1.0) for b in (0.0, 1.0)])
    rng = np.random.default_rng(0)
    X = cells[rng.integers(0, 4, 2000)]
    y = np.digitize(X @ [1.5, -1.0] + rng.logistic(size=2000), [-1, 1])
    distinct, counts = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)

    def loss(parameters):
        return mean_loss(parameters, X, y + 1, 3)

    best = minimize(loss, np.zeros(4), method="BFGS")
    model = rc.OrdinalLogistic(max_iter=200, random_state=0)
    model.fit(distinct[:, :2], distinct[:, 2], sample_weight=counts)
    found = loss(np.concatenate([model.coef_, model.thresholds_]))
    assert found < 1.02 * best.fun


@pytest.mark.parametrize("factor", [2.0**-20, 2.0**20])
def test_only_ratios_of_weights_count_in_a_fit(factor):
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(200, 3)), rng.integers(0, 3, 200), rng.uniform(0.5, 2, 200)
    plain, scaled = (
        rc.OrdinalLogistic(random_state=0).fit(X, y, sample_weight=weights * c) for c in (1, factor)
    )
    np.testing.assert_array_equal(plain.coef_, scaled.coef_)
    weights[:50] = 0  # rows without weight do not count in the mean
    left_out, dropped = (
        rc.OrdinalLogistic(shuffle=False, standardize=False).fit(
            X[rows], y[rows], sample_weight=weights[rows]
        )
        for rows in (slice(None), slice(50, None))
    )
    np.testing.assert_array_equal(left_out.coef_, dropped.coef_)
    equal = rc.OrdinalLogistic(random_state=0).fit(X, y, sample_weight=np.full(200, 7.0))
    without = rc.OrdinalLogistic(random_state=0).fit(X, y)
    np.testing.assert_array_equal(equal.coef_, without.coef_)
