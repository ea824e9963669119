"""Ordinal learners that order rows by one number, cut into ranks by thresholds or otherwise."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from rankcore._core.arguments import RowsLike
from rankcore._core.concurrency import reads
from rankcore._core.fitted import check_fitted
from rankcore._ext.rows import Rows
from rankcore.ordinal._decisions import cumulated, ranks_of


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
