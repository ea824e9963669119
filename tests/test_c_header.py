"""rankcore.h without Python: compiled as strict C99 and C++11, it gives Python's numbers.

Everything is compiled against ``rankcore.get_include()``, so an installed wheel is tested as well
as an editable install. Expected values come from Python, NumPy or plain arithmetic.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

import rankcore as rc
from rankcore._core.inputs import as_rows
from rankcore._ext import kernel_scores
from reference.decisions import margins

SOURCES = Path(__file__).parent / "embedding"
EXAMPLE = Path(__file__).parents[1] / "examples" / "c_pipeline"
STRICT = [
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wdouble-promotion",
    "-pedantic",
    "-Werror",
    "-ffp-contract=off",
]
C99, CXX11 = ["-std=c99"], ["-std=c++11", "-x", "c++"]

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("cc") is None,
    reason="no C compiler that takes the options of Unix (cc)",
)


def compilers() -> Iterator[object]:
    """Of a C and a C++ compiler the system's own, and GCC and Clang where they are others."""
    seen = set()
    for name, language in [
        ("cc", C99),
        ("c++", CXX11),
        ("gcc", C99),
        ("g++", CXX11),
        ("clang", C99),
        ("clang++", CXX11),
    ]:
        path = shutil.which(name)
        if path is None and name == "c++":
            yield pytest.param([], id=name, marks=pytest.mark.skip("no C++ compiler (c++)"))
        if path is not None and os.path.realpath(path) not in seen:
            seen.add(os.path.realpath(path))
            # At -O2 `make demo` and the shared library are compiled.
            yield pytest.param([path, *language, "-O1"], id=name)
    if platform.machine() == "x86_64":
        # Where the CPU has fused multiply-add, only -ffp-contract=off keeps the last bit.
        yield pytest.param(["cc", *C99, "-O3", "-march=native"], id="cc-native")


COMPILERS = list(compilers())


def run(*command: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(c) for c in command], text=True, capture_output=True, **options)


def build(compiler: list[str], source: Path, target: Path, *flags: str) -> Path:
    done = run(*compiler, *STRICT, *flags, f"-I{rc.get_include()}", source, "-o", target, "-lm")
    assert done.returncode == 0, done.stderr
    return target


# ------------------------------------------------------------------ the functions, one by one


class Rows(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("indices", ctypes.c_void_p),
        ("indptr", ctypes.c_void_p),
        ("stride", ctypes.c_int64),
        ("n_rows", ctypes.c_int64),
        ("n_features", ctypes.c_int64),
        ("dtype", ctypes.c_int32),
    ]


class PRank(ctypes.Structure):
    _fields_ = [
        ("weights", ctypes.c_void_p),
        ("thresholds", ctypes.c_void_p),
        ("n_features", ctypes.c_int64),
        ("n_ranks", ctypes.c_int32),
    ]


class Linear(ctypes.Structure):
    _fields_ = [
        ("weights", ctypes.c_void_p),
        ("intercept", ctypes.c_double),
        ("n_features", ctypes.c_int64),
    ]


class CuSum(ctypes.Structure):
    _fields_ = [
        ("weights", ctypes.c_void_p),
        ("thresholds", ctypes.c_void_p),
        ("n_features", ctypes.c_int64),
        ("n_ranks", ctypes.c_int32),
        ("tie", ctypes.c_int32),
    ]


class Kernel(ctypes.Structure):
    _fields_ = [
        ("gamma", ctypes.c_double),
        ("coef0", ctypes.c_double),
        ("kind", ctypes.c_int32),
        ("degree", ctypes.c_int32),
    ]


class KernelModel(ctypes.Structure):
    _fields_ = [
        ("kernel", Kernel),
        ("support", Rows),
        ("norms", ctypes.c_void_p),
        ("coefs", ctypes.c_void_p),
        ("thresholds", ctypes.c_void_p),
        ("n_outputs", ctypes.c_int32),
        ("n_ranks", ctypes.c_int32),
        ("tie", ctypes.c_int32),
    ]


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def as_c(X: np.ndarray | sp.csr_array) -> tuple[Rows, list[np.ndarray]]:
    """Return the C description of a matrix, and the arrays that it borrows."""
    rows = Rows(n_rows=X.shape[0], n_features=X.shape[1], dtype={"d": 0, "f": 1}[X.dtype.char])
    if isinstance(X, np.ndarray):
        rows.data, rows.stride = X.ctypes.data, X.strides[0] // X.itemsize
        return rows, [X]
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int64)
    rows.data, rows.indices, rows.indptr = (a.ctypes.data for a in (X.data, indices, indptr))
    return rows, [X.data, indices, indptr]


@pytest.fixture(scope="session", params=COMPILERS)
def probe(request, tmp_path_factory):
    target = tmp_path_factory.mktemp("probe") / "header_probe.so"
    library = ctypes.CDLL(
        str(build(request.param, SOURCES / "header_probe.c", target, "-shared", "-fPIC"))
    )
    library.probe_row_f64.restype = library.probe_row_f32.restype = ctypes.c_double
    return library


