"""Learners on a cluster: one shard is the model of memory, many are the mixing that is defined."""

import gzip
import importlib
import sys
import threading
import time
from copy import deepcopy
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import rankcore as rc
from rankcore.datasets import dump_letor, load_letor, make_letor, make_ordinal

pytest.importorskip("distributed", reason="needs the dask extra")

import dask.array as da
from dask import delayed
from distributed import Client, LocalCluster

import rankcore.dask as rd
from rankcore.dask import _engine, _ranges, _rounds, _run
from rankcore.ordinal import _weights

ORDINAL = ["PRank", "CuSumRank", "WidrowHoff", "MulticlassPerceptron"]


@pytest.fixture(scope="module")
def rows():
    X, y = make_ordinal(1200, 30, mean_nnz=8, random_state=0)
    return sp.csr_array(X), y


@pytest.fixture(scope="module")
def queries():
    X, y, qid = make_letor(60, 12, n_features=90, random_state=0)
    return (X - X.mean(axis=0)) / X.std(axis=0), y, qid


def arrays(X, *others, chunk):
    """Dask arrays of blocks of so many rows; of CSR as it is."""
    if not sp.issparse(X):
        return [da.from_array(one, chunks=(chunk, *one.shape[1:])) for one in (X, *others)]
    X = sp.csr_matrix(X)  # older releases of Dask do not know csr_array
    chunks = [X[start : start + chunk] for start in range(0, X.shape[0], chunk)]
    blocks = [da.from_delayed(delayed(one), one.shape, meta=X[:0]) for one in chunks]
    return [da.concatenate(blocks), *(da.from_array(one, chunks=chunk) for one in others)]


def saved(model, tmp_path):
    rc.save(model, tmp_path / "model")
    return (tmp_path / "model").read_bytes()


@pytest.mark.parametrize(
    ("kind", "params"),
    [("dense", {}), ("csr", {"average": False}), ("csr", {"shuffle": False})],
)
@pytest.mark.parametrize("name", ORDINAL)
def test_one_shard_is_the_model_of_memory(name, params, kind, client, rows, tmp_path):
    if name == "WidrowHoff":
        params = {key: value for key, value in params.items() if key != "average"}
    X, y = rows if kind == "csr" else (rows[0].toarray(), rows[1])
    expected = getattr(rc, name)(max_iter=4, random_state=5, **params).fit(X, y)
    model = getattr(rd, name)(max_iter=4, random_state=5, **params)
    model.fit(*arrays(X, y, chunk=500), n_shards=1)
    local = model.to_local()
    assert type(local) is type(expected)
    assert saved(local, tmp_path) == saved(expected, tmp_path)


def test_one_shard_visits_blocks_of_large_rows_as_memory_does(client, rows, monkeypatch, tmp_path):
    X, y = rows
    apart = saved(rc.PRank(max_iter=2, random_state=0).fit(X, y), tmp_path)
    monkeypatch.setattr(_weights, "CACHED_BYTES", 1000)
    expected = saved(rc.PRank(max_iter=2, random_state=0).fit(X, y), tmp_path)
    assert expected != apart
    model = rd.PRank(max_iter=2, random_state=0).fit(*arrays(X, y, chunk=500), n_shards=1)
    assert saved(model.to_local(), tmp_path) == expected


@pytest.mark.parametrize("params", [{}, {"variant": "last"}, {"shuffle": False}, {"balance": None}])
def test_one_shard_is_the_pairwise_model_of_memory(params, client, queries, tmp_path):
    X, y, qid = queries
    expected = rc.PairwisePerceptron(max_iter=3, random_state=5, **params).fit(X, y, qid=qid)
    dX, dy, dq = arrays(X, y, qid, chunk=120)
    model = rd.PairwisePerceptron(max_iter=3, random_state=5, **params)
    model.fit(dX, dy, qid=dq, n_shards=1)
    assert saved(model.to_local(), tmp_path) == saved(expected, tmp_path)


