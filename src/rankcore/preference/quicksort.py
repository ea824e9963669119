"""Randomised QuickSort, level by level: the pairs of a level are one batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import ranges
from rankcore.preference.forms import Degrees, Places, decide

Round = tuple[Places, Places]


class QuickSort:
    """QuickSort of one or more queries in parallel (Ailon and Mohri, 2010).

    The items of all queries (of ``sizes``) are numbered consecutively and shuffled once within
    queries; parts keep that order when they are divided. The first item of a part is the pivot: it
    is uniformly random, independent of all answers so far. With ``draw`` an item goes before the
    pivot with the degree as probability, as in the theorems; otherwise if the degree is above 1/2.
    With ``top_k`` only the first k of each query are ordered.

    Expected number of pairs of n items: at most 2 (n + 1) H_n - 4 n, with equality for transitive
    preferences. Expected number of rounds: at most 4.32 ln n. Memory: about 85 bytes per item.
    """

    def __init__(
        self,
        sizes: NDArray[np.intp],
        rng: np.random.Generator,
        *,
        top_k: int | None = None,
        draw: bool = False,
    ):
        n = int(sizes.sum())
        self._rng, self._draw = rng, draw
        starts: Places = np.cumsum(sizes) - sizes
        if sizes.size == 1:
            shuffled = rng.permutation(n)
        else:
            shuffled = np.lexsort((rng.random(n), np.repeat(np.arange(sizes.size), sizes)))
        self._order: Places = shuffled.astype(np.intp)
        # Parts beyond these positions are not divided.
        limits = starts + (n if top_k is None else top_k)
        self._elements, self._sizes, self._starts, self._limits = self._settle(
            self._order.copy(), sizes, starts, limits
        )

    def pending(self) -> Round | None:
        """Return the pairs (item, pivot) of the current level; None after the last one."""
        if not self._sizes.size:
            return None
        pivots, rest = self._pivots_and_rest()
        return rest, np.repeat(pivots, self._sizes - 1)

    def receive(self, degrees: Degrees) -> None:
        """Take the degrees of the current level; after a NaN, no more levels follow."""
        pivots, rest = self._pivots_and_rest()
        unanswered = np.isnan(degrees) if degrees.dtype.kind == "f" else None
        if unanswered is not None and unanswered.any():
            self._stop(rest, pivots, degrees, unanswered)
        else:
            self._divide(rest, pivots, decide(degrees, self._rng, self._draw))

    def _pivots_and_rest(self) -> tuple[Places, Places]:
        firsts: Places = np.cumsum(self._sizes) - self._sizes
        others = np.ones(self._elements.size, dtype=bool)
        others[firsts] = False
        return self._elements[firsts], self._elements[others]

    def order(self) -> Places:
        """Return the items in the order known so far, query by query."""
        order = self._order.copy()
        order[ranges(self._starts, self._sizes)] = self._elements
        return order

    def _divide(self, rest: Places, pivots: Places, before: NDArray[np.bool_]) -> None:
        """Partition each part by its pivot."""
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
        self._elements, self._sizes, self._starts, self._limits = self._settle(
            divided, new_sizes, new_starts, np.repeat(self._limits, 2)
        )

    def _settle(
        self, elements: Places, sizes: Places, starts: Places, limits: Places
    ) -> tuple[Places, Places, Places, Places]:
        """Store finished parts; return those left to divide."""
        going_on = (sizes > 1) & (starts < limits)
        if going_on.all():
            return elements, sizes, starts, limits
        kept = np.repeat(going_on, sizes)
        done, done_sizes = elements[~kept], sizes[~going_on]
        self._order[ranges(starts[~going_on], done_sizes)] = done
        return elements[kept], sizes[going_on], starts[going_on], limits[going_on]

    def _stop(
        self, rest: Places, pivots: Places, degrees: Degrees, unanswered: NDArray[np.bool_]
    ) -> None:
        """Use the answers of an unfinished level: unanswered items stay at the pivot."""
        side = np.ones(rest.size, dtype=np.intp)
        answered = ~unanswered
        side[answered] = np.where(decide(degrees[answered], self._rng, self._draw), 0, 2)
        m = pivots.size
        part: Places = np.concatenate([np.repeat(np.arange(m), self._sizes - 1), np.arange(m)])
        key = 3 * part + np.concatenate([side, np.ones(m, dtype=np.intp)])
        by_key = np.argsort(key, kind="stable")
        sizes = np.bincount(key, minlength=3 * m)
        # Parts are in the order of their positions, as are the items in them.
        starts = np.repeat(self._starts - (np.cumsum(self._sizes) - self._sizes), 3)
        self._starts = starts + np.cumsum(sizes) - sizes
        self._sizes = sizes
        self._elements = np.concatenate([rest, pivots])[by_key]
