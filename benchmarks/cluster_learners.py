"""Ensembles and ranking SVMs on a Dask cluster of this machine, beside one thread.

``RANKCORE_CLUSTER_ROWS`` sets the rows of the ensembles (default 100000),
``RANKCORE_CLUSTER_QUERIES`` the queries of the SVM (2000).
"""

import os
import tempfile
import time
import warnings
from functools import partial
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import rankcore as rc
from benchmarks.measure import (
    machine,
    processor_seconds,
    seconds_between,
    seconds_each,
    show,
    sized,
    worker_seconds,
)
from rankcore.datasets import make_letor, make_ordinal

N_BLOCKS = 4
N_DOCS = 120


def run(repeat: int) -> None:
    """Measure and print."""
    from distributed import Client

    print(machine())
    with (
        tempfile.TemporaryDirectory() as folder,
        Client(n_workers=2, threads_per_worker=1, dashboard_address=":0") as client,
    ):
        show([*ensembles(client, folder, repeat), *machines(client, folder, repeat)])


def in_blocks(folder, edges, *arrays):
    """Lists of delayed blocks, which workers read from files."""
    import dask

    read = dask.delayed(block_of, pure=True)
    lists = []
    for one in arrays:
        paths = []
        for a, b in pairwise(edges):
            paths.append(f"{folder}/{len(os.listdir(folder))}")
            if sp.issparse(one):
                paths[-1] += ".npz"
                sp.save_npz(paths[-1], sp.csr_array(one[a:b]), compressed=False)
            else:
                paths[-1] += ".npy"
                np.save(paths[-1], one[a:b])
        lists.append([read(path) for path in paths])
    return lists


def block_of(path):
    """A block of rows."""
    return sp.csr_array(sp.load_npz(path)) if path.endswith("z") else np.load(path)


def ensembles(client, folder, repeat):
    """A pass of 100 members."""
    import rankcore.dask as rd

    n = int(os.environ.get("RANKCORE_CLUSTER_ROWS", sized(100_000, 2_000)))
    X, y = make_ordinal(n, random_state=101)
    blocks = in_blocks(folder, [n * k // N_BLOCKS for k in range(N_BLOCKS + 1)], X, y)
    params = {"n_estimators": 100, "max_iter": 4, "random_state": 0}
    models = rc.OAPBPM(**params), rd.OAPBPM(**params)
    fits = partial(models[0].fit, X, y), partial(models[1].fit, *blocks)
    one, two = (min(seconds_between(fit) for _ in range(repeat)) for fit in fits)
    same = np.array_equal(models[0].coef_, models[1].coef_)

    def passes(k, n):
        return partial(models[k].set_params(max_iter=n).fit, *(fits[k].args))

    thread = seconds_each(lambda n: processor_seconds(1, fit=passes(0, n))["fit"], 3)
    busiest = seconds_each(lambda n: worker_seconds(client, passes(1, n)), 3)
    return [
        (f"OAPBPM, 100 members, {n} rows: a pass of one thread", f"{one:.2f} s", ""),
        ("on 2 workers", f"{two:.2f} s", f"{one / two:.2f} times faster"),
        ("processor time, one thread", f"{thread:.2f} s", ""),
        ("processor time, the busiest worker", f"{busiest:.2f} s", ""),
        ("the models", "equal to the bit" if same else "DIFFERENT", "equal"),
    ]


def machines(client, folder, repeat):
    """Fits of a ranking SVM."""
    import rankcore.dask as rd

    n_queries = int(os.environ.get("RANKCORE_CLUSTER_QUERIES", sized(2000, 40)))
    X, y, qid = make_letor(n_queries, random_state=0)
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
    edges = [n_queries * k // N_BLOCKS * N_DOCS for k in range(N_BLOCKS + 1)]
    bX, by, bq = in_blocks(folder, edges, X, y, qid)

    def seconds(model, *rows, **options):
        times = []
        for _ in range(repeat):
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("error", ConvergenceWarning)
                model.fit(*rows, **options)
            times.append(time.perf_counter() - start)
        return min(times)

    alone, four, two = (
        rc.RankSVM(0.1, random_state=0),
        rd.RankSVM(0.1, random_state=0),
        rd.RankSVM(0.1, random_state=0),
    )
    one = seconds(alone, X, y, qid=qid)
    shared = seconds(four, bX, by, qid=bq, n_shards=4)
    two.fit(bX, by, qid=bq, n_shards=2)
    thread = processor_seconds(1, fit=partial(alone.fit, X, y, qid=qid))["fit"]
    busiest = worker_seconds(client, partial(four.fit, bX, by, qid=bq, n_shards=4))
    asked = sum(four.history_["products"]) + 2 * four.n_iter_
    same = np.array_equal(four.coef_, two.coef_)
    return [
        (f"RankSVM, {n_queries} queries: a fit of one thread", f"{one:.2f} s", ""),
        ("in 4 shards on 2 workers", f"{shared:.2f} s", f"{one / shared:.2f} times faster"),
        ("processor time, one thread", f"{thread:.2f} s", ""),
        ("processor time, the busiest worker", f"{busiest:.2f} s", ""),
        ("steps, and about as many questions", f"{four.n_iter_}, {asked}", ""),
        ("objective beside that of memory", f"{four.objective_ / alone.objective_ - 1:.1e}", ""),
        ("4 and 2 shards", "equal to the bit" if same else "DIFFERENT", "equal"),
    ]
