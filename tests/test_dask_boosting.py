"""Boosting on a cluster: trees, stumps and OrdinalBoost are those of memory."""

import numpy as np
import pytest
import scipy.sparse as sp

import rankcore as rc
from rankcore.datasets import dump_letor, load_letor, make_letor

pytest.importorskip("distributed", reason="needs the dask extra")

from itertools import pairwise

import dask.array as da
from dask import delayed

import rankcore.dask as rd
from rankcore.dask._boosting import ActorRounds, WorkerLost
from strategies import NIGHTLY

TREES = {"n_estimators": 6, "max_leaf_nodes": 31}
# Parameters of RankBoost.
OF_PAIRS = {
    "stumps": {"n_estimators": 12},
    "discrete stumps": {"n_estimators": 12, "step": "discrete", "smoothing": 0.01},
    "few bins": {"n_estimators": 12, "missing": "zero", "max_bins": 9, "learning_rate": 0.5},
    "no balance": {"n_estimators": 8, "balance": None},
    "trees": TREES,
    "trees without balance": {**TREES, "balance": None, "max_bins": 40},
    "newton": {**TREES, "leaf_step": "newton", "l2_leaf": 0.01, "learning_rate": 0.3},
    "deep": {**TREES, "max_leaf_nodes": 60, "min_samples_leaf": 1, "min_pair_weight": 0.001},
    "shallow": {**TREES, "max_depth": 3, "min_samples_leaf": 30},
    "ndcg": {**TREES, "pair_weight": "ndcg@10"},
    "map": {**TREES, "pair_weight": "map", "leaf_step": "newton"},
    "monotone": {**TREES, "monotonic_cst": [1, -1, 0] * 10},
    "columns": {**TREES, "max_features": 0.3, "random_state": 0},
    "zero": {**TREES, "missing": "zero"},
}
# Parameters of OrdinalBoost.
OF_RANKS = {
    "vector": {},
    "direction": {"random_state": 3, "learning_rate": 0.3},
    "monotone vector": {"monotonic_cst": [1, -1, 0] * 10},
    "shared": {"tasks": "shared"},
    "cumulative": {"tasks": "shared", "link": "cumulative", "class_weight": "balanced"},
    "columns": {"max_features": 0.3, "random_state": 0, "max_depth": 4, "missing": "zero"},
}


def queries(seed=0, form="dense"):
    """Rows with missing and equal values."""
    X, y, qid = make_letor(60, 14, n_features=90, random_state=seed)
    rng = np.random.default_rng(seed)
    X = np.round(X[:, ::3].astype(float), 2)
    X[rng.random(X.shape) < 0.3] = 0
    if form == "dense":
        X[rng.random(X.shape) < 0.02] = np.nan
    return X if form == "dense" else sp.csr_matrix(X), y, qid


