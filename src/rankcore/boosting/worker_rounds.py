"""Rounds of boosting at the client of a cluster, from sums over the rows of its workers.

`WorkerTrees` adds the histograms of the workers, finds splits in them and grows trees by the grower
of rows in memory; `WorkerStumps` finds stumps in them. `pair_rounds` and `rank_rounds` make the
rounds of a fit. An exchange is one call of all workers, each of which has a
`rankcore.boosting.worker_rows.BinnedRows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._ext import splitting
from rankcore.boosting._boosted import split_constraints
from rankcore.boosting._grower import (
    BITS_64,
    NO_SPLIT,
    GrownTree,
    GrowthParams,
    Leaf,
    Split,
    TreeGrower,
    Units,
)
from rankcore.boosting._histograms import LEAF, SPLIT
from rankcore.boosting._objectives import LabelPairs, QueryPairs
from rankcore.boosting._occurring_ranks import OccurringRanks
from rankcore.boosting._ordinal_objective import RankedRows
from rankcore.boosting._ordinal_rounds import OrdinalRounds, ordinal_draws, ordinal_growth
from rankcore.boosting._ordinal_training import HeldOutTables, OrdinalRoundLearner
from rankcore.boosting._pair_weights import EDGE_MARGIN, MIN_TOTAL, check_weight
from rankcore.boosting._streamed_bins import BinEdges
from rankcore.boosting._stump_rounds import Step, StumpRounds
from rankcore.boosting._stump_search import Stump
from rankcore.boosting._training import RoundLearner, train_rounds
from rankcore.boosting._tree_rounds import (
    Draws,
    PairTrees,
    pair_growth,
    relative_weight,
    weight_of,
)
from rankcore.boosting.params import grows_trees
from rankcore.boosting.stump_model import StumpSum
from rankcore.boosting.worker_rows import (
    STUMP_BITS,
    Answer,
    Begun,
    Histogram,
    Order,
    PackedSums,
)

__all__ = [
    "HeldOutTables",
    "OrdinalRoundLearner",
    "RoundLearner",
    "WorkerRounds",
    "Workers",
    "occurring_ranks",
    "pair_rounds",
    "rank_rounds",
    "split_constraints",
    "train_rounds",
]

# Maximum number of leaves whose children are summed in one exchange. The sums of all leaves of the
# tree are a part of it if at most as many as the second are left: mostly, the tree ends with these.
BATCH_SIZE, LAST_BATCH_SIZE = 8, 4
# Ratio of the totals of gradients of stumps and of those they are normalised by.
LEAST_RATIO = 1e-3


class Workers(Protocol):
    """All workers with rows."""

    n_calls: int

    def call(self, method: str, *args: Any) -> list[Any]:
        """Return the results of a method of `BinnedRows` of all workers."""


class WorkerTrees:
    """Rows on workers, as `BinnedRows`: `TreeRows`, and their `HistogramSource`.

    ``objective`` is the class of those of the parts. ``alike``: units are mostly those of the tree
    before.
    """

    def __init__(
        self,
        edges: BinEdges,
        growth: GrowthParams,
        draws: Draws,
        objective: type[QueryPairs | LabelPairs | RankedRows],
        alike: bool = True,
    ) -> None:
        self.bins, self.growth, self.draws = edges, growth, draws
        self._objective, self._alike = objective, alike
        self.n_features = int(edges.n_bins.size)
        sizes = edges.n_bins.astype(np.int64) + 1
        self._bounds = np.concatenate([[0], np.cumsum(sizes)])
        self._scratch = np.empty(4 * int(sizes.max()), dtype=np.uint64)
        self._gains = np.empty(2 * int(sizes.max()))
        self.workers: Any = None
        self._first_weight: float | None = None
        self._totals: Floats | None = None  # that derivatives are normalised by
        self._last_units: Units | None = None  # of the tree before, if none were divided

    def restart(self, workers: Workers) -> None:
        """Continue with new workers, which have the scores of the model."""
        self.workers, self._totals = workers, None

    def begin_tree(self, values: Floats | None, number: int) -> Floats:
        """Implement `TreeRows.begin_tree`.

        Mostly one exchange: derivatives are normalised by totals of an earlier tree, except of
        `LabelPairs`, and packed in the units of the tree before. If these are not the units of the
        new sums, which only the workers' answers show, another exchange packs them again.
        """
        if self._totals is None or self._objective is LabelPairs:
            self._totals, values = self._begin(values, None, None, number).totals, None
        weight = self._weight(self._totals)
        last = self._last_units
        packed_in = last._replace(scale=last.scale * weight) if last and self._alike else None
        begun = self._begin(values, self._totals, packed_in, number)
        root = begun.root
        units = Units.of(
            begun.hessian,
            begun.magnitude,
            begun.n_rows,
            bounded=self.growth.bounded,
            weight=weight,
        )
        if root is None or units != packed_in:
            root = self._added(self.workers.call("sum_root", units))
        self._last_units = units._replace(scale=units.scale / weight) if units.scale else None
        # Sums of derivatives, divided by this, are normalised by the latest totals.
        self._normaliser = relative_weight(self._weight(begun.totals), weight)
        units = units._replace(scale=units.scale * self._normaliser)
        self._root = Leaf(0, begun.n_rows, root.total, units, self.draws.features(number))
        self._failed = set[int]()  # nodes whose split left a child too few rows
        self._n_nodes, self._sums = 1, (list[int](), list[Floats]())
        self._histograms = {0: root.histogram}
        return begun.totals

    def _weight(self, totals: Floats) -> float:
        """Return the weight that derivatives are divided by, as `MemoryTrees` takes it."""
        weight = self._objective.weight(totals)
        if self._first_weight is None:
            self._first_weight = weight
        return relative_weight(weight, self._first_weight)

    def grow(self) -> GrownTree:
        if self._root.may_split(self.growth):
            self._find_splits(self._root)
        return TreeGrower(self, self.growth).grow(self._root)

    def expand(self, leaf: Leaf, tree: GrownTree, room: int) -> None:
        """Implement `HistogramSource.expand` by one exchange, also for leaves likely to follow.

        If the tree is likely to end with these, the sums of its leaves are part of the exchange.
        """
        likely = tree.likely_splits(room)
        ahead = [leaf_ahead for _, leaf_ahead in likely if leaf_ahead.children is None]
        orders = [self._order(leaf_ahead, search=room > 1) for leaf_ahead in ahead]
        n_searched = sum(order.summed >= 0 for order in orders)
        if n_searched > BATCH_SIZE:
            orders = orders[:BATCH_SIZE]
        ends = not n_searched or (len(likely) == room and n_searched <= LAST_BATCH_SIZE)
        answers = self._expand(orders, self._last_leaves(tree, likely, orders) if ends else [])
        for one, order, answer in zip(ahead, orders, answers, strict=False):
            self._take(one, order, answer)

    @staticmethod
    def _last_leaves(
        tree: GrownTree, splits: Sequence[tuple[int, Leaf]], orders: Sequence[Order]
    ) -> list[int]:
        """Return the nodes of the tree's leaves after further splits, some of them still ordered.

        None if a split is to be replaced, since it leaves a child too few rows.
        """
        ordered = {order.node: order.children for order in orders}
        nodes = [leaf.node for leaf in tree.leaves]
        for number, leaf in splits:
            both = leaf.children
            if both == ():
                return []
            left, right = (both[0].node, both[1].node) if both else ordered[leaf.node]
            nodes[number] = left
            nodes.append(right)
        return nodes

    def _order(self, leaf: Leaf, search: bool) -> Order:
        """Return the order by which workers split a leaf."""
        growth = self.growth
        right = 2 * splitting.hessian(leaf.split.packed) <= splitting.hessian(leaf.packed)
        deep = growth.max_depth is not None and leaf.depth + 1 >= growth.max_depth
        nodes = self._n_nodes, self._n_nodes + 1
        self._n_nodes += 2
        summed = int(right) if search and not deep else -1
        return Order(leaf.node, leaf.split, nodes, summed, leaf.node in self._failed)

    def _expand(self, orders: Sequence[Order], leaves: list[int]) -> list[tuple[Answer, ...]]:
        """Return the answers of all workers to each order, and keep the sums of leaves."""
        results = self.workers.call("expand", orders, leaves)
        if leaves:
            sums = zip(*(sums for _, sums in results), strict=True)
            self._sums = leaves, [np.sum(some, axis=0) for some in sums]
        return list(zip(*(answers for answers, _ in results), strict=True))

    def _take(self, leaf: Leaf, order: Order, answer: Sequence[Answer]) -> None:
        """Set the children of a leaf by the answers of all workers."""
        growth, n_left = self.growth, sum(part.n_left for part in answer)
        if min(n_left, leaf.n_rows - n_left) < growth.min_samples_leaf:
            leaf.children = ()
            self._failed.add(leaf.node)
            return
        leaf.children = children = leaf.divide(growth, order.children, n_left)
        parent = self._histograms.pop(leaf.node)
        if order.summed < 0:
            return
        smaller = children[order.summed]
        histogram = self._filled(added([part.histogram for part in answer]), smaller.packed)
        both = [histogram, parent - histogram]
        for side, child in enumerate(children):
            self._histograms[child.node] = both[side != order.summed]
            if child.may_split(growth):
                self._find_splits(child)

    def recount(self, leaf: Leaf) -> None:
        """Implement `HistogramSource.recount`; one exchange."""
        counts = self._filled(added(self.workers.call("count", leaf.node)), leaf.n_rows)
        self._find_splits(leaf, counts.astype(np.int32))

    def sum_leaves(self, leaves: Sequence[Leaf]) -> list[Floats]:
        """Implement `TreeRows.sum_leaves`: one exchange, unless they came with the last."""
        nodes = [leaf.node for leaf in leaves]
        if nodes != self._sums[0]:
            self._expand([], nodes)
        return [sums / self._normaliser for sums in self._sums[1]]

    def evaluate(self, values: Floats | None, biases: Floats) -> tuple[Floats, ...]:
        parts = zip(*self.workers.call("evaluate", values, biases), strict=True)
        return tuple(np.sum(part, axis=0) for part in parts)

    def score_range(self) -> Floats:
        return np.concatenate([np.ravel(scores) for scores in self.workers.call("score_range")])

    def begin_stump(
        self, stump: Stump | None, alpha: float, totals: Floats | None
    ) -> tuple[Floats, Floats]:
        """Return the totals, and the gradients by bin, of `BinnedRows.begin_stump`."""
        parts = self.workers.call("begin_stump", stump, alpha, totals)
        found: Floats = np.sum([totals_of_worker for totals_of_worker, _ in parts], axis=0)
        if totals is None:
            return found, np.empty(0)
        sums = self._added([packed for _, packed in parts]).histogram
        return found, np.ldexp(sums.view(np.int64).astype(np.float64), -STUMP_BITS)

    def by_column(self, sums: Floats) -> Floats:
        """Return sums by bin as a table: a row per feature, the missing in the last column."""
        n_bins = self.bins.n_bins.astype(np.int64)
        table = np.zeros((n_bins.size, int(n_bins.max()) + 1))
        column = np.arange(sums.size) - np.repeat(self._bounds[:-1], n_bins + 1)
        feature = np.repeat(np.arange(n_bins.size), n_bins + 1)
        column[self._bounds[1:] - 1] = table.shape[1] - 1
        table[feature, column] = sums
        return table

    def _begin(
        self, values: Floats | None, totals: Floats | None, units: Units | None, number: int
    ) -> Begun:
        """Return the sums of `BinnedRows.begin` of all workers: one exchange."""
        parts = self.workers.call("begin", values, totals, units, number)
        roots = [part.root for part in parts]
        return Begun(
            np.sum([part.totals for part in parts], axis=0),
            sum(part.hessian for part in parts),
            sum(part.magnitude for part in parts),
            sum(part.n_rows for part in parts),
            None if units is None else self._added(roots),
        )

    def _added(self, parts: Sequence[PackedSums]) -> PackedSums:
        """Return the sums of all workers, with the rows that have no entry in a sparse column."""
        total = sum(part.total for part in parts) & BITS_64
        return PackedSums(total, self._filled(added([part.histogram for part in parts]), total))

    def _filled(self, histogram: Histogram, packed: int) -> Histogram:
        """Add the rows without an entry to the bins of 0, given the sum of all rows."""
        sums = np.add.reduceat(histogram, self._bounds[:-1])
        histogram[self._bounds[:-1] + self.bins.zero_bin] += np.uint64(packed) - sums
        return histogram

    def _find_splits(self, leaf: Leaf, counts: NDArray[np.int32] | None = None) -> None:
        """Find the best split of a leaf; ties go to the first feature.

        With the number of rows of each bin, no split leaves a child too few rows.
        """
        growth, units = self.growth, leaf.units
        allowed = leaf.allowed()
        splits = np.empty(self.n_features, dtype=SPLIT)
        splitting.find_splits(
            self._histograms[leaf.node],
            self._bounds,
            counts,
            np.array([(leaf.packed, leaf.n_rows, leaf.low, leaf.high, 0)], dtype=LEAF),
            None if allowed is None else allowed.view(np.uint8),
            growth.signs,
            None,
            units.l2(growth),
            units.min_hessian(growth),
            growth.min_samples_leaf,
            self._scratch,
            self._gains,
            splits,
        )
        at = int(splits["gain"].argmax())
        gain, packed, bin, missing_right = splits[at].tolist()
        leaf.take(Split(gain, packed, at, bin, missing_right) if gain > 0 else NO_SPLIT, growth)
        if leaf.try_others():
            self._find_splits(leaf, counts)


def added(histograms: Sequence[Any]) -> Histogram:
    """Return the sum of histograms."""
    total: Histogram = np.sum(histograms, axis=0, dtype=np.uint64)
    return total


class WorkerStumps(StumpRounds):
    """Rounds with stumps: one exchange with the workers each, and another to measure some steps."""

    def __init__(self, step: Step, by_label: bool, model: StumpSum, rows: WorkerTrees) -> None:
        super().__init__(model, rows.bins, step)
        self.rows, self._by_label = rows, by_label

    def begin(self) -> None:
        """Begin the next round with new workers, which have the scores of the model."""
        self._normalised: Floats | None
        self._normalised, _ = self.rows.begin_stump(None, 0.0, None)
        total = weight_of(self._normalised, self._by_label)
        if not len(self.model):
            self._first_total = total
            check_weight(total)
        self._add(None, 0.0)

    def best(self) -> Stump:
        """Return the stump of maximum |edge|; ties as in `Search.best`."""
        # Columns of bins, the highest first, and one of missing values.
        edges, sums = self.rows.bins, self.rows.by_column(self._gradients)
        present, has_missing = sums[:, :-1], edges.has_missing.astype(bool)[:, np.newaxis]
        above = np.cumsum(present[:, ::-1], axis=1)
        # Potentials sum to 0: with the missing, a stump fires on all but the bins below. Those of
        # whole queries sum to 0, too: if only these miss the feature, both sides tie.
        total = present.sum(axis=1, keepdims=True)
        with_missing = above - np.where(np.abs(total) < EDGE_MARGIN, 0.0, total)
        bin = np.arange(present.shape[1])[::-1]
        exists = bin < edges.n_bins[:, np.newaxis]
        edges_by_side = np.stack(
            [
                np.where(exists & has_missing & (bin > 0), with_missing, 0.0),
                np.where(exists & (has_missing | (bin > 0)), above, 0.0),
            ],
            axis=2,
        ).reshape(len(sums), -1)
        at = int(np.abs(edges_by_side).argmax())
        edge = float(edges_by_side.flat[at])
        feature, place = divmod(at, edges_by_side.shape[1])
        return Stump(feature, int(bin[place // 2]) if edge else -1, 1 - place % 2, edge)

    def measure(self, stump: Stump) -> tuple[float, float, float]:
        weights = np.sum(self.rows.workers.call("measure", stump), axis=0)
        if self._by_label:
            silent_won, silent_lost, won, lost = weights
            weights = np.array([won * silent_lost, silent_won * lost, won * lost])
        rightly, wrongly, both = (weights / weight_of(self._totals, self._by_label)).tolist()
        return rightly, wrongly, both

    def advance(self, stump: Stump, alpha: float) -> float:
        before = weight_of(self._totals, self._by_label)
        self._add(stump, alpha)
        total = weight_of(self._totals, self._by_label)
        vanished = not total > MIN_TOTAL * self._first_total
        self.done = abs(stump.edge) >= 1 - EDGE_MARGIN or vanished
        return total / before

    def _add(self, stump: Stump | None, alpha: float) -> None:
        """Add a stump to the scores, and sum the gradients by bin.

        These are normalised by earlier totals, which saves an exchange, unless few of their bits
        would be left.
        """
        if self._by_label or self._normalised is None:
            self._normalised, _ = self.rows.begin_stump(stump, alpha, None)
            stump = None
        self._totals, gradients = self.rows.begin_stump(stump, alpha, self._normalised)
        ratio = 1.0 if self._by_label else float(self._totals[0] / self._normalised[0])
        if 0 < ratio < LEAST_RATIO:
            self._normalised = None
            self._add(None, 0.0)
            return
        self._gradients = gradients / ratio if ratio > 0 else gradients


WorkerRounds = PairTrees | OrdinalRounds | WorkerStumps


def pair_rounds(
    fitted: Any, edges: BinEdges, by_label: bool, sizes: Sequence[int]
) -> PairTrees | WorkerStumps:
    """Return the rounds of a `RankBoost` or `BipartiteRankBoost` that was begun.

    ``by_label``: rows are of two labels without queries. ``sizes`` are the numbers of rows, of
    pairs, and of rows of the upper and the lower label.
    """
    n_docs, n_pairs, n_won, n_lost = sizes
    model, draws = fitted._state.model, Draws(fitted, edges.n_bins.size)
    objective: type[QueryPairs | LabelPairs] = LabelPairs if by_label else QueryPairs
    if not grows_trees(fitted):
        step = Step.of(fitted, n_won * n_lost if by_label else n_pairs)
        rows = WorkerTrees(edges, GrowthParams(2), draws, objective)
        return WorkerStumps(step, by_label, model, rows)
    growth = pair_growth(fitted, n_docs, split_constraints(fitted, None).signs)
    return PairTrees(fitted, by_label, model, WorkerTrees(edges, growth, draws, objective))


def occurring_ranks(fitted: Any, ranks: NDArray[np.int32]) -> OccurringRanks:
    """Return the ranks that an `OrdinalBoost` learns, given those with rows of positive weight."""
    return OccurringRanks.of(ranks, fitted._state.model.form)


def rank_rounds(
    fitted: Any, edges: BinEdges, occurring: OccurringRanks, n_docs: int, total: float
) -> OrdinalRounds:
    """Return the rounds of an `OrdinalBoost` that was begun; ``total`` is the weight of rows."""
    growth = ordinal_growth(fitted, n_docs, split_constraints(fitted, None).signs)
    draws = ordinal_draws(fitted, edges.n_bins.size, occurring.form)
    alike = occurring.n_scores == 1  # along random directions, sums of each tree differ
    rows = WorkerTrees(edges, growth, draws, RankedRows, alike)
    return OrdinalRounds(fitted, occurring, total, fitted._state.model, rows)
