"""Time typical calls in this checkout and in another one, in turn.

    python -m benchmarks.against ../other/src           # every path; with names, these

Each checkout answers from a process of its own. The figures are the least processor time of 12
runs, which other programs cannot add to. The other checkout's kernels must be built in place.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parents[1]


def paths(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return a call for each path; models to predict with are fitted first."""
    import rankcore as rc
    from rankcore import datasets

    X, y = datasets.make_ordinal(20_000)
    few, few_y = X[:1000], y[:1000]
    small = [(X[i : i + 1], y[i : i + 1]) for i in range(300)]
    D, d_y = datasets.make_oap_synthetic(20_000, random_state=0)
    Q, relevance, qid = datasets.make_letor(100, random_state=0)
    online = rc.PRank.published(average=True).fit(X, y)
    calibrated = rc.CalibratedOrdinal(rc.PRank(random_state=0)).fit(X, y)
    trees = rc.RankBoost(n_estimators=20, weak="tree").fit(Q, relevance, qid=qid)

    def ordinal(name: str, **parameters: Any) -> Callable[[], Any]:
        return lambda: getattr(rc, name)(**parameters).fit(X, y)

    def kernel(name: str) -> Callable[[], Any]:
        return lambda: getattr(rc, name)(max_iter=2, random_state=0).fit(D[:1000], d_y[:1000])

    def ranker(name: str, **parameters: Any) -> Callable[[], Any]:
        return lambda: getattr(rc, name)(**parameters).fit(Q, relevance, qid=qid)

    def one_row() -> None:
        for row, label in small:
            online.partial_fit(row, label)

    found = {name: ordinal(name, max_iter=2, random_state=0) for name in [
        "PRank", "VotedPRank", "WidrowHoff", "MulticlassPerceptron", "CuSumRank",
    ]}  # fmt: skip
    found["PRank_published"] = lambda: rc.PRank.published().fit(X, y)
    for name in ["OAPBPM", "OAPBagging", "OAPVoting"]:
        found[name] = ordinal(name, n_estimators=20, max_iter=1, random_state=0)
    for name in ["KernelPRank", "KernelCuSumRank", "KernelOAPBPM"]:
        found[name] = kernel(name)
    found |= of_files(folder, trees, Q, relevance, qid) | of_scores()
    return found | {
        "CalibratedOrdinal": lambda: rc.CalibratedOrdinal(rc.PRank(random_state=0)).fit(few, few_y),
        "PairwisePerceptron": ranker("PairwisePerceptron", random_state=0, max_iter=5),
        "RankSVM": ranker("RankSVM", random_state=0),
        "RankSVM_rbf": lambda: rc.RankSVM(kernel="rbf", random_state=0).fit(
            Q[:600], relevance[:600], qid=qid[:600]
        ),
        "RankBoost": ranker("RankBoost", n_estimators=50),
        "RankBoost_trees": ranker("RankBoost", n_estimators=5, weak="tree"),
        "BipartiteRankBoost": lambda: rc.BipartiteRankBoost(n_estimators=50).fit(D, d_y > 2),
        "partial_fit_300_rows": one_row,
        "predict_300_rows": lambda: [online.predict(row) for row, _ in small],
        "predict": lambda: online.predict(X),
        "predict_proba": lambda: calibrated.predict_proba(X),
        "predict_trees": lambda: trees.predict(Q),
        "explain": lambda: rc.explain.global_importance(trees, Q[:400]),
    }


def of_files(folder: Path, trees: Any, X: Any, y: Any, qid: Any) -> dict[str, Callable[[], Any]]:
    """Return a call for each path that reads or writes files."""
    import rankcore as rc
    from rankcore import datasets

    text, model = folder / "rows.txt", folder / "model.rankcore"
    datasets.dump_letor(X, y, text, qid=qid)
    return {
        "load_letor": lambda: datasets.load_letor(text),
        "dump_letor": lambda: datasets.dump_letor(X, y, folder / "again.txt", qid=qid),
        "rows_from_disk": lambda: rc.PRank.published().fit(datasets.open_rows(text)),
        "save_and_load": lambda: (rc.save(trees, model), rc.load(model)),
    }


def of_scores() -> dict[str, Callable[[], Any]]:
    """Return a call for each path that reads scores only."""
    import rankcore as rc
    from rankcore import metrics

    scores, grades = np.random.default_rng(0).normal(size=200_000), np.arange(200_000) % 5
    groups = np.repeat(np.arange(2000), 100)
    return {
        "ndcg": lambda: metrics.ndcg_score(grades, scores, qid=groups, k=10),
        "auc": lambda: metrics.auc_score(grades > 2, scores),
        "kendall_tau": lambda: metrics.kendall_tau(grades, scores, qid=groups),
        "quicksort_rank": lambda: rc.quicksort_rank(
            list(range(2000)), lambda a, b: float(scores[a] > scores[b]), random_state=0
        ),
    }


def answer() -> None:
    """Time the paths named on standard input."""
    with tempfile.TemporaryDirectory() as folder:
        tasks = paths(Path(folder))
        print(*tasks, flush=True)
        for line in sys.stdin:
            start = time.process_time()
            tasks[line.strip()]()
            print(time.process_time() - start, flush=True)


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", help="the src folder of the other checkout")
    parser.add_argument("names", nargs="*", help="paths to time (default: all)")
    parser.add_argument("--repeat", type=int, default=12)
    arguments = parser.parse_args()
    checkouts = []
    for src in [arguments.other, str(HERE / "src")]:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([src, str(HERE)])}
        code = "from benchmarks.against import answer; answer()"
        checkouts.append(
            subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", code],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                bufsize=1,
            )
        )
    known = [process.stdout.readline().split() for process in checkouts]
    print(f"{'milliseconds':24}{'there':>10}{'here':>10}{'ratio':>8}")
    for name in arguments.names or known[0]:
        least = [float("inf")] * 2
        for turn in range(arguments.repeat):
            for k in (turn % 2, 1 - turn % 2):
                process = checkouts[k]
                process.stdin.write(name + "\n")
                least[k] = min(least[k], float(process.stdout.readline()))
        print(
            f"{name:24}{least[0] * 1e3:10.2f}{least[1] * 1e3:10.2f}{least[1] / least[0]:8.2f}",
            flush=True,
        )
    for process in checkouts:
        process.communicate()


if __name__ == "__main__":
    main()