def blocks(n, *arrays, size=14):
    """Return lists of n delayed blocks of whole queries."""
    edges = np.linspace(0, arrays[0].shape[0] // size, n + 1).astype(int) * size
    return [[delayed(one[a:b]) for a, b in pairwise(edges)] for one in arrays]


def check_pairs(name, params, X, y, qid=None, w=None, n=4):
    """Compare a fit on n shards with that in memory: scores, history and structure."""
    given = {"qid": qid, "sample_weight": w}
    expected = getattr(rc, name)(**params).fit(
        X, y, **{key: one for key, one in given.items() if one is not None}
    )
    lists = {key: blocks(n, one)[0] for key, one in given.items() if one is not None}
    bX, by = blocks(n, X, y)
    model = getattr(rd, name)(**params).fit(bX, by, n_shards=n, **lists)
    found = model.to_local()
    assert type(found) is getattr(rc, name)
    assert len(found._state.model) == len(expected._state.model)
    # Of two splits of equal gain, rounding may choose the other: then the training loss is equal.
    scores, wanted = found.predict(X), expected.predict(X)
    if np.abs(scores - wanted).max() > 1e-6:
        bounds = (one.history_["bound"] for one in (found, expected))
        np.testing.assert_allclose(*bounds, rtol=1e-6)
    for key, values in expected.history_.items():
        np.testing.assert_allclose(found.history_[key], values, rtol=1e-6, atol=1e-9, err_msg=key)
    return np.abs(scores - wanted).max()


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("which", OF_PAIRS)
def test_queries_in_shards_are_boosted_as_in_memory(which, form, client):
    X, y, qid = queries(1, form)
    assert check_pairs("RankBoost", OF_PAIRS[which], X, y, qid) < 1e-6


def test_rounds_continue_if_no_drawn_feature_splits_the_root(client):
    X, y, qid = queries(3)
    wide = np.ones((y.size, 40))
    wide[:, 17] = X[:, 0]
    params = {**TREES, "max_features": 0.05, "random_state": 0}
    assert check_pairs("RankBoost", params, wide, y, qid) < 1e-6


@pytest.mark.parametrize("n", [1, 2, 7])
@pytest.mark.parametrize("which", ["stumps", "trees", "ndcg"])
def test_weights_of_rows_equal_those_in_memory(which, n, client):
    X, y, qid = queries(2)
    w = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.5], y.size)
    w[:112] = 0  # the first of seven shards
    assert check_pairs("RankBoost", OF_PAIRS[which], X, y, qid, w, n) < 1e-6


@pytest.mark.parametrize(
    ("form", "weighted"), [("dense", True), ("csr", False)], ids=["dense weighted", "csr"]
)
@pytest.mark.parametrize(
    "params",
    [
        {"n_estimators": 12},
        {"n_estimators": 12, "step": "exact"},
        {"n_estimators": 12, "step": "mohri"},
        TREES,
        {**TREES, "leaf_step": "newton"},
    ],
    ids=str,
)
def test_two_labels_without_queries_are_divided_among_shards(params, form, weighted, client):
    X, y, _ = queries(3, form)
    w = np.random.default_rng(0).uniform(0.1, 3, y.size) if weighted else None
    order = np.argsort(y, kind="stable")  # shards lack a label
    X, z = X[order], (y[order] > 1).astype(int)
    assert check_pairs("BipartiteRankBoost", params, X, z, None, w) < 1e-6


def test_splits_that_leave_too_few_rows_are_replaced(client):
    X, y, qid = queries(12)
    params = {**TREES, "min_samples_leaf": 25}
    assert check_pairs("RankBoost", params, X, y, qid) < 1e-6


@pytest.mark.parametrize("params", [{"n_estimators": 9, "rel": 2}, {**TREES, "rel": 3}], ids=str)
def test_bipartite_queries_are_boosted_as_in_memory(params, client):
    X, y, qid = queries(4)
    assert check_pairs("BipartiteRankBoost", params, X, y, qid) < 1e-6


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(20 if NIGHTLY else 6))
def test_other_sets_are_boosted_as_in_memory(seed, client):
    form = ["dense", "csr"][seed % 2]
    X, y, qid = queries(100 + seed, form)
    which = [*OF_PAIRS][seed % len(OF_PAIRS)]
    check_pairs("RankBoost", OF_PAIRS[which], X, y, qid, n=1 + seed % 5)
    check_ranks([*OF_RANKS.values()][seed % len(OF_RANKS)], X, y)


def check_ranks(params, X, y, w=None, n=3):
    """Compare a fit of OrdinalBoost on n shards with that in memory."""
    given = {} if w is None else {"sample_weight": w}
    expected = rc.OrdinalBoost(6, **params).fit(X, y, **given)
    lists = {key: blocks(n, one)[0] for key, one in given.items()}
    bX, by = blocks(n, X, y)
    model = rd.OrdinalBoost(6, **params).fit(bX, by, n_shards=n, **lists)
    found = model.to_local()
    assert type(found) is rc.OrdinalBoost
    np.testing.assert_allclose(found.history_["log_loss"], expected.history_["log_loss"], rtol=1e-6)
    apart = np.abs(found.predict_proba(X) - expected.predict_proba(X)).max()
    np.testing.assert_allclose(found.biases_, expected.biases_, rtol=1e-6, atol=1e-9)
    return model, apart


