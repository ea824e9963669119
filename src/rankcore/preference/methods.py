"""Methods of a ranker: their cost, the choice of "auto", and validation of parameters."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import log
from operator import index
from typing import Any

import numpy as np

from rankcore._core.params import Constraint, check_count, integer, option, optional, real
from rankcore.preference.degree import Degree, Halving, halved, last_pool
from rankcore.preference.forms import Choice, Judges, as_indexed, is_called
from rankcore.preference.groups import Groups, SetwiseHeap
from rankcore.preference.ledger import Retry
from rankcore.preference.quicksort import QuickSort
from rankcore.preference.rating import Rating, prior_scores
from rankcore.preference.running import Method
from rankcore.preference.sequential import Heap, Insertion, Sliding

METHODS = ("quicksort", "degree", "halving", "insertion", "heap", "sliding")
# Random binary search trees have height 4.3110 ln n (Devroye, 1986; Reed, 2003), minus lower-order
# terms.
_HEIGHT = 4.3111


@dataclass(frozen=True)
class CallPlan:
    """Cost of a method.

    Attributes
    ----------
    method : str
    calls : float
        Number of pairs to compare. Calls are this times the repeats, and twice that in both orders.
    calls_are : {"exact", "expected", "at most"}
        Meaning of that number. Expectations are for transitive preferences and, except for
        QuickSort, items in random order; for other preferences they are upper bounds for QuickSort.
    rounds : float
        Number of sequential batches: exact for "degree", "halving" and "sliding", equal to `calls`
        for methods that compare one pair at a time, and an upper bound of the expectation for
        QuickSort.
    guarantee : str
        Bound of the loss of the order, relative to that of the preference.
    """

    method: str
    calls: float
    calls_are: str
    rounds: float
    guarantee: str


def call_plan(n: int, k: int | None = None, *, opponents: int = 8) -> dict[str, CallPlan]:
    """Calls, rounds and guarantee of every method, for the first k of n items.

    Parameters
    ----------
    n : int
        Items, at least 1.
    k : int, optional
        Number of items to find, from the top; at least 1. None: all.
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
        raise ValueError(f"call_plan requires n and k of at least 1; found n={n}, k={k}")
    if opponents < 2 or opponents % 2:
        raise ValueError(f"opponents must be an even number from 2 on; found {opponents}")
    top = n if k is None else min(k, n)
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n + 2))])
    # Item i enters the first k with probability k / i; it is compared with the last of them.
    got_in = top * (harmonic[n] - harmonic[top])
    insertion = sum(_search_depth(size + 1) for size in range(1, top)) + (n - top)
    insertion += got_in * _search_depth(top)
    heap = float(n - 1)
    if top > 1:  # at most two per level
        emptied = sum(size.bit_length() - 1 for size in range(2, top))
        heap = float(n + top + 2 * (got_in * (top.bit_length() - 1) + emptied))
    halving, halving_rounds = _halving(n, k, opponents)
    passes = min(top, n - 1)
    exact = "none unless transitive, then exact"
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
            "that of degree among the remaining items, which are likely the right ones",
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
    """Mean number of comparisons of a binary search for one of ``leaves`` gaps."""
    whole = leaves.bit_length() - 1
    return whole + 2 - 2 ** (whole + 1) / leaves


