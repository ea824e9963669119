"""Learners on a cluster: rows from collections, mixing of online learners, errors."""

import importlib
import inspect
import re
import sys
import time
from copy import deepcopy
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

import rankcore as rc
from declared import learns_from
from rankcore._core.ids import joined
from rankcore.datasets import make_letor, make_ordinal

pytest.importorskip("distributed", reason="needs the dask extra")

import dask.array as da
from dask import delayed

import rankcore.dask as rd
from rankcore.dask import _online
from rankcore.dask._blocks import join_labels

LEARNERS = [name for name in rd.__all__ if inspect.isclass(getattr(rd, name))]
ORDINAL = [name for name in LEARNERS if issubclass(getattr(rd, name), rd.OnlineClassifier)]
ENSEMBLES = [name for name in ORDINAL if hasattr(getattr(rd, name)(), "n_estimators")]
RANKERS = [name for name in LEARNERS if learns_from(getattr(rc, name)) == "queries"]
BOOSTED = [name for name in RANKERS if hasattr(getattr(rd, name)(), "n_estimators")]
WORDS = ["poor", "fair", "good", "best"]  # neither ascending nor descending


@pytest.fixture(scope="module")
def rows():
    X, y = make_ordinal(1200, 30, mean_nnz=8, random_state=0)
    return sp.csr_array(X), y


@pytest.fixture(scope="module")
def queries():
    X, y, qid = make_letor(60, 12, n_features=90, random_state=0)
    return (X - X.mean(axis=0)) / X.std(axis=0), y, qid


def blocks(n, *arrays):
    """Return lists of n delayed blocks."""
    edges = np.linspace(0, arrays[0].shape[0], n + 1).astype(int)
    return [[delayed(one[a:b]) for a, b in pairwise(edges)] for one in arrays]


def test_equal_ids_of_integers_and_floats_are_one_query(client, queries):
    X, y, qid = queries
    given = [delayed(X[:300]), delayed(X[300:600])], [delayed(y[:300]), delayed(y[300:600])]
    mixed = [delayed(qid[:300].astype(np.int64)), delayed(qid[300:600].astype(np.float64))]
    expected = rc.RankSVM(0.01).fit(X[:600], y[:600], qid=qid[:600])
    model = rd.RankSVM(0.01).fit(*given, qid=mixed, n_shards=1)
    assert model.objective_ == pytest.approx(expected.objective_, rel=2 * expected.tol)


def test_labels_and_ids_of_blocks_are_not_converted():
    large = np.array([2**53 + 1]), np.array([2.0**53])
    ids = joined(large, "qid").tolist()
    assert ids == [2**53 + 1, 2**53]
    assert len({*ids}) == 2
    assert join_labels([np.array([1]), np.array([1.5])]).tolist() == [1.0, 1.5]
    assert join_labels([np.array([b"a"]), np.array([b"bc"])]).tolist() == [b"a", b"bc"]
    with pytest.raises(ValueError, match="float64 and int64 cannot represent"):
        join_labels(large)


def learner(name, module=rd, **params):
    more = {"n_estimators": 9} if name in ENSEMBLES else {}
    if name in [*BOOSTED, "BipartiteRankBoost", "OrdinalBoost"]:
        params["n_estimators"] = params.pop("max_iter", 3)
    return getattr(module, name)(**{"random_state": 0, **more, **params})


# ------------------------------------------------------------------------------ frames and blocks


def frames(n=300):
    """Return a data frame whose columns differ, ranks along the first, and the model of both."""
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(n, 2))
    table, y = pd.DataFrame(X, columns=["a", "b"]), np.digitize(X[:, 0], [-0.5, 0.5])
    return table, y, rc.OrdinalBoost(5, min_samples_leaf=1).fit(table, y)


def test_columns_of_a_dataframe_are_compared_with_those_of_the_fit(client):
    table, y, expected = frames()
    dd, pd = importlib.import_module("dask.dataframe"), importlib.import_module("pandas")
    X = dd.from_pandas(table, npartitions=3)
    model = rd.OrdinalBoost(5, min_samples_leaf=1).fit(
        X, dd.from_pandas(pd.Series(y), npartitions=3)
    )
    np.testing.assert_allclose(
        model.predict_proba(X).compute(), expected.predict_proba(table), rtol=1e-6, atol=1e-9
    )
    for method in ("predict", "predict_proba"):
        with pytest.raises(ValueError, match="feature names should match"):
            getattr(model, method)(X[["b", "a"]]).compute()