@pytest.mark.parametrize(
    ("form", "weighted"), [("dense", True), ("csr", False)], ids=["dense weighted", "csr"]
)
@pytest.mark.parametrize("which", OF_RANKS)
def test_ranks_in_shards_are_boosted_as_in_memory(which, form, weighted, client):
    X, y, _ = queries(5, form)
    w = np.random.default_rng(0).choice([0.0, 0.5, 2.0], y.size) if weighted else None
    _, apart = check_ranks(OF_RANKS[which], X, y, w)
    assert apart < 1e-6


def test_absent_ranks_and_words_are_learned_as_in_memory(client):
    X, y, _ = queries(6)
    words = np.array(["a", "b", "c", "d", "e"])[y]
    for tasks, link in [("vector", "adjacent"), ("shared", "cumulative")]:
        params = {"tasks": tasks, "link": link, "classes": ["a", "b", "none", "c", "d", "e"]}
        model, apart = check_ranks(params, X, words)
        assert apart < 1e-6
        assert model.ranks_.tolist() == params["classes"]


def test_predictions_of_ordinal_boosting_are_lazy(client):
    X, y, _ = queries(7)
    dX, dy = da.from_array(X, chunks=(200, 30)), da.from_array(y, chunks=200)
    model = rd.OrdinalBoost(3).fit(dX, dy)
    local = model.to_local()
    assert np.array_equal(model.predict(dX).compute(), local.predict(X))
    assert np.array_equal(model.predict_proba(dX).compute(), local.predict_proba(X))
    decisions = model.decision_function(dX)
    assert decisions.chunks[0] == dX.chunks[0]
    assert np.array_equal(decisions.compute(), local.decision_function(X))


def test_held_out_rows_and_early_stopping_are_as_in_memory(client):
    X, y, qid = queries(8)
    train, held = slice(0, 560), slice(560, None)
    for name, params in [
        ("RankBoost", {**TREES, "n_estimators": 40, "learning_rate": 0.5}),
        ("RankBoost", {"n_estimators": 60}),
        ("OrdinalBoost", {"n_estimators": 60, "learning_rate": 0.5}),
    ]:
        given = {"eval_set": (X[held], y[held])}
        bX, by, bq = blocks(3, X[train], y[train], qid[train])
        of_queries = [{}, {}]
        if name == "RankBoost":
            given["eval_qid"] = qid[held]
            of_queries = [{"qid": qid[train]}, {"qid": bq}]
        params = {**params, "early_stopping_rounds": 4}
        expected = getattr(rc, name)(**params).fit(X[train], y[train], **given, **of_queries[0])
        seen = []
        found = getattr(rd, name)(**params).fit(
            bX, by, **given, **of_queries[1], callbacks=lambda one, to=seen: to.append(one.number)
        )
        assert found.best_iteration_ == expected.best_iteration_
        assert seen == list(range(1, found.best_iteration_ + 5))
        local = found.to_local()
        assert len(local._state.model) == len(expected._state.model)
        for key, values in expected.history_.items():
            np.testing.assert_allclose(found.history_[key], values, rtol=1e-6, atol=1e-9)


def test_drawn_rows_are_a_fraction_of_all(client):
    X, y, qid = queries(9)
    bX, by, bq = blocks(4, X, y, qid)
    params = {**TREES, "n_estimators": 30, "subsample": 0.5, "random_state": 0}
    models = [rd.RankBoost(**params).fit(bX, by, qid=bq, n_shards=4).to_local() for _ in range(2)]
    np.testing.assert_allclose(*(one.predict(X) for one in models), rtol=1e-6, atol=1e-9)
    memory = rc.RankBoost(**params).fit(X, y, qid=qid)
    assert models[0].score(X, y, qid=qid) > memory.score(X, y, qid=qid) - 0.05
    ordinal = rd.OrdinalBoost(30, subsample=0.5, random_state=0).fit(bX, by, n_shards=4)
    memory = rc.OrdinalBoost(30, subsample=0.5, random_state=0).fit(X, y)
    assert ordinal.to_local().score(X, y) > memory.score(X, y) - 0.1


