"""Comparison of scores and orders of other engines with Python."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import warnings
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._core.scoring import Scoring
from rankcore.exporters.c_source import prefix_of
from rankcore.exporters.described import Answers, Described
from rankcore.exporters.expressions import quoted
from rankcore.exporters.operations import width_after
from rankcore.exporters.reduced import OF_TREES, dense_coefs, linear_weights, support_matrix

# SQLite's default limit of columns.
SQLITE_COLUMNS = 2000


@dataclass(frozen=True)
class Check:
    """Outputs of an engine compared with those of Python.

    Attributes
    ----------
    format : str
    engine : str
        None if there is no engine for this format.
    n_rows : int
    largest_difference : float
        Maximum difference of scores; 0 for a model that has only ranks.
    ulps : float
        The same in units in the last place of the maximum sum of magnitudes of the terms, in the
        precision of the engine.
    reversed_pairs : int
        Number of neighbours in Python's order whose order differs because their scores differ by
        less than the engine's rounding; other differences are errors.
    probability_difference : float, or None
        Maximum difference of probabilities, if there are any.
    """

    format: str
    engine: str
    n_rows: int
    largest_difference: float
    ulps: float
    reversed_pairs: int
    probability_difference: float | None = None

    def __str__(self) -> str:
        """Summarise in one line."""
        same = "no order changed"
        if self.reversed_pairs:
            same = f"{self.reversed_pairs} neighbours closer than rounding swapped"
        if self.probability_difference is not None:
            same += f", largest difference of a probability {self.probability_difference:.3g}"
        return (
            f"{self.format}: {self.n_rows} rows in {self.engine}, largest difference "
            f"{self.largest_difference:.3g} ({self.ulps:.2g} ulp of the sum), {same}"
        )


def missing_engine(target: str) -> str | None:
    """Return the package that a format's check requires, if it is not installed."""
    package = _PACKAGES.get(target)
    return None if package is None or find_spec(package) is not None else package


def check_export(
    described: Described, files: list[Path], target: str, X: Any, options: dict[str, Any]
) -> Check:
    """Score rows with an exported file by the engine of its format, and compare with Python.

    Raises ValueError if a score differs by more than rounding, or a rank or a probability differs;
    RuntimeError or ModuleNotFoundError if the engine is missing or rejects the file.
    """
    codes = described.encoded(X)
    rows = _dense(codes, described.n_features)
    engine, single_input, eps = _ENGINES[target]
    if single_input and options.get("dtype") != "float64":
        rows = rows.astype(np.float32).astype(np.float64)
    # Of a frame with categories the answers are those that a user has.
    with warnings.catch_warnings():  # the rows of other frames are without names here
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        expected = described.answers(rows if codes is X else X)
    name, outputs = engine(described, files, rows, options)
    _check_rows(expected.ranks, outputs.ranks, "ranks", target, name)
    if described.scoring.form == "ordinal_trees" and outputs.probabilities is not None:
        for what in ("scores", "probabilities"):
            _check_rows(getattr(expected, what), getattr(outputs, what), what, target, name)
        return Check(target, name, len(rows), 0.0, 0.0, 0, 0.0)
    if expected.scores is None or outputs.scores is None:
        return Check(target, name, len(rows), 0.0, 0.0, 0)
    size = float(magnitudes(described, rows).max(initial=0.0))
    # Norms of rows depend on the machine.
    exact = target in _EXACT and all(step.kind != "normalize" for step in described.steps)
    bound = 0.0 if exact else terms(described) * eps * size
    differences = _differences(expected.scores, outputs.scores)
    worst = int(np.argmax(differences))
    largest = float(differences[worst])
    if not largest <= bound:
        raise ValueError(
            f"{target} changes scores: row {worst} scores {expected.scores[worst]!r} in Python and "
            f"{outputs.scores[worst]!r} in {name}, a difference above rounding, which is at most "
            f"{bound:.3g}"
        )
    order = np.argsort(expected.scores, kind="stable")
    apart = np.diff(expected.scores[order]) > 0
    reversed_pairs = int((apart & (np.diff(outputs.scores[order]) < 0)).sum())
    ulps = largest / (eps * size) if size else 0.0
    if described.calibration is None or expected.probabilities is None:
        return Check(target, name, len(rows), largest, ulps, reversed_pairs)
    # Compared with the rank of the engine's own score, as scores with other rounding may have other
    # ranks.
    probabilities = described.calibration.probabilities(outputs.scores)
    _check_rows(probabilities, outputs.probabilities, "probabilities", target, name)
    shares = float(_differences(expected.probabilities, outputs.probabilities).max())
    return Check(target, name, len(rows), largest, ulps, reversed_pairs, shares)


def _check_rows(expected: Any, actual: Any, what: str, target: str, name: str) -> None:
    """Raise ValueError if the engine's numbers of rows differ; either may be empty."""
    if expected is None or actual is None:
        return
    other = np.flatnonzero((_differences(expected, actual) > 0.0).reshape(len(expected), -1).any(1))
    if other.size:
        row = int(other[0])
        raise ValueError(
            f"{target} changes {what}: {other.size} of {len(expected)} rows, the first of which is "
            f"row {row}, with {expected[row].tolist()} in Python and {actual[row].tolist()} in "
            f"{name}"
        )


