"""Rounds of `rankcore.OrdinalBoost`: gradients of the loss, a tree per score, new biases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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

# Minimum sum of second derivatives in a leaf, as in LightGBM and scikit-learn.
LEAST_CURVATURE = 1e-3
# Weight of a rank without rows, in rows, for the initial biases.
UNSEEN = 0.5
# Precision per row of a normal prior on the biases around the initial ones, which keeps the
# probabilities of ranks without rows positive.
PRIOR = 1e-6
# Minimum distance of neighbouring biases with cumulative logits.
APART = 1e-6
# Rows of a fit: words of their slopes have 32 bits.
MAX_ROWS = 2**30 - 1
# Third word of the seed of directions, which do not share the draws of rows and features.
DIRECTION = 1


def first_biases(ranks: NDArray[np.int32], weights: Floats | None, form: Form) -> Floats:
    """Biases for which the probabilities are the shares of the ranks, all positive."""
    counts = np.bincount(ranks, weights, minlength=form.n_ranks).astype(np.float64)
    counts[counts == 0] = UNSEEN * counts.sum() / ranks.size
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
        self._ranks = np.ascontiguousarray(ranks[taken])
        self._weights = None if weights is None else np.ascontiguousarray(weights[taken])
        self._total = float(taken.size if self._weights is None else self._weights.sum())
        n, m = taken.size, len(model.sums)
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
        d = model.form.n_ranks - 1
        if self._of_vectors:
            self._table, self._losses = np.empty((n, d + 1)), np.empty(n)
        else:
            self._steep, self._curved = np.empty((m, n)), np.empty((m, n))
        moves = model.form.moves_biases
        self._of_biases = (np.empty(d), np.empty((d, d))) if moves else (None, None)
        self._threads = Threads(n_jobs)
        self._grower = TreeGrower(self._binning, self._rules, self._threads)
        self.go_back(model)

    def close(self) -> None:
        """End the threads."""
        self._threads.close()

    def go_back(self, model: OrdinalSum) -> None:
        """Replace the model, for example by that of the best round."""
        self.model = model
        self._scores = np.ascontiguousarray(model.score(self._rows)[:, self._taken])
        self._differentiate()

    def probabilities(self) -> Floats:
        """Probability of each rank for the training rows; overwritten by the next round."""
        return self._table if self._of_vectors else self.model.probabilities(self._scores)

    def __iter__(self) -> Iterator[float]:
        """Mean loss after each round, until no tree has a split."""
        while self.round():
            loss = self._differentiate()
            if len(self.model.form.parts) > 1:
                table = self.probabilities()
                loss = self._mean(losses_of(table[np.arange(len(table)), self._ranks]))
            yield loss

    def _mean(self, losses: Floats) -> float:
        """Mean loss of the rows."""
        return float(np.average(losses, weights=self._weights))

    def _differentiate(self, of_biases: Any = (None, None)) -> float:
        """Compute the derivatives for all scores, or the probabilities that vectors require.

        Returns the mean loss, summed over the parts.
        """
        if self._of_vectors:
            of_task = self._scores, self.model.biases[-1], False, False

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
            scores, biases = self._scores[part.scores], self.model.biases[-1][part.biases]
            rows = part.shared, part.cumulative, self._ranks, self._weights
            found = self._steep[part.scores], self._curved[part.scores]
            total += ordinal_trees.slopes(scores, biases, *rows, *found, *of_biases)
            of_biases = (None, None)
        return float(total / self._total)

    def round(self) -> bool:
        """Add a tree to each score, all from the same gradients; return whether any has a split."""
        shape = self._ranks.size, self._binning.n_bins.size
        taken, allowed = self._draws.masks(len(self.model), *shape)
        trees = self._trees(taken, allowed)
        if not any(tree.features.size for tree in trees):
            return False
        self.model.add(trees, self.model.biases[-1])
        if self.model.form.moves_biases:
            self._differentiate(self._of_biases)
            self.model.biases[-1] = self._moved()
        return True

    def _trees(
        self, taken: NDArray[np.bool_] | None, allowed: NDArray[np.bool_] | None
    ) -> list[Tree]:
        """Grow a tree for each score, and add its values to the scores."""
        if self._of_vectors:
            return self._of_one_structure(taken, allowed)
        trees = []
        for i in range(len(self.model.sums)):
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

    def _moved(self) -> Floats:
        """Biases after a Newton step, ascending with cumulative logits."""
        part, (slopes, curvatures) = self.model.form.parts[0], self._of_biases
        now, first = (self.model.biases[at][part.biases] for at in (-1, 0))
        assert slopes is not None
        assert curvatures is not None
        prior = PRIOR * self._total
        upper = np.triu(curvatures)
        whole = upper + np.triu(upper, 1).T + prior * np.eye(now.size)
        found = now + np.linalg.solve(whole, slopes - prior * (now - first))
        if part.cumulative:
            # The biases on both sides of a rank without rows would be equal.
            apart = APART * np.arange(now.size)
            found = np.maximum.accumulate(found - apart) + apart
        return np.concatenate([found, self.model.biases[-1][now.size :]])
