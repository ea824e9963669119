"""Rounds of `rankcore.OrdinalBoost` with one score: shared by all tasks, or of the only task."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._ext import ordinal_trees
from rankcore.boosting._grower import GrownTree
from rankcore.boosting._ordinal_rounds import OrdinalRounds
from rankcore.boosting._tree_rounds import leaf_sums, newton_values

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
        self._bias_slopes, self._bias_curvatures = np.empty(n_tasks), np.empty((n_tasks, n_tasks))
        weights = self._training.weights
        self._total = float(n if weights is None else weights.sum())

    def _differentiate(self) -> float:
        return self._loss_of(None, None)

    def _loss_of(self, bias_slopes: Floats | None, bias_curvatures: Floats | None) -> float:
        """Write the derivatives by the score and, unless they are None, those by the biases."""
        form = self.model.form
        loss: float = ordinal_trees.slopes(
            self._scores,
            self._biases,
            form.shared,
            form.cumulative,
            self._training.ranks,
            self._training.weights,
            self._gradients,
            self._hessians,
            bias_slopes,
            bias_curvatures,
        )
        return float(loss / self._total)

    def _derivatives(self) -> tuple[Floats, Floats]:
        return self._gradients, self._hessians

    def _values(
        self, grown: GrownTree, leaf_of: NDArray[np.int32], drawn: NDArray[np.bool_] | None
    ) -> Floats:
        sums, _ = leaf_sums(leaf_of, self._gradients, self._hessians, drawn, grown)
        return newton_values(sums, self._growth.l2_leaf, grown)[np.newaxis]

    def _settle(self) -> None:
        if not self.model.form.shared or self._occurring.ranks.size == 2:
            super()._settle()  # the trees alone fit two ranks
            return
        self._maximise_by_biases()

    def _maximise_by_biases(self) -> None:
        """Maximise the likelihood with its prior by the biases.

        Newton's method; a step is halved until the loss decreases and cumulative biases ascend.
        """
        prior = PRIOR * self._total
        first = self._occurring.biases(self.model.biases[0])

        def loss_at(biases: Floats) -> float:
            if self.model.form.cumulative and not (np.diff(biases) > 0).all():
                return np.inf
            self._biases = biases
            self._loss = self._loss_of(self._bias_slopes, self._bias_curvatures)
            away = biases - first
            return self._total * self._loss + prior / 2 * float(away @ away)

        now = self._biases
        loss = loss_at(now)
        for _ in range(MAX_STEPS):
            gradient = self._bias_slopes - prior * (now - first)
            upper = np.triu(self._bias_curvatures)
            step = np.linalg.solve(upper + np.triu(upper, 1).T + prior * np.eye(now.size), gradient)
            if gradient @ step < ENOUGH * self._total:
                break
            length = 1.0
            while not (found := loss_at(now + length * step)) < loss:
                length /= 2
                if length < np.finfo(np.float64).eps:  # limit of rounding
                    step, found = np.zeros_like(step), loss_at(now)
                    break
            if not step.any():
                break
            now, loss = now + length * step, found