def _differences(expected: NDArray[Any], actual: NDArray[Any]) -> Floats:
    """Compute absolute differences; infinite where an engine returns NaN."""
    apart: Floats = np.abs(np.subtract(expected, actual, dtype=np.float64))
    return np.where(np.isnan(apart), np.inf, apart)


def terms(described: Described) -> int:
    """Count the roundings in a score, each of at most one unit in the last place."""
    scoring = described.scoring
    front = len(described.steps)
    if scoring.form in OF_TREES:
        return int(scoring.arrays["offsets"].size) + 1
    n = width_after(described.steps, described.n_features) + described.n_ranks + front + 2
    if scoring.form != "kernel":
        return n
    n_support = int(scoring.arrays["norms"].size)
    linear = scoring.facts["kernel"] == "linear"
    return (n if linear else n * (1 + int(scoring.facts["degree"]))) + n_support


def magnitudes(described: Described, rows: Floats) -> Floats:
    """Sum the magnitudes of the terms of each row's score."""
    scoring = described.scoring
    arrays = scoring.arrays
    if scoring.form in OF_TREES:
        return np.full(len(rows), _largest_sum(scoring))
    if scoring.form in ("classes", "votes"):
        return np.zeros(len(rows))  # no scores; votes are counted
    sizes = np.abs(rows)
    for step in described.steps:
        if step.kind == "select":
            sizes = sizes[:, step.values]
        elif step.kind in ("subtract", "add"):
            sizes = sizes + np.abs(step.values)
        elif step.kind in ("multiply", "divide"):
            sizes = sizes * np.abs(step.values if step.kind == "multiply" else 1 / step.values)
        elif step.kind == "impute":
            sizes = np.where(np.isnan(sizes), np.abs(step.values), sizes)
        elif step.kind == "normalize":
            sizes = np.minimum(sizes, 1.0)
    linear = linear_weights(scoring)
    if linear is None:  # a kernel of at most 1, or a polynomial
        coefs = float(np.abs(dense_coefs(scoring)).sum())
        gamma, coef0 = np.abs(arrays["constants"])
        squares = (sizes**2).sum(axis=1)
        longest = float(arrays["norms"].max(initial=0.0))
        if scoring.facts["kernel"] == "rbf":
            return coefs * (1 + gamma * (squares + longest))
        return coefs * (gamma * np.sqrt(squares * longest) + coef0) ** int(scoring.facts["degree"])
    weights = arrays.get("weights", linear[0])
    if scoring.form == "kernel":  # Python sums over the support vectors
        weights = np.asarray(
            abs(support_matrix(scoring)).T @ np.abs(dense_coefs(scoring)).sum(axis=0)
        )
    each = np.abs(weights.reshape(weights.shape[0], -1)).sum(axis=1)
    shifts = np.abs(arrays["thresholds"]).sum() if scoring.form == "tasks" else 0.0
    whole = np.zeros(sizes.shape[1])
    whole[: each.size] = each
    total: Floats = sizes @ whole + abs(linear[1]) + shifts
    return total


def _largest_sum(scoring: Scoring) -> float:
    """Sum the maximum magnitudes of the values of stumps or trees."""
    arrays = scoring.arrays
    offsets = scoring.arrays["offsets"]
    starts = offsets[:-1] + np.arange(offsets.size - 1)
    steps = np.maximum.reduceat(np.abs(arrays["values"]), starts) if starts.size else np.zeros(0)
    if scoring.form != "stumps":
        return float(steps.sum())
    used = np.diff(offsets) > 0
    added = np.maximum(steps, np.abs(arrays["missing"])) + np.abs(arrays["at_zero"])
    return float(added[used].sum() + abs(arrays["base"][0]))


def _dense(X: Any, n_features: int) -> Floats:
    rows = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    if rows.ndim != 2 or rows.shape[1] != n_features or not len(rows):
        raise ValueError(f"check must be rows of {n_features} features; got shape {rows.shape}")
    return np.ascontiguousarray(rows, dtype=np.float64)


# ------------------------------------------------------------------------ engines


# Name and version of an engine, and its outputs.
Found = tuple[str, Answers]
_PROGRAM = """#include <stdio.h>
#include "{header}"

int main(void)
{{
    static double x[{n}], found[{width}];
    while (fread(x, sizeof *x, {n}, stdin) == {n}) {{
{calls}
        if (fwrite(found, sizeof *found, {width}, stdout) != {width})
            return 1;
    }}
    return ferror(stdin) || fflush(stdout);
}}
"""


