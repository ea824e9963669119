"""Cost and guarantee of each method, and the expected result for a budget by simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from rankcore._core.params import COUNT, check_count, check_integer, check_real
from rankcore.preference.forms import Degrees, Indexed, Places
from rankcore.preference.methods import OPPONENTS, halved, last_pool
from rankcore.preference.ranker import PreferenceRanker

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
        Meaning of that number. The expectation, of QuickSort, is for transitive preferences, and an
        upper bound for others.
    rounds : float
        Number of sequential batches; an upper bound of the expectation for QuickSort.
    guarantee : str
        Bound of the loss of the order, relative to that of the preference.
    """

    method: str
    calls: float
    calls_are: str
    rounds: float
    guarantee: str


def call_plan(n: int, k: int | None = None) -> dict[str, CallPlan]:
    """Return calls, rounds and guarantee of every method but "rating", for the first k of n items.

    Parameters
    ----------
    n : int
        Items, at least 1.
    k : int, optional
        Number of items to find, from the top; at least 1. None: all.

    Returns
    -------
    dict of CallPlan
        By the name of the method.

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
    check_count(n, "n")
    (COUNT | None).check(k, "k")
    top = n if k is None else min(k, n)
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n + 2))])
    halving, halving_rounds = _halving(n, k)
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
            "expected loss: if drawn, equal for two levels, else at most 2 times",
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
    )
    return {plan.method: plan for plan in plans}


def _halving(n: int, k: int | None) -> tuple[int, int]:
    last = last_pool(n, k)
    calls = rounds = 0
    while n > last:
        calls += n * (OPPONENTS // 2)
        rounds += 1
        n = halved(n, last)
    return calls + n * (n - 1) // 2, rounds + (n > 1)


@dataclass(frozen=True)
class Plan:
    """Expected order and cost of a ranking; means over simulations.

    Attributes
    ----------
    method : str
        The method, with "auto" resolved.
    calls : float
    tau : float
        Kendall's tau between the order and the true one, from -1 to 1: 1 - 2 * the share of pairs
        in the wrong order.
    tau_spread : float
        Standard deviation of tau over rankings.
    top_share : float
        Share of the true first k that are found; 1 without k.
    seconds : float
        With ``latency`` seconds for a call, ``parallel`` of them at a time.
    price : float
    """

    method: str
    calls: float
    tau: float
    tau_spread: float
    top_share: float
    seconds: float
    price: float


def plan(
    n: int,
    k: int | None = None,
    *,
    budget: int | None = None,
    noise: float = 0.1,
    repeats_itself: bool = False,
    price: float = 0.0,
    latency: float = 0.0,
    parallel: int = 1,
    simulations: int = 8,
    random_state: int | np.random.Generator | None = 0,
    **params: Any,
) -> Plan:
    """Return the expected quality, cost and time of a ranking for a budget, by simulation.

    Parameters
    ----------
    n : int
        Items, at least 2.
    k : int, optional
        Number of items to find. None: all.
    budget : int, optional
        Maximum number of calls, as ``max_calls``. None: no limit.
    noise : float
        Share of wrong answers, from 0 to 1/2.
    repeats_itself : bool
        Whether the judge gives the same answer to each call of a pair, as a language model at
        temperature 0; otherwise errors are independent.
    price, latency : float
        Price of a call, and seconds per call.
    parallel : int
        Calls in parallel.
    simulations : int
        Rankings to simulate.
    random_state : int, numpy.random.Generator or None
    **params
        Other parameters of `PreferenceRanker`, such as ``method``.

    Returns
    -------
    Plan

    Notes
    -----
    A simulated ranking of 60 items with 600 calls takes about a second, of 1,000 items with 20,000
    calls about 20 seconds.

    Examples
    --------
    >>> from rankcore.preference import plan
    >>> judge = {"noise": 0.2, "price": 0.002, "simulations": 2, "random_state": 0}
    >>> few, many = (plan(12, budget=calls, **judge) for calls in (30, 120))
    >>> few.method, few.price, few.tau < 0.7 < 0.9 < many.tau
    ('rating', 0.06, True)
    """
    check_integer(n, "n", 2)
    check_count(parallel, "parallel")
    check_count(simulations, "simulations")
    check_real(noise, "noise", 0, 0.5)
    check_real(price, "price", 0)
    check_real(latency, "latency", 0)
    params = {"top_k": k, "max_calls": budget, "noise": noise, **params}
    rng = np.random.default_rng(random_state)
    results = []
    for _ in range(simulations):
        places = rng.permutation(n)
        sizes: list[int] = []  # of the rounds
        judge = Indexed(_judge(places, noise, repeats_itself, sizes, rng), n)
        ranker = PreferenceRanker(judge, random_state=int(rng.integers(2**32)), **params)
        ranker.rank(np.arange(n))
        place_found = places[ranker.order_]
        top = 1.0 if k is None else float(np.mean(np.sort(place_found[:k]) < min(k, n)))
        rounds = sum(ceil(size / parallel) for size in sizes)
        tau = float(kendalltau(place_found, np.arange(n)).statistic)
        results.append((ranker.n_calls_, tau, top, latency * rounds))
    calls, tau, top, seconds = np.mean(results, axis=0)
    return Plan(
        method=ranker.sampler_.method,
        calls=float(calls),
        tau=float(tau),
        tau_spread=float(np.std(results, axis=0)[1]),
        top_share=float(top),
        seconds=float(seconds),
        price=float(price * calls),
    )


def _judge(
    places: Places,
    noise: float,
    repeats_itself: bool,
    sizes: list[int],
    rng: np.random.Generator,
) -> Callable[[Places, Places], Degrees]:
    """Return a simulated judge, which appends the sizes of its rounds."""
    errors = np.triu(rng.random((places.size,) * 2) < noise, 1) if repeats_itself else None

    def answers(i: Places, j: Places) -> Degrees:
        sizes.append(i.size)
        wrong = rng.random(i.size) < noise if errors is None else errors[i, j] | errors[j, i]
        return np.asarray((places[i] < places[j]) ^ wrong)

    return answers