def test_shards_have_the_same_factors_of_features(client, queries, tmp_path):
    X, y, qid = queries
    factors = np.resize([1.0, 1 / 1024, 8.0], X.shape[1]).astype(X.dtype)
    params = {"max_iter": 2, "random_state": 5}
    wide = rd.PairwisePerceptron(**params)
    hand = rd.PairwisePerceptron(**params, feature_scale=None)
    for model, one in ((wide, X / factors), (hand, X)):
        dX, dy, dq = arrays(one, y, qid, chunk=240)
        model.fit(dX, dy, qid=dq, n_shards=3)
    local = rc.PairwisePerceptron(**params).fit(X / factors, y, qid=qid)
    found = wide.to_local()
    assert found._state.scale.tolist() == local._state.scale.tolist() == factors.tolist()
    assert np.array_equal(found.coef_, hand.to_local().coef_ * factors)
    dX, dy, dq = arrays(X / factors, y, qid, chunk=240)
    alone = rd.PairwisePerceptron(**params).fit(dX, dy, qid=dq, n_shards=1).to_local()
    assert saved(alone, tmp_path) == saved(local, tmp_path)


def mixed_by_hand(model, parts, classes, epochs):
    """Passes of copies over parts, averaged: as `rankcore.merge` documents it."""
    for _ in range(epochs):
        copies = []
        for X, y in parts:
            one = deepcopy(model)
            one._state.streaming = False
            copies.append(one.partial_fit(X, y, classes=classes))
        model = rc.merge(copies, base=model)
    return model