def test_predictions_of_a_dataframe_compute_nothing(client):
    table, y, _ = frames()
    dd, pd = importlib.import_module("dask.dataframe"), importlib.import_module("pandas")
    X = dd.from_pandas(table, npartitions=3)
    model = rd.OrdinalBoost(2).fit(X, dd.from_pandas(pd.Series(y), npartitions=3))
    broken = X.map_partitions(lambda part: 1 / 0, meta=table[:0])
    for method in ("predict", "predict_proba"):
        predicted = getattr(model, method)(broken)
        with pytest.raises(ZeroDivisionError):
            predicted.compute()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("n_shards", [1, 2])
def test_blocks_of_frames_keep_their_names(library, n_shards, client):
    table, y, expected = frames()
    module = pytest.importorskip(library)
    convert = {
        "pandas": lambda frame: frame,
        "polars": lambda frame: module.DataFrame(frame.to_dict("list")),
        "pyarrow": lambda frame: module.Table.from_pandas(frame, preserve_index=False),
    }[library]
    whole = convert(table)
    parts = [convert(table[:150]), convert(table[150:])]
    labels = [y[:150], y[150:]]
    model = rd.OrdinalBoost(5, min_samples_leaf=1).fit(parts, labels, n_shards=n_shards)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    if library == "pyarrow":
        parts = [whole.slice(0, 100), whole.slice(100, 200)]
    found = np.concatenate([one.compute() for one in model.predict_proba(parts)])
    np.testing.assert_allclose(found, expected.predict_proba(table), rtol=1e-6, atol=1e-9)
    for other in (["b", "a"], ["a"]):
        mixed = [convert(table[:150]), convert(table[150:][other])]
        with pytest.raises(ValueError, match="number of features|order of columns"):
            rd.OrdinalBoost(5).fit(mixed, labels, n_shards=n_shards)


def test_blocks_without_rows_have_no_predictions(client, rows):
    X, y = rows
    model = rd.OrdinalBoost(3).fit(*blocks(2, X.toarray(), y))
    empty = da.from_array(X.toarray(), chunks=(600, 30))[:600][np.zeros(600, dtype=bool)]
    both = da.concatenate([empty, da.from_array(X.toarray(), chunks=(600, 30))])
    assert model.predict(both).compute().shape == (1200,)
    found = model.predict_proba([X[:0].toarray(), X[:5].toarray()])
    assert [one.compute().shape for one in found] == [(0, model.classes_.size), (5, 5)]


# ------------------------------------------------------------------------------ mixing


@pytest.mark.parametrize("name", ORDINAL)
def test_one_shard_in_order_learns_as_memory(name, client, rows):
    X, y = rows
    expected = learner(name, rc, max_iter=3, shuffle=False).fit(X, y)
    found = learner(name, max_iter=3, shuffle=False).fit(*blocks(3, X, y), n_shards=1).to_local()
    assert type(found) is type(expected)
    assert found.history_ == expected.history_
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))


@pytest.mark.parametrize("params", [{}, {"variant": "last"}, {"balance": None}])
def test_one_shard_of_queries_in_order_learns_as_memory(params, client, queries):
    X, y, qid = queries
    bX, by, bq = blocks(3, X, y, qid)
    params = {"max_iter": 3, "shuffle": False, "random_state": 5, **params}
    expected = rc.PairwisePerceptron(**params).fit(X, y, qid=qid)
    found = rd.PairwisePerceptron(**params).fit(bX, by, qid=bq, n_shards=1).to_local()
    assert found.history_ == expected.history_
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ORDINAL)
def test_shards_are_merged_after_each_pass(name, client, rows):
    X, y = rows
    found = learner(name, max_iter=3, shuffle=False)
    found.fit(*blocks(3, X, y), n_shards=3)
    # A state without examples, with the scale of all rows, in the units of all rows.
    scaler = StandardScaler().fit(X.toarray())
    Z = scaler.transform(X.toarray())
    model = learner(name, rc, max_iter=1, shuffle=False, standardize=False).fit(Z, y)
    fresh = model._new_state(X.shape[1], 5)
    for part in {"scale", "margin"} & fresh.model.arrays.keys():
        fresh.model[part][:] = model._state.model[part]
    model._state = fresh
    for _ in range(3):
        copies = [
            deepcopy(model).partial_fit(Z[a : a + 400], y[a : a + 400]) for a in (0, 400, 800)
        ]
        model = rc.merge(copies, base=model)
    assert found.history_ == model.history_
    np.testing.assert_allclose(found.coef_ * scaler.scale_, model.coef_, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found.to_local().predict(X), model.predict(Z))


