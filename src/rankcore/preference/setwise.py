"""A heap by judges that see several items: a parent and its children (Zhuang et al., 2024)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from rankcore.preference.forms import Places
from rankcore.preference.groups import Groups
from rankcore.preference.rating import Calls

# Yields a parent and its children, and receives the position of the best.
Sift = Generator[list[int], int, None]
# The same for several parents at a time.
Steps = Generator[list[list[int]], list[int], None]


class SetwiseHeap(Groups):
    """Build a heap with k - 1 children to a parent, and take the best out ``top_k`` times.

    Some n / (k - 2) calls, those of one level side by side, and log n / log (k - 1) for each item
    that is taken out. One answer decides on an item.
    """

    def __init__(self, judge: Any, same: Places, rng: np.random.Generator, **params: Any):
        super().__init__(judge, same, rng, **params)
        self._heap = list(range(self._m))
        self._sorted: list[int] = []
        self._children = judge.k - 1

    def rounds(self) -> Generator[Calls, Sequence[Any], None]:
        """Yield calls, and receive the positions that they name; as `Rating.rounds`."""
        steps = self._steps()
        groups = next(steps, None)
        while groups is not None:
            calls = [self._call(np.array(group)) for group in groups]
            answers = yield [
                (*self._distinct[list(call[:-1])].tolist(), call[-1]) for call in calls
            ]
            self._take(calls, answers)
            if any(places is None for places in answers):
                return
            best = [
                group.index(call[places[0]]) if places else 0  # no answer: the parent stays
                for group, call, places in zip(groups, calls, answers, strict=True)
            ]
            groups = _sent(steps, best)

    def order(self) -> Places:
        """The items that were taken out, and the others by their ratings."""
        ranking = self.ratings().ranking
        place = np.full(self._m, self._m)
        place[self._sorted] = np.arange(len(self._sorted))
        return ranking[np.argsort(place[self._same[ranking]], kind="stable")]

    def _steps(self) -> Steps:
        heap, wanted = self._heap, self._top_k or self._m
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
        """Let the item at a place sink below children that are better."""
        heap = self._heap
        while (first := self._children * place + 1) < len(heap):
            best = yield [heap[place], *heap[first : first + self._children]]
            if best == 0:
                return
            child = first + best - 1
            heap[place], heap[child] = heap[child], heap[place]
            place = child


def _together(sifts: list[Sift]) -> Steps:
    """Run sifts of different parts of a heap side by side."""
    groups = [(sift, group) for sift in sifts if (group := next(sift, None)) is not None]
    while groups:
        best = yield [group for _, group in groups]
        groups = [
            (sift, group)
            for (sift, _), place in zip(groups, best, strict=True)
            if (group := _sent(sift, place)) is not None
        ]


def _sent(generator: Generator[Any, Any, None], value: Any) -> Any:
    """Send a value to a generator; None if it ends."""
    try:
        return generator.send(value)
    except StopIteration:
        return None
