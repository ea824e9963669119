"""Methods for judges of several items: group tournaments, halving, and a heap."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from math import ceil
from typing import Any

import numpy as np

from rankcore._core.numbers import Floats
from rankcore.preference.degree import FINALISTS
from rankcore.preference.forms import Choice, Order, Places
from rankcore.preference.plackett_luce import Choices, Posterior
from rankcore.preference.rating import Calls, Rating

# Yields a parent and its children, and receives the position of the best.
Sift = Generator[list[int], int, None]
# The same for several parents in parallel.
Steps = Generator[list[list[int]], list[int], None]


class Groups(Rating):
    """Compare groups of items with similar sampled ratings; for top k, halve repeatedly.

    The worse half is dropped when each item has met about twice ``opponents`` others (as those of
    one call share its error), or six times ``opponents`` if the judge names only the best of a
    group, until `FINALISTS` items remain for each of the top k.
    """

    def __init__(
        self,
        judge: Choice,
        same: Places,
        rng: np.random.Generator,
        opponents: int = 8,
        **params: Any,
    ):
        super().__init__(same, rng, **params)
        self._k = min(judge.k, self._m)
        met = opponents / max(1, self._k - 1)
        self._best_only = not isinstance(judge, Order)
        self._passes = 3 * ceil(met) if self._best_only else ceil(2 * met)
        self._pool = np.arange(self._m)
        last = self._m if self.top_k is None else max(FINALISTS * self.top_k, self._k)
        self._last_pool = min(self._m, last)
        self._passes_left = self._passes
        self._answers: list[tuple[int, ...]] = []
        self._repeat: dict[tuple[int, ...], int] = {}

    def order(self) -> Places:
        """Items of the pool, then the dropped ones."""
        ranking = super().order()
        if self._pool.size == self._m:
            return ranking
        left = np.zeros(self._m, dtype=bool)
        left[self._pool] = True
        inside = left[self._same[ranking]]
        return np.concatenate([ranking[inside], ranking[~inside]])

    def _next(self) -> Calls:
        if self.top_k is not None and self._passes_left == 0:
            if self._pool.size <= self._last_pool:
                return []
            strengths = self.ratings()._posterior.theta[self._pool]
            left = max((self._pool.size + 1) // 2, self._last_pool)
            self._pool = self._pool[np.argsort(-strengths, kind="stable")[:left]]
            self._passes_left = self._passes * (3 if left == self._last_pool else 1)
        self._passes_left = max(0, self._passes_left - 1)
        return self._tournament()

    def _tournament(self) -> Calls:
        """Groups of similarly rated items, which partition the pool if k divides its size."""
        size, drawn = min(self._k, self._pool.size), self._draw()
        if self._best_only and size > self._pool.size // 2:
            # The second best is found only where it does not meet the best: in smaller, random
            # groups.
            size = max(2, self._pool.size // 2)
            drawn = np.asarray(self.rng.random(self._m))
        pool = self._pool[np.argsort(-drawn[self._pool], kind="stable")]
        calls: Calls = []
        for start in range(0, pool.size, size):
            group = pool[min(start, pool.size - size) :][:size]
            calls.append(self._call(group))
        return calls

    def _call(self, group: Places) -> tuple[int, ...]:
        """A call with some items, in random order."""
        shown = tuple(self.rng.permutation(group).tolist())
        repeat = self._repeat.get(shown, 0)
        self._repeat[shown] = repeat + 1
        return (*shown, repeat)

    def _orders(self, choices: Choices, fitted: Posterior) -> None:
        """No order: only pairwise answers are compared with one."""

    def _draw(self) -> Floats:
        """Strengths drawn from the posterior, as if they were independent."""
        fitted = self.ratings()._posterior
        spread = np.sqrt(1.0 / fitted.precision())
        return np.asarray(fitted.theta + spread * self.rng.standard_normal(self._m))

    def _take(self, calls: Calls, answers: Sequence[Any]) -> None:
        for call, places in zip(calls, answers, strict=True):
            if places is not None:
                self._calls.append(call)
                self._answers.append(places)
        self._ratings = None

    def _choices(self) -> tuple[Choices, Floats]:
        rows: list[tuple[int, ...]] = []
        shown: list[int] = []
        counts = np.zeros(self._m)
        for call, places in zip(self._calls, self._answers, strict=True):
            items = call[:-1]
            counts[list(items)] += 1
            named = [items[place] for place in places]
            if self._best_only and named:
                named += [item for item in items if item != named[0]]
            stages = min(len(named) - 1, 1) if self._best_only else len(named) - 1
            for stage in range(stages):
                row = named[stage:]
                rows.append((*row, *[-1] * (self._k - len(row))))
                shown.append(row.index(items[0]) if items[0] in row else -1)
        table = np.array(rows, dtype=np.intp).reshape(-1, max(2, self._k))
        return Choices(table, np.ones(len(rows)), np.array(shown, dtype=np.intp)), counts

    def pairs(self) -> tuple[Places, Floats]:
        """Pairs ordered by answers, and shares of answers with the first item before the second."""
        items = self._choices()[0].items
        won = np.repeat(items[:, 0], items.shape[1] - 1)
        lost = items[:, 1:].ravel()
        won, lost = won[lost >= 0], lost[lost >= 0]
        low, high = np.minimum(won, lost), np.maximum(won, lost)
        keys, group = np.unique(low * self._m + high, return_inverse=True)
        wins = np.bincount(group, won == low, keys.size)
        total = np.bincount(group, minlength=keys.size)
        pairs = np.stack([keys // self._m, keys % self._m], axis=1)
        return self._distinct[pairs.astype(np.intp)], np.asarray(wins / np.maximum(total, 1))


class SetwiseHeap(Groups):
    """Build a heap with k - 1 children per node, and extract the best items (Zhuang et al., 2024).

    About n / (k - 2) calls to build, those of one level in parallel, and log n / log (k - 1) for
    each of the ``top_k`` extracted items. One answer decides each comparison.
    """

    def __init__(self, judge: Any, same: Places, rng: np.random.Generator, **params: Any):
        super().__init__(judge, same, rng, **params)
        self._heap = list(range(self._m))
        self._sorted: list[int] = []
        self._children = judge.k - 1

    def rounds(self) -> Generator[Calls, Sequence[Any], None]:
        """Yield calls, and receive the named positions, as in `Rating.rounds`."""
        steps = self._steps()
        groups = next(steps, None)
        while groups is not None:
            calls = [self._call(np.array(group)) for group in groups]
            answers = yield self._of_items(calls)
            self._take(calls, answers)
            if any(places is None for places in answers):
                return
            best = [
                group.index(call[places[0]]) if places else 0  # no answer: the parent stays
                for group, call, places in zip(groups, calls, answers, strict=True)
            ]
            groups = _sent(steps, best)

    def order(self) -> Places:
        """Extracted items, then the others by their ratings."""
        ranking = self.ratings().ranking
        place = np.full(self._m, self._m)
        place[self._sorted] = np.arange(len(self._sorted))
        return ranking[np.argsort(place[self._same[ranking]], kind="stable")]

    def _steps(self) -> Steps:
        heap, wanted = self._heap, self.top_k or self._m
        starts = [0]
        while starts[-1] < len(heap):
            starts.append(starts[-1] * self._children + 1)
        for start, stop in zip(starts[-2::-1], starts[:0:-1], strict=True):
            yield from _together([self._sift(k) for k in range(start, min(stop, len(heap)))])
        while heap and len(self._sorted) < wanted:
            self._sorted.append(heap[0])
            last = heap.pop()
            if heap and len(self._sorted) < wanted:
                heap[0] = last
                yield from _together([self._sift(0)])

    def _sift(self, place: int) -> Sift:
        """Move the item at a place below better children."""
        heap = self._heap
        while (first := self._children * place + 1) < len(heap):
            best = yield [heap[place], *heap[first : first + self._children]]
            if best == 0:
                return
            child = first + best - 1
            heap[place], heap[child] = heap[child], heap[place]
            place = child


def _together(sifts: list[Sift]) -> Steps:
    """Run sifts of different parts of a heap in parallel."""
    groups = [(sift, group) for sift in sifts if (group := next(sift, None)) is not None]
    while groups:
        best = yield [group for _, group in groups]
        groups = [
            (sift, group)
            for (sift, _), place in zip(groups, best, strict=True)
            if (group := _sent(sift, place)) is not None
        ]


def _sent(generator: Generator[Any, Any, None], value: Any) -> Any:
    """Send a value to a generator; None if it is exhausted."""
    try:
        return generator.send(value)
    except StopIteration:
        return None
