"""Rows of a fit in parts, such as those of the workers of a cluster: their sums.

A `BinnedRows` has the binned rows of one place, and an `Objective` for each part of them. It sums
gradients and hessians by bin, as 64-bit integers (see `rankcore._ext.histograms`), and partitions
rows; `rankcore.boosting.part_rounds` adds the sums of all places and grows trees. Pairs of a query
are weighed where its rows are. Without queries, all rows have the pairs of two labels: the weights
are products of a factor per row, of which the sums by label are exchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankcore._core.inputs import as_rows
from rankcore._core.numbers import Floats
from rankcore._core.queries import group_rows
from rankcore._core.threads import Threads
from rankcore._ext import histogram_layout, histograms, ordinal_loss, partition, stumps
from rankcore.boosting._grower import GrowthParams, Split, Units
from rankcore.boosting._histograms import Features, divide_features
from rankcore.boosting._metric_weights import MetricPairWeights
from rankcore.boosting._ordinal_rounds import Occurring
from rankcore.boosting._ordinal_vector import DIRECTION
from rankcore.boosting._pair_weights import steps_of, weights_of
from rankcore.boosting._streamed_bins import BinEdges, StreamedBins, ValueGroups
from rankcore.boosting._vector_leaves import TableRows, differentiate_along, sum_by_leaf
from rankcore.ranking.pairs import Pairing, pair_by_label

Histogram = NDArray[np.uint64]
# Gradients of stumps, which have no hessians, are multiples of 2 to the power of minus this.
STUMP_BITS = 56
# Sum of the lengths of steps after which factors are brought back to about 1.
MAX_MOVED = 200.0


class Objective(Protocol):
    """Loss of the rows of a part; sums over the objectives of all parts are those of the fit."""

    def add(self, leaf_of: NDArray[np.int32], values: Floats) -> None:
        """Add to the scores of each row the values of its leaf."""

    def totals(self) -> Floats:
        """Return sums that gradients are normalised by, and those of the loss."""

    def differentiate(self, totals: Floats, draw: Any, gradients: Floats, hessians: Floats) -> None:
        """Write minus the first, and the second derivative of each row's loss."""

    def sum_by_leaf(
        self, leaf_of: NDArray[np.int32], n_leaves: int, drawn: NDArray[np.uint8] | None
    ) -> tuple[Floats, ...]:
        """Return the sums by leaf that the leaves' values are computed from."""


@dataclass
class Part:
    """Rows that a fit learns from."""

    X: Any
    taken: NDArray[np.int64]  # numbers of the rows, in the order of the objective
    objective: Any  # function of their scores that returns the `Objective`
    sizes: tuple[int, ...]  # number of rows; of pairs, and of rows by label
    number: int = 0  # of the part, by which rows are drawn


class Order(NamedTuple):
    """A split of a node, and what to sum."""

    node: int
    split: Split
    children: tuple[int, int]  # numbers of the left and the right one
    summed: int  # which child's histogram to build: 0 or 1; -1: none
    counted: bool  # whether to count the rows of both children by bin
    again: bool  # whether the node was partitioned by another split before


class Answer(NamedTuple):
    """Result of an `Order` on a worker."""

    n_left: int
    histogram: Histogram | None
    counts: tuple[Histogram, Histogram] | None  # of the left and the right child


class Begun(NamedTuple):
    """Sums over the rows of a worker at the beginning of a round."""

    totals: Floats
    # Of the drawn rows: hessians and magnitudes of gradients, number, packed sum.
    hessian: float = 0.0
    magnitude: float = 0.0
    n_rows: int = 0
    packed: int = 0
    histogram: Histogram = np.empty(0, np.uint64)  # of the root; empty if units are not known
    counts: Histogram = np.empty(0, np.uint64)


