"""The table and the picture of README.md: four tasks, beside what people use for them.

Data are drawn by `rankcore.datasets`, every tool keeps its defaults but for those named here, and
works with one thread. Seconds are of the processor, the least of some runs; conversion to the
form that a tool needs is not counted. Peers that are not installed are left out. Where the
environment variable RANKCORE_OVERVIEW names a file, the picture goes there.
"""

import os
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import rankcore as rc
from benchmarks.measure import machine, sized
from rankcore.datasets import make_letor, make_ordinal

N_TREES = sized(100, 10)
# As distributions are called: some come under two names.
PEERS = ("mord", "lightgbm", "xgboost", "xgboost-cpu", "pytrec-eval", "pytrec-eval-terrier")
QUIET = {"verbose": -1, "num_threads": 1}


@dataclass
class Result:
    """Result of one tool on one task: seconds and quality."""

    task: str
    tool: str
    seconds: float
    quality: float


def run(repeat: int) -> None:
    """Measure, and print the table as Markdown."""
    repeat = min(repeat, 3)
    with threadpool_limits(1):
        results = [
            result
            for task in (sparse_ratings, dense_ratings, search, evaluation)
            for result in task(repeat)
        ]
    print(machine(*PEERS), "\n")
    print("| task | tool | seconds | |\n|---|---|---|---|")
    for one in results:
        print(f"| {one.task} | {one.tool} | {one.seconds:.3g} | {one.quality:.4f} |")
    if path := os.environ.get("RANKCORE_OVERVIEW"):
        draw(results, path)


def least(repeat: int, work: Any) -> tuple[float, Any]:
    """Return the minimum processor time of some runs, and the last result."""
    seconds = []
    for _ in range(repeat):
        start = process_time()
        result = work()
        seconds.append(process_time() - start)
    return min(seconds), result


def errors(task: str, models: dict[str, Any], X: Any, y: Any, n_train: int, repeat: int) -> Any:
    """Fit each model on the first rows: its mean absolute error on the others."""
    for name, model in models.items():
        seconds, fitted = least(repeat, partial(model.fit, X[:n_train], y[:n_train]))
        error = np.abs(fitted.predict(X[n_train:]) - y[n_train:]).mean()
        yield Result(task, name, seconds, float(error))


