"""Learners on a Dask cluster of this machine, beside one process.

``RANKCORE_CLUSTER_ROWS`` sets the number of rows (default 100000), ``RANKCORE_CLUSTER_TREES`` that
of trees (100), ``RANKCORE_CLUSTER_PARTS`` what is measured (default all: "online svm boosting
peers"). LightGBM and XGBoost grow as many trees on the same workers if they are installed; of all
three the processor time of the workers is shown, too, as other programs disturb it least.
"""

import os
import time
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

import rankcore as rc
from benchmarks.measure import machine, seconds_each, show, sized
from rankcore.datasets import make_letor, make_ordinal
from rankcore.metrics import ndcg_score

N_BLOCKS, N_DOCS, N_FEATURES = 4, 120, 50


def run(repeat: int) -> None:
    """Measure and print."""
    from distributed import Client

    print(machine())
    n_rows = int(os.environ.get("RANKCORE_CLUSTER_ROWS", sized(100_000, 2_400)))
    n_trees = int(os.environ.get("RANKCORE_CLUSTER_TREES", sized(100, 3)))
    parts = os.environ.get("RANKCORE_CLUSTER_PARTS", "online svm boosting peers").split()
    rows = []
    for n_workers in (1, 2):
        with Client(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as client:
            if n_workers == 2 and "online" in parts:
                rows += online(client, n_rows, repeat)
            if n_workers == 2 and "svm" in parts:
                rows += svm(client, n_rows, repeat)
            if "boosting" in parts:
                rows += boosting(client, n_workers, n_rows, n_trees)
            if "peers" in parts:
                rows += peers(client, n_workers, n_rows, n_trees)
    show(rows)


def on_workers(client, edges, *arrays):
    """Return lists of blocks on the workers."""
    return [client.scatter([one[a:b] for a, b in pairwise(edges)]) for one in arrays]


def online(client, n_rows, repeat):
    """Time passes of online learners, and of almost empty data."""
    import rankcore.dask as rd

    X, y = make_ordinal(n_rows, random_state=101)
    edges = [n_rows * k // N_BLOCKS for k in range(N_BLOCKS + 1)]
    blocks = on_workers(client, edges, sp.csr_matrix(X), y)
    tiny = on_workers(client, [0, 10, 20], sp.csr_matrix(X[:20, :50]), np.arange(20) % 2)

    def seconds(module, name, *given):
        more = {"n_estimators": 20} if name == "OAPBPM" else {}

        def fit(n):
            start = time.perf_counter()
            getattr(module, name)(max_iter=n, random_state=0, **more).fit(*given)
            return time.perf_counter() - start

        fit(1)
        return min(seconds_each(fit, sized(5, 2)) for _ in range(repeat))

    rows = [("a pass of 20 rows, 2 shards", f"{seconds(rd, 'PRank', *tiny) * 1e3:.0f} ms", "")]
    for name in ["PRank", "CuSumRank", "OAPBPM"]:
        alone, shared = seconds(rc, name, X, y), seconds(rd, name, *blocks)
        what = f"{name}, {n_rows} rows: a pass in one process; on 2 workers"
        times = f"{alone / shared:.2f} times as fast"
        rows.append((what, f"{alone * 1e3:.0f} ms; {shared * 1e3:.0f} ms", times))
    return rows


def svm(client, n_rows, repeat):
    """Fits of a ranking SVM."""
    import rankcore.dask as rd

    X, y, qid = make_letor(n_rows // N_DOCS, N_DOCS, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    edges = [n_rows // N_DOCS * k // N_BLOCKS * N_DOCS for k in range(N_BLOCKS + 1)]
    bX, by, bq = on_workers(client, edges, X, y, qid)
    times = {}
    for _ in range(repeat):
        for name, module, given in [("one", rc, (X, y, qid)), ("two", rd, (bX, by, bq))]:
            start = time.perf_counter()
            model = module.RankSVM(0.1, random_state=0).fit(*given[:2], qid=given[2])
            times[name] = min(times.get(name, np.inf), time.perf_counter() - start)
    asked = sum(model.history_["products"]) + 2 * model.n_iter_
    return [
        (
            f"RankSVM, {n_rows} rows: a fit in one process; on 2 workers",
            f"{times['one']:.2f} s; {times['two']:.2f} s",
            f"about {asked} exchanges",
        )
    ]


def boosting(client, n_workers, n_rows, n_trees):
    """Fits of trees and stumps, and what their exchanges cost."""
    import rankcore.dask as rd

    X, y, qid = letor(n_rows, 0)
    edges = [len(y) // N_DOCS * k // N_BLOCKS * N_DOCS for k in range(N_BLOCKS + 1)]
    bX, by, bq = on_workers(client, edges, X, y, qid)
    few = on_workers(client, [0, 2 * N_DOCS, 4 * N_DOCS], X[: 4 * N_DOCS], y, qid)
    rows = []
    for what, params in [
        (f"{n_trees} trees of 31 leaves", {"n_estimators": n_trees, "max_leaf_nodes": 31}),
        (
            f"{n_trees} trees of 31 leaves and 7 levels",
            {"n_estimators": n_trees, "max_leaf_nodes": 31, "max_depth": 7},
        ),
        ("OrdinalBoost", {"n_estimators": n_trees}),
        (f"{n_trees} stumps", {"n_estimators": n_trees}),
    ]:
        name = "OrdinalBoost" if what == "OrdinalBoost" else "RankBoost"
        queries = {} if name == "OrdinalBoost" else {"qid": bq}
        model, seconds, calls, waited = measured(getattr(rd, name)(**params), bX, by, queries)
        queries = {} if name == "OrdinalBoost" else {"qid": few[2]}
        tiny = measured(getattr(rd, name)(**params), few[0], few[1], queries)
        score = ndcg(model.to_local().predict) if name == "RankBoost" else ""
        rows.append((f"{n_workers} workers, {what}", f"{seconds:.1f} s", score))
        rows.append(("  exchanges of a round", f"{calls / n_trees:.1f}", ""))
        rows.append(("  an exchange, computing included", f"{waited / calls * 1e3:.1f} ms", ""))
        rows.append(("  an exchange of 480 rows", f"{tiny[3] / tiny[2] * 1e3:.1f} ms", "10 ms"))
        rows.append(("  a round of 480 rows", f"{tiny[1] / n_trees * 1e3:.1f} ms", ""))
    return rows


def letor(n_rows, seed):
    """Return rows of queries with some of the features of `make_letor`."""
    X, y, qid = make_letor(n_rows // N_DOCS, N_DOCS, random_state=seed)
    columns = np.linspace(0, X.shape[1] - 1, N_FEATURES).astype(int)
    return np.ascontiguousarray(X[:, columns]), y, qid


def ndcg(predict):
    """Return a measure on held-out rows, as text."""
    X, y, qid = letor(200 * N_DOCS, 1)
    return f"NDCG@10 {ndcg_score(y, predict(X), qid=qid, k=10):.4f}"


def peers(client, n_workers, n_rows, n_trees):
    """Fits of trees by all tools to rows on the workers, with the processor time of these."""
    X, y, _ = letor(n_rows, 0)
    few, every = (arrays_of(client, X, y, n) for n in (N_BLOCKS, n_rows // N_DOCS))
    rows = []
    for tool, fit in [("rankcore", ours_on), ("lightgbm", lightgbm_on), ("xgboost", xgboost_on)]:
        if find_spec(tool):
            fit(client, few, 1)  # modules are imported once
            start, used = time.perf_counter(), sum(client.run(processor_seconds).values())
            predict = fit(client, every, n_trees)
            seconds = time.perf_counter() - start
            used = sum(client.run(processor_seconds).values()) - used
            what = f"{n_workers} workers, {n_trees} trees of 31 leaves, {tool}"
            rows.append((what, f"{seconds:.1f} s, {used:.1f} s of processors", ndcg(predict)))
    return rows


def processor_seconds():
    """Return the processor time of this process."""
    return time.process_time()


def measured(model, X, y, queries):
    """Return a fitted model, seconds of the fit, and number and seconds of its exchanges."""
    from rankcore.dask._boosting import ActorRounds

    call, spent = ActorRounds.call, []

    def timed(actors, *args):
        start = time.perf_counter()
        found = call(actors, *args)
        spent.append(time.perf_counter() - start)
        return found

    ActorRounds.call = timed
    try:
        start = time.perf_counter()
        model.fit(X, y, n_shards=N_BLOCKS, **queries)
        seconds = time.perf_counter() - start
    finally:
        ActorRounds.call = call
    return model, seconds, len(spent), sum(spent)


def arrays_of(client, X, y, n_queries):
    """Return dask arrays of the first queries on the workers: rows, labels and query ids."""
    import dask.array as da
    from distributed import wait

    edges = [n_queries * k // N_BLOCKS * N_DOCS for k in range(N_BLOCKS + 1)]
    chunks = (tuple(np.diff(edges).tolist()),)
    X, y, qid = X[: edges[-1]], y[: edges[-1]], np.arange(edges[-1]) // N_DOCS
    arrays = [
        da.from_array(X, chunks=(*chunks, X.shape[1])),
        da.from_array(y, chunks=chunks),
        da.from_array(qid, chunks=chunks),
    ]
    arrays = client.persist(arrays)
    wait(arrays)
    return arrays


def ours_on(client, arrays, n_trees):
    """Return the prediction of a fitted `RankBoost`."""
    import rankcore.dask as rd

    X, y, qid = arrays
    model = rd.RankBoost(n_trees, max_leaf_nodes=31)
    return model.fit(X, y, qid=qid, client=client, n_shards=N_BLOCKS).to_local().predict


def lightgbm_on(client, arrays, n_trees):
    """Return the prediction of a fitted LightGBM ranker."""
    import dask.array as da
    from lightgbm import DaskLGBMRanker

    X, y, _ = arrays
    groups = tuple(n // N_DOCS for n in y.chunks[0])
    group = da.full(sum(groups), N_DOCS, chunks=(groups,))
    model = DaskLGBMRanker(client=client, n_estimators=n_trees, num_leaves=31, verbose=-1)
    return model.fit(X, y, group=group).to_local().predict


def xgboost_on(client, arrays, n_trees):
    """Return the prediction of a fitted XGBoost ranker."""
    from xgboost import DMatrix
    from xgboost import dask as dxgb

    X, y, qid = arrays
    data = dxgb.DaskQuantileDMatrix(client, X, y, qid=qid)
    params = {
        "objective": "rank:ndcg",
        "grow_policy": "lossguide",
        "max_leaves": 31,
        "max_depth": 0,
        "eta": 0.1,
        "nthread": 1,
    }
    booster = dxgb.train(client, params, data, num_boost_round=n_trees)["booster"]
    return lambda rows: booster.predict(DMatrix(rows))
