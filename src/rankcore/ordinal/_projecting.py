"""Ordinal learners that order rows by one number."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rankcore._core.arguments import RowsLike
from rankcore._core.concurrency import reads
from rankcore._ext.rows import Rows
from rankcore.ordinal._base import OnlineOrdinalClassifier


class ProjectingClassifier(OnlineOrdinalClassifier):
    """An ordinal learner with one latent score per row. Not public: subclasses say which."""

    def _projected(self, rows: Rows) -> np.ndarray:
        """Implement `project`."""
        raise NotImplementedError

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
        check_is_fitted(self)
        return self._projected(self._more_rows(X))
