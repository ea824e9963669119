"""Rounds of `rankcore.OrdinalBoost`: derivatives of the loss, a tree, its values and new biases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._core.threads import Threads, n_threads
from rankcore._ext import ordinal_loss
from rankcore._ext.rows import Rows
from rankcore.boosting._boosted import SplitConstraints
from rankcore.boosting._grower import GrownTree, GrowthParams, TreeGrower
from rankcore.boosting._histograms import MemoryHistograms
from rankcore.boosting._streamed_bins import DiskRows, bin_rows, scores_of
from rankcore.boosting._tree_model import Tree
from rankcore.boosting._tree_rounds import Draws, made_tree
from rankcore.boosting._vector_leaves import BLOCK_ROWS
from rankcore.boosting.ordinal_model import Form, OrdinalSum
from rankcore.boosting.params import resolve_min_samples_leaf
from rankcore.ordinal.curves import CumulativeLogits, with_absent

# Minimum sum of second derivatives in a leaf, as in LightGBM and scikit-learn.
MIN_HESSIAN = 1e-3
# Initial weight of a rank without rows, relative to the minimum of the others. The probability of
# such a rank then stays below this multiple of that of another rank.
UNSEEN = 1e-7
# A rank with fewer expected rows than this multiple of its rows is new to a model.
SURPRISING = 1e-3
# Rows of a fit: packed gradients have 32 bits.
MAX_ROWS = 2**30 - 1


def first_biases(ranks: NDArray[np.int32], weights: Floats | None, form: Form) -> Floats:
    """Return biases for which the probabilities are the fractions of the ranks, all positive."""
    counts = np.bincount(ranks, weights, minlength=form.n_ranks).astype(np.float64)
    counts[counts == 0] = UNSEEN * counts[counts > 0].min()
    if form.cumulative:
        below, above = np.cumsum(counts)[:-1], np.cumsum(counts[::-1])[::-1][1:]
        return np.asarray(np.log(below) - np.log(above))
    return np.asarray(np.log(counts[:-1]) - np.log(counts[1:]))


@dataclass(frozen=True)
class Occurring:
    """The ranks that have rows, from which a fit learns; between neighbours there is one task.

    If all ranks are kept, nothing changes. With "vector" the log-odds of neighbours are the sum of
    the scores between them, of which only the last learns, so that ranks without rows keep their
    odds against the next lower rank. With cumulative logits thresholds are those of
    `rankcore.ordinal.curves.with_absent`.
    """

    ranks: NDArray[np.int32]
    form: Form

    @classmethod
    def of(cls, ranks: NDArray[np.int32], form: Form) -> Self:
        """Return the ranks of some rows; all ranks if the form cannot leave any out."""
        if form.shared and not form.cumulative:  # ranks have fixed places on the line
            return cls(np.arange(form.n_ranks, dtype=np.int32), form)
        return cls(np.unique(ranks), form)

    @property
    def whole(self) -> bool:
        """Whether all ranks are kept."""
        return self.ranks.size == self.form.n_ranks

    @property
    def n_scores(self) -> int:
        """Number of scores that learn."""
        return 1 if self.form.shared else self.ranks.size - 1

    def places(self, ranks: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the index of the rank of each row."""
        return np.searchsorted(self.ranks, ranks).astype(np.int32)

    def scores(self, scores: Floats) -> Floats:
        """Merge the scores of a model, shape (n_scores, n)."""
        return scores if self.whole or self.form.shared else self._sums(scores)

    def biases(self, biases: Floats) -> Floats:
        """Merge the biases of a model."""
        if self.whole:
            return biases
        return biases[self.ranks[1:] - 1] if self.form.shared else self._sums(biases)

    def _sums(self, x: Floats) -> Floats:
        """Sum over the tasks between each two neighbours."""
        if self.ranks.size == 1:
            return x[:0]
        return np.add.reduceat(x[: self.ranks[-1]], self.ranks[:-1], axis=0)

    def restored_biases(self, biases: Floats, before: Floats, scores: Floats) -> Floats:
        """Return the biases of all ranks; ``before`` are those of the model, which may be kept."""
        if self.whole:
            return biases
        if not self.form.shared:  # they do not change
            return before
        logits = CumulativeLogits(biases, 1.0)
        return with_absent(logits, scores[0], self.ranks, self.form.n_ranks).thresholds

    def restored_values(self, values: Floats) -> Floats:
        """Insert the value 0 for the tasks that do not learn; shape (n_scores, n_leaves)."""
        if self.whole or self.form.shared:
            return values
        found = np.zeros((self.form.n_scores, values.shape[1]))
        found[self.ranks[1:] - 1] = values
        return found


@dataclass(frozen=True)
class TrainingRows:
    """Rows of positive weight, from which a fit learns."""

    rows: Rows | DiskRows  # all rows of the fit
    taken: NDArray[np.int64]  # numbers of the rows of positive weight
    # Of these, the index of the rank among the occurring ones, and the weight; None: all are 1.
    ranks: NDArray[np.int32]
    weights: Floats | None
    occurring: Occurring

    @classmethod
    def of(
        cls, rows: Rows | DiskRows, ranks: NDArray[np.int32], weights: Floats | None, form: Form
    ) -> TrainingRows:
        """Select the rows of positive weight; ValueError if they are too many."""
        taken = np.arange(rows.n_rows) if weights is None else np.flatnonzero(weights)
        if taken.size > MAX_ROWS:
            raise ValueError(
                f"OrdinalBoost supports at most {MAX_ROWS} rows; found {taken.size}: draw some"
            )
        occurring = Occurring.of(ranks[taken], form)
        kept = None if weights is None else np.ascontiguousarray(weights[taken])
        return cls(rows, taken, occurring.places(ranks[taken]), kept, occurring)

    def mean(self, losses: Floats) -> float:
        """Return the weighted mean of the losses of the rows."""
        return float(np.average(losses, weights=self.weights))


