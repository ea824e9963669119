"""Scores by 100 trees of 31 leaves, beside XGBoost, LightGBM and treelite.

240,000 rows of 136 dense features in single precision, one thread each; least seconds of the
process, all timed in turn. Every library learned its own trees from the same 30,000 rows; treelite
has those of XGBoost. Peers that are not installed are left out.
"""

from importlib.util import find_spec

import numpy as np

import rankcore as rc
from benchmarks.measure import machine, processor_seconds, show, sized
from rankcore.datasets import make_letor

N_ROWS, N_LEARNED, N_DOCUMENTS = sized(240_000, 4_800), sized(30_000, 2_400), 120
N_TREES, N_LEAVES = sized(100, 10), 31


def run(repeat: int) -> None:
    """Measure and print."""
    print(machine(), "\n")
    X, y, qid = (part[:N_ROWS] for part in make_letor(N_ROWS // N_DOCUMENTS * 5 // 4))
    X = np.ascontiguousarray(X, dtype=np.float32)
    few = X[:N_LEARNED], y[:N_LEARNED], qid[:N_LEARNED]
    model = rc.RankBoost(N_TREES, max_leaf_nodes=N_LEAVES).fit(*few[:2], qid=few[2])
    doubles, missing = X.astype(np.float64), X.copy()
    missing[::7, ::5] = np.nan
    tasks = {
        "rankcore": lambda: model.predict(X),
        "float64": lambda: model.predict(doubles),
        "missing": lambda: model.predict(missing),
        **peers(X, *few),
    }
    seconds = processor_seconds(min(repeat, 5), **tasks)
    ours = seconds.pop("rankcore")
    each = ours / (N_ROWS * N_TREES) * 1e9
    rows = [("100 trees of 31 leaves", f"{ours * 1e3:.0f} ms, {each:.1f} ns a row and tree", "")]
    for name, label in [("float64", "double precision"), ("missing", "with missing values")]:
        rows.append((f"  {label}", f"{seconds.pop(name) * 1e3:.0f} ms", ""))
    for name, took in seconds.items():
        figure = f"{took * 1e3:.0f} ms, {took / ours:.1f}x ours"
        rows.append((f"  {name}", figure, "at least 1x"))
    show(rows)


def peers(X, few, labels, qid):
    """Scores of the rows by the installed libraries."""
    tasks = {}
    if find_spec("xgboost"):
        import xgboost

        parameters = {"max_leaves": N_LEAVES, "max_depth": 0, "grow_policy": "lossguide"}
        parameters |= {"objective": "rank:ndcg", "tree_method": "hist", "nthread": 1}
        data = xgboost.DMatrix(few, labels, qid=qid, nthread=1)
        booster = xgboost.train(parameters, data, N_TREES)
        tasks["XGBoost"] = lambda: booster.inplace_predict(X)
        if find_spec("treelite"):
            import treelite

            trees = treelite.frontend.from_xgboost(booster)
            tasks["treelite"] = lambda: treelite.gtil.predict(trees, X, nthread=1)
    if find_spec("lightgbm"):
        import lightgbm

        quiet = {"objective": "lambdarank", "num_leaves": N_LEAVES, "verbose": -1, "num_threads": 1}
        group = np.full(N_LEARNED // N_DOCUMENTS, N_DOCUMENTS)
        data = lightgbm.Dataset(few, labels, group=group, params=quiet)
        light = lightgbm.train(quiet, data, N_TREES)
        tasks["LightGBM"] = lambda: light.predict(X, num_threads=1)
    return tasks