def sparse_ratings(repeat: int) -> Any:
    """Five ordered ranks of sparse rows, as of texts."""
    from sklearn.linear_model import LogisticRegression, SGDClassifier

    X, y = make_ordinal(sized(60_000, 1_200), 20_000)
    models = {
        "rankcore PRank": rc.PRank(random_state=0),
        "scikit-learn SGDClassifier": SGDClassifier(random_state=0),
        "scikit-learn LogisticRegression": LogisticRegression(max_iter=1000),
    }
    task = "five ranks, 50,000 sparse rows of 20,000 columns: seconds to fit, mean absolute error"
    return errors(task, models, X, y, len(y) * 5 // 6, repeat)


def dense_ratings(repeat: int) -> Any:
    """Return the same task with dense rows, since mord does not accept sparse ones."""
    X, y = make_ordinal(sized(20_000, 1_000), 200, mean_nnz=60)
    models = {"rankcore PRank": rc.PRank(random_state=0)}
    if find_spec("mord"):
        import mord

        models["mord LogisticAT"] = mord.LogisticAT()
    task = "five ranks, 16,000 dense rows of 200 columns: seconds to fit, mean absolute error"
    return errors(task, models, X.toarray(), y, len(y) * 4 // 5, repeat)


def search(repeat: int) -> Any:
    """Graded documents of queries; 100 trees of 31 leaves, learning rate .1."""
    n = sized(1000, 20)
    X, y, qid = make_letor(n * 3 // 2)
    X = X.astype(np.float32)
    train, test = qid <= n, qid > n
    task = "1,000 queries of 120 documents, 136 columns, 100 trees: seconds to fit, NDCG@10"

    def result(name: str, fit: Any, predict: Any) -> Result:
        seconds, model = least(min(repeat, 2), fit)
        quality = rc.metrics.ndcg_score(y[test], predict(model), qid=qid[test], k=10)
        return Result(task, name, seconds, float(quality))

    yield result(
        "rankcore RankBoost",
        lambda: rc.RankBoost(N_TREES, max_leaf_nodes=31).fit(X[train], y[train], qid=qid[train]),
        lambda model: model.predict(X[test]),
    )
    group = np.bincount(qid[train])[1:]
    if find_spec("lightgbm"):
        import lightgbm

        lambdarank = {"objective": "lambdarank", **QUIET}
        yield result(
            "LightGBM lambdarank",
            lambda: lightgbm.train(
                lambdarank, lightgbm.Dataset(X[train], y[train], group=group), N_TREES
            ),
            lambda model: model.predict(X[test], num_threads=1),
        )
    if find_spec("xgboost"):
        import xgboost

        ranker = {"objective": "rank:pairwise", "eta": 0.1, "max_leaves": 31, "max_depth": 0}
        ranker |= {"grow_policy": "lossguide", "nthread": 1}
        yield result(
            "XGBoost rank:pairwise",
            lambda: xgboost.train(
                ranker,
                xgboost.QuantileDMatrix(X[train], y[train], group=group, nthread=1),
                N_TREES,
            ),
            lambda model: model.inplace_predict(X[test]),
        )


def evaluation(repeat: int) -> Any:
    """NDCG@10 of a thousand queries of a thousand documents."""
    from sklearn.metrics import ndcg_score

    rng = np.random.default_rng(404)
    n = sized(1000, 20)
    latent = rng.normal(size=(n, 1000))
    labels = np.searchsorted([1.3, 1.8, 2.3, 2.8], latent).astype(np.int64)
    scores = latent + rng.normal(size=latent.shape)
    y, s, qid = labels.ravel(), scores.ravel(), np.repeat(np.arange(n), 1000)
    task = "evaluation of 1,000 queries of 1,000 documents: seconds, NDCG@10"

    def result(name: str, work: Any) -> Result:
        seconds, value = least(repeat, work)
        return Result(task, name, seconds, float(value))

    yield result("rankcore", lambda: rc.metrics.ndcg_score(y, s, qid=qid, k=10, gain="linear"))
    yield result("scikit-learn ndcg_score", lambda: ndcg_score(labels, scores, k=10))
    if find_spec("pytrec_eval"):
        import pytrec_eval

        names = [f"d{i}" for i in range(1000)]
        qrels, runs = (
            {f"q{i}": dict(zip(names, row, strict=True)) for i, row in enumerate(table.tolist())}
            for table in (labels, scores)
        )
        evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10"})
        yield result(
            "trec_eval (pytrec_eval)",
            lambda: np.mean([v["ndcg_cut_10"] for v in evaluator.evaluate(runs).values()]),
        )


def draw(results: list[Result], path: str) -> None:
    """Seconds on one logarithmic axis, by task, with the quality beside each."""
    from matplotlib.figure import Figure

    tasks = list(dict.fromkeys(one.task for one in results))
    figure = Figure(figsize=(8, 0.42 * len(results) + 0.55 * len(tasks)), layout="constrained")
    heights = [sum(one.task == task for one in results) for task in tasks]
    panels = figure.subplots(len(tasks), sharex=True, height_ratios=heights)
    for panel, task in zip(panels, tasks, strict=True):
        shown = [one for one in results if one.task == task]
        for place, one in enumerate(shown):
            panel.plot(one.seconds, place, "o", color="tab:blue" if place == 0 else "0.6")
            text = f"  {one.seconds:.2g} s    {one.quality:.3f}"
            panel.text(one.seconds, place, text, va="center", fontsize=8)
        panel.set_yticks(range(len(shown)), [one.tool for one in shown])
        panel.set_title(task, fontsize=9, loc="left")
        panel.set_ylim(len(shown) - 0.5, -0.5)
        panel.grid(axis="x", color="0.9")
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=8)
    panels[-1].set(xscale="log", xlabel="seconds of the processor, one thread")
    low, high = panels[-1].get_xlim()
    panels[-1].set_xlim(low, high * 6)  # room for the text
    figure.savefig(path, dpi=120)