def random_matrix(rng: np.random.Generator, kind: str, dtype: str, n_features: int):
    values = rng.standard_normal((40, n_features)) * 10.0 ** rng.integers(-8, 9, (40, n_features))
    values[rng.random(values.shape) < 0.05] = 1e-310 if dtype == "float64" else 1e-40  # subnormal
    if kind == "dense":
        return values.astype(dtype)
    if kind == "strided":
        wide = np.full((80, n_features + 3), 1e300 if dtype == "float64" else 1e30, dtype)
        wide[::2, :n_features] = values
        return wide[::2, :n_features]
    stored = rng.random(values.shape) < rng.random((40, 1))  # from empty rows to full ones
    values[rng.random(values.shape) < 0.1] = 0.0  # zeros may be stored
    columns = np.broadcast_to(np.arange(n_features), values.shape)[stored]
    indptr = np.concatenate([[0], stored.sum(axis=1).cumsum()])
    return sp.csr_array((values[stored].astype(dtype), columns, indptr), shape=values.shape)


def training_set(rng: np.random.Generator, n_features: int, n_ranks: int):
    X = rng.standard_normal((60 + n_ranks, n_features))
    return X, np.concatenate([np.arange(n_ranks), rng.integers(0, n_ranks, 60)])


def fitted(rng: np.random.Generator, n_features: int, n_ranks: int) -> rc.PRank:
    X, y = training_set(rng, n_features, n_ranks)
    return rc.PRank.published(max_iter=3, average=True, threshold_scale=0.7).fit(X, y)


def in_contract_order(values: np.ndarray, weights: np.ndarray) -> float:
    """Compute the inner product as rankcore.h promises it: four sums, the rest in the first."""
    sums = [0.0] * 4
    products = [float(v) * float(w) for v, w in zip(values, weights, strict=True)]
    whole = len(products) // 4 * 4
    for i, product in enumerate(products):
        sums[i % 4 if i < whole else 0] += product
    return (sums[0] + sums[2]) + (sums[1] + sums[3])


def in_sequence(values: np.ndarray, weights: np.ndarray) -> float:
    """Compute the inner product, one stored value after the other."""
    total = 0.0  # not sum(), which compensates for rounding from Python 3.12 on
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        total += value * weight
    return total