class BinnedRows:
    """Binned rows of a worker; all other methods are called by `part_rounds`."""

    def __init__(
        self,
        parts: Sequence[Part],
        model: Any,
        edges: BinEdges,
        growth: GrowthParams,
        subsample: float,
        n_threads: int,
    ) -> None:
        ends = np.cumsum([0, *(part.taken.size for part in parts)])
        self._slices = [slice(a, b) for a, b in pairwise(ends.tolist())]
        n, rows = int(ends[-1]), [as_rows(part.X, nan=True) for part in parts]
        self._all = np.arange(n, dtype=np.int32)
        given = [
            (one, part.taken, self._all[at])
            for one, part, at in zip(rows, parts, self._slices, strict=True)
        ]
        counts = [ValueGroups.count(one, part.taken) for one, part in zip(rows, parts, strict=True)]
        sparse = rows[0].columns is not None
        self._bins = StreamedBins(given, n, np.sum(counts, axis=0) if sparse else None, edges)
        state = [model.biases[-1]] if hasattr(model, "biases") else []
        self._objectives: list[Any] = [
            part.objective(*state, model.score(one)[..., part.taken])
            for one, part in zip(rows, parts, strict=True)
        ]
        self._bounded, self._subsample = growth.bounded, subsample
        self._numbers = [part.number for part in parts]
        self._threads = Threads(n_threads)
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

    # ---------------------------------------------------------------- trees

    def begin(
        self,
        values: Floats | None,
        totals: Floats | None,
        units: Units | None,
        draw: Any,
        counted: bool,
    ) -> Begun:
        """Add the values of the last tree's leaves to the scores, and begin a tree.

        Without ``totals`` and ``units``, only return the totals. ``draw`` seeds the drawn rows.
        """
        self._add(values)
        found = np.sum([one.totals() for one in self._objectives], axis=0)
        if totals is None:
            return Begun(found)
        for one, at in zip(self._objectives, self._slices, strict=True):
            one.differentiate(totals, draw, self._gradients[at], self._hessians[at])
        self._drawn = self._draw(draw)
        taken = slice(None) if self._drawn is None else self._drawn
        sums = float(self._hessians[taken].sum()), float(np.abs(self._gradients[taken]).sum())
        self._rows = self._all[taken].copy()
        if units is None:
            return Begun(found, *sums, self._rows.size)
        self._others = self._all[:0] if self._drawn is None else self._all[~self._drawn]
        scale, power = units
        histograms.quantise(
            self._gradients, self._hessians, self._rows, self._bounded, self._packed, scale, power
        )
        n, m = self._rows.size, self._others.size
        self._nodes = {0: (slice(0, n), slice(0, m))}
        packed = int(self._packed.sum())
        counts = self._counts(self._rows) if counted else self._ones[:0]
        return Begun(found, *sums, n, packed, self._histogram(self._rows, self._packed), counts)

    def expand(
        self, orders: Sequence[Order], leaves: Sequence[int]
    ) -> tuple[list[Answer], list[Floats]]:
        """Partition nodes, and sum their children.

        If ``leaves`` has the nodes of all leaves, these are labelled, and the sums by leaf of the
        objectives are returned, too.
        """
        found = []
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
            parts = slice(rows.start, middle), slice(middle, rows.stop)
            rest = slice(others.start, between), slice(between, others.stop)
            for child, *where in zip(order.children, parts, rest, strict=True):
                self._nodes[child] = (where[0], where[1])
            summed = counts = None
            if order.summed >= 0:
                summed = self._histogram(self._rows[parts[order.summed]], self._packed)
            if order.counted:
                counts = self._counts(self._rows[parts[0]]), self._counts(self._rows[parts[1]])
            found.append(Answer(n_left, summed, counts))
        return found, self._leaf_sums(leaves) if leaves else []

    def count(self, node: int) -> Histogram:
        """Return the number of rows of a node in each bin of each feature."""
        return self._counts(np.sort(self._rows[self._nodes[node][0]]))

    def _leaf_sums(self, nodes: Sequence[int]) -> list[Floats]:
        """Label the leaves of the tree, and return the objectives' sums by leaf."""
        leaf_of = self._leaf_of = np.zeros(self._all.size, dtype=np.int32)
        for leaf, node in enumerate(nodes):
            rows, others = self._nodes[node]
            partition.label_rows(self._rows[rows], leaf, leaf_of)
            partition.label_rows(self._others[others], leaf, leaf_of)
        found = [
            one.sum_by_leaf(
                leaf_of[at],
                len(nodes),
                None if self._drawn is None else self._drawn[at].view(np.uint8),
            )
            for one, at in zip(self._objectives, self._slices, strict=True)
        ]
        return [np.sum(some, axis=0) for some in zip(*found, strict=True)]

    def evaluate(self, values: Floats | None, biases: Floats) -> list[Floats]:
        """Add the values of leaves, and return the sums of ``evaluate`` of the objectives."""
        self._add(values)
        found = [one.evaluate(biases) for one in self._objectives]
        return [np.sum(some, axis=0) for some in zip(*found, strict=True)]

    def extremes(self) -> list[tuple[float, float]]:
        """Return the minimum and maximum scores of each part."""
        return [one.extremes() for one in self._objectives]

    def _add(self, values: Floats | None) -> None:
        if values is not None:
            for one, at in zip(self._objectives, self._slices, strict=True):
                one.add(self._leaf_of[at], values)

    def _draw(self, seed: Any) -> NDArray[np.bool_] | None:
        """Draw rows, of whole queries if there are several; None for all."""
        if self._subsample >= 1:
            return None
        found = []
        parts = zip(self._objectives, self._slices, self._numbers, strict=True)
        for one, at, number in parts:
            rng = np.random.default_rng([*seed, number])
            group = getattr(one, "query_of", np.arange(at.stop - at.start))
            n = int(group[-1]) + 1
            mask = np.zeros(n, dtype=bool)
            mask[rng.choice(n, max(1, round(self._subsample * n)), replace=False)] = True
            found.append(mask[group])
        return np.concatenate(found)

    def _counts(self, rows: NDArray[np.int32]) -> Histogram:
        """Return the number of rows by bin."""
        return self._histogram(rows, self._ones)

    def _histogram(self, rows: NDArray[np.int32], packed: Histogram) -> Histogram:
        """Return the histogram of some rows: all bins of each feature, and the missing."""

        def build(features: Features) -> Histogram:
            found = np.empty(features.n_sums, dtype=np.uint64)
            features.block.begin_tree(packed, self._node_of, 0.0, 1.0)
            features.block.sum_rows(rows, found, None)
            if self._bins.n_entries is not None:
                return found
            codes = found.reshape(-1, histogram_layout.CODES)
            sizes = self._bins.n_bins[features.numbers] + 1
            return np.concatenate([codes[j, :size] for j, size in enumerate(sizes.tolist())])

        return np.concatenate(self._threads.map(build, self._features))

    # ---------------------------------------------------------------- stumps

    def begin_stump(self, stump: Any, alpha: float, totals: Floats | None) -> Begun:
        """Add a stump, if any, to the scores; return the gradients by bin for given totals."""
        if stump is not None:
            self._mark(stump)
            for one, at in zip(self._objectives, self._slices, strict=True):
                one.add(self._fires[at].astype(np.int32), np.array([0.0, alpha]))
        found = np.sum([one.totals() for one in self._objectives], axis=0)
        if totals is None:
            return Begun(found)
        for one, at in zip(self._objectives, self._slices, strict=True):
            one.differentiate(totals, None, self._gradients[at], self._hessians[at])
        words = np.rint(np.ldexp(self._gradients, STUMP_BITS)).astype(np.int64)
        self._packed[:] = words.view(np.uint64)
        packed = int(self._packed.sum())
        return Begun(found, packed=packed, histogram=self._histogram(self._all, self._packed))

    def measure(self, stump: Any) -> Floats:
        """Return the sums of ``measure`` of the objectives, of the rows where a stump fires."""
        self._mark(stump)
        parts = zip(self._objectives, self._slices, strict=True)
        found: Floats = np.sum([one.measure(self._fires[at]) for one, at in parts], axis=0)
        return found

    def _mark(self, stump: Any) -> None:
        stumps.mark(self._bins.columns, stump.feature, stump.bin, stump.fires_missing, self._fires)