def _halving(n: int, k: int | None, opponents: int) -> tuple[int, int]:
    last = last_pool(n, k, opponents)
    calls = rounds = 0
    while n > last:
        calls += n * (opponents // 2)
        rounds += 1
        n = halved(n, last)
    return calls + n * (n - 1) // 2, rounds + (n > 1)


# Above this many items "auto" does not fit ratings of pairs, whose time is cubic.
_RATED = 2000


def make_method(
    ranker: Any, items: Any, keys: list[Hashable], rng: np.random.Generator
) -> tuple[Method | Rating, float]:
    """The method of a ranker, and its expected number of calls.

    ``keys`` is empty for a computed preference.
    """
    name, k, n = method_name(ranker, len(items)), ranker.top_k, len(items)
    if name == "rating" or isinstance(ranker.preference, Choice):
        return _rating(ranker, items, keys, rng, name)
    expected = call_plan(n, k, opponents=ranker.opponents)[name].calls if n else 0.0
    expected *= (ranker.repeats or 1) << ranker.both_orders
    make: dict[str, Callable[[], Method]] = {
        "quicksort": lambda: QuickSort(
            np.array([n]), rng, top_k=k, sample=ranker.decide == "sample"
        ),
        "degree": lambda: Degree(n, rng),
        "halving": lambda: Halving(n, rng, top_k=k, opponents=ranker.opponents),
        "insertion": lambda: Insertion(n, top_k=k),
        "heap": lambda: Heap(n, top_k=k),
        "sliding": lambda: Sliding(n, top_k=k),
    }
    return make[name](), expected


def method_name(ranker: Any, n: int) -> str:
    """Name of the method, with "auto" resolved."""
    if ranker.method != "auto":
        return str(ranker.method)
    sure = ranker.confidence is not None and n <= _RATED
    if ranker.top_k is not None and not sure:
        return "halving"
    if sure or isinstance(ranker.preference, Choice):
        return "rating"
    called = as_indexed(ranker.preference, n) is None
    noisy = ranker.noise is not None or (ranker.max_calls is not None and called)
    return "rating" if noisy and ranker.noise != 0 and n <= _RATED else "quicksort"


def _rating(
    ranker: Any, items: Any, keys: list[Hashable], rng: np.random.Generator, name: str
) -> tuple[Rating, float]:
    n, judge = len(items), ranker.preference
    first: dict[Hashable, int] = {}
    same = np.array([first.setdefault(key, k) for k, key in enumerate(keys)] or range(n), np.intp)
    limit = max(n * (n - 1) // 2, 20 * n) if ranker.max_calls is None else None
    confidence = 0.95 if limit is not None and ranker.confidence is None else ranker.confidence
    params: dict[str, Any] = {
        "top_k": ranker.top_k,
        "confidence": confidence,
        "prior": prior_scores(ranker.prior, items),
        "limit": limit,
    }
    expected = float(ranker.max_calls if limit is None else limit)
    if isinstance(judge, Choice):
        if name == "halving":
            params["confidence"] = None
        make = SetwiseHeap if name == "heap" else Groups
        return make(judge, same, rng, opponents=ranker.opponents, **params), expected
    judges = len(judge.functions) if isinstance(judge, Judges) else 1
    params |= {"repeats": ranker.repeats, "both_orders": ranker.both_orders, "batch": ranker.batch}
    return Rating(same, rng, judges=judges, **params), expected


# Of the parameters of `PreferenceRanker`.
CONSTRAINTS: dict[str, Constraint] = {
    "method": option("auto", "rating", *METHODS),
    "decide": option("majority", "sample"),
    "top_k": optional(check_count),
    "max_calls": optional(integer(0)),
    "repeats": optional(check_count),
    "batch": optional(check_count),
    "opponents": integer(2),
    "concurrency": check_count,
    "noise": optional(real(0, 0.5)),
    "confidence": optional(real(0, 1)),
}


def check_parameters(ranker: Any) -> None:
    """Raise ValueError or TypeError for invalid parameters of a `PreferenceRanker`."""
    for name, check in CONSTRAINTS.items():
        check(getattr(ranker, name), name)
    if ranker.retry is not None and not isinstance(ranker.retry, Retry):
        raise TypeError(f"retry must be None or a Retry; found {ranker.retry!r}")
    for name in ("key", "progress"):
        found = getattr(ranker, name)
        if found is not None and not callable(found):
            raise TypeError(f"{name} must be None or a function; found {found!r}")
    if ranker.opponents % 2:
        raise ValueError(f"opponents must be even; found {ranker.opponents}")
    if isinstance(ranker.preference, Choice):
        if ranker.method not in ("auto", "halving", "rating", "heap"):
            raise ValueError(
                'a judge of several items requires method "auto", "halving", "rating" or "heap"; '
                f"found {ranker.method!r}"
            )
        if ranker.method == "heap" and ranker.preference.k < 3:
            raise ValueError(
                f"a heap of groups requires k of at least 3; found {ranker.preference.k}"
            )
        if ranker.both_orders or (ranker.repeats or 1) > 1:
            raise ValueError("repeats and both_orders require a judge of pairs")
    if ranker.journal is not None and not (ranker.cache and is_called(ranker.preference)):
        raise ValueError(
            "a journal stores answers of calls; it requires cache=True, and a preference that is "
            "called, not computed"
        )