@pytest.mark.parametrize("name", ORDINAL)
def test_many_shards_are_merged_after_each_pass(name, client, rows):
    X, y = rows
    classes = np.unique(y)
    model = getattr(rd, name)(max_iter=3, shuffle=False)
    model.fit(*arrays(X, y, chunk=300), n_shards=3)
    # The scale of all rows, of which the first fit of one pass over them leaves a state.
    start = getattr(rc, name)(max_iter=1, shuffle=False).fit(X, y)
    fresh = start._new_state(X.shape[1], classes.size)
    if "scale" in fresh.others:
        fresh.others["scale"][:] = start._state.others["scale"]
    start._state = fresh
    edges = [4 * i // 3 for i in range(4)]
    parts = [(X[300 * a : 300 * b], y[300 * a : 300 * b]) for a, b in pairwise(edges)]
    expected = mixed_by_hand(start, parts, classes, 3)
    assert np.array_equal(model.coef_, expected.coef_)
    assert model.t_ == expected.t_ == 3600
    assert np.array_equal(model.to_local().predict(X), expected.predict(X))


def test_the_average_of_pairs_counts_every_success_once(client, queries):
    X, y, qid = queries
    dX, dy, dq = arrays(X, y, qid, chunk=240)
    model = rd.PairwisePerceptron(max_iter=1, shuffle=False)
    model.fit(dX, dy, qid=dq, n_shards=3)
    parts = [slice(240 * k, 240 * (k + 1)) for k in range(3)]
    ones = [
        rc.PairwisePerceptron(max_iter=1, shuffle=False).fit(X[part], y[part], qid=qid[part])
        for part in parts
    ]
    successes = [one._state.total() for one in ones]
    average = sum(n * one.coef_ for n, one in zip(successes, ones, strict=True)) / sum(successes)
    # Sums of other order: to rounding.
    assert np.allclose(model.coef_, average, rtol=1e-12, atol=1e-14)
    last = [one.set_params(variant="last").coef_ for one in ones]
    assert np.allclose(model.set_params(variant="last").coef_, np.mean(last, axis=0), rtol=1e-12)


@pytest.mark.parametrize("mixing", ["uniform", "mistakes"])
def test_many_shards_learn(mixing, client, rows, queries, tmp_path):
    X, y = rows
    local = rc.PRank(random_state=0).fit(X, y)
    model = rd.PRank(random_state=0).fit(*arrays(X, y, chunk=100), n_shards=4, mixing=mixing)
    assert model.to_local().score(X, y) > local.score(X, y) - 0.05
    assert model.history_["examples"] == local.history_["examples"]
    assert saved(model.to_local(), tmp_path)  # and it can be loaded, which saving checks
    X, y, qid = queries
    local = rc.PairwisePerceptron(random_state=0).fit(X, y, qid=qid)
    dX, dy, dq = arrays(X, y, qid, chunk=120)
    model = rd.PairwisePerceptron(random_state=0).fit(dX, dy, qid=dq, n_shards=4, mixing=mixing)
    found = model.to_local()
    assert found.score(X, y, qid=qid) > local.score(X, y, qid=qid) - 0.02
    assert found.history_["pairs"] == local.history_["pairs"]
    assert saved(found, tmp_path)
    found.partial_fit(X, y, qid=qid)


def test_the_model_depends_on_shards_and_not_on_blocks(client, rows):
    X, y = rows
    dense = X.toarray()
    models = [
        rd.PRank(random_state=0).fit(*arrays(dense, y, chunk=chunk), n_shards=4)
        for chunk in [300, 150, 100]
    ]
    for model in models[1:]:
        assert np.array_equal(model.coef_, models[0].coef_)


def test_predictions_are_lazy_collections(client, rows):
    X, y = rows
    dX, dy = arrays(X, y, chunk=400)
    model = rd.PRank(random_state=0).fit(dX, dy)
    local = model.to_local()
    predicted = model.predict(dX)
    assert isinstance(predicted, da.Array)
    assert predicted.dtype == y.dtype
    assert np.array_equal(predicted.compute(), local.predict(X))
    decisions = model.decision_function(dX)
    assert decisions.shape == (1200, 5)
    assert np.array_equal(decisions.compute(), local.decision_function(X))
    blocks = model.predict([delayed(X[:7]), delayed(X[7:9])])
    assert [block.compute().tolist() for block in blocks] == [
        local.predict(X[:7]).tolist(),
        local.predict(X[7:9]).tolist(),
    ]
    with pytest.raises(TypeError, match="to_local"):
        model.predict(X)


def test_frames(client, queries):
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    X, y, qid = queries
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(90)])
    whole = dd.from_pandas(frame.assign(y=y, qid=qid), npartitions=5, sort=False)
    model = rd.PairwisePerceptron(max_iter=2, random_state=0)
    model.fit(whole.drop(columns="y"), whole["y"], qid="qid", n_shards=5)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    scores = model.predict(whole.drop(columns=["y", "qid"]))
    assert np.array_equal(scores.compute(), model.to_local().predict(frame))
    some = whole[whole["qid"] == qid[0]]  # most partitions are left without a row
    of_some = model.predict(some.drop(columns=["y", "qid"])).compute()
    assert np.array_equal(of_some, model.to_local().predict(frame[qid == qid[0]]))
    expected = rc.metrics.evaluate(y, scores.compute().to_numpy(), qid=qid)
    assert dict(rd.evaluate(whole["y"], scores, qid=whole["qid"])) == dict(expected)
    alone = rd.evaluate(whole["y"], scores, qid=whole["qid"], n_shards=1)
    assert dict(alone) == pytest.approx(dict(expected), rel=1e-12)


def test_a_query_in_two_shards(client, queries):
    X, y, qid = queries
    dX, dy, dq = arrays(X, y, qid, chunk=100)
    model = rd.PairwisePerceptron(max_iter=2, random_state=0)
    with pytest.raises(ValueError, match=r"query \d+ has rows in shards 0 and 1.*regroup=True"):
        model.fit(dX, dy, qid=dq, n_shards=4)
    assert not hasattr(model, "_state")
    model.fit(dX, dy, qid=dq, n_shards=4, regroup=True)
    history = model.history_
    assert history["queries"][0] + history["skipped"][0] == 60
    pairs = rc.PairwisePerceptron(max_iter=1).fit(X, y, qid=qid).history_["pairs"]
    assert history["pairs"][0] == pairs[0]
    with pytest.raises(ValueError, match="has rows in shards"):
        rd.evaluate(dy, dX[:, 0], qid=dq, n_shards=4)


