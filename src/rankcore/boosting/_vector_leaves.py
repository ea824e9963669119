"""Trees with a value for each task in a leaf: slopes along a direction, and Newton steps.

With adjacent categories the second derivative of the loss by the scores s_i and s_j, i <= j, is
P(rank >= j) P(rank < i), which is the covariance of "rank >= i" and "rank >= j".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats

# Precision of the differences between tasks, in units of ``l2_leaf``.
APART_PRECISION = 5.0
# Added to the diagonal, for leaves without curvature when ``l2_leaf`` is 0.
RIDGE = 1e-9


def directed(
    direction: Floats, steep: Floats, table: Floats, weights: Floats | None
) -> tuple[Floats, Floats]:
    """Minus the first, and the second derivative of each row's loss along a direction.

    ``steep`` has minus the first derivatives, shape (n_tasks, n), ``table`` the probabilities,
    shape (n, n_tasks + 1). The second one is the variance of the sums of the direction's numbers up
    to the rank.
    """
    # Plain sums: products of matrices may differ in the last bit with the number of threads.
    slopes = np.zeros(len(table))
    for number, slope in zip(direction, steep, strict=True):
        slopes += number * slope
    places = np.concatenate([[0.0], np.cumsum(direction)])
    mean = (table * places).sum(axis=1)
    curvatures = (table * np.square(places - mean[:, None])).sum(axis=1)
    return slopes, curvatures if weights is None else weights * curvatures


def leaf_vectors(
    leaf_of: NDArray[np.integer],
    n_leaves: int,
    steep: Floats,
    table: Floats,
    weights: Floats | None,
    l2_leaf: float,
) -> Floats:
    """Newton step of each task and leaf, shape (n_tasks, n_leaves); O(n * n_tasks^2).

    Rows of leaf ``n_leaves`` are left out. The prior has the precision ``l2_leaf`` for a value that
    all tasks share, and `APART_PRECISION` times that for differences from the mean of the tasks.
    """
    n_tasks = len(steep)
    above = np.cumsum(table[:, :0:-1].T, axis=0)[::-1]  # P(rank >= j)
    # The last digits of the sum of the probabilities may exceed 1.
    below = np.maximum(1.0 - above, 0.0)
    if weights is not None:
        below = below * weights
    sums = np.empty((n_leaves, n_tasks))
    curvatures = np.empty((n_leaves, n_tasks, n_tasks))
    for i in range(n_tasks):
        sums[:, i] = _by_leaf(leaf_of, steep[i], n_leaves)
        for j in range(i, n_tasks):
            found = _by_leaf(leaf_of, above[j] * below[i], n_leaves)
            curvatures[:, i, j] = curvatures[:, j, i] = found
    mean = np.full((n_tasks, n_tasks), 1.0 / n_tasks)
    unit = np.eye(n_tasks)
    prior = l2_leaf * (mean / n_tasks + APART_PRECISION * (unit - mean)) + RIDGE * unit
    steps = np.linalg.solve(curvatures + prior, sums[..., None])[..., 0]
    return np.ascontiguousarray(steps.T)


def _by_leaf(leaf_of: NDArray[np.integer], values: Floats, n_leaves: int) -> Floats:
    return np.bincount(leaf_of, values, minlength=n_leaves)[:n_leaves]
