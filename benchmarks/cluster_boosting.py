"""RankBoost on a Dask cluster of this machine, beside one thread and a peer on the same cluster.

L is 2,000 queries of 120 documents to learn from and 500 to measure, of 136 features and five
labels; ``RANKCORE_CLUSTER_QUERIES`` makes it smaller, ``RANKCORE_CLUSTER_ROUNDS`` sets the rounds
(400).
"""

import os
import tempfile
import time
from functools import partial
from importlib.util import find_spec
from itertools import pairwise

import numpy as np

import rankcore as rc
from benchmarks.measure import machine, seconds_per_round, show, sized
from rankcore.datasets import make_letor
from rankcore.metrics import ndcg_score

N_SHARDS = 4
N_DOCS = 120


def run(repeat: int) -> None:
    """Measure and print."""
    from distributed import Client

    import rankcore.dask as rd

    print(machine())
    n_queries = int(os.environ.get("RANKCORE_CLUSTER_QUERIES", sized(2000, 40)))
    n_rounds = int(os.environ.get("RANKCORE_CLUSTER_ROUNDS", sized(400, 5)))
    X, y, qid = make_letor(n_queries * 5 // 4, random_state=0)
    X = X.astype(np.float32)
    n = n_queries * N_DOCS
    test, whole = slice(n, None), (X[:n], y[:n], qid[:n])
    edges = [n_queries * k // N_SHARDS * N_DOCS for k in range(N_SHARDS + 1)]

    with (
        tempfile.TemporaryDirectory() as folder,
        Client(n_workers=2, threads_per_worker=1, dashboard_address=":0") as client,
    ):
        shards = in_blocks(folder, whole, [*pairwise(edges)])
        tiny = in_blocks(folder, whole, [(a, a + N_DOCS) for a in (0, N_DOCS)])

        def on(parts, n_parts, rounds=n_rounds):
            bX, by, bq = parts
            return rd.RankBoost(rounds).fit(bX, by, qid=bq, n_shards=n_parts)

        def alone(search, rounds=n_rounds):
            model = rc.RankBoost(rounds)
            model._searches_all = search == "plain"
            return model.fit(whole[0], whole[1], qid=whole[2])

        on(shards, N_SHARDS, 2)  # workers import what they need
        fits = {
            "shards": partial(on, shards, N_SHARDS),
            "auto": partial(alone, "auto"),
            "plain": partial(alone, "plain"),
        }
        rounds, first = (dict.fromkeys(fits, np.inf) for _ in range(2))
        for _ in range(repeat):  # in turn, so that a busy moment hits them alike
            for name, fit in fits.items():
                first[name] = min(first[name], seconds_of(fit, rounds=1))
                rounds[name] = min(rounds[name], seconds_per_round(partial(fit, rounds=n_rounds)))
        little = min(seconds_per_round(partial(on, tiny, 2, 2000)) for _ in range(repeat))
        model, once = (on(shards, n).to_local() for n in (N_SHARDS, 2))
        peer = lightgbm_on(client, shards, n_rounds, X[test]) if find_spec("lightgbm") else None

    def ndcg(scores):
        return f"{ndcg_score(y[test], scores, qid=qid[test], k=10):.4f}"

    same = model.estimators_.tolist() == once.estimators_.tolist()
    rows = [
        *of_rounds(rounds, first),
        ("a round of 240 rows in two shards", f"{little * 1e3:.1f} ms", "under 15 ms"),
        ("4 and 2 shards", "equal to the bit" if same else "DIFFERENT", "equal"),
        ("NDCG@10", ndcg(model.predict(X[test])), ""),
    ]
    if peer is not None:
        rows += [
            (f"LightGBM, two leaves, {n_rounds} rounds, same cluster", f"{peer[0]:.1f} s", ""),
            ("its NDCG@10", ndcg(peer[1]), ""),
        ]
    show(rows)


def of_rounds(rounds, first):
    """Rows of seconds per round, and of those before the first round is over."""

    def ratio(name):
        return f"{rounds[name] / rounds['shards']:.2f} times"

    return [
        ("a round in 4 shards on 2 workers", f"{rounds['shards'] * 1e3:.1f} ms", ""),
        ("a round of one thread, plain search", f"{rounds['plain'] * 1e3:.1f} ms", ""),
        ("a round of one thread, columns spared", f"{rounds['auto'] * 1e3:.1f} ms", ""),
        ("faster than plain search", ratio("plain"), "at least 1.4"),
        ("faster than with columns spared", ratio("auto"), "at least 1.4"),
        ("before the first round is over, in 4 shards", f"{first['shards']:.1f} s", ""),
        ("before the first round is over, one thread", f"{first['auto']:.1f} s", ""),
    ]


def in_blocks(folder, arrays, blocks):
    """Lists of delayed blocks of arrays, which workers read from files."""
    import dask

    read = dask.delayed(rows_of, pure=True)
    paths = [f"{folder}/{name}.npy" for name in ("X", "y", "qid")]
    for path, one in zip(paths, arrays, strict=True):
        np.save(path, one)
    return [[read(path, a, b) for a, b in blocks] for path in paths]


def seconds_of(fit, **args):
    """Seconds of a fit."""
    start = time.perf_counter()
    fit(**args)
    return time.perf_counter() - start


def rows_of(path, start, stop):
    """Some rows of an array in a file."""
    return np.ascontiguousarray(np.load(path, mmap_mode="r")[start:stop])


def lightgbm_on(client, shards, n_rounds, held_out):
    """Seconds of LightGBM's ranker on the same blocks, and its scores."""
    import dask.array as da
    from lightgbm import DaskLGBMRanker

    bX, by, _ = shards
    sizes = [block.shape[0].compute() for block in bX]
    X = da.concatenate(
        [
            da.from_delayed(b, (n, held_out.shape[1]), held_out.dtype)
            for b, n in zip(bX, sizes, strict=True)
        ]
    )
    y = da.concatenate([da.from_delayed(b, (n,), np.int64) for b, n in zip(by, sizes, strict=True)])
    groups = da.concatenate(
        [da.from_array(np.full(n // N_DOCS, N_DOCS), chunks=n // N_DOCS) for n in sizes]
    )
    params = {"num_leaves": 2, "n_estimators": n_rounds, "verbose": -1}
    seconds = []
    for _ in range(2):  # the first starts what it needs
        model = DaskLGBMRanker(client=client, **params)
        start = time.perf_counter()
        model.fit(X, y, group=groups)
        seconds.append(time.perf_counter() - start)
    return min(seconds), model.to_local().predict(held_out)