def test_average_of_pairs_counts_every_success_once(client, queries):
    X, y, qid = queries
    bX, by, bq = blocks(3, X, y, qid)
    model = rd.PairwisePerceptron(max_iter=1, shuffle=False, standardize=False)
    model.fit(bX, by, qid=bq, n_shards=3)
    ones = [
        rc.PairwisePerceptron(max_iter=1, shuffle=False, standardize=False).fit(
            X[part], y[part], qid=qid[part]
        )
        for part in (slice(a, a + 240) for a in (0, 240, 480))
    ]
    successes = [one._state.model.times() for one in ones]
    average = np.average([one.coef_ for one in ones], axis=0, weights=successes)
    np.testing.assert_allclose(model.coef_, average, rtol=1e-12, atol=1e-14)
    mistakes = [one.history_["mistakes"][0] for one in ones]
    last = [one.set_params(variant="last").coef_ for one in ones]
    np.testing.assert_allclose(
        model.set_params(variant="last").coef_, np.mean(last, axis=0), rtol=1e-9
    )
    assert model.history_["mistakes"] == [sum(mistakes)]


@pytest.mark.parametrize("name", [*ORDINAL, "PairwisePerceptron"])
def test_half_life_counts_the_rows_of_each_shard(name, client, rows, queries):
    X, y, *more = queries if name in RANKERS else (rows[0].toarray(), rows[1])
    params = {"max_iter": 1, "shuffle": False, "standardize": False, "half_life": 20.0}
    for scale in ("threshold_scale", "intercept_scaling"):
        if hasattr(learner(name), scale):
            params[scale] = 10.0
    bX, by, *rest = blocks(3, X, y, *more)
    lists = {"qid": rest[0]} if rest else {}

    def average(part):
        """Return the average that a learner in memory has after some rows."""
        queries_of_rows = {"qid": more[0][part]} if more else {}
        return learner(name, rc, **params).fit(X[part], y[part], **queries_of_rows).coef_

    for n in (1, 3):
        ends = np.linspace(0, len(y), n + 1).astype(int)
        expected = np.mean([average(slice(a, b)) for a, b in pairwise(ends)], axis=0)
        found = learner(name, **params).fit(bX, by, n_shards=n, **lists)
        np.testing.assert_allclose(found.coef_, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [one for one in ORDINAL if one not in ENSEMBLES])
def test_automatic_half_life_is_rejected_before_learning(name, client, rows, monkeypatch):
    monkeypatch.setattr(_online, "learn_pass", None)
    with pytest.raises(ValueError, match="half_life='auto' .* set half_life to a number or None"):
        learner(name, half_life="auto").fit(*blocks(3, *rows))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_pairs_are_learned_with_the_deviations_of_all_shards(form, client, queries):
    X, y, qid = queries
    X = np.asarray(X.todense() if sp.issparse(X) else X, dtype=np.float64)
    scales = 10.0 ** np.arange(X.shape[1]).clip(max=6)
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    units = StandardScaler().fit(X, sample_weight=weights).scale_ * np.sqrt(X.shape[1])
    models = []
    for standardize, rows in [("auto", X * scales), (False, X / units)]:
        bX, by, bq, bw = blocks(3, form(rows), y, qid, weights)
        model = rd.PairwisePerceptron(max_iter=2, random_state=0, standardize=standardize)
        models.append(model.fit(bX, by, qid=bq, sample_weight=bw, n_shards=3))
    found, expected = models[0].coef_ * units * scales, models[1].coef_
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", [*ORDINAL, "PairwisePerceptron"])
def test_four_shards_learn_nearly_as_well_as_memory(name, client, rows, queries, tmp_path):
    X, y, *more = queries if name in [*RANKERS] else rows
    given = {"qid": more[0]} if more else {}
    local = learner(name, rc).fit(X, y, **given)
    bX, by, *rest = blocks(4, X, y, *more)
    model = learner(name).fit(bX, by, n_shards=4, **({"qid": rest[0]} if more else {}))
    found = model.to_local()
    assert found.score(X, y, **given) > local.score(X, y, **given) - 0.08
    rc.save(found, tmp_path / "model")  # which also loads it, to check it
    found.partial_fit(X, y, **given)  # of a copy
    again = learner(name).fit(bX, by, n_shards=4, **({"qid": rest[0]} if more else {}))
    np.testing.assert_array_equal(model.coef_, again.coef_)  # by the seed
    other = learner(name, random_state=1)
    other.fit(bX, by, n_shards=4, **({"qid": rest[0]} if more else {}))
    assert not np.array_equal(model.coef_, other.coef_)


