"""Losses of orders and preferences, and regret: loss beyond that of the best ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from rankcore._core.arguments import PairWeights
from rankcore._core.numbers import Floats
from rankcore._core.params import check_option
from rankcore.metrics import weighted_ranking_loss
from rankcore.metrics.weighted_loss import weight_table
from rankcore.preference.forms import Indexed, Places, as_indexed

# Maximum number of items to enumerate all runs of QuickSort, for preferences with fractional
# degrees and without; and to compare all orders.
EXACT_FRACTIONAL, EXACT_DECIDED, EXACT_ORDERS = 8, 11, 12


def order_loss(order: ArrayLike, y: ArrayLike, w: PairWeights = "unit") -> float:
    """Compute the weight of the pairs in the wrong order, divided by the number of all pairs.

    Parameters
    ----------
    order : array-like of int, shape (n,)
        Positions of the items, the first item first; a permutation of 0 .. n - 1.
    y : array-like of numbers, shape (n,)
        True labels of the items, higher is better; pairs with equal labels do not count.
    w : str, (str, int), table or callable
        The weight of a pair, as in `rankcore.metrics.weighted_ranking_loss`: "unit", ("top_k", k),
        ("bipartite", m), "difference", "reciprocal", "dcg", a table or a function of positions.

    Returns
    -------
    float
        L_w of Ailon and Mohri (2010); at least 0.

    Notes
    -----
    O(n log n) for weights given by name.

    Examples
    --------
    >>> from rankcore.preference import order_loss
    >>> order_loss([1, 0, 3, 2, 4], [5, 4, 3, 2, 1])
    0.2
    """
    places = np.asarray(order)
    n = len(np.asarray(y))
    if places.shape != (n,) or places.dtype.kind not in "iu":
        raise ValueError(f"order must have {n} positions, one for each label; got {order!r}")
    if not (np.sort(places) == np.arange(n)).all():
        raise ValueError(f"order must have each of 0 .. {n - 1} once; got {order!r}")
    scores = np.empty(n)
    scores[places] = np.arange(n, 0, -1)
    loss: Any = weighted_ranking_loss(y, scores, w)
    return float(loss)


@dataclass(frozen=True)
class Regret:
    """Loss of an order, or a preference, beyond the minimum.

    Attributes
    ----------
    value : float
        The loss minus the minimum loss.
    loss : float
        Expected loss.
    least_loss : float
        Loss of the best order or preference.
    """

    value: float
    loss: float
    least_loss: float


@dataclass(frozen=True)
class _Query:
    """Items ranked together, and the expected costs of placing one before another."""

    items: Places
    costs: Floats  # row before column


def ranking_regret(
    algorithm: Literal["quicksort", "degree"],
    preference: Indexed | ArrayLike,
    targets: ArrayLike,
    *,
    probability: ArrayLike | None = None,
    w: PairWeights = "unit",
) -> Regret:
    """Return the regret of a ranking algorithm for a preference of few items.

    The expected loss, over targets and the algorithm's random draws, minus that of the best fixed
    order of all items.

    Parameters
    ----------
    algorithm : {"quicksort", "degree"}
    preference : Indexed, or matrix of shape (n, n)
        Evaluated once per pair, with the earlier item first.
    targets : array-like of numbers, shape (n,) or (n_targets, n)
        Possible true labels of the n items, higher is better; NaN for items that are not in the
        query.
    probability : array-like, shape (n_targets,), optional
        Probabilities of the targets, with sum 1. None: uniform.
    w : str, (str, int), table or callable
        As in `order_loss`.

    Returns
    -------
    Regret

    Raises
    ------
    ValueError, TypeError
        For unknown algorithms, arrays of the wrong shape, and too many items.

    Notes
    -----
    Runs of QuickSort are enumerated, for queries of up to 8 items, or 11 if all degrees are 0 or 1.
    The best order is found by dynamic programming within each strongly connected component of the
    preferred pairs, of up to 12 items.

    Examples
    --------
    A cycle of three items, for which no deterministic method is as good as QuickSort:

    >>> from rankcore.preference import preference_regret, ranking_regret
    >>> cycle = [[0.5, 1, 0], [0, 0.5, 1], [1, 0, 0.5]]
    >>> third_is_good = [0, 0, 1]
    >>> round(preference_regret(cycle, third_is_good).value, 4)
    0.3333
    >>> round(ranking_regret("degree", cycle, third_is_good).value, 4)
    0.6667
    >>> round(ranking_regret("quicksort", cycle, third_is_good).value, 4)
    0.3333
    """
    check_option(algorithm, "algorithm", ("quicksort", "degree"))
    n, queries = _queries(targets, probability, w)
    least = _least_order_loss(_total(queries, n))
    degrees = preference_matrix(preference, n)
    loss = sum(
        _expected_loss(algorithm, query, degrees[np.ix_(query.items, query.items)])
        for query in queries
    )
    return Regret(loss - least, loss, least)


def preference_regret(
    preference: Indexed | ArrayLike,
    targets: ArrayLike,
    *,
    probability: ArrayLike | None = None,
    w: PairWeights = "unit",
) -> Regret:
    """Return the regret of a preference: its expected loss minus that of the best preference.

    Parameters
    ----------
    preference : Indexed, or matrix of shape (n, n)
        Evaluated once per pair, with the earlier item first.
    targets, probability, w
        As in `ranking_regret`.

    Returns
    -------
    Regret
        The loss is the loss of the order, with degrees instead of 0 and 1.

    Notes
    -----
    O(n^2) for each target.

    Examples
    --------
    >>> from rankcore.preference import preference_regret
    >>> undecided = [[0.5, 0.5], [0.5, 0.5]]
    >>> preference_regret(undecided, [[1, 0], [0, 1]], probability=[0.75, 0.25]).value
    0.25
    """
    n, queries = _queries(targets, probability, w)
    h = preference_matrix(preference, n)
    costs = _total(queries, n)
    loss = float((h * costs).sum())
    least = float(np.minimum(costs, costs.T).sum()) / 2
    return Regret(loss - least, loss, least)


def preference_matrix(preference: Any, n: int) -> Floats:
    """Compute the matrix of degrees with h(u, v) + h(v, u) = 1 and zero diagonal."""
    computed = as_indexed(preference, n)
    if computed is None:
        raise TypeError("preference must be an Indexed or a matrix")
    h = np.zeros((n, n))
    i, j = np.triu_indices(n, 1)
    h[i, j] = computed.degrees(i, j)
    h[j, i] = 1.0 - h[i, j]
    return h


def _queries(targets: Any, probability: Any, w: Any) -> tuple[int, list[_Query]]:
    """Merge targets on the same items, with their expected costs."""
    labels = np.atleast_2d(np.asarray(targets, dtype=np.float64))
    if labels.ndim != 2 or labels.shape[1] == 0 or np.isinf(labels).any():
        raise ValueError(
            "targets must have shape (n,) or (n_targets, n), of numbers or NaN; got shape "
            f"{np.shape(targets)}"
        )
    m, n = labels.shape
    chance = np.full(m, 1.0 / m) if probability is None else np.asarray(probability, np.float64)
    if chance.shape != (m,) or (chance < 0).any() or not np.isclose(chance.sum(), 1.0):
        raise ValueError(f"probability must have {m} numbers that add up to 1; got {probability}")
    queries: dict[bytes, _Query] = {}
    for row, p in zip(labels, chance, strict=True):
        inside = ~np.isnan(row)
        items = np.flatnonzero(inside)
        size = items.size
        query = queries.setdefault(inside.tobytes(), _Query(items, np.zeros((size, size))))
        if size < 2:
            continue
        position = np.searchsorted(np.sort(-row[items]), -row[items])
        table = weight_table(w, size)[np.ix_(position, position)]
        worse = row[items][:, None] < row[items]
        query.costs[worse] += p * table[worse] / (size * (size - 1) / 2)
    return n, list(queries.values())


def _total(queries: list[_Query], n: int) -> Floats:
    costs = np.zeros((n, n))
    for query in queries:
        costs[np.ix_(query.items, query.items)] += query.costs
    return costs


def _expected_loss(algorithm: str, query: _Query, h: Floats) -> float:
    if algorithm == "degree":
        order = np.argsort(-h.sum(axis=1), kind="stable")
        return float(np.triu(query.costs[np.ix_(order, order)], 1).sum())
    size, decided = query.items.size, bool(((h == 0) | (h == 1)).all())
    maximum = EXACT_DECIDED if decided else EXACT_FRACTIONAL
    if size > maximum:
        raise ValueError(
            f"ranking_regret enumerates the runs of QuickSort, of at most {maximum} items here; "
            f"got a query of {size}: sample orders with quicksort_rank, and use order_loss"
        )
    return quicksort_loss(h, query.costs)


def quicksort_loss(h: Floats, costs: Floats) -> float:
    """Compute the expected cost of the order of QuickSort over all pivots and draws.

    ``h[i, j]`` is the probability that item i goes before the pivot j, ``costs[i, j]`` the cost of
    that order. O(n 3^n), or O(n 2^n) if all degrees are 0 or 1.
    """
    n = len(h)

    @cache
    def expected(members: int) -> float:
        items = [u for u in range(n) if members >> u & 1]
        if len(items) < 2:
            return 0.0
        total = 0.0
        for pivot in items:
            others = [u for u in items if u != pivot]
            left = h[others, pivot]
            right = 1.0 - left
            total += float(left @ costs[others, pivot] + right @ costs[pivot, others])
            total += float(left @ costs[np.ix_(others, others)] @ right)
            # Its diagonal is 0, so that no item is compared with itself.
            ways = {0: 1.0}  # sets of items before the pivot, and their probabilities
            for u, p in zip(others, left.tolist(), strict=True):
                split: dict[int, float] = {}
                for chosen, q in ways.items():
                    if p > 0:
                        split[chosen | 1 << u] = q * p
                    if p < 1:
                        split[chosen] = q * (1 - p)
                ways = split
            rest = members & ~(1 << pivot)
            total += sum(q * (expected(way) + expected(rest & ~way)) for way, q in ways.items())
        return total / len(items)

    return expected((1 << n) - 1)


def _least_order_loss(costs: Floats) -> float:
    """Return the minimum cost of an order."""
    # Items that contradict each other in a cycle are in the same component. Components can be
    # ordered so that all pairs between them have the lower cost.
    cheaper = csr_array(costs < costs.T)
    number, component = connected_components(cheaper, directed=True, connection="strong")
    total = float(np.minimum(costs, costs.T)[component[:, None] != component].sum()) / 2
    for c in range(number):
        inside = np.flatnonzero(component == c)
        if inside.size > EXACT_ORDERS:
            raise ValueError(
                f"the best order is found for at most {EXACT_ORDERS} items that contradict each "
                f"other in cycles; got {inside.size}: compare losses with order_loss"
            )
        total += _best_of_all_orders(costs[np.ix_(inside, inside)])
    return total


def _best_of_all_orders(costs: Floats) -> float:
    """Compute the minimum cost by dynamic programming over sets of first items."""
    n = len(costs)
    least = np.full(1 << n, np.inf)
    least[0] = 0.0
    sets = np.arange(1 << n)
    member = (sets[:, None] >> np.arange(n) & 1).astype(np.float64)
    before = member @ costs  # of a set before an item
    for chosen in range((1 << n) - 1):
        for u in range(n):
            if not chosen >> u & 1:
                after = chosen | 1 << u
                least[after] = min(least[after], least[chosen] + before[chosen, u])
    return float(least[-1])
