"""Loss of rows of ordered labels for `rankcore.OrdinalBoost`: derivatives, and sums by leaf.

`RankedRows` is the `rankcore.boosting._objectives.Objective` of rows with one score, shared by all
tasks or of the only task, and of rows with a score for each task. Then splits are found along a
random direction of the scores, and leaves have a vector of gradients and a matrix of hessians.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._core.threads import Threads
from rankcore._ext import ordinal_loss, partition
from rankcore.boosting._occurring_ranks import OccurringRanks
from rankcore.boosting._tree_rounds import DIRECTION
from rankcore.boosting._vector_leaves import (
    BLOCK_ROWS,
    TableRows,
    differentiate_along,
    sum_by_leaf,
)


class RankedRows:
    """Rows of ordered labels, with their scores and the biases of the tasks.

    The total is the loss of the rows, minus the log-likelihood. Sums by leaf are those of gradients
    and hessians: (n_leaves,) each, or (n_leaves, n_tasks) and (n_leaves, n_tasks, n_tasks).
    ``monotone``: directions ascend, so that splits are found that improve all tasks.
    """

    query_of = None

    def __init__(
        self,
        ranks: NDArray[np.int32],
        weights: Floats | None,
        occurring: OccurringRanks,
        monotone: bool,
        biases: Floats,
        scores: Floats,
        threads: Threads,
    ) -> None:
        self._ranks, self._weights, self._monotone = ranks, weights, monotone
        self._form, self._n_scores = occurring.form, occurring.n_scores
        self.scores = np.ascontiguousarray(occurring.scores(scores))
        self.biases = occurring.biases(biases)
        self._threads, n = threads, ranks.size
        if self._n_scores > 1:
            table, self._likelihoods = np.empty((n, occurring.ranks.size)), np.empty(n)
            self._rows = TableRows(table, ranks, weights)
        else:
            self._gradients, self._hessians = np.empty(n), np.empty(n)

    def add(self, leaf_of: NDArray[np.int32], values: Floats) -> None:
        """Implement `Objective.add`; values have the shape (n_scores, n_leaves)."""
        n = leaf_of.size

        def add(start: int) -> None:
            stop = min(start + BLOCK_ROWS, n)
            ordinal_loss.add_values(self.scores, values, leaf_of, start, stop)

        self._threads.for_each(add, range(0, n, BLOCK_ROWS))

    def totals(self) -> Floats:
        """Implement `Objective.totals`."""
        if self._n_scores == 1:
            return np.array([self._differentiate(None, None)])
        n = self._ranks.size

        def fill(start: int) -> None:
            ordinal_loss.probabilities(
                self.scores,
                self.biases,
                False,
                False,
                start,
                min(start + BLOCK_ROWS, n),
                self._rows.table,
                self._ranks,
                self._likelihoods,
            )

        self._threads.for_each(fill, range(0, n, BLOCK_ROWS))
        # A probability may have rounded to 0.
        losses = -np.log(np.maximum(self._likelihoods, np.finfo(np.float64).tiny))
        return np.array([losses.sum() if self._weights is None else self._weights @ losses])

    @staticmethod
    def weight(totals: Floats) -> float:
        """Implement `Objective.weight`."""
        return 1.0

    def derivatives(self, totals: Floats, draw: tuple[int, int]) -> tuple[Floats, Floats]:
        """Implement `Objective.derivatives`; vectors of scores along the round's direction."""
        if self._n_scores == 1:
            return self._gradients, self._hessians
        direction = np.random.default_rng([*draw, DIRECTION]).normal(size=self._n_scores)
        if self._monotone:
            direction = np.abs(direction)
        return differentiate_along(direction, self._rows, self._threads)

    def sum_by_leaf(
        self, leaf_of: NDArray[np.int32], n_leaves: int, drawn: NDArray[np.uint8] | None
    ) -> tuple[Floats, ...]:
        """Implement `Objective.sum_by_leaf`."""
        if self._n_scores > 1:
            leaf_sums = sum_by_leaf(leaf_of, drawn, n_leaves, self._rows, self._threads)
            return leaf_sums.gradients, leaf_sums.hessians
        sums = np.empty((2, n_leaves))
        partition.sum_by_leaf(
            leaf_of, self._gradients, self._hessians, drawn, sums, np.empty(n_leaves)
        )
        return sums[0], sums[1]

    def evaluate(self, biases: Floats) -> tuple[Floats, ...]:
        """Return the loss with other biases, its negated gradient and its second derivatives."""
        self.biases = biases
        gradient, hessian = np.empty(biases.size), np.empty((biases.size, biases.size))
        loss = self._differentiate(gradient, hessian)
        return np.array(loss), gradient, hessian

    def score_range(self) -> tuple[float, float]:
        """Return the minimum and the maximum score."""
        return float(self.scores.min()), float(self.scores.max())

    def _differentiate(self, bias_gradient: Floats | None, bias_hessian: Floats | None) -> float:
        loss: float = ordinal_loss.differentiate(
            self.scores,
            self.biases,
            self._form.shared,
            self._form.cumulative,
            self._ranks,
            self._weights,
            self._gradients,
            self._hessians,
            bias_gradient,
            bias_hessian,
        )
        return loss
