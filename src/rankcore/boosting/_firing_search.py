"""Search for the best stump of sparse columns, updated by the rows where stumps fire."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankcore._ext import incremental_histograms, stumps
from rankcore._ext.columns import Columns
from rankcore.boosting._binning import Binning, Bins
from rankcore.boosting._stump_search import MARGIN, Search, Stump

# Rounds after which all cached sums are recomputed. They are recomputed earlier if the weight of a
# label has fallen by this factor, since sums keep the rounding errors of their largest values.
RENEW = 128
FALLEN = 100.0
# Changed rows are processed one by one if they are at most one in this number.
WALKED = 32
# Minimum entries per bin of columns whose histograms are updated.
ENTRIES_PER_BIN = 4


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

    def __init__(
        self, binning: Binning, factors: NDArray[np.float64], n_winning: int, n_jobs: int
    ) -> None:
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

    def best(self, potentials: NDArray[np.float64]) -> Stump:
        """As `Search.best`."""
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
        """As `Search.follow`."""
        binning, n_changed = self.binning, int(np.count_nonzero(changed))
        if n_changed > changed.size // WALKED:
            self._rises *= max(by, 1.0)
            self._falls *= min(by, 1.0)
        else:
            up, down = (self._added, self._taken) if by > 1 else (self._taken, self._added)
            incremental_histograms.spread(
                binning.columns,
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
        if self._slab is not None:
            incremental_histograms.walk(
                binning.columns,
                stump.feature,
                changed,
                self._slab.starts,
                self._slab.cells,
                self._factors,
                self._n_winning,
                by,
                self._slab.sums,
            )

    def renew(self) -> None:
        """As `Search.renew`."""
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
        self,
        potentials: NDArray[np.float64],
        features: NDArray[np.int32],
        now: NDArray[np.float64],
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

    def fill(self, factors: NDArray[np.float64], n_winning: int) -> None:
        """Recompute the histograms."""
        incremental_histograms.fill(self.starts, self.cells, factors, n_winning, self.sums)

    def evaluate(self, columns: Columns, winning: float, losing: float) -> NDArray[np.float64]:
        """Maximum |edge| of each column, up to rounding."""
        edges = np.empty(self.features.size)
        incremental_histograms.evaluate(columns, self.features, self.sums, winning, losing, edges)
        return np.abs(edges, out=edges)