def test_model_depends_on_shards_and_not_on_blocks(client, rows):
    X, y = rows[0].toarray(), rows[1]
    models = []
    for chunk in [300, 150, 100]:
        dX, dy = da.from_array(X, chunks=(chunk, 30)), da.from_array(y, chunks=chunk)
        models.append(rd.PRank(random_state=0).fit(dX, dy, n_shards=4))
    for model in models[1:]:
        assert np.array_equal(model.coef_, models[0].coef_)


# ------------------------------------------------------------------------------ weights

WEIGHTS = {
    "counts": np.random.default_rng(0).integers(0, 4, 1200).astype(float),
    "fractions": np.random.default_rng(1).uniform(0.1, 1, 1200),
}


@pytest.mark.parametrize("class_weight", [None, "balanced", {1: 0.25, 2: 0.5}])
@pytest.mark.parametrize("name", ["CuSumRank", "WidrowHoff"])
def test_weights_of_steps_equal_those_in_memory(name, class_weight, client, rows):
    X, y = rows
    w = WEIGHTS["fractions"]
    params = {"max_iter": 2, "shuffle": False, "class_weight": class_weight}
    expected = learner(name, rc, **params).fit(X, y, sample_weight=w)
    bX, by, bw = blocks(3, X, y, w)
    found = learner(name, **params).fit(bX, by, sample_weight=bw, n_shards=1)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9, atol=1e-9)
    assert found.class_weight == class_weight


def test_counts_of_visits_are_repeated_rows(client, rows):
    X, y = rows
    w = WEIGHTS["counts"].copy()
    w[300:600] = 0  # a shard without weight
    fit = {"max_iter": 3, "shuffle": False, "threshold_scale": 1.0}
    bX, by, bw = blocks(4, X, y, w)
    model = rd.PRank(**fit).fit(bX, by, sample_weight=bw, n_shards=4)
    each = [np.repeat(np.arange(a, a + 300), w[a : a + 300].astype(int)) for a in (0, 600, 900)]
    repeated = rd.PRank(**fit)
    repeated.fit([delayed(X[r]) for r in each], [delayed(y[r]) for r in each], n_shards=3)
    np.testing.assert_allclose(model.coef_, repeated.coef_, rtol=1e-12, atol=1e-12)
    assert model.t_ == repeated.t_ == 3 * w.sum()


@pytest.mark.parametrize("name", ["PRank", "OAPBPM"])
def test_weights_below_one_are_relative_to_all_shards(name, client, rows):
    X, y = rows
    w = np.random.default_rng(2).integers(0, 16, 1200) / 64  # sums are exact
    w[600:] *= 4
    bX, by, bw, relative = blocks(4, X, y, w, w / w.mean())
    one = learner(name, max_iter=2).fit(bX, by, sample_weight=bw, n_shards=4)
    other = learner(name, max_iter=2).fit(bX, by, sample_weight=relative, n_shards=4)
    plain = learner(name, max_iter=2).fit(bX, by, n_shards=4)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-9, atol=1e-9)
    assert not np.allclose(one.coef_, plain.coef_)


@pytest.mark.parametrize("weight", [0.1, 7.3])
@pytest.mark.parametrize("name", ["PairwisePerceptron", "RankSVM"])
def test_equal_weights_of_rankers_are_no_weights(name, weight, client, queries):
    X, y, qid = queries
    bX, by, bq, bw = blocks(3, X, y, qid, np.full(y.size, weight))
    expected = learner(name).fit(bX, by, qid=bq)
    found = learner(name).fit(bX, by, qid=bq, sample_weight=bw)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("balance", ["query", None])
def test_weights_of_a_pairwise_shard_equal_those_in_memory(balance, client, queries):
    X, y, qid = queries
    w = np.random.default_rng(3).choice([0.0, 0.5, 1.0, 2.5], y.size)
    bX, by, bq, bw = blocks(3, X, y, qid, w)
    params = {"max_iter": 2, "shuffle": False, "balance": balance}
    expected = rc.PairwisePerceptron(**params).fit(X, y, qid=qid, sample_weight=w)
    model = rd.PairwisePerceptron(**params).fit(bX, by, qid=bq, sample_weight=bw, n_shards=1)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9, atol=1e-9)


# ------------------------------------------------------------------------------ held-out rows


@pytest.mark.parametrize("name", ORDINAL)
def test_held_out_labels_are_measured_as_in_memory(name, client, rows):
    X, y = rows
    params = {"max_iter": 4, "shuffle": False, "eval_metric": ["rank_loss", "accuracy"]}
    expected = learner(name, rc, **params).fit(X[:900], y[:900], eval_set=(X[900:], y[900:]))
    found = learner(name, **params)
    found.fit(*blocks(3, X[:900], y[:900]), n_shards=1, eval_set=(X[900:], y[900:]))
    for key, values in expected.history_.items():
        np.testing.assert_allclose(found.history_[key], values, rtol=1e-9)


