"""Expected quality, calls, time and price of a ranking for a budget, by simulation."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from rankcore._core.params import check_count, check_real, integer
from rankcore.preference.forms import Degrees, Indexed, Places
from rankcore.preference.methods import method_name
from rankcore.preference.ranker import PreferenceRanker


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
    """Expected quality, cost and time of a ranking for a budget, by simulation.

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

    Raises
    ------
    ValueError, TypeError
        For values out of range, or of the wrong type.

    Notes
    -----
    A simulated ranking of 60 items with 600 calls takes a quarter of a second, of 1,000 items with
    20,000 calls about a minute.

    Examples
    --------
    >>> from rankcore.preference import plan
    >>> judge = {"noise": 0.2, "price": 0.002, "simulations": 5, "random_state": 0}
    >>> few, many = (plan(30, budget=calls, **judge) for calls in (100, 600))
    >>> few.method, few.price, few.tau < 0.7 < 0.9 < many.tau
    ('rating', 0.2, True)
    """
    integer(2)(n, "n")
    check_count(parallel, "parallel")
    check_count(simulations, "simulations")
    check_real(noise, "noise", 0, 0.5)
    check_real(price, "price", 0)
    check_real(latency, "latency", 0)
    params = {"top_k": k, "max_calls": budget, "noise": noise, **params}
    rng = np.random.default_rng(random_state)
    found = []
    for _ in range(simulations):
        places = rng.permutation(n)
        judge = _Judge(places, noise, repeats_itself, rng)
        seed = int(rng.integers(2**32))
        ranker = PreferenceRanker(Indexed(judge, n), random_state=seed, **params)
        ranker.rank(np.arange(n))
        place_found = places[ranker.order_]
        top = 1.0 if k is None else float(np.mean(np.sort(place_found[:k]) < min(k, n)))
        rounds = sum(ceil(size / parallel) for size in judge.sizes)
        tau = float(kendalltau(place_found, np.arange(n)).statistic)
        found.append((ranker.n_calls_, tau, top, latency * rounds))
    calls, tau, top, seconds = np.mean(found, axis=0)
    return Plan(
        method=method_name(ranker, n),
        calls=float(calls),
        tau=float(tau),
        tau_spread=float(np.std(found, axis=0)[1]),
        top_share=float(top),
        seconds=float(seconds),
        price=float(price * calls),
    )


class _Judge:
    """A simulated judge; ``sizes`` are the sizes of its rounds."""

    def __init__(
        self, places: Places, noise: float, repeats_itself: bool, rng: np.random.Generator
    ):
        self.sizes: list[int] = []
        self._places, self._noise, self._rng = places, noise, rng
        n = places.size
        self._wrong = None
        if repeats_itself:
            wrong = np.triu(rng.random((n, n)) < noise, 1)
            self._wrong = wrong | wrong.T

    def __call__(self, i: Places, j: Places) -> Degrees:
        if i.size:
            self.sizes.append(i.size)
        right = self._places[i] < self._places[j]
        if self._wrong is not None:
            return np.asarray(right ^ self._wrong[i, j])
        return np.asarray(right ^ (self._rng.random(i.size) < self._noise))
