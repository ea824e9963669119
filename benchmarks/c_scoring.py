"""Scoring in C beside the peers: stumps and trees on dense rows, linear models, a large file.

    python -m benchmarks c_scoring

300 boosted stumps on 46 dense features, beside XGBoost's and LightGBM's predict of as many stumps,
one thread each; 200 trees of 31 leaves beside Python; one row at a time by 100 rounds of
OrdinalBoost, with 5 and 10 ranks; a linear model of CSR rows beside SciPy's
product; `rc_model_open_file` of a
gigabyte. All are called from Python, with the rows in the form that each takes without a copy.
"""

import ctypes
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import numpy as np
import scipy.sparse as sp

import rankcore as rc
from benchmarks.measure import machine, medians, processor_seconds, show, sized
from benchmarks.model_files import model_of
from rankcore.datasets import make_letor

FLAGS = ["-std=c99", "-O2", "-ffp-contract=off", "-shared", "-fPIC"]
# rc_model_score by itself, which checks no rows, as SciPy does not; and ranks of one row at a time.
UNCHECKED = """
#include "librankcore.c"
RANKCORE_API int32_t unchecked(const rankcore_model *model, const double *values,
                               const int32_t *columns, const int64_t *offsets, int64_t n,
                               double *scores)
{
    const rc_rows X = {values, columns, offsets, 0, n, model->model.n_features, RC_FLOAT64};
    return rc_model_score(&model->model, &X, scores);
}

RANKCORE_API int32_t one_by_one(const rankcore_model *model, const double *values, int64_t n,
                                int32_t *ranks)
{
    const int64_t d = model->model.n_features;
    int64_t i;
    int32_t code = 0;
    for (i = 0; i < n && !code; i++) {
        const rc_rows X = rc_rows_dense(values + i * d, RC_FLOAT64, 1, d);
        code = rc_model_rank(&model->model, &X, ranks + i);
    }
    return code;
}
"""


def run(repeat: int) -> None:
    """Measure and print."""
    print(machine(), "\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = built(folder)
        show([*stumps(library, folder, repeat), *trees(library, folder, repeat)])
        show([row for k in (5, 10) for row in ordinal(library, folder, repeat, k)])
        show(linear(library, folder, repeat))
        show(opening(library, folder))


def built(folder):
    source, include = folder / "unchecked.c", f"-I{rc.get_include()}"
    source.write_text(UNCHECKED)
    command = ["cc", *FLAGS, include, "-o", folder / "librankcore.so", source, "-lm"]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(folder / "librankcore.so"))
    library.rankcore_open.restype = ctypes.c_void_p
    return library


def opened(library, path):
    error = ctypes.create_string_buffer(200)
    model = library.rankcore_open(str(path).encode(), error, ctypes.c_size_t(200))
    assert model, error.value
    return ctypes.c_void_p(model)


def stumps(library, folder, repeat):
    X, y, qid = make_letor(sized(1000, 20), 100, random_state=0)
    X = np.ascontiguousarray(X[:, -46:], dtype=np.float32)  # the last ones are the most informative
    model = rc.RankBoost(300).fit(X, y, qid=qid)
    rc.save(model, folder / "model")
    handle, out = opened(library, folder / "model"), np.empty(len(X))

    def in_c():
        code = library.rankcore_dense_f32(
            handle,
            X.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_int64(len(X)),
            ctypes.c_int64(46),
            out.ctypes.data_as(ctypes.c_void_p),
            None,
        )
        assert code == 0

    tasks = {"C": in_c, "Python": lambda: model.predict(X)}
    if find_spec("xgboost"):
        import xgboost

        peer = xgboost.XGBRanker(n_estimators=300, max_depth=1, n_jobs=1).fit(X, y, qid=qid)
        booster = peer.get_booster()
        booster.set_param({"nthread": 1})
        tasks["XGBoost"] = lambda: booster.inplace_predict(X)
    if find_spec("lightgbm"):
        import lightgbm

        peer = lightgbm.LGBMRanker(n_estimators=300, num_leaves=2, n_jobs=1, verbose=-1)
        light = peer.fit(X, y, group=np.unique(qid, return_counts=True)[1]).booster_
        tasks["LightGBM"] = lambda: light.predict(X, num_threads=1)
    seconds = medians(repeat, **tasks)
    assert np.array_equal(out, model.predict(X))
    rows = [(f"300 stumps, {len(X):,} x 46, C", f"{seconds['C'] * 1e3:.1f} ms", "")]
    for name in [*seconds][1:]:
        ratio = seconds[name] / seconds["C"]
        rows.append((f"  {name} / C", f"{ratio:.2f}", "at least 1" if "XG" in name else ""))
    return rows


