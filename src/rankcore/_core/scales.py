"""Whether features are on one scale, as learners with one step size need them."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from rankcore._ext.rows import Rows

# A feature is off the scale if it is so many times as large as half of the others.
ORDERS = 1000.0
# Values looked at a time, so that no copy of the data is made.
BLOCK = 2**16


def magnitudes(rows: Rows) -> NDArray[np.float64]:
    """The greatest magnitude of each feature, shape (n_features,)."""
    if len(rows.arrays) == 1:
        values = rows.arrays[0]
        return np.maximum(values.max(axis=0), -values.min(axis=0)).astype(np.float64)
    data, indices, starts = rows.arrays
    sizes = np.zeros(rows.n_features)
    for first in range(int(starts[0]), int(starts[-1]), BLOCK):
        block = slice(first, min(first + BLOCK, int(starts[-1])))
        np.maximum.at(sizes, indices[block], np.abs(data[block]))
    return sizes


def differ(rows: Rows) -> bool:
    """Whether the features differ in scale by orders of magnitude."""
    return sizes_differ(magnitudes(rows))


def sizes_differ(sizes: NDArray[np.float64]) -> bool:
    """Whether these greatest magnitudes differ by orders."""
    sizes = sizes[sizes > 0]
    if sizes.size < 2:
        return False
    middle = (sizes.size - 1) // 2
    return bool(sizes.max() / ORDERS > np.partition(sizes, middle)[middle])


def warn_of_scales(rows: Rows, learner: str) -> None:
    """Warn of features that differ in scale by orders of magnitude, naming the cure."""
    warn_of_sizes(magnitudes(rows), learner, stacklevel=5)


def warn_of_sizes(sizes: NDArray[np.float64], learner: str, stacklevel: int) -> None:
    """The same of their greatest magnitudes."""
    if not sizes_differ(sizes):
        return
    # No figures of these rows: a search, which fits many times, is to warn once.
    warnings.warn(
        f"the features differ in scale by orders of magnitude, column {sizes.argmax()} "
        f"being the largest, and large ones drown the others: put {learner} behind a scaler, as in "
        f"make_pipeline(StandardScaler(), {learner}()), or train with --scale auto",
        UserWarning,
        stacklevel=stacklevel,
    )
