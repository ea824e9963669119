"""Whether features are on one scale, as learners with one step size need them."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from rankcore._ext.rows import Rows

# A feature is off the scale if it is so many times as large as half of the others.
ORDERS = 1000.0


def magnitudes(rows: Rows) -> NDArray[np.float64]:
    """The greatest magnitude of each feature, shape (n_features,)."""
    if len(rows.arrays) == 1:
        values = rows.arrays[0]
        return np.maximum(values.max(axis=0), -values.min(axis=0)).astype(np.float64)
    from scipy.sparse import csr_array
    from sklearn.utils.sparsefuncs import min_max_axis

    data, indices, starts = rows.arrays
    matrix = csr_array((data, indices, starts), shape=(rows.n_rows, rows.n_features))
    low, high = min_max_axis(matrix, axis=0)
    return np.maximum(high, -low).astype(np.float64)


def differ(rows: Rows) -> bool:
    """Whether the features differ in scale by orders of magnitude."""
    sizes = magnitudes(rows)
    sizes = sizes[sizes > 0]
    return bool(sizes.size > 1 and sizes.max() > ORDERS * np.median(sizes))


def warn_of_scales(rows: Rows, learner: str) -> None:
    """Warn of features that differ in scale by orders of magnitude, naming the cure."""
    if not differ(rows):
        return
    # No figures of these rows: a search, which fits many times, is to warn once.
    warnings.warn(
        f"the features differ in scale by orders of magnitude, column {magnitudes(rows).argmax()} "
        f"being the largest, and large ones drown the others: put {learner} behind a scaler, as in "
        f"make_pipeline(StandardScaler(), {learner}()), or train with --scale auto",
        UserWarning,
        stacklevel=4,
    )