def trees(library, folder, repeat):
    X, y, qid = make_letor(sized(600, 20), 100, n_features=136, random_state=0)
    X = np.ascontiguousarray(X, dtype=np.float32)
    model = rc.RankBoost(200, max_leaf_nodes=31).fit(X[:20_000], y[:20_000], qid=qid[:20_000])
    rc.save(model, folder / "model")
    handle, out = opened(library, folder / "model"), np.empty(len(X))
    pointers = [one.ctypes.data_as(ctypes.c_void_p) for one in (X, out)]
    shape = ctypes.c_int64(len(X)), ctypes.c_int64(X.shape[1])

    def in_c():
        assert library.rankcore_dense_f32(handle, pointers[0], *shape, pointers[1], None) == 0

    seconds = medians(repeat, C=in_c, Python=lambda: model.predict(X))
    assert np.array_equal(out, model.predict(X))
    return [
        (f"200 trees of 31 leaves, {len(X):,} x 136, C", f"{seconds['C'] * 1e3:.1f} ms", ""),
        ("  C / Python", f"{seconds['C'] / seconds['Python']:.2f}", "at most 1"),
    ]


def ordinal(library, folder, repeat, k):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(sized(22_000, 3_000), 50))
    score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3:8].sum(axis=1)
    score += rng.normal(size=len(X))
    y = np.digitize(score, np.quantile(score, np.arange(1, k) / k))
    model = rc.OrdinalBoost(100).fit(X[2000:], y[2000:])
    rc.save(model, folder / "model")
    X = np.ascontiguousarray(X[:2000])
    handle, ranks = opened(library, folder / "model"), np.empty(len(X), dtype=np.int32)
    pointers = [one.ctypes.data_as(ctypes.c_void_p) for one in (X, ranks)]

    def in_c():
        assert library.one_by_one(handle, pointers[0], ctypes.c_int64(len(X)), pointers[1]) == 0

    seconds = processor_seconds(5 * repeat, C=in_c)
    assert np.array_equal(ranks, model.predict(X))
    took = f"{seconds['C'] / len(X) * 1e6:.1f} us"
    return [(f"OrdinalBoost, 100 rounds, {k} ranks, one row", took, "at most 5 us")]


def linear(library, folder, repeat):
    rng = np.random.default_rng(0)
    n, d, per_row = sized(200_000, 4_000), 50_000, 50
    columns = np.sort(
        rng.integers(0, d // per_row, (n, per_row)) + d // per_row * np.arange(per_row)
    )
    indptr = per_row * np.arange(n + 1, dtype=np.int64)
    X = sp.csr_array((rng.normal(size=n * per_row), columns.ravel(), indptr), shape=(n, d))
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int64)
    y = rng.integers(0, 3, size=n)
    model = rc.PairwisePerceptron("last", max_iter=1, random_state=0)
    model.fit(X[:2000], y[:2000], qid=np.arange(2000) // 50)
    rc.save(model, folder / "model")
    handle, out, weights = opened(library, folder / "model"), np.empty(n), model.coef_
    theirs = sp.csr_array((X.data, X.indices, X.indptr.astype(np.int32)), shape=X.shape)

    parts = [part.ctypes.data_as(ctypes.c_void_p) for part in (X.data, X.indices, X.indptr)]
    pointer = out.ctypes.data_as(ctypes.c_void_p)

    def in_c():
        assert library.unchecked(handle, *parts, ctypes.c_int64(n), pointer) == 0

    def checked():
        assert library.rankcore_csr(handle, *parts, ctypes.c_int64(n), pointer, None) == 0

    seconds = medians(repeat, C=in_c, checked=checked, SciPy=lambda: theirs @ weights)
    np.testing.assert_allclose(out, theirs @ weights, rtol=1e-9, atol=1e-9)
    return [
        (f"linear, {X.nnz:,} non-zeros, C", f"{seconds['C'] * 1e3:.1f} ms", ""),
        ("  SciPy / C", f"{seconds['SciPy'] / seconds['C']:.2f}", "at least 1"),
        ("  SciPy / C that checks", f"{seconds['SciPy'] / seconds['checked']:.2f}", "at least 1"),
    ]


def opening(library, folder):
    rc.save(model_of(sized(128_000_000, 1_000_000)), folder / "large")
    times = []
    for _ in range(5):
        start = perf_counter()
        library.rankcore_close(opened(library, folder / "large"))
        times.append(perf_counter() - start)
    size = (folder / "large").stat().st_size / 1e9
    return [(f"open {size:.2f} GB", f"{min(times) * 1e3:.2f} ms", "at most 50 ms")]
