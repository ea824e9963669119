"""PRank on sparse rows: 200,000 x 50,000 CSR, about 75 non-zeros a row, 5 ranks."""

import numpy as np
from sklearn.linear_model import SGDClassifier

import rankcore as rc
from benchmarks.measure import machine, medians, peak_bytes, process_seconds, show, sized
from rankcore._core.inputs import as_rows
from rankcore._core.labels import encode, find_classes
from rankcore._ext.online_loop import learn
from rankcore.datasets import make_ordinal

N_TRAIN = sized(200_000, 2_000)


# The perceptron of scikit-learn, one pass in order.
PEER = {"loss": "perceptron", "penalty": None, "learning_rate": "constant", "eta0": 1}
PEER |= {"max_iter": 1, "tol": None, "shuffle": False}


def run(repeat: int) -> None:
    """Measure and print."""
    X, y = make_ordinal(N_TRAIN * 5 // 4)
    X_test, y_test = X[N_TRAIN:], y[N_TRAIN:]
    X, y = X[:N_TRAIN], y[:N_TRAIN]
    print(machine())
    print(f"{X.shape[0]} x {X.shape[1]} CSR, {X.nnz / X.shape[0]:.1f} non-zeros a row, 5 ranks\n")
    rows, ranks = as_rows(X), encode(y, find_classes(y))
    single = rows_of_one(X)
    seconds = medians(
        repeat,
        stream=lambda: (X.data.sum(), X.indices.sum()),
        epoch=lambda: epoch(rows, ranks),
        averaged=lambda: epoch(rows, ranks, average=True),
        check=lambda: as_rows(X),
        fit=lambda: rc.PRank.published().fit(X, y),
        default=lambda: rc.PRank(random_state=0).fit(X, y),
        sgd=lambda: SGDClassifier(**PEER).fit(X, y > 3),
        update=lambda: epoch(*single),
    )
    model = rc.PRank.published(average=True).fit(X, y)
    streams = [X[i : i + 1] for i in range(1000)]
    latency = medians(repeat, stream=lambda: [model.partial_fit(x, y[:1]) for x in streams])

    def memory(**parameters) -> str:
        peak = peak_bytes(lambda: rc.PRank.published(**parameters).fit(X, y))
        return f"{(peak - 8 * X.shape[1]) / N_TRAIN:.1f}"

    def per_value(name: str) -> str:
        return f"{seconds[name] * 1e3:.1f} ms, {seconds[name] / X.nnz * 1e9:.2f} ns"

    def ratio(one: str, other: str) -> str:
        return f"{seconds[one] / seconds[other]:.2f}x"

    show(
        [
            ("streaming pass (NumPy's sums), a non-zero", per_value("stream"), ""),
            ("PRank epoch, a non-zero", per_value("epoch"), ""),
            ("  to the streaming pass", ratio("epoch", "stream"), "at most 2.0x"),
            ("PRank epoch, averaged, a non-zero", per_value("averaged"), ""),
            ("checking the input once, a non-zero", per_value("check"), ""),
            ("PRank.fit, checks and labels included, a non-zero", per_value("fit"), ""),
            ("  to the streaming pass", ratio("fit", "stream"), "at most 2.6x"),
            ("PRank.fit, default: ten shuffled averaged passes", per_value("default"), ""),
            ("  to the streaming pass", ratio("default", "stream"), "at most 32x"),
            ("SGDClassifier.fit (perceptron, y > 3), a non-zero", per_value("sgd"), ""),
            ("  to the PRank epoch", ratio("sgd", "epoch"), "at least 6x"),
            ("  to PRank.fit", ratio("sgd", "fit"), "at least 6x"),
            ("peak memory beyond input and model, bytes per row", memory(), "at most 16"),
            ("  with shuffle=True", memory(shuffle=True), "at most 16"),
            ("partial_fit of one CSR row", f"{latency['stream'] * 1e3:.0f} us", "at most 100 us"),
            (
                "update of one 75-non-zero row in the kernel",
                f"{seconds['update'] / single[0].n_rows * 1e6:.3f} us",
                "at most 0.3 us",
            ),
            ("import rankcore beyond numpy", f"{import_seconds(repeat):.3f} s", "at most 0.1 s"),
        ]
    )
    losses(X, y, X_test, y_test)


def losses(X, y, X_test, y_test):
    """Print losses on held-out rows."""
    constant = np.full(len(y_test), np.median(y))
    print("\ntest rank loss after one pass")
    for name, predicted in [
        ("best constant", constant),
        ("PRank, last", rc.PRank.published().fit(X, y).predict(X_test)),
        ("PRank, averaged", rc.PRank.published(average=True).fit(X, y).predict(X_test)),
    ]:
        print(f"  {name:<16} {rc.metrics.rank_loss(y_test, predicted):.4f}")


def import_seconds(repeat):
    """Seconds of the import beyond that of NumPy; it does not import scikit-learn."""
    code = "import sys, rankcore, rankcore._ext.ordinal; assert 'sklearn' not in sys.modules"
    process_seconds(code, 1)
    base = process_seconds("import numpy", repeat)
    return process_seconds("import numpy, rankcore", repeat) - base


def epoch(rows, ranks, average=False):
    """One pass of the kernel from zero."""
    learner, none = rc.PRank.published(average=average), np.empty(0, np.int64)
    model = learner._new_model(rows.n_features, 5)
    learn(model, learner, rows, ranks, None, None, 0, rows.n_rows, none, none)


def rows_of_one(X):
    """Return one row of 75 non-zeros many times, with ranks that cause a mistake on each."""
    import scipy.sparse as sp

    row = X[[int(np.flatnonzero(np.diff(X.indptr) == 75)[0])]]
    ranks = np.tile(np.array([0, 4], np.int32), 500)
    return as_rows(sp.vstack([row] * 1000, format="csr")), ranks
