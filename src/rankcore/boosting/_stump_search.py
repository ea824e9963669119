"""Search for the stump of maximum |edge|, in the columns that may have it.

The gradient of a row is the weight of the pairs it wins minus that of those it loses; the edge of a
stump is the sum of the gradients of the rows where it fires. Bounds on the change of a column's
edges since it was evaluated rule out most columns. The edge of the best stump is always computed
from the current weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._core.threads import Threads
from rankcore._ext import edge_bounds, stumps
from rankcore.boosting._binning import Binning, Bins

# Edges are of weights that sum to 1. Bounds are sums of thousands of rounded numbers, with an error
# of at most 1e-13 before they are recomputed. Only columns below the best by this are ruled out.
MARGIN = 1e-10
# Rounds after which all columns are evaluated. They are evaluated earlier if the weight of a label
# has fallen by this factor, since bounds keep the rounding errors of their largest terms.
RENEW = 128
FALLEN = 100.0
# The changes of rows are added up by column if at most one row in this number changed.
FEW_CHANGED = 32


class Stump(NamedTuple):
    """Fires in ``bin`` of a column and above and, if ``fires_missing``, on missing values."""

    feature: int
    bin: int
    fires_missing: int
    edge: float


class StumpSearch:
    """Search with bounds by the changes of gradients.

    Gradients sum to 0, so that their increases equal their decreases. No edge can have changed by
    more than the sum of increases since its column was evaluated. At most O(entries) per round,
    divided by the number of threads, with one addition per entry.
    """

    # Weights of each label in each column, if the search needs them: winning label, losing label.
    _masses: Floats | None = None
    _n_winning = 0

    def __init__(self, bins: Bins, n_jobs: int) -> None:
        self._bins, d = bins, bins.n_bins.size
        self._all = np.arange(d, dtype=np.int32)
        self._size = max(int(bins.n_bins.max()) + 1, stumps.CODES)
        self._edges = np.zeros(d)
        self._bins_of = np.full(d, -1, dtype=np.int32)  # of the best stump in each column
        self._fires_missing = np.zeros(d, dtype=np.uint8)
        # Columns of wide codes are read one by one.
        lanes = stumps.LANES if self._size == stumps.CODES else 1
        self._scratch = [np.empty(lanes * self._size) for _ in range(n_jobs)]
        self._threads = Threads(n_jobs)
        self._bounds, self._before = np.full(d, np.inf), np.zeros(bins.columns.n_rows)

    def close(self) -> None:
        """Shut down the threads."""
        self._threads.close()

    def best(self, gradients: Floats) -> Stump:
        """Return the stump of maximum |edge|; ties go to the first feature, then highest threshold.

        Its bin is -1 if there is none.
        """
        bounds = self._bound(gradients)
        # Largest bounds first, as their edges may rule out the rest.
        n_first = min(stumps.LANES * self._threads.n, bounds.size)
        first = np.sort(np.argpartition(-bounds, n_first - 1)[:n_first]).astype(np.int32)
        self._evaluate(gradients, first)
        ahead = bounds >= float(np.abs(self._edges[first]).max()) - MARGIN
        ahead[first] = False
        rest = np.flatnonzero(ahead).astype(np.int32)
        self._evaluate(gradients, rest)
        evaluated = np.sort(np.concatenate([first, rest]))
        return self._stump(int(evaluated[np.abs(self._edges[evaluated]).argmax()]))

    def follow(self, stump: Stump, changed: NDArray[np.uint8], by: float) -> None:
        """Note a step that changed the weights of some rows, those of winners by a factor."""

    def renew(self) -> None:
        """Note that weights were rescaled."""

    def _bound(self, gradients: Floats) -> Floats:
        """Return upper bounds on |edge| of each column."""
        self._before -= gradients
        self._bounds += 0.5 * np.abs(self._before, out=self._before).sum()
        self._before[:] = gradients
        return self._bounds.copy()

    def _note(self, features: NDArray[np.int32]) -> None:
        """Note that columns were evaluated."""
        self._bounds[features] = np.abs(self._edges[features])

    def _evaluate(self, gradients: Floats, features: NDArray[np.int32]) -> None:
        """Find the best stump of each of some columns."""
        if not features.size:
            return
        parts = self._divide(features)
        self._threads.map(
            lambda job: self._evaluate_part(gradients, parts[job], job), range(len(parts))
        )
        self._note(features)

    def _evaluate_part(self, gradients: Floats, features: NDArray[np.int32], job: int) -> None:
        n = features.size
        edges, bins, fires_missing = np.empty(n), np.empty(n, np.int32), np.empty(n, np.uint8)
        masses = None if self._masses is None else np.empty((2, n))
        stumps.evaluate(
            self._bins.columns,
            gradients,
            features,
            self._scratch[job],
            edges,
            bins,
            fires_missing,
            self._n_winning,
            masses,
        )
        self._edges[features], self._bins_of[features], self._fires_missing[features] = (
            edges,
            bins,
            fires_missing,
        )
        if self._masses is not None:
            self._masses[:, features] = masses

    def _divide(self, features: NDArray[np.int32]) -> list[NDArray[np.int32]]:
        """Divide columns into parts of about equal work, at most one for each thread."""
        n = self._threads.n
        if n == 1:
            return [features]
        entries = self._bins.n_entries
        work = np.ones(features.size) if entries is None else entries[features] + 1.0
        ends = np.cumsum(work)
        cuts = np.searchsorted(ends, ends[-1] * np.arange(1, n) / n)
        if entries is None:  # whole groups of columns that are read together
            cuts = cuts // stumps.LANES * stumps.LANES
        return [part for part in np.split(features, cuts) if part.size]

    def _stump(self, feature: int) -> Stump:
        bin, fires_missing = int(self._bins_of[feature]), int(self._fires_missing[feature])
        return Stump(feature, bin, fires_missing, float(self._edges[feature]))


class TwoLabelSearch(StumpSearch):
    """Search with bounds by the factors of weights: for sparse rows, two labels and one query.

    ``factors`` are the weights of the rows, which change in each round; the ``n_winning`` rows of
    the winning label come first. Let P and N be the weights of the winning and losing rows with an
    entry when the best edge r of a column was computed. Since then, each winning weight has been
    multiplied by a factor in [l, g], and each losing weight by a factor in [l', g']. The edge of
    any subset of these rows, of weights p and n with p - n <= r, is now at most

        g p - l' n <= min(g, l') r + max(0, g - l') P,

    and n - p likewise; nor can it exceed g P or g' N. It takes half the time of `StumpSearch` on
    rows of text (``python -m benchmarks boosting``).
    """

    def __init__(self, bins: Binning, factors: Floats, n_winning: int, n_jobs: int) -> None:
        super().__init__(bins, n_jobs)
        self._rows, self._docs = bins.rows, bins.taken
        self._factors, self._n_winning = factors, n_winning
        d = self._all.size
        self._masses = np.empty((2, d))
        # When each column was last evaluated: the factors that scale the weights of each label to
        # a sum of 1, and the products of all increases and decreases of winning weights by firing.
        self._then, self._now = np.ones((4, d)), np.ones(4)
        self._rises = self._falls = 1.0
        # Further increases and decreases of each label's weights in each column since then.
        self._added, self._removed = np.zeros((2, d)), np.zeros((2, d))
        self._round = 0
        # Minimum scale of the weights of each label since all columns were evaluated.
        self._lowest = (np.inf, np.inf)

    def follow(self, stump: Stump, changed: NDArray[np.uint8], by: float) -> None:
        if np.count_nonzero(changed) > changed.size // FEW_CHANGED:
            self._rises *= max(by, 1.0)
            self._falls *= min(by, 1.0)
            return
        added, removed = (self._added, self._removed) if by > 1 else (self._removed, self._added)
        edge_bounds.sum_changes(
            self._bins.columns,
            self._rows,
            self._docs,
            stump.feature,
            changed,
            self._factors,
            self._n_winning,
            by,
            added[0],
            removed[1],
        )

    def renew(self) -> None:
        self._round = 0

    def _bound(self, gradients: Floats) -> Floats:
        assert self._masses is not None
        winning = 1.0 / self._factors[: self._n_winning].sum()
        losing = 1.0 / self._factors[self._n_winning :].sum()
        renew = self._round % RENEW == 0 or self._rises > 1e100 or self._falls < 1e-100
        renew |= winning > FALLEN * self._lowest[0] or losing > FALLEN * self._lowest[1]
        self._round += 1
        self._lowest = min(winning, self._lowest[0]), min(losing, self._lowest[1])
        bounds = np.full(self._all.size, np.inf)
        if renew:
            self._lowest = winning, losing
            self._rises = self._falls = 1.0
        self._now = np.array([winning, losing, self._rises, self._falls])
        if not renew:
            edge_bounds.bound_edges(
                self._all,
                self._edges,
                self._masses,
                self._then,
                self._now,
                self._added,
                self._removed,
                bounds,
            )
        return bounds

    def _note(self, features: NDArray[np.int32]) -> None:
        self._then[:, features] = self._now[:, None]
        self._added[:, features] = self._removed[:, features] = 0.0
