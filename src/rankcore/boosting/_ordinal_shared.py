"""Rounds of `rankcore.OrdinalBoost` with one score: shared by all tasks, or of the only task."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._ext import ordinal_loss
from rankcore.boosting._grower import GrownTree
from rankcore.boosting._ordinal_rounds import OrdinalRounds
from rankcore.boosting._tree_rounds import newton_values, sum_by_leaf

# Precision per row of a normal prior on the biases around the initial ones, which keeps the
# probabilities of ranks without rows positive.
PRIOR = 1e-6
# The search for biases ends at a Newton step that gains less than this per row.
ENOUGH, MAX_STEPS = 1e-12, 50


class OneScoreRounds(OrdinalRounds):
    """Rounds in which each row has one first and one second derivative."""

    def _allocate(self, n: int) -> None:
        n_tasks = self._occurring.ranks.size - 1
        self._gradients, self._hessians = np.empty(n), np.empty(n)
        self._bias_gradient, self._bias_hessian = np.empty(n_tasks), np.empty((n_tasks, n_tasks))
        weights = self._training.weights
        self._total = float(n if weights is None else weights.sum())

    def _differentiate(self) -> float:
        return self._loss_of(None, None)

    def _loss_of(self, bias_gradient: Floats | None, bias_hessian: Floats | None) -> float:
        """Write the derivatives by the score and, unless they are None, those by the biases."""
        form = self.model.form
        loss: float = ordinal_loss.differentiate(
            self._scores,
            self._biases,
            form.shared,
            form.cumulative,
            self._training.ranks,
            self._training.weights,
            self._gradients,
            self._hessians,
            bias_gradient,
            bias_hessian,
        )
        return float(loss / self._total)

    def _derivatives(self) -> tuple[Floats, Floats]:
        return self._gradients, self._hessians

    def _values(
        self, grown: GrownTree, leaf_of: NDArray[np.int32], drawn: NDArray[np.bool_] | None
    ) -> Floats:
        sums, _ = sum_by_leaf(leaf_of, self._gradients, self._hessians, drawn, grown)
        return newton_values(sums, self._growth.l2_leaf, grown)[np.newaxis]

    def _settle(self) -> None:
        if not self.model.form.shared or self._occurring.ranks.size == 2:
            super()._settle()  # the trees alone fit two ranks
            return

        def evaluate(biases: Floats) -> tuple[float, Floats, Floats]:
            self._biases = biases
            self._loss = self._loss_of(self._bias_gradient, self._bias_hessian)
            return self._total * self._loss, self._bias_gradient, self._bias_hessian

        first = self._occurring.biases(self.model.biases[0])
        maximise_by_biases(evaluate, self._biases, first, self._total, self.model.form.cumulative)


def maximise_by_biases(
    evaluate: Callable[[Floats], tuple[float, Floats, Floats]],
    now: Floats,
    first: Floats,
    total: float,
    ascend: bool,
) -> None:
    """Maximise the likelihood with its prior by the biases, which begin at ``now``.

    ``evaluate`` returns the loss at biases, minus its derivatives, and the upper triangle of the
    second derivatives; it is called last for the biases that are found. ``first`` are the biases of
    the prior, ``total`` is the weight of all rows; biases must ``ascend`` with cumulative logits.
    Newton's method; a step is halved until the loss decreases.
    """
    prior = PRIOR * total

    def loss_at(biases: Floats) -> tuple[float, Floats, Floats]:
        if ascend and not (np.diff(biases) > 0).all():
            return np.inf, biases, biases
        loss, gradients, hessians = evaluate(biases)
        away = biases - first
        upper = np.triu(hessians)
        hessian = upper + np.triu(upper, 1).T + prior * np.eye(biases.size)
        return loss + prior / 2 * float(away @ away), gradients - prior * away, hessian

    loss, gradient, hessian = loss_at(now)
    for _ in range(MAX_STEPS):
        step, length = np.linalg.solve(hessian, gradient), 1.0
        if gradient @ step < ENOUGH * total:
            break
        while not (found := loss_at(now + length * step))[0] < loss:
            length /= 2
            if length < np.finfo(np.float64).eps:  # limit of rounding
                evaluate(now)
                return
        now = now + length * step
        loss, gradient, hessian = found
