"""rankcore_capi.h and core.pxd: extensions of third parties train and score like Python.

The extensions are compiled here against ``rankcore.get_include()`` and the package's ``core.pxd``
where they are found, so an installed wheel is tested as well as an editable install.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import scipy.sparse as sp

import rankcore as rc

ROOT = Path(__file__).parents[1]
SOURCES = Path(__file__).parent / "embedding"
HEADERS = Path(rc.get_include())
# What holds the package: Cython looks for rankcore/core.pxd there.
PACKAGES = os.path.dirname(os.path.dirname(rc.__file__))
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
SHARED = ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared"]
# Free-threaded Pythons have no limited API.
LIMITED = [] if sysconfig.get_config_var("Py_GIL_DISABLED") else ["-DPy_LIMITED_API=0x030B0000"]

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("cc") is None,
    reason="no C compiler that takes the options of Unix (cc)",
)


def run(*command: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(c) for c in command], text=True, capture_output=True, **options)


def build(source: Path, folder: Path, *flags: object) -> Path:
    """Compile an extension module named like its source."""
    target = folder / (source.stem + sysconfig.get_config_var("EXT_SUFFIX"))
    # -isystem: the warnings of Python's own headers are not ours.
    python = ["-isystem", sysconfig.get_path("include")]
    # The first include directory wins: flags may put other headers in front.
    command = ["cc", *SHARED, "-fPIC", "-O2", "-ffp-contract=off", *flags, f"-I{HEADERS}", *python]
    done = run(*command, source, "-o", target)
    assert done.returncode == 0, done.stderr
    return target


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.name.split(".")[0], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cythonize(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    return run(
        sys.executable, "-m", "cython", "-3", "-Werror", f"-I{PACKAGES}", source, "-o", target
    )


@pytest.fixture(scope="session")
def trainer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trainer")
    return load(build(SOURCES / "prank_trainer.c", folder, *STRICT, *LIMITED))


@pytest.fixture(scope="session")
def cython_user(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cython")
    done = cythonize(SOURCES / "cython_user.pyx", folder / "cython_user.c")
    assert done.returncode == 0, done.stderr
    return load(build(folder / "cython_user.c", folder))


def problem(seed: int, n: int = 300, n_features: int = 23, n_ranks: int = 6, integers: bool = True):
    """Sparse rows and ranks. Small integers make scores hit thresholds exactly."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-3, 4, (n, n_features)) if integers else rng.normal(size=(n, n_features))
    X = sp.csr_array(np.where(rng.random((n, n_features)) < 0.25, values, 0.0))
    y = np.concatenate([np.arange(n_ranks), rng.integers(0, n_ranks, n - n_ranks)])
    return X, y.astype(np.int32)


def train(
    trainer: ModuleType, X, y, *, n_ranks=6, scale=1.0, tie="crammer", average=True, passes=1
):
    result = trainer.train(
        X.data,
        X.indices.astype(np.int32),
        X.indptr.astype(np.int64),
        y,
        X.shape[1],
        n_ranks,
        scale,
        tie == "strict",
        average,
        passes,
    )
    for name in ["weights", "thresholds", "mean_weights", "mean_thresholds"]:
        if result[name] is not None:
            result[name] = np.frombuffer(result[name], np.float64)
    result["steps"] = np.frombuffer(result["steps"], np.int64)
    return result


def check(result: dict, X, y, *, scale=1.0, tie="crammer", average=True, passes=1) -> rc.PRank:
    """Compare a result to the bit with what the estimator learns from the same rows."""
    last = rc.PRank(max_iter=passes, tie=tie, threshold_scale=scale).fit(X, y)
    assert result["weights"].tobytes() == last.coef_.tobytes()
    assert result["thresholds"].tobytes() == last.thresholds_.tobytes()
    # The thresholds are a product of two numbers that are exact.
    assert (scale**2 * result["steps"]).tobytes() == last.thresholds_.tobytes()
    history = last.history_
    losses = np.multiply(history["rank_loss"], history["examples"])
    assert result["t"] == last.t_ == passes * X.shape[0]
    assert result["mistakes"] == sum(history["mistakes"])
    assert result["rank_loss"] == round(losses.sum())
    if average:
        mean = rc.PRank(max_iter=passes, tie=tie, threshold_scale=scale, average=True).fit(X, y)
        assert result["mean_weights"].tobytes() == mean.coef_.tobytes()
        assert result["mean_thresholds"].tobytes() == mean.thresholds_.tobytes()
        assert mean.coef_.tobytes() != last.coef_.tobytes()
    else:
        assert result["mean_weights"] is None
        assert result["mean_thresholds"] is None
    return last


