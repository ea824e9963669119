"""Samplers that ask in rounds: QuickSort, all pairs by degree, and halving."""

from __future__ import annotations

from collections.abc import Hashable
from copy import deepcopy
from typing import Any, Literal, Protocol

import numpy as np

from rankcore._core.numbers import Floats
from rankcore._core.params import check_count, check_flag, check_integer, check_option
from rankcore.preference.comparisons import Comparison
from rankcore.preference.degree import Degree, Halving
from rankcore.preference.forms import Degrees, Items, Places
from rankcore.preference.quicksort import QuickSort, Round
from rankcore.preference.samplers import Sampler

# Comparisons that are made at a time.
_QUEUED = 256


class Method(Protocol):
    """An order from rounds of pairs."""

    def pending(self) -> Round | None:
        """Return the pairs of the current round; None after the last one."""

    def receive(self, degrees: Degrees) -> None:
        """Take the degrees of the current round; NaN means that no more answers will follow."""

    def order(self) -> Places:
        """Return all items, in the order known so far."""


class RoundSampler(Sampler):
    """Sampler by a method of the theory, whose rounds each need the answers to the one before.

    See `QuickSortSampler`, `DegreeSampler` and `HalvingSampler`; `ratings` and `uncertainty` are
    those of a `Sampler` that was told the same answers. The degree of a pair is the mean of its
    answers. An abstention counts as 1/2.
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
        self._known: dict[tuple[int, int], float] = {}  # degrees of pairs of earlier rounds
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
        if self._open and self._told_answers.any():
            degrees = self._degrees()
            if not np.isnan(degrees).all():
                method = deepcopy(self._method)
                method.receive(degrees)
                return method.order()
        return self._method.order()

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
        return not self._open and (confidence is None or super().done(confidence))

    def _enough(self, n: int | None, found: int) -> bool:
        return False

    def _begin(self) -> None:
        """Start the current round of the method; known pairs are not asked again."""
        while (pairs := self._method.pending()) is not None:
            degrees = np.array(
                [
                    self._known.get(pair, np.nan)
                    for pair in zip(pairs[0].tolist(), pairs[1].tolist(), strict=True)
                ],
                dtype=np.float64,
            )
            if np.isnan(degrees).any():
                break
            self._method.receive(degrees)
        self._open = pairs is not None
        i, j = pairs if pairs is not None else (np.empty(0, np.intp), np.empty(0, np.intp))
        known = np.full(i.size, np.nan) if pairs is None else degrees
        # The order shown is random, so that it tells nothing about the items.
        self._turned = self._rng.random(i.size) < 0.5
        self._first, self._second = np.where(self._turned, j, i), np.where(self._turned, i, j)
        asked = np.isnan(known)
        self._sums = np.where(asked, 0.0, np.where(self._turned, 1 - known, known))
        self._told_answers = np.where(asked, 0, 1)
        self._left = np.where(asked, self._repeats << self._both_orders, 0)
        self._asked_rows = np.flatnonzero(asked)
        self._n_queued = 0
        shown = zip(self._first.tolist(), self._second.tolist(), strict=True)
        self._rows = {pair: row for row, pair in enumerate(shown)}

    def _degrees(self) -> Floats:
        """Mean degrees of the round, NaN for pairs without all of their answers."""
        with np.errstate(invalid="ignore", divide="ignore"):
            means = self._sums / self._told_answers
        means[self._told_answers == 0] = 0.5
        means[self._left > 0] = np.nan
        return np.where(self._turned, 1 - means, means)

    def _plan(self) -> bool:
        """Queue the next calls of the round; False if its answers are needed first."""
        n_calls = self._asked_rows.size * (self._repeats << self._both_orders)
        part = range(self._n_queued, min(n_calls, self._n_queued + _QUEUED))
        self._n_queued = part.stop
        for call in part:
            repeat, index = divmod(call, self._asked_rows.size)
            row = self._asked_rows[index]
            u, v = int(self._first[row]), int(self._second[row])
            turned = repeat >= self._repeats
            self._queue.append(self._comparison((v, u) if turned else (u, v), None))
        return len(part) > 0

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
        row, turned = self._rows.get((u, v)), False
        if row is None:
            row, turned = self._rows.get((v, u)), True
        if row is None or self._left[row] == 0:
            return  # it was not asked in this round, and is known to the ratings only
        if answer is not None:
            self._sums[row] += 1 - float(answer) if turned else float(answer)
            self._told_answers[row] += 1
        self._left[row] -= 1
        if not self._left.any():
            degrees = self._degrees()
            i = np.where(self._turned, self._second, self._first).tolist()
            j = np.where(self._turned, self._first, self._second).tolist()
            for pair, degree in zip(zip(i, j, strict=True), degrees.tolist(), strict=True):
                self._known[pair], self._known[pair[::-1]] = degree, 1 - degree
            self._method.receive(degrees)
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
