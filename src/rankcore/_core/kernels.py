"""Kernels by name or as functions: parameters, and values of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankcore._core.numbers import Floats, variance
from rankcore._core.threads import for_each
from rankcore._ext import kernel_scores
from rankcore._ext.rows import Rows

# Numbers of the functions that are compiled, by name.
COMPILED: dict[str, int] = kernel_scores.KERNELS
KERNELS = (*COMPILED, "precomputed")
# Named values of ``gamma``.
GAMMAS = ("scale", "half", "auto")
Kernel = str | Callable[[Any, Any], Any]
# Rows whose values with all later ones are computed at a time.
GRAM_ROWS = 64


def resolve_gamma(gamma: float | str, rows: Rows) -> float:
    """Resolve ``gamma`` on these rows, as in scikit-learn's ``SVC``; "half" is half of "scale"."""
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / rows.n_features
    with np.errstate(over="ignore", invalid="ignore"):
        stored = rows.arrays[0] if rows.columns is None else rows.arrays[0][: rows.n_values]
        spread = variance(stored, rows.n_rows * rows.n_features)
    if not np.isfinite(spread):
        raise ValueError(f"gamma={gamma!r} requires the variance of X, which overflowed: scale X")
    return gamma_of_variance(gamma, rows.n_features, spread)


def gamma_of_variance(gamma: float | str, n_features: int, variance: float) -> float:
    """Resolve ``gamma`` for values of a variance."""
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / n_features
    scale = 1.0 / (n_features * variance) if variance > 0 else 1.0
    return 0.5 * scale if gamma == "half" else scale


def csr_in_place(
    data: NDArray[Any], columns: NDArray[np.int32], starts: NDArray[np.int64], n_features: int
) -> Any:
    """Make a CSR array of its parts, of which only ``starts`` may be copied.

    SciPy's constructor converts columns and starts to the wider type, which would copy all columns.
    Older versions of scikit-learn require the same type for both.
    """
    made = sp.csr_array((starts.size - 1, n_features), dtype=data.dtype)
    if starts[-1] <= np.iinfo(columns.dtype).max:
        starts = starts.astype(columns.dtype)
    made.data, made.indices, made.indptr = data, columns, starts
    return made


def as_matrix(rows: Rows) -> Any:
    """Return validated rows as an array or CSR, without copies."""
    if rows.columns is None:
        return rows.arrays[0]
    data, columns, starts = rows.arrays
    return csr_in_place(data, columns, starts, rows.n_features)


def some_rows(rows: Rows, which: slice | NDArray[Any]) -> Any:
    """Return some of the validated rows as an array or CSR; a slice is not copied.

    SciPy would scan all rows, and copy all indices if there are 2**31 values or more.
    """
    if rows.columns is None:
        return rows.arrays[0][which]
    data, columns, starts = rows.arrays
    n_features = rows.n_features
    if isinstance(which, slice):
        ends = starts[which.start : which.stop + 1]
        where: Any = slice(ends[0], ends[-1])
        ends = ends - ends[0]
    else:
        lengths = starts[which + 1] - starts[which]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        where = np.repeat(starts[which] - ends[:-1], lengths) + np.arange(ends[-1])
    return csr_in_place(data[where], columns[where], ends, n_features)


def call_kernel(kernel: Any, A: Any, B: Any) -> np.ndarray:
    """Call a user's kernel; raise ValueError unless values are finite and of the right shape."""
    values = np.asarray(kernel(A, B), dtype=np.float64)
    if values.shape != (A.shape[0], B.shape[0]):
        raise ValueError(
            f"kernel must return an array of shape {(A.shape[0], B.shape[0])} for blocks of "
            f"{A.shape[0]} and {B.shape[0]} rows; got shape {values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError("kernel must return finite values; got NaN or infinity")
    return np.ascontiguousarray(values)


def columns_of(X: Any, columns: np.ndarray) -> np.ndarray:
    """Return columns of precomputed kernel values as dense float64."""
    selected = X[:, columns]
    selected = selected.toarray() if hasattr(selected, "toarray") else selected
    return np.ascontiguousarray(selected, dtype=np.float64)


def gram(rows: Rows, first: int, last: int, kernel: dict[str, Any], n_jobs: int = 1) -> Floats:
    """Compute a compiled kernel between the rows first .. last - 1.

    Equal to the bit to values that learners compute in blocks, as inner products are summed column
    by column for both orders of two rows. O(n * values of the rows).
    """
    n = last - first
    norms = np.empty(n)
    table = np.empty((n, n))
    kernel_scores.squared_lengths(rows, first, norms)
    dense = rows.columns is None
    values = rows.arrays[0]
    if not dense:
        _, columns, edges = rows.arrays
        ends = edges[first : last + 1].astype(np.int64)
        values = values[ends[0] : ends[-1]]
        columns = columns[ends[0] : ends[-1]]
        starts = ends[:-1] - ends[0]
        lengths = np.diff(ends)

    def compute(low: int) -> None:
        high = min(low + GRAM_ROWS, n)
        out = np.empty((high - low, n - low))
        kernel_scores.outputs(
            rows,
            first + low,
            first + high,
            kernel,
            values[first + low : last].reshape(-1) if dense else values,
            None if dense else columns,
            None if dense else starts[low:],
            None if dense else lengths[low:],
            norms[low:],
            n - low,
            None,
            None,
            None,
            None,
            None,
            out,
        )
        table[low:high, low:] = out
        table[high:, low:high] = out[:, high - low :].T

    for_each(compute, range(0, n, GRAM_ROWS), n_jobs)
    return table
