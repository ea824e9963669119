"""Losses of pairs of rows: derivatives by row, and their sums by leaf.

An `Objective` has the scores of some rows: of all rows of a fit, or of those of one part of them.
Rounds of trees read the loss through it only. They are the same for rows in memory
(`rankcore.boosting._tree_rounds`) and on the workers of a cluster, which add the sums of all parts
(`rankcore.boosting.worker_rows`).
"""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._ext import partition
from rankcore._ext.listed_weights import ListedWeights
from rankcore._ext.pair_weights import LabelWeights
from rankcore.boosting._metric_weights import MetricPairWeights
from rankcore.boosting._pair_weights import MAX_MOVED, listed_weights, steps_of, weights_of
from rankcore.ranking.pairs import Pairing


class Objective(Protocol):
    """Loss of some rows."""

    # (n,): the number of each row's query, which are drawn as a whole; None: rows are drawn.
    query_of: NDArray[np.int64] | None

    def add(self, leaf_of: NDArray[np.int32], values: Floats) -> None:
        """Add to the scores of each row the values of its leaf."""

    def totals(self) -> Floats:
        """Return the sums that normalise gradients, and those of the loss."""

    @staticmethod
    def weight(totals: Floats) -> float:
        """Return the weight that derivatives are divided by, given the totals of all parts."""

    def derivatives(self, totals: Floats, draw: tuple[int, int]) -> tuple[Floats, Floats]:
        """Return the negated gradient and the hessian of each row's loss.

        They are normalised by the ``totals`` of all parts. ``draw`` seeds random directions.
        """

    def sum_by_leaf(
        self, leaf_of: NDArray[np.int32], n_leaves: int, drawn: NDArray[np.uint8] | None
    ) -> tuple[Floats, ...]:
        """Return the sums that the leaves' values are computed from, normalised as derivatives."""


class QueryPairs:
    """Pairs of whole queries.

    Sums by leaf are those of gradients and hessians of drawn rows, (2, n_leaves), of the gradients
    of all rows, (n_leaves,), and the weights of the pairs between leaves, (n_leaves, n_leaves).
    """

    def __init__(
        self,
        weights: LabelWeights | ListedWeights,
        metric_weights: MetricPairWeights | None,
        pairing: Pairing,
        scores: Floats,
    ) -> None:
        self._weights, self._metric_weights = weights, metric_weights
        n_queries = pairing.bounds.size - 1
        self.query_of = np.repeat(np.arange(n_queries), np.diff(pairing.bounds))
        self._gradients, self._hessians = np.empty(scores.size), np.empty(scores.size)
        self._moved, self._fits = 0.0, not scores.any() or self._weights.centre()

    @classmethod
    def of(cls, pairing: Pairing, balanced: bool, pair_weight: Any, scores: Floats) -> Self:
        """Weigh pairs by the scores of their documents."""
        steps, _ = steps_of(pairing, balanced)
        weights: LabelWeights | ListedWeights
        if pairing.listed_pairs is None:
            weights, _, _ = weights_of(scores, pairing, steps)
        elif pair_weight is not None:
            raise ValueError("pair_weight requires labels; got pairs")
        else:
            weights = listed_weights(scores, pairing, steps)
        by_measure = None
        if pair_weight is not None:
            by_measure = MetricPairWeights(pairing, steps, pair_weight, scores)
        return cls(weights, by_measure, pairing, scores)

    def add(self, leaf_of: NDArray[np.int32], values: Floats) -> None:
        """Implement `Objective.add`."""
        # Only differences of scores matter. Centring keeps long steps along almost equal values
        # within the range of the weights' factors.
        centred = values - 0.5 * (values.min() + values.max())
        self._weights.move(leaf_of, centred)
        if self._metric_weights is not None:
            self._metric_weights.move(leaf_of, centred)
        self._moved += float(values.max() - values.min())
        if self._moved > MAX_MOVED:
            self._moved, self._fits = 0.0, self._weights.centre()

    def totals(self) -> Floats:
        """Implement `Objective.totals`."""
        total = mass = self._weights.differentiate(self._gradients, self._hessians)
        if self._metric_weights is not None:
            mass = self._metric_weights.differentiate(self._gradients, self._hessians)
        # Scores beyond the range of weights cannot be improved.
        self._mass = mass if self._fits else 0.0
        if not self._mass > 0:  # no pair of this part has a weight, or changes the measure
            self._gradients[:] = self._hessians[:] = 0.0
        return np.array([total, self._mass])

    @staticmethod
    def weight(totals: Floats) -> float:
        """Implement `Objective.weight`."""
        return float(totals[1])

    def derivatives(self, totals: Floats, draw: tuple[int, int]) -> tuple[Floats, Floats]:
        """Implement `Objective.derivatives`."""
        self._fraction = self._mass / totals[1] if totals[1] > 0 else 0.0
        if self._fraction == 1.0:  # these are all rows
            return self._gradients, self._hessians
        return self._gradients * self._fraction, self._hessians * self._fraction

    def sum_by_leaf(
        self, leaf_of: NDArray[np.int32], n_leaves: int, drawn: NDArray[np.uint8] | None
    ) -> tuple[Floats, ...]:
        """Implement `Objective.sum_by_leaf`."""
        n = n_leaves
        sums, gradients, between = np.empty((2, n)), np.empty(n), np.zeros((n, n))
        partition.sum_by_leaf(leaf_of, self._gradients, self._hessians, drawn, sums, gradients)
        if self._metric_weights is not None and self._mass > 0:
            between = self._metric_weights.between(leaf_of, n)
        elif self._mass > 0:
            self._weights.between(leaf_of, np.empty(n), np.empty(n), between)
        return tuple(self._fraction * array for array in (sums, gradients, between))

    def measure(self, fires: NDArray[np.uint8]) -> Floats:
        """Return the weights of pairs ordered rightly, wrongly, and of those that fire on both."""
        return self._mass * np.array(self._weights.measure(fires))


