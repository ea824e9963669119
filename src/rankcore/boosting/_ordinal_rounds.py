"""Rounds of `rankcore.OrdinalBoost`: gradients of the loss, a tree per score, new biases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._core.threads import Threads, n_threads
from rankcore._ext import ordinal_trees, tree_leaves
from rankcore._ext.rows import Rows
from rankcore.boosting._binning import Binning
from rankcore.boosting._ordinal_sum import Form, OrdinalSum
from rankcore.boosting._params import least_rows
from rankcore.boosting._tree_booster import Draws, made_tree
from rankcore.boosting._tree_grower import Grown, TreeGrower
from rankcore.boosting._tree_shards import Rules
from rankcore.boosting._tree_sum import Tree
from rankcore.boosting._vector_leaves import (
    BLOCK_ROWS,
    TableRows,
    directed,
    leaf_sums,
    monotone_steps,
    newton_steps,
)
from rankcore.ordinal._curves import CumulativeLogits, with_absent

# Minimum sum of second derivatives in a leaf, as in LightGBM and scikit-learn.
LEAST_CURVATURE = 1e-3
# Initial weight of a rank without rows, relative to the minimum of the others. The probability of
# such a rank then stays below this multiple of that of another rank.
UNSEEN = 1e-7
# Precision per row of a normal prior on the biases around the initial ones, which keeps the
# probabilities of ranks without rows positive.
PRIOR = 1e-6
# A rank with fewer expected rows than this multiple of its rows is new to a model.
SURPRISING = 1e-3
# The search for biases ends at a Newton step that gains less than this per row.
ENOUGH, MAX_STEPS = 1e-12, 50
# Rows of a fit: words of their slopes have 32 bits.
MAX_ROWS = 2**30 - 1
# Third word of the seed of directions, which do not share the draws of rows and features.
DIRECTION = 1


def first_biases(ranks: NDArray[np.int32], weights: Floats | None, form: Form) -> Floats:
    """Biases for which the probabilities are the shares of the ranks, all positive."""
    counts = np.bincount(ranks, weights, minlength=form.n_ranks).astype(np.float64)
    counts[counts == 0] = UNSEEN * counts[counts > 0].min()
    found = []
    for part in form.parts:
        low, high = counts[:-1], counts[1:]
        if part.cumulative:
            low, high = np.cumsum(counts)[:-1], np.cumsum(counts[::-1])[::-1][1:]
        found.append(np.log(low) - np.log(high))
    return np.concatenate(found)


def losses_of(own: Floats) -> Floats:
    """Loss of each row, from the probability of its true rank."""
    # It may have rounded to 0.
    return np.asarray(-np.log(np.maximum(own, np.finfo(np.float64).tiny)))


@dataclass(frozen=True)
class Occurring:
    """The ranks that have rows, from which a fit learns; between neighbours there is one task.

    If all ranks are kept, nothing changes. With "vector" the log-odds of neighbours are the sum of
    the scores between them, of which only the last learns, so that ranks without rows keep their
    odds against the next lower rank. With cumulative logits thresholds are those of
    `rankcore.ordinal._curves.with_absent`.
    """

    ranks: NDArray[np.int32]
    form: Form

    @classmethod
    def of(cls, ranks: NDArray[np.int32], form: Form) -> Self:
        """The ranks of some rows; all ranks, if the form cannot leave any out."""
        leaves_out = form.tasks == "vector" or (form.tasks, form.link) == ("shared", "cumulative")
        every = np.arange(form.n_ranks, dtype=np.int32)
        return cls(np.unique(ranks) if leaves_out else every, form)

    @property
    def whole(self) -> bool:
        """Whether all ranks are kept."""
        return self.ranks.size == self.form.n_ranks

    def places(self, ranks: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the index of the rank of each row."""
        return np.searchsorted(self.ranks, ranks).astype(np.int32)

    def scores(self, scores: Floats) -> Floats:
        """Merge the scores of a model, shape (n_scores, n)."""
        return scores if self.whole or self.form.has_shared else self._sums(scores)

    def biases(self, biases: Floats) -> Floats:
        """Merge the biases of a model."""
        if self.whole:
            return biases
        return biases[self.ranks[1:] - 1] if self.form.has_shared else self._sums(biases)

    def _sums(self, x: Floats) -> Floats:
        """Sum over the tasks between each two neighbours."""
        if self.ranks.size == 1:
            return x[:0]
        return np.add.reduceat(x[: self.ranks[-1]], self.ranks[:-1], axis=0)

    def restored_biases(self, biases: Floats, before: Floats, scores: Floats) -> Floats:
        """Return the biases of all ranks; ``before`` are those of the model, which may be kept."""
        if self.whole:
            return biases
        if not self.form.has_shared:  # they do not change
            return before
        logits = CumulativeLogits(biases, 1.0)
        return with_absent(logits, scores[0], self.ranks, self.form.n_ranks).thresholds

    def restored_trees(self, trees: list[Tree]) -> list[Tree]:
        """Insert trees of the value 0 for the tasks that do not learn."""
        if self.whole or self.form.has_shared:
            return trees
        zero = trees[0]._replace(values=np.zeros_like(trees[0].values))
        found = [zero] * self.form.n_scores
        for task, tree in zip((self.ranks[1:] - 1).tolist(), trees, strict=True):
            found[task] = tree
        return found


