"""Boosted stumps beside XGBoost and LightGBM.

B is 200,000 x 20,000 CSR, about 50 non-zeros a row, 10% relevant; L is 2,000 queries of 120
documents, 136 dense features, labels 0 to 4. One thread. Seconds are of the process, so that other
work on the machine counts less; peers that are not installed are left out. If the
environment variable RANKCORE_GROWTH names a file, a plot of the time of a round goes there.
"""

import os
import tracemalloc
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from time import perf_counter, process_time
from unittest import mock

import numpy as np

import rankcore as rc
from benchmarks.measure import machine, show, sized
from rankcore.boosting import _stump_search
from rankcore.datasets import make_bipartite, make_letor
from rankcore.metrics import auc_score, ndcg_score

N_ROUNDS, N_PLAIN = sized(300, 10), sized(60, 5)
# Rounds that are enough to know what one takes.
N_PEER = sized(20, 2)
N_B, N_QUERIES = sized(200_000, 2_000), sized(2000, 40)
N_L = N_QUERIES * 120


@contextmanager
def all_columns():
    """Evaluate every column in every round."""
    with mock.patch.object(_stump_search, "MARGIN", np.inf):
        yield


def run(repeat: int) -> None:
    """Measure and print."""
    print(machine(), "\n")
    repeat = min(repeat, 3)
    show(sparse(*make_bipartite(N_B * 5 // 4), repeat))
    print()
    show(dense(*make_letor(N_QUERIES * 5 // 4), repeat))
    print()
    show(growth(os.environ.get("RANKCORE_GROWTH")))


def fitted(model, *data, clock=process_time, **queries):
    """Return seconds of the first round, with all preparation, and of each later one; the model."""
    marks = [clock()]
    model.fit(*data, **queries, callbacks=[lambda _: marks.append(clock())])
    return marks[1] - marks[0], np.diff(marks[1:]), model


def median_fit(repeat, make, *data, **queries):
    """Medians over fits: seconds before the second round, mean of a round, all; the model."""
    firsts, rounds, totals = [], [], []
    for _ in range(repeat):
        start = process_time()
        first, others, model = fitted(make(), *data, **queries)
        totals.append(process_time() - start)
        firsts.append(first)
        rounds.append(others.mean())
    return *(float(np.median(times)) for times in (firsts, rounds, totals)), model


def gain_of_threads(repeat, make, *data, **queries):
    """Return the speedup of a round with two threads, in wall time."""
    seconds = {1: [], 2: []}
    for _ in range(repeat):
        for n_jobs, times in seconds.items():
            _, rounds, _ = fitted(make(n_jobs=n_jobs), *data, clock=perf_counter, **queries)
            times.append(rounds.mean())
    return f"{np.median(seconds[1]) / np.median(seconds[2]):.2f}x faster"


def differences(fit, few, many):
    """Return seconds of a round of a peer, from fits of different lengths, and the last model."""
    fit(few)  # it prepares the data, and keeps that
    start = process_time()
    fit(few)
    middle = process_time()
    model = fit(many)
    return (process_time() - middle - (middle - start)) / (many - few), model


def sparse(X, y, repeat):
    """B."""
    X_test, y_test, X, y = X[N_B:], y[N_B:], X[:N_B], y[:N_B]
    first, ours, _, model = median_fit(repeat, lambda: rc.BipartiteRankBoost(N_ROUNDS), X, y)
    with all_columns():
        _, plain, _, other = median_fit(1, lambda: rc.BipartiteRankBoost(N_PLAIN), X, y)
    same = np.array_equal(model.estimators_[:N_PLAIN], other.estimators_)
    two_leaves = {"weak": "tree", "learning_rate": 1.0}
    _, tree, _, _ = median_fit(1, lambda: rc.BipartiteRankBoost(N_PEER, **two_leaves), X, y)
    extra = held_bytes(lambda: rc.BipartiteRankBoost(2).fit(X, y))
    nnz = X.nnz
    rows = [
        ("B: binning and first round", f"{first:.2f} s", ""),
        ("B: a round after it", f"{ours * 1e3:.2f} ms", "at most 5 ms"),
        ("B: plain search, a round", f"{plain * 1e3:.2f} ms, {plain / ours:.1f}x ours", ""),
        ("B: the same stumps", str(same), "True"),
        ("B: a tree of two leaves", f"{tree * 1e3:.1f} ms, {tree / ours:.1f}x", "at least 1.2x"),
        (
            "B: two threads, a round",
            gain_of_threads(repeat, partial(rc.BipartiteRankBoost, N_PLAIN), X, y),
            "",
        ),
        ("B: AUC", f"{auc_score(y_test, model.predict(X_test)):.4f}", ""),
        (
            "B: most memory beyond X",
            f"{extra / 1e6:.0f} MB, {extra / (6 * nnz + 32 * N_B):.2f} of 6 bytes a non-zero and "
            "32 a row",
            "at most 1",
        ),
    ]
    if find_spec("xgboost"):
        import xgboost

        data = xgboost.DMatrix(X, y, nthread=1)
        params = {"max_depth": 1, "tree_method": "hist", "nthread": 1, "max_bin": 255}
        params |= {"objective": "binary:logistic", "eta": 0.3}
        seconds, _ = differences(lambda n: xgboost.train(params, data, n), 2, 2 + N_PEER)
        peer = xgboost.train(params, data, N_ROUNDS)
        auc = auc_score(y_test, peer.predict(xgboost.DMatrix(X_test)))
        rows += [
            (
                "B: XGBoost, depth 1, a round",
                f"{seconds * 1e3:.0f} ms, {seconds / ours:.0f}x ours",
                "at least 20x",
            ),
            ("B: its AUC after as many rounds", f"{auc:.4f}", ""),
        ]
    return rows


def dense(X, y, qid, repeat):
    """L."""
    X = X.astype(np.float32)
    train, test = slice(N_L), slice(N_L, None)
    _, ours, total, model = median_fit(
        repeat, lambda: rc.RankBoost(N_ROUNDS), X[train], y[train], qid=qid[train]
    )
    with all_columns():
        _, plain, _, _ = median_fit(
            1, lambda: rc.RankBoost(N_PLAIN), X[train], y[train], qid=qid[train]
        )

    two_leaves = {"weak": "tree", "learning_rate": 1.0}
    _, tree, _, _ = median_fit(
        1, lambda: rc.RankBoost(N_PEER, **two_leaves), X[train], y[train], qid=qid[train]
    )

    def ndcg(scores):
        return f"{ndcg_score(y[test], scores, qid=qid[test], k=10):.4f}"

    rows = [
        ("L: 300 rounds, binning included", f"{total:.2f} s", "at most 6 s"),
        ("L: a round", f"{ours * 1e3:.2f} ms", ""),
        ("L: a tree of two leaves", f"{tree * 1e3:.1f} ms, {tree / ours:.1f}x", "at least 1.2x"),
        ("L: plain search, a round", f"{plain * 1e3:.2f} ms, {plain / ours:.2f}x ours", ""),
        (
            "L: two threads, a round",
            gain_of_threads(
                repeat, partial(rc.RankBoost, N_PLAIN), X[train], y[train], qid=qid[train]
            ),
            "",
        ),
        ("L: NDCG@10", ndcg(model.predict(X[test])), ""),
    ]
    if find_spec("lightgbm"):
        import lightgbm

        group = np.full(N_QUERIES, 120)
        data = lightgbm.Dataset(X[train], y[train], group=group, params={"verbose": -1})
        data.construct()
        params = {"objective": "lambdarank", "num_leaves": 2, "num_threads": 1, "verbose": -1}
        seconds, _ = differences(lambda n: lightgbm.train(params, data, n), 2, 2 + N_PEER)
        start = process_time()
        peer = lightgbm.train(params, data, N_ROUNDS)
        whole = process_time() - start
        rows += [
            (
                "L: LightGBM, two leaves, 300 rounds without binning",
                f"{whole:.1f} s, {whole / total:.1f}x ours with it",
                "at least 4x",
            ),
            ("L: LightGBM, a round", f"{seconds * 1e3:.0f} ms, {seconds / ours:.1f}x ours", ""),
            ("L: its NDCG@10", ndcg(peer.predict(X[test])), ""),
        ]
    return rows


def held_bytes(task):
    """Return the peak memory of Python and NumPy minus the memory before."""
    tracemalloc.start()
    task()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def growth(path):
    """Return milliseconds of a round by non-zeros, and by queries for a fixed number of rows."""
    values = {}
    for n in sized((20_000, 40_000, 80_000, 160_000), (500, 1_000)):
        X, y = make_bipartite(n, random_state=0)
        with all_columns():
            _, seconds, _ = fitted(rc.BipartiteRankBoost(N_PLAIN), X, y)
        _, spared, _ = fitted(rc.BipartiteRankBoost(N_PLAIN), X, y)
        values[X.nnz] = (np.median(seconds) * 1e3, np.median(spared) * 1e3)
    queries = {}
    X, y, _ = make_letor(n_queries=sized(500, 10))
    for n in sized((10, 100, 1000, 10_000), (10, 100)):
        qid = np.arange(len(y)) * n // len(y)
        with all_columns():
            _, seconds, _ = fitted(rc.RankBoost(20), X, y, qid=qid)
        queries[n] = np.median(seconds) * 1e3
    if path:
        draw(values, queries, path)
    rows = [
        (f"B: {nnz / 1e6:.1f} million non-zeros", f"{a:.2f} ms a round, plain", f"{b:.2f} ms")
        for nnz, (a, b) in values.items()
    ]
    return [
        *rows,
        *((f"60,000 rows, {n} queries", f"{ms:.2f} ms", "") for n, ms in queries.items()),
    ]


def draw(values, queries, path):
    """Plot both."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    nnz = np.array(list(values)) / 1e6
    for column, name in enumerate(["plain", "columns spared"]):
        left.plot(nnz, [pair[column] for pair in values.values()], "o-", label=name)
    left.set(xlabel="million non-zeros", ylabel="milliseconds a round", xlim=(0, None))
    left.set_ylim(0, None)
    left.legend()
    right.semilogx(list(queries), list(queries.values()), "o-")
    right.set(xlabel="queries in 60,000 rows", ylabel="milliseconds a round")
    right.set_ylim(0, None)
    figure.savefig(path, dpi=120)
