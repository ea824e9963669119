"""Rows of a boosting fit on one worker of a cluster: histograms, partition and sums.

`BinnedRows` has the binned rows of a worker, and an objective (`rankcore.boosting._objectives`) for
each part of them. It sums gradients and hessians by bin, as 64-bit integers, and partitions the
rows of leaves, as `rankcore.boosting.worker_rounds` orders, which adds the sums of all workers and
grows trees. `pair_part` and `rank_part` form the parts, `bin_edges` the thresholds of all workers.
Pairs of a query are weighed where its rows are. Without queries, all rows have the pairs of two
labels: the weights are products of a factor per row, whose sums by label are returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankcore._core.inputs import as_rows
from rankcore._core.numbers import Floats
from rankcore._core.queries import group_rows
from rankcore._core.threads import Threads
from rankcore._ext import histogram_layout, histograms, partition, stumps
from rankcore._ext.rows import Rows
from rankcore.boosting._grower import GrowthParams, Split, Units
from rankcore.boosting._histograms import Features, divide_features
from rankcore.boosting._objectives import LabelPairs, Objective, QueryPairs
from rankcore.boosting._occurring_ranks import OccurringRanks
from rankcore.boosting._ordinal_objective import RankedRows
from rankcore.boosting._streamed_bins import BinEdges, StreamedBins, ValueGroups
from rankcore.boosting._stump_search import Stump
from rankcore.boosting._tree_rounds import Draws
from rankcore.boosting.ordinal_model import OrdinalSum
from rankcore.ranking.pairs import pair_by_label

Histogram = NDArray[np.uint64]
# Gradients of stumps, which have no hessians, are multiples of 2 to the power of minus this.
STUMP_BITS = 56


@dataclass
class Part:
    """Rows that a fit learns from."""

    X: Any
    taken: NDArray[np.int64]  # numbers of the rows, in the order of the objective
    # Function that returns the `Objective`: of their scores; with an `OrdinalSum`, of its biases,
    # their scores and the threads.
    objective: Any
    sizes: tuple[int, ...]  # number of rows; of pairs, and of rows by label
    number: int  # of the part, by which rows are drawn


class Order(NamedTuple):
    """A split of a node, and what to sum."""

    node: int
    split: Split
    children: tuple[int, int]  # numbers of the left and the right one
    summed: int  # which child's histogram to build: 0 or 1; -1: none
    again: bool  # whether the node was partitioned by another split before


class Answer(NamedTuple):
    """Result of an `Order` on a worker."""

    n_left: int
    histogram: Histogram | None


class Begun(NamedTuple):
    """Sums over the rows of a worker at the beginning of a round."""

    totals: Floats
    # Of the drawn rows: hessians, magnitudes of gradients, number.
    hessian: float = 0.0
    magnitude: float = 0.0
    n_rows: int = 0
    root: PackedSums | None = None  # of these rows, if units are known


class PackedSums(NamedTuple):
    """Sums of packed gradients and hessians: of all rows of a node, and by bin."""

    total: int
    histogram: Histogram


class BinnedRows:
    """Binned rows of a worker; all other methods are called by `worker_rounds`."""

    def __init__(
        self,
        parts: Sequence[Part],
        model: Any,
        edges: BinEdges,
        growth: GrowthParams,
        draws: Draws,
        n_threads: int,
    ) -> None:
        ends = np.cumsum([0, *(part.taken.size for part in parts)])
        self._slices = [slice(a, b) for a, b in pairwise(ends.tolist())]
        n, rows = int(ends[-1]), [as_rows(part.X, nan=True) for part in parts]
        self._all = np.arange(n, dtype=np.int32)
        groups = [
            (part_rows, part.taken, self._all[at])
            for part_rows, part, at in zip(rows, parts, self._slices, strict=True)
        ]
        counts = [
            ValueGroups.count(part_rows, part.taken)
            for part_rows, part in zip(rows, parts, strict=True)
        ]
        sparse = rows[0].columns is not None
        self._bins = StreamedBins(groups, n, np.sum(counts, axis=0) if sparse else None, edges)
        self._threads = Threads(n_threads)
        self._objectives: list[Any] = [
            self._objective(model, part_rows, part)
            for part_rows, part in zip(rows, parts, strict=True)
        ]
        self._bounded, self._draws = growth.bounded, draws
        self._numbers = [part.number for part in parts]
        every_column = replace(growth, bounded=False)  # has a histogram
        self._features = [
            Features.of(self._bins, some, every_column)
            for some in divide_features(self._bins, n_threads)
        ]
        self._gradients, self._hessians = np.empty(n), np.empty(n)
        self._packed, self._ones = np.empty(n, dtype=np.uint64), np.ones(n, dtype=np.uint64)
        self._spare = np.empty(n, dtype=np.int32)
        self._node_of = self._leaf_of = np.zeros(n, dtype=np.int32)
        self._fires = np.empty(n, dtype=np.uint8)

    def _objective(self, model: Any, rows: Rows, part: Part) -> Objective:
        """Return the objective of a part at the scores of a model."""
        scores = model.score(rows)[..., part.taken]
        if isinstance(model, OrdinalSum):
            return part.objective(model.biases[-1], scores, self._threads)
        return part.objective(scores)

    # ---------------------------------------------------------------- trees

    def begin(
        self,
        values: Floats | None,
        totals: Floats | None,
        units: Units | None,
        number: int,
    ) -> Begun:
        """Add the values of the last tree's leaves to the scores, and begin a tree.

        Without ``totals``, only return the totals. ``number`` is that of the tree.
        """
        self._add(values)
        totals_of_parts = np.sum([objective.totals() for objective in self._objectives], axis=0)
        if totals is None:
            return Begun(totals_of_parts)
        self._differentiate(totals, number)
        self._drawn = self._draw(number)
        taken = slice(None) if self._drawn is None else self._drawn
        self._rows = self._all[taken].copy()
        self._others = self._all[:0] if self._drawn is None else self._all[~self._drawn]
        self._nodes = {0: (slice(0, self._rows.size), slice(0, self._others.size))}
        return Begun(
            totals_of_parts,
            float(self._hessians[taken].sum()),
            float(np.abs(self._gradients[taken]).sum()),
            self._rows.size,
            None if units is None else self.sum_root(units),
        )

    def sum_root(self, units: Units) -> PackedSums:
        """Pack the derivatives in some units, and sum those of the drawn rows."""
        scale, power = units
        histograms.quantise(
            self._gradients, self._hessians, self._rows, self._bounded, self._packed, scale, power
        )
        return PackedSums(int(self._packed.sum()), self._histogram(self._rows, self._packed))

    def expand(
        self, orders: Sequence[Order], leaves: Sequence[int]
    ) -> tuple[list[Answer], list[Floats]]:
        """Partition nodes, and sum their children.

        If ``leaves`` has the nodes of all leaves, these are labelled, and the sums by leaf of the
        objectives are returned, too.
        """
        answers = []
        for order in orders:
            rows, others = self._nodes[order.node]
            if order.again:  # the last partition left too few rows on one side
                self._rows[rows].sort()
                self._others[others].sort()
            n_left, m_left = (
                partition.partition_rows(
                    self._bins.columns,
                    order.split.feature,
                    order.split.bin,
                    order.split.missing_right,
                    None,
                    0,
                    self._fires,
                    some,
                    self._spare,
                )
                for some in (self._rows[rows], self._others[others])
            )
            middle, between = rows.start + n_left, others.start + m_left
            left, right = order.children
            self._nodes[left] = (slice(rows.start, middle), slice(others.start, between))
            self._nodes[right] = (slice(middle, rows.stop), slice(between, others.stop))
            summed = None
            if order.summed >= 0:
                drawn, _ = self._nodes[order.children[order.summed]]
                summed = self._histogram(self._rows[drawn], self._packed)
            answers.append(Answer(n_left, summed))
        return answers, self._leaf_sums(leaves) if leaves else []

    def count(self, node: int) -> Histogram:
        """Return the number of rows of a node in each bin of each feature."""
        return self._histogram(np.sort(self._rows[self._nodes[node][0]]), self._ones)

    def _leaf_sums(self, nodes: Sequence[int]) -> list[Floats]:
        """Label the leaves of the tree, and return the objectives' sums by leaf."""
        leaf_of = self._leaf_of = np.zeros(self._all.size, dtype=np.int32)
        for leaf, node in enumerate(nodes):
            rows, others = self._nodes[node]
            partition.label_rows(self._rows[rows], leaf, leaf_of)
            partition.label_rows(self._others[others], leaf, leaf_of)
        sums = [
            objective.sum_by_leaf(
                leaf_of[at],
                len(nodes),
                None if self._drawn is None else self._drawn[at].view(np.uint8),
            )
            for objective, at in zip(self._objectives, self._slices, strict=True)
        ]
        return [np.sum(some, axis=0) for some in zip(*sums, strict=True)]

    def evaluate(self, values: Floats | None, biases: Floats) -> list[Floats]:
        """Add the values of leaves, and return the sums of ``evaluate`` of the objectives."""
        self._add(values)
        evaluations = [objective.evaluate(biases) for objective in self._objectives]
        return [np.sum(some, axis=0) for some in zip(*evaluations, strict=True)]

    def score_range(self) -> list[tuple[float, float]]:
        """Return the minimum and maximum scores of each part."""
        return [objective.score_range() for objective in self._objectives]

    def _add(self, values: Floats | None) -> None:
        if values is not None:
            for objective, at in zip(self._objectives, self._slices, strict=True):
                objective.add(self._leaf_of[at], values)

    def _differentiate(self, totals: Floats, number: int) -> None:
        """Write the derivatives of all rows."""
        draw = self._draws.seed, number
        for objective, at in zip(self._objectives, self._slices, strict=True):
            self._gradients[at], self._hessians[at] = objective.derivatives(totals, draw)

    def _draw(self, number: int) -> NDArray[np.bool_] | None:
        """Return the mask of the rows that are drawn for a tree; None: all."""
        parts = zip(self._objectives, self._slices, self._numbers, strict=True)
        masks = [
            self._draws.rows(number, at.stop - at.start, objective.query_of, part)
            for objective, at, part in parts
        ]
        drawn = [mask for mask in masks if mask is not None]
        return np.concatenate(drawn) if drawn else None

    def _histogram(self, rows: NDArray[np.int32], packed: Histogram) -> Histogram:
        """Return the histogram of some rows: all bins of each feature, and the missing."""

        def build(features: Features) -> Histogram:
            histogram = np.empty(features.n_sums, dtype=np.uint64)
            features.block.begin_tree(packed, self._node_of, 0.0, 1.0)
            features.block.sum_rows(rows, histogram, None)
            if self._bins.n_entries is not None:
                return histogram
            codes = histogram.reshape(-1, histogram_layout.CODES)
            sizes = self._bins.n_bins[features.numbers] + 1
            return np.concatenate([codes[j, :size] for j, size in enumerate(sizes.tolist())])

        return np.concatenate(self._threads.map(build, self._features))

    # ---------------------------------------------------------------- stumps

    def begin_stump(
        self, stump: Stump | None, alpha: float, totals: Floats | None
    ) -> tuple[Floats, PackedSums | None]:
        """Add a stump, if any, to the scores; return the totals.

        With ``totals``, also return the gradients normalised by these.
        """
        if stump is not None:
            self._mark(stump)
            for objective, at in zip(self._objectives, self._slices, strict=True):
                objective.add(self._fires[at].astype(np.int32), np.array([0.0, alpha]))
        totals_of_parts = np.sum([objective.totals() for objective in self._objectives], axis=0)
        if totals is None:
            return totals_of_parts, None
        self._differentiate(totals, 0)
        words = np.rint(np.ldexp(self._gradients, STUMP_BITS)).astype(np.int64)
        self._packed[:] = words.view(np.uint64)
        histogram = self._histogram(self._all, self._packed)
        return totals_of_parts, PackedSums(int(self._packed.sum()), histogram)

    def measure(self, stump: Stump) -> Floats:
        """Return the sums of ``measure`` of the objectives, of the rows where a stump fires."""
        self._mark(stump)
        parts = zip(self._objectives, self._slices, strict=True)
        weights: Floats = np.sum(
            [objective.measure(self._fires[at]) for objective, at in parts], axis=0
        )
        return weights

    def _mark(self, stump: Stump) -> None:
        stumps.mark(self._bins.columns, stump.feature, stump.bin, stump.fires_missing, self._fires)


