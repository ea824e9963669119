"""Rounds of `rankcore.OrdinalBoost`: a tree, the values of its leaves, and new biases.

`OrdinalRounds` are those of any rows, `MemoryOrdinalRounds` those of rows in memory. Leaves have a
value for each score, by Newton steps; the biases of tasks that share a score are fitted again
after each tree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._core.threads import Threads, n_threads, one_blas_thread
from rankcore._ext.rows import Rows
from rankcore.boosting._boosted import SplitConstraints
from rankcore.boosting._grower import GrownTree, GrowthParams
from rankcore.boosting._occurring_ranks import OccurringRanks
from rankcore.boosting._ordinal_objective import RankedRows
from rankcore.boosting._streamed_bins import DiskRows, bin_rows, scores_of
from rankcore.boosting._tree_rounds import (
    Draws,
    MemoryTrees,
    TreeRounds,
    TreeRows,
    made_tree,
    newton_values,
)
from rankcore.boosting._vector_leaves import LeafSums, monotone_steps, newton_steps
from rankcore.boosting.ordinal_model import Form, OrdinalSum
from rankcore.boosting.params import resolve_min_samples_leaf

# Minimum sum of second derivatives in a leaf, as in LightGBM and scikit-learn.
MIN_HESSIAN = 1e-3
# Initial weight of a rank without rows, relative to the minimum of the others. The probability of
# such a rank then stays below this multiple of that of another rank.
UNSEEN = 1e-7
# A rank with fewer expected rows than this multiple of its rows is new to a model.
SURPRISING = 1e-3
# Rows of a fit: packed gradients have 32 bits.
MAX_ROWS = 2**30 - 1
# Precision per row of a normal prior on the biases around the initial ones, which keeps the
# probabilities of ranks without rows positive.
PRIOR = 1e-6
# The search for biases ends at a Newton step that gains less than this per row.
ENOUGH, MAX_STEPS = 1e-12, 50


def first_biases(ranks: NDArray[np.int32], weights: Floats | None, form: Form) -> Floats:
    """Return biases for which the probabilities are the fractions of the ranks, all positive."""
    counts = np.bincount(ranks, weights, minlength=form.n_ranks).astype(np.float64)
    counts[counts == 0] = UNSEEN * counts[counts > 0].min()
    if form.cumulative:
        below, above = np.cumsum(counts)[:-1], np.cumsum(counts[::-1])[::-1][1:]
        return np.asarray(np.log(below) - np.log(above))
    return np.asarray(np.log(counts[:-1]) - np.log(counts[1:]))


@dataclass(frozen=True)
class TrainingRows:
    """Rows of positive weight, from which a fit learns."""

    rows: Rows | DiskRows  # all rows of the fit
    taken: NDArray[np.int64]  # numbers of the rows of positive weight
    # Of these, the index of the rank among the occurring ones, and the weight; None: all are 1.
    ranks: NDArray[np.int32]
    weights: Floats | None
    occurring: OccurringRanks

    @classmethod
    def of(
        cls, rows: Rows | DiskRows, ranks: NDArray[np.int32], weights: Floats | None, form: Form
    ) -> TrainingRows:
        """Select the rows of positive weight; raise ValueError if there are too many."""
        taken = np.arange(rows.n_rows) if weights is None else np.flatnonzero(weights)
        if taken.size > MAX_ROWS:
            raise ValueError(
                f"OrdinalBoost supports at most {MAX_ROWS} rows; got {taken.size}: draw some"
            )
        occurring = OccurringRanks.of(ranks[taken], form)
        kept = None if weights is None else np.ascontiguousarray(weights[taken])
        return cls(rows, taken, occurring.places(ranks[taken]), kept, occurring)


class OrdinalRounds(TreeRounds):
    """Rounds on rows of ordered labels, whose weights sum to ``total``."""

    model: OrdinalSum

    def __init__(
        self,
        params: Any,
        occurring: OccurringRanks,
        total: float,
        model: OrdinalSum,
        rows: TreeRows,
    ) -> None:
        super().__init__(model, rows)
        self._occurring, self._total = occurring, total
        self._rate = float(params.learning_rate)
        self.done = occurring.ranks.size < 2  # nothing to tell apart

    def go_back(self, model: OrdinalSum) -> None:
        """Replace the model by that of the best round, after the last one."""
        self.model = model

    def round(self) -> float | None:
        """Implement `Rounds.round`; return the mean loss."""
        grown = self.rows.grow()
        if not grown.features:
            return None
        occurring, biases = self._occurring, self.model.biases[-1]
        merged: Floats = occurring.biases(biases)
        # Threads of BLAS would only wait for each other: the matrices of leaves are small.
        with one_blas_thread():
            values = np.ascontiguousarray(self._rate * self._values(grown))
            pending: Floats | None = values
            if occurring.form.shared and occurring.ranks.size > 2:  # trees alone fit two ranks
                merged, pending = self._fit_biases(values), None
        totals = self.rows.begin_tree(pending, len(self.model) + 1)
        if occurring.form.shared:
            biases = merged
            if not occurring.whole:
                biases = occurring.restored_biases(merged, self.rows.score_range())
        first = made_tree(self.rows.bins, grown, values[0])
        values = occurring.restored_values(values)
        # The trees of the scores differ in their values only.
        self.model.add([first._replace(values=score_values) for score_values in values], biases)
        return float(totals[0]) / self._total

    def _values(self, grown: GrownTree) -> Floats:
        """Return the values of leaves, shape (n_scores, n_leaves)."""
        gradients, hessians = self.rows.sum_leaves(grown.leaves)
        l2_leaf, signs = self.rows.growth.l2_leaf, self.rows.growth.signs
        if gradients.ndim == 1:
            return newton_values(np.array([gradients, hessians]), l2_leaf, grown)[np.newaxis]
        sums = LeafSums(gradients, hessians)
        if signs is None:
            return newton_steps(sums, l2_leaf).T
        children = np.array(grown.children, dtype=np.int32)
        return monotone_steps(sums, l2_leaf, children, signs[np.array(grown.features)]).T

    def _fit_biases(self, values: Floats) -> Floats:
        """Add the values of leaves; return the biases that then fit best."""
        occurring, added = self._occurring, [values]
        latest, first = (occurring.biases(self.model.biases[i]) for i in (-1, 0))
        evaluated = latest

        def evaluate(biases: Floats) -> tuple[float, Floats, Floats]:
            nonlocal evaluated
            evaluated = biases
            loss, gradient, hessian = self.rows.evaluate(added.pop() if added else None, biases)
            return float(loss), gradient, hessian

        maximise_by_biases(evaluate, latest, first, self._total, occurring.form.cumulative)
        return evaluated


class MemoryOrdinalRounds(OrdinalRounds):
    """Rounds on rows in memory."""

    def __init__(
        self, params: Any, training: TrainingRows, model: OrdinalSum, splits: SplitConstraints
    ) -> None:
        self._training, occurring, form = training, training.occurring, model.form
        rows, taken, weights = training.rows, training.taken, training.weights
        n_jobs = min(n_threads(params.n_jobs), rows.n_features)
        zero_missing = model.sums[0].zero_missing
        bins = bin_rows(rows, taken, params.max_bins, zero_missing, splits.categorical, n_jobs)
        scores = scores_of(model, rows, taken)
        if occurring.ranks.size > 1 and not form.shared:
            admit_new_ranks(model, scores, training)
        growth, self._threads = ordinal_growth(params, taken.size, splits.signs), Threads(n_jobs)
        self._objective: RankedRows | None = RankedRows(
            training.ranks,
            weights,
            occurring,
            splits.signs is not None,
            model.biases[-1],
            scores,
            self._threads,
        )
        draws = ordinal_draws(params, bins.n_bins.size, form)
        trees = MemoryTrees(bins, growth, self._objective, draws, self._threads)
        total = float(taken.size if weights is None else weights.sum())
        super().__init__(params, occurring, total, model, trees)
        if not self.done:
            self.begin()

    def close(self) -> None:
        """Shut down the threads."""
        self._threads.close()

    def go_back(self, model: OrdinalSum) -> None:
        super().go_back(model)
        self._objective = None  # its scores are those of the last round

    def probabilities(self) -> Floats:
        """Return the probability of each rank for the rows."""
        if self._objective is not None and self._occurring.whole:
            return self.model.probabilities(self._objective.scores)
        training = self._training
        return self.model.probabilities(scores_of(self.model, training.rows, training.taken))


def ordinal_growth(params: Any, n_rows: int, signs: NDArray[np.int8] | None) -> GrowthParams:
    """Return the constraints on trees of a fit to ``n_rows`` rows."""
    min_rows = resolve_min_samples_leaf(params.min_samples_leaf, n_rows)
    return GrowthParams.of(params, min_rows, MIN_HESSIAN, signs, bounded=False)


def ordinal_draws(params: Any, n_features: int, form: Form) -> Draws:
    """Return the draws of rows and features, and of directions for a vector of scores."""
    return Draws(params, n_features, seeded=not form.shared and params.random_state is not None)


def admit_new_ranks(model: OrdinalSum, scores: Floats, training: TrainingRows) -> None:
    """Shift the biases of a model to continue, if ranks that it learned without have rows now.

    From probabilities as small as theirs, leaves would take many rounds.
    """
    occurring, weights = training.occurring, training.weights
    n_ranks = occurring.ranks.size
    form = Form(n_ranks, "vector", "adjacent")
    merged = np.ascontiguousarray(occurring.scores(scores))
    table = form.probabilities(merged, occurring.biases(model.biases[-1]))
    counts = np.bincount(training.ranks, weights, minlength=n_ranks)
    expected = table.sum(axis=0) if weights is None else weights @ table
    if (expected > SURPRISING * counts).all():
        return
    shift = np.zeros(model.form.n_tasks)
    shift[occurring.ranks[1:] - 1] = np.diff(np.log(counts) - np.log(expected))
    model.biases[-1] = model.biases[-1] - shift


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
        while not (evaluation := loss_at(now + length * step))[0] < loss:
            length /= 2
            if length < np.finfo(np.float64).eps:  # limit of rounding
                evaluate(now)
                return
        now = now + length * step
        loss, gradient, hessian = evaluation
