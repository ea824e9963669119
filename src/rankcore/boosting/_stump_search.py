"""Search for the best stump in all columns, or only in those whose bounds allow it.

The result is the same: bounds only rule columns out, and the edge of a chosen column is always
computed from the current weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._core.threads import Threads
from rankcore._ext import incremental_histograms, normalizer_search, stumps
from rankcore._ext.binning import Columns
from rankcore._ext.listed_weights import ListedWeights
from rankcore._ext.pair_weights import LabelWeights
from rankcore.boosting._binning import Binning, Bins

# Edges are of weights that sum to 1. Bounds are sums of thousands of rounded numbers, with an error
# of at most 1e-13 before they are recomputed. Only columns below the best by this are ruled out.
MARGIN = 1e-10
# Rounds after which all cached sums are recomputed. They are recomputed earlier if the weight of a
# label has fallen by this factor, since sums keep the rounding errors of their largest values.
RENEW = 128
FALLEN = 100.0
# Changed rows are processed one by one if they are at most one in this number.
WALKED = 32
# Minimum entries per bin of columns whose histograms are updated.
ENTRIES_PER_BIN = 4


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
    _masses: Floats | None = None
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

    def best(self, potentials: Floats) -> Stump:
        """The stump of maximum |edge|; ties go to the first feature, then highest threshold."""
        self._look(potentials, self._all)
        return self._stump(int(np.abs(self._edges).argmax()))

    def follow(self, stump: Stump, changed: NDArray[np.uint8], by: float) -> None:
        """Update cached sums after a round."""

    def renew(self) -> None:
        """Discard cached sums after the weights are rescaled."""

    def _look(self, potentials: Floats, features: NDArray[np.int32]) -> None:
        """Find the best stump of each of some columns."""
        if not features.size:
            return
        parts = self._split(features)
        jobs = range(len(parts))
        self._threads.map(lambda job: self._evaluate(potentials, parts[job], job), jobs)

    def _evaluate(self, potentials: Floats, features: NDArray[np.int32], job: int) -> None:
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
        self._edges[features] = edges
        self._bins[features] = bins
        self._sides[features] = sides
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
        bin, side = int(self._bins[feature]), int(self._sides[feature])
        return Stump(feature, bin, side, float(self._edges[feature]))


class BoundedSearch(Search):
    """Skips columns that cannot have the best stump, by the changes of potentials.

    Potentials sum to 0, so that their increases equal their decreases. No edge can have changed by
    more than the sum of increases since its column was evaluated.
    """

    def __init__(self, binning: Bins, n_jobs: int) -> None:
        super().__init__(binning, n_jobs)
        self._before: Floats | None = None
        self._bounds = np.full(self._all.size, np.inf)

    def best(self, potentials: Floats) -> Stump:
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
        ahead = bounds >= float(bounds[first].max()) - MARGIN
        ahead[first] = False
        rest = np.flatnonzero(ahead).astype(np.int32)
        self._renew(potentials, rest)
        looked = np.concatenate([first, rest])
        looked.sort()
        return self._stump(int(looked[bounds[looked].argmax()]))

    def _renew(self, potentials: Floats, features: NDArray[np.int32]) -> None:
        self._look(potentials, features)
        self._bounds[features] = np.abs(self._edges[features])


@dataclass(frozen=True)
class PairFactors:
    """Factors of the weights of pairs, of sum 1: those of the winner and of the loser."""

    as_winner: Floats  # (n_rows,)
    as_loser: Floats  # (n_rows,)
    # (n_levels,): sums over the rows of a query with the same label.
    levels_as_winner: Floats
    levels_as_loser: Floats

    @classmethod
    def empty(cls, n_rows: int, n_levels: int) -> PairFactors:
        """Allocate the factors, which `LabelWeights.split` writes."""
        return cls(np.empty(n_rows), np.empty(n_rows), np.empty(n_levels), np.empty(n_levels))


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
            self._factors = PairFactors.empty(n, m)

            def scan() -> normalizer_search.LabelScan:
                return normalizer_search.LabelScan(
                    level_of,
                    first,
                    last,
                    self._factors.as_winner,
                    self._factors.as_loser,
                    self._factors.levels_as_winner,
                    self._factors.levels_as_loser,
                    np.zeros(m),
                    np.zeros(m),
                    np.zeros(m),
                    np.zeros(m),
                    np.empty(m, dtype=np.int32),
                    np.zeros(m, dtype=np.uint8),
                )

            self._scans = [scan() for _ in range(n_jobs)]
        else:
            _, winners, losers = weights.listed()
            rows, others = np.concatenate([winners, losers]), np.concatenate([losers, winners])
            order = np.argsort(rows, kind="stable")
            starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
            pair = np.tile(np.arange(winners.size, dtype=np.int32), 2)
            wins = np.repeat(np.array([1, 0], dtype=np.uint8), winners.size)
            self._of_pairs = np.empty(winners.size)
            others, wins, pair = others[order], wins[order], pair[order]
            self._scans = [
                normalizer_search.PairScan(
                    starts,
                    others,
                    wins,
                    pair,
                    self._of_pairs,
                    np.zeros(n, dtype=np.uint8),
                    np.zeros(n, dtype=np.uint8),
                )
                for _ in range(n_jobs)
            ]

    def best(self, potentials: Floats) -> Stump:
        """The stump with the minimum normalizer; ties as in `Search.best`."""
        if isinstance(self._weights, LabelWeights):
            self._weights.split(
                self._factors.as_winner,
                self._factors.as_loser,
                self._factors.levels_as_winner,
                self._factors.levels_as_loser,
            )
        else:
            weights, _, _ = self._weights.listed()
            np.divide(weights, weights.sum(), out=self._of_pairs)
        self._look(potentials, self._all)
        return self._stump(int(self._merits.argmax()))

    def _evaluate(self, potentials: Floats, features: NDArray[np.int32], job: int) -> None:
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
        self._edges[features] = edges
        self._merits[features] = merits
        self._bins[features] = bins
        self._sides[features] = sides


class FiringSearch(Search):
    """Updates sums by the rows where stumps fire: for sparse columns, two labels and one query.

    ``binning`` has at most 255 bins; ``factors`` are the weights of its rows, which change in each
    round. The ``n_winning`` rows of the winning label come first.

    The columns with the most entries keep histograms of weights, in at most one byte per entry of
    all columns. The edges of other columns are bounded: let P and N be the weights of the winning
    and losing rows with an entry when the best edge r of the column was computed. Since then, each
    winning weight has been multiplied by a factor in [l, g], and each losing weight by a factor in
    [l', g']. The edge of any subset of these rows, of weights p and n with p - n <= r, is now at
    most

        g p - l' n <= min(g, l') r + max(0, g - l') P,

    and n - p likewise; nor can it exceed g P or g' N.
    """

    def __init__(self, binning: Binning, factors: Floats, n_winning: int, n_jobs: int) -> None:
        super().__init__(binning, n_jobs)
        assert binning.n_entries is not None
        self._rows, self._docs = binning.rows, binning.taken
        self._factors, self._n_winning = factors, n_winning
        d = binning.n_bins.size
        self._slab = self._make_slab(binning.n_entries, factors.size)
        kept = self._all[:0] if self._slab is None else self._slab.features
        self._others = np.setdiff1d(self._all, kept)
        self._masses = np.empty((2, d))
        # When each column was last evaluated: the factors that scale the weights of each label to
        # a sum of 1, and the products of all increases and decreases of winning weights by firing.
        self._then = np.ones((4, d))
        self._rises = self._falls = 1.0
        # Further increases and decreases of each label's weights in each column since then.
        self._added, self._taken = np.zeros((2, d)), np.zeros((2, d))
        self._round = 0
        # Minimum scale of the weights of each label since all sums were recomputed.
        self._least = (np.inf, np.inf)

    def best(self, potentials: Floats) -> Stump:
        slab = self._slab
        winning = 1.0 / self._factors[: self._n_winning].sum()
        losing = 1.0 / self._factors[self._n_winning :].sum()
        renew = self._round % RENEW == 0 or self._rises > 1e100 or self._falls < 1e-100
        renew |= winning > FALLEN * self._least[0] or losing > FALLEN * self._least[1]
        self._round += 1
        self._least = min(winning, self._least[0]), min(losing, self._least[1])
        if renew:
            self._least = winning, losing
            self._rises = self._falls = 1.0
        now = np.array([winning, losing, self._rises, self._falls])
        if renew:
            if slab is not None:
                slab.fill(self._factors, self._n_winning)
            self._note(potentials, self._all, now)
            return self._stump(int(np.abs(self._edges).argmax()))
        near = np.empty(0)
        if slab is not None:
            near = slab.evaluate(self.binning.columns, winning, losing)
        floor = float(near.max(initial=0.0))
        looked = []
        if self._others.size:
            bounds = np.empty(self._others.size)
            assert self._masses is not None
            incremental_histograms.bound(
                self._others,
                self._edges,
                self._masses,
                self._then,
                now,
                self._added,
                self._taken,
                bounds,
            )
            # Largest bounds first, as their edges may rule out the rest.
            n_first = min(8, bounds.size)
            places = np.argpartition(-bounds, n_first - 1)[:n_first]
            places = np.sort(places[bounds[places] >= floor - MARGIN])
            looked.append(self._note(potentials, self._others[places], now))
            floor = max(floor, float(np.abs(self._edges[looked[0]]).max(initial=0.0)))
            bounds[places] = -1.0
            rest = self._others[bounds >= floor - MARGIN]
            looked.append(self._note(potentials, rest, now))
            floor = max(floor, float(np.abs(self._edges[rest]).max(initial=0.0)))
        if slab is not None:
            close = slab.features[near >= floor - MARGIN]
            self._look(potentials, close)
            looked.append(close)
        among = np.sort(np.concatenate(looked))
        return self._stump(int(among[np.abs(self._edges[among]).argmax()]))

    def follow(self, stump: Stump, changed: NDArray[np.uint8], by: float) -> None:
        columns, slab, n_changed = self.binning.columns, self._slab, int(np.count_nonzero(changed))
        if n_changed > changed.size // WALKED:
            self._rises *= max(by, 1.0)
            self._falls *= min(by, 1.0)
        else:
            up, down = (self._added, self._taken) if by > 1 else (self._taken, self._added)
            incremental_histograms.spread(
                columns,
                self._rows,
                self._docs,
                stump.feature,
                changed,
                self._factors,
                self._n_winning,
                by,
                up[0],
                down[1],
            )
        if slab is not None:
            incremental_histograms.walk(
                columns,
                stump.feature,
                changed,
                slab.starts,
                slab.cells,
                self._factors,
                self._n_winning,
                by,
                slab.sums,
            )

    def renew(self) -> None:
        self._round = 0

    def _make_slab(self, n_entries: NDArray[np.int64], n_rows: int) -> Slab | None:
        """Histograms of the densest columns, if faster and within one byte per entry."""
        order = np.argsort(-n_entries, kind="stable").astype(np.int32)
        features = np.sort(order[: incremental_histograms.SLAB])
        n_cells = int(n_entries[features].sum())
        if 2 * n_cells + 4 * n_rows > n_entries.sum() or n_cells >= 2**31:
            return None
        if n_cells < ENTRIES_PER_BIN * int(self.binning.n_bins[features].sum()):
            return None
        return Slab(self.binning, features, n_rows)

    def _note(
        self, potentials: Floats, features: NDArray[np.int32], now: Floats
    ) -> NDArray[np.int32]:
        """Evaluate columns, and record the state of the weights."""
        self._look(potentials, features)
        self._then[:, features] = now[:, None]
        self._added[:, features] = self._taken[:, features] = 0.0
        return features


class Slab:
    """Histograms of weights of some columns, updated in each round."""

    def __init__(self, binning: Bins, features: NDArray[np.int32], n_rows: int) -> None:
        self.features = features
        self.starts = np.zeros(n_rows + 1, dtype=np.int32)
        incremental_histograms.count(binning.columns, features, self.starts[1:])
        np.cumsum(self.starts, out=self.starts)
        self.cells = np.empty(int(self.starts[-1]), dtype=np.uint16)
        incremental_histograms.pack(binning.columns, features, self.starts[:-1].copy(), self.cells)
        self.sums = np.zeros((2, incremental_histograms.SLAB * stumps.CODES))

    def fill(self, factors: Floats, n_winning: int) -> None:
        """Recompute the histograms."""
        incremental_histograms.fill(self.starts, self.cells, factors, n_winning, self.sums)

    def evaluate(self, columns: Columns, winning: float, losing: float) -> Floats:
        """Maximum |edge| of each column, up to rounding."""
        edges = np.empty(self.features.size)
        incremental_histograms.evaluate(columns, self.features, self.sums, winning, losing, edges)
        return np.abs(edges, out=edges)
