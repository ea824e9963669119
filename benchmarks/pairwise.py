"""Pairwise perceptrons on L: 2,000 queries of 120 documents, 136 dense features, labels 0 to 4.

Peers that are not installed are left out. Everything runs in one thread.
"""

import subprocess
import sys
from time import perf_counter

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import rankcore as rc
from benchmarks.measure import machine, medians, show, sized
from rankcore.datasets import make_letor
from rankcore.metrics import ndcg_score

N_QUERIES = sized(2000, 20)
N_TRAIN = N_QUERIES * 120
EPOCHS = 50
COMMITTEE = {"variant": "committee", "committee_size": 20, "random_state": 0}


def run(repeat: int) -> None:
    """Measure and print."""
    print(machine(), "\n")
    X, y, qid = make_letor(N_QUERIES * 5 // 4)
    X = StandardScaler().fit(X[:N_TRAIN]).transform(X).astype(np.float32)
    train, test = slice(N_TRAIN), slice(N_TRAIN, None)
    show(epochs(X[train], y[train], qid[train], min(repeat, 5)))
    show(quality(X, y, qid, train, test, min(repeat, 5)))
    memory = f"{extra_memory():.2f}x"
    show([("L: memory beyond X with memory_limit=0, to X", memory, "at most 1.2x")])


def seconds_of_epochs(X, y, qid, n, solver="auto", **params):
    """Seconds of each of n epochs, and pairs in one."""
    marks = [perf_counter()]
    model = rc.PairwisePerceptron(**{**COMMITTEE, **params}, max_iter=n)
    model._solver = solver
    model.fit(X, y, qid=qid, callbacks=[lambda now: marks.append(perf_counter())])
    return np.diff(marks), model.history_["pairs"][0], model


def epochs(X, y, qid, repeat):
    """Cost of a pair, by order, margin and solver."""
    rows = []
    for order in ["shuffle", "lex"]:
        for margin in [0.0, 1.0]:
            params = {"shuffle": order == "shuffle", "margin": margin}
            whole, cached, plain, first = [], [], [], []
            for _ in range(repeat):
                fast, pairs, model = seconds_of_epochs(X, y, qid, 6, **params)
                slow, _, _ = seconds_of_epochs(X, y, qid, 1, solver="plain", **params)
                cached.append(np.median(fast[1:]) / pairs * 1e9)
                plain.append(slow[0] / pairs * 1e9)
                first.append(fast[0])
                whole.append(fast[0] + (EPOCHS - 1) * np.median(fast[1:]))
            share = model.history_["mistakes"][-1] / pairs
            name = f"L, {order}, margin {margin:g} ({100 * share:.0f}% mistakes)"
            targets = {("lex", 0.0): "at most 1.5 ns", ("shuffle", 0.0): "at most 4 ns"}
            ratio = np.median(np.array(plain) * EPOCHS * pairs * 1e-9 / whole)
            rows += [
                (f"{name}: a pair, Grams cached", f"{np.median(cached):.2f} ns",
                 targets.get((order, margin), "")),
                (f"{name}: a pair in the plain loop", f"{np.median(plain):.1f} ns", ""),
                (f"{name}: first epoch, Grams included", f"{np.median(first):.3f} s", ""),
                (f"{name}: {EPOCHS} epochs to the plain loop's", f"{ratio:.1f}x faster",
                 "at least 10x"),
            ]  # fmt: skip
    return rows


def quality(X, y, qid, train, test, repeat):
    """Time and NDCG@10 beside the peers."""
    models = {
        "averaged, one epoch": rc.PairwisePerceptron("averaged", max_iter=1, random_state=0),
        "averaged, one epoch, margin 0": rc.PairwisePerceptron(
            "averaged", max_iter=1, margin=0.0, random_state=0
        ),
        "committee of 20, one epoch": rc.PairwisePerceptron(**COMMITTEE, max_iter=1),
        f"committee of 20, {EPOCHS} epochs": rc.PairwisePerceptron(**COMMITTEE, max_iter=EPOCHS),
        f"committee of 20, {EPOCHS} epochs, margin 0": rc.PairwisePerceptron(
            **COMMITTEE, max_iter=EPOCHS, margin=0.0
        ),
    }
    rows, seconds = [], {}
    for name, model in models.items():
        times = medians(repeat, fit=lambda m=model: m.fit(X[train], y[train], qid=qid[train]))
        seconds[name] = times["fit"]
        ndcg = ndcg_score(y[test], model.predict(X[test]), qid=qid[test], k=10)
        rows.append((f"L: {name}", f"{seconds[name]:.3f} s, NDCG@10 {ndcg:.4f}", target(name)))
    scaled = seconds[f"committee of 20, {EPOCHS} epochs"]
    ridge = Ridge()
    times = medians(repeat, fit=lambda: ridge.fit(X[train], y[train]))
    ndcg = ndcg_score(y[test], ridge.predict(X[test]), qid=qid[test], k=10)
    rows.append(("L: ridge regression on labels", f"{times['fit']:.3f} s, NDCG@10 {ndcg:.4f}", ""))
    time, ndcg = pairwise_svm(X, y, qid, train, test)
    rows.append(("L: LinearSVC on 1% of the pairs", f"{time:.1f} s, NDCG@10 {ndcg:.4f}", ""))
    ratio = f"{100 * time / scaled:.0f}x slower"
    rows.append(("L: scaled up to all, to 50 epochs of the committee", ratio, "at least 20x"))
    try:
        import lightgbm
    except ImportError:
        return [*rows, ("L: LightGBM", "not installed", "")]
    ranker = lightgbm.LGBMRanker(n_estimators=100, n_jobs=1, verbose=-1)
    sizes = np.full(N_QUERIES, 120)
    start = perf_counter()
    ranker.fit(X[train], y[train], group=sizes)
    time = perf_counter() - start
    ndcg = ndcg_score(y[test], ranker.predict(X[test]), qid=qid[test], k=10)
    rows.append(("L: LightGBM, 100 trees", f"{time:.1f} s, NDCG@10 {ndcg:.4f}", ""))
    ratio = f"{time / scaled:.1f}x slower"
    return [*rows, ("L: the same to 50 epochs of the committee", ratio, "at least 10x")]


def target(name):
    """Target of a figure."""
    return {
        "averaged, one epoch": "at most 0.25 s, at least .675",
        f"committee of 20, {EPOCHS} epochs": "at least .675",
    }.get(name, "")


def pairwise_svm(X, y, qid, train, test):
    """Return the pairwise transform on one pair in a hundred, drawn at random."""
    rng = np.random.default_rng(0)
    starts = np.arange(0, N_TRAIN, 120)
    n = len(starts) * 4470 // 100
    first = rng.choice(starts, 4 * n) + rng.integers(0, 120, (2, 4 * n))  # a third are pairs
    i, j = first[:, y[first[0]] > y[first[1]]][:, :n]
    sign = rng.choice([-1, 1], n)
    start = perf_counter()
    model = LinearSVC(fit_intercept=False, C=1.0, max_iter=200, dual="auto", random_state=0)
    model.fit(sign[:, None] * (X[i] - X[j]), sign)
    time = perf_counter() - start
    return time, ndcg_score(y[test], X[test] @ model.coef_[0], qid=qid[test], k=10)


def extra_memory():
    """Most memory of a process that trains without cached Grams beyond what it held before."""
    code = """
import sys, numpy as np, rankcore as rc
from rankcore.datasets import make_letor
X, y, qid = make_letor(int(sys.argv[1]))
X = np.ascontiguousarray(X)
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
small = rc.PairwisePerceptron(max_iter=1).fit(X[:240], y[:240], qid=qid[:240])
with open("/proc/self/clear_refs", "w") as reset:
    reset.write("5")
before = peak()
rc.PairwisePerceptron("committee", max_iter=2, memory_limit=0).fit(X, y, qid=qid)
print((peak() - before) / X.nbytes)
"""
    command = [sys.executable, "-c", code, str(N_QUERIES)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)