def _in_c(described: Described, files: list[Path], rows: Floats, options: Any) -> Found:
    compiler = shutil.which("cc")
    if compiler is None:
        raise RuntimeError("check of format='c' requires a C compiler: found no cc")
    prefix = options.get("name") or prefix_of(files[0])
    k = described.n_ranks
    # Available outputs, and their numbers per row.
    widths = {}
    calls = []
    if described.scoring.has_one_score:
        widths["scores"] = 1
        calls.append(f"found[0] = {prefix}_score(x);")
    if k:
        calls.append(f"found[{len(widths)}] = (double){prefix}_rank(x);")
        widths["ranks"] = 1
    if described.has_probabilities:
        calls.append(f"{prefix}_probabilities(x, found + {len(widths)});")
        widths["probabilities"] = k
    width = sum(widths.values())
    # Run as a program: loading a library again after its file has changed may return the old one,
    # because the linker identifies files by inode numbers, which are reused.
    program = _PROGRAM.format(
        header=next(file.name for file in files if file.suffix == ".h"),
        n=described.n_features,
        width=width,
        calls="\n".join(f"        {call}" for call in calls),
    )
    with tempfile.TemporaryDirectory() as folder:
        main, executable = Path(folder) / "main.c", Path(folder) / "main"
        main.write_text(program)
        # The ending .C would mean C++.
        flags = ["-xc", "-std=c99", "-O2", "-ffp-contract=off", f"-I{files[0].parent}"]
        done = subprocess.run(
            [compiler, *flags, "-o", executable, main, files[0], "-lm"],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{compiler} does not compile {files[0]}:\n{done.stderr}")
        ran = subprocess.run([executable], input=rows.tobytes(), capture_output=True)
    if ran.returncode:
        raise RuntimeError(f"the program of {files[0]} exited with status {ran.returncode}")
    table = np.frombuffer(ran.stdout).reshape(len(rows), width)
    ends = np.cumsum([*widths.values()])
    columns = dict(zip(widths, np.split(table, ends[:-1], axis=1), strict=True))
    scores = columns["scores"][:, 0] if "scores" in columns else None
    ranks = columns["ranks"][:, 0].astype(np.int64) if k else None
    return f"C ({compiler})", Answers(scores, ranks, columns.get("probabilities"))


def _in_onnxruntime(described: Described, files: list[Path], rows: Floats, options: Any) -> Found:
    runtime = library("onnxruntime", "onnxruntime")
    session = runtime.InferenceSession(files[0], providers=["CPUExecutionProvider"])
    inputs = rows.astype(options.get("dtype") or "float32")
    names = [output.name for output in session.get_outputs()]
    outputs = dict(zip(names, session.run(None, {"rows": inputs}), strict=True))
    return f"onnxruntime {runtime.__version__}", Answers(
        outputs.get("score"), outputs.get("rank"), outputs.get("probabilities")
    )


def _in_xgboost(described: Described, files: list[Path], rows: Floats, options: Any) -> Found:
    xgboost = library("xgboost", "xgboost")
    booster = xgboost.Booster(model_file=str(files[0]))
    data = xgboost.DMatrix(rows.astype(np.float32), feature_names=described.names)
    return f"xgboost {xgboost.__version__}", Answers(booster.predict(data).astype(np.float64))


def _in_sqlite(described: Described, files: list[Path], rows: Floats, options: Any) -> Found:
    import sqlite3

    if rows.shape[1] > SQLITE_COLUMNS:
        raise RuntimeError(
            f"check of format='sql' uses a table in SQLite, of at most {SQLITE_COLUMNS} features; "
            f"the model takes {rows.shape[1]}: export without check"
        )
    columns = ", ".join(f"{quoted(name)} REAL" for name in described.named("sql"))
    expression = files[0].read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "rows.db")
        try:
            connection.execute(f"CREATE TABLE rows ({columns})")
            marks = ", ".join("?" * rows.shape[1])
            # SQLite stores NaN as NULL, its missing value.
            connection.executemany(f"INSERT INTO rows VALUES ({marks})", rows.tolist())
            records = connection.execute(f"SELECT {expression} FROM rows ORDER BY rowid").fetchall()
        finally:
            connection.close()
    scores = np.array([row[0] for row in records], dtype=np.float64)
    return f"SQLite {sqlite3.sqlite_version}", Answers(scores)


# Engine, whether it receives rows in single precision, and the unit in the last place of 1.
_DOUBLE, _SINGLE = float(np.finfo(np.float64).eps), float(np.finfo(np.float32).eps)
_ENGINES: dict[str, tuple[Any, bool, float]] = {
    "c": (_in_c, False, _DOUBLE),
    "onnx": (_in_onnxruntime, True, _DOUBLE),
    "sql": (_in_sqlite, False, _DOUBLE),
    "xgboost": (_in_xgboost, True, _SINGLE),
}
CHECKED = tuple(_ENGINES)
_PACKAGES = {"onnx": "onnxruntime", "xgboost": "xgboost"}
_EXACT = ("c",)  # the same operations in the same order


def library(module: str, package: str) -> Any:
    """Import a module of an optional library, or raise an error with the package to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != module.partition(".")[0]:
            raise
        raise ModuleNotFoundError(
            f"this export or its check requires {package}: pip install {package} "
            "('rankcore[export]' includes the packages for ONNX)",
            name=error.name,
        ) from error
