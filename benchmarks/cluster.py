"""Learners on a Dask cluster of this machine, beside one process.

``RANKCORE_CLUSTER_ROWS`` sets the number of rows (default 100000), ``RANKCORE_CLUSTER_TREES`` that
of trees (100). LightGBM and XGBoost learn beside it if they are installed.
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
    rows = []
    for n_workers in (1, 2):
        with Client(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as client:
            if n_workers == 2:
                rows += [*online(client, n_rows, repeat), *svm(client, n_rows, repeat)]
            rows += boosting(client, n_workers, n_rows, n_trees)
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
    """Fits of trees and stumps, what their exchanges cost, and other tools on the same workers."""
    import rankcore.dask as rd

    X, y, qid = make_letor(n_rows // N_DOCS, N_DOCS, random_state=0)
    columns = np.linspace(0, X.shape[1] - 1, N_FEATURES).astype(int)
    X = np.ascontiguousarray(X[:, columns])
    edges = [len(y) // N_DOCS * k // N_BLOCKS * N_DOCS for k in range(N_BLOCKS + 1)]
    bX, by, bq = on_workers(client, edges, X, y, qid)
    held_X, held_y, held_qid = make_letor(200, N_DOCS, random_state=1)
    held_X = np.ascontiguousarray(held_X[:, columns])

    def ndcg(scores):
        return f"NDCG@10 {ndcg_score(held_y, scores, qid=held_qid, k=10):.4f}"

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
        score = ndcg(model.to_local().predict(held_X)) if name == "RankBoost" else ""
        rows.append((f"{n_workers} workers, {what}", f"{seconds:.1f} s", score))
        rows.append(("  exchanges of a round", f"{calls / n_trees:.1f}", ""))
        rows.append(("  an exchange, computing included", f"{waited / calls * 1e3:.1f} ms", ""))
        rows.append(("  an exchange of 480 rows", f"{tiny[3] / tiny[2] * 1e3:.1f} ms", "10 ms"))
        rows.append(("  a round of 480 rows", f"{tiny[1] / n_trees * 1e3:.1f} ms", ""))
    for peer, fit in [("lightgbm", lightgbm_on), ("xgboost", xgboost_on)]:
        if find_spec(peer):
            start = time.perf_counter()
            scores = fit(client, X, y, edges, n_trees, held_X)
            seconds = time.perf_counter() - start
            rows.append((f"{n_workers} workers, {peer}", f"{seconds:.1f} s", ndcg(scores)))
    return rows


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


def arrays_of(X, y, edges):
    """Return dask arrays of whole queries, and the sizes of these."""
    import dask.array as da

    chunks = tuple(np.diff(edges).tolist())
    groups = tuple(n // N_DOCS for n in chunks)
    return (
        da.from_array(X, chunks=(chunks, X.shape[1])),
        da.from_array(y, chunks=(chunks,)),
        da.from_array(np.full(sum(groups), N_DOCS), chunks=(groups,)),
    )


def lightgbm_on(client, X, y, edges, n_trees, held_X):
    """Return the held-out scores of LightGBM's ranker."""
    from lightgbm import DaskLGBMRanker

    dX, dy, group = arrays_of(X, y, edges)
    model = DaskLGBMRanker(client=client, n_estimators=n_trees, num_leaves=31, verbose=-1)
    return model.fit(dX, dy, group=group).to_local().predict(held_X)


def xgboost_on(client, X, y, edges, n_trees, held_X):
    """Return the held-out scores of XGBoost's ranker."""
    import dask.array as da
    from xgboost import DMatrix
    from xgboost import dask as dxgb

    dX, dy, _ = arrays_of(X, y, edges)
    qid = da.from_array(np.arange(len(y)) // N_DOCS, chunks=(tuple(np.diff(edges).tolist()),))
    data = dxgb.DaskQuantileDMatrix(client, dX, dy, qid=qid)
    params = {
        "objective": "rank:ndcg",
        "grow_policy": "lossguide",
        "max_leaves": 31,
        "max_depth": 0,
        "eta": 0.1,
        "nthread": 1,
    }
    booster = dxgb.train(client, params, data, num_boost_round=n_trees)["booster"]
    return booster.predict(DMatrix(held_X))