@pytest.mark.parametrize("regroup", [False, True])
@pytest.mark.parametrize("n_shards", [1, 2])
@pytest.mark.parametrize("name", ["PairwisePerceptron", "RankBoost", "RankSVM"])
def test_query_ids_of_blocks_are_of_one_kind(name, n_shards, regroup, client):
    # In memory 1 and "1" are two queries; put together as words they would be one.
    X = [delayed(np.eye(4))] * 2
    y = [delayed(np.array([0, 1, 0, 1]))] * 2
    qid = [delayed(np.array(one)) for one in ([1, 1, 2, 2], ["1", "1", "b", "b"])]
    learner = getattr(rd, name)()
    with pytest.raises(ValueError, match="numbers in some blocks and str in others"):
        learner.fit(X, y, qid=qid, n_shards=n_shards, regroup=regroup)
    words = [delayed(np.array(one)) for one in (["1", "1", "2", "2"], ["c", "c", "b", "b"])]
    learner.fit(X, y, qid=words, n_shards=n_shards, regroup=regroup)


def test_files_may_have_words_in_a_part(client, tmp_path):
    text = "".join(f"{k % 2} qid:{k // 2} {k % 3 + 1}:1\n" for k in range(40))
    (tmp_path / "rows").write_text(text + "0 qid:word 1:1\n1 qid:word 2:1\n")
    found = rd.PairwisePerceptron(random_state=0).fit(str(tmp_path / "rows"), n_shards=4)
    assert found.n_features_in_ == 3


def test_queries_of_many_pairs_are_warned_of(client, monkeypatch):
    monkeypatch.setattr("rankcore.ranking._pairs.MANY_PAIRS", 3)
    y = [delayed(np.array(one)) for one in ([0, 1, 0], [0, 0, 1, 1])]
    X = [delayed(np.eye(4)[:n]) for n in (3, 4)]
    qid = [delayed(np.full(n, n)) for n in (3, 4)]
    with pytest.warns(UserWarning, match="a query has 4 pairs") as caught:
        rd.PairwisePerceptron(max_iter=1).fit(X, y, qid=qid, n_shards=2)
    assert [one.filename for one in caught] == [__file__]


def test_measures_are_those_of_memory(client, queries):
    X, y, qid = queries
    scores = X[:, 0]
    names = ["ndcg@10", "map", "gm_map", "mrr", "P@5", "auc", "num_q"]
    expected = rc.metrics.evaluate(y, scores, qid=qid, metrics=names)
    ds, dy, dq = arrays(scores, y, qid, chunk=120)
    found = rd.evaluate(dy, ds, qid=dq, metrics=names, n_shards=4)
    assert dict(found) == dict(expected)
    assert found.qid.tolist() == expected.qid.tolist()
    for name in names:
        assert np.array_equal(found.per_query[name], expected.per_query[name], equal_nan=True)
    regrouped = rd.evaluate(dy, ds, qid=dq, metrics=names, n_shards=3, regroup=True)
    assert sorted(regrouped.per_query["map"]) == sorted(expected.per_query["map"])


@pytest.mark.parametrize("packed", [False, True])
def test_workers_read_files(packed, client, queries, tmp_path):
    X, y, qid = queries
    path = tmp_path / "rows.txt"
    dump_letor(X, y, path, qid=qid)
    if packed:
        path = tmp_path / "rows.txt.gz"
        path.write_bytes(gzip.compress((tmp_path / "rows.txt").read_bytes()))
    expected = rc.PairwisePerceptron(max_iter=2, random_state=0)
    data = load_letor(path)
    expected.fit(data.X, data.y, qid=data.qid)
    one = rd.PairwisePerceptron(max_iter=2, random_state=0).fit(path, n_shards=1)
    assert np.array_equal(one.coef_, expected.coef_)
    five = rd.PairwisePerceptron(max_iter=2, random_state=0).fit(str(path), n_shards=5)
    assert five.history_["pairs"] == expected.history_["pairs"]
    assert five.n_features_in_ == 90