def row_of(X: np.ndarray | sp.csr_array, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns and stored values of a row."""
    if isinstance(X, np.ndarray):
        return np.arange(X.shape[1], dtype=np.int32), np.ascontiguousarray(X[i])
    part = slice(X.indptr[i], X.indptr[i + 1])
    return X.indices[part].astype(np.int32), X.data[part]


KINDS = pytest.mark.parametrize("kind", ["csr", "dense", "strided"])
DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])


@KINDS
@DTYPES
def test_scores_and_ranks_equal_those_of_python(probe, kind, dtype):
    rng = np.random.default_rng(1)
    for n_features in [1, 2, 3, 4, 5, 7, 8, 31, 130]:
        n_ranks = int(rng.integers(2, 40))
        model = fitted(rng, n_features, n_ranks)
        X = random_matrix(rng, kind, dtype, n_features)
        rows, _borrowed = as_c(X)
        w, b = model.coef_, model.thresholds_
        expected = model.project(X)

        dots, scores = np.full(40, np.nan), np.full(40, np.nan)
        ranks = np.full(40, -1, dtype=np.int32)
        probe.probe_dot(ctypes.byref(rows), pointer(w), pointer(dots))
        c_model = PRank(w.ctypes.data, b.ctypes.data, n_features, n_ranks)
        probe.probe_prank(
            ctypes.byref(c_model), ctypes.byref(rows), pointer(scores), pointer(ranks)
        )

        assert dots.tobytes() == expected.tobytes()
        assert scores.tobytes() == expected.tobytes()
        np.testing.assert_array_equal(ranks, np.searchsorted(b, expected, side="right"))
        np.testing.assert_array_equal(ranks, model.predict(X))


@KINDS
@DTYPES
def test_sums_are_formed_in_the_order_of_the_contract(probe, kind, dtype):
    rng = np.random.default_rng(2)
    reordered = False
    for n_features in [1, 3, 4, 6, 8, 9, 50]:
        X = random_matrix(rng, kind, dtype, n_features)
        w = rng.standard_normal(n_features)
        rows, _borrowed = as_c(X)
        got = np.full(40, np.nan)
        probe.probe_dot(ctypes.byref(rows), pointer(w), pointer(got))
        one_row = probe.probe_row_f64 if dtype == "float64" else probe.probe_row_f32
        for i in range(40):
            columns, values = row_of(X, i)
            expected = in_contract_order(values, w[columns])
            assert got[i] == expected
            n = ctypes.c_int64(len(values))
            indices = pointer(columns) if kind == "csr" else None
            assert one_row(pointer(values), indices, n, pointer(w)) == expected
            reordered |= expected != in_sequence(values, w[columns])
    assert reordered  # or these data could not tell one order from another


@KINDS
@DTYPES
def test_axpy_rounds_twice(probe, kind, dtype):
    rng = np.random.default_rng(3)
    for n_features in [1, 3, 4, 7, 8, 33]:
        X = random_matrix(rng, kind, dtype, n_features)
        rows, _borrowed = as_c(X)
        w = rng.standard_normal(n_features)
        expected = w.copy()
        for i in range(40):
            a = float(rng.standard_normal())
            columns, values = row_of(X, i)
            expected[columns] += a * values.astype(np.float64)
            probe.probe_axpy(ctypes.byref(rows), ctypes.c_int64(i), ctypes.c_double(a), pointer(w))
            assert w.tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", ["distinct", "repeated", "equal", "signed zeros", "huge"])
def test_rank_counts_the_thresholds_reached(probe, kind):
    rng = np.random.default_rng(4)
    # Up to 16 thresholds are counted, more are halved first.
    for n_ranks in [*range(2, 61), 1000]:
        n = n_ranks - 1
        b = {
            "distinct": lambda n: rng.standard_normal(n),
            "repeated": lambda n: rng.integers(-3, 4, n) / 2,
            "equal": lambda n: np.full(n, 0.1),
            "signed zeros": lambda n: rng.choice([-0.0, 0.0, 5e-324, -5e-324], n),
            "huge": lambda n: rng.choice([-1.7e308, -1.0, 1.0, 1.7e308], n),
        }[kind](n)
        b.sort()
        around = [b, np.nextafter(b, -np.inf), np.nextafter(b, np.inf), rng.standard_normal(20)]
        scores = np.concatenate([*around, [np.inf, -np.inf, 0.0, -0.0, np.nan]])
        expected = np.searchsorted(b, scores, side="right")
        expected[np.isnan(scores)] = 0  # documented; NumPy sorts NaN last

        got = np.full(len(scores), -1, dtype=np.int32)
        probe.probe_rank(
            pointer(b), n_ranks, pointer(scores), ctypes.c_int64(len(scores)), pointer(got)
        )
        np.testing.assert_array_equal(got, expected)


# ------------------------------------------------------------------ several weight vectors


WIDTHS = range(1, 13)  # weight vectors: up to three times the four that are summed at once


@KINDS
@DTYPES
def test_dots_sum_column_after_column(probe, kind, dtype):
    rng = np.random.default_rng(5)
    reordered = False
    for n_features in [1, 2, 8, 9, 31]:
        X = random_matrix(rng, kind, dtype, n_features)
        rows, _borrowed = as_c(X)
        for k in WIDTHS:
            w = rng.standard_normal((n_features, k))
            got = np.full((41, k), np.nan)
            probe.probe_dots(ctypes.byref(rows), pointer(w), k, pointer(got))
            expected = np.empty((40, k))
            for i in range(40):
                columns, values = row_of(X, i)
                for j in range(k):
                    expected[i, j] = in_sequence(values, w[columns, j])
                reordered |= expected[i, 0] != in_contract_order(values, w[columns, 0])
            assert got[:40].tobytes() == expected.tobytes()
            assert np.isnan(got[40]).all()  # nothing is written behind the last
            if kind == "csr":  # documented: zeros left out do not matter here
                dense = X.toarray()
                probe.probe_dots(ctypes.byref(as_c(dense)[0]), pointer(w), k, pointer(got))
                assert got[:40].tobytes() == expected.tobytes()
    assert reordered


@KINDS
@DTYPES
def test_axpys_move_the_vectors_named(probe, kind, dtype):
    rng = np.random.default_rng(6)
    for n_features in [1, 3, 8, 33]:
        X = random_matrix(rng, kind, dtype, n_features)
        rows, _borrowed = as_c(X)
        for k in WIDTHS:
            w = rng.standard_normal((n_features, k))
            expected = w.copy()
            for i in range(40):
                a = float(rng.standard_normal())
                first, stop = np.sort(rng.integers(0, k + 1, 2)).tolist()  # none, some or all
                columns, values = row_of(X, i)
                expected[columns, first:stop] += (a * values.astype(np.float64))[:, None]
                probe.probe_axpys(
                    ctypes.byref(rows),
                    ctypes.c_int64(i),
                    ctypes.c_double(a),
                    pointer(w),
                    k,
                    first,
                    stop,
                )
                assert w.tobytes() == expected.tobytes()


@KINDS
@DTYPES
def test_norm2_sums_in_sequence(probe, kind, dtype):
    rng = np.random.default_rng(7)
    for n_features in [1, 2, 5, 8, 50]:
        X = random_matrix(rng, kind, dtype, n_features)
        rows, _borrowed = as_c(X)
        got = np.full(40, np.nan)
        probe.probe_norm2(ctypes.byref(rows), pointer(got))
        values = [row_of(X, i)[1].astype(np.float64) for i in range(40)]
        assert got.tolist() == [in_sequence(v, v) for v in values]


@pytest.mark.parametrize("kind", ["integers", "equal", "signed zeros", "infinite", "distinct"])
def test_best_breaks_ties_as_requested(probe, kind):
    rng = np.random.default_rng(8)
    for n in [*range(1, 14), 40]:
        scores = {
            "integers": lambda shape: rng.integers(-2, 3, shape).astype(float),
            "equal": lambda shape: np.full(shape, -0.1),
            "signed zeros": lambda shape: rng.choice([-0.0, 0.0, -5e-324], shape),
            "infinite": lambda shape: rng.choice([-np.inf, 0.0, np.inf], shape),
            "distinct": rng.standard_normal,
        }[kind]((50, n))
        for tie, place in [(0, -1), (1, 0)]:
            got = np.full(50, -1, np.int32)
            probe.probe_best(pointer(scores), ctypes.c_int64(50), n, tie, pointer(got))
            assert got.tolist() == [np.flatnonzero(s == s.max())[place] for s in scores]


@KINDS
@DTYPES
def test_cusum_scores_and_ranks_equal_those_of_python(probe, kind, dtype):
    rng = np.random.default_rng(9)
    for n_ranks in [k + 1 for k in WIDTHS]:
        n_features = int(rng.integers(1, 20))
        X_train, y = training_set(rng, n_features, n_ranks)
        model = rc.CuSumRank.published(update="pa1", C=0.1, average=True).fit(X_train, y)
        w, b = np.ascontiguousarray(model.coef_.T), -model.intercept_
        X = random_matrix(rng, kind, dtype, n_features)
        rows, _borrowed = as_c(X)
        for tie in ["high", "low"]:
            model.set_params(tie_break=tie)
            scores, again = np.full((2, 40, n_ranks), np.nan)
            ranks = np.full(40, -1, np.int32)
            c_model = CuSum(w.ctypes.data, b.ctypes.data, n_features, n_ranks, int(tie == "low"))
            probe.probe_cusum(
                ctypes.byref(c_model),
                ctypes.byref(rows),
                pointer(scores),
                pointer(again),
                pointer(ranks),
            )
            assert scores[:, -1].tobytes() == model.project(X).tobytes()
            assert again.tobytes() == scores.tobytes()
            np.testing.assert_array_equal(ranks, model.predict(X))
            np.testing.assert_array_equal(model.decision_function(X), margins(scores, ranks))
        for i in range(40):
            columns, values = row_of(X, i)
            total = 0.0
            for r in range(1, n_ranks):
                total += in_sequence(values, w[columns, r - 1]) - b[r - 1]
                assert scores[i, r] == total
            assert scores[i, 0] == 0.0


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize(
    "learner",
    [
        rc.KernelPRank.published(average=True),
        rc.KernelCuSumRank.published(margin=0.5),
        rc.KernelOAPBPM.published(8),
    ],
    ids=["prank", "cusum", "oap"],
)
def test_kernel_models_score_as_python_does(probe, kernel, form, dtype, learner):
    rng = np.random.default_rng(11)
    X = (rng.normal(size=(120, 6)) * (rng.random((120, 6)) < 0.7)).astype(dtype)
    y = np.digitize(np.sin(2 * X[:, 0]) + X[:, 1], [-1, 0, 1])
    model = learner.set_params(kernel=kernel, gamma=0.4, degree=3)
    model = model.fit(X if form == "dense" else sp.csr_array(X), y)
    cusum = isinstance(model, rc.KernelCuSumRank)
    support, _of_support = as_c(model.support_vectors_)
    dense = np.asarray(X[model.support_], dtype=np.float64)
    norms = np.array([sum(v * v for v in x) for x in dense])
    coefs = model.dual_coef_
    thresholds = -model.intercept_ if cusum else model.thresholds_
    kind = ["linear", "poly", "rbf"].index(kernel)
    c_model = KernelModel(
        Kernel(model.gamma_, model.coef0, kind, model.degree), support, norms.ctypes.data,
        coefs.ctypes.data, thresholds.ctypes.data, len(coefs), 4, 0,
    )  # fmt: skip
    for rows in [X, sp.csr_array(X)]:
        c_rows, _borrowed = as_c(rows)
        out = np.full((120, 4) if cusum else 120, np.nan)
        ranks = np.full(120, -1, np.int32)
        probe.probe_kernel(
            ctypes.byref(c_model), ctypes.byref(c_rows), int(cusum), pointer(out), pointer(ranks)
        )
        # C adds up the support vectors in turn, Python in four sums
        projected = out[:, -1] if cusum else out
        np.testing.assert_allclose(projected, model.project(X), rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(ranks, model.predict(X))
        values = np.full((120, len(dense)), np.nan)
        probe.probe_kernel_values(
            ctypes.byref(c_model.kernel), ctypes.byref(c_rows), ctypes.byref(support),
            pointer(values),
        )  # fmt: skip
        assert values.tobytes() == compiled_values(rows, model.support_vectors_, kind).tobytes()


def compiled_values(rows, support, kind):
    """Kernel values as the compiled learners have them, which C's shall be to the bit."""
    rows = as_rows(rows)
    support = np.asarray(support.todense() if sp.issparse(support) else support, dtype=np.float64)
    out = np.empty((rows.n_rows, len(support)))
    kernel = {"kind": kind, "gamma": 0.4 if kind else 0.0, "coef0": 1.0, "degree": 3}
    norms = np.array([sum(v * v for v in x) for x in support])
    kernel_scores.outputs(
        rows, 0, rows.n_rows, kernel, support.reshape(-1), None, None, None, norms, len(support),
        None, None, None, None, None, out,
    )  # fmt: skip
    return out


def test_exponential_is_accurate_and_underflows_to_zero(probe):
    probe.probe_kernel_exp.restype = ctypes.c_double
    probe.probe_kernel_exp.argtypes = [ctypes.c_double]
    for x in [0.0, -1e-300, -0.5, -1.0, -100.25, -708.0]:
        assert abs(probe.probe_kernel_exp(x) / np.exp(x) - 1) < 4e-16
    assert probe.probe_kernel_exp(-708.1) == probe.probe_kernel_exp(-np.inf) == 0.0
    assert np.isnan(probe.probe_kernel_exp(np.nan))


def test_cusum_ranks_break_ties_as_requested(probe):
    # Small integers: many rows have several ranks of equal score.
    rng = np.random.default_rng(10)
    X, y = rng.integers(-2, 3, (200, 4)).astype(float), rng.integers(0, 5, 200)
    rows, _borrowed = as_c(X)
    model = rc.CuSumRank.published(max_iter=2).fit(X, y)
    w, b = np.ascontiguousarray(model.coef_.T), -model.intercept_
    scores, found = np.empty((2, 200, 5)), {}
    for code, tie in enumerate(["high", "low"]):
        ranks = found[tie] = np.full(200, -1, np.int32)
        c_model = CuSum(w.ctypes.data, b.ctypes.data, 4, 5, code)
        arrays = pointer(scores[0]), pointer(scores[1]), pointer(ranks)
        probe.probe_cusum(ctypes.byref(c_model), ctypes.byref(rows), *arrays)
        np.testing.assert_array_equal(ranks, model.set_params(tie_break=tie).predict(X))
    assert (found["high"] > found["low"]).sum() > 5
    assert (found["high"] >= found["low"]).all()


@KINDS
@DTYPES
def test_linear_scores_equal_those_of_python(probe, kind, dtype):
    rng = np.random.default_rng(11)
    for n_features in [1, 3, 4, 9, 31]:
        n_ranks = int(rng.integers(2, 40))
        model = rc.WidrowHoff.published(eta0=0.01).fit(*training_set(rng, n_features, n_ranks))
        w = model.coef_
        X = random_matrix(rng, kind, dtype, n_features)
        rows, _borrowed = as_c(X)
        scores = np.full(40, np.nan)
        c_model = Linear(w.ctypes.data, model.intercept_, n_features)
        probe.probe_linear(ctypes.byref(c_model), ctypes.byref(rows), pointer(scores))
        assert model.intercept_ != 0.0
        assert scores.tobytes() == model.project(X).tobytes()
        for i in range(40):
            columns, values = row_of(X, i)
            assert scores[i] == in_contract_order(values, w[columns]) + model.intercept_


def test_least_squares_ranks_equal_thresholds_at_midpoints(probe):
    # Documented: WidrowHoff.predict is rc_rank with thresholds 1.5, 2.5 and so on.
    for n_ranks in [2, 3, 5, 9, 40]:
        b = np.arange(1.5, n_ranks)
        near = [b, np.nextafter(b, -np.inf), np.nextafter(b, np.inf), [-1e300, -3.0, 0.5, 1e300]]
        scores = np.concatenate(near)
        # A model that returns what it is given.
        model = rc.WidrowHoff.published(eta0=1.0, fit_intercept=False)
        model.fit([[1.0]], [0], classes=np.arange(n_ranks))
        assert (model.coef_, model.intercept_) == ([1.0], 0.0)
        got = np.full(len(scores), -1, np.int32)
        n = ctypes.c_int64(len(scores))
        probe.probe_rank(pointer(b), n_ranks, pointer(scores), n, pointer(got))
        np.testing.assert_array_equal(got, model.predict(scores[:, None]))


@KINDS
@DTYPES
def test_multiclass_scores_and_ranks_equal_those_of_python(probe, kind, dtype):
    rng = np.random.default_rng(12)
    for n_ranks in WIDTHS[1:]:
        n_features = int(rng.integers(1, 20))
        model = rc.MulticlassPerceptron.published(average=n_ranks % 2 == 0)
        model.fit(*training_set(rng, n_features, n_ranks))
        w = np.ascontiguousarray(model.coef_.T)
        X = random_matrix(rng, kind, dtype, n_features)
        rows, _borrowed = as_c(X)
        scores, ranks = np.full((40, n_ranks), np.nan), np.full(40, -1, np.int32)
        probe.probe_dots(ctypes.byref(rows), pointer(w), n_ranks, pointer(scores))
        probe.probe_best(pointer(scores), ctypes.c_int64(40), n_ranks, 1, pointer(ranks))
        np.testing.assert_array_equal(ranks, model.predict(X))
        np.testing.assert_array_equal(model.decision_function(X), margins(scores, ranks))


# The next test compiles the file as C99.
@pytest.mark.parametrize("compiler", [one for one in COMPILERS if one.id != "cc"])
def test_rows_in_lanes_score_as_single_rows(compiler, tmp_path):
    program = build(compiler, SOURCES / "tree_rows.c", tmp_path / "tree_rows")
    done = run(program, "300", "1")
    assert (done.returncode, done.stdout) == (0, "")


def test_batched_rows_write_to_no_other_memory(tmp_path):
    target, sanitizers = tmp_path / "tree_rows", "-fsanitize=address,undefined"
    # GCC needs ten times as long to optimise what sanitizers check, and then checks less of it.
    command = ["cc", *C99, *STRICT, "-g", "-O0", sanitizers, "-fno-sanitize-recover=all"]
    done = run(*command, f"-I{rc.get_include()}", SOURCES / "tree_rows.c", "-o", target)
    if done.returncode:  # without them it compiles: see above
        pytest.skip(f"no sanitizers: {done.stderr[-200:]}")
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = run(target, "300", "2", env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# ------------------------------------------------------------------ what is frozen


def test_header_needs_no_python():
    text = (Path(rc.get_include()) / "rankcore.h").read_text(encoding="utf-8")
    assert re.findall(r"^\s*#\s*include\s*(\S+)", text, re.M) == [
        "<stddef.h>",
        "<stdint.h>",
        "<string.h>",
    ]
    done = run("cc", *C99, "-M", f"-I{rc.get_include()}", SOURCES / "header_probe.c")
    assert done.returncode == 0, done.stderr
    assert "rankcore.h" in done.stdout
    assert "Python.h" not in done.stdout


@pytest.mark.skipif(sys.maxsize < 2**32, reason="the numbers are those of 64-bit platforms")
@pytest.mark.parametrize("compiler", COMPILERS)
def test_layouts_are_frozen(compiler, tmp_path):
    done = run(build(compiler, SOURCES / "layout.c", tmp_path / "layout"))
    found = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    # A compiled program has these numbers built in. A released struct therefore never changes:
    # what needs another layout gets another name. Lines may be added here, never edited.
    assert {name: int(value) for name, value in found.items()} == {
        "RANKCORE_ABI": 1,
        "RC_FLOAT64": 0,
        "RC_FLOAT32": 1,
        "RC_TIE_HIGH": 0,
        "RC_TIE_LOW": 1,
        "rc_row": 32,
        "rc_row.data": 0,
        "rc_row.indices": 8,
        "rc_row.n": 16,
        "rc_row.dtype": 24,
        "rc_rows": 56,
        "rc_rows.data": 0,
        "rc_rows.indices": 8,
        "rc_rows.indptr": 16,
        "rc_rows.stride": 24,
        "rc_rows.n_rows": 32,
        "rc_rows.n_features": 40,
        "rc_rows.dtype": 48,
        "rc_prank": 32,
        "rc_prank.weights": 0,
        "rc_prank.thresholds": 8,
        "rc_prank.n_features": 16,
        "rc_prank.n_ranks": 24,
        "rc_linear": 24,
        "rc_linear.weights": 0,
        "rc_linear.intercept": 8,
        "rc_linear.n_features": 16,
        "rc_cusum": 32,
        "rc_cusum.weights": 0,
        "rc_cusum.thresholds": 8,
        "rc_cusum.n_features": 16,
        "rc_cusum.n_ranks": 24,
        "rc_cusum.tie": 28,
        "RC_KERNEL_LINEAR": 0,
        "RC_KERNEL_POLY": 1,
        "RC_KERNEL_RBF": 2,
        "rc_kernel": 24,
        "rc_kernel.gamma": 0,
        "rc_kernel.coef0": 8,
        "rc_kernel.kind": 16,
        "rc_kernel.degree": 20,
        "rc_kernel_model": 120,
        "rc_kernel_model.kernel": 0,
        "rc_kernel_model.support": 24,
        "rc_kernel_model.norms": 80,
        "rc_kernel_model.coefs": 88,
        "rc_kernel_model.thresholds": 96,
        "rc_kernel_model.n_outputs": 104,
        "rc_kernel_model.n_ranks": 108,
        "rc_kernel_model.tie": 112,
        "rc_stumps": 56,
        "rc_stumps.offsets": 0,
        "rc_stumps.thresholds": 8,
        "rc_stumps.values": 16,
        "rc_stumps.missing": 24,
        "rc_stumps.at_zero": 32,
        "rc_stumps.base": 40,
        "rc_stumps.n_features": 48,
        "rc_trees": 88,
        "rc_trees.offsets": 0,
        "rc_trees.features": 8,
        "rc_trees.children": 16,
        "rc_trees.missing": 24,
        "rc_trees.thresholds": 32,
        "rc_trees.values": 40,
        "rc_trees.n_trees": 48,
        "rc_trees.n_features": 56,
        "rc_trees.zero_missing": 64,
        "rc_trees.sets": 72,
        "rc_trees.words": 80,
    }


# ------------------------------------------------------------------ examples/c_pipeline


with_example = pytest.mark.skipif(
    not EXAMPLE.exists(), reason="the example is not beside the tests"
)


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    if not EXAMPLE.exists():
        pytest.skip("the example is not beside the tests")
    target = tmp_path_factory.mktemp("pipeline") / "rank"
    return build(["cc", *C99, "-O1"], EXAMPLE / "main.c", target)


@with_example
@pytest.mark.parametrize("compiler", COMPILERS)
def test_example_compiles_without_a_warning(compiler):
    includes = f"-I{rc.get_include()}"
    done = run(*compiler, *STRICT, "-fsyntax-only", includes, EXAMPLE / "main.c")
    assert (done.returncode, done.stderr) == (0, "")


def svmlight(X: sp.csr_array, y: np.ndarray) -> str:
    lines = []
    for i, label in enumerate(y):
        columns, values = row_of(X, i)
        stored = (f"{c + 1}:{v!r}" for c, v in zip(columns, values.tolist(), strict=True))
        lines.append(" ".join([f"{label}", *stored]))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("n_ranks", [2, 5, 40])
def test_example_prints_the_numbers_of_python(program, tmp_path, n_ranks):
    rng = np.random.default_rng(n_ranks)
    model = fitted(rng, 37, n_ranks)
    X = random_matrix(rng, "csr", "float64", 37)
    y = rng.integers(0, n_ranks, 40)
    rc.save(model, tmp_path / "model.rankcore")
    text = svmlight(X, y)

    labels = run(program, tmp_path / "model.rankcore", input=text)
    scores = run(program, "-s", tmp_path / "model.rankcore", input=text)

    for done in (labels, scores):
        assert (done.returncode, done.stderr) == (0, "")
    np.testing.assert_array_equal(np.array(labels.stdout.split(), int), model.predict(X))
    pairs = [line.split(" ") for line in scores.stdout.splitlines()]
    assert [label for label, _ in pairs] == labels.stdout.split()
    got = np.array([float(score) for _, score in pairs])
    assert got.tobytes() == model.project(X).tobytes()


def test_example_ranks_a_score_on_a_threshold_upwards(program, tmp_path):
    model = rc.PRank.published(max_iter=2).fit([[1, 0], [0, 1], [1, 1], [2, 0]], [3, 1, 2, 3])
    rc.save(model, tmp_path / "model.rankcore")
    X = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.5, 0.0]])
    assert set(model.thresholds_) <= set(model.project(X))
    done = run(
        program, tmp_path / "model.rankcore", input=svmlight(sp.csr_array(X), np.zeros(5, int))
    )
    np.testing.assert_array_equal(np.array(done.stdout.split(), int), model.predict(X))


