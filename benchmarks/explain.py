"""Contributions of features beside shap's TreeExplainer, on the same stumps and trees.

    python -m benchmarks explain

The stumps are XGBoost's own, 300 of them learned on squared errors, where every row counts one:
what they add beyond the training rows is then what shap finds by the counts of rows in each leaf
(``tree_path_dependent``, the default, which XGBoost's compiled code does). With a background shap
runs its own compiled code. The same numbers are checked to 1e-6: XGBoost adds in float32. One
thread each.
"""

from __future__ import annotations

import json
import warnings
from time import perf_counter

import numpy as np

import rankcore as rc
from benchmarks.measure import sized
from rankcore.boosting.stump_model import StumpSum

N_ROWS, N_STUMPS, N_BACKGROUND = sized(100_000, 2_000), 300, 100


def seconds(call, repeats):
    times = []
    for _ in range(repeats):
        start = perf_counter()
        found = call()
        times.append(perf_counter() - start)
    return min(times), found


def as_stumps(booster, n_features):
    """Convert the stumps of a booster to ours: each adds the difference of its leaves."""
    model = StumpSum(n_features, False)
    trees = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]
    for tree in trees:
        if len(tree["split_indices"]) != 3:
            continue  # a leaf
        left, right = tree["left_children"][0], tree["right_children"][0]
        values = np.float32(tree["split_conditions"])
        # A value below the threshold goes left: one above the number before it goes right.
        before = np.nextafter(values[0], np.float32(-np.inf))
        more = float(values[right]) - float(values[left])
        model.add(tree["split_indices"][0], float(before), 1 - tree["default_left"][0], more)
    return model


def run(repeat: int) -> None:
    import shap
    import xgboost

    warnings.simplefilter("ignore")
    X, y, qid = rc.datasets.make_letor(N_ROWS // 100, 100, random_state=0)
    X32 = X.astype(np.float32)
    data = xgboost.DMatrix(X32, y)
    options = {"max_depth": 1, "nthread": 1, "tree_method": "hist", "eta": 0.1}
    booster = xgboost.train(options, data, N_STUMPS)
    ours = rc.RankBoost(1).fit(X32[:200], y[:200], qid=qid[:200])
    ours._state.model = as_stumps(booster, X.shape[1])
    print(f"{len(ours._state.model)} stumps of XGBoost, {X.shape[0]} x {X.shape[1]} float32 rows")

    path = shap.TreeExplainer(booster)
    mine, found = seconds(lambda: ours.contributions(X32, X32), repeat)
    theirs, expected = seconds(lambda: path.shap_values(X32), 1)
    line("shap.TreeExplainer, counts of training rows", mine, theirs, found.values, expected)

    some = X32[:: N_ROWS // N_BACKGROUND]
    explainer = shap.TreeExplainer(booster, some, feature_perturbation="interventional")
    part = X32[: N_ROWS // 20]
    mine, found = seconds(lambda: ours.contributions(X32, some), repeat)
    theirs, expected = seconds(lambda: explainer.shap_values(part), 1)
    title = f"shap.TreeExplainer, background of {N_BACKGROUND} rows"
    line(f"{title} (20 x a 20th)", mine, 20 * theirs, found.values[: len(part)], expected)

    mine, _ = seconds(lambda: ours.contributions(X32), repeat)
    score, _ = seconds(lambda: ours.predict(X32), repeat)
    copy, _ = seconds(lambda: X32.astype(np.float64), repeat)
    print(
        f"without background {mine:.3f} s: {mine / score:.1f} x predict, "
        f"{mine / copy:.1f} x a copy to float64"
    )

    trees = rc.RankBoost(50, max_leaf_nodes=31).fit(X32[:5000], y[:5000], qid=qid[:5000])
    few = X32[:500]
    mine, _ = seconds(lambda: trees.contributions(few, some), max(1, repeat // 4))
    walks = len(few) * len(some) * 50
    print(
        f"50 trees of 31 leaves, {len(few)} rows x {len(some)} of the background: {mine:.2f} s, "
        f"{1e9 * mine / walks:.0f} ns per tree and pair of rows"
    )


def line(title, mine, theirs, found, expected):
    apart = float(np.abs(found - expected).max())
    print(
        f"{title}: {theirs:.2f} s; here {mine:.3f} s, {theirs / mine:.0f} times faster; "
        f"largest difference {apart:.1e}"
    )
    assert apart < 1e-6, apart
