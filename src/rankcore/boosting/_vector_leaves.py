"""Trees with a value for each task in a leaf: gradients along a direction, and Newton steps.

With adjacent categories the second derivative of the loss by the scores s_i and s_j, i <= j, is
P(rank >= j) P(rank < i), which is the covariance of "rank >= i" and "rank >= j".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._core.threads import Threads
from rankcore._ext import ordinal_loss

# Precision of the differences between tasks, in units of ``l2_leaf``.
APART_PRECISION = 5.0
# Rows per thread, and maximum number of tasks with which threads share the sums of leaves.
BLOCK_ROWS, MOST_SHARED = 2**14, 32
# Rows of a leaf in one matrix product, with more tasks.
PRODUCT_ROWS = 2**12
# Added to the diagonal, for leaves without curvature when ``l2_leaf`` is 0.
RIDGE = 1e-9


@dataclass(frozen=True)
class TableRows:
    """Rows of a fit, and their probabilities."""

    table: Floats  # (n, n_tasks + 1)
    ranks: NDArray[np.int32]
    weights: Floats | None


@dataclass(frozen=True)
class LeafSums:
    """Sums over the rows of each leaf: negated gradients, and second derivatives."""

    gradients: Floats  # (n_leaves, n_tasks)
    hessians: Floats  # (n_leaves, n_tasks, n_tasks)

    @classmethod
    def zeros(cls, n_leaves: int, n_tasks: int) -> LeafSums:
        """Return sums of no rows."""
        return cls(np.zeros((n_leaves, n_tasks)), np.zeros((n_leaves, n_tasks, n_tasks)))


def differentiate_along(
    direction: Floats, rows: TableRows, threads: Threads
) -> tuple[Floats, Floats]:
    """Return the negated gradient and the second derivative of each row's loss in a direction."""
    n = len(rows.table)
    places = np.concatenate([[0.0], np.cumsum(direction)])
    gradients, hessians = np.empty(n), np.empty(n)

    def fill(start: int) -> None:
        stop = min(start + BLOCK_ROWS, n)
        ordinal_loss.differentiate_along(
            rows.table, rows.ranks, rows.weights, places, start, stop, gradients, hessians
        )

    threads.for_each(fill, range(0, n, BLOCK_ROWS))
    return gradients, hessians


def sum_by_leaf(
    leaf_of: NDArray[np.int32],
    of_rows: NDArray[np.uint8] | None,
    n_leaves: int,
    rows: TableRows,
    threads: Threads,
) -> LeafSums:
    """Sum the derivatives by leaf; O(n * n_tasks^2).

    ``of_rows`` is a mask of rows. Sums over blocks of rows are added in order, for any number of
    threads.
    """
    n, n_tasks = rows.table.shape[0], rows.table.shape[1] - 1
    if n_tasks > MOST_SHARED:
        return _sums_of_many_tasks(leaf_of, of_rows, n_leaves, rows, threads)
    sums_by_block: dict[int, LeafSums] = {}

    def add(start: int) -> None:
        block = LeafSums.zeros(n_leaves, n_tasks)
        ordinal_loss.sum_by_leaf(
            rows.table,
            rows.ranks,
            rows.weights,
            leaf_of,
            of_rows,
            start,
            min(start + BLOCK_ROWS, n),
            block.gradients,
            block.hessians,
        )
        sums_by_block[start] = block

    threads.for_each(add, range(0, n, BLOCK_ROWS))
    gradients, lower = sums_by_block[0].gradients, sums_by_block[0].hessians
    for start in range(BLOCK_ROWS, n, BLOCK_ROWS):
        gradients += sums_by_block[start].gradients
        lower += sums_by_block[start].hessians
    return LeafSums(gradients, lower + np.tril(lower, -1).transpose(0, 2, 1))


def _sums_of_many_tasks(
    leaf_of: NDArray[np.int32],
    of_rows: NDArray[np.uint8] | None,
    n_leaves: int,
    rows: TableRows,
    threads: Threads,
) -> LeafSums:
    """Implement `sum_by_leaf`, by matrix products of the rows of each leaf.

    A matrix of many tasks does not fit into the cache, where the rows of a block in turn would need
    that of another leaf each.
    """
    table, weights = rows.table, rows.weights
    n_tasks = table.shape[1] - 1
    taken = np.arange(len(table)) if of_rows is None else np.flatnonzero(of_rows)
    members = taken[np.argsort(leaf_of[taken], kind="stable")]
    bounds = np.searchsorted(leaf_of[members], np.arange(n_leaves + 1))
    sums = LeafSums.zeros(n_leaves, n_tasks)
    tasks = np.arange(n_tasks)

    def add(leaf: int) -> None:
        curvature = sums.hessians[leaf]
        for start in range(bounds[leaf], bounds[leaf + 1], PRODUCT_ROWS):
            at = members[start : min(start + PRODUCT_ROWS, bounds[leaf + 1])]
            above = np.cumsum(table[at, :0:-1], axis=1)[:, ::-1]
            row_weights = np.ones(at.size) if weights is None else weights[at]
            sums.gradients[leaf] += row_weights @ ((rows.ranks[at, None] > tasks) - above)
            # The last digits of the sum of the probabilities may exceed 1.
            curvature += (above * row_weights[:, None]).T @ np.maximum(1.0 - above, 0.0)
        curvature[:] = np.tril(curvature) + np.tril(curvature, -1).T

    threads.for_each(add, range(n_leaves))
    return sums


def newton_steps(sums: LeafSums, l2_leaf: float) -> Floats:
    """Return the Newton step of each leaf and task, shape (n_leaves, n_tasks).

    The prior has the precision ``l2_leaf`` for a value that all tasks share, and `APART_PRECISION`
    times that for differences from the mean of the tasks.
    """
    n_tasks = sums.gradients.shape[1]
    mean, unit = np.full((n_tasks, n_tasks), 1.0 / n_tasks), np.eye(n_tasks)
    prior = l2_leaf * (mean / n_tasks + APART_PRECISION * (unit - mean)) + RIDGE * unit
    return np.asarray(np.linalg.solve(sums.hessians + prior, sums.gradients[..., None])[..., 0])


def monotone_steps(
    sums: LeafSums,
    l2_leaf: float,
    children: NDArray[np.int32],
    signs: NDArray[np.int8],
) -> Floats:
    """Implement `newton_steps`, increasing or decreasing in each task across nodes of sign 1 or -1.

    The mean of the steps of both children, as if they were leaves, bounds all leaves below them.
    Children of nodes have higher numbers; ``~leaf`` is a leaf.
    """
    n = len(children)
    # Nodes first, then leaves.
    at = np.where(children < 0, n + ~children, children)
    nodes = LeafSums.zeros(n, sums.gradients.shape[1])
    gradients = np.concatenate([nodes.gradients, sums.gradients])
    hessians = np.concatenate([nodes.hessians, sums.hessians])
    for node in range(n - 1, -1, -1):
        gradients[node] = gradients[at[node]].sum(axis=0)
        hessians[node] = hessians[at[node]].sum(axis=0)
    steps = newton_steps(LeafSums(gradients, hessians), l2_leaf)
    lows, highs = np.full_like(steps, -np.inf), np.full_like(steps, np.inf)
    for node in range(n):
        both, sign = at[node], signs[node]
        lows[both], highs[both] = lows[node], highs[node]
        if sign:
            middle = np.clip(steps[both], lows[node], highs[node]).mean(axis=0)
            under, over = both[::sign]
            highs[under] = lows[over] = middle
    return np.clip(steps, lows, highs)[n:]