@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=20),
    n=st.integers(1, 12),
    with_qid=st.booleans(),
    comments=st.booleans(),
)
@settings(deadline=None)
def test_ranges_have_each_query_once(sizes, n, with_qid, comments, tmp_path_factory):
    path = tmp_path_factory.mktemp("ranges") / "rows.txt"
    qid = np.repeat(np.arange(len(sizes)), sizes)
    lines = [f"{k} {f'qid:{q} ' if with_qid else ''}1:{k}\n" for k, q in enumerate(qid)]
    if comments:
        lines = [line + "# a comment with qid:77\n\n" for line in lines]
    path.write_text("".join(lines))
    parts = [_ranges.read(part, 1, False, np.float64) for part in _ranges.cut(str(path), n)]
    parts = [part for part in parts if part is not None]
    assert np.concatenate([part.y for part in parts]).tolist() == list(range(qid.size))
    if with_qid:
        seen = [set(part.qid.tolist()) for part in parts]
        assert sum(map(len, seen)) == len(sizes)


def test_damage_names_the_place(client, tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("1 1:1\n2 1:2\n" * 50 + "1 1:x\n" + "2 1:1\n" * 50)
    with pytest.raises(ValueError, match=r"rows.txt from byte \d+, line \d+"):
        rd.PRank().fit(path, n_shards=4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda X, y: (X, da.where(da.arange(1200, chunks=300) == 700, np.nan, y)),
            "shard 2: .*NaN",
        ),
        (
            lambda X, y: (X.map_blocks(lambda b: np.where(b > 0, np.inf, b)), y),
            r"shard \d: .*contains",
        ),
        (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
        (lambda X, y: (X, None), "requires y"),
        (lambda X, y: (X, y * 0), "only one class"),
    ],
)
def test_bad_input_leaves_the_estimator(change, message, client, rows):
    X, y = rows
    dX, dy = arrays(X.toarray(), y.astype(float), chunk=300)
    model = rd.PRank(random_state=0).fit(dX, dy)
    before = model.coef_
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match=message):
        model.fit(*change(dX, dy), n_shards=4)
    assert np.array_equal(model.coef_, before)


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("dask", r"rankcore\.dask requires dask: pip install 'rankcore\[dask\]'"),
        ("distributed", r"rankcore\.dask requires distributed: pip install 'rankcore\[dask\]'"),
        ("dask.base", "^import of dask.base halted"),  # a damaged installation
    ],
)
def test_without_the_extra(missing, message, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "rankcore.dask._engine")
    with pytest.raises(ModuleNotFoundError, match=message):
        importlib.import_module("rankcore.dask._engine")


@pytest.mark.parametrize(
    ("threads", "workers", "in_all"),
    [({}, 1, 1), ({"a": 1}, 1, 1), ({"a": 3}, 1, 3), ({"a": 2, "b": 2, "c": 1}, 3, 5)],
)
def test_workers_and_threads_count_at_least_one(threads, workers, in_all):
    cluster = SimpleNamespace(nthreads=lambda: threads)
    assert (_engine.n_workers_of(cluster), _engine.n_threads_of(cluster)) == (workers, in_all)


def test_bad_arguments(client, rows):
    X, y = rows
    dX, dy = arrays(X, y, chunk=300)
    with pytest.raises(ValueError, match="mixing must be one of 'uniform', 'mistakes'"):
        rd.PRank().fit(dX, dy, mixing="sum")
    with pytest.raises(ValueError, match="n_shards must be an integer >= 1"):
        rd.PRank().fit(dX, dy, n_shards=0)
    with pytest.raises(TypeError, match="X must be a dask array"):
        rd.PRank().fit(X, dy)
    for fit in (rd.PRank().fit, rd.OAPBPM().fit):
        with pytest.raises(TypeError, match="client must be a distributed.Client; found 'tcp://x'"):
            fit(dX, dy, client="tcp://x")
    with pytest.raises(TypeError, match="client must be a distributed.Client; found False"):
        rd.evaluate(dy, dy, qid=dy, client=False)
    with pytest.raises(TypeError, match="omit y and qid"):
        rd.PRank().fit("rows.txt", dy)
    with pytest.raises(ValueError, match="X has 4 blocks and y 1"):
        rd.PRank().fit(dX, [y])
    with pytest.raises(ValueError, match="requires variant='averaged' or 'last'"):
        rd.PairwisePerceptron("committee").fit(dX, dy, qid=dy)
    with pytest.raises(ValueError, match="qid is required"):
        rd.PairwisePerceptron().fit(dX, dy)