class LabelPairs:
    """All pairs of rows of two labels, whose weights are products of one factor per row.

    The totals are the sums of the factors, by label; those of winners come first. Sums by leaf are
    those of factors by label, (2, n_leaves), of drawn and of all rows.
    """

    query_of = None

    def __init__(self, n_winning: int, weights: Floats, scores: Floats) -> None:
        self._wins = np.arange(scores.size) < n_winning
        self._signs = np.where(self._wins, -1.0, 1.0)
        self._factors = weights * np.exp(self._signs * scores)

    def add(self, leaf_of: NDArray[np.int32], values: Floats) -> None:
        """Implement `Objective.add`."""
        centred = values - 0.5 * (values.min() + values.max())
        self._factors *= np.exp(self._signs * centred[leaf_of])

    def totals(self) -> Floats:
        """Implement `Objective.totals`."""
        return self._by_label(np.ones(self._wins.size))

    @staticmethod
    def weight(totals: Floats) -> float:
        """Implement `Objective.weight`."""
        return float(totals[0] * totals[1])

    def derivatives(self, totals: Floats, draw: tuple[int, int]) -> tuple[Floats, Floats]:
        """Implement `Objective.derivatives`."""
        total_of_wins, total_of_losses = totals
        self._normalised = self._factors / np.where(self._wins, total_of_wins, total_of_losses)
        return -self._signs * self._normalised, self._normalised

    def sum_by_leaf(
        self, leaf_of: NDArray[np.int32], n_leaves: int, drawn: NDArray[np.uint8] | None
    ) -> tuple[Floats, ...]:
        """Implement `Objective.sum_by_leaf`."""
        every = np.ones(self._wins.size, bool)
        sums = [
            np.bincount(leaf_of[some], self._normalised[some], minlength=n_leaves)
            for kept in (every if drawn is None else drawn > 0, every)
            for some in (self._wins & kept, ~self._wins & kept)
        ]
        return np.array(sums[:2]), np.array(sums[2:])

    def measure(self, fires: NDArray[np.uint8]) -> Floats:
        """Sum the factors by label: of rows where a stump does not fire, and where it does."""
        return np.concatenate([self._by_label(fires == 0), self._by_label(fires != 0)])

    def _by_label(self, mask: Any) -> Floats:
        return np.array([self._factors @ (mask * self._wins), self._factors @ (mask * ~self._wins)])
