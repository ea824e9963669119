"""Checks for equal rows, which no model of them can tell apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankcore._core.kernels import some_rows
from rankcore._ext.rows import Rows

# Rows compared first, and values compared at a time later.
FEW_ROWS, MOST_VALUES = 16, 2**22
# Why a fit to such rows learns nothing.
EQUAL_ROWS = "all rows of X are equal; pass features that differ between rows"
EQUAL_WITHIN_QUERIES = (
    "in each query all compared rows are equal, so that their scores tie; pass features that "
    "differ between the rows of a query"
)


def equal_rows(rows: Rows) -> bool:
    """Return whether all rows, of two or more, are equal; usually decided by a few rows."""
    every = np.arange(rows.n_rows)
    return rows.n_rows > 1 and equal_in_groups(rows, every, np.array([0, rows.n_rows]))


def equal_in_groups(rows: Rows, which: NDArray[np.int64], bounds: NDArray[np.int64]) -> bool:
    """Return whether the rows of each group ``which[bounds[i]:bounds[i + 1]]`` are equal.

    The result is usually decided by a few rows.
    """
    heads = np.repeat(which[bounds[:-1]], np.diff(bounds))
    start, size, most = 0, FEW_ROWS, max(FEW_ROWS, MOST_VALUES // rows.n_features)
    while start < which.size:
        stop = start + size
        differ = some_rows(rows, which[start:stop]) != some_rows(rows, heads[start:stop])
        if differ.nnz if hasattr(differ, "nnz") else differ.any():
            return False
        start, size = stop, min(2 * size, most)
    return True
