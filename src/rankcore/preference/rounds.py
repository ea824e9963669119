"""Sampler of the methods that ask in rounds: QuickSort, all pairs by degree, and halving."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from copy import deepcopy
from typing import Any, Literal

import numpy as np

from rankcore._core.numbers import Floats
from rankcore._core.params import check_count, check_flag, check_option
from rankcore.preference.comparisons import Comparison
from rankcore.preference.forms import Items, Places
from rankcore.preference.methods import Degree, Halving, Method, QuickSort
from rankcore.preference.samplers import OPEN, Sampler

Pair = tuple[int, int]


class RoundSampler(Sampler):
    """Sampler by a method of the theory, whose rounds each need the answers to the one before.

    Parameters
    ----------
    items : sequence, length n
        Any objects.
    method : {"quicksort", "degree", "halving"}
        QuickSort with random pivots (Ailon and Mohri, 2010); all pairs in random order, with the
        order of the mean degrees; or, for the first ``top_k``, dropping the worse half by a few
        random pairs of each item, again and again, before all pairs of the rest.
    top_k : int, optional
        Number of items to find. None: all.
    repeats : int
        Answers per pair and order shown, which are averaged.
    both_orders : bool
        Whether each pair is shown in both orders: (g(u, v) + 1 - g(v, u)) / 2 removes a position
        bias.
    noise : float, optional
        As in `Sampler`, for the ratings.
    seed : int, numpy.random.Generator or None

    Notes
    -----
    `ratings` and `uncertainty` are those of a `Sampler` that was told the same answers. An
    abstention counts as 1/2, and answers about pairs of later rounds are kept for them.

    Examples
    --------
    >>> from rankcore.preference import RoundSampler
    >>> sampler = RoundSampler(["fig", "pear", "banana"], method="degree", seed=0)
    >>> for comparison in sampler.ask():
    ...     first, second = comparison.items
    ...     sampler.tell(comparison, len(first) < len(second))
    >>> sampler.done(), [sampler.items[place] for place in sampler.ranking()]
    (True, ['fig', 'pear', 'banana'])
    """

    def __init__(
        self,
        items: Items,
        *,
        method: Literal["quicksort", "degree", "halving"] = "quicksort",
        top_k: int | None = None,
        repeats: int = 1,
        both_orders: bool = False,
        noise: float | None = None,
        seed: int | np.random.Generator | None = None,
    ):
        super().__init__(items, top_k=top_k, noise=noise, seed=seed)
        check_option(method, "method", ("quicksort", "degree", "halving"))
        check_count(repeats, "repeats")
        check_flag(both_orders, "both_orders")
        self.method, self._repeats, self._both_orders = method, repeats, both_orders
        self._degrees: defaultdict[Pair, list[float]] = defaultdict(list)  # by `_key`
        n = len(self.items)
        self._method: Method
        if method == "quicksort":
            self._method = QuickSort(n, self._rng, top_k=self._top_k)
        elif method == "degree":
            self._method = Degree(n, self._rng)
        else:
            self._method = Halving(n, self._rng, top_k=self._top_k)
        self._begin()

    def ranking(self) -> Places:
        """Return the positions of the items in the order of the method, the best first.

        Returns
        -------
        ndarray of intp, shape (n,)
            Pairs of an unfinished round that have no answer yet count as 1/2.
        """
        if not self._round:
            return self._method.order()
        method = deepcopy(self._method)
        method.receive(self._mean_degrees())
        return method.order()

    def done(self, confidence: float | None = None) -> bool:
        """Return whether all comparisons of the method are answered.

        Parameters
        ----------
        confidence : float, optional
            If given, the answers must also make the order as certain as this; see `Sampler.done`.
        """
        return not self._round and (confidence is None or super().done(confidence))

    def n_declined(self, confidence: float | None = None) -> int:
        """Return from how many pairs the judge abstained; 0 while there is something to ask.

        Parameters
        ----------
        confidence : float, optional
            Ignored.

        Returns
        -------
        int
            0 if they are few among the answers.
        """
        n_pairs = len(self._declined)
        return n_pairs if self.done() and n_pairs > OPEN * (n_pairs + self.n_answers) else 0

    def tell(self, comparison: Comparison, answer: Any, judge: Hashable = None) -> None:
        """Take the answer to a comparison; see `Sampler.tell`."""
        super().tell(comparison, answer, judge)
        u, v = comparison.places
        key, degree = self._key(u, v), 0.5 if answer is None else float(answer)
        self._degrees[key].append(degree if key == (u, v) else 1 - degree)
        if key in self._lacks:
            self._lacks[key] -= 1
            if self._lacks[key] == 0:
                del self._lacks[key]
                if not self._lacks:
                    self._method.receive(self._mean_degrees())
                    self._begin()

    def _key(self, u: int, v: int) -> Pair:
        """Return the order of a pair in which its answers are stored."""
        return (u, v) if self._both_orders or u < v else (v, u)

    def _begin(self) -> None:
        """Start the next round of the method that lacks answers."""
        self._queue.clear()
        while (pairs := self._method.pending()) is not None:
            self._round = list(zip(pairs[0].tolist(), pairs[1].tolist(), strict=True))
            # The order shown is random, so that it tells nothing about the items.
            turned = (self._rng.random(len(self._round)) < 0.5).tolist()
            self._to_show = [
                (v, u) if turn else (u, v) for (u, v), turn in zip(self._round, turned, strict=True)
            ]
            if self._both_orders:
                self._to_show += [(v, u) for u, v in self._to_show]
            keys = [self._key(u, v) for u, v in self._to_show]
            lacking = {key: self._repeats - len(self._degrees.get(key, ())) for key in keys}
            self._lacks = {key: number for key, number in lacking.items() if number > 0}
            if self._lacks:
                return
            self._method.receive(self._mean_degrees())
        self._round, self._to_show, self._lacks = [], [], {}

    def _mean_degrees(self) -> Floats:
        """Return the mean degrees of the pairs of the round; 1/2 without all of their answers."""
        return np.array([self._mean_degree(u, v) for u, v in self._round])

    def _mean_degree(self, u: int, v: int) -> float:
        keys = [(u, v), (v, u)] if self._both_orders else [self._key(u, v)]
        if any(key in self._lacks for key in keys):
            return 0.5
        total = 0.0
        for key in keys:
            degrees = self._degrees[key]
            mean = sum(degrees) / len(degrees)
            total += mean if key == (u, v) else 1 - mean
        return total / len(keys)

    def _plan(self, confidence: float | None) -> bool:
        """Queue the calls of the round; False if its answers are needed first."""
        for call in range(self._repeats):
            for pair in self._to_show:
                if self._lacks.get(self._key(*pair), 0) > call:
                    self._queue.append((pair, None))
        self._to_show = []
        return bool(self._queue)
