"""Predictions of a fitted online ordinal learner: labels, scores, figures of its passes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from rankcore._core.arguments import RowsLike
from rankcore._core.concurrency import reads
from rankcore._core.inputs import as_labels
from rankcore._core.model_spec import Specified
from rankcore._core.state import OnlineState
from rankcore._ext.rows import Rows
from rankcore.metrics import rank_loss
from rankcore.ordinal._decisions import margins
from rankcore.ordinal._labels import RankedLabels, is_rising
from rankcore.ordinal._validation import ranks_beside


class OrdinalModel(RankedLabels, Specified, ClassifierMixin, BaseEstimator):
    """A model of ordered labels. Not public: `OnlineOrdinalClassifier` says how one is learned.

    A subclass provides ``_ranks`` and ``_scored``.
    """

    _state: OnlineState
    n_features_in_: int

    def _ranks(self, rows: Rows) -> np.ndarray:
        """Predicted ranks 0 .. k - 1."""
        raise NotImplementedError

    def _scored(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """A score for each rank, shape (n_rows, n_ranks), and the predicted ranks."""
        raise NotImplementedError

    def _measured(self, rows: Rows) -> np.ndarray:
        """Predicted ranks to measure against true ranks; may be real numbers."""
        return self._ranks(rows)

    def _summary(self) -> dict[str, Any]:
        return {
            "classes": self.ranks_.tolist(),
            "examples_seen": self.t_,
            "passes": self.n_iter_,
        }

    # ---------------------------------------------------------------- predicting

    @reads
    def decision_function(self, X: RowsLike) -> np.ndarray:
        """Margin of each rank's score over the best other rank.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray of float64, shape (n_samples, n_classes), or (n_samples,) for two classes
            Differences of the scores of ranks: above 0 for the predicted rank, at most 0 for all
            others, so that `predict` is their argmax. The columns are those of ``classes_``; of two
            classes only ``classes_[1]`` has a value, above 0 where it is predicted. The scores are
            those by which the learner decides; with a direction and thresholds a rank's score is
            the sum, over the thresholds below it, of the projection minus the threshold.
        """
        check_is_fitted(self)
        scores, ranks = self._scored(self._more_rows(X))
        order = self._ranks_of_columns()
        if not is_rising(order):
            scores, ranks = scores[:, order], np.argsort(order)[ranks]
        return margins(scores, ranks)

    @reads
    def predict(self, X: RowsLike) -> np.ndarray:
        """The predicted label of each row.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray, shape (n_samples,)
            Of the dtype of ``classes_``.
        """
        check_is_fitted(self)
        return self.ranks_[self._ranks(self._more_rows(X))]

    @reads
    def score(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Negated mean rank loss: minus the mean distance between predicted and true rank.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
            True labels. Numbers that are not among ``classes_``, as a fold of a cross-validation
            may lack one, are placed between them: both are ranked among all labels.
        sample_weight : array-like, shape (n_samples,), optional
            Weights of the rows in the mean.

        Returns
        -------
        float
            At most 0, which is perfect; higher is better.
        """
        check_is_fitted(self)
        rows = self._more_rows(X)
        ranks, of_classes = ranks_beside(as_labels(y, rows.n_rows)[0], self.ranks_)
        predicted = np.interp(self._measured(rows), np.arange(of_classes.size), of_classes)
        return 0.0 - rank_loss(ranks, predicted, sample_weight=sample_weight)

    # ---------------------------------------------------------------- what was learned

    @property
    @reads
    def t_(self) -> int:
        """Examples learned from so far, over all passes."""
        return self._fitted_state().t

    @property
    @reads
    def n_iter_(self) -> int:
        """Passes made; all calls of ``partial_fit`` in a row count as one."""
        return len(self._fitted_state().log)

    @property
    @reads
    def history_(self) -> dict[str, list[float]]:
        """Figures of each pass, each example ranked before it was learned.

        Keys: ``examples``; ``mistakes``; ``rank_loss``, the mean over the pass;
        ``average_rank_loss``, the mean over all examples up to its end (the time-averaged loss of
        the papers' figures); and, with held-out rows, each measure on them, as ``valid_accuracy``,
        or with several sets as ``valid_0_accuracy``, ``valid_1_accuracy``, ...
        """
        state = self._fitted_state()
        log = np.array(state.log, dtype=np.int64).reshape(-1, 3)
        totals = log.cumsum(axis=0)
        return {
            "examples": log[:, 0].tolist(),
            "mistakes": log[:, 2].tolist(),
            "rank_loss": (log[:, 1] / log[:, 0]).tolist(),
            "average_rank_loss": (totals[:, 1] / totals[:, 0]).tolist(),
            **{name: list(values) for name, values in state.validation.items()},
        }

    @property
    @reads
    def loss_curve_(self) -> np.ndarray:
        """Time-averaged rank loss while learning, shape (n_points, 2): examples seen, mean loss.

        Points lie at the counts with at most two significant digits (1 .. 100, 110, 120 ..), about
        90 per decade.
        """
        curve = np.array(self._fitted_state().curve, dtype=np.float64).reshape(-1, 2)
        curve[:, 1] /= curve[:, 0]
        return curve
