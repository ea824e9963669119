"""Predictions from probabilities of ranks: of minimum expected loss, and conformal sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from rankcore._core.arguments import RowsLike
from rankcore._core.concurrency import consistent_read
from rankcore._core.conformal import before_each, conformal_quantile, sets_of_ranks
from rankcore._core.fitted import check_fitted
from rankcore._core.labels import LABELS, as_columns, as_labels, encode, ranks_beside
from rankcore._core.numbers import Floats
from rankcore._core.params import Constraints, check_real
from rankcore._ext.calibration import cheapest_ranks
from rankcore.metrics.ordinal import accuracy_within, quadratic_weighted_kappa, rank_loss


def cheapest(table: Floats, costs: Floats) -> NDArray[np.int32]:
    """Return the rank of minimum expected cost for each row of probabilities."""
    ranks = np.empty(len(table), dtype=np.int32)
    cheapest_ranks(table, costs, ranks)
    return ranks


def rank_changes(
    rank_of: Callable[[Floats], NDArray[np.int32]], points: Floats
) -> tuple[Floats, NDArray[np.int32]]:
    """Return the scores at which the rank changes, and the ranks between these.

    ``points`` ascend. Between two of them with one rank, the rank must not change. A change is the
    lowest score with the rank that follows, found by bisection to the last bit.
    """
    ranks = rank_of(points)
    # Intervals between scores: their two ends, and the ranks of these.
    ends = np.stack([points[:-1], points[1:]])
    end_ranks = np.stack([ranks[:-1], ranks[1:]])
    changes = []
    new_ranks = []
    while True:
        differ = end_ranks[0] != end_ranks[1]
        ends = ends[:, differ]
        end_ranks = end_ranks[:, differ]
        low, high = ends
        middle = low + (high - low) / 2
        done = (middle <= low) | (middle >= high)
        changes.append(high[done])
        new_ranks.append(end_ranks[1, done])
        if done.all():
            break
        ends = ends[:, ~done]
        end_ranks = end_ranks[:, ~done]
        middle = middle[~done]
        middle_rank = rank_of(middle)
        ends = np.stack([np.append(ends[0], middle), np.append(middle, ends[1])])
        end_ranks = np.stack(
            [np.append(end_ranks[0], middle_rank), np.append(middle_rank, end_ranks[1])]
        )
    scores = np.concatenate(changes)
    order = np.argsort(scores)
    return scores[order], np.concatenate([ranks[:1], np.concatenate(new_ranks)[order]])


class CheapestRanks:
    """Mixin for models with rank probabilities, which predicts the rank of minimum expected cost.

    Not public: `CalibratedOrdinal`, `OrdinalBoost` and `OrdinalLogistic` inherit it.

    Parameters
    ----------
    loss : {"absolute", "zero_one", "squared", "kappa"}, default="absolute"
        Loss whose expectation `predict` minimises: the distance in ranks (minimised by the median),
        mistakes (by the most probable rank), the squared distance, or one minus the quadratic
        weighted kappa of all predictions.

    Attributes
    ----------
    costs_ : ndarray of float64, shape (n_classes, n_classes)
        Cost of a prediction (column) for a true rank (row). That of a rank without rows is so high
        that it is not predicted.
    conformal_scores_ : ndarray of float64, shape (n,)
        Calibration scores, only after `conformalize`.
    """

    _constraints: ClassVar[Constraints] = {"classes": LABELS}
    classes: ArrayLike | None
    ranks_: NDArray[Any]
    loss: Literal["absolute", "zero_one", "squared", "kappa"]
    costs_: Floats

    # A learner whose probabilities follow from one score, that of `project`, has instead:
    # probabilities of ranks for such scores, shape (n, k), and ascending scores between two of
    # which the predicted rank does not change if it is the same at both.
    project: Callable[[Any], Floats]
    _of_scores: Callable[[Floats], Floats]
    _turning_points: Callable[[], Floats]

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels in ascending order (strings: alphabetical), as the columns of results."""
        return np.sort(self.ranks_)

    def _probabilities(self, X: Any) -> Floats:
        """Compute the probability of each rank, lowest first."""
        return self._of_scores(self.project(X))

    def _ranks_of_scores(self, scores: Floats) -> NDArray[np.int32]:
        """Predict ranks for latent scores of any shape."""
        return cheapest(self._of_scores(scores.ravel()), self.costs_).reshape(scores.shape)

    def _rank_changes(self) -> tuple[Floats, NDArray[np.int32]]:
        """Return the latent scores at which the predicted rank changes; see `rank_changes`."""
        return rank_changes(self._ranks_of_scores, self._turning_points())

    @consistent_read
    def predict_proba(self, X: RowsLike) -> Floats:
        """Predict the probability of each rank.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray of float64, shape (n_samples, n_classes)
            Columns in the order of ``classes_``; rows add up to 1.
        """
        table = self._probabilities(X)  # first, as this raises NotFittedError
        return as_columns(self.ranks_, table)

    @consistent_read
    def predict_cumulative_proba(self, X: RowsLike) -> Floats:
        """Predict the cumulative probability of each rank: that of the rank or a lower one.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray of float64, shape (n_samples, n_classes)
            Columns in the order of ``ranks_``, lowest first, so that each row rises to 1.
        """
        cumulative = np.minimum(np.cumsum(self._probabilities(X), axis=1), 1.0)
        cumulative[:, -1] = 1.0
        return cumulative

    @consistent_read
    def predict(self, X: RowsLike) -> NDArray[Any]:
        """Predict the label of minimum expected loss; the lowest of labels tied up to rounding.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray, shape (n_samples,)
            Of the dtype of ``classes_``.
        """
        table = self._probabilities(X)  # first, as this raises NotFittedError
        return self.ranks_[cheapest(table, self.costs_)]

    @consistent_read
    def score(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Score the predictions by the negated loss that they minimise; higher is better.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
            True labels. Numbers that are not among ``classes_``, for example because a fold of a
            cross-validation lacks them, are placed between the classes: ranks are then those among
            all labels.
        sample_weight : array-like, shape (n_samples,), optional

        Returns
        -------
        float
            Minus the mean distance in ranks ("absolute") or its square ("squared"), accuracy
            ("zero_one"), or the quadratic weighted kappa ("kappa").
        """
        table = self._probabilities(X)  # first, as this raises NotFittedError
        ranks, class_ranks = ranks_beside(as_labels(y, len(table))[0], self.ranks_)
        predicted = class_ranks[cheapest(table, self.costs_)]
        if self.loss == "kappa":
            every = np.arange(max(ranks.max(), class_ranks[-1]) + 1)
            return quadratic_weighted_kappa(
                ranks, predicted, labels=every, sample_weight=sample_weight
            )
        if self.loss == "absolute":
            return 0.0 - rank_loss(ranks, predicted, sample_weight=sample_weight)
        if self.loss == "zero_one":
            return accuracy_within(ranks, predicted, 0, sample_weight=sample_weight)
        squared = (ranks - predicted).astype(np.float64) ** 2
        return 0.0 - float(np.average(squared, weights=cast(Any, sample_weight)))

    @consistent_read
    def conformalize(self, X: RowsLike, y: ArrayLike) -> Self:
        """Calibrate the size of sets of ranks on further rows (split conformal prediction).

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
            Rows not used in `fit`, from the distribution of the rows of `predict_set`.
        y : array-like, shape (n_samples,)

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For labels that are not among ``classes_``.
        """
        probabilities = self._probabilities(X)
        ranks = encode(as_labels(y, len(probabilities))[0], self.ranks_)
        self.conformal_scores_ = before_each(probabilities)[np.arange(ranks.size), ranks]
        return self

    @consistent_read
    def predict_set(self, X: RowsLike, coverage: float = 0.9) -> NDArray[Any]:
        """Predict an interval of ranks that contains the true one with a given probability.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        coverage : float, default=0.9
            Required coverage, between 0 and 1. Sets grow with it: 0 gives the most probable rank,
            1 all ranks.

        Returns
        -------
        ndarray, shape (n_samples, 2)
            Lowest and highest label of each set. A set starts with the most probable rank and is
            extended by the more probable neighbour.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `conformalize`.

        Notes
        -----
        If the rows are exchangeable with the n rows of `conformalize`, the set contains the true
        rank with a probability of at least ``coverage``, on average over rows. The probability is
        at most ``1 / (n + 1)`` larger, unless the most probable rank alone is right more often, as
        sets are not empty, or rows have equal scores (as with votes). O(n_samples * n_classes)
        beyond `predict_proba`.
        """
        check_fitted(self)
        if not hasattr(self, "conformal_scores_"):
            raise NotFittedError(
                "predict_set requires further labelled rows first: call conformalize(X, y)"
            )
        check_real(coverage, "coverage", 0, 1)
        bound = conformal_quantile(self.conformal_scores_, coverage)
        return sets_of_ranks(self._probabilities(X), bound, self.ranks_)
