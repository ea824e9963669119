"""Latent scores of rows, thresholds that cut them into ranks, and decision values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from rankcore._core.arguments import RowsLike
from rankcore._core.concurrency import reads
from rankcore._core.fitted import check_fitted
from rankcore._ext import ordinal as kernels
from rankcore._ext.rows import Rows


class Projecting:
    """An ordinal learner with one latent score per row. Not public: subclasses say which."""

    _more_rows: Callable[[Any], Rows]  # that of `Specified`
    ranks_: np.ndarray

    @abstractmethod
    def _projected(self, rows: Rows) -> np.ndarray:
        """Implement `project`."""

    @reads
    def project(self, X: RowsLike) -> np.ndarray:
        """Latent score: one number per row, higher for higher ranks.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray of float64, shape (n_samples,)
            With a direction and thresholds, the projection on the direction, which the thresholds
            cut into ranks. Of `WidrowHoff` the score and of votes their mean rank, on the scale
            1 .. n_classes; of `CuSumRank` the sum of all scores of tasks. It orders rows, by
            measures such as NDCG or AUC too.
        """
        check_fitted(self)
        return self._projected(self._more_rows(X))


class Thresholds(Projecting):
    """A latent score that ascending thresholds cut into ranks. Not public."""

    @abstractmethod
    def _cuts(self) -> np.ndarray:
        """The thresholds."""

    @property
    @reads
    def thresholds_(self) -> np.ndarray:
        """Ascending thresholds between the ranks, shape (n_classes - 1,)."""
        return self._cuts().copy()

    def _ranks(self, rows: Rows) -> np.ndarray:
        return ranks_of(self._projected(rows), self._cuts())

    def _scored(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        scores, thresholds = self._projected(rows), self._cuts()
        return cumulated(scores[:, None] - thresholds), ranks_of(scores, thresholds)


def cumulated(tasks: np.ndarray) -> np.ndarray:
    """Scores of ranks, (n, k): for each the sum of the scores of the tasks below it, (n, k - 1)."""
    scores = np.zeros((tasks.shape[0], tasks.shape[1] + 1))
    np.cumsum(tasks, axis=1, out=scores[:, 1:])
    return scores


def ranks_of(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Number of ascending thresholds that each score reaches."""
    ranks = np.empty(scores.size, dtype=np.int32)
    kernels.threshold_ranks(scores, thresholds, ranks)
    return ranks


def margins(scores: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Margin of each rank's score over the best other rank, above 0 only for the predicted rank.

    Scores of ranks that are cumulative sums begin with 0 for the lowest rank, whatever the row; the
    difference to the best other rank says as much about every rank. Of two ranks only the upper one
    has a column, shape (n,).
    """
    n = np.arange(ranks.size)
    least = np.finfo(np.float64).tiny  # a tie is won by the predicted rank
    if scores.shape[1] == 2:
        won = scores[:, 1] - scores[:, 0]
        return np.where(ranks == 1, np.where(won > 0, won, least), np.minimum(won, 0.0))
    found = scores - scores[n, ranks][:, None]
    found[n, ranks] = -np.inf
    margin = -found.max(axis=1)
    np.minimum(found, 0.0, out=found)
    found[n, ranks] = np.where(margin > 0, margin, least)
    return found