@pytest.mark.parametrize("name", ["PRank", "OrdinalBoost", "RankBoost"])
def test_held_out_rows_may_be_collections(name, client, rows, queries):
    X, y, *more = queries if name in RANKERS else (rows[0].toarray(), rows[1])
    bX, by, *rest = blocks(2, X, y, *more)
    given = {"qid": rest[0]} if rest else {}
    histories = []
    for convert in (np.asarray, lambda one: da.from_array(one, chunks=-1)):
        held = {"eval_set": [(convert(X[:240]), convert(y[:240]))]}
        if more:
            held["eval_qid"] = [convert(more[0][:240])]
        histories.append(learner(name, max_iter=2).fit(bX, by, **given, **held).history_)
    assert any(key.startswith("valid_") for key in histories[0])
    assert histories[0] == histories[1]


@pytest.mark.parametrize("name", ["PRank", "OAPBPM", "PairwisePerceptron"])
def test_early_stopping_keeps_the_best_pass(name, client, rows, queries):
    X, y, *more = queries if name in [*RANKERS] else rows
    held = {"eval_set": (X[:240], y[:240]), **({"eval_qid": more[0][:240]} if more else {})}
    bX, by, *rest = blocks(4, X[240:], y[240:], *(one[240:] for one in more))
    if rest:
        held["qid"] = rest[0]
    predictions = []
    model = learner(name, max_iter=40, early_stopping_rounds=3)
    model.fit(
        bX, by, n_shards=2, callbacks=lambda one: predictions.append(one.model.predict(X)), **held
    )
    assert len(predictions) == model.best_iteration_ + 3 < 40
    np.testing.assert_array_equal(
        model.to_local().predict(X), predictions[model.best_iteration_ - 1]
    )


@pytest.mark.parametrize("name", [*ORDINAL, *RANKERS, "OrdinalBoost"])
def test_a_callback_ends_the_fit(name, client, rows, queries):
    X, y, *more = queries if name in [*RANKERS] else rows
    bX, by, *rest = blocks(3, X, y, *more)
    model = learner(name)
    model.fit(bX, by, callbacks=lambda one: one.number == 2, **({"qid": rest[0]} if rest else {}))
    assert model.n_iter_ == 2


@pytest.mark.parametrize("name", [*ORDINAL, *RANKERS, "OrdinalBoost"])
def test_a_fit_reports_progress(name, client, rows, queries):
    X, y, *more = queries if name in [*RANKERS] else rows
    bX, by, *rest = blocks(3, X, y, *more)
    seen = []
    with rc.progress.watch(seen.append):
        model = learner(name).fit(bX, by, **({"qid": rest[0]} if rest else {}))
    assert sorted({one.epoch for one in seen}) == list(range(1, model.n_iter_ + 1))


# ------------------------------------------------------------------------------ collections


def test_predictions_are_lazy_collections(client, rows):
    X, y = rows[0].toarray(), rows[1]
    dX, dy = da.from_array(X, chunks=(400, 15)), da.from_array(y, chunks=300)
    model = rd.PRank(random_state=0).fit(dX, dy)
    local = model.to_local()
    predicted = model.predict(dX)
    assert isinstance(predicted, da.Array)
    assert predicted.dtype == y.dtype
    assert np.array_equal(predicted.compute(), local.predict(X))
    decisions = model.decision_function(dX)
    assert decisions.shape == (1200, 5)
    assert np.array_equal(decisions.compute(), local.decision_function(X))
    found = model.predict([delayed(X[:7]), delayed(X[7:9])])
    assert [one.compute().tolist() for one in found] == [
        local.predict(X[:7]).tolist(),
        local.predict(X[7:9]).tolist(),
    ]
    with pytest.raises(TypeError, match="to_local"):
        model.predict(X)


def test_frames_name_queries_and_weights_by_columns(client, queries):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X, y, qid = queries
    w = np.random.default_rng(0).uniform(1, 2, y.size)
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(90)])
    whole = dd.from_pandas(frame.assign(y=y, qid=qid, w=w), npartitions=5, sort=False)
    model = rd.PairwisePerceptron(max_iter=2, random_state=0)
    model.fit(whole.drop(columns="y"), whole["y"], qid="qid", sample_weight="w", n_shards=5)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    bX, by, bq, bw = blocks(5, X, y, qid, w)
    again = rd.PairwisePerceptron(max_iter=2, random_state=0)
    again.fit(bX, by, qid=bq, sample_weight=bw, n_shards=5)
    assert np.array_equal(model.coef_, again.coef_)
    scores = model.predict(whole.drop(columns=["y", "qid", "w"]))
    assert np.array_equal(scores.compute(), model.to_local().predict(frame))
    some = whole[whole["qid"] == qid[0]]  # most partitions are left without a row
    of_some = model.predict(some.drop(columns=["y", "qid", "w"])).compute()
    assert np.array_equal(of_some, model.to_local().predict(frame[qid == qid[0]]))
    rd.PairwisePerceptron(max_iter=2).fit(some.drop(columns=["y", "w"]), some["y"], qid="qid")


