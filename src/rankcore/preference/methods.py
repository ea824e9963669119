"""Methods that order items by rounds of pairs: QuickSort, all pairs by degree, and halving."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import ranges
from rankcore.preference.forms import Degrees, Places, decide

Round = tuple[Places, Places]
# Of halving: comparisons of an item in a round, an even number; and items that remain for each of
# the top k before their last round.
OPPONENTS, FINALISTS = 8, 4


class Method(Protocol):
    """An order from rounds of pairs."""

    def pending(self) -> Round | None:
        """Return the pairs of the current round; None after the last one."""

    def receive(self, degrees: Degrees) -> None:
        """Take the degrees of the current round."""

    def order(self) -> Places:
        """Return all items, in the order known so far."""


def computed_order(method: Method, degrees: Callable[[Places, Places], Degrees]) -> Places:
    """Return the order of a method if a function computes the degrees of all pairs."""
    while (pairs := method.pending()) is not None:
        method.receive(degrees(pairs[0], pairs[1]))
    return method.order()


class QuickSort:
    """QuickSort of n items, level by level (Ailon and Mohri, 2010).

    Items are shuffled once; parts keep that order when they are divided. The first item of a part
    is the pivot: it is uniformly random, independent of all answers so far. With ``draw`` an item
    goes before the pivot with the degree as probability, as in the theorems; otherwise if the
    degree is above 1/2. With ``top_k`` only the first k are ordered.

    Expected number of pairs of n items: at most 2 (n + 1) H_n - 4 n, with equality for transitive
    preferences. Expected number of rounds: at most 4.32 ln n. Memory: about 85 bytes per item.
    """

    def __init__(
        self, n: int, rng: np.random.Generator, *, top_k: int | None = None, draw: bool = False
    ):
        self._rng, self._draw = rng, draw
        self._limit = n if top_k is None else top_k  # parts beyond this position are not divided
        self._order: Places = rng.permutation(n).astype(np.intp)
        self._settle(self._order.copy(), np.array([n]), np.array([0]))

    def pending(self) -> Round | None:
        """Return the pairs (item, pivot) of the current level; None after the last one."""
        if not self._sizes.size:
            return None
        pivots, rest = self._pivots_and_rest()
        return rest, np.repeat(pivots, self._sizes - 1)

    def receive(self, degrees: Degrees) -> None:
        """Take the degrees of the current level, and partition each part by its pivot."""
        pivots, rest = self._pivots_and_rest()
        before = decide(degrees, self._rng, self._draw)
        sizes, m = self._sizes - 1, pivots.size
        firsts: Places = np.cumsum(sizes) - sizes
        passed = np.cumsum(before)  # number of items before a pivot, up to and including each item
        passed_first: Places = passed[firsts] - before[firsts]
        n_before: Places = passed[firsts + sizes - 1] - passed_first
        part = np.repeat(np.arange(m), sizes)
        place = np.where(
            before,
            (firsts - passed_first - 1)[part] + passed,
            (passed_first + n_before)[part] + np.arange(rest.size) - passed,
        )
        divided = np.empty_like(rest)
        divided[place] = rest
        middle = self._starts + n_before
        self._order[middle] = pivots
        new_sizes: Places = np.stack([n_before, sizes - n_before], axis=1).ravel()
        new_starts: Places = np.stack([self._starts, middle + 1], axis=1).ravel()
        self._settle(divided, new_sizes, new_starts)

    def _pivots_and_rest(self) -> tuple[Places, Places]:
        firsts: Places = np.cumsum(self._sizes) - self._sizes
        others = np.ones(self._elements.size, dtype=bool)
        others[firsts] = False
        return self._elements[firsts], self._elements[others]

    def order(self) -> Places:
        """Return the items in the order known so far."""
        order = self._order.copy()
        order[ranges(self._starts, self._sizes)] = self._elements
        return order

    def _settle(self, elements: Places, sizes: Places, starts: Places) -> None:
        """Store finished parts, and keep those left to divide."""
        going_on = (sizes > 1) & (starts < self._limit)
        kept = np.repeat(going_on, sizes)
        self._order[ranges(starts[~going_on], sizes[~going_on])] = elements[~kept]
        self._elements, self._sizes, self._starts = (
            elements[kept],
            sizes[going_on],
            starts[going_on],
        )


class Degree:
    """Compare all pairs in one round; order items by their mean degrees.

    With ``rng`` the pairs are shuffled, so that a limited budget covers a random sample.
    """

    def __init__(self, n: int, rng: np.random.Generator | None = None):
        self._means = np.full(n, 0.5)
        self._answered = n < 2
        # Pairs take 24 bytes each, 32 if shuffled.
        self._shuffled = None if rng is None else rng.permutation(n * (n - 1) // 2)

    def pending(self) -> Round | None:
        """Return all pairs; None after their answers."""
        if self._answered:
            return None
        i, j = np.triu_indices(self._means.size, 1)
        return (i, j) if self._shuffled is None else (i[self._shuffled], j[self._shuffled])

    def receive(self, degrees: Degrees) -> None:
        """Take the degrees of all pairs."""
        i, j = np.triu_indices(self._means.size, 1)
        if self._shuffled is not None:
            # Added in the same order, so that equal sums stay equal.
            unshuffled = np.empty_like(degrees)
            unshuffled[self._shuffled] = degrees
            degrees = unshuffled
        self._means = mean_degrees(i, j, degrees, self._means.size)
        self._answered = True

    def order(self) -> Places:
        """Return the items by descending mean degree; ties in input order."""
        return np.argsort(-self._means, kind="stable")


class Halving:
    """Repeatedly sort by the degree in a sample of pairs and drop the worse half; then all pairs.

    In each round but the last, each item is compared with `OPPONENTS` random others, so that its
    mean degree estimates that against all remaining items. When `FINALISTS` items remain for each
    of the ``top_k`` items (None: all), all pairs are compared. These are the eliminations of active
    ranking (Heckel, Shah, Ramchandran and Wainwright, 2019) by the schedule of sequential halving
    (Karnin, Koren and Somekh, 2013).
    """

    def __init__(self, n: int, rng: np.random.Generator, *, top_k: int | None = None):
        self._rng = rng
        self._last = last_pool(n, top_k)
        self._order: Places = np.arange(n)
        self._in_pool = n
        self._finished = n < 2
        self._round = self._next_round()

    def pending(self) -> Round | None:
        """Return the pairs of the current round; None after the last one."""
        return self._round

    def receive(self, degrees: Degrees) -> None:
        """Take the degrees of the current round."""
        assert self._round is not None
        i, j = self._round
        means = mean_degrees(i, j, degrees, self._order.size)
        pool = self._order[: self._in_pool]
        self._order[: self._in_pool] = pool[np.argsort(-means[pool], kind="stable")]
        self._finished = self._in_pool <= self._last
        self._in_pool = halved(self._in_pool, self._last)
        self._round = self._next_round()

    def order(self) -> Places:
        """Return the remaining items, then the dropped ones, in reverse order of dropping."""
        return self._order

    def _next_round(self) -> Round | None:
        if self._finished:
            return None
        pool = self._order[: self._in_pool]
        if self._in_pool <= self._last:
            first, second = np.triu_indices(pool.size, 1)
            return pool[first], pool[second]
        seats = self._rng.permutation(pool)
        shifted = [np.roll(seats, -d) for d in range(1, OPPONENTS // 2 + 1)]
        return np.tile(seats, OPPONENTS // 2), np.concatenate(shifted)


def last_pool(n: int, top_k: int | None) -> int:
    """Return the number of items that remain when `Halving` compares all pairs."""
    return n if top_k is None else min(n, max(FINALISTS * top_k, OPPONENTS + 1))


def halved(m: int, last: int) -> int:
    """Return the number of m items that remain after a round of `Halving`."""
    return max((m + 1) // 2, last)


def mean_degrees(i: Places, j: Places, degrees: Degrees, n: int) -> NDArray[np.float64]:
    """Return the mean degree of each item over its pairs; that of no pairs is 1/2."""
    values = degrees.astype(np.float64)
    sums = np.bincount(i, values, n) + np.bincount(j, 1.0 - values, n)
    counts = np.bincount(i, minlength=n) + np.bincount(j, minlength=n)
    return np.divide(sums, counts, out=np.full(n, 0.5), where=counts > 0)
