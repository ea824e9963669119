"""Checks for rows that are all equal, from which no model can learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.kernels import some_rows
from rankcore._core.numbers import Floats
from rankcore._ext.rows import Rows

# Rows compared first, and values compared at a time later.
FEW_ROWS, MOST_VALUES = 16, 2**22
# Why a fit to such rows learns nothing.
EQUAL_ROWS = "all rows of X are equal; pass features that differ between rows"
EQUAL_WITHIN_QUERIES = (
    "in each query all compared rows are equal, so that their scores tie; pass features that "
    "differ between the rows of a query"
)


class EqualRows:
    """Check whether all rows are equal, window by window; a few rows usually decide."""

    def __init__(self) -> None:
        self._n_rows, self._equal = 0, True
        self._first: Any = None  # the first row, a copy

    def add(self, rows: Rows, weights: Floats | None) -> bool:
        """Add the rows of a window that have a positive weight; return whether all are equal."""
        which = np.arange(rows.n_rows) if weights is None else np.flatnonzero(weights)
        if self._equal and which.size:
            first = some_rows(rows, which[:1])
            if self._first is None:
                self._first = first
            bounds = np.array([0, which.size])
            self._equal = not _differ(first, self._first) and equal_in_groups(rows, which, bounds)
        self._n_rows += which.size
        return self._equal and self._n_rows > 1


def equal_in_groups(rows: Rows, which: NDArray[np.int64], bounds: NDArray[np.int64]) -> bool:
    """Return whether the rows of each group ``which[bounds[i]:bounds[i + 1]]`` are equal.

    The result is usually decided by a few rows.
    """
    heads = np.repeat(which[bounds[:-1]], np.diff(bounds))
    start, size, most = 0, FEW_ROWS, max(FEW_ROWS, MOST_VALUES // rows.n_features)
    while start < which.size:
        stop = start + size
        if _differ(some_rows(rows, which[start:stop]), some_rows(rows, heads[start:stop])):
            return False
        start, size = stop, min(2 * size, most)
    return True


def _differ(some: Any, others: Any) -> bool:
    """Return whether some value of two matrices, both dense or both CSR, differs."""
    differ = some != others
    return bool(differ.nnz if hasattr(differ, "nnz") else differ.any())