# ------------------------------------------------------------------------------ parts


def pair_part(
    rows: Any,
    labels: Floats,
    qid: Any,
    weights: Floats | None,
    *,
    number: int,
    by_label: bool,
    balanced: bool,
    mean: float,
    kind: Any,
) -> Part:
    """Form the pairs of some rows; ``mean`` is that of the weights of all rows.

    ``by_label``: rows are of labels 0 and 1, and have no queries. ``kind`` is the ``pair_weight``.
    """
    if by_label:
        relative_weights = np.ones(labels.size) if weights is None else weights / mean
        docs = np.argsort(-labels, kind="stable")
        docs = docs[relative_weights[docs] > 0]
        n_won = int(labels[docs].sum())
        sizes = docs.size, 0, n_won, docs.size - n_won
        return Part(rows, docs, partial(LabelPairs, n_won, relative_weights[docs]), sizes, number)
    queries = group_rows(qid, labels.size)
    pairing = pair_by_label(labels, queries, weights, False, balanced, mean)
    sizes = pairing.docs.size, int(pairing.n_pairs.sum()), 0, 0
    return Part(rows, pairing.docs, partial(QueryPairs.of, pairing, balanced, kind), sizes, number)


def rank_part(
    rows: Any,
    ranks: NDArray[np.int32],
    weights: Floats | None,
    *,
    number: int,
    occurring: OccurringRanks,
    monotone: bool,
) -> Part:
    """Take the rows of positive weight."""
    taken = np.arange(ranks.size) if weights is None else np.flatnonzero(weights)
    kept = None if weights is None else np.ascontiguousarray(weights[taken])
    objective = partial(RankedRows, occurring.places(ranks[taken]), kept, occurring, monotone)
    return Part(rows, taken, objective, (taken.size, 0, 0, 0), number)


def value_groups(part: Part) -> ValueGroups:
    """Return the distinct values of the features of a part, or groups of them."""
    return ValueGroups.of(as_rows(part.X, nan=True), part.taken)


def bin_edges(groups: Iterable[ValueGroups], params: Any) -> BinEdges:
    """Return the thresholds of bins, from the groups of values of all parts, few at a time."""
    total: ValueGroups | None = None
    for group in groups:
        total = group if total is None else ValueGroups.joined([total, group])
    assert total is not None
    return total.edges(int(params.max_bins), params.missing == "zero")
