"""Conformal prediction: sets of neighbouring ranks around the most probable one."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from rankcore._core.arguments import RowsLike
from rankcore._core.fitted import check_fitted
from rankcore._core.labels import as_labels, encode
from rankcore._core.numbers import Floats
from rankcore._core.params import check_real


class ConformalSets:
    """Mixin for models with rank probabilities: sets of ranks with guaranteed coverage."""

    ranks_: NDArray[Any]

    @abstractmethod
    def _probabilities(self, X: Any) -> Floats:
        """Probability of each rank, lowest first."""

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

    def predict_set(self, X: RowsLike, coverage: float = 0.9) -> NDArray[Any]:
        """Interval of ranks that contains the true one with at least a given probability.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        coverage : float, default=0.9
            Required coverage, between 0 and 1.

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
        inside = before_each(self._probabilities(X)) <= bound
        low = inside.argmax(axis=1)
        high = inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
        return np.column_stack([self.ranks_[low], self.ranks_[high]])


def before_each(probabilities: Floats) -> Floats:
    """Probability of a growing set before each rank is added, 0 for the first; shape (n, k).

    The set starts with the most probable rank, and is extended by the more probable one of its two
    neighbours; ties go to the lower rank. Ranks whose value is at most q are therefore consecutive,
    for any q. O(n k).
    """
    n, k = probabilities.shape
    rows = np.arange(n)
    # Neighbours beyond the ends are less probable than any rank.
    fenced = np.full((n, k + 2), -1.0)
    fenced[:, 1:-1] = probabilities
    low = fenced.argmax(axis=1)
    high = low.copy()
    total = fenced[rows, low]
    found = np.zeros((n, k + 2))
    for _ in range(k - 1):
        below, above = fenced[rows, low - 1], fenced[rows, high + 1]
        down = below >= above
        low = np.where(down, low - 1, low)
        high = np.where(down, high, high + 1)
        found[rows, np.where(down, low, high)] = total
        total = total + np.where(down, below, above)
    return found[:, 1:-1]


def conformal_quantile(scores: Floats, coverage: float) -> float:
    """Upper bound of a further, exchangeable score with at least the given probability.

    The ceil((n + 1) * coverage)-th smallest; infinity if there are too few (Vovk et al. 2005).
    """
    place = int(np.ceil((scores.size + 1) * coverage - 1e-9))
    return float(np.sort(scores)[place - 1]) if place <= scores.size else float("inf")