def test_workers_read_files(client, tmp_path):
    X, y, qid = queries(10)
    paths = [tmp_path / f"rows-{k}.txt" for k in range(3)]
    for k, path in enumerate(paths):
        part = slice(280 * k, 280 * (k + 1))
        dump_letor(np.nan_to_num(X[part]), y[part], path, qid=qid[part])
    files = [delayed(load_letor)(path, n_features=30) for path in paths]
    found = rd.RankBoost(**TREES).fit(
        [file.X for file in files], [file.y for file in files], qid=[file.qid for file in files]
    )
    data = [load_letor(path, n_features=30) for path in paths]
    rows = sp.vstack([one.X for one in data], format="csr")
    expected = rc.RankBoost(**TREES).fit(rows, y, qid=qid)
    np.testing.assert_allclose(found.to_local().predict(rows), expected.predict(rows), rtol=1e-6)


def test_many_distinct_values_are_grouped(client):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))  # more values than are kept one by one
    y, qid = (X[:, 0] + rng.normal(size=20_000) > 0).astype(int), np.arange(20_000) // 20
    bX, by, bq = blocks(4, X, y, qid, size=20)
    found = rd.RankBoost(**TREES).fit(bX, by, qid=bq, n_shards=4)
    expected = rc.RankBoost(**TREES).fit(X, y, qid=qid)
    np.testing.assert_allclose(found.history_["bound"], expected.history_["bound"], rtol=1e-2)


class Losing:
    """Actors that lose a worker in the calls with some numbers."""

    def __init__(self, calls, monkeypatch):
        self.left, self.n = set(calls), 0
        call = ActorRounds.call

        def lose(actors, method, *args):
            self.n += 1
            if self.n in self.left:
                self.left.remove(self.n)
                raise WorkerLost("tcp://gone is gone")
            return call(actors, method, *args)

        monkeypatch.setattr(ActorRounds, "call", lose)


