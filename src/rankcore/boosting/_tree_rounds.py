"""Rounds of boosting with trees: growth, leaf values, new weights."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._core.params import as_generator
from rankcore._core.threads import Threads
from rankcore._ext import partition
from rankcore._ext.rows import Rows
from rankcore.boosting._binning import Bins
from rankcore.boosting._grower import (
    FeatureDraws,
    GrownTree,
    GrowthParams,
    TreeGrower,
    drawn_mask,
)
from rankcore.boosting._histograms import MemoryHistograms
from rankcore.boosting._metric_weights import MetricPairWeights
from rankcore.boosting._pair_rounds import EDGE_MARGIN, MAX_STEP, PairRounds
from rankcore.boosting._streamed_bins import BinEdges, DiskRows, scores_of
from rankcore.boosting._tree_model import NONE, Tree, TreeSum, pack_set
from rankcore.boosting.params import PairParams, Schedule, resolve_min_samples_leaf
from rankcore.ranking.pairs import Pairing

# Tolerance of the line search, as a change of scores.
CLOSE = 1e-12
# Third words of seeds, beside the seed and the number of the tree, which alone draw rows.
DIRECTION, FEATURES = 1, 2


class TreeRounds(PairRounds):
    """Rounds that add trees to a `TreeSum`, with monotone constraints ``signs``."""

    state: TreeSum

    def __init__(
        self,
        params: PairParams,
        rows: Rows | DiskRows,
        pairing: Pairing,
        state: TreeSum,
        signs: NDArray[np.int8] | None,
        categorical: Mapping[int, str] | None,
    ) -> None:
        self._metric_weights: MetricPairWeights | None = None
        if params.pair_weight is not None:
            if pairing.listed_pairs is not None:
                raise ValueError("pair_weight requires labels; found pairs")
            scores = scores_of(state, rows, pairing.docs)
            steps = pairing.steps(params.balance == "query")
            self._metric_weights = MetricPairWeights(pairing, steps, params.pair_weight, scores)
        super().__init__(params, rows, pairing, state, categorical)
        self._draws = Draws(params, self._binning.n_bins.size)
        self._rate = Schedule.of(params).learning_rate
        self._line_search = params.leaf_step == "search"
        self._bounds_step = self._line_search and self._metric_weights is None
        self._query_of = np.repeat(np.arange(pairing.bounds.size - 1), np.diff(pairing.bounds))
        min_rows = resolve_min_samples_leaf(params.min_samples_leaf, pairing.docs.size)
        growth = GrowthParams.of(
            params, min_rows, float(params.min_pair_weight), signs, bounded=True
        )
        self._l2_leaf = growth.l2_leaf
        self._threads = Threads(self._n_jobs)
        self._histograms = MemoryHistograms(self._binning, growth, self._threads)
        self._grower = TreeGrower(self._histograms, growth)

    def _allocate(self, n: int) -> None:
        self._exhausted = False  # whether no pair changes the measure
        self._gradients, self._hessians = np.empty(n), np.empty(n)

    def _differentiate(self) -> float:
        total = self._weights.differentiate(self._gradients, self._hessians)
        if self._metric_weights is not None:
            mass = self._metric_weights.differentiate(self._gradients, self._hessians)
            self._exhausted = not mass > 0
        return total

    def close(self) -> None:
        """Shut down the threads."""
        self._threads.close()

    def round(self) -> dict[str, float] | None:
        """Add a tree; return figures of the round, or None if no split gains."""
        if self._exhausted:
            return None
        number = len(self.state)
        drawn = self._draws.rows(number, self._query_of.size, self._query_of)
        root = self._histograms.begin_tree(
            self._gradients, self._hessians, drawn, self._draws.features(number)
        )
        grown = self._grower.grow(root)
        if not grown.features:
            return None
        leaf_of = self._histograms.leaf_of(grown.leaves)
        values, gains = self._values(grown, leaf_of, drawn)
        width = float(values.max() - values.min())
        edge = float(gains @ values) / width if width > 0 else 0.0
        self.state.add(made_tree(self._binning, grown, values))
        # Only differences of scores matter. Centring keeps long steps along almost equal values
        # within the range of the weights' factors.
        centred = values - 0.5 * (values.min() + values.max())
        self._weights.move(leaf_of, centred)
        if self._metric_weights is not None:
            self._metric_weights.move(leaf_of, centred)
        return {
            "edge": edge,
            "alpha": width,
            "normalizer": self._finish(width),
            "cap": normalizer_cap(edge, width, self._rate if self._bounds_step else None),
        }

    def _values(
        self, grown: GrownTree, leaf_of: NDArray[np.int32], drawn: NDArray[np.bool_] | None
    ) -> tuple[Floats, Floats]:
        """Return the value of each leaf, and the sum of the gradients of its rows."""
        sums, gradients = sum_by_leaf(leaf_of, self._gradients, self._hessians, drawn, grown)
        values = newton_values(sums, self._l2_leaf, grown)
        if self._line_search:
            n = values.size
            between = np.empty((n, n))
            if self._metric_weights is not None:
                between = self._metric_weights.between(leaf_of, n)
            else:
                self._weights.between(leaf_of, np.empty(n), np.empty(n), between)
            values *= best_step(between, values)
        return self._rate * values, gradients


def normalizer_cap(edge: float, width: float, rate: float | None) -> float:
    """Return an upper bound on Z from the edge of a tree of this width, scaled to [0, 1].

    Z is convex in each difference of scores, which lies between -width and width. A line search
    leaves no more than the step that minimises the bound, and by convexity, a learning rate
    ``rate`` keeps at least that fraction of the reduction; None: there was no search.
    """
    edge = min(max(edge, -1.0), 1.0)
    cap = 0.5 * ((1 + edge) * exp(-width) + (1 - edge) * exp(width))
    if rate is not None:
        right = min(max(edge, 0.0), 1 - EDGE_MARGIN)
        cap = min(cap, 1 - rate + rate * sqrt(1 - right**2))
    return cap


def sum_by_leaf(
    leaf_of: NDArray[np.int32],
    gradients: Floats,
    hessians: Floats,
    drawn: NDArray[np.bool_] | None,
    grown: GrownTree,
) -> tuple[Floats, Floats]:
    """Sum gradients and hessians by leaf, shape (2, n_leaves), and the gradients of all rows."""
    n = len(grown.leaves)
    sums, of_all = np.empty((2, n)), np.empty(n)
    mask = None if drawn is None else drawn.view(np.uint8)
    partition.sum_by_leaf(leaf_of, gradients, hessians, mask, sums, of_all)
    return sums, of_all


def newton_values(sums: Floats, l2_leaf: float, grown: GrownTree) -> Floats:
    """Return the values of leaves within their bounds, from sums of gradients and hessians."""
    gradients, hessians = sums[0], sums[1] + l2_leaf
    values = np.divide(gradients, hessians, out=np.zeros(gradients.size), where=hessians > 0)
    return np.clip(values, grown.lows, grown.highs)


def made_tree(bins: Bins | BinEdges, grown: GrownTree, values: Floats) -> Tree:
    """Convert a tree on bins to one on feature values, with the values of its leaves."""
    nodes, categories = range(len(grown.features)), grown.categories
    thresholds = [
        inf if node in categories else bins.threshold(grown.features[node], grown.bins[node])
        for node in nodes
    ]
    words = [pack_set(categories[node]) if node in categories else NONE for node in nodes]
    return Tree(
        np.array(grown.features, dtype=np.int32),
        np.array(thresholds, dtype=np.float64),
        np.array(grown.missing_right, dtype=np.uint8),
        np.array(grown.children, dtype=np.int32).reshape(-1, 2),
        np.array(grown.gains, dtype=np.float64),
        values,
        np.concatenate([[0], np.cumsum([part.size for part in words])]).astype(np.int64),
        np.concatenate([NONE, *words]),
    )


class Draws:
    """Draws of rows for each tree, and of features for its nodes, by the seed and its number."""

    def __init__(self, params: Any, n_features: int, seeded: bool = False) -> None:
        self._of_rows, self._of_features = float(params.subsample), float(params.max_features)
        self.seed, self._n_features = 0, n_features
        if seeded or self._of_rows < 1 or self._of_features < 1:
            self.seed = int(as_generator(params.random_state).integers(2**63))

    def rows(
        self, number: int, n_rows: int, query_of: NDArray[np.int64] | None = None
    ) -> NDArray[np.bool_] | None:
        """Return the mask of the drawn rows, of whole queries if there are several; None: all."""
        if self._of_rows >= 1:
            return None
        rng = np.random.default_rng([self.seed, number])
        if query_of is not None and query_of[-1] > 0:
            return drawn_mask(rng, int(query_of[-1]) + 1, self._of_rows)[query_of]
        return drawn_mask(rng, n_rows, self._of_rows)

    def features(self, number: int) -> FeatureDraws | None:
        """Return the draws of features of a tree; None: all are used."""
        if self._of_features >= 1:
            return None
        return FeatureDraws(self._n_features, self._of_features, (self.seed, number, FEATURES))


def best_step(between: Floats, values: Floats) -> float:
    """Factor of leaf values that minimises the remaining weight.

    ``between[i, j]`` is the weight of the pairs with the winner in leaf i and the loser in leaf j.
    Returns the minimiser a >= 0 of Z(a) = sum of ``between[i, j] * exp(-a * (values[i] -
    values[j]))``, limited so that scores change by at most `MAX_STEP`. Z is convex: Brent's method
    finds the zero of its derivative, with O(n_leaves^2) per evaluation.
    """
    from scipy.optimize import brentq

    apart = np.subtract.outer(values, values)
    weighted, width = between * apart, float(apart.max())

    def slope(a: float) -> float:
        return -float(np.sum(weighted * np.exp(-a * apart)))

    if not slope(0.0) < 0:  # no descent direction
        return 0.0
    high = MAX_STEP / width
    return high if slope(high) <= 0 else float(brentq(slope, 0.0, high, xtol=CLOSE / width))