def known_model(path, weights, classes):
    """Return a PRank of these weights and the thresholds -1 and 1."""
    model = rc.PRank.published().fit(np.eye(3)[:, :2], classes, classes=classes)
    model._state.model["weights"][:] = weights
    model._state.model["steps"][:] = model._state.model["thresholds"][:] = [-1, 1]
    rc.save(model, path)


def test_example_reads_all_of_the_format(program, tmp_path):
    known_model(tmp_path / "model", [1, 5], ["bad", "so so", "größer"])
    rows = (
        "# nothing but a comment\n\n"
        "3 qid:7 1:1 2:0x1p-2 # the comment: 9:9\n"  # a label and a query
        "qid:7 1:-0.5\n"  # no label
        "  \t1:-1\t\t2:-1e-400  \r\n"  # underflows to zero
        "4\n"  # no values
        "1 2:+.2"  # no end of line
    )
    done = run(program, "-s", tmp_path / "model", input=rows)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "größer 2.25\nso so -0.5\nso so -1\nso so 0\ngrößer 1\n"


def test_example_prints_the_scores_of_rankers(program, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    model = rc.RankBoost(20).fit(X, y, qid=np.zeros(len(y)))
    rc.save(model, tmp_path / "model")
    done = run(program, tmp_path / "model", input=svmlight(sp.csr_array(X), y))
    assert np.array_equal(np.array(done.stdout.split(), dtype=float), model.predict(X))
    committee = rc.PairwisePerceptron("committee", combine="rank").fit(X, y, qid=np.zeros(len(y)))
    rc.save(committee, tmp_path / "model")
    done = run(program, tmp_path / "model", input="1 1:1\n")
    assert done.returncode == 2
    assert "scores depend on all documents of a query" in done.stderr


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1 3:1\n", "1: a column must be a whole number from 1 to 2; got '3'"),
        ("1 1:1\n1 0:1\n", "2: a column must be a whole number from 1 to 2; got '0'"),
        ("1 -1:1\n", "from 1 to 2; got '-1'"),
        ("1 4294967297:1\n", "from 1 to 2; got '4294967297'"),
        ("1 99999999999999999999:1\n", "from 1 to 2; got '99999999999999999999'"),
        ("1 1.5:1\n", "from 1 to 2; got '1.5'"),
        ("1 :1\n", "from 1 to 2; got ''"),
        ("1 2:1 1:1\n", "the columns of a row must ascend; got '1'"),
        ("1 1:1 2:1 2:1\n", "the columns of a row must ascend; got '2'"),
        ("1 2\n", "expected column:value; got '2'"),
        ("x 1:2\n", "expected a label or column:value; got 'x'"),
        ("1 1:\n", "expected a finite number; got ''"),
        ("1 1:x\n", "expected a finite number; got 'x'"),
        ("1 1:1,5\n", "expected a finite number; got '1,5'"),
        ("1 1:nan\n", "expected a finite number; got 'nan'"),
        ("1 1:-inf\n", "expected a finite number; got '-inf'"),
        ("1 1:1e999\n", "expected a finite number; got '1e999'"),
        ("1 1:1\0\n", "not a text file"),
    ],
)
def test_example_rejects_bad_rows(program, tmp_path, rows, message):
    known_model(tmp_path / "model.rankcore", [0.5, 2], [1, 2, 3])
    done = run(program, tmp_path / "model.rankcore", input=rows)
    assert done.returncode == 1
    assert done.stderr.startswith("standard input:")
    assert message in done.stderr