class OrdinalRounds(ABC):
    """Rounds of a fit. A round grows one tree, whose leaves have a value for each score."""

    def __init__(
        self, params: Any, training: TrainingRows, model: OrdinalSum, splits: SplitConstraints
    ) -> None:
        self._training, self._occurring = training, training.occurring
        self._rate = float(params.learning_rate)
        n_jobs = min(n_threads(params.n_jobs), training.rows.n_features)
        self._binning = bin_rows(
            training.rows,
            training.taken,
            params.max_bins,
            model.sums[0].zero_missing,
            splits.categorical,
            n_jobs,
        )
        min_rows = resolve_min_samples_leaf(params.min_samples_leaf, training.taken.size)
        growth = GrowthParams.of(params, min_rows, MIN_HESSIAN, splits.signs, bounded=False)
        self._growth = growth
        draws_directions = not model.form.shared and params.random_state is not None
        self._draws = Draws(params, self._binning.n_bins.size, seeded=draws_directions)
        self._threads = Threads(n_jobs)
        self._histograms = MemoryHistograms(self._binning, growth, self._threads)
        self._grower = TreeGrower(self._histograms, growth)
        self._allocate(training.taken.size)
        self.go_back(model)
        if self._learns and not model.form.shared:
            self._admit_new_ranks()

    @abstractmethod
    def _allocate(self, n: int) -> None:
        """Allocate the arrays that `_differentiate` writes for n rows."""

    @abstractmethod
    def _differentiate(self) -> float:
        """Write what the scores and biases imply for each row; return the mean loss."""

    @abstractmethod
    def _derivatives(self) -> tuple[Floats, Floats]:
        """Return minus the first, and the second derivative of each row's loss, for the splits."""

    @abstractmethod
    def _values(
        self, grown: GrownTree, leaf_of: NDArray[np.int32], drawn: NDArray[np.bool_] | None
    ) -> Floats:
        """Return the values of leaves, shape (n_scores, n_leaves); ``drawn`` is a mask of rows."""

    def close(self) -> None:
        """Shut down the threads."""
        self._threads.close()

    def go_back(self, model: OrdinalSum) -> None:
        """Replace the model, for example by that of the best round."""
        self.model = model
        scores = scores_of(model, self._training.rows, self._training.taken)
        self._scores = np.ascontiguousarray(self._occurring.scores(scores))
        self._biases = self._occurring.biases(model.biases[-1])
        if self._learns:
            self._loss = self._differentiate()

    @property
    def _learns(self) -> bool:
        """Whether there are two ranks to tell apart."""
        return self._occurring.ranks.size > 1

    def probabilities(self) -> Floats:
        """Return the probability of each rank for the rows; the next round may overwrite it."""
        scores = scores_of(self.model, self._training.rows, self._training.taken)
        return self.model.probabilities(scores)

    def _admit_new_ranks(self) -> None:
        """Shift the biases of a model to continue, if ranks that it learned without have rows now.

        From probabilities as small as theirs, leaves would take many rounds.
        """
        ranks, weights = self._training.ranks, self._training.weights
        n_ranks = self._occurring.ranks.size
        table = np.empty((ranks.size, n_ranks))
        ordinal_loss.probabilities(self._scores, self._biases, False, False, 0, ranks.size, table)
        counts = np.bincount(ranks, weights, minlength=n_ranks)
        expected = table.sum(axis=0) if weights is None else weights @ table
        if (expected > SURPRISING * counts).all():
            return
        shift = np.zeros(self.model.form.n_tasks)
        shift[self._occurring.ranks[1:] - 1] = np.diff(np.log(counts) - np.log(expected))
        self.model.biases[-1] = self.model.biases[-1] - shift
        self.go_back(self.model)

    def __iter__(self) -> Iterator[float]:
        """Mean loss after each round, until no tree has a split."""
        while self.round():
            yield self._loss

    def round(self) -> bool:
        """Add a tree; return whether it has a split."""
        if not self._learns:
            return False
        number = len(self.model)
        drawn = self._draws.rows(number, self._training.taken.size)
        gradients, hessians = self._derivatives()
        features = self._draws.features(number)
        grown = self._grower.grow(self._histograms.begin_tree(gradients, hessians, drawn, features))
        if not grown.features:
            return False
        leaf_of = self._histograms.leaf_of(grown.leaves)
        values = np.ascontiguousarray(self._rate * self._values(grown, leaf_of, drawn))
        self._add_to_scores(leaf_of, values)
        self._settle()
        biases = self._occurring.restored_biases(self._biases, self.model.biases[-1], self._scores)
        self.model.add(self._trees(grown, self._occurring.restored_values(values)), biases)
        return True

    def _settle(self) -> None:
        """Update the derivatives, and the biases if the form moves them, after a tree."""
        self._loss = self._differentiate()

    def _add_to_scores(self, leaf_of: NDArray[np.int32], values: Floats) -> None:
        n = leaf_of.size

        def add(start: int) -> None:
            stop = min(start + BLOCK_ROWS, n)
            ordinal_loss.add_values(self._scores, values, leaf_of, start, stop)

        self._threads.for_each(add, range(0, n, BLOCK_ROWS))

    def _trees(self, grown: GrownTree, values: Floats) -> list[Tree]:
        """Return a tree for each score, which differ in their values only."""
        first = made_tree(self._binning, grown, values[0])
        return [first._replace(values=of_score) for of_score in values]
