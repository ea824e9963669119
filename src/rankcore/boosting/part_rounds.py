"""Rounds of boosting at the client of a cluster, from sums over the rows of its workers.

The client adds the histograms of the workers, picks splits and grows trees by the grower of rows in
memory. An exchange is one call of all workers, which hold `rankcore.boosting.parts.BinnedRows`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import frexp, inf, ldexp
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._ext import splitting
from rankcore.boosting._boosted import split_constraints
from rankcore.boosting._grower import (
    BITS_64,
    NO_SPLIT,
    FeatureDraws,
    GrownTree,
    GrowthParams,
    Leaf,
    Split,
    TreeGrower,
    Units,
)
from rankcore.boosting._histograms import LEAF, SPLIT
from rankcore.boosting._ordinal_rounds import MIN_HESSIAN, Occurring
from rankcore.boosting._ordinal_shared import maximise_by_biases
from rankcore.boosting._ordinal_training import HeldOutTables, OrdinalRoundLearner
from rankcore.boosting._pair_rounds import EDGE_MARGIN, MIN_TOTAL
from rankcore.boosting._pair_weights import vanishing
from rankcore.boosting._streamed_bins import BinEdges
from rankcore.boosting._stump_rounds import Step, Weighed, next_stump
from rankcore.boosting._stump_search import Stump
from rankcore.boosting._training import RoundLearner, train_rounds
from rankcore.boosting._tree_rounds import (
    Draws,
    best_step,
    made_tree,
    newton_values,
    normalizer_cap,
)
from rankcore.boosting._vector_leaves import LeafSums, monotone_steps, newton_steps
from rankcore.boosting.params import Schedule, grows_trees, resolve_min_samples_leaf
from rankcore.boosting.parts import STUMP_BITS, Answer, Begun, Histogram, Order

__all__ = [
    "HeldOutTables",
    "OrdinalRoundLearner",
    "PartRounds",
    "RoundLearner",
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
# Packed sums of the first tree use their whole range, as in memory. Those of the next begin at a
# quarter of it: they may grow by this factor, and shrink by the second, before units must change.
HEADROOM, SHRINKAGE = 4.0, 16.0
# Leaves of at most this multiple of ``min_samples_leaf`` rows are searched with the number of rows
# of each bin; if a split of others leaves a child too few, that costs an exchange.
COUNTED = 500
# Ratio of the totals of gradients of stumps and of those they are normalised by.
LEAST_RATIO = 1e-3


class Workers(Protocol):
    """All workers with rows."""

    n_calls: int

    def call(self, method: str, *args: Any) -> list[Any]:
        """Return the results of a method of `BinnedRows` of all workers."""


@dataclass
class Known:
    """Histogram of a leaf."""

    histogram: Histogram
    counts: NDArray[np.int32] | None  # numbers of rows, if known


class SummedHistograms:
    """A `rankcore.boosting._grower.HistogramSource` for `BinnedRows` on workers.

    ``ratio`` is a function of two totals: that of the hessians normalised by the second and by the
    first; None if gradients must be normalised by the latest totals, at the cost of an exchange.
    """

    def __init__(
        self, edges: BinEdges, growth: GrowthParams, ratio: Callable[[Floats, Floats], float] | None
    ) -> None:
        self.edges, self.growth, self._ratio = edges, growth, ratio
        self.n_features = int(edges.n_bins.size)
        sizes = edges.n_bins.astype(np.int64) + 1
        self._bounds = np.concatenate([[0], np.cumsum(sizes)])
        self._scratch = np.empty(4 * int(sizes.max()), dtype=np.uint64)
        self._gains = np.empty(2 * int(sizes.max()))
        self.workers: Any = None
        self._totals: Floats | None = None  # that gradients were last normalised by
        self._units: Units | None = None
        self._counts_root = False

    def restart(self, workers: Workers) -> None:
        """Take new workers, which have the scores of the model."""
        self.workers, self._totals, self._units = workers, None, None

    def begin_tree(
        self, values: Floats | None, draw: Any, features: FeatureDraws | None
    ) -> tuple[Leaf, Floats]:
        """Add the values of the last tree's leaves; return the next root, and the totals.

        One exchange: gradients are normalised by the totals of the tree before, and rounded in its
        units, unless sums would leave their range.
        """
        if self._totals is None or self._ratio is None:
            self._totals, values = self._begin(values, None, None, draw, False).totals, None
        whole = False
        while True:
            found = self._begin(values, self._totals, self._units, draw, self._counts_root)
            values = None
            if not 0 < found.hessian < inf:
                return Leaf(0, 0, 0, Units(1.0, 1.0)), found.totals
            if self._units is None:
                self._units, whole = self._units_of(found), True
            elif whole or self._fits(found):
                break
            else:
                self._totals, self._units = found.totals, None
        scale, power = self._units
        if whole:
            self._units = Units(scale / HEADROOM, power)
        ratio = 1.0 if self._ratio is None else self._ratio(found.totals, self._totals)
        root = Leaf(0, found.n_rows, found.packed, Units(scale * ratio, power), features)
        counts = self._row_counts(found.counts, root)
        self._counts_root, self._failed = self._may_count(root), set[int]()
        self._n_nodes, self._sums = 1, (list[int](), list[Floats]())
        self._known = {0: Known(self._filled(found.histogram, found.packed), counts)}
        if root.may_split(self.growth):
            self._find_splits(root)
        return root, found.totals

    def expand(self, leaf: Leaf, tree: GrownTree, room: int) -> None:
        """As `HistogramSource.expand`; one exchange, for leaves that are likely to follow too.

        If the tree is likely to end with these, the sums of its leaves are part of the exchange.
        """
        likely = tree.likely_splits(room)
        ahead = [one for _, one in likely if one.children is None]
        orders = [self._order(one, search=room > 1) for one in ahead]
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
        """Return the nodes of the tree's leaves after more splits, for some of which are orders."""
        asked = {order.node: order.children for order in orders}
        nodes = [leaf.node for leaf in tree.leaves]
        for number, leaf in splits:
            both = leaf.children
            left, right = (both[0].node, both[1].node) if both else asked[leaf.node]
            nodes[number] = left
            nodes.append(right)
        return nodes

    def _order(self, leaf: Leaf, search: bool) -> Order:
        """Return what to ask the workers for about a leaf to split."""
        growth = self.growth
        right = 2 * splitting.hessian(leaf.split.packed) <= splitting.hessian(leaf.packed)
        deep = growth.max_depth is not None and leaf.depth + 1 >= growth.max_depth
        nodes = self._n_nodes, self._n_nodes + 1
        self._n_nodes += 2
        summed = int(right) if search and not deep else -1
        counted, again = summed >= 0 and self._may_count(leaf), leaf.node in self._failed
        return Order(leaf.node, leaf.split, nodes, summed, counted, again)

    def _expand(self, orders: Sequence[Order], leaves: list[int]) -> list[tuple[Answer, ...]]:
        """Return the answers of all workers to each order, and keep the sums of leaves."""
        found = self.workers.call("expand", orders, leaves)
        if leaves:
            sums = zip(*(sums for _, sums in found), strict=True)
            self._sums = leaves, [np.sum(some, axis=0) for some in sums]
        return list(zip(*(answers for answers, _ in found), strict=True))

    def _take(self, leaf: Leaf, order: Order, answer: Sequence[Answer]) -> None:
        """Set the children of a leaf by the answers of all workers."""
        growth, n_left = self.growth, sum(one.n_left for one in answer)
        if min(n_left, leaf.n_rows - n_left) < growth.min_samples_leaf:
            leaf.children = ()
            self._failed.add(leaf.node)
            return
        leaf.children = children = leaf.divide(growth, order.children, n_left)
        parent = self._known.pop(leaf.node)
        if order.summed < 0:
            return
        smaller = children[order.summed]
        histogram = self._filled(added([one.histogram for one in answer]), smaller.packed)
        both = [histogram, parent.histogram - histogram]
        for side, child in enumerate(children):
            counts = None
            if order.counted:
                counts = self._row_counts(added([one.counts[side] for one in answer]), child)
            self._known[child.node] = Known(both[side != order.summed], counts)
            if child.may_split(growth):
                self._find_splits(child)

    def recount(self, leaf: Leaf) -> None:
        """As `HistogramSource.recount`; one exchange."""
        counts = added(self.workers.call("count", leaf.node))
        self._known[leaf.node].counts = self._row_counts(counts, leaf)
        self._find_splits(leaf)

    def _may_count(self, leaf: Leaf) -> bool:
        """Return whether the rows of the children of a leaf are counted by bin."""
        least = self.growth.min_samples_leaf
        return least > 1 and leaf.n_rows <= COUNTED * least

    def _row_counts(self, counts: Histogram, leaf: Leaf) -> NDArray[np.int32] | None:
        return self._filled(counts, leaf.n_rows).astype(np.int32) if counts.size else None

    def sum_leaves(self, leaves: Sequence[Leaf]) -> list[Floats]:
        """Return the objective's sums by leaf; one exchange, unless they came with the last."""
        nodes = [leaf.node for leaf in leaves]
        if nodes != self._sums[0]:
            self._expand([], nodes)
        return self._sums[1]

    def begin_stump(self, *args: Any) -> tuple[Floats, Floats]:
        """Return the totals, and the gradients by bin, of `BinnedRows.begin_stump`."""
        found = self.workers.call("begin_stump", *args)
        totals = np.sum([one.totals for one in found], axis=0)
        sums: Histogram = np.sum([one.histogram for one in found], axis=0, dtype=np.uint64)
        if not sums.size:
            return totals, np.empty(0)
        sums = self._filled(sums, sum(one.packed for one in found) & BITS_64)
        return totals, np.ldexp(sums.view(np.int64).astype(np.float64), -STUMP_BITS)

    def by_column(self, sums: Floats) -> Floats:
        """Return sums by bin as a table: a row per feature, the missing in the last column."""
        n_bins = self.edges.n_bins.astype(np.int64)
        table = np.zeros((n_bins.size, int(n_bins.max()) + 1))
        column = np.arange(sums.size) - np.repeat(self._bounds[:-1], n_bins + 1)
        feature = np.repeat(np.arange(n_bins.size), n_bins + 1)
        column[self._bounds[1:] - 1] = table.shape[1] - 1
        table[feature, column] = sums
        return table

    def _begin(self, *args: Any) -> Begun:
        found = self.workers.call("begin", *args)
        sums = [np.sum(some, axis=0) for some in zip(*found, strict=True)]
        packed = sum(one.packed for one in found) & BITS_64
        return Begun(sums[0], float(sums[1]), float(sums[2]), int(sums[3]), packed, *sums[5:])

    def _units_of(self, found: Begun) -> Units:
        """Return the units of `rankcore._ext.histograms.quantise` for sums over all rows."""
        scale, power = (self._limit - 1 - 2 * found.n_rows) / found.hessian, 1.0
        if not self.growth.bounded and found.magnitude > 0:
            room = (2.0**31 - 1 - found.n_rows) / (found.magnitude * scale)
            power = ldexp(1.0, frexp(room)[1] - 1)
        return Units(scale, power)

    def _fits(self, found: Begun) -> bool:
        """Return whether packed sums are within their range, and use enough of it."""
        assert self._units is not None
        scale, power = self._units
        rounding, hessian = 2.0 * found.n_rows, found.hessian * scale
        if not self._limit / (HEADROOM * SHRINKAGE) <= hessian <= self._limit - rounding:
            return False
        return self.growth.bounded or found.magnitude * scale * power <= 2.0**31 - rounding

    @property
    def _limit(self) -> float:
        return 2.0**31 if self.growth.bounded else 2.0**32

    def _filled(self, histogram: Histogram, packed: int) -> Histogram:
        """Add to the bins of 0 the rows without an entry, given the sum of all rows."""
        sums = np.add.reduceat(histogram, self._bounds[:-1])
        histogram[self._bounds[:-1] + self.edges.zero_bin] += np.uint64(packed) - sums
        return histogram

    def _find_splits(self, leaf: Leaf) -> None:
        """Find the best split of a leaf; ties go to the first feature."""
        known, growth, units = self._known[leaf.node], self.growth, leaf.units
        allowed = leaf.allowed()
        splits = np.empty(self.n_features, dtype=SPLIT)
        splitting.find_splits(
            known.histogram,
            self._bounds,
            known.counts,
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
            self._find_splits(leaf)


def added(histograms: Sequence[Any]) -> Histogram:
    """Return the sum of histograms."""
    total: Histogram = np.sum(histograms, axis=0, dtype=np.uint64)
    return total


class PartRounds(ABC):
    """Rounds of a fit on workers; ``model`` is that of all rounds that ended."""

    done = False  # whether no further round improves the model
    subsample = 1.0

    def __init__(self, model: Any, source: SummedHistograms) -> None:
        self.model, self.source = model, source

    @property
    def constructor(self) -> tuple[Any, ...]:
        """Arguments of `BinnedRows` between the parts and the worker, for the model as it is."""
        return self.model, self.source.edges, self.source.growth, self.subsample

    def begin(self, workers: Workers) -> None:
        """Begin the next round with new workers, which have the scores of the model."""
        self.source.restart(workers)

    @abstractmethod
    def round(self) -> Any:
        """Make a round, and begin the next; return its figures, or None if there is none."""


class TreeRounds(PartRounds):
    """Rounds with trees, of any objective."""

    def __init__(self, params: Any, model: Any, source: SummedHistograms, seeded: bool) -> None:
        super().__init__(model, source)
        self.growth, self._draws = source.growth, Draws(params, source.n_features, seeded)
        self.subsample = float(params.subsample)
        self._leaf: Leaf | None = None

    def begin(self, workers: Workers) -> None:
        """As `PartRounds.begin`."""
        super().begin(workers)
        self._leaf, self._totals = self._begin_tree(len(self.model), None)

    def _begin_tree(self, number: int, values: Floats | None) -> tuple[Leaf, Floats]:
        """Begin a tree, after the values of the leaves of the last one are added."""
        draw = self._draws.seed, number
        return self.source.begin_tree(values, draw, self._draws.features(number))

    def _grow(self) -> GrownTree | None:
        """Grow the tree that was begun; None if no split gains."""
        assert self._leaf is not None
        grown = TreeGrower(self.source, self.growth).grow(self._leaf)
        return grown if grown.features else None


class PairTrees(TreeRounds):
    """Rounds of RankBoost with trees."""

    def __init__(self, params: Any, by_label: bool, model: Any, source: SummedHistograms) -> None:
        super().__init__(params, model, source, seeded=False)
        self._rate, self._spent = Schedule.of(params).learning_rate, 1.0
        self._by_label, self._search = by_label, params.leaf_step == "search"
        self._bounds_step = self._search and params.pair_weight is None

    def begin(self, workers: Workers) -> None:
        """As `PartRounds.begin`."""
        super().begin(workers)
        check_weight(weight_of(self._totals, self._by_label))

    def round(self) -> dict[str, float] | None:
        """As `PartRounds.round`."""
        grown = self._grow()
        if grown is None:
            return None
        sums, gradients, between = self._sums(self.source.sum_leaves(grown.leaves))
        values = newton_values(sums, self.growth.l2_leaf, grown)
        if self._search:
            values *= best_step(between, values)
        values *= self._rate
        width = float(values.max() - values.min())
        edge = float(gradients @ values) / width if width > 0 else 0.0
        before = weight_of(self._totals, self._by_label)
        leaf, totals = self._begin_tree(len(self.model) + 1, values)
        self.model.add(made_tree(self.source.edges, grown, values))
        self._leaf, self._totals = leaf, totals
        normalizer = weight_of(totals, self._by_label) / before
        self._spent *= normalizer
        self.done = not self._spent > MIN_TOTAL
        cap = normalizer_cap(edge, width, self._rate if self._bounds_step else None)
        return {"edge": edge, "alpha": width, "normalizer": normalizer, "cap": cap}

    def _sums(self, found: list[Floats]) -> tuple[Floats, Floats, Floats]:
        """Return gradients and hessians by leaf, gradients of all rows, and weights between."""
        if not self._by_label:
            sums, gradients, between = (one / self._totals[1] for one in found)
            return sums, gradients, between
        (won, lost), of_all = (one / self._totals[:, None] for one in found)
        return np.array([won - lost, won + lost]), of_all[0] - of_all[1], np.outer(*of_all)


class PairStumps(PartRounds, Weighed):
    """Rounds of RankBoost with stumps: one exchange each, and one to measure for some steps."""

    def __init__(self, step: Step, by_label: bool, model: Any, source: SummedHistograms) -> None:
        super().__init__(model, source)
        self._step, self._by_label, self._spent = step, by_label, 1.0

    def begin(self, workers: Workers) -> None:
        """As `PartRounds.begin`."""
        super().begin(workers)
        self._normalised: Floats | None
        self._normalised, _ = self.source.begin_stump(None, 0.0, None)
        check_weight(weight_of(self._normalised, self._by_label))
        self._add(None, 0.0)

    def round(self) -> dict[str, float] | None:
        """As `PartRounds.round`."""
        made = next_stump(self, self.source.edges, self._step)
        if made is None:
            return None
        self.model.add(made.feature, made.threshold, made.fires_missing, made.alpha)
        return made.figures

    def best(self) -> Stump:
        """Return the stump of maximum |edge|; ties as in `Search.best`."""
        # Columns of bins, the highest first, and one of missing values.
        edges, sums = self.source.edges, self.source.by_column(self._gradients)
        present, has_missing = sums[:, :-1], edges.has_missing.astype(bool)[:, np.newaxis]
        above = np.cumsum(present[:, ::-1], axis=1)
        # Potentials sum to 0: with the missing, a stump fires on all but the bins below.
        with_missing = above - present.sum(axis=1, keepdims=True)
        bin = np.arange(present.shape[1])[::-1]
        known = bin < edges.n_bins[:, np.newaxis]
        found = np.stack(
            [
                np.where(known & has_missing & (bin > 0), with_missing, 0.0),
                np.where(known & (has_missing | (bin > 0)), above, 0.0),
            ],
            axis=2,
        ).reshape(len(sums), -1)
        at = int(np.abs(found).argmax())
        edge = float(found.flat[at])
        feature, place = divmod(at, found.shape[1])
        return Stump(feature, int(bin[place // 2]) if edge else -1, 1 - place % 2, edge)

    def measure(self, stump: Stump) -> tuple[float, float, float]:
        """As `Weighed.measure`."""
        found = np.sum(self.source.workers.call("measure", stump), axis=0)
        if self._by_label:
            silent_won, silent_lost, won, lost = found
            found = np.array([won * silent_lost, silent_won * lost, won * lost])
        rightly, wrongly, both = (found / weight_of(self._totals, self._by_label)).tolist()
        return rightly, wrongly, both

    def advance(self, stump: Stump, alpha: float) -> float:
        """As `Weighed.advance`."""
        before = weight_of(self._totals, self._by_label)
        self._add(stump, alpha)
        normalizer = weight_of(self._totals, self._by_label) / before
        self._spent *= normalizer
        self.done = abs(stump.edge) >= 1 - EDGE_MARGIN or not self._spent > MIN_TOTAL
        return normalizer

    def _add(self, stump: Stump | None, alpha: float) -> None:
        """Add a stump to the scores, and sum the gradients by bin.

        These are normalised by earlier totals, which saves an exchange, unless few of their bits
        would be left.
        """
        if self._by_label or self._normalised is None:
            self._normalised, _ = self.source.begin_stump(stump, alpha, None)
            stump = None
        self._totals, gradients = self.source.begin_stump(stump, alpha, self._normalised)
        ratio = 1.0 if self._by_label else float(self._totals[0] / self._normalised[0])
        if 0 < ratio < LEAST_RATIO:
            self._normalised = None
            self._add(None, 0.0)
            return
        self._gradients = gradients / ratio if ratio > 0 else gradients


class RankedTrees(TreeRounds):
    """Rounds of OrdinalBoost."""

    def __init__(
        self,
        params: Any,
        occurring: Occurring,
        total: float,
        model: Any,
        source: SummedHistograms,
    ) -> None:
        draws_directions = not occurring.form.shared and params.random_state is not None
        super().__init__(params, model, source, seeded=draws_directions)
        self._occurring, self._total, self._rate = occurring, total, float(params.learning_rate)
        self.done = occurring.ranks.size < 2

    def go_back(self, model: Any) -> None:
        """Replace the model, by that of the best round."""
        self.model = model

    def round(self) -> float | None:
        """As `PartRounds.round`."""
        grown = self._grow()
        if grown is None:
            return None
        values = np.ascontiguousarray(self._rate * self._values(grown))
        if self._occurring.form.shared and self._occurring.ranks.size > 2:
            biases = self._maximise(values)
            leaf, totals = self._begin_tree(len(self.model) + 1, None)
        else:  # the trees alone fit two ranks, or a vector
            biases = self.model.biases[-1]
            leaf, totals = self._begin_tree(len(self.model) + 1, values)
        first = made_tree(self.source.edges, grown, values[0])
        values = self._occurring.restored_values(values)
        self.model.add([first._replace(values=of_score) for of_score in values], biases)
        self._leaf, self._totals = leaf, totals
        return float(totals[0]) / self._total

    def _values(self, grown: GrownTree) -> Floats:
        """Return the values of leaves, shape (n_scores, n_leaves)."""
        gradients, hessians = self.source.sum_leaves(grown.leaves)
        l2_leaf, signs = self.growth.l2_leaf, self.growth.signs
        if gradients.ndim == 1:
            return newton_values(np.array([gradients, hessians]), l2_leaf, grown)[np.newaxis]
        sums = LeafSums(gradients, hessians)
        if signs is None:
            return newton_steps(sums, l2_leaf).T
        children = np.array(grown.children, dtype=np.int32)
        return monotone_steps(sums, l2_leaf, children, signs[np.array(grown.features)]).T

    def _maximise(self, values: Floats) -> Floats:
        """Add the values of leaves; return the biases of all ranks that then fit best."""
        occurring, added = self._occurring, [values]

        def evaluate(biases: Floats) -> tuple[float, Floats, Floats]:
            self._biases = biases
            found = self.source.workers.call("evaluate", added.pop() if added else None, biases)
            loss, gradients, hessians = (np.sum(one, axis=0) for one in zip(*found, strict=True))
            return float(loss), gradients, hessians

        now, first = (occurring.biases(self.model.biases[i]) for i in (-1, 0))
        maximise_by_biases(evaluate, now, first, self._total, occurring.form.cumulative)
        if occurring.whole:
            return self._biases
        extremes = self.source.workers.call("extremes")
        scores = np.concatenate([np.ravel(one) for one in extremes])[np.newaxis]
        return occurring.restored_biases(self._biases, now, scores)


def weight_of(totals: Floats, by_label: bool) -> float:
    """Return the weight of all pairs from the totals of an objective of pairs."""
    return float(totals[0] * totals[1]) if by_label else float(totals[0])


def check_weight(weight: float) -> None:
    """Raise ValueError if the weights of all pairs have vanished."""
    if not 0 < weight < inf:
        raise vanishing()


def pair_rounds(fitted: Any, edges: BinEdges, by_label: bool, sizes: Sequence[int]) -> PartRounds:
    """Return the rounds of a `RankBoost` or `BipartiteRankBoost` that was begun.

    ``by_label``: rows are of two labels without queries. ``sizes`` are the numbers of rows, of
    pairs, and of rows of the upper and the lower label.
    """

    def ratio(new: Floats, used: Floats) -> float:
        return float(new[1] / used[1]) if used[1] > 0 else 1.0

    n_docs, n_pairs, n_won, n_lost = sizes
    of_totals = None if by_label else ratio
    if not grows_trees(fitted):
        source = SummedHistograms(edges, GrowthParams(2), of_totals)
        step = Step.of(fitted, n_won * n_lost if by_label else n_pairs)
        return PairStumps(step, by_label, fitted._state.model, source)
    least = resolve_min_samples_leaf(fitted.min_samples_leaf, n_docs)
    signs = split_constraints(fitted, None).signs
    growth = GrowthParams.of(fitted, least, float(fitted.min_pair_weight), signs, bounded=True)
    source = SummedHistograms(edges, growth, of_totals)
    return PairTrees(fitted, by_label, fitted._state.model, source)


def occurring_ranks(fitted: Any, ranks: NDArray[np.int32]) -> Occurring:
    """Return the ranks that an `OrdinalBoost` learns, given those with rows of positive weight."""
    return Occurring.of(ranks, fitted._state.model.form)


def rank_rounds(
    fitted: Any, edges: BinEdges, occurring: Occurring, n_docs: int, total: float
) -> PartRounds:
    """Return the rounds of an `OrdinalBoost` that was begun; ``total`` is the weight of rows."""
    least = resolve_min_samples_leaf(fitted.min_samples_leaf, n_docs)
    signs = split_constraints(fitted, None).signs
    growth = GrowthParams.of(fitted, least, MIN_HESSIAN, signs, bounded=False)
    source = SummedHistograms(edges, growth, lambda new, used: 1.0)
    return RankedTrees(fitted, occurring, total, fitted._state.model, source)
