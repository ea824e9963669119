"""Ranking SVMs on a cluster: the minimum that is found in memory, by the same steps."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

import rankcore as rc
from rankcore.datasets import make_letor

pytest.importorskip("distributed", reason="needs the dask extra")

from dask import delayed

import rankcore.dask as rd
from rankcore.dask._blocks import Shard
from rankcore.dask._svm import prepare
from rankcore.ranking.svm.losses import Terms


@pytest.fixture(scope="module")
def queries():
    X, y, qid = make_letor(40, 15, n_features=90, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X[30:45] = X[31]  # a query of equal documents
    return X.astype(float), y, qid, np.random.default_rng(2).uniform(0, 3, y.size)


def blocks(n, *arrays):
    """Return lists of n delayed blocks of whole queries."""
    edges = np.linspace(0, arrays[0].shape[0] // 15, n + 1).astype(int) * 15
    return [[delayed(one[a:b]) for a, b in pairwise(edges)] for one in arrays]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("form", "params"),
    [
        (np.asarray, {"C": 0.01, "loss": "hinge"}),
        (lambda X: X.astype(np.float32), {"C": 0.3}),
        (lambda X: sp.csr_array(np.where(np.abs(X) > 1, X, 0.0)), {"C": 1e-3, "balance": None}),
        (np.asarray, {"C": 10.0}),  # of more than one product per step
    ],
)
def test_steps_and_model_equal_those_in_memory(form, params, weighted, client, queries):
    X, y, qid, w = queries
    X, given = form(X), {"sample_weight": w} if weighted else {}
    expected = rc.RankSVM(random_state=1, **params).fit(X, y, qid=qid, **given)
    for n in [1, 4]:
        bX, by, bq, bw = blocks(n, X, y, qid, w)
        more = {"sample_weight": bw} if weighted else {}
        model = rd.RankSVM(random_state=1, **params).fit(bX, by, qid=bq, n_shards=n, **more)
        found = model.to_local()
        assert type(found) is rc.RankSVM
        assert found.n_iter_ == expected.n_iter_
        assert found.history_["products"] == expected.history_["products"]
        np.testing.assert_allclose(
            found.history_["objective"], expected.history_["objective"], rtol=1e-9
        )
        assert found.gap_ <= found.tol
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-5, atol=1e-7)


def test_model_is_the_minimum_of_the_objective(client, queries):
    X, y, qid, _ = queries
    pairs = [
        (i, j) for i in range(y.size) for j in range(y.size) if qid[i] == qid[j] and y[i] > y[j]
    ]
    winners, losers = np.array(pairs).T
    apart = X[winners] - X[losers]
    n_pairs = np.array([np.count_nonzero(qid[winners] == q) for q in qid[winners]])

    def objective(w):
        u = np.maximum(0, 1 - apart @ w)
        gradient = w - (2 * 0.3 * u / n_pairs) @ apart
        return w @ w / 2 + 0.3 * (u**2 / n_pairs).sum(), gradient

    found = minimize(objective, np.zeros(90), jac=True, method="BFGS", tol=1e-9)
    bX, by, bq = blocks(4, X, y, qid)
    model = rd.RankSVM(C=0.3, tol=1e-10, random_state=0, standardize=False).fit(
        bX, by, qid=bq, n_shards=4
    )
    assert model.objective_ == pytest.approx(found.fun, rel=1e-8)
    np.testing.assert_allclose(model.coef_, found.x, atol=1e-4)


def test_held_out_rows_are_measured_as_in_memory(client, queries):
    X, y, qid, _ = queries
    held = {"eval_set": (X[450:], y[450:]), "eval_qid": qid[450:]}
    expected = rc.RankSVM(random_state=0).fit(X[:450], y[:450], qid=qid[:450], **held)
    bX, by, bq = blocks(3, X[:450], y[:450], qid[:450])
    found = rd.RankSVM(random_state=0).fit(bX, by, qid=bq, n_shards=3, **held)
    name = "valid_ndcg@10"
    np.testing.assert_allclose(found.history_[name], expected.history_[name], rtol=1e-9)


def test_shards_without_pairs_are_left_out(client, queries):
    X, y, qid, _ = queries
    y = y.copy()
    y[:300] = 1  # the first two of four shards have no pair
    expected = rc.RankSVM(random_state=0).fit(X, y, qid=qid)
    bX, by, bq = blocks(4, X, y, qid)
    model = rd.RankSVM(random_state=0).fit(bX, by, qid=bq, n_shards=4)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6, atol=1e-9)


def test_faults_leave_the_estimator(client, queries):
    X, y, qid, _ = queries
    bX, by, bq = blocks(2, X, y, qid)
    model = rd.RankSVM().fit(bX, by, qid=bq)
    before = model.coef_
    with pytest.raises(ValueError, match="requires warm_start=False"):
        rd.RankSVM(warm_start=True).fit(bX, by, qid=bq)
    with pytest.raises(ValueError, match="nothing to learn from"):
        model.fit(bX, [one * 0 for one in by], qid=bq)
    with pytest.raises(ValueError, match="overflow"):
        model.fit([one * 1e200 for one in bX], by, qid=bq)
    with pytest.warns(ConvergenceWarning, match="did not converge: after 1 steps"):
        rd.RankSVM(max_iter=1, C=100.0, tol=1e-12).fit(bX, by, qid=bq)
    assert np.array_equal(model.coef_, before)
    with pytest.warns(UserWarning, match="fit found no qid"):
        one = rd.RankSVM(random_state=0).fit(bX, by, n_shards=1)
    expected = rc.RankSVM(random_state=0).fit(X, y, qid=np.zeros(len(y)))
    np.testing.assert_allclose(one.coef_, expected.coef_, rtol=1e-3, atol=1e-4)


def test_a_shard_that_moves_repeats_its_evaluation(queries):
    X, y, qid, _ = queries
    shard = prepare(Shard(X, y, qid), True, 1.0)
    w, p = np.random.default_rng(0).normal(size=(2, 90))
    terms = Terms.squared_hinge(1.0)
    shard.evaluate(w, terms)
    expected = shard.curve(w, terms, p)
    moved = pickle.loads(pickle.dumps(shard))
    every = np.arange(shard.sizes()[0].size)
    np.testing.assert_allclose(moved.curve(w, terms, p), expected, rtol=1e-12)
    np.testing.assert_allclose(moved.matrix(every, w, terms)[0] @ p, expected)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("weighted", [False, True])
def test_features_of_any_scale_are_standardised_over_all_shards(weighted, form, client, queries):
    X, y, qid, w = queries
    scale = 10.0 ** np.linspace(-4, 4, 90)
    X, w = X * scale + 2 * scale, np.floor(w)
    X[300:] *= 3  # shards differ
    expected = rc.RankSVM(tol=1e-10, random_state=0)
    expected.fit(X, y, qid=qid, **({"sample_weight": w} if weighted else {}))
    bX, by, bq, bw = blocks(4, form(X), y, qid, w)
    model = rd.RankSVM(tol=1e-10, random_state=0)
    model.fit(bX, by, qid=bq, n_shards=4, **({"sample_weight": bw} if weighted else {}))
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    np.testing.assert_allclose(model.coef_ * scale, expected.coef_ * scale, rtol=1e-5, atol=1e-6)
