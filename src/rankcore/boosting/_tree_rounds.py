"""Rounds of boosting with trees: growth, the values of leaves, new derivatives.

`TreeRounds` are those of any objective, on rows in memory (`MemoryTrees`) or on the workers of a
cluster (`rankcore.boosting.worker_rounds`); `PairTrees` are those of pairs. A round grows the tree
that was begun, computes the values of its leaves from sums over their rows, and begins the next.
`Draws` draw the rows of a tree and the features of its nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, inf, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._core.params import as_generator
from rankcore._core.threads import Threads, n_threads
from rankcore._ext.rows import Rows
from rankcore.boosting._binning import Bins
from rankcore.boosting._grower import (
    FeatureDraws,
    GrownTree,
    GrowthParams,
    Leaf,
    TreeGrower,
    drawn_mask,
)
from rankcore.boosting._histograms import MemoryHistograms
from rankcore.boosting._objectives import QueryPairs
from rankcore.boosting._pair_weights import (
    EDGE_MARGIN,
    MAX_STEP,
    MIN_TOTAL,
    check_weight,
    overflowing,
    steps_of,
)
from rankcore.boosting._streamed_bins import BinEdges, DiskRows, bin_rows, scores_of
from rankcore.boosting._training import Rounds
from rankcore.boosting._tree_model import NONE, Tree, TreeSum, pack_set
from rankcore.boosting.params import PairParams, Schedule, resolve_min_samples_leaf
from rankcore.ranking.pairs import Pairing

# Tolerance of the line search, as a change of scores.
CLOSE = 1e-12
# Third words of seeds, beside the seed and the number of the tree, which alone draw rows.
DIRECTION, FEATURES = 1, 2


class TreeRows(Protocol):
    """Rows of a fit, with their objective and histograms."""

    bins: Any  # thresholds of bins: `Bins` or `BinEdges`
    growth: GrowthParams

    def begin_tree(self, values: Floats | None, number: int) -> Floats:
        """Begin a tree, after the values of the last one's leaves, if any, are added to the scores.

        Returns the totals of the objective.
        """

    def grow(self) -> GrownTree:
        """Grow the tree that was begun."""

    def sum_leaves(self, leaves: Sequence[Leaf]) -> list[Floats]:
        """Return the objective's sums by leaf."""

    def evaluate(self, values: Floats | None, biases: Floats) -> tuple[Floats, ...]:
        """Add the values of leaves, if any; evaluate the ordinal objective with other biases."""

    def score_range(self) -> Floats:
        """Return some scores, including the minimum and the maximum."""


class MemoryTrees:
    """Rows of this process: `TreeRows`."""

    def __init__(
        self, bins: Bins, growth: GrowthParams, objective: Any, draws: Draws, threads: Threads
    ) -> None:
        self.bins, self.growth, self.objective = bins, growth, objective
        self._draws, self._histograms = draws, MemoryHistograms(bins, growth, threads)
        self._first_weight: float | None = None

    def begin_tree(self, values: Floats | None, number: int) -> Floats:
        if values is not None:
            self.objective.add(self._leaf_of, values)
        self._number, self._totals = number, self.objective.totals()
        if self._first_weight is None:
            self._first_weight = self.objective.weight(self._totals)
        return self._totals

    def grow(self) -> GrownTree:
        number = self._number
        gradients, hessians = self.objective.derivatives(self._totals, (self._draws.seed, number))
        self._drawn = self._draws.rows(number, gradients.size, self.objective.query_of)
        features = self._draws.features(number)
        weight = relative_weight(self.objective.weight(self._totals), self._first_weight)
        root = self._histograms.begin_tree(gradients, hessians, self._drawn, features, weight)
        return TreeGrower(self._histograms, self.growth).grow(root)

    def sum_leaves(self, leaves: Sequence[Leaf]) -> list[Floats]:
        self._leaf_of = self._histograms.leaf_of(leaves)
        drawn = None if self._drawn is None else self._drawn.view(np.uint8)
        return [*self.objective.sum_by_leaf(self._leaf_of, len(leaves), drawn)]

    def evaluate(self, values: Floats | None, biases: Floats) -> tuple[Floats, ...]:
        if values is not None:
            self.objective.add(self._leaf_of, values)
        return self.objective.evaluate(biases)

    def score_range(self) -> Floats:
        return np.array(self.objective.score_range())


def relative_weight(weight: float, first: float | None) -> float:
    """Return the weight of all pairs relative to that before the first tree."""
    return weight / first if first else 1.0


class TreeRounds(Rounds):
    """Rounds that add trees to ``model``."""

    def __init__(self, model: Any, rows: TreeRows) -> None:
        self.model, self.rows = model, rows

    def begin(self) -> None:
        """Begin the next tree, with the scores of the model."""
        self._totals = self.rows.begin_tree(None, len(self.model))


