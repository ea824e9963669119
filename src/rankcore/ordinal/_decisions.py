"""Predictions of minimum expected loss from probabilities of ranks."""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.arguments import RowsLike
from rankcore._core.docs import documented
from rankcore._core.labels import RankedLabels, as_labels, encode
from rankcore._core.numbers import Floats
from rankcore._ext.calibration import cheapest_ranks
from rankcore.metrics.ordinal import accuracy_within, quadratic_weighted_kappa, rank_loss
from rankcore.ordinal._conformal import ConformalSets

LOSSES = ("absolute", "zero_one", "squared", "kappa")


def cheapest(table: Floats, costs: Floats) -> NDArray[np.int32]:
    """Rank of minimum expected cost for each row of probabilities."""
    ranks = np.empty(len(table), dtype=np.int32)
    cheapest_ranks(table, costs, ranks)
    return ranks


class CheapestRanks(ConformalSets, RankedLabels):
    """Mixin for models with rank probabilities, which predicts the rank of minimum expected cost.

    Not public: `CalibratedOrdinal` and `OrdinalBoost` inherit it. ``costs_`` has the cost of a
    prediction (column) for a true rank (row) by the parameter ``loss``.
    """

    loss: Literal["absolute", "zero_one", "squared", "kappa"]
    costs_: Floats

    def predict_proba(self, X: RowsLike) -> Floats:
        """Probability of each rank.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray of float64, shape (n_samples, n_classes)
            Columns in the order of ``classes_``; rows add up to 1.
        """
        return self._as_columns(self._probabilities(X))

    @documented(predict_proba)
    def predict_cumulative_proba(self, X: RowsLike) -> Floats:
        """Cumulative probability of each rank: that of the rank or a lower one.

        Returns
        -------
        ndarray of float64, shape (n_samples, n_classes)
            Columns in the order of ``classes_``; values increase to 1 in the order of ``ranks_``.
        """
        found = np.minimum(np.cumsum(self._probabilities(X), axis=1), 1.0)
        found[:, -1] = 1.0
        return self._as_columns(found)

    @documented(predict_proba)
    def predict(self, X: RowsLike) -> NDArray[Any]:
        """Predict the label of minimum expected loss; the lowest of labels tied up to rounding.

        Returns
        -------
        ndarray, shape (n_samples,)
            Of the dtype of ``classes_``.
        """
        table = self._probabilities(X)  # first, as this raises NotFittedError
        found: NDArray[Any] = self.ranks_[cheapest(table, self.costs_)]
        return found

    @documented(predict_proba)
    def score(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Score of the predictions under the loss they minimise; higher is better.

        Parameters
        ----------
        y : array-like, shape (n_samples,)
        sample_weight : array-like, shape (n_samples,), optional

        Returns
        -------
        float
            Minus the mean distance in ranks ("absolute") or its square ("squared"), accuracy
            ("zero_one"), or the quadratic weighted kappa ("kappa").
        """
        predicted = encode(self.predict(X), self.ranks_)
        ranks = encode(as_labels(y, predicted.size)[0], self.ranks_)
        if self.loss == "kappa":
            every = np.arange(self.ranks_.size)
            return quadratic_weighted_kappa(
                ranks, predicted, labels=every, sample_weight=sample_weight
            )
        if self.loss == "absolute":
            return 0.0 - rank_loss(ranks, predicted, sample_weight=sample_weight)
        if self.loss == "zero_one":
            return accuracy_within(ranks, predicted, 0, sample_weight=sample_weight)
        squared = (ranks - predicted).astype(np.float64) ** 2
        return 0.0 - float(np.average(squared, weights=cast(Any, sample_weight)))
