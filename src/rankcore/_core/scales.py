"""Scales of features and of rows: features of different magnitude, and norms of rows."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import power_of_two
from rankcore._core.warning import warn
from rankcore._ext.rows import Rows
from rankcore._ext.survey import most_reach, raise_sizes, sum_squares

# A feature is off the scale if it is so many times as large as half of the others.
ORDERS = 1000.0
# Between these a sum of squares has neither overflowed nor lost what counts to underflow.
SAFE_SQUARES = (1e-280, 1e300)
# 2 ** -LEAST_SHIFT and its products with what float64 has are float64.
LEAST_SHIFT = -1000


def sizes_differ(sizes: NDArray[np.float64]) -> bool:
    """Whether these maximum magnitudes differ by orders."""
    sizes = sizes[sizes > 0]
    if sizes.size < 2:
        return False
    middle = (sizes.size - 1) // 2
    return bool(sizes.max() / ORDERS > np.partition(sizes, middle)[middle])


def rows_differ(rows: Rows) -> bool:
    """`sizes_differ` of the features of rows, mostly decided by a few rows."""
    found = np.zeros(rows.n_features, dtype=np.uint8)
    return not most_reach(rows, rows.largest / ORDERS, found)


def largest_column(rows: Rows) -> int:
    """The first feature with the maximum magnitude."""
    if len(rows.arrays) == 1:
        values = rows.arrays[0]
        return int(np.maximum(values.max(axis=0), -values.min(axis=0)).argmax())
    data, indices, starts = rows.arrays
    sizes = np.zeros(rows.n_features)
    raise_sizes(indices[: starts[-1]], data[: starts[-1]], sizes)
    return int(sizes.argmax())


def warn_of_scales(column: int | None, learner: str) -> None:
    """Warn about features that differ in scale by orders of magnitude, with a remedy.

    ``column`` is that of `Source.largest_of_unequal`.
    """
    if column is None:
        return
    # No figures of these rows: a search, which fits many times, is to warn once.
    warn(
        f"the features differ in scale by orders of magnitude, column {column} "
        f"being the largest, and large ones drown the others: put {learner} behind a scaler, as in "
        f"make_pipeline(StandardScaler(), {learner}()), or train with --scale auto"
    )


def mean_square_length(rows: Rows) -> float:
    """The power of two nearest to the mean squared norm of the rows; 1 if all are empty.

    A power of two, so that it does not depend on the order of a sum, and so that thresholds that
    are multiples of it are exact.
    """
    total, shift = square_lengths(rows)
    return power_of_two(total / rows.n_rows, 2 * shift)


def square_lengths(rows: Rows) -> tuple[float, int]:
    """A sum s and an exponent e such that the squares of all values sum to s * 4 ** e."""
    if rows.largest == 0:
        return 0.0, 0
    if SAFE_SQUARES[0] < rows.squares < SAFE_SQUARES[1]:
        return rows.squares, 0
    # Scaled, so that no square leaves float64.
    shift = max(math.frexp(rows.largest)[1], LEAST_SHIFT)
    values = rows.arrays[0]
    values = values[: rows.n_values] if len(rows.arrays) > 1 else np.ascontiguousarray(values)
    return sum_squares(values.reshape(-1), math.ldexp(1.0, -shift)), shift
