"""Functions that order items by a preference."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

from rankcore._core.params import COUNT, check_option
from rankcore.preference.forms import (
    Batch,
    Degrees,
    Items,
    Places,
    Preference,
    as_degrees,
    as_indexed,
    as_items,
    as_matrix,
    in_order,
    is_async,
)
from rankcore.preference.methods import Degree, QuickSort, computed_order

# Rows of a matrix that are summed at a time.
_BLOCK = 256


def sort_by_degree(items: Items, preference: Preference) -> Any:
    """Return items by the sum of their degrees against all others.

    Parameters
    ----------
    items : sequence, length n
    preference : callable, Batch, Indexed, or matrix of shape (n, n)
        ``preference(u, v)`` is the degree in [0, 1], or the boolean, to which item u should precede
        item v; a matrix has it in row u and column v. Each pair is compared once, with the earlier
        item first; the degree for the other order is one minus that.

    Returns
    -------
    list, or ndarray for an ndarray of items
        All items, by descending sum of degrees; ties in input order.

    Notes
    -----
    n (n - 1) / 2 calls, O(n^2). If the truth has two levels, the loss of the order is at most twice
    that of the preference (Balcan et al., 2008), and no deterministic method has a better bound.
    With more levels there is no such bound: a cycle of three can triple it.

    Examples
    --------
    >>> from rankcore.preference import sort_by_degree
    >>> sort_by_degree([3, 1, 2], lambda u, v: u < v)
    [1, 2, 3]
    """
    items = as_items(items)
    n = len(items)
    degrees, matrix = _degrees_of(items, preference), as_matrix(preference, n)
    if matrix is None:
        return in_order(items, computed_order(Degree(n), degrees))
    # Of a matrix, the row of the earlier item of a pair is used; copied in blocks of rows.
    sums = np.arange(n, dtype=np.float64)
    for start in range(0, n, _BLOCK):
        upper = np.triu(matrix[start : start + _BLOCK], start + 1).astype(np.float64, copy=False)
        if not (upper.min(initial=0) >= 0 and upper.max(initial=0) <= 1):  # NaN is neither
            as_degrees(upper.ravel(), upper.size)
        sums[start : start + _BLOCK] += upper.sum(axis=1)
        sums -= upper.sum(axis=0)
    return in_order(items, np.argsort(-sums, kind="stable"))


def quicksort_rank(
    items: Items,
    preference: Preference,
    top_k: int | None = None,
    *,
    decide: Literal["majority", "draw"] = "majority",
    random_state: int | np.random.Generator | None = None,
) -> Any:
    """Order items by QuickSort with random pivots.

    Parameters
    ----------
    items : sequence, length n
    preference : callable, Batch, Indexed, or matrix of shape (n, n)
        As for `sort_by_degree`. Each pair is compared at most once.
    top_k : int, optional
        Number of items to find, at least 1. None: all.
    decide : {"majority", "draw"}
        An item goes before a pivot if the degree is above 1/2, and for 1/2 at random; or with the
        degree as probability, as the theorems for degrees between 0 and 1 require.
    random_state : int, numpy.random.Generator or None
        Seed of the pivots and of the draws.

    Returns
    -------
    list, or ndarray for an ndarray of items
        The first ``top_k`` items, or all.

    Notes
    -----
    Expected calls: at most 2 (n + 1) H_n - 4 n, about 1.39 n log2 n, in O(log n) rounds, each of
    which is one call of a `Batch` or `Indexed` preference; O(n + k log k) calls for the first k. If
    the truth has two levels, the expected loss of the order is equal to the loss of the preference;
    with more, at most twice that (Ailon and Mohri, 2010). Both hold for ``decide="draw"``, and for
    degrees of 0 and 1 with either.

    Examples
    --------
    >>> from rankcore.preference import quicksort_rank
    >>> quicksort_rank([3, 1, 2], lambda u, v: u < v, random_state=0)
    [1, 2, 3]
    >>> quicksort_rank(range(1000), lambda u, v: u > v, top_k=3, random_state=0)
    [999, 998, 997]
    """
    items = as_items(items)
    n = len(items)
    (COUNT | None).check(top_k, "top_k")
    check_option(decide, "decide", ("majority", "draw"))
    rng = np.random.default_rng(random_state)
    method = QuickSort(n, rng, top_k=top_k, draw=decide == "draw")
    return in_order(items, computed_order(method, _degrees_of(items, preference))[:top_k])


def _degrees_of(items: Any, preference: Any) -> Callable[[Places, Places], Degrees]:
    """Return a function with the degrees of pairs of positions."""
    if is_async(preference):
        raise TypeError("this preference is async, and this function is not; use PreferenceRanker")
    computed = as_indexed(preference, len(items))
    return partial(_answers, items, preference) if computed is None else computed.degrees


def _answers(items: Any, preference: Any, i: Places, j: Places) -> Degrees:
    pairs = [(items[u], items[v]) for u, v in zip(i.tolist(), j.tolist(), strict=True)]
    if not isinstance(preference, Batch):
        return as_degrees([preference(u, v) for u, v in pairs], len(pairs))
    size = preference.size or len(pairs)
    blocks = [pairs[k : k + size] for k in range(0, len(pairs), size)]
    return np.concatenate([as_degrees(preference.function(part), len(part)) for part in blocks])