# ------------------------------------------------------------------ a C extension


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("scale", [1.0, 0.3, 7.1])
@pytest.mark.parametrize("tie", ["crammer", "strict"])
def test_c_loop_learns_what_fit_learns(trainer, tie, scale, average):
    for seed, passes, integers in [(1, 1, True), (2, 3, True), (3, 2, False)]:
        X, y = problem(seed, integers=integers)
        options = {"tie": tie, "scale": scale, "average": average, "passes": passes}
        result = train(trainer, X, y, **options)
        assert result["reached"] == X.shape[0]
        check(result, X, y, **options)


def test_ties_matter_in_these_data(trainer):
    X, y = problem(1)
    crammer, strict = (train(trainer, X, y, tie=tie) for tie in ["crammer", "strict"])
    assert crammer["weights"].tobytes() != strict["weights"].tobytes()


def test_two_ranks_and_many(trainer):
    for n_ranks in [2, 17, 18, 60]:
        X, y = problem(n_ranks, n_ranks=n_ranks)
        check(train(trainer, X, y, n_ranks=n_ranks), X, y)


@pytest.mark.parametrize("second", [(1e300, 1e300), (1e300, -1e300)], ids=["infinity", "nan"])
@pytest.mark.parametrize("tie", ["crammer", "strict"])
def test_overflow_changes_nothing(trainer, tie, second):
    X, y = problem(4, n=30)
    # Two columns that nothing was learned about yet: row 30 scores 0 and, ranked wrongly, makes
    # their weights huge, so that the score of row 31 overflows.
    ranked = rc.PRank(tie=tie).fit(X, y).predict(np.zeros((1, X.shape[1])))[0]
    wrong = np.array([0 if ranked == 5 else 5, 2], np.int32)
    X, more = sp.hstack([X, sp.csr_array((30, 2))]).tocsr(), np.zeros((2, X.shape[1] + 2))
    more[:, -2:] = (1e300, 1e300), second
    X_all = sp.vstack([X, sp.csr_array(more), X]).tocsr()
    y_all = np.concatenate([y, wrong, y])
    with pytest.raises(ValueError, match="row 31 overflowed"):
        rc.PRank(tie=tie).fit(X_all, y_all)

    result = train(trainer, X_all, y_all, tie=tie)
    assert result["reached"] == 31
    assert np.abs(result["weights"][-2:]).min() >= 1e300
    check(result, X_all[:31], y_all[:31], tie=tie)


def test_what_does_not_fit_is_refused(trainer):
    X, y = problem(5, n=20)
    for column in [-1, X.shape[1]]:
        bad = X.copy()
        bad.indices[7] = column
        with pytest.raises(ValueError, match="not a CSR matrix"):
            train(trainer, bad, y)
    with pytest.raises(ValueError, match="not a CSR matrix"):
        train(trainer, X, y, n_ranks=5)


def test_four_threads_train_four_states(trainer):
    problems = [problem(seed, n=2000, integers=seed % 2 == 0) for seed in range(4)]
    start = threading.Barrier(4)

    def learn(number: int) -> dict:
        start.wait(timeout=60)
        return train(trainer, *problems[number], passes=20)

    with ThreadPoolExecutor(4) as pool:
        for result, (X, y) in zip(pool.map(learn, range(4)), problems, strict=True):
            check(result, X, y, passes=20)


def test_gil_is_released_while_c_trains(trainer):
    X, y = problem(6, n=2000)
    begin = time.perf_counter()
    train(trainer, X, y, passes=20)
    passes = int(20 * 0.5 / (time.perf_counter() - begin)) + 1  # about half a second
    thread = threading.Thread(target=train, args=(trainer, X, y), kwargs={"passes": passes})
    thread.start()
    turns = 0
    while thread.is_alive():
        time.sleep(0.001)
        turns += 1
    # Were the GIL held, this thread would have a turn before the training and one after.
    assert turns > 20


# ------------------------------------------------------------------ versions


def patched_headers(folder: Path, pattern: str, replacement: str) -> Path:
    """Copies of the headers, one line of rankcore_capi.h made another."""
    shutil.copytree(HEADERS, folder)
    header = folder / "rankcore_capi.h"
    text, count = re.subn(pattern, replacement, header.read_text(encoding="utf-8"))
    assert count == 1
    header.write_text(text, encoding="utf-8")
    return folder


