"""Wide dense rows: RankSVM drafts on inner products in float32, and ends at the optimum of X."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import rankcore as rc
from rankcore.ranking.svm import _problems
from reference import pair_loss as plain

N, D = 60, 1100


def wide(seed=0, dtype=np.float64, common=0.0):
    """Rows of three queries; ``common`` is a direction that all of them share."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) + common * rng.normal(size=D)
    y = np.digitize(X[:, :5].sum(axis=1) + rng.normal(size=N), [-1, 0, 1])
    return X.astype(dtype), y, np.arange(N) * 3 // N


@pytest.fixture
def drafts(monkeypatch):
    """Record the drafts of fits; None where there is none."""
    made, make_draft = [], _problems.make_draft

    def noted(*args):
        made.append(make_draft(*args))
        return made[-1]

    monkeypatch.setattr("rankcore.ranking.svm._problems.make_draft", noted)
    return made


@pytest.mark.parametrize("balance", ["query", None])
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e3])
@pytest.mark.parametrize("common", [0.0, 3.0])
def test_optimum_and_gap_are_computed_from_the_rows(balance, C, common, drafts):
    X, y, qid = wide(common=common)
    given = {"C": C, "balance": balance, "random_state": 0}
    model = rc.RankSVM(**given, standardize=False).fit(X, y, qid=qid)
    assert len(drafts) == 1
    assert drafts[0] is not None
    kernel = rc.RankSVM(**given, tol=1e-8, kernel="precomputed", standardize=False).fit(
        X @ X.T, y, qid=qid
    )
    pairs = plain.pairs_of(y, qid)
    pairs = plain.balanced(pairs, qid) if balance else pairs
    reached = plain.objective(model.coef_, X, pairs, C, 2)
    assert model.objective_ == pytest.approx(reached, rel=1e-9)
    assert model.gap_ <= 1e-4
    assert reached * (1 - model.gap_) <= kernel.objective_ * (1 + 1e-9)
    assert kernel.objective_ * (1 - 1e-8) <= reached * (1 + 1e-9)


def test_a_small_tolerance_is_reached_on_the_rows_themselves(drafts):
    X, y, qid = wide(common=3.0)
    model = rc.RankSVM(tol=1e-11, standardize=False).fit(X, y, qid=qid)
    kernel = rc.RankSVM(tol=1e-11, kernel="precomputed", standardize=False).fit(X @ X.T, y, qid=qid)
    assert model.gap_ <= 1e-11
    assert model.objective_ == pytest.approx(kernel.objective_, rel=1e-10)
    assert model.n_iter_ == len(model.history_["gap"])
    assert drafts[0] is not None


def test_inner_products_do_not_depend_on_the_number_of_threads(monkeypatch):
    X, _, _ = wide()
    docs = np.random.default_rng(1).permutation(N)[:41]
    monkeypatch.setattr(_problems, "CHUNK_VALUES", 300 * docs.size)  # several chunks
    for factors in (None, np.random.default_rng(2).uniform(0.5, 2.0, D)):
        one, two = (_problems._inner_products(X, docs, factors, n_jobs) for n_jobs in (1, 2))
        np.testing.assert_array_equal(one, two)
        Z = (X[docs] - X[docs].mean(axis=0)) * (1.0 if factors is None else factors)
        np.testing.assert_allclose(one, Z @ Z.T, rtol=1e-5, atol=1e-3)


def test_threads_and_float32_change_nothing(drafts):
    X, y, qid = wide(dtype=np.float32)
    one = rc.RankSVM().fit(X, y, qid=qid)
    np.testing.assert_array_equal(rc.RankSVM(n_jobs=2).fit(X, y, qid=qid).coef_, one.coef_)
    double = rc.RankSVM().fit(X.astype(np.float64), y, qid=qid)
    np.testing.assert_allclose(double.coef_, one.coef_, rtol=1e-9, atol=1e-12)


def test_rows_without_pairs_and_their_order_change_nothing(drafts):
    X, y, qid = wide()
    order = np.random.default_rng(2).permutation(N)
    lone = np.random.default_rng(3).normal(size=(5, D))
    more = rc.RankSVM(tol=1e-10, standardize=False).fit(
        np.vstack([lone, X[order]]),
        np.append(np.zeros(5, int), y[order]),
        qid=np.append(np.arange(100, 105), qid[order]),
    )
    same = rc.RankSVM(tol=1e-10, standardize=False).fit(X, y, qid=qid)
    np.testing.assert_allclose(more.coef_, same.coef_, atol=1e-6)


def test_a_path_keeps_its_draft(drafts):
    X, y, qid = wide()
    path = rc.ranksvm_path(X, y, qid=qid, Cs=[0.001, 0.1, 10.0], tol=1e-6)
    assert len(drafts) == 1
    for C, model in zip(path.Cs, path.estimators, strict=True):
        alone = rc.RankSVM(C, tol=1e-6).fit(X, y, qid=qid)
        assert model.objective_ == pytest.approx(alone.objective_, rel=2e-6)
        assert model.gap_ <= 1e-6


def test_callbacks_see_models_of_features_and_may_stop(drafts):
    X, y, qid = wide()
    seen = []
    model = rc.RankSVM().fit(
        X, y, qid=qid, eval_set=(X, y), eval_qid=qid,
        callbacks=[lambda now: seen.append(now.model.coef_.shape) or len(seen) == 1],
    )  # fmt: skip
    assert seen == [(D,)]
    assert model.n_iter_ == 1 == len(model.history_["valid_ndcg@10"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        few = rc.RankSVM(10.0, max_iter=1).fit(X, y, qid=qid)
    assert few.n_iter_ == 1
    assert few.gap_ > 1e-4


@pytest.mark.parametrize("reason", ["memory", "documents", "sparse", "float32"])
def test_draft_is_used_only_if_it_saves_time_and_fits_memory(reason, drafts, monkeypatch):
    X, y, qid = wide()
    expected = rc.RankSVM(tol=1e-9, standardize=False).fit(X, y, qid=qid).objective_
    given = {"memory_limit": 4 * N * N - 1} if reason == "memory" else {}
    if reason == "documents":
        monkeypatch.setattr(_problems, "MOST_DOCS", N - 1)
    if reason == "sparse":
        from scipy.sparse import csr_array

        X = csr_array(X)
    scale = 1e25 if reason == "float32" else 1.0  # its squares are beyond single precision
    model = rc.RankSVM(scale**-2, tol=1e-9, **given, standardize=False).fit(X * scale, y, qid=qid)
    assert drafts[0] is not None
    assert drafts[1:] == [None]
    assert model.objective_ * scale**2 == pytest.approx(expected, rel=1e-8)


def test_hinge_loss_uses_no_draft(drafts):
    X, y, qid = wide()
    rc.RankSVM(loss="hinge", tol=1e-2).fit(X, y, qid=qid)
    assert drafts == []
