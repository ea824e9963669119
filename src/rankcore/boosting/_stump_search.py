"""Search for the best stump in all columns, or only in those whose bounds allow it.

The result is the same: bounds only rule columns out, and the edge of a chosen column is always
computed from the current weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankcore._core.threads import Threads
from rankcore._ext import normalizer_search, stumps
from rankcore._ext.listed_weights import ListedWeights
from rankcore._ext.pair_weights import LabelWeights
from rankcore.boosting._binning import Bins

# Edges are of weights that sum to 1. Bounds are sums of thousands of rounded numbers, with an error
# of at most 1e-13 before they are recomputed. Only columns below the best by this are ruled out.
MARGIN = 1e-10


class Stump(NamedTuple):
    """Fires in ``bin`` of a column and above and, if ``side``, where the value is missing."""

    feature: int
    bin: int
    side: int
    edge: float


class Search:
    """Search of all columns in each round.

    O(entries) per round, divided by the number of threads, with one addition per entry.
    """

    # Weights of each label in each column, if the search needs them: winning label, losing label.
    _masses: NDArray[np.float64] | None = None
    _n_winning = 0

    def __init__(self, binning: Bins, n_jobs: int) -> None:
        self.binning, self.n_jobs = binning, n_jobs
        d = binning.n_bins.size
        self._all = np.arange(d, dtype=np.int32)
        self._room = max(int(binning.n_bins.max()) + 1, stumps.CODES)
        self._edges = np.zeros(d)
        self._bins = np.full(d, -1, dtype=np.int32)
        self._sides = np.zeros(d, dtype=np.uint8)
        # Columns of wide codes are read one by one.
        lanes = stumps.LANES if self._room == stumps.CODES else 1
        self._scratch = [np.empty(lanes * self._room) for _ in range(n_jobs)]
        self._threads = Threads(n_jobs)

    def close(self) -> None:
        """Shut down the threads."""
        self._threads.close()

    def best(self, potentials: NDArray[np.float64]) -> Stump:
        """The stump of maximum |edge|; ties go to the first feature, then highest threshold."""
        self._look(potentials, self._all)
        return self._stump(int(np.abs(self._edges).argmax()))

    def follow(self, stump: Stump, changed: NDArray[np.uint8], by: float) -> None:
        """Update cached sums after a round."""

    def renew(self) -> None:
        """Discard cached sums after the weights are rescaled."""

    def _look(self, potentials: NDArray[np.float64], features: NDArray[np.int32]) -> None:
        """Find the best stump of each of some columns."""
        if not features.size:
            return
        parts = self._split(features)
        self._threads.map(
            lambda job: self._evaluate(potentials, parts[job], job), range(len(parts))
        )

    def _evaluate(
        self, potentials: NDArray[np.float64], features: NDArray[np.int32], job: int
    ) -> None:
        n = features.size
        edges, bins, sides = np.empty(n), np.empty(n, np.int32), np.empty(n, np.uint8)
        masses = None if self._masses is None else np.empty((2, n))
        stumps.evaluate(
            self.binning.columns,
            potentials,
            features,
            self._scratch[job],
            edges,
            bins,
            sides,
            self._n_winning,
            masses,
        )
        self._edges[features], self._bins[features], self._sides[features] = edges, bins, sides
        if self._masses is not None:
            self._masses[:, features] = masses

    def _split(self, features: NDArray[np.int32]) -> list[NDArray[np.int32]]:
        """Divide columns into parts of about equal work, at most one for each thread."""
        if self.n_jobs == 1:
            return [features]
        entries = self.binning.n_entries
        work = np.ones(features.size) if entries is None else entries[features] + 1.0
        ends = np.cumsum(work)
        targets = ends[-1] * np.arange(1, self.n_jobs) / self.n_jobs
        cuts = np.searchsorted(ends, targets)
        if entries is None:  # whole groups of columns that are read together
            cuts = cuts // stumps.LANES * stumps.LANES
        return [part for part in np.split(features, cuts) if part.size]

    def _stump(self, feature: int) -> Stump:
        return Stump(
            feature,
            int(self._bins[feature]),
            int(self._sides[feature]),
            float(self._edges[feature]),
        )


class BoundedSearch(Search):
    """Skips columns that cannot have the best stump, by the changes of potentials.

    Potentials sum to 0, so that their increases equal their decreases. No edge can have changed by
    more than the sum of increases since its column was evaluated.
    """

    def __init__(self, binning: Bins, n_jobs: int) -> None:
        super().__init__(binning, n_jobs)
        self._before: NDArray[np.float64] | None = None
        self._bounds = np.full(self._all.size, np.inf)

    def best(self, potentials: NDArray[np.float64]) -> Stump:
        """As `Search.best`."""
        if self._before is None:
            self._before = potentials.copy()
        else:
            self._before -= potentials
            self._bounds += 0.5 * np.abs(self._before, out=self._before).sum()
            self._before[:] = potentials
        bounds = self._bounds
        # Largest bounds first, as their edges may rule out the rest.
        n_first = min(stumps.LANES * self.n_jobs, bounds.size)
        first = np.sort(np.argpartition(-bounds, n_first - 1)[:n_first]).astype(np.int32)
        self._renew(potentials, first)
        rest = self._promising(float(bounds[first].max()), first)
        self._renew(potentials, rest)
        looked = np.concatenate([first, rest])
        looked.sort()
        return self._stump(int(looked[bounds[looked].argmax()]))

    def _promising(self, floor: float, seen: NDArray[np.int32]) -> NDArray[np.int32]:
        ahead = self._bounds >= floor - MARGIN
        ahead[seen] = False
        return np.flatnonzero(ahead).astype(np.int32)

    def _renew(self, potentials: NDArray[np.float64], features: NDArray[np.int32]) -> None:
        self._look(potentials, features)
        self._bounds[features] = np.abs(self._edges[features])


class NormalizerSearch(Search):
    """Search of all columns for the stump with the minimum normalizer.

    O(entries * labels of a query) per round; with listed pairs, O(entries + features * (rows +
    pairs)).
    """

    def __init__(self, binning: Bins, n_jobs: int, weights: LabelWeights | ListedWeights) -> None:
        super().__init__(binning, n_jobs)
        self._weights = weights
        self._merits = np.empty(self._all.size)
        n = binning.columns.n_rows
        self._order = [np.empty(n, dtype=np.int32) for _ in range(n_jobs)]
        self._counts = [np.empty(self._room + 2, dtype=np.int64) for _ in range(n_jobs)]
        self._scans: list[normalizer_search.LabelScan] | list[normalizer_search.PairScan]
        if isinstance(weights, LabelWeights):
            m = weights.shape(None, None, None)
            level_of = np.empty(n, dtype=np.int32)
            first, last = np.empty(m, dtype=np.int32), np.empty(m, dtype=np.int32)
            weights.shape(level_of, first, last)
            u, v, all_u, all_v = (np.empty(size) for size in (n, n, m, m))
            self._parts = [u, v, all_u, all_v]

            def scan() -> normalizer_search.LabelScan:
                zeros = np.zeros((4, m))
                touched, seen = np.empty(m, dtype=np.int32), np.zeros(m, dtype=np.uint8)
                return normalizer_search.LabelScan(
                    level_of, first, last, u, v, all_u, all_v,
                    zeros[0], zeros[1], zeros[2], zeros[3], touched, seen,
                )  # fmt: skip

            self._scans = [scan() for _ in range(n_jobs)]
        else:
            _, winners, losers = weights.listed()
            rows, others = np.concatenate([winners, losers]), np.concatenate([losers, winners])
            order = np.argsort(rows, kind="stable")
            starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
            pair = np.tile(np.arange(winners.size, dtype=np.int32), 2)
            wins = np.repeat(np.array([1, 0], dtype=np.uint8), winners.size)
            shares = np.empty(winners.size)
            self._parts = [shares]
            self._scans = [
                normalizer_search.PairScan(
                    starts,
                    others[order],
                    wins[order],
                    pair[order],
                    shares,
                    np.zeros(n, dtype=np.uint8),
                    np.zeros(n, dtype=np.uint8),
                )
                for _ in range(n_jobs)
            ]

    def best(self, potentials: NDArray[np.float64]) -> Stump:
        """The stump with the minimum normalizer; ties as in `Search.best`."""
        if isinstance(self._weights, LabelWeights):
            u, v, all_u, all_v = self._parts
            self._weights.split(u, v, all_u, all_v)
        else:
            weights, _, _ = self._weights.listed()
            np.divide(weights, weights.sum(), out=self._parts[0])
        self._look(potentials, self._all)
        return self._stump(int(self._merits.argmax()))

    def _evaluate(
        self, potentials: NDArray[np.float64], features: NDArray[np.int32], job: int
    ) -> None:
        n = features.size
        edges, merits = np.empty(n), np.empty(n)
        bins, sides = np.empty(n, np.int32), np.empty(n, np.uint8)
        normalizer_search.evaluate(
            self.binning.columns,
            self._scans[job],
            features,
            self._order[job],
            self._counts[job],
            edges,
            merits,
            bins,
            sides,
        )
        self._edges[features], self._merits[features] = edges, merits
        self._bins[features], self._sides[features] = bins, sides