@pytest.mark.parametrize("name", RANKERS)
def test_rows_shuffled_by_query_give_the_model_of_memory(name, client, queries):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    X, y, qid = queries
    order = np.random.default_rng(3).permutation(y.size)
    bX, by, bq = blocks(5, X[order], y[order], qid[order])
    model = learner(name, max_iter=50 if name == "RankSVM" else 2)
    with pytest.raises(
        ValueError, match=r"query \d+ has rows in shards 0 and \d.*shuffle\('qid'\)"
    ):
        model.fit(bX, by, qid=bq, n_shards=3)
    assert not hasattr(model, "_state")
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(90)]).assign(y=y, qid=qid)
    whole = dd.from_pandas(frame.iloc[order], npartitions=5, sort=False)
    whole = whole.shuffle("qid", shuffle_method="tasks")
    model.fit(whole.drop(columns="y"), whole["y"], qid="qid", n_shards=3)
    expected = learner(name, rc, max_iter=50 if name == "RankSVM" else 2).fit(X, y, qid=qid)
    if name in BOOSTED:
        for key, values in expected.history_.items():
            np.testing.assert_allclose(model.history_[key], values, rtol=1e-6)
    elif name == "RankSVM":
        assert model.objective_ == pytest.approx(expected.objective_, rel=expected.tol)
    else:
        for key in ("pairs", "queries", "skipped"):
            assert model.history_[key] == expected.history_[key]


@pytest.mark.filterwarnings("ignore:the order of the ranks is that of y's categories")
@pytest.mark.parametrize("way", ["parameter", "argument", "categorical"])
@pytest.mark.parametrize("name", ["PRank", "OAPBPM"])
def test_words_learn_what_integers_learn(name, way, rows, client):
    pd = pytest.importorskip("pandas")
    X, ranks = rows[0], np.minimum(rows[1] - 1, 3)
    words = np.array(WORDS)[ranks]
    expected = learner(name, max_iter=2).fit(*blocks(3, X, ranks))
    model = learner(name, max_iter=2, classes=WORDS if way == "parameter" else None)
    bX, by = blocks(3, X, words)
    if way == "categorical":
        by = [
            delayed(lambda one: pd.Series(pd.Categorical(one, WORDS, ordered=True)))(b) for b in by
        ]
    model.fit(bX, by, **({"classes": WORDS} if way == "argument" else {}))
    assert model.ranks_.tolist() == WORDS
    found = np.concatenate([one.compute() for one in model.predict(bX)])
    numbers = np.concatenate([one.compute() for one in expected.predict(bX)])
    np.testing.assert_array_equal(found, np.array(WORDS)[numbers])


@pytest.mark.parametrize("name", RANKERS)
def test_rankers_reject_labels_that_are_words(name, queries, client):
    pd = pytest.importorskip("pandas")
    X, y, qid = queries
    grades = np.minimum(y, 1).astype(int)
    bX, by, bq = blocks(3, X, np.array(["worse", "better"])[grades], qid)

    def categorical(categories):
        make = delayed(lambda one: pd.Series(pd.Categorical(one, categories, ordered=True)))
        return [make(block) for block in blocks(3, grades)[0]]

    for labels in (by, [delayed(lambda one: one.astype(object))(block) for block in by]):
        with pytest.raises(ValueError, match=r"labels that are numbers; .* as by y.map"):
            learner(name).fit(bX, labels, qid=bq)
    with pytest.raises(ValueError, match="categories of y must ascend if they are numbers"):
        learner(name).fit(bX, categorical([1, 0]), qid=bq)
    with pytest.raises(ValueError, match="requires classes=None"):
        learner(name, classes=["worse", "better"]).fit(bX, by, qid=bq)


