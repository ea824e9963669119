"""The method of a ranker, for the items at hand."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from rankcore.preference.costs import call_plan
from rankcore.preference.degree import Degree, Halving
from rankcore.preference.forms import Judges, as_indexed
from rankcore.preference.groups import Groups
from rankcore.preference.quicksort import QuickSort
from rankcore.preference.rating import Rating, prior_scores
from rankcore.preference.running import Method
from rankcore.preference.sequential import Heap, Insertion, Sliding
from rankcore.preference.setwise import SetwiseHeap
from rankcore.preference.several import Choice

# Above this many items "auto" does not fit ratings: time grows with their cube.
_RATED = 2000


def make_method(
    ranker: Any, items: Any, keys: list[Hashable], rng: np.random.Generator
) -> tuple[Method | Rating, float]:
    """The method of a ranker, and how many calls it is expected to make.

    The keys of the items are empty for a preference that is computed.
    """
    name, k, n = method_name(ranker, len(items)), ranker.top_k, len(items)
    if name == "rating" or isinstance(ranker.preference, Choice):
        return _rating(ranker, items, keys, rng, name)
    expected = call_plan(n, k, opponents=ranker.opponents)[name].calls if n else 0.0
    expected *= (ranker.repeats or 1) << ranker.both_orders
    if name == "degree":
        return Degree(n, rng), expected
    if name == "halving":
        return Halving(n, rng, top_k=k, opponents=ranker.opponents), expected
    if name == "insertion":
        return Insertion(n, top_k=k), expected
    if name == "heap":
        return Heap(n, top_k=k), expected
    if name == "sliding":
        return Sliding(n, top_k=k), expected
    sizes = np.array([n], dtype=np.intp)
    return QuickSort(sizes, rng, top_k=k, sample=ranker.decide == "sample"), expected


def method_name(ranker: Any, n: int) -> str:
    """The method, once "auto" has chosen."""
    if ranker.method != "auto":
        return str(ranker.method)
    if ranker.top_k is not None:
        return "halving"
    if isinstance(ranker.preference, Choice):
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
