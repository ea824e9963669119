"""Features of any scale, which a linear ranking SVM standardises without a copy."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

import rankcore as rc
from rankcore.datasets import dump_letor, open_rows
from rankcore.metrics import ndcg_score

pytestmark = pytest.mark.kernel

LOSSES = ["squared_hinge", "hinge"]
FORMS = {"dense": np.asarray, "csr": sp.csr_array}


def queries(n=40, d=5, seed=0):
    """Rows in queries of 8, with columns of any scale and a constant one."""
    rng = np.random.default_rng(seed)
    widths = 10.0 ** rng.uniform(-3, 3, size=d)
    Z = rng.normal(size=(8 * n, d))
    y = np.digitize(Z[:, :4] @ [1, -1, 2, 0.5] + rng.normal(size=8 * n), [-1, 1])
    X = Z * widths + 3 * rng.normal(size=d) * widths
    return np.column_stack([X, np.full(8 * n, 7.0)]), y, np.repeat(np.arange(n), 8)


def scaled(X, weights=None):
    """Return rows divided by the deviations of scikit-learn, and these."""
    scaler = StandardScaler(with_mean=False).fit(X, sample_weight=weights)
    return X / scaler.scale_, scaler.scale_


def precise(loss, **params):
    tol = 1e-10 if loss == "squared_hinge" else 1e-6
    return rc.RankSVM(loss=loss, tol=tol, max_iter=1000, random_state=0, **params)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("width", [5, 1100], ids=["steps", "draft"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_fit_equals_that_to_scaled_rows(loss, width, form, dtype, n_jobs):
    X, y, qid = queries(40 if width == 5 else 6, width)
    X = X.astype(dtype).astype(float)
    Z, scale = scaled(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # scales need no warning
        model = precise(loss, n_jobs=n_jobs).fit(form(X.astype(dtype)), y, qid=qid)
    hand = precise(loss, standardize=False).fit(Z, y, qid=qid)
    assert model.objective_ == pytest.approx(hand.objective_, rel=2 * hand.tol)
    near = 1e-4 if loss == "squared_hinge" else 1e-2
    largest = np.abs(hand.coef_).max()
    np.testing.assert_allclose(model.coef_ * scale, hand.coef_, atol=near * largest)
    np.testing.assert_allclose(
        model.predict(X), hand.predict(Z), atol=near * np.abs(hand.predict(Z)).max()
    )


@pytest.mark.parametrize("balance", ["query", None])
def test_deviations_are_weighted(balance):
    X, y, qid = queries()
    weights = np.random.default_rng(1).integers(0, 3, y.size)
    Z, scale = scaled(X, weights)
    model = precise("squared_hinge", balance=balance).fit(X, y, qid=qid, sample_weight=weights)
    hand = precise("squared_hinge", balance=balance, standardize=False)
    hand.fit(Z, y, qid=qid, sample_weight=weights)
    np.testing.assert_allclose(model.coef_ * scale, hand.coef_, rtol=1e-5, atol=1e-7)
    if balance is None:
        rows = np.repeat(np.arange(y.size), weights)
        hand.set_params(standardize="auto").fit(X[rows], y[rows], qid=qid[rows])
        np.testing.assert_allclose(model.coef_ * scale, hand.coef_ * scale, rtol=1e-5, atol=1e-7)
    large = precise("squared_hinge").fit(X, y, qid=qid, sample_weight=1e250 * weights)
    small = precise("squared_hinge").fit(X, y, qid=qid, sample_weight=weights)
    np.testing.assert_allclose(large.coef_ * scale, small.coef_ * scale, rtol=1e-5, atol=1e-7)


def test_pairs_and_positions_are_learned_from_scaled_rows():
    X, y, qid = queries()
    Z, scale = scaled(X)
    pairs = np.array([(8 * q + i, 8 * q + j) for q in range(40) for i, j in [(0, 5), (3, 1)]])
    position = np.tile(np.arange(1, 9), 40)
    for given in ({"pairs": pairs}, {"y": (y > 1).astype(int), "position": position}):
        model = precise("squared_hinge").fit(X, qid=qid, **given)
        hand = precise("squared_hinge", standardize=False).fit(Z, qid=qid, **given)
        assert model.coef_.shape == (6,)
        np.testing.assert_allclose(model.coef_ * scale, hand.coef_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.position_effect_, hand.position_effect_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("width", [5, 1100], ids=["steps", "draft"])
def test_path_and_folds_equal_those_of_scaled_rows(width):
    X, y, qid = queries(40 if width == 5 else 8, width)
    Z, scale = scaled(X)
    given = {"Cs": [0.01, 1.0], "tol": 1e-10}
    path = rc.ranksvm_path(X, y, qid=qid, **given)
    hand = rc.ranksvm_path(Z, y, qid=qid, standardize=False, **given)
    np.testing.assert_allclose(path.lengths, hand.lengths, rtol=1e-4)
    for one, other in zip(path.estimators, hand.estimators, strict=True):
        largest = np.abs(other.coef_).max()
        np.testing.assert_allclose(one.coef_ * scale, other.coef_, atol=1e-4 * largest)
    chosen = rc.RankSVMCV(cv=2, **given).fit(X, y, qid=qid)
    best = hand.estimators[[0.01, 1.0].index(chosen.C_)].coef_
    np.testing.assert_allclose(chosen.coef_ * scale, best, atol=1e-4 * np.abs(best).max())
    for found, (train, test) in zip(chosen.scores_, GroupKFold(2).split(X, y, qid), strict=True):
        Z = X / scaled(X[train])[1]
        for value, C in zip(found, given["Cs"], strict=True):
            fold = rc.RankSVM(C, tol=1e-10, standardize=False)
            scores = fold.fit(Z[train], y[train], qid=qid[train]).predict(Z[test])
            expected = ndcg_score(y[test], scores, qid=qid[test], k=10)
            assert value == pytest.approx(expected, abs=1e-6)


def test_warm_start_begins_at_the_model_of_raw_features():
    X, y, qid = queries()
    model = precise("squared_hinge", warm_start=True).fit(X, y, qid=qid)
    before = model.coef_
    assert model.n_iter_ > 0
    assert model.fit(X, y, qid=qid).n_iter_ == 0
    np.testing.assert_allclose(model.coef_, before, rtol=1e-12)
    model.fit(X[:160] * 2, y[:160], qid=qid[:160])  # of other deviations
    cold = precise("squared_hinge").fit(X[:160] * 2, y[:160], qid=qid[:160])
    scale = scaled(X)[1]
    np.testing.assert_allclose(model.coef_ * scale, cold.coef_ * scale, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_sparse_rows_and_binary_columns_are_not_standardised(form):
    X, y, qid = queries()
    words = np.where(np.random.default_rng(1).random(X.shape) < 0.1, X, 0.0)
    flags = (X.mean(axis=0) < X).astype(float)
    for rows in (words / np.abs(X).max(axis=0), flags):
        ones = [
            rc.RankSVM(random_state=0, standardize=one).fit(form(rows), y, qid=qid).coef_
            for one in ("auto", False)
        ]
        np.testing.assert_array_equal(*ones)
    with pytest.warns(UserWarning, match="put RankSVM behind a scaler"):
        rc.RankSVM().fit(form(words), y, qid=qid)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "precomputed"])
def test_kernels_are_computed_on_raw_features(kernel):
    X, y, qid = queries(10)
    Z = scaled(X)[0]
    rows = Z @ Z.T if kernel == "precomputed" else Z * np.linspace(1, 2, 6)
    ones = [
        rc.RankSVM(kernel=kernel, standardize=one).fit(rows, y, qid=qid).dual_coef_
        for one in ("auto", False)
    ]
    np.testing.assert_array_equal(*ones)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e4])
@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_raw_features_of_any_scale_converge(scale, offset, loss):
    X, y, qid = queries()
    Z = (X[:, :5] - X[:, :5].mean(axis=0)) / scaled(X[:, :5])[1]
    rows = np.column_stack([scale * (Z + offset), np.full(y.size, 1e9)])
    expected = rc.RankSVM(loss=loss, standardize=False, tol=1e-6).fit(Z, y, qid=qid)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # converges
        model = rc.RankSVM(loss=loss).fit(rows, y, qid=qid)
    assert model.objective_ == pytest.approx(expected.objective_, rel=2e-4)
    assert model.gap_ <= 1e-4


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("value", [0.0, 1.0, 7.0, -1e13, 1e150])
def test_a_constant_column_changes_no_digit_and_has_no_weight(value, form, loss):
    X, y, qid = queries()
    X = X[:, :5]
    constant = form(np.column_stack([X, np.full(y.size, value)]))
    expected = precise(loss).fit(form(X), y, qid=qid).coef_
    model = precise(loss, warm_start=True)
    for _ in range(2):  # the second fit begins at the first model
        found = model.fit(constant, y, qid=qid).coef_
        assert found[5] == 0
        np.testing.assert_allclose(found[:5], expected, rtol=1e-9 if loss != "hinge" else 1e-5)


def test_files_have_weights_of_features_as_given(tmp_path):
    X, y, qid = queries()
    X = X.astype(np.float32).astype(float)
    model = rc.RankSVM(random_state=0).fit(X, y, qid=qid)
    rc.save(model, tmp_path / "model")
    copy = rc.load(tmp_path / "model")
    assert copy.standardize == "auto"
    np.testing.assert_array_equal(copy.coef_, model.coef_)
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    dump_letor(X, y, tmp_path / "rows.txt", qid=qid)
    again = rc.RankSVM(random_state=0).fit(open_rows(tmp_path / "rows.txt"))
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-6, atol=1e-12)