class OrdinalRounds:
    """Rounds of a fit, on rows of positive weight."""

    def __init__(
        self,
        params: Any,
        rows: Rows,
        ranks: NDArray[np.int32],
        weights: Floats | None,
        model: OrdinalSum,
        signs: NDArray[np.int8] | None,
        categorical: Mapping[int, str] | None,
    ) -> None:
        self._rate = float(params.learning_rate)
        taken = np.arange(rows.n_rows) if weights is None else np.flatnonzero(weights)
        self._occurring = Occurring.of(ranks[taken], model.form)
        self._ranks = self._occurring.places(ranks[taken])
        self._weights = None if weights is None else np.ascontiguousarray(weights[taken])
        self._total = float(taken.size if self._weights is None else self._weights.sum())
        n, n_ranks = taken.size, self._occurring.ranks.size
        m = model.form.n_scores if model.form.has_shared else n_ranks - 1
        if n > MAX_ROWS:
            raise ValueError(f"OrdinalBoost supports at most {MAX_ROWS} rows; found {n}: draw some")
        n_jobs = min(n_threads(params.n_jobs), rows.n_features)
        zero_missing = model.sums[0].zero_missing
        self._binning = Binning(rows, taken, params.max_bins, zero_missing, categorical, n_jobs)
        least = least_rows(params.min_samples_leaf, n)
        self._rules = Rules.of(params, least, LEAST_CURVATURE, signs, slopes=True)
        draws_directions = params.tasks == "vector" and params.random_state is not None
        self._draws = Draws(params, seeded=draws_directions)
        self._rows, self._taken = rows, taken
        self._of_vectors = model.form.tasks == "vector" and m > 1
        d = n_ranks - 1
        if self._of_vectors:
            self._table, self._losses = np.empty((n, n_ranks)), np.empty(n)
        else:
            self._steep, self._curved = np.empty((m, n)), np.empty((m, n))
        self._of_biases = np.empty(d), np.empty((d, d))
        self._threads = Threads(n_jobs)
        self._grower = TreeGrower(self._binning, self._rules, self._threads)
        self.go_back(model)
        if model.form.tasks == "vector" and self._learns:
            self._admit_new_ranks()

    def close(self) -> None:
        """End the threads."""
        self._threads.close()

    def go_back(self, model: OrdinalSum) -> None:
        """Replace the model, for example by that of the best round."""
        self.model = model
        scores = model.score(self._rows)[:, self._taken]
        self._scores = np.ascontiguousarray(self._occurring.scores(scores))
        self._biases = self._occurring.biases(model.biases[-1])
        if self._learns:
            self._loss = self._differentiate()

    @property
    def _learns(self) -> bool:
        """Whether there are two ranks to tell apart."""
        return self._occurring.ranks.size > 1

    def probabilities(self) -> Floats:
        """Probability of each rank for the training rows; overwritten by the next round."""
        if self._occurring.whole and self._of_vectors:
            return self._table
        scores = self.model.score(self._rows)[:, self._taken]
        return self.model.probabilities(np.ascontiguousarray(scores))

    def _admit_new_ranks(self) -> None:
        """Shift the biases of a model to continue, if ranks that it learned without have rows now.

        From probabilities as small as theirs, leaves would take many rounds.
        """
        n, n_ranks = self._ranks.size, self._occurring.ranks.size
        table = np.empty((n, n_ranks))
        ordinal_trees.probabilities(self._scores, self._biases, False, False, 0, n, table)
        counts = np.bincount(self._ranks, self._weights, minlength=n_ranks)
        expected = table.sum(axis=0) if self._weights is None else self._weights @ table
        if (expected > SURPRISING * counts).all():
            return
        shift = np.zeros(self.model.form.n_tasks)
        shift[self._occurring.ranks[1:] - 1] = np.diff(np.log(counts) - np.log(expected))
        self.model.biases[-1] = self.model.biases[-1] - shift
        self.go_back(self.model)

    def __iter__(self) -> Iterator[float]:
        """Mean loss after each round, until no tree has a split."""
        while self.round():
            if len(self.model.form.parts) > 1:
                table = self.model.probabilities(self._scores)
                self._loss = self._mean(losses_of(table[np.arange(len(table)), self._ranks]))
            yield self._loss

    def _mean(self, losses: Floats) -> float:
        """Mean loss of the rows."""
        return float(np.average(losses, weights=self._weights))

    def _differentiate(self, of_biases: Any = (None, None)) -> float:
        """Compute the derivatives for all scores, or the probabilities that vectors require.

        Returns the mean loss, summed over the parts.
        """
        if self._of_vectors:
            of_task = self._scores, self._biases, False, False

            def fill(start: int) -> None:
                stop = min(start + BLOCK_ROWS, len(self._table))
                ordinal_trees.probabilities(
                    *of_task, start, stop, self._table, self._ranks, self._losses
                )
                self._losses[start:stop] = losses_of(self._losses[start:stop])

            self._threads.for_each(fill, range(0, len(self._table), BLOCK_ROWS))
            return self._mean(self._losses)
        total = 0.0
        for part in self.model.form.parts:
            scores, biases = self._scores[part.scores], self._biases[part.biases]
            rows = part.shared, part.cumulative, self._ranks, self._weights
            found = self._steep[part.scores], self._curved[part.scores]
            total += ordinal_trees.slopes(scores, biases, *rows, *found, *of_biases)
            of_biases = (None, None)
        return float(total / self._total)

    def round(self) -> bool:
        """Add a tree to each score, all from the same gradients; return whether any has a split."""
        if not self._learns:
            return False
        shape = self._ranks.size, self._binning.n_bins.size
        taken, allowed = self._draws.masks(len(self.model), *shape)
        trees = self._trees(taken, allowed)
        if not any(tree.features.size for tree in trees):
            return False
        if self.model.form.moves_biases and self._occurring.ranks.size > 2:
            self._settle_biases()
        else:  # the trees alone fit two ranks
            self._loss = self._differentiate()
        biases = self._occurring.restored_biases(self._biases, self.model.biases[-1], self._scores)
        self.model.add(self._occurring.restored_trees(trees), biases)
        return True

    def _trees(
        self, taken: NDArray[np.bool_] | None, allowed: NDArray[np.bool_] | None
    ) -> list[Tree]:
        """Grow a tree for each score, and add its values to the scores."""
        if self._of_vectors:
            return self._of_one_structure(taken, allowed)
        trees = []
        for i in range(len(self._scores)):
            grown = self._grower.grow(self._steep[i], self._curved[i], taken, allowed)
            values = self._values(grown, i, taken)
            trees.append(made_tree(self._binning, grown, values))
            if grown.features:
                self._scores[i] += values[grown.leaf_of]
        return trees

    def _of_one_structure(
        self, taken: NDArray[np.bool_] | None, allowed: NDArray[np.bool_] | None
    ) -> list[Tree]:
        """As `_trees`: grow one structure in a random direction of the scores."""
        rng = np.random.default_rng([self._draws.seed, len(self.model), DIRECTION])
        direction = rng.normal(size=len(self._scores))
        if self._rules.signs is not None:
            # Along the direction, splits that improve all tasks are found.
            direction = np.abs(direction)
        rows = TableRows(self._table, self._ranks, self._weights), self._threads
        slopes, curvatures = directed(direction, *rows)
        grown = self._grower.grow(slopes, curvatures, taken, allowed)
        n = grown.lows.size
        values = np.zeros((len(self._scores), n))
        if grown.features:
            of_rows = None if taken is None else taken.view(np.uint8)
            sums = leaf_sums(grown.leaf_of, of_rows, n, *rows)
            l2, signs = self._rules.l2_leaf, self._rules.signs
            if signs is None:
                steps = newton_steps(*sums, l2)
            else:
                children = np.array(grown.children, dtype=np.int32)
                steps = monotone_steps(*sums, l2, children, signs[np.array(grown.features)])
            values = np.ascontiguousarray(self._rate * steps.T)

            def add(start: int) -> None:
                stop = min(start + BLOCK_ROWS, len(self._table))
                ordinal_trees.add_values(self._scores, values, grown.leaf_of, start, stop)

            self._threads.for_each(add, range(0, len(self._table), BLOCK_ROWS))
        first = made_tree(self._binning, grown, values[0])
        return [first._replace(values=value) for value in values]

    def _values(self, grown: Grown, i: int, taken: NDArray[np.bool_] | None) -> Floats:
        """Value of each leaf."""
        n = grown.lows.size
        if n == 1:
            return np.zeros(1)
        slopes, masses, _ = sums = np.empty((3, n))
        of_rows = None if taken is None else taken.view(np.uint8)
        tree_leaves.weigh(grown.leaf_of, self._steep[i], self._curved[i], of_rows, *sums)
        mass = masses + self._rules.l2_leaf
        values = np.divide(slopes, mass, out=np.zeros(n), where=mass > 0)
        return np.asarray(self._rate * np.clip(values, grown.lows, grown.highs))

    def _settle_biases(self) -> None:
        """Maximise the likelihood with its prior by the biases.

        Newton's method; a step is halved until the loss decreases and cumulative biases ascend.
        """
        part, prior = self.model.form.parts[0], PRIOR * self._total
        first = self._occurring.biases(self.model.biases[0])[part.biases]
        slopes, curvatures = self._of_biases

        def loss_at(biases: Floats) -> float:
            if part.cumulative and not (np.diff(biases) > 0).all():
                return np.inf
            self._biases = np.concatenate([biases, self._biases[biases.size :]])
            self._loss = self._differentiate(self._of_biases)
            away = biases - first
            return self._total * self._loss + prior / 2 * float(away @ away)

        now = self._biases[part.biases]
        loss = loss_at(now)
        for _ in range(MAX_STEPS):
            gradient = slopes - prior * (now - first)
            upper = np.triu(curvatures)
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
