"""Latent scores of rows, their conversion to ranks by thresholds, and decision values.

Learners assign what they have of these functions and properties to their own names.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankcore._core.arguments import RowsLike
from rankcore._core.concurrency import consistent_read
from rankcore._core.fitted import check_fitted
from rankcore._core.labels import is_rising
from rankcore._core.numbers import check_reached, check_scores
from rankcore._ext import ordinal as kernels
from rankcore._ext.rows import Rows
from rankcore._ext.rows import project as project_rows


@consistent_read
def project(self: Any, X: RowsLike) -> np.ndarray:
    """Compute the latent score: one number per row, higher for higher ranks.

    Parameters
    ----------
    X : array-like or scipy sparse, shape (n_samples, n_features)

    Returns
    -------
    ndarray of float64, shape (n_samples,)
        With a direction and thresholds, the projection on the direction, which the thresholds
        divide into ranks. For `WidrowHoff` the score, and for voting learners the mean rank, on the
        scale 1 .. n_classes; for `CuSumRank` the sum of all task scores. It can be used to order
        rows, for example with NDCG or AUC.
    """
    check_fitted(self)
    scores: np.ndarray = self._projected(self._more_rows(X))
    return scores


@property  # type: ignore[misc]
@consistent_read
def direction(self: Any) -> np.ndarray:
    """The direction: weights of the features, shape (n_features,)."""
    weights: np.ndarray = self._parameters()[0]
    return weights.copy()


@property  # type: ignore[misc]
@consistent_read
def ascending_thresholds(self: Any) -> np.ndarray:
    """Ascending thresholds between the ranks, shape (n_classes - 1,)."""
    return thresholds_of(self).copy()


@property  # type: ignore[misc]
@consistent_read
def resolved_scale(self: Any) -> float:
    """The resolved ``threshold_scale``; thresholds move in steps of its square."""
    return float(np.sqrt(self._fitted_state().model["scale"][0]))


def projections(learner: Any, rows: Rows) -> np.ndarray:
    """Project rows on the direction."""
    return scores_along(learner._parameters()[0], rows)


def scores_along(weights: np.ndarray, rows: Rows) -> np.ndarray:
    """Project rows on weights; raise ValueError if a score overflows."""
    scores = np.empty(rows.n_rows)
    project_rows(rows, weights, scores)
    return check_scores(scores)


def ranks_along(learner: Any, rows: Rows) -> np.ndarray:
    """Predict ranks by the direction and the thresholds."""
    weights, thresholds = learner._parameters()
    ranks = np.empty(rows.n_rows, dtype=np.int32)
    check_reached(kernels.projected_ranks(rows, weights, thresholds, ranks), rows.n_rows)
    return ranks


def thresholds_of(learner: Any) -> np.ndarray:
    """Return the thresholds for predictions, without a copy."""
    thresholds: np.ndarray = learner._parameters()[-1]
    return thresholds


def ranks_by_thresholds(learner: Any, rows: Rows) -> np.ndarray:
    """Predict ranks by the latent scores and the thresholds."""
    return ranks_of(learner._projected(rows), thresholds_of(learner))


def scores_by_thresholds(learner: Any, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Return a score for each rank and the predicted ranks, by latent scores and thresholds."""
    scores, thresholds = learner._projected(rows), thresholds_of(learner)
    return cumulated(scores[:, None] - thresholds), ranks_of(scores, thresholds)


def cumulated(tasks: np.ndarray) -> np.ndarray:
    """Sum the scores of tasks, (n, k - 1), to the scores of ranks, (n, k)."""
    scores = np.zeros((tasks.shape[0], tasks.shape[1] + 1))
    np.cumsum(tasks, axis=1, out=scores[:, 1:])
    return scores


def ranks_of(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Count the ascending thresholds that each score reaches."""
    ranks = np.empty(scores.size, dtype=np.int32)
    kernels.threshold_ranks(scores, thresholds, ranks)
    return ranks


def margins(scores: np.ndarray, ranks: np.ndarray, order: np.ndarray | None = None) -> np.ndarray:
    """Compute the margin of each rank's score over the best other rank.

    Cumulative sums are 0 for the lowest rank in every row; the difference to the best other rank is
    equally informative for every rank. For two ranks only the upper one has a column, shape (n,).
    ``order`` has the rank of each column of the result, if it is not its number.
    """
    if order is not None and not is_rising(order):
        scores, ranks = scores[:, order], np.argsort(order)[ranks]
    n = np.arange(ranks.size)
    least = np.finfo(np.float64).tiny  # the predicted rank wins ties
    if scores.shape[1] == 2:
        won = scores[:, 1] - scores[:, 0]
        return np.where(ranks == 1, np.where(won > 0, won, least), np.minimum(won, 0.0))
    differences = scores - scores[n, ranks][:, None]
    differences[n, ranks] = -np.inf
    margin = -differences.max(axis=1)
    np.minimum(differences, 0.0, out=differences)
    differences[n, ranks] = np.where(margin > 0, margin, least)
    return differences