# ------------------------------------------------------------------------------ objectives


class QueryPairs:
    """Pairs of whole queries; the totals are the sum of their weights, and by a measure."""

    def __init__(self, pairing: Pairing, balanced: bool, kind: Any, scores: Floats) -> None:
        steps, _ = steps_of(pairing, balanced)
        self._weights, _, _ = weights_of(scores, pairing, steps)
        self._metric_weights = (
            None if kind is None else MetricPairWeights(pairing, steps, kind, scores)
        )
        n_queries = pairing.bounds.size - 1
        self.query_of = np.repeat(np.arange(n_queries), np.diff(pairing.bounds))
        n = scores.size
        self._gradients, self._hessians, self._moved = np.empty(n), np.empty(n), 0.0

    def add(self, leaf_of: NDArray[np.int32], values: Floats) -> None:
        """As `Objective.add`."""
        centred = values - 0.5 * (values.min() + values.max())
        self._weights.move(np.ascontiguousarray(leaf_of), centred)
        if self._metric_weights is not None:
            self._metric_weights.move(leaf_of, centred)
        self._moved += float(values.max() - values.min())
        if self._moved > MAX_MOVED:
            self._weights.centre()
            self._moved = 0.0

    def totals(self) -> Floats:
        """As `Objective.totals`."""
        total = mass = self._weights.differentiate(self._gradients, self._hessians)
        if self._metric_weights is not None:
            mass = self._metric_weights.differentiate(self._gradients, self._hessians)
        self._own = mass
        if not mass > 0:  # no pair of this part has a weight, or changes the measure
            self._gradients[:] = self._hessians[:] = 0.0
        return np.array([total, mass])

    def differentiate(self, totals: Floats, draw: Any, gradients: Floats, hessians: Floats) -> None:
        """As `Objective.differentiate`."""
        by = self._own / totals[1] if totals[1] > 0 else 0.0
        np.multiply(self._gradients, by, out=gradients)
        np.multiply(self._hessians, by, out=hessians)

    def sum_by_leaf(
        self, leaf_of: NDArray[np.int32], n_leaves: int, drawn: NDArray[np.uint8] | None
    ) -> tuple[Floats, ...]:
        """Return gradients and hessians, gradients of all rows, and the weights between leaves."""
        n, leaf_of = n_leaves, np.ascontiguousarray(leaf_of)
        sums, gradients, between = np.empty((2, n)), np.empty(n), np.zeros((n, n))
        partition.sum_by_leaf(leaf_of, self._gradients, self._hessians, drawn, sums, gradients)
        if self._metric_weights is not None and self._own > 0:
            between = self._metric_weights.between(leaf_of, n)
        elif self._own > 0:
            self._weights.between(leaf_of, np.empty(n), np.empty(n), between)
        # Hessians of weights that sum to 1 over the cluster, not over the shard.
        return sums * self._own, gradients * self._own, between * self._own

    def measure(self, fires: NDArray[np.uint8]) -> Floats:
        """Return the weights that a stump orders correctly, wrongly, and where it fires on both."""
        return self._own * np.array(self._weights.measure(np.ascontiguousarray(fires)))


