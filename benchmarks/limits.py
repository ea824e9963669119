"""How near the work around the kernels is to the limits of memory: processor time beside goals.

Least processor time of one thread, ratios of one run; other work on the machine adds little. w1 is
200,000 x 50,000 CSR with 75 values per row, L is 2,000 queries of 120 documents with 136 dense
features. ``python -m benchmarks.limits NAME...`` prints some rows.
"""

import io
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import process_time

import numpy as np
from sklearn.datasets import dump_svmlight_file
from threadpoolctl import threadpool_limits

import rankcore as rc
from benchmarks.measure import machine, processor_seconds, show, sized
from benchmarks.metrics import judged
from rankcore.datasets import dump_letor, make_letor, make_ordinal

N_W1, N_QUERIES = sized(200_000, 2_000), sized(2000, 40)
N_L = N_QUERIES * 120
WIDTHS = sized((4_000, 20_000, 100_000), (100, 200, 400))


def run(repeat: int) -> None:
    """Measure and print."""
    print(machine(), "\n")
    with threadpool_limits(1):
        for name in ROWS:
            show(ROWS[name](repeat))


def online(repeat):
    """Whole fits of PRank and VotedPRank, in sums of the matrix."""
    X, y = make_ordinal(N_W1 * 5 // 4)
    X, y = X[:N_W1], y[:N_W1]
    some = X[: N_W1 // 4], y[: N_W1 // 4]
    seconds = processor_seconds(
        min(repeat, 5),
        sums=lambda: (X.data.sum(), X.indices.sum()),
        one=lambda: rc.PRank.published().fit(X, y),
        default=lambda: rc.PRank(random_state=0).fit(X, y),
        prank=lambda: rc.PRank(random_state=0).fit(*some),
        voted=lambda: rc.VotedPRank(random_state=0).fit(*some),
    )

    def figure(name, other):
        return f"{seconds[name] * 1e3:.0f} ms, {seconds[name] / seconds[other]:.1f}x"

    return [
        ("w1: sums of data and indices", f"{seconds['sums'] * 1e3:.1f} ms", ""),
        ("w1: PRank.published().fit, to the sums", figure("one", "sums"), "2.6x"),
        ("w1: PRank().fit, to the sums", figure("default", "sums"), "32x"),
        (f"{N_W1 // 4:,} rows of w1: VotedPRank().fit, to PRank's", figure("voted", "prank"), "4x"),
    ]


def one_row(repeat):
    """Time calls with one row."""
    X, y = make_ordinal(n_samples=2000)
    D = np.random.default_rng(0).normal(size=(1000, 75))
    rows = []
    for kind, matrix in (("CSR", X[:1000]), ("dense", D)):
        model = rc.PRank(random_state=0).fit(matrix, y[:1000])
        singles = [matrix[i : i + 1] for i in range(1000)]
        with tempfile.TemporaryDirectory() as folder:
            rc.save(model, Path(folder) / "model.rankcore")
            predictor = rc.Predictor(Path(folder) / "model.rankcore")
        calls = {
            "partial_fit": lambda x, model=model: model.partial_fit(x, y[:1]),
            "predict": lambda x, model=model: model.predict(x),
            "Predictor.predict": lambda x, predictor=predictor: predictor.predict(x),
        }
        for name, call in calls.items():
            tasks = {name: lambda call=call, singles=singles: [call(x) for x in singles]}
            seconds = processor_seconds(min(repeat, 7), **tasks)[name]
            goal = "20 us" if name == "partial_fit" else "6 us"
            rows.append((f"one {kind} row: {name}", f"{seconds * 1e3:.1f} us", goal))
    return rows


def ndcg(repeat):
    """Time a measure of 10,000 queries of 1,000 documents."""
    labels, scores = judged()
    y, s = labels.ravel().astype(np.float64), scores.ravel()
    qid = np.repeat(np.arange(len(labels)), labels.shape[1])
    seconds = processor_seconds(
        min(repeat, 7),
        floats=lambda: rc.metrics.ndcg_score(y, s, qid=qid, k=10),
        bytes=lambda: rc.metrics.ndcg_score(labels.ravel(), s, qid=qid, k=10),
        scan=lambda: (s.max(), y.max(), qid.max()),
    )
    return [
        ("ndcg@10 of 10 million", f"{seconds['floats'] * 1e3:.0f} ms", "28 ms"),
        ("  labels int8", f"{seconds['bytes'] * 1e3:.0f} ms", "28 ms"),
        ("  maxima of scores, labels and qid", f"{seconds['scan'] * 1e3:.0f} ms", ""),
    ]


def wide_svm(repeat):
    """RankSVM with more features than rows: 20 queries of 100 documents."""
    rows = []
    for d, goal in zip(WIDTHS, (0.5, 1.5, 6.0), strict=True):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((2000, d), dtype=np.float32)
        s = X[:, :50] @ rng.normal(size=50) + 3 * rng.normal(size=2000)
        y = np.searchsorted(np.quantile(s, [0.5, 0.75, 0.9, 0.97]), s)
        qid = np.repeat(np.arange(20), 100)
        start = process_time()
        model = rc.RankSVM(random_state=0).fit(X, y, qid=qid)
        text = f"{process_time() - start:.2f} s, gap {model.gap_:.0e}, {model.objective_:.8f}"
        rows.append((f"RankSVM, 2,000 rows x {d:,} features, float32", text, f"{goal:g} s"))
    return rows


def kernel(repeat):
    """KernelPRank on 4,000 rows of L."""
    X, y, _ = make_letor(sized(40, 4), 100, random_state=0)
    seconds = processor_seconds(
        min(repeat, 3), fit=lambda: rc.KernelPRank(random_state=0).fit(X, y)
    )
    return [
        (f"KernelPRank().fit, {len(y):,} rows of 136", f"{seconds['fit']:.2f} s", "half of 1.91 s")
    ]


def pairwise(repeat):
    """Time passes of the committee over L."""
    X, y, qid = make_letor(N_QUERIES * 5 // 4)
    X, y, qid = X[:N_L].astype(np.float32), y[:N_L], qid[:N_L]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rows = []
    for passes in (1, 50):
        model = rc.PairwisePerceptron(max_iter=passes, random_state=0)
        start = process_time()
        model.fit(X, y, qid=qid)
        seconds, pairs = process_time() - start, sum(model.history_["pairs"])
        mistakes = sum(
            model.history_["mistakes"]
        )  # with the default margin about half of the pairs
        each = (
            f"{seconds / pairs * 1e9:.1f} ns per pair, {seconds / mistakes * 1e9:.0f} per mistake"
        )
        text = f"{seconds:.2f} s, {each}"
        rows.append((f"L: PairwisePerceptron, {passes} passes", text, "40 ns per mistake"))
    return rows


def trees(repeat):
    """100 trees of 31 leaves on L, and their scores beside the peers'."""
    X, y, qid = make_letor(N_QUERIES * 5 // 4)
    X, y, qid = X[:N_L].astype(np.float32), y[:N_L], qid[:N_L]
    start = process_time()
    model = rc.RankBoost(100, max_leaf_nodes=31, learning_rate=0.2).fit(X, y, qid=qid)
    rows = [("L: 100 trees of 31 leaves", f"{process_time() - start:.2f} s", "5 s")]
    tasks = {"rankcore": lambda: model.predict(X)}
    n_few = min(100, N_QUERIES)  # queries
    few = slice(n_few * 120)
    if find_spec("xgboost"):
        import xgboost

        params = {"max_leaves": 31, "max_depth": 0, "grow_policy": "lossguide", "nthread": 1}
        params |= {"objective": "rank:ndcg", "tree_method": "hist"}
        data = xgboost.DMatrix(X[few], y[few], qid=qid[few], nthread=1)
        peer = xgboost.train(params, data, 100)
        tasks["XGBoost"] = lambda: peer.inplace_predict(X)
    if find_spec("lightgbm"):
        import lightgbm

        quiet = {"verbose": -1, "num_threads": 1, "num_leaves": 31, "objective": "lambdarank"}
        data = lightgbm.Dataset(X[few], y[few], group=[120] * n_few, params=quiet)
        forest = lightgbm.train(quiet, data, 100)
        tasks["LightGBM"] = lambda: forest.predict(X, num_threads=1)
    seconds = processor_seconds(min(repeat, 3), **tasks)
    return rows + [
        (f"L: scores of 100 trees, {name}", f"{took * 1e3:.0f} ms", "")
        for name, took in seconds.items()
    ]


COLD = {
    "import rankcore": "import rankcore",
    "rankcore.PRank": "import rankcore; rankcore.PRank",
    "load": "import rankcore; rankcore.load({path!r})",
    "load and predict": "import rankcore, numpy; m = rankcore.load({path!r}); "
    "m.predict(numpy.ones((1, m.n_features_in_)))",
    "Predictor and predict": "import rankcore; m = rankcore.Predictor({path!r}); "
    "m.predict([[1] * m.n_features_in_])",
    "rankcore predict": "import sys; path = {path!r}; "
    "sys.argv = ['rankcore', 'predict', path, path + '.txt']; "
    "from rankcore.cli.app import main; main()",
    "rankcore info": "import sys; sys.argv = ['rankcore', 'info', {path!r}]; "
    "from rankcore.cli.app import main; main()",
    "import numpy": "import numpy",
    "import sklearn.base": "import sklearn.base",
}


GOAL_OF_A_START = ("load and predict", "Predictor and predict", "rankcore predict", "rankcore info")


def cold(repeat):
    """Fresh processes."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.rankcore")
        X, y = make_ordinal(n_samples=500)
        rc.save(rc.PRank().fit(X[:, :100], y), path)
        dump_letor(X[:10, :100], y[:10], f"{path}.txt")
        for name, code in COLD.items():
            took = []
            for _ in range(min(repeat, 7)):
                before = getrusage(RUSAGE_CHILDREN)
                command = [sys.executable, "-c", code.format(path=path)]
                subprocess.run(command, capture_output=True, check=False)
                after = getrusage(RUSAGE_CHILDREN)
                took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            goal = "0.35 s" if name in GOAL_OF_A_START else ""
            rows.append((f"a process that does {name}", f"{min(took):.2f} s", goal))
    return rows


def writing(repeat):
    """LETOR text beside scikit-learn's writer."""
    X, y, qid = make_letor(sized(25, 2), 120, random_state=0)
    seconds = processor_seconds(
        min(repeat, 5),
        ours=lambda: dump_letor(X, y, io.BytesIO(), qid=qid),
        theirs=lambda: dump_svmlight_file(X, y, io.BytesIO(), query_id=qid, zero_based=False),
    )
    faster = seconds["theirs"] / seconds["ours"]
    text = f"{len(X) / seconds['ours']:,.0f} rows/s, {faster:.1f}x scikit-learn's"
    return [("dump_letor, rows of 136 values", text, "10x")]


ROWS = {
    one.__name__: one
    for one in (online, one_row, ndcg, wide_svm, kernel, pairwise, trees, cold, writing)
}

if __name__ == "__main__":
    print(machine(), "\n")
    with threadpool_limits(1):
        for chosen in sys.argv[1:]:
            show(ROWS[chosen](7))
