"""Rounds of `rankcore.OrdinalBoost` with a score for each task."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._ext import ordinal_loss
from rankcore.boosting._grower import GrownTree
from rankcore.boosting._ordinal_rounds import OrdinalRounds
from rankcore.boosting._tree_rounds import DIRECTION
from rankcore.boosting._vector_leaves import (
    BLOCK_ROWS,
    TableRows,
    differentiate_along,
    monotone_steps,
    newton_steps,
    sum_by_leaf,
)


class VectorRounds(OrdinalRounds):
    """Rounds whose splits are found along a random direction of the scores."""

    def _allocate(self, n: int) -> None:
        self._table, self._losses = np.empty((n, self._occurring.ranks.size)), np.empty(n)
        self._table_rows = TableRows(self._table, self._training.ranks, self._training.weights)

    def _differentiate(self) -> float:
        n = self._losses.size

        def fill(start: int) -> None:
            stop = min(start + BLOCK_ROWS, n)
            ordinal_loss.probabilities(
                self._scores,
                self._biases,
                False,
                False,
                start,
                stop,
                self._table,
                self._training.ranks,
                self._losses,
            )
            # A probability may have rounded to 0.
            own = np.maximum(self._losses[start:stop], np.finfo(np.float64).tiny)
            self._losses[start:stop] = -np.log(own)

        self._threads.for_each(fill, range(0, n, BLOCK_ROWS))
        return self._training.mean(self._losses)

    def probabilities(self) -> Floats:
        return self._table if self._occurring.whole else super().probabilities()

    def _derivatives(self) -> tuple[Floats, Floats]:
        rng = np.random.default_rng([self._draws.seed, len(self.model), DIRECTION])
        direction = rng.normal(size=len(self._scores))
        if self._growth.signs is not None:
            # Along the direction, splits that improve all tasks are found.
            direction = np.abs(direction)
        return differentiate_along(direction, self._table_rows, self._threads)

    def _values(
        self, grown: GrownTree, leaf_of: NDArray[np.int32], drawn: NDArray[np.bool_] | None
    ) -> Floats:
        mask = None if drawn is None else drawn.view(np.uint8)
        sums = sum_by_leaf(leaf_of, mask, len(grown.leaves), self._table_rows, self._threads)
        l2_leaf, signs = self._growth.l2_leaf, self._growth.signs
        if signs is None:
            return newton_steps(sums, l2_leaf).T
        children = np.array(grown.children, dtype=np.int32)
        return monotone_steps(sums, l2_leaf, children, signs[np.array(grown.features)]).T
