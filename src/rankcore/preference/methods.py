"""The method of a ranker for given items, and constraints on its parameters."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from numbers import Integral, Real
from typing import Any

import numpy as np

from rankcore.preference.costs import METHODS, call_plan
from rankcore.preference.degree import Degree, Halving
from rankcore.preference.forms import Judges, as_indexed, is_called
from rankcore.preference.groups import Groups, SetwiseHeap
from rankcore.preference.quicksort import QuickSort
from rankcore.preference.rating import Rating, prior_scores
from rankcore.preference.retry import Retry
from rankcore.preference.running import Method
from rankcore.preference.sequential import Heap, Insertion, Sliding
from rankcore.preference.several import Choice

# Above this many items "auto" does not fit ratings of pairs: time grows with their cube.
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
    """The method, once "auto" has chosen."""
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


def check_parameters(ranker: Any) -> None:
    """Raise ValueError or TypeError for invalid parameters of a `PreferenceRanker`."""
    methods = ["auto", "rating", *METHODS]
    if ranker.method not in methods:
        raise ValueError(f"method must be one of {methods}; found {ranker.method!r}")
    if ranker.decide not in ("majority", "sample"):
        raise ValueError(f'decide must be "majority" or "sample"; found {ranker.decide!r}')
    least = {"top_k": 1, "max_calls": 0, "repeats": 1, "opponents": 2, "concurrency": 1, "batch": 1}
    for name, value in least.items():
        found = getattr(ranker, name)
        if found is None and name in ("top_k", "max_calls", "repeats", "batch"):
            continue
        if not isinstance(found, Integral) or isinstance(found, bool) or found < value:
            raise ValueError(f"{name} must be an integer from {value} on; found {found!r}")
    for name, most in (("noise", 0.5), ("confidence", 1.0)):
        found = getattr(ranker, name)
        real = isinstance(found, Real) and not isinstance(found, bool)
        if found is not None and not (real and 0 <= found <= most):
            raise ValueError(f"{name} must be None or a number from 0 to {most}; found {found!r}")
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
                'a judge of several items takes method "auto", "halving", "rating" or "heap"; '
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
            "a journal keeps answers of calls: it requires cache=True, and a preference that is "
            "called, not computed"
        )