@pytest.mark.parametrize("name", LEARNERS)
def test_methods_map_over_blocks_or_are_absent(name, client, rows, queries):
    cls, ordinary = getattr(rd, name), getattr(rc, name)
    X, y, *more = queries if name in RANKERS else (rows[0].toarray(), rows[1])
    if learns_from(ordinary) == "binary queries":
        y = (y > 1).astype(int)
    bX, by, *rest = blocks(3, X, y, *more)
    model = learner(name, max_iter=2 if name != "RankSVM" else 50)
    model.fit(bX, by, **({"qid": rest[0]} if rest else {}))
    dX = da.from_array(X, chunks=(400, X.shape[1]))
    lazy, absent = set(), set()
    for method in (one for one in dir(ordinary) if not one.startswith("_")):
        function = getattr(ordinary, method, None)
        if not inspect.isfunction(function) or "X" not in inspect.signature(function).parameters:
            continue
        if hasattr(model, method):
            lazy.add(method)
        else:
            absent.add(method)
            with pytest.raises(AttributeError, match=rf"to_local\(\)\.{method}\(X.compute\(\)"):
                getattr(model, method)
            assert callable(getattr(model.to_local(), method))
    assert {"predict", "fit"} <= lazy <= {"predict", "fit", "predict_proba", "decision_function"}
    assert "score" in absent
    assert {*dir(cls)} >= lazy
    for method in lazy - {"fit"}:
        found = getattr(model, method)(dX)
        assert isinstance(found, da.Array)
        np.testing.assert_array_equal(found.compute(), getattr(model.to_local(), method)(X))


# ------------------------------------------------------------------------------ errors


def bad(change):
    """Return a function of blocks that changes a copy of the third."""

    def changed(parts):
        copies = [one.compute().copy() for one in parts]
        copies[2] = change(copies[2])
        return [delayed(one) for one in copies]

    return changed


def with_value(value):
    def change(block):
        block[(5,) * block.ndim] = value
        return block

    return bad(change)


ERRORS = {
    "X with infinity": ("X", with_value(np.inf), "shard 2: .*infinity"),
    "X of another width": (
        "X",
        bad(lambda b: b[:, :4]),
        "number of features must be the same in all blocks; got 90 .* 4 .*n_features=",
    ),
    "X of no matrix": ("X", bad(lambda b: "abc"), "shard 2: blocks of rows must be arrays"),
    "y with NaN": ("y", with_value(np.nan), "shard 2: .*NaN"),
    "y shorter": ("y", bad(lambda b: b[:-1]), r"shard 2: .*"),
    "y of words": ("y", bad(lambda b: b.astype(str)), "kind of labels must be the same"),
    "fewer blocks of y": ("y", lambda parts: parts[:2], "got 3 of X and 2 of y"),
    "weights negative": ("w", with_value(-1.0), "shard 2: sample_weight must be finite and not"),
    "weights shorter": ("w", bad(lambda b: b[:-1]), "shard 2: sample_weight must have one value"),
    "weights in part": ("w", lambda parts: [*parts[:2], None], "kind of weights must be"),
    "weights of zero": ("w", lambda parts: [one * 0 for one in parts], "must not be all zero"),
    "no rows": ("all", lambda parts: [one[:0] for one in parts], r"Found 0 sample\(s\)"),
    "ids in part": ("q", lambda parts: [*parts[:2], None], "kind of query ids must be"),
    "ids shorter": ("q", bad(lambda b: b[:-1]), "shard 2: qid must have one value per row"),
    "ids of two kinds": (
        "q",
        bad(lambda b: b.astype(str)),
        "got numbers in some and str in others",
    ),
    "a query in two shards": ("q", bad(lambda b: b * 0 + 1), "has rows in shards 0 and 2"),
}


def faulty_fits():
    """Yield each fault with two learners in turn; faults of queries with every ranker."""
    names = ["PRank", "OAPBPM", *RANKERS, "OrdinalBoost"]
    for i, (fault, (what, _, _)) in enumerate(ERRORS.items()):
        two = [names[i % len(names)], names[(i + 3) % len(names)]]
        for name in RANKERS if what == "q" else two:
            yield pytest.param(name, fault, id=f"{name}-{fault}")


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize(("name", "fault"), [*faulty_fits()])
def test_bad_rows_are_named_and_leave_the_estimator(name, fault, client, queries):
    X, y, qid = queries
    parts = dict(zip("Xyqw", blocks(3, X, y.astype(float), qid, np.ones(y.size)), strict=True))
    if name not in RANKERS:
        del parts["q"]
    model = learner(name, max_iter=1)

    def fit():
        given = {"sample_weight": parts["w"], **({"qid": parts["q"]} if "q" in parts else {})}
        return model.fit(parts["X"], parts["y"], n_shards=3, **given)

    before = fit().to_local().predict(X)
    what, change, message = ERRORS[fault]
    for key in parts if what == "all" else [what]:
        parts[key] = change(parts[key])
    with pytest.raises((ValueError, TypeError), match=message):
        fit()
    assert np.array_equal(model.to_local().predict(X), before)


