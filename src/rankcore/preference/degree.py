"""Sort by degree: all pairs, or successive halving by random opponents."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore.preference.forms import Degrees, Indexed, Places, as_degrees, as_matrix
from rankcore.preference.quicksort import Round

# Items that remain for each of the top k before their last round.
FINALISTS = 4
# Degrees per block: small enough for a cache, large enough to amortise the calls.
_BLOCK = 1 << 18


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
        """Take the degrees of all pairs, NaN for those without an answer."""
        i, j = np.triu_indices(self._means.size, 1)
        if self._shuffled is not None:
            # Added in the same order, so that equal sums stay equal.
            unshuffled = np.empty_like(degrees)
            unshuffled[self._shuffled] = degrees
            degrees = unshuffled
        self._means, _ = mean_degrees(i, j, degrees, self._means.size)
        self._answered = True

    def order(self) -> Places:
        """Return the items by descending mean degree; ties in input order."""
        return np.argsort(-self._means, kind="stable")


class Halving:
    """Repeatedly sort by the degree in a sample of pairs and drop the worse half; then all pairs.

    In each round but the last, each item is compared with ``opponents`` random others (an even
    number), so that its mean degree estimates that against all remaining items. When `FINALISTS`
    items remain for each of the ``top_k`` items (None: all), all pairs are compared. These are the
    eliminations of active ranking (Heckel, Shah, Ramchandran and Wainwright, 2019) by the schedule
    of sequential halving (Karnin, Koren and Somekh, 2013).
    """

    def __init__(
        self, n: int, rng: np.random.Generator, *, top_k: int | None = None, opponents: int = 8
    ):
        self._rng, self._opponents = rng, opponents
        self._last = last_pool(n, top_k, opponents)
        self._order: Places = np.arange(n)
        self._in_pool = n
        self._finished = n < 2
        self._round = self._next_round()

    def pending(self) -> Round | None:
        """Return the pairs of the current round; None after the last one."""
        return self._round

    def receive(self, degrees: Degrees) -> None:
        """Take the degrees of the current round, NaN for pairs without an answer."""
        assert self._round is not None
        i, j = self._round
        means, _ = mean_degrees(i, j, degrees, self._order.size)
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
        shifted = [np.roll(seats, -d) for d in range(1, self._opponents // 2 + 1)]
        return np.tile(seats, self._opponents // 2), np.concatenate(shifted)


def last_pool(n: int, top_k: int | None, opponents: int) -> int:
    """Return the number of items that remain when `Halving` compares all pairs."""
    return n if top_k is None else min(n, max(FINALISTS * top_k, opponents + 1))


def halved(m: int, last: int) -> int:
    """Return the number of m items that remain after a round of `Halving`."""
    return max((m + 1) // 2, last)


def mean_degrees(
    i: Places, j: Places, degrees: Degrees, n: int
) -> tuple[NDArray[np.float64], Places]:
    """Return the mean degree of each item over answered pairs, and their number.

    The mean of no pairs is 1/2.
    """
    values = degrees.astype(np.float64)
    answered = ~np.isnan(values)
    if not answered.all():
        i, j, values = i[answered], j[answered], values[answered]
    sums = np.bincount(i, values, n) + np.bincount(j, 1.0 - values, n)
    counts = np.bincount(i, minlength=n) + np.bincount(j, minlength=n)
    means = np.divide(sums, counts, out=np.full(n, 0.5), where=counts > 0)
    return means, counts.astype(np.intp)


def computed_degrees(preference: Any, n: int) -> NDArray[np.float64]:
    """Return the sums of the degrees of each of n items against all others.

    Each pair is computed once. Of a matrix, the row of the earlier item of a pair is used.
    O(n^2), in cache-sized blocks of rows.
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
            if part.size and not (part.min() >= 0 and part.max() <= 1):  # NaN is neither
                as_degrees(part.ravel(), part.size)
        sums[start:end] += upper.sum(axis=1) + np.arange(height) - upper.sum(axis=0)
        if end < n:
            doubles = beside.astype(np.float64, copy=False)
            sums[start:end] += doubles.sum(axis=1)
            sums[end:] += height - doubles.sum(axis=0)
    return sums