class LabelPairs:
    """All pairs of rows of two labels; the totals are the sums of their factors, by label."""

    def __init__(self, n_winning: int, weights: Floats, scores: Floats) -> None:
        self._wins = np.arange(scores.size) < n_winning
        self._signs = np.where(self._wins, -1.0, 1.0)
        self._factors = weights * np.exp(self._signs * scores)

    def add(self, leaf_of: NDArray[np.int32], values: Floats) -> None:
        """As `Objective.add`."""
        centred = values - 0.5 * (values.min() + values.max())
        self._factors *= np.exp(self._signs * centred[leaf_of])

    def totals(self) -> Floats:
        """As `Objective.totals`."""
        return self._by_label(np.ones(self._wins.size))

    def differentiate(self, totals: Floats, draw: Any, gradients: Floats, hessians: Floats) -> None:
        """As `Objective.differentiate`."""
        np.divide(self._factors, np.where(self._wins, *totals), out=hessians)
        np.multiply(hessians, -self._signs, out=gradients)

    def sum_by_leaf(
        self, leaf_of: NDArray[np.int32], n_leaves: int, drawn: NDArray[np.uint8] | None
    ) -> tuple[Floats, ...]:
        """Return the sums of factors by label and leaf, of drawn and of all rows."""
        found = [
            np.bincount(leaf_of[some], self._factors[some], minlength=n_leaves)
            for kept in (np.ones(self._wins.size, bool) if drawn is None else drawn > 0, True)
            for some in (self._wins & kept, ~self._wins & kept)
        ]
        return np.array(found[:2]), np.array(found[2:])

    def measure(self, fires: NDArray[np.uint8]) -> Floats:
        """Return the sums of factors by label: of rows where a stump does not fire, and fires."""
        return np.concatenate([self._by_label(fires == 0), self._by_label(fires != 0)])

    def _by_label(self, mask: Any) -> Floats:
        return np.array([self._factors @ (mask * self._wins), self._factors @ (mask * ~self._wins)])


