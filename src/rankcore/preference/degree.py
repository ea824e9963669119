"""Sort by degree: all pairs, or those of random opponents until few items are left."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore.preference.forms import Degrees, Indexed, Places, as_degrees, as_matrix
from rankcore.preference.quicksort import Round

# Degrees computed at a time: few enough for a cache, and enough to pay for the calls.
_BLOCK = 1 << 18
_BITS = {
    np.dtype(np.float64): (np.uint64, np.float64(1).view(np.uint64)),
    np.dtype(np.float32): (np.uint32, np.float32(1).view(np.uint32)),
}


class Degree:
    """All pairs in one round; items in the order of their mean degrees.

    With ``rng`` the pairs are shuffled, so that those which a budget allows are a fair sample.
    They take 24 bytes each, 32 if they are shuffled.
    """

    repeats_pairs = False

    def __init__(self, n: int, rng: np.random.Generator | None = None):
        self._rng = rng
        self._means = np.full(n, 0.5)
        self._unanswered = np.full(n, n - 1)

    def rounds(self) -> Generator[Round, Degrees, None]:
        """Yield all pairs, and receive their degrees."""
        n = self._means.size
        if n < 2:
            return
        i, j = np.triu_indices(n, 1)
        if self._rng is None:
            degrees = yield i, j
        else:
            shuffled = self._rng.permutation(i.size)
            answers = yield i[shuffled], j[shuffled]
            # Added in one order, sums that are equal stay so.
            degrees = np.empty_like(answers)
            degrees[shuffled] = answers
        self._means, counts = mean_degrees(i, j, degrees, n)
        self._unanswered = n - 1 - counts

    def order(self) -> Places:
        """The items, those with the largest mean first; ties as they came."""
        return np.argsort(-self._means, kind="stable")

    def together(self) -> Places:
        """For each item, one more than the comparisons with it that were not made."""
        return self._unanswered + 1


class Halving:
    """Sort by the degree in a sample of pairs, drop the worse half, and again; then all pairs.

    In each round but the last, each item meets as many random others (``opponents``, an even
    number), so that its mean degree estimates that against all that are left. When ``finalists``
    are left for each of the ``top_k`` items (None: all), all pairs are compared. These are the
    eliminations of active ranking (Heckel, Shah, Ramchandran and Wainwright, 2019) by the schedule
    of sequential halving (Karnin, Koren and Somekh, 2013).
    """

    repeats_pairs = True

    def __init__(
        self,
        n: int,
        rng: np.random.Generator,
        *,
        top_k: int | None = None,
        opponents: int = 8,
        finalists: int = 4,
    ):
        self._rng = rng
        self._opponents = opponents
        self._last = last_pool(n, top_k, opponents, finalists)
        self._order: Places = np.arange(n)
        self._in_pool = n
        self._together: Places = np.full(n, n)

    def rounds(self) -> Generator[Round, Degrees, None]:
        """Yield pairs of items that are left, and receive their degrees."""
        while self._in_pool > self._last:
            m = self._in_pool
            seats = self._rng.permutation(self._order[:m])
            i = np.tile(seats, self._opponents // 2)
            j = np.concatenate([np.roll(seats, -d) for d in range(1, self._opponents // 2 + 1)])
            degrees = yield i, j
            self._sort_pool(i, j, degrees)
            left = halved(m, self._last)
            self._together[self._order[left:m]] = m - left
            self._together[self._order[:left]] = left
            self._in_pool = left
        pool = self._order[: self._in_pool]
        if pool.size < 2:
            self._together[pool] = 1
            return
        first, second = np.triu_indices(pool.size, 1)
        i, j = pool[first], pool[second]  # copies: the pool is sorted in place
        degrees = yield i, j
        self._sort_pool(i, j, degrees)
        answered = ~np.isnan(degrees)
        both = np.concatenate([i[answered], j[answered]])
        met = np.bincount(both, minlength=self._order.size)
        self._together[pool] = pool.size - met[pool]

    def order(self) -> Places:
        """The items that are left first, then those that were dropped, the last ones first."""
        return self._order

    def together(self) -> Places:
        """For each item, how many are left, or were dropped with it, and not compared with it."""
        return self._together

    def _sort_pool(self, i: Places, j: Places, degrees: Degrees) -> None:
        means, _ = mean_degrees(i, j, degrees, self._order.size)
        pool = self._order[: self._in_pool]
        self._order[: self._in_pool] = pool[np.argsort(-means[pool], kind="stable")]


def last_pool(n: int, top_k: int | None, opponents: int, finalists: int) -> int:
    """How many items are left when `Halving` compares all pairs."""
    k = n if top_k is None else top_k
    return min(n, max(finalists * k, opponents + 1))


def halved(m: int, last: int) -> int:
    """How many of m items are left after a round of `Halving`."""
    return max((m + 1) // 2, last)


def mean_degrees(
    i: Places, j: Places, degrees: Degrees, n: int
) -> tuple[NDArray[np.float64], Places]:
    """Mean degree of each item in the pairs with an answer, 1/2 without any, and their number."""
    values = degrees.astype(np.float64)
    answered = ~np.isnan(values)
    if not answered.all():
        i, j, values = i[answered], j[answered], values[answered]
    sums = np.bincount(i, values, n) + np.bincount(j, 1.0 - values, n)
    counts = np.bincount(i, minlength=n) + np.bincount(j, minlength=n)
    means = np.divide(sums, counts, out=np.full(n, 0.5), where=counts > 0)
    return means, counts.astype(np.intp)


def computed_degrees(preference: Any, n: int) -> NDArray[np.float64]:
    """Sums of the degrees of each of n items against all others, each pair computed once.

    A matrix is read for the earlier item of a pair. O(n^2) in blocks of rows that fit a cache.
    """
    sums = np.zeros(n)
    rows = max(1, _BLOCK // max(n, 1))
    matrix = None if isinstance(preference, Indexed) else as_matrix(preference, n)
    later_than = np.triu(np.ones((min(rows, n),) * 2, dtype=bool), 1)
    for start in range(0, n, rows):
        end = min(start + rows, n)
        height = end - start
        if matrix is not None:
            corner, beside = matrix[start:end, start:end], matrix[start:end, end:]
        else:
            i = np.repeat(np.arange(start, end), n - start)
            j = np.tile(np.arange(start, n), height)
            values = np.zeros(i.size)
            later = j > i
            values[later] = preference.degrees(i[later], j[later])
            block = values.reshape(height, n - start)
            corner, beside = block[:, :height], block[:, height:]
        upper = np.where(later_than[:height, :height], corner, np.float64(0))
        for part in (beside, upper) if matrix is not None else ():
            _check_block(part)
        sums[start:end] += upper.sum(axis=1) + np.arange(height) - upper.sum(axis=0)
        if end < n:
            doubles = beside.astype(np.float64, copy=False)
            sums[start:end] += doubles.sum(axis=1)
            sums[end:] += height - doubles.sum(axis=0)
    return sums


def _check_block(block: NDArray[Any]) -> None:
    """Raise for degrees that are not in [0, 1], at little more than the cost of reading them."""
    if block.size == 0 or block.dtype.kind == "b":
        return
    if block.dtype in _BITS:
        # From 0 to 1 floats are ordered as their bits; those of others, NaN too, are larger.
        bits, one = _BITS[block.dtype]
        if block.view(bits).max() <= one:
            return
    if not (block.min() >= 0 and block.max() <= 1):
        as_degrees(block.ravel(), block.size)