def test_example_rejects_bad_models(program, tmp_path):
    (tmp_path / "model").write_text("rankcore-prank 1\nranks 3\n")
    done = run(program, tmp_path / "model", input="1 1:1\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (f"{tmp_path / 'model'}: not a rankcore model file, or damaged\n")


def test_example_rejects_a_bad_command_line(program, tmp_path):
    for arguments in [[], ["-s"], ["model.txt", "rows.svm"]]:
        done = run(program, *arguments, input="")
        assert done.returncode == 2
        assert done.stderr.startswith("usage: ")
    done = run(program, tmp_path / "none.txt", input="")
    assert done.returncode == 2
    assert done.stderr == f"{tmp_path / 'none.txt'}: the file cannot be read, or is empty\n"


@pytest.mark.slow
@with_example
def test_makefile_trains_and_ranks(tmp_path):
    """`make demo` as the README of the example says, from the rows to Python's numbers."""
    work = tmp_path / "c_pipeline"
    shutil.copytree(EXAMPLE, work, ignore=shutil.ignore_patterns("build", "__pycache__"))
    # As typed by hand: not as a part of the make that may have started these tests.
    alone = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))
    }
    command = ["make", "-s", "-C", work, "demo", f"PYTHON={sys.executable}", "CFLAGS=-O2 -Werror"]
    done = run(*command, env=alone)
    assert (done.returncode, done.stderr) == (0, "")
    X, y = load_svmlight_file(str(work / "rows.svm"), zero_based=False)
    model = rc.PRank.published(max_iter=5, average=True).fit(X, y)
    lines = [line.split(" ") for line in done.stdout.splitlines() if line[0].isdigit()]
    np.testing.assert_array_equal([float(label) for label, _ in lines], model.predict(X))
    got = np.array([float(score) for _, score in lines])
    assert got.tobytes() == model.project(X).tobytes()
    assert model.score(X, y) > -0.5  # the demonstration shows something learned


@with_example
def test_training_script_takes_more_columns_and_passes(tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:1\n2.5 2:1\n0.1 1:-1 2:1\n")
    command = [sys.executable, EXAMPLE / "train.py", "rows.svm", "model.rankcore"]
    done = run(*command, "--features", "4", "--passes", "2", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    X = [[1, 0, 0, 0], [0, 1, 0, 0], [-1, 1, 0, 0]]
    model = rc.PRank.published(max_iter=2, average=True).fit(
        sp.csr_array(np.array(X, float)), [1, 2.5, 0.1]
    )
    loaded = rc.load(tmp_path / "model.rankcore")
    assert loaded.classes_.tolist() == [0.1, 1, 2.5]
    assert loaded.thresholds_.tolist() == model.thresholds_.tolist()
    assert loaded.coef_.tolist() == model.coef_.tolist()
