"""Learners on a Dask cluster of this machine, beside one process.

``RANKCORE_CLUSTER_ROWS`` sets the number of rows (default 100000).
"""

import os
import time
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

import rankcore as rc
from benchmarks.measure import machine, seconds_each, show, sized
from rankcore.datasets import make_letor, make_ordinal

N_BLOCKS, N_DOCS = 4, 120


def run(repeat: int) -> None:
    """Measure and print."""
    from distributed import Client

    print(machine())
    n_rows = int(os.environ.get("RANKCORE_CLUSTER_ROWS", sized(100_000, 2_400)))
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
        rows = [*online(client, n_rows, repeat), *svm(client, n_rows, repeat)]
    show(rows)


def on_workers(client, edges, *arrays):
    """Return lists of blocks on the workers."""
    return [client.scatter([one[a:b] for a, b in pairwise(edges)]) for one in arrays]


def online(client, n_rows, repeat):
    """Passes of online learners, and of next to nothing."""
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
