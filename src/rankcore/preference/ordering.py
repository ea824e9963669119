"""Functions that order items by a preference."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from rankcore._core.params import check_count, optional
from rankcore.preference.degree import Degree, computed_degrees
from rankcore.preference.forms import (
    Batch,
    Degrees,
    Indexed,
    Items,
    Places,
    Preference,
    as_degrees,
    as_indexed,
    as_items,
    in_order,
    is_async,
)
from rankcore.preference.quicksort import QuickSort
from rankcore.preference.running import computed_order


def sort_by_degree(items: Items, preference: Preference) -> Any:
    """Order items by the sum of their degrees against all others.

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

    Raises
    ------
    ValueError
        For degrees that are not in [0, 1], or a matrix of the wrong shape.
    TypeError
        For an ``async`` preference, which requires `PreferenceRanker`.

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
    if _as_computed(preference, n) is None:
        return in_order(items, computed_order(Degree(n), partial(_answers, items, preference)))
    sums = computed_degrees(preference, n)
    return in_order(items, np.argsort(-sums, kind="stable"))


def quicksort_rank(
    items: Items,
    preference: Preference,
    top_k: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Any:
    """Order items by QuickSort with random pivots.

    Parameters
    ----------
    items : sequence, length n
    preference : callable, Batch, Indexed, or matrix of shape (n, n)
        As for `sort_by_degree`. An item goes before a pivot with the degree as probability. Each
        pair is compared at most once.
    top_k : int, optional
        Number of items to find, at least 1. None: all.
    random_state : int, numpy.random.Generator or None
        Seed of the pivots and of the draws.

    Returns
    -------
    list, or ndarray for an ndarray of items
        The first ``top_k`` items, or all.

    Raises
    ------
    ValueError, TypeError
        As `sort_by_degree`, and for a top_k below 1.

    Notes
    -----
    Expected calls: at most 2 (n + 1) H_n - 4 n, about 1.39 n log2 n, in O(log n) rounds, each of
    which is one call of a `Batch` or `Indexed` preference; O(n + k log k) calls for the first k. If
    the truth has two levels, the expected loss of the order is equal to the loss of the preference;
    with more, at most twice that (Ailon and Mohri, 2010).

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
    optional(check_count)(top_k, "top_k")
    rng = np.random.default_rng(random_state)
    method = QuickSort(np.array([n], dtype=np.intp), rng, top_k=top_k)
    computed = _as_computed(preference, n)
    degrees = partial(_answers, items, preference) if computed is None else computed.degrees
    return in_order(items, computed_order(method, degrees)[:top_k])


def _as_computed(preference: Any, n: int) -> Indexed | None:
    if is_async(preference):
        raise TypeError("this preference is async, and this function is not; use PreferenceRanker")
    return as_indexed(preference, n)


def _answers(items: Any, preference: Any, i: Places, j: Places) -> Degrees:
    pairs = [(items[u], items[v]) for u, v in zip(i.tolist(), j.tolist(), strict=True)]
    if not isinstance(preference, Batch):
        return as_degrees([preference(u, v) for u, v in pairs], len(pairs))
    size = preference.size or len(pairs)
    blocks = [pairs[k : k + size] for k in range(0, len(pairs), size)]
    return np.concatenate([as_degrees(preference.function(part), len(part)) for part in blocks])
