"""The ranks that have rows, from which `rankcore.OrdinalBoost` learns, among all ranks.

`OccurringRanks` merges the scores and biases of a model of all ranks into those of the occurring
ones for the rounds, and restores what the rounds find to all ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore.boosting.ordinal_model import Form
from rankcore.ordinal.curves import CumulativeLogits, with_absent


@dataclass(frozen=True)
class OccurringRanks:
    """The ranks that have rows, from which a fit learns; between neighbours there is one task.

    If all ranks are kept, nothing changes. With "vector" the log-odds of neighbours are the sum of
    the scores between them, of which only the last learns, so that ranks without rows keep their
    odds against the next lower rank. With cumulative logits thresholds are those of
    `rankcore.ordinal.curves.with_absent`.
    """

    ranks: NDArray[np.int32]
    form: Form
    with_rows: NDArray[np.int32]

    @classmethod
    def of(cls, ranks: NDArray[np.int32], form: Form) -> Self:
        """Return the ranks of some rows; all ranks if the form cannot leave any out."""
        with_rows = np.unique(ranks)
        if form.shared and not form.cumulative:  # ranks have fixed places on the line
            return cls(np.arange(form.n_ranks, dtype=np.int32), form, with_rows)
        return cls(with_rows, form, with_rows)

    @property
    def whole(self) -> bool:
        """Whether all ranks are kept."""
        return self.ranks.size == self.form.n_ranks

    @property
    def n_scores(self) -> int:
        """Number of scores to learn."""
        return 1 if self.form.shared else self.ranks.size - 1

    def places(self, ranks: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the index of the rank of each row."""
        return np.searchsorted(self.ranks, ranks).astype(np.int32)

    def scores(self, scores: Floats) -> Floats:
        """Merge the scores of a model for the ranks that have rows, shape (n_scores, n)."""
        return scores if self.whole or self.form.shared else self._sums(scores)

    def biases(self, biases: Floats) -> Floats:
        """Merge the biases of a model for the ranks that have rows."""
        if self.whole:
            return biases
        return biases[self.ranks[1:] - 1] if self.form.shared else self._sums(biases)

    def _sums(self, x: Floats) -> Floats:
        """Sum over the tasks between each two neighbours."""
        if self.ranks.size == 1:
            return x[:0]
        return np.add.reduceat(x[: self.ranks[-1]], self.ranks[:-1], axis=0)

    def restored_biases(self, biases: Floats, scores: Floats) -> Floats:
        """Insert the biases of cumulative logits next to ranks without rows.

        ``scores`` have the minimum and the maximum of those of the rows.
        """
        logits = CumulativeLogits(biases, 1.0)
        return with_absent(logits, scores, self.ranks, self.form.n_ranks).thresholds

    def restored_values(self, values: Floats) -> Floats:
        """Insert the value 0 for the tasks that do not learn; shape (n_scores, n_leaves)."""
        if self.whole or self.form.shared:
            return values
        restored = np.zeros((self.form.n_scores, values.shape[1]))
        restored[self.ranks[1:] - 1] = values
        return restored