class RankedRows:
    """Rows of ordered labels; the total is their loss."""

    def __init__(
        self,
        ranks: NDArray[np.int32],
        weights: Floats | None,
        occurring: Occurring,
        monotone: bool,
        biases: Floats,
        scores: Floats,
    ) -> None:
        self._ranks, self._weights, self._monotone = ranks, weights, monotone
        self._form, self._n_scores = occurring.form, occurring.n_scores
        self._scores = np.ascontiguousarray(occurring.scores(scores))
        self._biases = occurring.biases(biases)
        n, k = ranks.size, occurring.ranks.size
        self._gradients, self._hessians = np.empty(n), np.empty(n)
        self._table, self._losses = np.empty((n, k)), np.empty(n)
        self._rows, self._threads = TableRows(self._table, ranks, weights), Threads(1)

    def add(self, leaf_of: NDArray[np.int32], values: Floats) -> None:
        """As `Objective.add`; values have the shape (n_scores, n_leaves)."""
        leaf_of, n = np.ascontiguousarray(leaf_of), self._ranks.size
        ordinal_loss.add_values(self._scores, np.ascontiguousarray(values), leaf_of, 0, n)

    def totals(self) -> Floats:
        """As `Objective.totals`."""
        if self._n_scores == 1:
            return np.array([self._differentiate(None, None)])
        ordinal_loss.probabilities(
            self._scores,
            self._biases,
            False,
            False,
            0,
            self._ranks.size,
            self._table,
            self._ranks,
            self._losses,
        )
        # A probability may have rounded to 0.
        losses = -np.log(np.maximum(self._losses, np.finfo(np.float64).tiny))
        return np.array([losses.sum() if self._weights is None else self._weights @ losses])

    def differentiate(self, totals: Floats, draw: Any, gradients: Floats, hessians: Floats) -> None:
        """As `Objective.differentiate`; a vector of scores along the direction of the round."""
        found = self._gradients, self._hessians
        if self._n_scores > 1:
            rng = np.random.default_rng([*draw, DIRECTION])
            direction = rng.normal(size=self._n_scores)
            # Along an ascending direction, splits that improve all tasks are found.
            found = differentiate_along(
                np.abs(direction) if self._monotone else direction, self._rows, self._threads
            )
        gradients[:], hessians[:] = found

    def sum_by_leaf(
        self, leaf_of: NDArray[np.int32], n_leaves: int, drawn: NDArray[np.uint8] | None
    ) -> tuple[Floats, ...]:
        """Return the first and second derivatives by leaf."""
        leaf_of = np.ascontiguousarray(leaf_of)
        if self._n_scores > 1:
            found = sum_by_leaf(leaf_of, drawn, n_leaves, self._rows, self._threads)
            return found.gradients, found.hessians
        sums = np.empty((2, n_leaves))
        partition.sum_by_leaf(
            leaf_of, self._gradients, self._hessians, drawn, sums, np.empty(n_leaves)
        )
        return sums[0], sums[1]

    def evaluate(self, biases: Floats) -> tuple[Floats, ...]:
        """Return the loss with other biases, and its derivatives by these."""
        self._biases = biases
        gradients, hessians = np.empty(biases.size), np.empty((biases.size, biases.size))
        loss = self._differentiate(gradients, hessians)
        return np.array(loss), gradients, hessians

    def extremes(self) -> tuple[float, float]:
        """Return the minimum and the maximum score."""
        return float(self._scores.min()), float(self._scores.max())

    def _differentiate(self, of_biases: Floats | None, of_pairs: Floats | None) -> float:
        loss: float = ordinal_loss.differentiate(
            self._scores,
            self._biases,
            self._form.shared,
            self._form.cumulative,
            self._ranks,
            self._weights,
            self._gradients,
            self._hessians,
            of_biases,
            of_pairs,
        )
        return loss


