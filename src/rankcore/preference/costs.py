"""Costs and guarantees of each method, before the first comparison."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from operator import index

import numpy as np

from rankcore.preference.degree import halved, last_pool

METHODS = ("quicksort", "degree", "halving", "insertion", "heap", "sliding")
# Random binary search trees have height 4.3110 ln n (Devroye, 1986; Reed, 2003), less something.
_HEIGHT = 4.3111


@dataclass(frozen=True)
class CallPlan:
    """Cost of a method.

    Attributes
    ----------
    method : str
    calls : float
        Pairs to compare; times the repeats, and twice in both orders, these are the calls.
    calls_are : {"exact", "expected", "at most"}
        What that number is. Expected for a transitive preference and, but for QuickSort, items in
        random order; other preferences take QuickSort at most as many.
    rounds : float
        Batches that have to wait for the one before: exact for "degree", "halving" and "sliding",
        as `calls` for the methods that compare one pair at a time, and at most that many in
        expectation for QuickSort.
    guarantee : str
        What is known of the loss of the order, to that of the preference.
    """

    method: str
    calls: float
    calls_are: str
    rounds: float
    guarantee: str


def call_plan(n: int, k: int | None = None, *, opponents: int = 8) -> dict[str, CallPlan]:
    """Calls, rounds and guarantee of every method, for n items of which k are to be found.

    Parameters
    ----------
    n : int
        Items, at least 1.
    k : int, optional
        How many to put in order, from the top; at least 1. None: all.
    opponents : int
        As in `PreferenceRanker`.

    Returns
    -------
    dict of CallPlan
        By the name of the method.

    Raises
    ------
    ValueError
        If n or k is below 1.

    Notes
    -----
    QuickSort: 2 (n + 1) H_n - 4 n for k = n, and
    2 n + 2 (n + 1) H_n - 2 (n + 3 - k) H_(n+1-k) - 6 k + 6 (Martinez, 2004) for others. O(n).

    Examples
    --------
    >>> from rankcore.preference import call_plan
    >>> plan = call_plan(1000, 10)
    >>> round(plan["quicksort"].calls), plan["degree"].calls, plan["halving"].rounds
    (2084, 499500, 6)
    """
    n, k = index(n), None if k is None else index(k)
    if n < 1 or (k is not None and k < 1):
        raise ValueError(f"call_plan needs n and k of at least 1; found n={n}, k={k}")
    if opponents < 2 or opponents % 2:
        raise ValueError(f"opponents must be an even number from 2 on; found {opponents}")
    top = n if k is None else min(k, n)
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n + 2))])
    # The i-th item gets into the first k with probability k / i, compared with the last of them.
    got_in = top * (harmonic[n] - harmonic[top])
    insertion = sum(_search_depth(size + 1) for size in range(1, top)) + (n - top)
    insertion += got_in * _search_depth(top)
    heap = float(n - 1)
    if top > 1:  # at most two for each level that an item sinks
        emptied = sum(size.bit_length() - 1 for size in range(2, top))
        heap = float(n + top + 2 * (got_in * (top.bit_length() - 1) + emptied))
    halving, halving_rounds = _halving(n, k, opponents)
    passes = min(top, n - 1)
    exact = "none unless transitive: then exact"
    plans = (
        CallPlan(
            "quicksort",
            float(
                2 * n
                + 2 * (n + 1) * harmonic[n]
                - 2 * (n + 3 - top) * harmonic[n + 1 - top]
                - 6 * top
                + 6
            ),
            "expected",
            min(n - 1, _HEIGHT * log(n)),
            "expected loss: equal for two levels, at most 2 times otherwise",
        ),
        CallPlan(
            "degree",
            n * (n - 1) // 2,
            "exact",
            min(n - 1, 1),
            "loss: at most 2 times for two levels, no such bound otherwise",
        ),
        CallPlan(
            "halving",
            halving,
            "at most",
            halving_rounds,
            "that of degree among the items that are left; finding them is likely, not sure",
        ),
        CallPlan("insertion", float(insertion), "expected", float(insertion), exact),
        CallPlan("heap", heap, "at most", heap, exact),
        CallPlan(
            "sliding",
            passes * (n - 1) - passes * (passes - 1) // 2,
            "at most",
            n + passes - 2 if passes else 0,
            exact,
        ),
    )
    return {plan.method: plan for plan in plans}


def _search_depth(leaves: int) -> float:
    """Mean number of comparisons that find one of some gaps by halves."""
    whole = leaves.bit_length() - 1
    return whole + 2 - 2 ** (whole + 1) / leaves


def _halving(n: int, k: int | None, opponents: int) -> tuple[int, int]:
    last = last_pool(n, k, opponents, 4)
    calls = rounds = 0
    while n > last:
        calls += n * (opponents // 2)
        rounds += 1
        n = halved(n, last)
    return calls + n * (n - 1) // 2, rounds + (n > 1)
