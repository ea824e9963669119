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


def leaf_sums(
    leaf_of: NDArray[np.integer],
    n_leaves: int,
    steep: Floats,
    table: Floats,
    weights: Floats | None,
) -> tuple[Floats, Floats]:
    """Sums by leaf of minus the first, and of the second derivatives; O(n * n_tasks^2).

    Shapes (n_leaves, n_tasks) and (n_leaves, n_tasks, n_tasks). Rows of leaf ``n_leaves`` are left
    out.
    """
    n_tasks = len(steep)
    leaf_of = leaf_of.astype(np.intp)
    tasks = np.ascontiguousarray(table.T)
    above = np.cumsum(tasks[:0:-1], axis=0)[::-1]  # P(rank >= j)
    # The last digits of the sum of the probabilities may exceed 1.
    below = np.maximum(1.0 - above, 0.0)
    if weights is not None:
        below = below * weights
    slopes = np.empty((n_leaves, n_tasks))
    curvatures = np.empty((n_leaves, n_tasks, n_tasks))
    for i in range(n_tasks):
        slopes[:, i] = _by_leaf(leaf_of, steep[i], n_leaves)
        for j in range(i, n_tasks):
            found = _by_leaf(leaf_of, above[j] * below[i], n_leaves)
            curvatures[:, i, j] = curvatures[:, j, i] = found
    return slopes, curvatures


def newton_steps(slopes: Floats, curvatures: Floats, l2_leaf: float) -> Floats:
    """Newton step of each leaf and task, shape (n_leaves, n_tasks).

    The prior has the precision ``l2_leaf`` for a value that all tasks share, and `APART_PRECISION`
    times that for differences from the mean of the tasks.
    """
    n_tasks = slopes.shape[1]
    mean, unit = np.full((n_tasks, n_tasks), 1.0 / n_tasks), np.eye(n_tasks)
    prior = l2_leaf * (mean / n_tasks + APART_PRECISION * (unit - mean)) + RIDGE * unit
    return np.asarray(np.linalg.solve(curvatures + prior, slopes[..., None])[..., 0])


def monotone_steps(
    slopes: Floats,
    curvatures: Floats,
    l2_leaf: float,
    children: NDArray[np.int32],
    signs: NDArray[np.int8],
) -> Floats:
    """As `newton_steps`, rising or falling in each task across the nodes of sign 1 or -1.

    The mean of the steps of both children, as if they were leaves, bounds all leaves below them.
    Children of nodes have higher numbers; ``~leaf`` is a leaf.
    """
    n = len(children)
    # Nodes first, then leaves.
    at = np.where(children < 0, n + ~children, children)
    slopes = np.concatenate([np.zeros((n, *slopes.shape[1:])), slopes])
    curvatures = np.concatenate([np.zeros((n, *curvatures.shape[1:])), curvatures])
    for node in range(n - 1, -1, -1):
        slopes[node] = slopes[at[node]].sum(axis=0)
        curvatures[node] = curvatures[at[node]].sum(axis=0)
    steps = newton_steps(slopes, curvatures, l2_leaf)
    lows, highs = np.full_like(steps, -np.inf), np.full_like(steps, np.inf)
    for node in range(n):
        both, sign = at[node], signs[node]
        lows[both], highs[both] = lows[node], highs[node]
        if sign:
            middle = np.clip(steps[both], lows[node], highs[node]).mean(axis=0)
            under, over = both[::sign]
            highs[under] = lows[over] = middle
    return np.clip(steps, lows, highs)[n:]


def _by_leaf(leaf_of: NDArray[np.integer], values: Floats, n_leaves: int) -> Floats:
    return np.bincount(leaf_of, values, minlength=n_leaves)[:n_leaves].astype(np.float64)
