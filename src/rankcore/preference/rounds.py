"""Samplers that ask in rounds: QuickSort, all pairs by degree, and halving."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable
from copy import deepcopy
from typing import Any, Literal

import numpy as np

from rankcore._core.numbers import Floats
from rankcore._core.params import check_count, check_flag, check_integer, check_option
from rankcore.preference.comparisons import Comparison
from rankcore.preference.forms import Items, Places
from rankcore.preference.methods import Degree, Halving, Method, QuickSort
from rankcore.preference.samplers import Sampler

# Comparisons that are made at a time.
_QUEUED = 256


class RoundSampler(Sampler):
    """Sampler by a method of the theory, whose rounds each need the answers to the one before.

    See `QuickSortSampler`, `DegreeSampler` and `HalvingSampler`; `ratings` and `uncertainty` are
    those of a `Sampler` that was told the same answers. The degree of a pair is the mean of its
    answers, an abstention counts as 1/2, and answers about pairs of later rounds are kept for them.
    """

    def __init__(
        self,
        items: Items,
        *,
        top_k: int | None = None,
        repeats: int = 1,
        both_orders: bool = False,
        noise: float | None = None,
        seed: int | np.random.Generator | None = None,
    ):
        super().__init__(items, top_k=top_k, noise=noise, seed=seed)
        check_count(repeats, "repeats")
        check_flag(both_orders, "both_orders")
        self._repeats, self._both_orders = repeats, both_orders
        self._sums: dict[tuple[int, int], float] = {}  # of degrees, by the positions shown
        self._n_told: Counter[tuple[int, int]] = Counter()
        self._method = self._make(len(self.items))
        self._begin()

    def _make(self, n: int) -> Method:
        raise NotImplementedError

    def ranking(self) -> Places:
        """Return the positions of the items in the order of the method, the best first.

        Returns
        -------
        ndarray of intp, shape (n,)
            Of an unfinished round, the answers so far are used.
        """
        degrees = self._degrees()
        if np.isnan(degrees).all():
            return self._method.order()
        method = deepcopy(self._method)
        method.receive(degrees)
        return method.order()

    def done(self, confidence: float | None = None) -> bool:
        """Return whether all comparisons of the method are answered.

        Parameters
        ----------
        confidence : float, optional
            If given, the answers must also make the order as certain as this; see `Sampler.done`.

        Returns
        -------
        bool
        """
        return not self._shown_pairs and (confidence is None or super().done(confidence))

    def _enough(self, n: int | None, found: int) -> bool:
        return False

    def _begin(self) -> None:
        """Start the next round of the method that lacks answers."""
        self._calls: deque[tuple[int, int]] | None = None  # that are not queued yet
        while (pairs := self._method.pending()) is not None:
            i, j = pairs
            # The order shown is random, so that it tells nothing about the items.
            self._turned = self._rng.random(i.size) < 0.5
            first, second = np.where(self._turned, j, i), np.where(self._turned, i, j)
            self._shown_pairs = list(zip(first.tolist(), second.tolist(), strict=True))
            wanted = self._shown_pairs
            if self._both_orders:
                wanted = wanted + [(v, u) for u, v in wanted]
            # Answers that are missing; without both orders, in any order.
            self._lacks = {
                pair: lacking
                for pair in wanted
                if (lacking := self._repeats - self._count(pair)) > 0
            }
            if self._lacks:
                return
            self._method.receive(self._degrees())
        self._shown_pairs, self._lacks = [], {}
        self._turned = np.empty(0, dtype=bool)

    def _count(self, pair: tuple[int, int]) -> int:
        return self._n_told[pair] + (0 if self._both_orders else self._n_told[pair[::-1]])

    def _degrees(self) -> Floats:
        """Return the mean degrees of the round, NaN for pairs without all of their answers."""
        found = np.full(len(self._shown_pairs), np.nan)
        for k, pair in enumerate(self._shown_pairs):
            turned = pair[::-1]
            if pair in self._lacks or turned in self._lacks:
                continue
            forth, back = self._n_told[pair], self._n_told[turned]
            won, lost = self._sums.get(pair, 0.0), self._sums.get(turned, 0.0)
            if self._both_orders:
                found[k] = (won / forth + 1 - lost / back) / 2
            else:
                found[k] = (won + back - lost) / (forth + back)
        return np.where(self._turned, 1 - found, found)

    def _plan(self) -> bool:
        """Queue the next calls of the round; False if its answers are needed first."""
        if self._calls is None:
            lacks = self._lacks.items()
            self._calls = deque(
                pair for call in range(self._repeats) for pair, lacking in lacks if lacking > call
            )
        for _ in range(min(_QUEUED, len(self._calls))):
            self._queue.append(self._comparison(self._calls.popleft(), None))
        return bool(self._queue)

    def tell(self, comparison: Comparison, answer: Any, judge: Hashable = None) -> None:
        """Take the answer to a comparison; see `Sampler.tell`.

        Parameters
        ----------
        comparison : Comparison
        answer : bool, float or None
        judge : hashable, optional

        Raises
        ------
        ValueError, TypeError
            As `Sampler.tell`.
        """
        super().tell(comparison, answer, judge)
        u, v = comparison.places
        pair = (u, v)
        self._sums[pair] = self._sums.get(pair, 0.0) + (0.5 if answer is None else float(answer))
        self._n_told[pair] += 1
        if pair not in self._lacks and not self._both_orders:
            pair = (v, u)
        if pair in self._lacks:
            self._lacks[pair] -= 1
            if self._lacks[pair] == 0:
                del self._lacks[pair]
                if not self._lacks:
                    self._method.receive(self._degrees())
                    self._begin()


class QuickSortSampler(RoundSampler):
    """Sampler by QuickSort with random pivots (Ailon and Mohri, 2010).

    Parameters
    ----------
    items : sequence, length n
    top_k : int, optional
        Number of items to find. None: all.
    decide : {"majority", "draw"}
        As in `quicksort_rank`.
    repeats : int
        Answers per pair and order shown, which are averaged.
    both_orders : bool
        Whether each pair is shown in both orders: (g(u, v) + 1 - g(v, u)) / 2 removes a position
        bias.
    noise : float, optional
        As in `Sampler`, for the ratings.
    seed : int, numpy.random.Generator or None
    """

    def __init__(
        self,
        items: Items,
        *,
        top_k: int | None = None,
        decide: Literal["majority", "draw"] = "majority",
        repeats: int = 1,
        both_orders: bool = False,
        noise: float | None = None,
        seed: int | np.random.Generator | None = None,
    ):
        check_option(decide, "decide", ("majority", "draw"))
        self._decide = decide
        super().__init__(
            items, top_k=top_k, repeats=repeats, both_orders=both_orders, noise=noise, seed=seed
        )

    def _make(self, n: int) -> Method:
        sizes = np.array([n], dtype=np.intp)
        return QuickSort(sizes, self._rng, top_k=self._top_k, draw=self._decide == "draw")


class DegreeSampler(RoundSampler):
    """Sampler of all pairs, in random order; the ranking is by mean degrees.

    Parameters
    ----------
    items : sequence, length n
    top_k : int, optional
    repeats : int
    both_orders : bool
    noise : float, optional
    seed : int, numpy.random.Generator or None
        As in `QuickSortSampler`.
    """

    def _make(self, n: int) -> Method:
        return Degree(n, self._rng)


class HalvingSampler(RoundSampler):
    """Sampler for the first k: the worse half by a few random pairs is dropped, then all pairs.

    Parameters
    ----------
    items : sequence, length n
    top_k : int, optional
    opponents : int
        Comparisons of each item per round; an even number.
    repeats : int
    both_orders : bool
    noise : float, optional
    seed : int, numpy.random.Generator or None
        As in `QuickSortSampler`.
    """

    def __init__(
        self,
        items: Items,
        *,
        top_k: int | None = None,
        opponents: int = 8,
        repeats: int = 1,
        both_orders: bool = False,
        noise: float | None = None,
        seed: int | np.random.Generator | None = None,
    ):
        check_opponents(opponents)
        self._opponents = opponents
        super().__init__(
            items, top_k=top_k, repeats=repeats, both_orders=both_orders, noise=noise, seed=seed
        )

    def _make(self, n: int) -> Method:
        return Halving(n, self._rng, top_k=self._top_k, opponents=self._opponents)


def check_opponents(opponents: Any, name: str = "opponents") -> None:
    """Raise unless the number of opponents is an even number >= 2."""
    check_integer(opponents, name, 2)
    if opponents % 2:
        raise ValueError(f"{name} must be an even number >= 2; found {opponents}")
