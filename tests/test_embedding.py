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
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

import rankcore as rc
from rankcore._ext.online_model import gain_of

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "c_api.md"
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
def ordinal_trainer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ordinal")
    return load(build(SOURCES / "ordinal_trainer.c", folder, *STRICT, *LIMITED))


@pytest.fixture(scope="session")
def pair_trainer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    return load(build(SOURCES / "pair_trainer.c", folder, *STRICT, *LIMITED))


@pytest.fixture(scope="session")
def cython_user(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cython")
    done = cythonize(SOURCES / "cython_user.pyx", folder / "cython_user.c")
    assert done.returncode == 0, done.stderr
    return load(build(folder / "cython_user.c", folder, "-O1"))


def problem(seed: int, n: int = 300, n_features: int = 23, n_ranks: int = 6, integers: bool = True):
    """Sparse rows and ranks. Small integers make scores hit thresholds exactly."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-3, 4, (n, n_features)) if integers else rng.normal(size=(n, n_features))
    X = sp.csr_array(np.where(rng.random((n, n_features)) < 0.25, values, 0.0))
    y = np.concatenate([np.arange(n_ranks), rng.integers(0, n_ranks, n - n_ranks)])
    return X, y.astype(np.int32)


def examples(X, y) -> tuple:
    """Rows and ranks as the C extensions take them."""
    if isinstance(X, np.ndarray):
        return X, None, None, y, X.shape[1]
    return X.data, X.indices.astype(np.int32), X.indptr.astype(np.int64), y, X.shape[1]


def train(
    trainer: ModuleType,
    X,
    y,
    *,
    n_ranks=6,
    scale=1.0,
    tie="crammer",
    average=True,
    passes=1,
    half_life=None,
):
    gain = 0.0 if half_life is None else gain_of(half_life)
    result = trainer.train(examples(X, y), n_ranks, scale, tie == "strict", average, passes, gain)
    for name in ["weights", "thresholds", "mean_weights", "mean_thresholds"]:
        if result[name] is not None:
            result[name] = np.frombuffer(result[name], np.float64)
    result["steps"] = np.frombuffer(result["steps"], np.int64)
    return result


def check(
    result: dict,
    X,
    y,
    *,
    scale=1.0,
    margin=0.0,
    tie="crammer",
    average=True,
    passes=1,
    half_life=None,
) -> rc.PRank:
    """Compare a result to the bit with what the estimator learns from the same rows."""
    params = {"max_iter": passes, "tie": tie, "threshold_scale": scale, "margin": margin}
    last = rc.PRank.published(**params).fit(X, y)
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
        mean = rc.PRank.published(**params, average=True, half_life=half_life).fit(X, y)
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


@pytest.mark.parametrize("half_life", [1, 70])
def test_c_loop_forgets_as_fit_does(trainer, half_life):
    X, y = problem(8, integers=False)
    options = {"half_life": half_life, "passes": 3}  # with 1 the weights are divided once
    check(train(trainer, X, y, **options), X, y, **options)


def test_tie_rules_give_different_models(trainer):
    X, y = problem(1)
    crammer, strict = (train(trainer, X, y, tie=tie) for tie in ["crammer", "strict"])
    assert crammer["weights"].tobytes() != strict["weights"].tobytes()


def test_c_learns_two_ranks_and_many(trainer):
    for n_ranks in [2, 17, 18, 60]:
        X, y = problem(n_ranks, n_ranks=n_ranks)
        check(train(trainer, X, y, n_ranks=n_ranks), X, y)


@pytest.mark.parametrize("second", [(1e300, 1e300), (1e300, -1e300)], ids=["infinity", "nan"])
@pytest.mark.parametrize("tie", ["crammer", "strict"])
def test_overflow_changes_nothing(trainer, tie, second):
    X, y = problem(4, n=30)
    # Two columns that nothing was learned about yet: row 30 scores 0 and, ranked wrongly, makes
    # their weights huge, so that the score of row 31 overflows.
    ranked = rc.PRank.published(tie=tie).fit(X, y).predict(np.zeros((1, X.shape[1])))[0]
    wrong = np.array([0 if ranked == 5 else 5, 2], np.int32)
    X, more = sp.hstack([X, sp.csr_array((30, 2))]).tocsr(), np.zeros((2, X.shape[1] + 2))
    more[:, -2:] = (1e300, 1e300), second
    X_all = sp.vstack([X, sp.csr_array(more), X]).tocsr()
    y_all = np.concatenate([y, wrong, y])
    with pytest.raises(ValueError, match="row 31 overflowed"):
        rc.PRank.published(tie=tie).fit(X_all, y_all)

    result = train(trainer, X_all, y_all, tie=tie)
    assert result["reached"] == 31
    assert np.abs(result["weights"][-2:]).min() >= 1e300
    check(result, X_all[:31], y_all[:31], tie=tie)


BAD_RANKS = [-1, 6, 7, -(2**31), 2**31 - 1]


@pytest.mark.parametrize("rank", BAD_RANKS)
@pytest.mark.parametrize("tie", ["crammer", "strict"])
def test_unknown_rank_changes_nothing(trainer, tie, rank):
    X, y = problem(9, n=60)
    wrong = y.copy()
    wrong[41] = rank
    result = train(trainer, X, wrong, tie=tie)
    assert result["reached"] == 41
    check(result, X[:41], y[:41], tie=tie)


def test_mismatched_arrays_are_rejected(trainer):
    X, y = problem(5, n=20)
    for column in [-1, X.shape[1]]:
        bad = X.copy()
        bad.indices[7] = column
        with pytest.raises(ValueError, match="not a matrix"):
            train(trainer, bad, y)
    with pytest.raises(ValueError, match="not a matrix"):
        train(trainer, X, y[:-1])


def test_four_threads_train_four_states(trainer):
    problems = [problem(seed, n=2000, integers=seed % 2 == 0) for seed in range(4)]
    start = threading.Barrier(4)

    def learn(number: int) -> dict:
        start.wait(timeout=60)
        return train(trainer, *problems[number], passes=20)

    with ThreadPoolExecutor(4) as pool:
        for result, (X, y) in zip(pool.map(learn, range(4)), problems, strict=True):
            check(result, X, y, passes=20)


def check_gil_released(learn: Callable[[int], object]) -> None:
    """Run something that makes passes over data in a thread, and see whether this one goes on."""
    begin = time.perf_counter()
    learn(20)
    passes = int(20 * 0.5 / (time.perf_counter() - begin)) + 1  # about half a second
    thread = threading.Thread(target=learn, args=(passes,))
    thread.start()
    turns = 0
    while thread.is_alive():
        time.sleep(0.001)
        turns += 1
    # Were the GIL held, this thread would have a turn before the training and one after.
    assert turns > 20


def test_gil_is_released_while_c_trains(trainer):
    X, y = problem(6, n=2000)
    check_gil_released(lambda passes: train(trainer, X, y, passes=passes))


# ------------------------------------------------------------------ the other learners


class State:
    """The arrays of a C state, in NumPy's memory, and how a trainer is called with them."""

    estimator: type
    trainer: str
    sums: ClassVar[dict[str, str]] = {}  # what averages, and the sums for it
    defaults: ClassVar[dict[str, object]] = {}

    def __init__(self, module, n_features, n_ranks=6, *, average=False, **options):
        self.module, self.n_ranks = module, n_ranks
        self.options = self.defaults | options
        self.seen = np.zeros(3, np.int64)  # rc_counts: t, rank_loss, mistakes
        half_life = self.options.get("half_life")
        gain = 0.0 if half_life is None else gain_of(half_life)
        self.forgetting = np.array([gain, 0.0])  # rc_forgetting: gain, past
        self.arrays = self.zeros(n_features, n_ranks)
        for name, sums in self.sums.items():
            self.arrays[sums] = np.zeros_like(self.arrays[name]) if average else None

    def zeros(self, n_features: int, n_ranks: int) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def arguments(self) -> tuple:
        """Arguments of the trainer after the examples."""
        raise NotImplementedError

    def parameters(self, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
        """``coef_`` and ``intercept_``, where there is one."""
        raise NotImplementedError

    def learn(self, X, y, passes: int = 1) -> tuple[int, np.ndarray]:
        """How many examples C learned, and the ranks it predicted before it learned them."""
        predictions = np.full(passes * X.shape[0], -9, np.int32)
        job = examples(X, y), passes, self.seen, self.forgetting, predictions
        return getattr(self.module, self.trainer)(job, *self.arguments()), predictions

    def last(self) -> tuple[np.ndarray, ...]:
        return self.parameters(self.arrays)

    def mean(self) -> tuple[np.ndarray, ...]:
        """Compute the averages as C does."""
        means = {}
        for name, sums in self.sums.items():
            last = self.arrays[name]
            means[name] = np.full_like(last, np.nan)
            total = self.forgetting[1] or self.seen[0]
            self.module.average(last, self.arrays[sums], total, last.size, means[name])
        return self.parameters(means)

    def bytes(self) -> list[bytes]:
        """Everything but scratch."""
        kept = [array for name, array in self.arrays.items() if name != "scores"]
        return [self.seen.tobytes(), *(a.tobytes() for a in kept if a is not None)]


class CuSumState(State):
    estimator, trainer = rc.CuSumRank, "train_cusum"
    sums: ClassVar = {"weights": "weight_sums", "thresholds": "threshold_sums"}
    defaults: ClassVar = {
        "update": "perceptron",
        "C": 1.0,
        "delta": 1.0,
        "pa_loss": "absolute",
        "margin": 0.0,
        "tie_break": "high",
        "fit_intercept": True,
    }

    def zeros(self, n_features, n_ranks):
        return {
            "weights": np.zeros((n_features, n_ranks - 1)),
            "thresholds": np.zeros(n_ranks - 1),
            "scores": np.full(2 * n_ranks, np.nan),
        }

    def arguments(self):
        names = ["weights", "thresholds", "weight_sums", "threshold_sums", "scores"]
        return (
            *(self.arrays[name] for name in names),
            self.n_ranks,
            self.options["C"],
            self.options["delta"],
            self.options["margin"],
            ["high", "low"].index(self.options["tie_break"]),
            ["perceptron", "pa", "pa1", "pa2"].index(self.options["update"]),
            self.options["pa_loss"] == "zero_one",
            float(self.options["fit_intercept"]),
        )

    def parameters(self, arrays):
        return arrays["weights"].T, -arrays["thresholds"]


class WidrowHoffState(State):
    estimator, trainer = rc.WidrowHoff, "train_lms"
    sums: ClassVar = {"weights": "weight_sums", "intercept": "intercept_sums"}
    defaults: ClassVar = {"eta0": 0.01, "step": "constant", "fit_intercept": True}

    def zeros(self, n_features, n_ranks):
        return {"weights": np.zeros(n_features), "intercept": np.zeros(1)}

    def arguments(self):
        names = ["weights", "intercept", "weight_sums", "intercept_sums"]
        return (
            *(self.arrays[name] for name in names),
            self.n_ranks,
            self.options["eta0"],
            float(self.options["fit_intercept"]),
            self.options["step"] == "normalized",
        )

    def parameters(self, arrays):
        return arrays["weights"], arrays["intercept"][0]


class MulticlassState(State):
    estimator, trainer = rc.MulticlassPerceptron, "train_mcp"
    sums: ClassVar = {"weights": "weight_sums", "intercepts": "intercept_sums"}
    defaults: ClassVar = {"update": "worst", "fit_intercept": True, "intercept_scaling": 1.0}

    def zeros(self, n_features, n_ranks):
        return {
            "weights": np.zeros((n_features, n_ranks)),
            "intercepts": np.zeros(n_ranks),
            "scores": np.full(n_ranks, np.nan),
        }

    def arguments(self):
        names = ["weights", "intercepts", "weight_sums", "intercept_sums", "scores"]
        return (
            *(self.arrays[name] for name in names),
            self.n_ranks,
            self.options["update"] == "uniform",
            self.options["intercept_scaling"] ** 2 if self.options["fit_intercept"] else 0.0,
        )

    def parameters(self, arrays):
        return arrays["weights"].T, arrays["intercepts"]


def same(found: tuple[np.ndarray, ...], model) -> None:
    """Compare coef_ and intercept_ to the bit with an estimator's."""
    names = ["coef_", "intercept_"][: len(found)]
    assert hasattr(model, "intercept_") == (len(found) == 2)
    for array, name in zip(found, names, strict=True):
        expected = getattr(model, name)
        assert np.shape(array) == np.shape(expected)
        assert np.asarray(array).tobytes() == np.asarray(expected).tobytes(), name


def check_pass_by_pass(state: State, X, y, passes: int = 1) -> None:
    """Train in C, a call a pass, and compare all that fit gives to the bit."""
    n = X.shape[0]
    counts = [state.seen.copy()]
    for _ in range(passes):
        learned, predictions = state.learn(X, y)
        assert learned == n
        counts.append(state.seen.copy())
        off = np.abs(predictions - y)
        assert (counts[-1] - counts[-2]).tolist() == [n, off.sum(), (off > 0).sum()]
    met, losses, mistakes = np.diff(counts, axis=0).T
    totals = np.array(counts[1:])

    plain = state.options | {"half_life": None}
    last = state.estimator.published(max_iter=passes, **plain).fit(X, y)
    same(state.last(), last)
    assert last.history_ == {
        "examples": met.tolist(),
        "mistakes": mistakes.tolist(),
        "rank_loss": (losses / met).tolist(),
        "average_rank_loss": (totals[:, 1] / totals[:, 0]).tolist(),
    }
    if any(state.arrays[sums] is not None for sums in state.sums.values()):
        mean = state.estimator.published(max_iter=passes, average=True, **state.options).fit(X, y)
        same(state.mean(), mean)
        assert mean.history_ == last.history_
        assert mean.coef_.tobytes() != last.coef_.tobytes()


AVERAGE = pytest.mark.parametrize("average", [True, False])


@AVERAGE
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("tie", ["high", "low"])
@pytest.mark.parametrize("update", ["perceptron", "pa", "pa1", "pa2"])
def test_c_learns_cusum(ordinal_trainer, update, tie, fit_intercept, average):
    more = [{}, {"margin": 0.7}]
    if update != "perceptron":
        more += [
            {"pa_loss": "zero_one", "C": 0.03, "delta": 1.9},
            {"pa_loss": "zero_one", "C": 0.2, "margin": 0.1},
        ]
    for i, options in enumerate(more):
        X, y = problem(20 + i, integers=i != 1)
        options |= {"update": update, "tie_break": tie, "fit_intercept": fit_intercept}
        state = CuSumState(ordinal_trainer, X.shape[1], average=average, **options)
        check_pass_by_pass(state, X, y, passes=i + 1)


@pytest.mark.parametrize("eta", [0.003, 0.02])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_c_learns_widrow_hoff(ordinal_trainer, fit_intercept, eta):
    for seed, passes, integers in [(30, 1, True), (31, 3, False)]:
        X, y = problem(seed, integers=integers)
        options = {"eta0": eta, "fit_intercept": fit_intercept}
        check_pass_by_pass(WidrowHoffState(ordinal_trainer, X.shape[1], **options), X, y, passes)


@AVERAGE
@pytest.mark.parametrize("update", ["worst", "uniform"])
def test_c_learns_multiclass(ordinal_trainer, update, average):
    for seed, passes, integers in [(40, 1, True), (41, 3, True), (42, 2, False)]:
        X, y = problem(seed, integers=integers)
        state = MulticlassState(ordinal_trainer, X.shape[1], average=average, update=update)
        check_pass_by_pass(state, X, y, passes)


@pytest.mark.parametrize("half_life", [1, 70])
@pytest.mark.parametrize("kind", [CuSumState, WidrowHoffState, MulticlassState])
def test_c_forgets_as_fit_does(ordinal_trainer, kind, half_life):
    X, y = problem(43, integers=False)
    state = kind(ordinal_trainer, X.shape[1], average=True, half_life=half_life)
    check_pass_by_pass(state, X, y, 3)  # with 1 the weights are divided once


# One of each kind of update.
LEARNERS = [
    pytest.param(CuSumState, {}, id="cusum"),
    pytest.param(CuSumState, {"fit_intercept": False, "margin": 0.5}, id="cusum-margin"),
    pytest.param(CuSumState, {"update": "pa"}, id="cusum-pa"),
    pytest.param(CuSumState, {"update": "pa1", "C": 0.1, "tie_break": "low"}, id="cusum-pa1"),
    pytest.param(CuSumState, {"update": "pa2", "pa_loss": "zero_one"}, id="cusum-pa2"),
    pytest.param(WidrowHoffState, {}, id="widrow-hoff"),
    pytest.param(WidrowHoffState, {"step": "normalized", "eta0": 0.5}, id="widrow-hoff-normalized"),
    pytest.param(MulticlassState, {}, id="multiclass"),
    pytest.param(MulticlassState, {"update": "uniform"}, id="multiclass-uniform"),
    pytest.param(MulticlassState, {"fit_intercept": False}, id="multiclass-plain"),
]


def new_state(kind: type[State], module, X, n_ranks: int = 6, **options) -> State:
    """Return a state that averages if its learner does."""
    return kind(module, X.shape[1], n_ranks, average=bool(kind.sums), **options)


def test_options_of_c_learners_have_effect(ordinal_trainer):
    X, y = problem(50)
    pa = {"update": "pa1", "C": 0.05}
    variants = [
        (CuSumState, {}),
        (CuSumState, {"tie_break": "low"}),
        (CuSumState, {"margin": 0.7}),
        (CuSumState, {"fit_intercept": False}),
        (CuSumState, {"update": "pa"}),
        (CuSumState, {"update": "pa", "pa_loss": "zero_one"}),
        (CuSumState, {"update": "pa", "delta": 1.9}),
        (CuSumState, pa),
        (CuSumState, pa | {"C": 0.06}),
        (CuSumState, pa | {"pa_loss": "zero_one"}),
        (CuSumState, {"update": "pa2", "C": 0.05}),
        (CuSumState, {"update": "pa2", "C": 0.06}),
        (WidrowHoffState, {}),
        (WidrowHoffState, {"eta0": 0.011}),
        (WidrowHoffState, {"fit_intercept": False}),
        (MulticlassState, {}),
        (MulticlassState, {"update": "uniform"}),
    ]
    learned = set()
    for kind, options in variants:
        state = kind(ordinal_trainer, X.shape[1], **options)
        state.learn(X, y)
        learned.add(state.last()[0].tobytes())
    assert len(learned) == len(variants)


@pytest.mark.parametrize(("kind", "options"), LEARNERS)
def test_all_learners_learn_two_ranks_and_many(ordinal_trainer, kind, options):
    for n_ranks in [2, 3, 5, 9, 14, 60]:
        X, y = problem(60 + n_ranks, n_ranks=n_ranks)
        check_pass_by_pass(new_state(kind, ordinal_trainer, X, n_ranks, **options), X, y, 2)


@pytest.mark.parametrize(("kind", "options"), LEARNERS)
def test_learners_take_every_kind_of_row(ordinal_trainer, kind, options):
    X, y = problem(70, n=100, integers=False)
    single = X.astype(np.float32)
    for rows in [single, single.toarray(), X.toarray()]:
        check_pass_by_pass(new_state(kind, ordinal_trainer, X, **options), rows, y, 2)


@pytest.mark.parametrize(("kind", "options"), LEARNERS)
def test_learners_predict_before_they_learn(ordinal_trainer, kind, options):
    X, y = problem(71, n=60)
    predictions = new_state(kind, ordinal_trainer, X, **options).learn(X, y)[1]
    online = kind.estimator.published(**(kind.defaults | options))
    online.partial_fit(X[:1], y[:1], classes=np.arange(6))
    for i in range(1, 60):
        assert predictions[i] == online.predict(X[i : i + 1])[0]
        online.partial_fit(X[i : i + 1], y[i : i + 1])


@pytest.mark.parametrize(("kind", "options"), LEARNERS)
def test_learners_reject_invalid_ranks(ordinal_trainer, kind, options):
    X, y = problem(72, n=60)
    state, twin = (new_state(kind, ordinal_trainer, X, **options) for _ in range(2))
    twin.learn(X, y)
    for i, rank in enumerate(BAD_RANKS):  # the first time nothing is learned yet
        before = state.bytes()
        wrong = np.array([rank, 3], np.int32)
        learned, predictions = state.learn(X[:2], wrong)
        assert learned == 0
        assert predictions.tolist() == [-1, -9]  # the second was not tried
        assert state.bytes() == before
        state.learn(X[8 * i : 8 * i + 8], y[8 * i : 8 * i + 8])
    state.learn(X[40:], y[40:])
    assert state.bytes() == twin.bytes()


def overflowing(X, second: tuple[float, float]):
    """Rows and two more columns that only a last row has: its score overflows if they weigh."""
    last = np.zeros((1, X.shape[1] + 2))
    last[:, -2:] = second
    wide = sp.hstack([X, sp.csr_array((X.shape[0], 2))]).tocsr()
    return wide, sp.csr_array(last)


OVERFLOWS = pytest.mark.parametrize(
    "second", [(1e300, 1e300), (-1e300, -1e300), (1e300, -1e300)], ids=["inf", "-inf", "nan"]
)


@OVERFLOWS
@pytest.mark.parametrize(("kind", "options"), LEARNERS)
def test_overflow_changes_no_learner(ordinal_trainer, kind, options, second):
    X, y = problem(73, n=60)
    X, bad = overflowing(X, second)
    state = new_state(kind, ordinal_trainer, X, **options)
    state.learn(X, y)
    # Each weight of the last two columns in turn: whichever task or rank overflows, it shows.
    weights = state.arrays["weights"].reshape(X.shape[1], -1)
    for j in range(weights.shape[1]):
        weights[-2:] = 0.0
        weights[-2:, j] = 1e300
        for rank in range(6):
            before = state.bytes()
            learned, predictions = state.learn(bad, np.array([rank], np.int32))
            assert (learned, predictions.tolist()) == (0, [-1])
            assert state.bytes() == before
    weights[-2:] = 0.0
    check = new_state(kind, ordinal_trainer, X, **options)
    for rows, ranks in [(X, y), (X, y[::-1].copy())]:
        check.learn(rows, ranks)
    state.learn(X, y[::-1].copy())
    assert state.bytes() == check.bytes()


@OVERFLOWS
@pytest.mark.parametrize(
    ("kind", "options"), [p for p in LEARNERS if "pa" not in p.id and "normal" not in p.id]
)
def test_overflow_is_reported_at_the_row_where_python_reports_it(
    ordinal_trainer, kind, options, second
):
    # As in the test of PRank: row 30 makes the weights of two columns huge, row 31 overflows.
    X, y = problem(74, n=30)
    ranked = kind.estimator.published(**(kind.defaults | options)).fit(X, y)
    X, row = overflowing(X, second)
    huge = row.copy()
    huge.data[:] = 1e300
    wrong = 0 if ranked.predict(np.zeros((1, X.shape[1] - 2)))[0] == 5 else 5
    X_all = sp.vstack([X, huge, row, X]).tocsr()
    y_all = np.concatenate([y, [wrong, 2], y]).astype(np.int32)
    with pytest.raises(ValueError, match="row 31 overflowed"):
        kind.estimator.published(**(kind.defaults | options)).fit(X_all, y_all)

    state = new_state(kind, ordinal_trainer, X, **options)
    assert state.learn(X_all, y_all)[0] == 31
    fresh = new_state(kind, ordinal_trainer, X, **options)
    check_pass_by_pass(fresh, X_all[:31], y_all[:31])
    assert np.abs(state.last()[0]).max() > 1e297
    assert state.bytes() == fresh.bytes()


def test_divergence_is_reported_at_the_row_where_python_reports_it(ordinal_trainer):
    X, y = problem(75, n=2000, integers=False)
    with pytest.raises(ValueError, match=r"row \d+ overflowed") as caught:
        rc.WidrowHoff.published(eta0=2.0).fit(X, y)
    row = int(re.search(r"row (\d+)", str(caught.value))[1])
    state = WidrowHoffState(ordinal_trainer, X.shape[1], eta0=2.0)
    assert state.learn(X, y)[0] == row
    before = row - 50  # by then the weights are huge, but still numbers
    state = WidrowHoffState(ordinal_trainer, X.shape[1], eta0=2.0)
    state.learn(X[:before], y[:before])
    assert np.abs(state.last()[0]).max() > 1e200
    same(
        state.last(),
        rc.WidrowHoff.published(eta0=2.0).fit(X[:before], y[:before], classes=np.arange(6)),
    )


@pytest.mark.parametrize("update", ["pa", "pa1", "pa2"])
def test_empty_rows_move_no_weights(ordinal_trainer, update):
    X, y = problem(76, n=100)
    X = X.tolil()
    X[:20] = 0.0
    X[60:] = 0.0
    X = X.tocsr()
    for fit_intercept in [True, False]:
        options = {"update": update, "fit_intercept": fit_intercept}
        state = new_state(CuSumState, ordinal_trainer, X, **options)
        check_pass_by_pass(state, X, y, 2)
        assert np.isfinite(state.last()[0]).all()
        assert state.last()[1].any() == fit_intercept


def test_all_learners_train_at_the_same_time(ordinal_trainer):
    X, y = problem(77, n=2000, integers=False)
    states = [
        new_state(parameter.values[0], ordinal_trainer, X, **parameter.values[1])
        for parameter in LEARNERS
    ]
    start = threading.Barrier(len(states))

    def learn(state: State) -> int:
        start.wait(timeout=60)
        return state.learn(X, y, passes=10)[0]

    with ThreadPoolExecutor(len(states)) as pool:
        assert list(pool.map(learn, states)) == [20_000] * len(states)
    for state in states:
        average = {"average": True} if state.sums else {}
        model = state.estimator.published(max_iter=10, **state.options, **average).fit(X, y)
        same(state.mean() if state.sums else state.last(), model)
        assert state.seen[2] == sum(model.history_["mistakes"])


@pytest.mark.parametrize("kind", [CuSumState, WidrowHoffState, MulticlassState])
def test_gil_is_released_while_c_trains_the_others(ordinal_trainer, kind):
    X, y = problem(78, n=2000)
    check_gil_released(lambda passes: kind(ordinal_trainer, X.shape[1]).learn(X, y, passes))


# ------------------------------------------------------------------ versions


def patched_headers(folder: Path, pattern: str, replacement: str) -> Path:
    """Copy the headers, with one line of rankcore_capi.h replaced."""
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
def test_newer_program_gets_an_error(kind, tmp_path):
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


def test_program_without_rankcore_gets_an_error(trainer):
    folder = Path(trainer.__file__).parent
    done = import_trainer(folder, "import sys; sys.modules['rankcore'] = None")
    assert done.returncode == 1, done.stderr
    assert re.search(r"^\w*(ImportError|ModuleNotFoundError): .*rankcore", done.stderr, re.M)


# ------------------------------------------------------------------ pairs


def learn_pairs(trainer, X, pairs, *, step=1.0, unit=1.0, margin=0.0, size=5, sums=True, out=True):
    """Return the model that C learns from pairs."""
    d, n = X.shape[1], len(pairs)
    arrays = {
        "weights": np.zeros(d),
        "sums": np.zeros(d) if sums else None,
        "members": np.zeros((size, d)) if size else None,
        "successes": np.zeros(size),
        "born": np.zeros(size, np.int64),
    }
    answers = np.full(n, -9, np.int32)
    units = np.broadcast_to(np.asarray(unit, dtype=np.float64), n).copy()
    average, committee = np.full(d, np.nan), np.full(d, np.nan)
    y = np.zeros(X.shape[0], np.int32)
    result = trainer.train(
        examples(X, y),
        np.array(pairs, dtype=np.int64),
        n,
        step,
        units,
        answers,
        *arrays.values(),
        size,
        margin,
        average,
        committee,
    )
    names = ["learned", "kept", "n_pairs", "n_mistakes", "averaged", "met"]
    return (
        dict(zip(names, result, strict=True))
        | arrays
        | {
            "answers": answers,
            "average": average,
            "committee": committee,
        }
    )


@pytest.mark.parametrize("form", [sp.csr_array, np.asarray])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("margin", [0.0, 1.5])
def test_c_learns_pairs(pair_trainer, form, dtype, margin):
    rng = np.random.default_rng(3)
    X = form(problem(3)[0].toarray().astype(dtype))
    pairs = np.array([p for p in rng.integers(0, 300, (2000, 2)) if p[0] != p[1]])
    found = learn_pairs(pair_trainer, X, pairs, margin=margin)
    model = rc.PairwisePerceptron(
        "last",
        shuffle=False,
        balance=None,
        margin=margin,
        committee_size=5,
        standardize=False,
        max_iter=1,
    ).fit(X, pairs=pairs)
    assert found["learned"] == found["n_pairs"] == len(pairs)
    assert [found["n_mistakes"]] == model.history_["mistakes"] == [(found["answers"] == 1).sum()]
    assert found["weights"].tobytes() == model.coef_.tobytes()
    np.testing.assert_allclose(
        found["average"], model.set_params(variant="averaged").coef_, rtol=1e-12, atol=1e-14
    )
    members = model.set_params(variant="committee").committee_
    np.testing.assert_allclose(found["committee"], model.coef_, rtol=1e-12, atol=1e-14)
    order = np.lexsort((found["born"], -found["successes"]))
    same = found["successes"][order] == members.successes  # the present one may be among them
    assert same.sum() >= 4
    assert found["members"][order[0]].tobytes() == members.weights[0].tobytes()


def test_c_learns_the_golden_pairs(pair_trainer):
    # As in the tests of PairwisePerceptron; the steps of its queries differ, so two calls' worth.
    X = np.array([[2, 1], [0, 2], [1, 0]], dtype=np.float64)
    found = learn_pairs(pair_trainer, X, [(0, 1), (0, 2)], step=0.5, unit=0.25)
    assert found["weights"].tolist() == [1, -0.5]
    assert found["answers"].tolist() == [1, 0]
    assert (found["kept"], found["successes"][0]) == (1, 0)
    assert found["average"].tolist() == [1, -0.5]  # the zero hypothesis had no success
    assert found["committee"].tolist() == [1, -0.5]


def test_c_changes_units_exactly(pair_trainer):
    X = np.array([[1.0], [0.0]])
    found = learn_pairs(pair_trainer, X, [(0, 1)] * 4 + [(1, 0)], unit=[1, 0.1, 0.1, 3, 1])
    # The first pair is a mistake, as 0 does not beat 0; the last ends what three have counted.
    assert found["answers"].tolist() == [1, 0, 0, 0, 1]
    assert found["successes"][:2].tolist() == [0, 2 * 0.1 + 3]


def test_c_pairs_that_overflow_change_nothing(pair_trainer):
    X = np.array([[1e200, 1.0], [0.0, 1.0], [-1e200, 0.0]])
    found = learn_pairs(pair_trainer, X, [(0, 1), (0, 2)])
    assert found["answers"].tolist() == [1, -1]
    assert (found["learned"], found["n_pairs"]) == (1, 1)
    assert found["weights"].tolist() == [1e200, 0]


def test_c_averages_and_committees_need_their_arrays(pair_trainer):
    X = np.array([[1.0], [0.0]])
    found = learn_pairs(pair_trainer, X, [(0, 1)], sums=False, size=0)
    assert (found["averaged"], found["met"]) == (-1, -1)
    assert np.isnan(found["average"]).all()
    assert np.isnan(found["committee"]).all()
    assert found["weights"].tolist() == [1]


# ------------------------------------------------------------------ a Cython extension


def test_cython_scores_equal_those_of_python(cython_user):
    X, y = problem(7, integers=False)
    model = rc.PRank.published(max_iter=2, average=True, threshold_scale=0.4).fit(X, y)
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
    expected = model.project(X)
    assert scores.tobytes() == expected.tobytes()
    np.testing.assert_array_equal(ranks, np.searchsorted(model.thresholds_, expected, "right"))
    np.testing.assert_array_equal(ranks, model.predict(X))
    dense = X.toarray()
    assert cython_user.dots(dense, model.coef_) == model.project(dense).tolist()


@pytest.mark.parametrize("scale", [1.0, 2.3])
@pytest.mark.parametrize("tie", ["crammer", "strict"])
@pytest.mark.parametrize("margin", [0.0, 1.5])
def test_cython_trains_as_python(cython_user, tie, scale, margin):
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
    counters = cython_user.train_dense(X, y, scale, margin, tie == "strict", *result.values())
    result["t"], result["rank_loss"], result["mistakes"], predictions = counters
    check(result, X, y, tie=tie, scale=scale, margin=margin)

    online = rc.PRank.published(tie=tie, threshold_scale=scale, margin=margin)
    online.partial_fit(X[:1], y[:1], classes=np.arange(6))
    for i in range(1, 100):
        assert predictions[i] == online.predict(X[i : i + 1])[0]
        online.partial_fit(X[i : i + 1], y[i : i + 1])


@pytest.mark.parametrize("tie", ["high", "low"])
def test_cython_trains_cusum_as_python(cython_user, tie):
    X, y = problem(10, integers=tie == "high")
    X = X.toarray().astype(np.float32)
    weights, thresholds = np.zeros((X.shape[1], 5)), np.zeros(5)
    arrays = weights, thresholds, np.full(12, np.nan)
    t, rank_loss, mistakes, predictions = cython_user.train_cusum(X, y, 0.05, tie == "low", *arrays)
    model = rc.CuSumRank.published(update="pa1", C=0.05, tie_break=tie).fit(X, y)
    same((weights.T, -thresholds), model)
    off = np.abs(predictions - y)
    assert (t, rank_loss, mistakes) == (len(y), off.sum(), (off > 0).sum())
    assert model.history_["mistakes"] == [mistakes]
    assert model.history_["rank_loss"] == [rank_loss / t]

    before = weights.tobytes(), thresholds.tobytes()
    for rank in BAD_RANKS:
        bad = np.array([rank], np.int32)
        with pytest.raises(ValueError, match="row 0 could not be learned"):
            cython_user.train_cusum(X[:1], bad, 0.05, tie == "low", *arrays)
        assert (weights.tobytes(), thresholds.tobytes()) == before


def test_cython_scores_of_linear_models_equal_those_of_python(cython_user):
    X, y = problem(11, integers=False)
    X = X.toarray()
    model = rc.WidrowHoff.published(eta0=0.01).fit(X, y)
    found = cython_user.linear_scores(X, model.coef_, model.intercept_)
    assert found == model.project(X).tolist()


def test_cython_rejects_rc_import_without_the_gil(tmp_path):
    source = tmp_path / "no_gil.pyx"
    # With it, cython_user.pyx calls the function.
    source.write_text(
        "from rankcore.core cimport rc_import\n\n"
        "def load():\n    with nogil:\n        rc_import()\n"
    )
    done = cythonize(source, tmp_path / "no_gil.c")
    assert done.returncode != 0
    assert "gil-requiring function not allowed without gil" in done.stderr.lower()


# ------------------------------------------------------------------ what is frozen and documented


def test_include_directory_has_the_headers_and_the_shared_library():
    parts = {"model", "open", "rows", "forms", "calibration", "tensors", "svmlight", "capi"}
    parts |= {"trees", "tiles", "vectors", "random", "interleave", "ordinal"}
    assert {path.name for path in HEADERS.iterdir()} == {
        *("rankcore.h", "librankcore.h", "librankcore.c"),
        *(f"rankcore_{part}.h" for part in parts),
    }


def declared_in_c(*names: str) -> tuple[dict[str, list[str]], set[str], set[str]]:
    """Structs with their fields, constants, and functions of headers, by default Cython's."""
    names = names or ("rankcore.h", "rankcore_capi.h")
    text = "".join((HEADERS / name).read_text(encoding="utf-8") for name in names)
    functions = set(re.findall(r"^static inline [\w *]*?\b(rc_\w*[a-z0-9])\(", text, re.M))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    constants = set(re.findall(r"\b(RC_[A-Z0-9_]+) = \d", text))
    constants |= set(re.findall(r"^#define (RANKCORE_ABI|RC_CAPI_VERSION) ", text, re.M))
    structs = {}
    for name, body in re.findall(
        r"^typedef struct (\w+[a-z0-9]) \{(.*?)^\} \1;", text, re.M | re.S
    ):
        lines = [line.strip() for line in body.split(";") if line.strip()]
        structs[name] = [
            re.search(r"\(\*(\w+)\)|(\w+)(?:\[\w+\])?$", line).group(1, 2) for line in lines
        ]
        structs[name] = [pointer or field for pointer, field in structs[name]]
    return structs, constants, functions


def test_cython_declarations_match_the_headers():
    structs, constants, functions = declared_in_c()
    text = (Path(PACKAGES) / "rankcore" / "core.pxd").read_text(encoding="utf-8")
    found = {}
    for name, body in re.findall(r"^    ctypedef struct (\w+):\n((?: {8}.*\n)+)", text, re.M):
        lines = [line.strip().removesuffix(" noexcept") for line in body.splitlines()]
        found[name] = [re.search(r"\(\*(\w+)\)|(\w+)$", line).group(1, 2) for line in lines]
        found[name] = [pointer or field for pointer, field in found[name]]
    assert found == structs
    assert constants == set(re.findall(r"^        (R[A-Z0-9_]+)$", text, re.M))
    assert functions == set(re.findall(r"^    [\w *]*?\b(rc_\w+)\(", text, re.M))


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
        "RC_UPDATE_PERCEPTRON": 0,
        "RC_UPDATE_PA": 1,
        "RC_UPDATE_PA1": 2,
        "RC_UPDATE_PA2": 3,
        "rc_counts": 24,
        "rc_counts.t": 0,
        "rc_counts.rank_loss": 8,
        "rc_counts.mistakes": 16,
        "rc_forgetting": 16,
        "rc_forgetting.gain": 0,
        "rc_forgetting.past": 8,
        "rc_prank_state": 112,
        "rc_prank_state.weights": 0,
        "rc_prank_state.steps": 8,
        "rc_prank_state.thresholds": 16,
        "rc_prank_state.weight_sums": 24,
        "rc_prank_state.step_sums": 32,
        "rc_prank_state.real_step_sums": 40,
        "rc_prank_state.scale": 48,
        "rc_prank_state.forgetting": 56,
        "rc_prank_state.n_features": 72,
        "rc_prank_state.n_ranks": 80,
        "rc_prank_state.tie": 84,
        "rc_prank_state.seen": 88,
        "rc_cusum_state": 136,
        "rc_cusum_state.weights": 0,
        "rc_cusum_state.thresholds": 8,
        "rc_cusum_state.weight_sums": 16,
        "rc_cusum_state.threshold_sums": 24,
        "rc_cusum_state.scores": 32,
        "rc_cusum_state.C": 40,
        "rc_cusum_state.delta": 48,
        "rc_cusum_state.margin": 56,
        "rc_cusum_state.scale": 64,
        "rc_cusum_state.forgetting": 72,
        "rc_cusum_state.n_features": 88,
        "rc_cusum_state.n_ranks": 96,
        "rc_cusum_state.tie": 100,
        "rc_cusum_state.update": 104,
        "rc_cusum_state.zero_one": 108,
        "rc_cusum_state.seen": 112,
        "rc_lms_state": 104,
        "rc_lms_state.weights": 0,
        "rc_lms_state.intercept": 8,
        "rc_lms_state.weight_sums": 16,
        "rc_lms_state.intercept_sums": 24,
        "rc_lms_state.eta": 32,
        "rc_lms_state.scale": 40,
        "rc_lms_state.forgetting": 48,
        "rc_lms_state.n_features": 64,
        "rc_lms_state.n_ranks": 72,
        "rc_lms_state.normalized": 76,
        "rc_lms_state.seen": 80,
        "rc_mcp_state": 104,
        "rc_mcp_state.weights": 0,
        "rc_mcp_state.intercepts": 8,
        "rc_mcp_state.weight_sums": 16,
        "rc_mcp_state.intercept_sums": 24,
        "rc_mcp_state.scores": 32,
        "rc_mcp_state.scale": 40,
        "rc_mcp_state.forgetting": 48,
        "rc_mcp_state.n_features": 64,
        "rc_mcp_state.n_ranks": 72,
        "rc_mcp_state.uniform": 76,
        "rc_mcp_state.seen": 80,
        "rc_pair_state": 144,
        "rc_pair_state.weights": 0,
        "rc_pair_state.weight_sums": 8,
        "rc_pair_state.members": 16,
        "rc_pair_state.successes": 24,
        "rc_pair_state.born": 32,
        "rc_pair_state.capacity": 40,
        "rc_pair_state.n_features": 48,
        "rc_pair_state.margin": 56,
        "rc_pair_state.forgetting": 64,
        "rc_pair_state.kept": 80,
        "rc_pair_state.streak": 88,
        "rc_pair_state.total": 96,
        "rc_pair_state.unit": 104,
        "rc_pair_state.run": 112,
        "rc_pair_state.right": 120,
        "rc_pair_state.n_pairs": 128,
        "rc_pair_state.n_mistakes": 136,
        "rc_capi.version": 0,
        "rc_capi.size": 4,
        "rc_capi.prank_update": 8,
        "rc_capi.prank_average": 16,
        "rc_capi.cusum_update": 24,
        "rc_capi.lms_update": 32,
        "rc_capi.mcp_update": 40,
        "rc_capi.pair_update": 48,
        "rc_capi.pair_average": 56,
        "rc_capi.pair_committee": 64,
        "rc_capi.prank_margin_update": 72,
    }
    assert {name: int(found[name]) for name in frozen} == frozen
    # No struct and no constant is left out, here or in the test of rankcore.h.
    structs, constants, _ = declared_in_c()
    names = {f"{struct}.{field}" for struct, fields in structs.items() for field in fields}
    assert set(found) == (names | set(structs) | constants) - {"rc_capi", "RC_CAPI_VERSION"}


@pytest.mark.skipif(not PAGE.exists(), reason="the guides are not beside the tests")
def test_page_documents_every_function():
    page = PAGE.read_text(encoding="utf-8")
    declared = declared_in_c(*(path.name for path in HEADERS.glob("rankcore*.h")))[2]
    declared = {name for name in declared if not name.endswith("_")}  # the others are parts
    assert {"rc_dot", "rc_rank", "rc_import", "rc_prank_update"} <= declared
    assert declared == set(re.findall(r"^\| `(rc_\w+)\(", page, re.M))


@pytest.mark.skipif(not PAGE.exists(), reason="the guides are not beside the tests")
def test_page_quotes_tested_code():
    page = PAGE.read_text(encoding="utf-8")
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