def test_nothing_is_left_on_the_workers(client, rows):
    X, y = rows
    rd.PRank(random_state=0, max_iter=2).fit(*arrays(X, y, chunk=300), n_shards=4)

    def tasks(dask_scheduler):
        return [key for key in dask_scheduler.tasks if "prank" in str(key)]

    for _ in range(50):  # they are dropped a moment later
        if not (left := client.run_on_scheduler(tasks)):
            break
        time.sleep(0.1)
    assert left == []


@pytest.mark.parametrize("learner", [rd.PRank, rd.RankBoost])
def test_a_fit_without_workers_says_so_and_goes_on(learner, monkeypatch):
    monkeypatch.setattr(_run, "ALONE", 0.6)
    monkeypatch.setattr(_run, "LOOK", 0.1)
    monkeypatch.setattr(_rounds, "TOGETHER", 0.05)
    X, y, qid = make_letor(20, 15, n_features=90, random_state=0)
    parts = [[delayed(one[half]) for half in np.s_[:150, 150:]] for one in (X, y, qid)]
    back = []
    with (
        # Not the default client: a fit uses the one that it is given.
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):

        def leave(now):
            if not back:
                cluster.scale(0)
                back.append(threading.Timer(2.5, cluster.scale, [1]))
                back[0].start()

        def fit(**more):
            if learner is rd.RankBoost:
                model, more["qid"] = learner(n_estimators=400), parts[2]
            else:
                model = learner(max_iter=8, random_state=0)
            return model.fit(*parts[:2], client=client, n_shards=2, **more).to_local()

        expected = fit()
        with pytest.warns(RuntimeWarning, match="the cluster has had no workers for 1 seconds"):
            found = fit(callbacks=[leave])
        back[0].join()
    assert np.array_equal(found.predict(X), expected.predict(X))


@pytest.mark.parametrize("bad", [None, "abc", {"a": 1}, [[1.0, 2.0]]])
def test_blocks_that_are_no_arrays_are_refused(bad, client, rows):
    X, y = rows
    given = [delayed(X), delayed(bad)], [delayed(y), delayed(bad)]
    with pytest.raises(ValueError, match="shard 1: blocks of rows must be arrays.*found"):
        rd.PRank(max_iter=1).fit(*given, n_shards=2)


def test_blocks_that_are_sparse_and_dense(client, rows):
    X, y = rows
    with pytest.raises(ValueError, match="some blocks are sparse and others dense"):
        rd.PRank(max_iter=1).fit([delayed(X), delayed(X.toarray())], [delayed(y)] * 2, n_shards=1)
    with pytest.raises(ValueError, match="X is an empty list"):
        rd.PRank(max_iter=1).fit([], [])


@pytest.mark.parametrize("n", [0, -1, True, 1.5, "a"])
def test_numbers_of_shards_are_checked(n, client, rows):
    X, y = [delayed(rows[0])], [delayed(rows[1])]
    message = f"must be an integer >= 1; found {n!r}"
    with pytest.raises((ValueError, TypeError), match=f"n_shards {message}"):
        rd.PRank(max_iter=1).fit(X, y, n_shards=n)
    with pytest.raises((ValueError, TypeError), match=f"n_blocks {message}"):
        rd.OAPBPM(n_estimators=8, max_iter=1).fit(X, y, n_blocks=n)
    with pytest.raises((ValueError, TypeError), match=f"n_shards {message}"):
        rd.evaluate(y, y, qid=y, n_shards=n)


def test_numbers_of_shards_of_numpy(client, rows):
    X, y = [delayed(rows[0])], [delayed(rows[1])]
    assert rd.PRank(max_iter=1, random_state=0).fit(X, y, n_shards=np.int64(1)).t_ == 1200


def test_ordinal_boosting_is_refused_with_the_reason():
    with pytest.raises(AttributeError, match=r"no OrdinalBoost: .* depend on the shards"):
        _ = rd.OrdinalBoost
    with pytest.raises(AttributeError, match="no attribute 'OrdinalBost'"):
        _ = rd.OrdinalBost
    assert "OrdinalBoost" not in rd.__all__
