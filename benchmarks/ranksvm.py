"""RankSVM on L (2,000 queries of 120 documents, 136 dense features) and on B (200,000 sparse rows).

One thread unless said otherwise, for BLAS too. Seconds are of the processor, which other work on
the machine lengthens less than those of the clock. ``python -m benchmarks.ranksvm PNG`` draws time
against the number of documents and of queries.
"""

import sys
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from scipy.optimize import minimize_scalar, nnls
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

import rankcore as rc
from benchmarks.measure import machine, medians, show, sized
from rankcore._core.inputs import as_rows
from rankcore._core.queries import queries_of
from rankcore.datasets import make_bipartite, make_letor
from rankcore.metrics import ndcg_score
from rankcore.ranking.pairs import pair_by_label
from rankcore.ranking.svm.losses import PairLosses, Terms

N_QUERIES, N_B = sized(2000, 20), sized(200_000, 2_000)
N_TRAIN = N_QUERIES * 120
SQUARED = Terms.squared_hinge(1.0)


def run(repeat: int) -> None:
    """Measure and print."""
    print(machine(), "\n")
    X, y, qid = make_letor(N_QUERIES * 5 // 4)
    X = StandardScaler().fit(X[:N_TRAIN]).transform(X).astype(np.float32)
    train, test = slice(N_TRAIN), slice(N_TRAIN, None)
    repeat = min(repeat, 7)
    with threadpool_limits(1):
        show(evaluations(X[train], y[train], qid[train], repeat))
        show(solvers(X, y, qid, train, test, min(repeat, 3)))
        show(planes(X[train], y[train], qid[train]))
        show(peers(X, y, qid, train, test))
        show(sparse(repeat))


class Evaluations:
    """Loss and gradient at weights that move a little from call to call."""

    def __init__(self, X, y, qid, balanced=False):
        self.rows = as_rows(X)
        pairing = pair_by_label(y.astype(float), queries_of(qid, None, len(y)), None, True)
        self.losses = PairLosses(pairing, balanced, 1, self.rows)
        self.rng = np.random.default_rng(0)
        self.w = 0.02 * self.rng.normal(size=X.shape[1])

    def __call__(self):
        self.w += 0.002 * self.rng.normal(size=self.w.size)
        return self.losses.evaluate(SQUARED, rows=self.rows, weights=self.w)


def evaluations(X, y, qid, repeat):
    """One evaluation beside the two products that any solver makes."""
    evaluate = Evaluations(X, y, qid)
    w, g = evaluate.w.astype(np.float32), np.ones(len(X), dtype=np.float32)
    products = lambda: (X @ w, X.T @ g)  # noqa: E731
    products(), evaluate()
    times = medians(3 * repeat, ours=evaluate, theirs=products)
    ratio = times["ours"] / times["theirs"]
    return [
        ("L: X @ w and X.T @ g in NumPy", f"{1000 * times['theirs']:.1f} ms", ""),
        ("L: loss and gradient", f"{1000 * times['ours']:.1f} ms, {ratio:.2f}x", "at most 1.5x"),
    ]


def steps_of(model, X, y, qid):
    """Seconds and objective after each step."""
    marks, start = [], process_time()
    model.fit(
        X,
        y,
        qid=qid,
        callbacks=[lambda now: marks.append((process_time() - start, now.model.objective_))],
    )
    return np.array(marks), process_time() - start


def solvers(X, y, qid, train, test, repeat):
    """Time to the optimum, and what it is worth."""
    rows = []
    for balance in ["query", None]:
        params = {"balance": balance, "random_state": 0}
        best = rc.RankSVM(tol=1e-10, **params).fit(X[train], y[train], qid=qid[train])
        found = {1e-3: [], 1e-6: []}
        for _ in range(repeat):
            marks, _ = steps_of(rc.RankSVM(tol=1e-10, **params), X[train], y[train], qid[train])
            for near, times in found.items():
                close = marks[:, 1] <= best.objective_ * (1 + near)
                times.append(marks[close.argmax(), 0])
        ndcg = ndcg_score(y[test], best.predict(X[test]), qid=qid[test], k=10)
        name = f"L, squared hinge, balance={balance}"
        rows += [
            (f"{name}: to 1e-3 of the optimum", f"{np.median(found[1e-3]):.2f} s", "at most 1.5 s"),
            (f"{name}: to 1e-6", f"{np.median(found[1e-6]):.2f} s", "at most 4 s"),
            (f"{name}: NDCG@10", f"{ndcg:.4f}", "at least .681"),
        ]
        hinge = rc.RankSVM(loss="hinge", tol=1e-3, **params)
        times = [steps_of(hinge, X[train], y[train], qid[train])[1] for _ in range(repeat)]
        ndcg = ndcg_score(y[test], hinge.predict(X[test]), qid=qid[test], k=10)
        rows.append(
            (
                f"L, hinge, balance={balance}: to a gap of {hinge.gap_:.1e}",
                f"{np.median(times):.2f} s, NDCG@10 {ndcg:.4f}",
                "at most 6 s to 1e-3",
            )
        )
    fits = {}
    for jobs in [1, 2]:
        model = rc.RankSVM(tol=1e-6, n_jobs=jobs, random_state=0)
        fits[f"n{jobs}"] = lambda m=model: m.fit(X[train], y[train], qid=qid[train])
    times = medians(max(3, repeat), **fits)
    faster = times["n1"] / times["n2"]
    text = f"{times['n1']:.2f} s and {times['n2']:.2f} s, {faster:.2f}x"
    rows.append(("L: one thread and two, by the clock", text, "at least 1.6x"))
    return rows


def peers(X, y, qid, train, test):
    """Time the committee perceptron, and a ranking SVM on listed pairs."""
    start = process_time()
    rc.RankSVM(random_state=0).fit(X[train], y[train], qid=qid[train])
    ours = process_time() - start
    start = process_time()
    committee = rc.PairwisePerceptron("committee", max_iter=50, random_state=0)
    committee.fit(X[train], y[train], qid=qid[train])
    theirs = process_time() - start
    ndcg = ndcg_score(y[test], committee.predict(X[test]), qid=qid[test], k=10)
    rows = [
        ("L: RankSVM, defaults", f"{ours:.2f} s", ""),
        ("L: committee, 50 epochs", f"{theirs:.2f} s, NDCG@10 {ndcg:.4f}", ""),
        ("L: the committee's time to RankSVM's", f"{theirs / ours:.1f}x", ""),
    ]
    # A hundredth of the pairs, which alone are as large as the rows ten times over.
    rng = np.random.default_rng(0)
    pairs = []
    for q in range(0, N_TRAIN, 120):
        i, j = np.nonzero(y[q : q + 120, None] > y[q : q + 120])
        some = rng.choice(i.size, i.size // 100, replace=False)
        pairs.append(np.stack([i[some], j[some]]) + q)
    i, j = np.concatenate(pairs, axis=1)
    sign = rng.choice([-1, 1], i.size)
    start = process_time()
    listed = LinearSVC(fit_intercept=False, dual=False, tol=1e-3)
    listed.fit(sign[:, None] * (X[i] - X[j]).astype(np.float64), sign)
    seconds = process_time() - start
    ndcg = ndcg_score(y[test], X[test] @ listed.coef_[0], qid=qid[test], k=10)
    text = f"{seconds:.1f} s, NDCG@10 {ndcg:.4f}"
    return [
        *rows,
        (f"L: LinearSVC (primal Newton) on 1% of the pairs, {i.size:,}", text, ""),
        ("L: scaled up to all pairs, to RankSVM", f"{100 * seconds / ours:.0f}x slower", ""),
    ]


def cutting_planes(X, y, qid, C, tol, most_seconds):
    """Minimise the hinge by cutting planes (Teo et al. 2010) with a line search.

    On the same sums over pairs. Returns seconds, planes and gap.
    """
    start = process_time()
    evaluate = Evaluations(X, y, qid, True)
    terms = Terms.smooth_hinge(1.0, 1e-9)  # whose slopes are those of the hinge

    def look(w):
        at = evaluate.losses.evaluate(terms, rows=evaluate.rows, weights=w)
        return float(at.sums[0, 0]), at.pulled, at.scores

    w, planes, offsets = np.zeros(X.shape[1]), [], []
    value, slope, _ = look(w)
    best, upper, lower = w, C * value, -np.inf
    while True:
        planes.append(slope)
        offsets.append(value - slope @ w)
        A, b = np.array(planes), np.array(offsets)
        alpha = simplex_minimum(A, b, C)
        model = -A.T @ alpha
        lower = max(lower, b @ alpha - 0.5 * model @ model)
        gap, seconds = (upper - lower) / upper, process_time() - start
        if gap <= tol or seconds > most_seconds:
            return seconds, len(planes), gap
        # Along the line from the best weights to those of the planes.
        ray, at_best, at_model = model - best, look(best)[2], look(model)[2]

        def along(t, at_best=at_best, ray=ray, best=best, end=at_model):
            s = at_best + t * (end - at_best)
            loss = evaluate.losses.evaluate(terms, scores=s).sums[0, 0]
            return 0.5 * np.sum((best + t * ray) ** 2) + C * loss

        t = minimize_scalar(along, bounds=(0.0, 2.0), method="bounded", options={"maxiter": 6}).x
        if along(t) < upper:
            best, upper = best + t * ray, along(t)
        w = 0.9 * best + 0.1 * model
        value, slope, _ = look(w)


def simplex_minimum(A, b, C):
    """Minimise |A' alpha|^2 / 2 - b alpha over alpha >= 0 that add up to C."""
    Q = A @ A.T
    Q[np.diag_indices_from(Q)] += 1e-10 * np.trace(Q) / len(Q)
    R = np.linalg.cholesky(Q).T
    # By least squares; the sum is kept by a heavy row.
    heavy = 1e4 * np.sqrt(np.trace(Q) / len(Q))
    left = np.vstack([R, np.full((1, len(Q)), heavy)])
    right = np.append(np.linalg.solve(R.T, b), heavy * C)
    alpha, _ = nnls(left, right, maxiter=100 * len(Q))
    return alpha * C / alpha.sum()


def planes(X, y, qid):
    """Newton's steps on the rounded hinge beside cutting planes."""
    seconds, n, gap = cutting_planes(X, y, qid, 1.0, 1e-3, 60.0)
    text = f"{seconds:.1f} s, {n} planes, gap {gap:.1e}"
    return [("L, hinge, balance=query: cutting planes instead, to 1e-3 or 60 s", text, "")]


def sparse(repeat):
    """One query of 200,000 rows."""
    X, y = make_bipartite(N_B * 5 // 4)
    X, y = X[:N_B], y[:N_B]
    evaluate = Evaluations(X, y, None)
    evaluate()
    times = medians(repeat, evaluate=evaluate)
    pairs = int(y.sum()) * int((y == 0).sum())
    return [
        (
            f"B: loss and gradient over {pairs:.2g} pairs",
            f"{times['evaluate']:.3f} s",
            "at most 0.15 s",
        )
    ]


def scaling(path):
    """Draw seconds of a fit against documents of a query, and against queries."""
    from matplotlib.figure import Figure

    series = {
        "documents of each of 200 queries": [(200, n) for n in (30, 60, 120, 240, 480, 960)],
        "queries of 120 documents": [(n, 120) for n in (50, 100, 200, 400, 800, 1600)],
    }
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    for axes, (name, sizes) in zip(figure.subplots(1, 2), series.items(), strict=True):
        found = []
        for queries, documents in sizes:
            X, y, qid = make_letor(queries, documents, random_state=0)
            X = StandardScaler().fit_transform(X).astype(np.float32)
            evaluate = Evaluations(X, y, qid)
            evaluate()
            fits = []
            for _ in range(5):
                start = perf_counter()
                for _ in range(5):
                    evaluate()
                fits.append((perf_counter() - start) / 5)
            found.append(np.median(fits))
        varied = [d if "documents of each" in name else q for q, d in sizes]
        axes.plot(varied, 1000 * np.array(found), "o-", color="#0072b2")
        slope = 1000 * found[-1] / varied[-1]
        axes.plot([0, varied[-1]], [0, slope * varied[-1]], "--", color="#777777", label="a line")
        axes.set_xlabel(name)
        axes.set_ylabel("ms for a loss and its gradient")
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.legend()
        for n, seconds in zip(varied, found, strict=True):
            print(f"{name}: {n}: {1000 * seconds:.2f} ms")
    figure.suptitle("136 dense features, float32, one thread")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    with threadpool_limits(1):
        scaling(Path(sys.argv[1]))