@pytest.mark.parametrize("name", ["PRank", "RankBoost", "OrdinalBoost"])
def test_columns_of_categories_are_rejected_with_their_name(name, client):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": [1.0, 2.0], "colour": pd.Categorical(["red", "blue"])})
    given = {"qid": [np.zeros(2, int)]} if name == "RankBoost" else {}
    with pytest.raises(ValueError, match="column 'colour' has dtype category: encode it"):
        getattr(rd, name)().fit([X], [np.arange(2)], n_shards=1, **given)


def test_bad_arguments_are_rejected(client, rows):
    X, y = rows
    bX, by = blocks(2, X, y)
    for fit, error, message in [
        (lambda: rd.PRank().fit(X, by), TypeError, "X must be a dask array"),
        (lambda: rd.PRank().fit(bX[0], by[0]), TypeError, "or a list of delayed blocks"),
        (lambda: rd.PRank().fit(bX), ValueError, "requires y"),
        (
            lambda: rd.PRank().fit([bX[0], delayed(np.ones((600, 30)))], [by[0]] * 2, n_shards=1),
            ValueError,
            "shard 0: the kind of rows must be .* got sparse in some and dense in others",
        ),
        (
            lambda: rd.PRank().fit([], []),
            TypeError,
            r"or a list of delayed blocks; got \[\]",
        ),
        (lambda: rd.PRank().fit(bX, [one * 0 for one in by]), ValueError, "only one class"),
        (lambda: rd.PRank(classes=[1, 2]).fit(bX, by), ValueError, "class"),
        (lambda: rd.PRank().fit("rows.txt", by), TypeError, "X must be a dask array"),
        (lambda: rd.PRank().fit(bX, by, client="tcp://x"), TypeError, "got 'tcp://x'"),
        (lambda: rd.PairwisePerceptron("committee").fit(bX, by), ValueError, "requires variant="),
        (lambda: rd.PairwisePerceptron().fit(bX, by), ValueError, "qid is required"),
        (lambda: rd.RankSVM(kernel="rbf").fit(bX, by), ValueError, "requires kernel=None"),
        (lambda: rd.RankSVM().fit(bX, by), ValueError, "divided among 2 shards"),
        (
            lambda: rd.PRank(early_stopping_rounds=2).fit(bX, by),
            ValueError,
            "early_stopping_rounds requires eval_set",
        ),
        (
            lambda: rd.CuSumRank(update="pa").fit(bX, by, sample_weight=by),
            ValueError,
            "does not support weights",
        ),
    ]:
        with pytest.raises(error, match=message):
            fit()
    for n in [0, -1, True, 1.5, "a"]:
        with pytest.raises((ValueError, TypeError), match=f"n_shards must be .*got {n!r}"):
            rd.PRank().fit(bX, by, n_shards=n)
    assert rd.PRank(max_iter=1).fit(bX, by, n_shards=np.int64(1)).t_ == 1200


@pytest.mark.parametrize("name", [*ORDINAL, *RANKERS, "OrdinalBoost"])
def test_a_fit_leaves_nothing_on_the_workers(name, client, rows, queries):
    X, y, *more = queries if name in [*RANKERS] else rows
    bX, by, *rest = blocks(3, X, y, *more)
    given = {"qid": rest[0]} if rest else {}
    learner(name, max_iter=2 if name != "RankSVM" else 50).fit(bX, by, **given)
    with pytest.raises(ZeroDivisionError):
        learner(name).fit(bX, by, callbacks=lambda one: 1 / 0, **given)

    def left(dask_scheduler):
        return [key for key in dask_scheduler.tasks if not str(key).startswith("finalize")]

    end = time.monotonic() + 10
    while found := client.run_on_scheduler(left):  # tasks are dropped a moment later
        assert time.monotonic() < end, found
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("dask", r"rankcore\.dask requires dask: pip install 'rankcore\[dask\]'"),
        ("distributed", r"rankcore\.dask requires distributed: pip install 'rankcore\[dask\]'"),
    ],
)
def test_without_the_extra_an_error_says_what_to_install(missing, message, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "rankcore.dask._blocks")
    with pytest.raises(ModuleNotFoundError, match=message):
        importlib.import_module("rankcore.dask._blocks")


def test_only_the_public_interface_of_dask_is_used():
    for path in Path(rd.__file__).parent.glob("*.py"):
        text = path.read_text()
        assert not re.search(r"^ *(from|import) (dask|distributed)\.", text, re.MULTILINE)
        assert not re.search(r"\.rpc\b|actor_execute|get_worker|\.state\.actors|_worker\b", text)