# ------------------------------------------------------------------------------ parts


def pair_part(
    rows: Any,
    labels: Floats,
    qid: Any,
    weights: Floats | None,
    *,
    by_label: bool,
    balanced: bool,
    mean: float,
    kind: Any,
) -> Part:
    """Form the pairs of some rows; ``mean`` is that of the weights of all rows.

    ``by_label``: rows are of labels 0 and 1, and have no queries. ``kind`` is the ``pair_weight``.
    """
    if by_label:
        of_rows = np.ones(labels.size) if weights is None else weights / mean
        docs = np.argsort(-labels, kind="stable")
        docs = docs[of_rows[docs] > 0]
        n_won = int(labels[docs].sum())
        sizes = docs.size, 0, n_won, docs.size - n_won
        return Part(rows, docs, partial(LabelPairs, n_won, of_rows[docs]), sizes)
    queries = group_rows(qid, labels.size)
    pairing = pair_by_label(labels, queries, weights, False, balanced, mean)
    sizes = pairing.docs.size, int(pairing.n_pairs.sum()), 0, 0
    return Part(rows, pairing.docs, partial(QueryPairs, pairing, balanced, kind), sizes)


def rank_part(
    rows: Any,
    ranks: NDArray[np.int32],
    weights: Floats | None,
    *,
    occurring: Occurring,
    monotone: bool,
) -> Part:
    """Take the rows of positive weight."""
    taken = np.arange(ranks.size) if weights is None else np.flatnonzero(weights)
    kept = None if weights is None else np.ascontiguousarray(weights[taken])
    objective = partial(RankedRows, occurring.places(ranks[taken]), kept, occurring, monotone)
    return Part(rows, taken, objective, (taken.size, 0, 0, 0))


def value_groups(part: Part) -> ValueGroups:
    """Return the distinct values of the features of a part, or groups of them."""
    return ValueGroups.of(as_rows(part.X, nan=True), part.taken)


def bin_edges(groups: Iterable[ValueGroups], params: Any) -> BinEdges:
    """Return the thresholds of bins, from the groups of values of all parts, few at a time."""
    total: ValueGroups | None = None
    for one in groups:
        total = one if total is None else ValueGroups.joined([total, one])
    assert total is not None
    return total.edges(int(params.max_bins), params.missing == "zero")