def import_trainer(folder: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    """Import in a process of its own: a wild read would end it."""
    code = f"{before}\nimport sys; sys.path.insert(0, {str(folder)!r})\nimport prank_trainer"
    return run(sys.executable, "-c", code)


@pytest.mark.parametrize("kind", ["version", "table"])
def test_program_newer_than_rankcore_is_told_so(kind, tmp_path):
    version = int(re.search(r"RC_CAPI_VERSION (\d+)", (HEADERS / "rankcore_capi.h").read_text())[1])
    if kind == "version":
        change = r"#define RC_CAPI_VERSION \d+", f"#define RC_CAPI_VERSION {version + 1}"
    else:
        change = r"\} rc_capi;", "    void (*later)(void);\n} rc_capi;"
    newer = patched_headers(tmp_path / "newer", *change)
    build(SOURCES / "prank_trainer.c", tmp_path, *STRICT, *LIMITED, f"-I{newer}")
    done = import_trainer(tmp_path)
    assert done.returncode == 1, done.stderr
    assert re.search(
        rf"^ImportError: .*rankcore offers version {version} .*"
        rf"compiled against version {version + (kind == 'version')}: upgrade rankcore",
        done.stderr,
        re.M,
    )


def test_program_older_than_rankcore_works(tmp_path):
    # What a table of version 0 would have been: without its last entry.
    older = patched_headers(
        tmp_path / "older", r"found->version < RC_CAPI_VERSION \|\| found->size", "found->size"
    )
    header = older / "rankcore_capi.h"
    text = header.read_text(encoding="utf-8")
    table = text[text.index("typedef struct rc_capi {") : text.index("} rc_capi;")]
    fields = table.rstrip().splitlines()
    text = text.replace(table, "\n".join(fields[:-1]) + "\n")
    last = re.search(r"\(\*(\w+)\)", fields[-1])[1]
    calls = rf"static inline \w+ rc_{last}\([^)]*\)\s*\{{[^}}]*\}}"
    text, count = re.subn(calls, "", text)
    assert count == 1
    header.write_text(text, encoding="utf-8")
    source = tmp_path / "old_program.c"
    source.write_text(
        textwrap.dedent(
            """\
            #include "rankcore_capi.h"
            static PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                             .m_name = "old_program"};
            PyMODINIT_FUNC PyInit_old_program(void)
            {
                PyObject *module = rc_import() < 0 ? NULL : PyModule_Create(&definition);
                if (module && PyModule_AddIntConstant(module, "spare", (long)rc_api->size -
                                                                       (long)sizeof(rc_capi)) < 0)
                    return NULL;
                return module;
            }
            """
        )
    )
    build(source, tmp_path, *STRICT, f"-I{older}")
    done = run(sys.executable, "-c", "import old_program; print(old_program.spare)", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{np.dtype('P').itemsize}\n"), done.stderr


def test_program_without_rankcore_is_told_so(trainer):
    folder = Path(trainer.__file__).parent
    done = import_trainer(folder, "import sys; sys.modules['rankcore'] = None")
    assert done.returncode == 1, done.stderr
    assert re.search(r"^\w*(ImportError|ModuleNotFoundError): .*rankcore", done.stderr, re.M)


# ------------------------------------------------------------------ a Cython extension


def test_cython_scores(cython_user):
    X, y = problem(7, integers=False)
    model = rc.PRank(max_iter=2, average=True, threshold_scale=0.4).fit(X, y)
    scores, ranks = np.full(X.shape[0], np.nan), np.full(X.shape[0], -1, dtype=np.int32)
    cython_user.rank_csr(
        X.data,
        X.indices.astype(np.int32),
        X.indptr.astype(np.int64),
        model.coef_,
        model.thresholds_,
        scores,
        ranks,
    )
    expected = model.decision_function(X)
    assert scores.tobytes() == expected.tobytes()
    np.testing.assert_array_equal(ranks, np.searchsorted(model.thresholds_, expected, "right"))
    np.testing.assert_array_equal(ranks, model.predict(X))
    dense = X.toarray()
    assert cython_user.dots(dense, model.coef_) == model.decision_function(dense).tolist()


@pytest.mark.parametrize("scale", [1.0, 2.3])
@pytest.mark.parametrize("tie", ["crammer", "strict"])
def test_cython_trains(cython_user, tie, scale):
    X, y = problem(8, integers=tie == "crammer")
    X = X.toarray().astype(np.float32)
    result = {
        "weights": np.zeros(X.shape[1]),
        "steps": np.zeros(5, np.int64),
        "thresholds": np.zeros(5),
        "weight_sums": np.zeros(X.shape[1]),
        "step_sums": np.zeros(5, np.int64),
        "mean_weights": np.full(X.shape[1], np.nan),
        "mean_thresholds": np.full(5, np.nan),
    }
    counters = cython_user.train_dense(X, y, scale, tie == "strict", *result.values())
    result["t"], result["rank_loss"], result["mistakes"], predictions = counters
    check(result, X, y, tie=tie, scale=scale)

    online = rc.PRank(tie=tie, threshold_scale=scale)
    online.partial_fit(X[:1], y[:1], classes=np.arange(6))
    for i in range(1, 100):
        assert predictions[i] == online.predict(X[i : i + 1])[0]
        online.partial_fit(X[i : i + 1], y[i : i + 1])


def test_cython_refuses_rc_import_without_the_gil(tmp_path):
    source = tmp_path / "no_gil.pyx"
    code = "from rankcore.core cimport rc_import\n\ndef load():\n    {}rc_import()\n"
    source.write_text(code.format(""))
    assert cythonize(source, tmp_path / "no_gil.c").returncode == 0
    source.write_text(code.format("with nogil:\n        "))
    done = cythonize(source, tmp_path / "no_gil.c")
    assert done.returncode != 0
    assert "gil-requiring function not allowed without gil" in done.stderr.lower()


# ------------------------------------------------------------------ what is frozen and documented


def test_include_directory_has_both_headers():
    assert {path.name for path in HEADERS.iterdir()} == {"rankcore.h", "rankcore_capi.h"}


@pytest.mark.skipif(sys.maxsize < 2**32, reason="the numbers are those of 64-bit platforms")
@pytest.mark.parametrize("compiler", [("cc", "-std=c99"), ("c++", "-std=c++11", "-x", "c++")])
def test_layouts_are_frozen(compiler, tmp_path):
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"no C++ compiler ({compiler[0]})")
    program = tmp_path / "layout"
    # -O1: functions that are not called need no libpython to link.
    flags = [*STRICT[1:], "-O1", "-DLAYOUT_CAPI", "-isystem", sysconfig.get_path("include")]
    done = run(*compiler, *flags, f"-I{HEADERS}", SOURCES / "layout.c", "-o", program)
    assert done.returncode == 0, done.stderr
    found = dict(line.rsplit(" ", 1) for line in run(program).stdout.splitlines())
    # A compiled program has these numbers built in. A released struct therefore never changes; the
    # table grows at its end alone. Lines may be added here, never edited.
    frozen = {
        "RC_TIE_CRAMMER": 0,
        "RC_TIE_STRICT": 1,
        "rc_prank_state": 88,
        "rc_prank_state.weights": 0,
        "rc_prank_state.steps": 8,
        "rc_prank_state.thresholds": 16,
        "rc_prank_state.weight_sums": 24,
        "rc_prank_state.step_sums": 32,
        "rc_prank_state.scale": 40,
        "rc_prank_state.t": 48,
        "rc_prank_state.rank_loss": 56,
        "rc_prank_state.mistakes": 64,
        "rc_prank_state.n_features": 72,
        "rc_prank_state.n_ranks": 80,
        "rc_prank_state.tie": 84,
        "rc_capi.version": 0,
        "rc_capi.size": 4,
        "rc_capi.prank_update": 8,
        "rc_capi.prank_average": 16,
    }
    assert {name: int(found[name]) for name in frozen} == frozen


def test_page_documents_every_function():
    page = (ROOT / "docs" / "c_api.md").read_text(encoding="utf-8")
    declared = set()
    for header in HEADERS.iterdir():
        text = header.read_text(encoding="utf-8")
        declared |= set(re.findall(r"^static inline [\w *]*?\b(rc_\w+)\(", text, re.M))
    assert {"rc_dot", "rc_rank", "rc_import", "rc_prank_update"} <= declared
    assert declared == set(re.findall(r"^\| `(rc_\w+)\(", page, re.M))


def test_page_quotes_tested_code():
    page = (ROOT / "docs" / "c_api.md").read_text(encoding="utf-8")
    tested = [*(ROOT / "examples" / "c_pipeline").iterdir(), *SOURCES.iterdir()]
    tested = [path.read_text(encoding="utf-8") for path in tested if path.is_file()]
    quotes = re.findall(r"^```(?:c|cython|make)\n(.*?)^```$", page, re.M | re.S)
    assert len(quotes) >= 5
    for quote in quotes:
        lines = [line.strip() for line in quote.strip().splitlines()]
        excerpt = "\n".join(lines)
        assert any(
            excerpt in "\n".join(line.strip() for line in text.splitlines()) for text in tested
        ), f"in no tested file:\n{quote}"
