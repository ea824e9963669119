"""Methods that compare one pair at a time: insertion, a heap, and sliding passes."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from rankcore.preference.forms import Degrees, Places
from rankcore.preference.quicksort import Round

Comparison = Generator[Round, Degrees, bool]


class _OutOfCalls(Exception):
    """A pair has no answer."""


def _precedes(u: int, v: int) -> Comparison:
    """Whether item u should precede item v; False for a degree of 1/2."""
    degrees = yield np.array([u], dtype=np.intp), np.array([v], dtype=np.intp)
    if np.isnan(float(degrees[0])):
        raise _OutOfCalls
    return bool(degrees[0] > 0.5)


def _together(known: list[tuple[list[int], int]], coming: list[int]) -> Places:
    """For each item, the number of unordered items: of its list, or all for items to come."""
    together = np.zeros(sum(len(items) for items, _ in known) + len(coming), dtype=np.intp)
    together[coming] = together.size
    for items, number in known:
        together[items] = number
    return together


class Insertion:
    """Insert items by binary search into those that are ``ordered`` already.

    With a ``top_k`` only the first k are kept in order: an item is first compared with the last of
    these. At most n ceil(log2 n) pairs, one per round. If the preference is not transitive, the
    order of two items that were never compared has no guarantee.
    """

    repeats_pairs = False

    def __init__(self, n: int, *, ordered: Places | None = None, top_k: int | None = None):
        self._first = [] if ordered is None else [int(k) for k in ordered]
        inside = set(self._first)
        self._coming = [k for k in range(n) if k not in inside]
        self._size = n if top_k is None else top_k
        self._out: list[int] = self._first[self._size :]
        del self._first[self._size :]

    def rounds(self) -> Generator[Round, Degrees, None]:
        """Yield one pair at a time, a new item and one in order, and receive its degree."""
        try:
            while self._coming:
                item, low, high = self._coming[0], 0, len(self._first)
                if high == self._size and not (yield from _precedes(item, self._first[-1])):
                    self._out.append(item)
                else:
                    high -= high == self._size
                    while low < high:
                        middle = (low + high) // 2
                        if (yield from _precedes(item, self._first[middle])):
                            high = middle
                        else:
                            low = middle + 1
                    self._first.insert(low, item)
                    self._out[:0] = self._first[self._size :]
                    del self._first[self._size :]
                del self._coming[0]
        except _OutOfCalls:
            return

    def order(self) -> Places:
        """Ordered items, then those dropped from the first k, then those to come."""
        return np.array(self._first + self._out + self._coming, dtype=np.intp)

    def together(self) -> Places:
        """For each item, the number of items that it is not ordered against, with itself."""
        coming = len(self._coming)
        known = [(self._first, 1 + coming), (self._out, len(self._out) + coming)]
        return _together(known, self._coming)


class Heap:
    """Keep the k best items in a heap with the worst of them on top, then empty it.

    Without ``top_k`` it holds all items: heap sort. One pair for each item beyond the first k, at
    most 2 log2 k for each that enters the heap, and about k log2 k to order the k; one pair per
    round.
    """

    repeats_pairs = True

    def __init__(self, n: int, *, top_k: int | None = None):
        k = n if top_k is None else min(top_k, n)
        self._heap = list(range(k))
        self._coming = list(range(k, n))
        self._sorted: list[int] = []  # worst first
        self._out: list[int] = []

    def rounds(self) -> Generator[Round, Degrees, None]:
        """Yield one pair at a time, and receive its degree."""
        heap = self._heap
        try:
            for parent in reversed(range(len(heap) // 2)):
                yield from self._sink_to_the_bottom(parent)
            while self._coming:
                item = self._coming[0]
                if (yield from _precedes(item, heap[0])):
                    self._out.insert(0, heap[0])
                    heap[0] = item
                    del self._coming[0]
                    yield from self._sink(0)
                else:
                    self._out.append(item)
                    del self._coming[0]
            while len(heap) > 1:
                worst = heap[0]
                heap[0] = heap.pop()
                self._sorted.append(worst)
                yield from self._sink_to_the_bottom(0)
            self._sorted += heap
            heap.clear()
        except _OutOfCalls:
            return

    def order(self) -> Places:
        """Items of the heap, then those taken from it, in order."""
        # A parent in the heap is worse than its children, so the last ones come first.
        known = self._heap[::-1] + self._sorted[::-1]
        return np.array(known + self._out + self._coming, dtype=np.intp)

    def together(self) -> Places:
        """For each item, the number of items that it is not ordered against, with itself."""
        coming = len(self._coming)
        known = [(part, len(part) + coming) for part in (self._heap, self._out)]
        return _together([*known, (self._sorted, 1)], self._coming)

    def _sink(self, place: int) -> Generator[Round, Degrees, None]:
        """Move the item at a place below children that are worse.

        For a new item, which likely stays near the top.
        """
        heap, item = self._heap, self._heap[place]
        while (child := 2 * place + 1) < len(heap):
            child += yield from self._second_is_worse(child)
            if not (yield from _precedes(item, heap[child])):
                return
            heap[place], heap[child] = heap[child], item
            place = child

    def _sink_to_the_bottom(self, place: int) -> Generator[Round, Degrees, None]:
        """Move the item at a place to the bottom along the worse children, then up to its place.

        For an item from the bottom (Floyd, 1964): this takes about half as many pairs, and one
        wrong answer does not leave the item far above its place.
        """
        heap, top, item = self._heap, place, self._heap[place]
        while (child := 2 * place + 1) < len(heap):
            child += yield from self._second_is_worse(child)
            heap[place], heap[child] = heap[child], item
            place = child
        while place > top:
            parent = (place - 1) // 2
            if not (yield from _precedes(heap[parent], item)):
                return
            heap[place], heap[parent] = heap[parent], item
            place = parent

    def _second_is_worse(self, child: int) -> Comparison:
        """Whether the second child exists and is worse than the first."""
        heap = self._heap
        if child + 1 == len(heap):
            return False
        return (yield from _precedes(heap[child], heap[child + 1]))


class Sliding:
    """Passes from the bottom to the top that swap neighbours; each puts one more item in its place.

    The sliding windows of pairwise ranking prompting (Qin et al., 2024). A pass starts two steps
    after the previous one, so that passes run in parallel with the same result as sequentially.
    There are ``top_k`` passes (None: n - 1, which is bubble sort), with k (n - 1) - k (k - 1) / 2
    pairs in n + k - 2 rounds, minus repeated pairs.
    """

    repeats_pairs = True

    def __init__(self, n: int, *, top_k: int | None = None):
        self._order: Places = np.arange(n)
        self._passes = max(0, n - 1 if top_k is None else min(top_k, n - 1))
        self._done = 0

    def rounds(self) -> Generator[Round, Degrees, None]:
        """Yield the current neighbours of the passes, upper first, and receive their degrees."""
        order, n = self._order, self._order.size
        for step in range(n + self._passes - 2 if self._passes else 0):
            passes = np.arange(self._passes)
            lower = n - 1 - (step - 2 * passes)
            lower = lower[(lower < n) & (lower > passes)]
            degrees = yield order[lower - 1], order[lower]
            with np.errstate(invalid="ignore"):
                swapped = lower[degrees < 0.5]  # an unanswered pair stays as it is
            order[swapped - 1], order[swapped] = order[swapped], order[swapped - 1]
            if np.isnan(degrees.astype(np.float64)).any():
                return
            # Pass p ends with the pair at places p and p + 1.
            self._done = int(np.count_nonzero(n - 1 - (step - 2 * passes) <= passes + 1))
        self._done = self._passes

    def order(self) -> Places:
        """Items in the current order."""
        return self._order

    def together(self) -> Places:
        """For each item, the number of items not yet in their places."""
        n = self._order.size
        together = np.ones(n, dtype=np.intp)
        if self._done < n - 1:
            together[self._order[self._done :]] = n - self._done
        return together