class PairTrees(TreeRounds):
    """Rounds of RankBoost and BipartiteRankBoost with trees.

    ``by_label``: the objective is `LabelPairs`. ``first_total`` is the weight of all pairs before
    the first round, by default that at the scores of the model.
    """

    model: TreeSum

    def __init__(
        self,
        params: PairParams,
        by_label: bool,
        model: TreeSum,
        rows: TreeRows,
        first_total: float | None = None,
    ) -> None:
        super().__init__(model, rows)
        self._rate, self._by_label = Schedule.of(params).learning_rate, by_label
        self._search = params.leaf_step == "search"
        self._bounds_step = self._search and params.pair_weight is None
        self._first_total = first_total

    def begin(self) -> None:
        super().begin()
        self._total = weight_of(self._totals, self._by_label)
        if self._first_total is None:
            self._first_total = self._total
            check_weight(self._total)
        self._note_end()

    def round(self) -> dict[str, float] | None:
        grown = self.rows.grow()
        if not grown.features:
            return None
        sums, gradients, between = self._sums(self.rows.sum_leaves(grown.leaves))
        values = newton_values(sums, self.rows.growth.l2_leaf, grown)
        if self._search:
            values *= best_step(between, values)
        values *= self._rate
        width = float(values.max() - values.min())
        edge = float(gradients @ values) / width if width > 0 else 0.0
        self._totals = self.rows.begin_tree(values, len(self.model) + 1)
        self.model.add(made_tree(self.rows.bins, grown, values))
        before, self._total = self._total, weight_of(self._totals, self._by_label)
        self._note_end()
        return {
            "edge": edge,
            "alpha": width,
            "normalizer": self._total / before,
            "cap": normalizer_cap(edge, width, self._rate if self._bounds_step else None),
        }

    def _note_end(self) -> None:
        """End the rounds if the weight of all pairs has vanished."""
        assert self._first_total is not None
        self.done = not self._total > MIN_TOTAL * self._first_total

    def _sums(self, parts: list[Floats]) -> tuple[Floats, Floats, Floats]:
        """Return gradients and hessians by leaf, gradients of all rows, and weights between."""
        if not self._by_label:
            sums, gradients, between = parts
            return sums, gradients, between
        (won, lost), (all_won, all_lost) = parts
        return np.array([won - lost, won + lost]), all_won - all_lost, np.outer(all_won, all_lost)


def weight_of(totals: Floats, by_label: bool) -> float:
    """Return the weight of all pairs from the totals of an objective of pairs."""
    return float(totals[0] * totals[1]) if by_label else float(totals[0])


def pair_growth(params: PairParams, n_rows: int, signs: NDArray[np.int8] | None) -> GrowthParams:
    """Return the constraints on trees of a fit to the pairs of ``n_rows`` rows."""
    min_rows = resolve_min_samples_leaf(params.min_samples_leaf, n_rows)
    return GrowthParams.of(params, min_rows, float(params.min_pair_weight), signs, bounded=True)


class MemoryPairTrees(PairTrees):
    """Rounds on rows in memory, with monotone constraints ``signs``."""

    def __init__(
        self,
        params: PairParams,
        rows: Rows | DiskRows,
        pairing: Pairing,
        model: TreeSum,
        signs: NDArray[np.int8] | None,
        categorical: Mapping[int, str] | None,
    ) -> None:
        n_jobs = min(n_threads(params.n_jobs), rows.n_features)  # threads share the features
        docs, balanced = pairing.docs, params.balance == "query"
        scores = scores_of(model, rows, docs)
        objective = QueryPairs.of(pairing, balanced, params.pair_weight, scores)
        bins = bin_rows(rows, docs, params.max_bins, model.zero_missing, categorical, n_jobs)
        growth, draws = pair_growth(params, docs.size, signs), Draws(params, bins.n_bins.size)
        self._threads = Threads(n_jobs)
        trees = MemoryTrees(bins, growth, objective, draws, self._threads)
        _, first_total = steps_of(pairing, balanced)
        check_weight(first_total)
        super().__init__(params, False, model, trees, first_total)
        self.begin()
        if self._totals[1] > 0 and not self._totals[0] < inf:
            raise overflowing()

    def close(self) -> None:
        """Shut down the threads."""
        self._threads.close()


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
        self, number: int, n_rows: int, query_of: NDArray[np.int64] | None, part: int | None = None
    ) -> NDArray[np.bool_] | None:
        """Return the mask of the drawn rows, of whole queries if there are several; None: all.

        ``part`` is the number of the part of all rows that these are, if any.
        """
        if self._of_rows >= 1:
            return None
        rng = np.random.default_rng([self.seed, number, *([] if part is None else [part])])
        if query_of is not None and query_of[-1] > 0:
            return drawn_mask(rng, int(query_of[-1]) + 1, self._of_rows)[query_of]
        return drawn_mask(rng, n_rows, self._of_rows)

    def features(self, number: int) -> FeatureDraws | None:
        """Return the draws of features of a tree; None: all are used."""
        if self._of_features >= 1:
            return None
        return FeatureDraws(self._n_features, self._of_features, (self.seed, number, FEATURES))


def best_step(between: Floats, values: Floats) -> float:
    """Return the factor of leaf values that minimises the remaining weight.

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
