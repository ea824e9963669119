"""Scales of features and of rows: features of different magnitude, and norms of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rankcore._core.numbers import Floats, power_of_two
from rankcore._core.warning import warn
from rankcore._ext.column_stats import most_reach, raise_sizes, sum_squares
from rankcore._ext.rows import Rows

# Minimum ratio of a feature's magnitude to the median at which scales differ.
ORDERS = 1000.0
# Ratio of a column's root mean square to the median deviation of columns at which it dominates.
FAR = 30.0
# Maximum rows and values from which these are estimated, and columns that a warning names.
SAMPLED_ROWS, SAMPLED_VALUES, NAMED_COLUMNS = 2000, 2**15, 5
# Maximum share of values that are not 0 in rows that count as sparse.
SPARSE = 1 / 8
# Deviations below this share of a mean are rounding errors of sums of squares.
LEAST_DEVIATION = 1e-6
# Between these limits a sum of squares has neither overflowed nor lost precision by underflow.
SAFE_SQUARES = (1e-280, 1e300)
# 2 ** -LEAST_SHIFT and its products with float64 values are float64.
LEAST_SHIFT = -1000


def sizes_differ(sizes: Floats) -> bool:
    """Return whether maximum magnitudes differ by orders of magnitude."""
    sizes = sizes[sizes > 0]
    if sizes.size < 2:
        return False
    middle = (sizes.size - 1) // 2
    return bool(sizes.max() / ORDERS > np.partition(sizes, middle)[middle])


def rows_differ(rows: Rows) -> bool:
    """Return whether magnitudes of features differ by orders; a few rows usually decide."""
    occurs = np.zeros(rows.n_features, dtype=np.uint8)
    return not most_reach(rows, rows.largest / ORDERS, occurs)


def largest_column(rows: Rows) -> int:
    """Return the first feature with the maximum magnitude."""
    if len(rows.arrays) == 1:
        values = rows.arrays[0]
        return int(np.maximum(values.max(axis=0), -values.min(axis=0)).argmax())
    data, indices, starts = rows.arrays
    sizes = np.zeros(rows.n_features)
    raise_sizes(indices[: starts[-1]], data[: starts[-1]], sizes)
    return int(sizes.argmax())


def far_columns(sample: Floats, centred: bool) -> list[int]:
    """Return the columns of dense rows whose means are far from 0, in standard deviations.

    They are in descending order of their root mean square, or of their deviation if the learner
    compares rows (``centred``). Rows that are mostly 0 have none: their columns deviate little
    because they are rare.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        deviations = sample.std(axis=0)
        sizes = deviations if centred else np.sqrt(np.mean(sample**2, axis=0))
    varying = deviations > LEAST_DEVIATION * sizes
    if np.count_nonzero(sample) <= SPARSE * sample.size or not varying.any():
        return []
    far = np.flatnonzero(varying & (sizes > FAR * np.median(deviations[varying])))
    return [int(column) for column in far[np.argsort(-sizes[far], kind="stable")]]


def warn_of_scales(columns: Sequence[int], names: Sequence[str] | None, learner: str) -> None:
    """Warn about columns that are off scale, by their names, with a remedy."""
    if not columns:
        return
    # The message has no numbers of these rows, so that a search with many fits warns once.
    warn(
        "the features are not on one scale around 0, and large ones dominate (column "
        f"{_listed(columns, names)}): put {learner} behind a scaler, as in "
        f"make_pipeline(StandardScaler(), {learner}()), or train with --scale auto"
    )


def warn_of_vanishing(columns: Sequence[int], names: Sequence[str] | None, learner: str) -> None:
    """Warn about columns whose values are so small that they count as constant."""
    if len(columns):
        warn(
            f"{learner}: the values of column {_listed(columns, names)} are so small that their "
            "squares vanish, and count as constant: multiply them by a number such as 1e150"
        )


def _listed(columns: Sequence[int], names: Sequence[str] | None) -> str:
    """Return the first columns, by their names."""
    listed = [str(column) if names is None else repr(names[column]) for column in columns]
    more = f" and {len(listed) - NAMED_COLUMNS} more" if len(listed) > NAMED_COLUMNS else ""
    return ", ".join(listed[:NAMED_COLUMNS]) + more


def mean_square_length(rows: Rows) -> float:
    """Return the power of two nearest to the mean squared norm of the rows; 1 if all are empty.

    As a power of two it does not depend on the order of summation, and thresholds that are
    multiples of it are exact.
    """
    total, shift = square_lengths(rows)
    return power_of_two(total / rows.n_rows, 2 * shift)


def count_nonzero(rows: Rows) -> int:
    """Count the values of the rows that are not 0."""
    values = rows.arrays[0]
    return int(np.count_nonzero(values[: rows.n_values] if len(rows.arrays) > 1 else values))


def share_of_nonzero(rows: Rows) -> float:
    """Return the fraction of the values of the rows that are not 0."""
    return count_nonzero(rows) / (rows.n_rows * rows.n_features)


def square_lengths(rows: Rows) -> tuple[float, int]:
    """Return s and e such that the squares of all values sum to s * 4 ** e."""
    if rows.largest == 0:
        return 0.0, 0
    if SAFE_SQUARES[0] < rows.squares < SAFE_SQUARES[1]:
        return rows.squares, 0
    # Scaled, so that squares do not overflow or underflow.
    shift = max(math.frexp(rows.largest)[1], LEAST_SHIFT)
    values = rows.arrays[0]
    values = values[: rows.n_values] if len(rows.arrays) > 1 else np.ascontiguousarray(values)
    return sum_squares(values.reshape(-1), math.ldexp(1.0, -shift)), shift