@pytest.mark.parametrize("name", ["stumps", "trees", "ndcg", "two labels", "vector", "cumulative"])
def test_a_fit_continues_after_any_lost_call(name, client, monkeypatch):
    X, y, qid = queries(11)
    bX, by, bq = blocks(3, X, y, qid)

    def fit():
        if name == "two labels":
            z = [(one > 1).astype(int) for one in by]
            return rd.BipartiteRankBoost(**TREES).fit(bX, z, n_shards=3).to_local()
        if name in OF_RANKS:
            return rd.OrdinalBoost(4, **OF_RANKS[name]).fit(bX, by, n_shards=3).to_local()
        return rd.RankBoost(**OF_PAIRS[name]).fit(bX, by, qid=bq, n_shards=3).to_local()

    expected, calls = fit(), Losing([], monkeypatch)
    fit()
    losing = Losing([1, 2, calls.n // 3, calls.n // 2, calls.n - 1], monkeypatch)
    found = fit()
    assert not losing.left
    predict = "predict_proba" if name in OF_RANKS else "predict"
    scores = [getattr(one, predict)(X) for one in (found, expected)]
    np.testing.assert_allclose(*scores, rtol=1e-6, atol=1e-9)
    for key, values in expected.history_.items():
        np.testing.assert_allclose(found.history_[key], values, rtol=1e-6, atol=1e-9)


def test_workers_that_are_lost_again_and_again_end_the_fit(client, monkeypatch):
    X, y, qid = queries()
    bX, by, bq = blocks(2, X, y, qid)
    Losing(range(1, 100), monkeypatch)
    model = rd.RankBoost(4)
    with pytest.raises(RuntimeError, match=r"lost a worker 10 times \(tcp://gone is gone\)"):
        model.fit(bX, by, qid=bq, n_shards=2)
    assert not hasattr(model, "_state")


def test_a_tree_of_31_leaves_takes_few_exchanges(client, monkeypatch):
    X, y, qid = make_letor(200, 40, random_state=0)
    bX, by, bq = blocks(2, X, y, qid, size=40)
    exchanges = []
    leave = ActorRounds.__exit__

    def noting(self, *args):
        leave(self, *args)
        exchanges.append(self.n_calls)

    monkeypatch.setattr(ActorRounds, "__exit__", noting)
    model = rd.RankBoost(20, max_leaf_nodes=31).fit(bX, by, qid=bq, n_shards=2)
    deepest = [depth_of(tree.children) for tree in model.to_local()._state.model.trees]
    # One for each level and one for the next root; a few where units change, a tree ends with
    # another leaf than was likely, or a split leaves too few rows: mostly one a tree at most.
    assert exchanges[0] <= sum(deepest) + 20 + 15
    for depth in (6, 7):
        bounded = {"max_leaf_nodes": 31, "max_depth": depth, "min_samples_leaf": 1}
        rd.RankBoost(20, **bounded).fit(bX, by, qid=bq, n_shards=2)
        # Two more for the units of the first tree, and one where the end was not foreseen.
        assert exchanges[-1] / 20 <= depth + 1.4
    rd.RankBoost(50).fit(bX, by, qid=bq, n_shards=2)
    assert exchanges[-1] <= 50 + 2


def depth_of(children):
    """Return the number of levels of nodes."""
    levels = {0: 1}
    for node, both in enumerate(children.tolist()):
        levels |= {child: levels[node] + 1 for child in both if child >= 0}
    return max(levels.values())


def test_options_that_shards_do_not_support_are_rejected(client):
    X, y, qid = queries()
    bX, by, bq = blocks(3, X, y, qid)
    for learner, given, message in [
        (rd.RankBoost(3, max_bins=None), {"qid": bq}, "requires max_bins"),
        (rd.RankBoost(3, select="normalizer"), {"qid": bq}, "requires select='edge'"),
        (rd.RankBoost(3, warm_start=True), {"qid": bq}, "requires warm_start=False"),
        (rd.RankBoost(3, max_leaf_nodes=4, categorical_features=[1]), {"qid": bq}, "categorical"),
        (rd.RankBoost(3), {}, "divided among 3 shards"),
        (rd.OrdinalBoost(3, max_bins=None), {}, "requires max_bins"),
        (rd.OrdinalBoost(3, loss="kappa"), {}, "requires loss="),
        (rd.RankBoost(3, early_stopping_rounds=2), {"qid": bq}, "requires eval_set"),
    ]:
        with pytest.raises(ValueError, match=message):
            learner.fit(bX, by, n_shards=3, **given)
        assert not hasattr(learner, "_state")
    with pytest.raises(ValueError, match="nothing to learn from"):
        rd.RankBoost(3).fit(bX, [one * 0 for one in by], qid=bq)
    z = [(one > 1).astype(int) for one in by]
    with pytest.raises(ValueError, match="divided among 3 shards"):
        rd.BipartiteRankBoost(3, max_leaf_nodes=4, pair_weight="map").fit(bX, z, n_shards=3)


def test_weights_that_vanish_are_rejected(client):
    X, y, qid = queries()
    w = np.full(y.size, 1e-200)  # products of which are 0
    w[-14:] = np.eye(14)[0]  # no pair
    bX, by, bq, bw = blocks(4, X, y, qid, w)
    with pytest.raises(ValueError, match="the weights of some pairs underflow"):
        rd.RankBoost(2, balance=None).fit(bX, by, qid=bq, sample_weight=bw, n_shards=4)
