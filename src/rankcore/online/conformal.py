"""Sets of ranks whose coverage adapts to a stream."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from rankcore._core.arguments import RowsLike
from rankcore._core.conformal import before_each, conformal_quantile, sets_of_ranks
from rankcore._core.numbers import Floats
from rankcore._core.params import check_count, check_real
from rankcore.online.wrapper import StreamWrapper, encode_labels, probabilities_by_rank

# Maximum change of the level by a chunk whose rows all miss, so that large chunks do not let it
# swing.
MAX_CHANGE = 0.5


class AdaptiveSets(StreamWrapper):
    """Sets of ranks on a stream, of which a given fraction contains the true rank in the long run.

    After each chunk the level of the sets moves towards the required coverage (adaptive conformal
    inference [1]_): sets grow if too few had the true rank, and shrink if too many had. No
    assumption about the stream is needed.

    Parameters
    ----------
    estimator : learner with partial_fit and predict_proba
        Such as `rankcore.OrdinalLogistic` or `OnlineCalibration`. Copied, not changed.
    coverage : float, default=0.9
        Required fraction of sets with the true rank, between 0 and 1.
    step : float, default=0.01
        Change of the level by a row, above 0: larger steps adapt sooner, and make sizes of sets
        vary more.
    window : int, default=1000
        Number of the latest rows whose scores calibrate the sets.

    Attributes
    ----------
    estimator_ : estimator
        The learner.
    level_ : float
        Current miscoverage level of the calibration.
    conformal_scores_ : ndarray of float64, shape (n,)
        Scores of the latest rows.
    n_sets_ : int
        Number of rows whose sets were compared with their labels.
    coverage_ : float
        Fraction of these whose set had the true rank; NaN without any.
    ranks_, classes_ : ndarray, shape (n_classes,)
        Labels, lowest rank first, and in ascending order.

    Notes
    -----
    A chunk of m rows moves the level by g = min(m step, 0.5) times the difference between the
    coverage of its sets and the required one. The mean coverage of T chunks of equal size therefore
    differs from the required one by at most (1 + g) / (g T), whatever their rows are, except that
    sets are not empty: if the most probable rank alone is right more often, so are the sets.

    References
    ----------
    .. [1] I. Gibbs and E. Candès. "Adaptive Conformal Inference Under Distribution Shift".
       NeurIPS 2021.

    Examples
    --------
    >>> import numpy as np, rankcore as rc
    >>> rng = np.random.default_rng(0)
    >>> model = rc.online.AdaptiveSets(rc.OrdinalLogistic(), coverage=0.9)
    >>> for step in range(300):
    ...     X = rng.normal(size=(20, 3))
    ...     y = np.digitize(X.sum(axis=1) + rng.normal(size=20), [-2, 0, 2])
    ...     model = model.partial_fit(X, y, classes=range(4))
    >>> model.predict_set([[1, 1, 1], [0, 0, 0]]), round(model.coverage_, 2)
    (array([[3, 3], [1, 2]]), 0.9)
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        *,
        coverage: float = 0.9,
        step: float = 0.01,
        window: int = 1000,
    ) -> None:
        self.estimator = estimator
        self.coverage = coverage
        self.step = step
        self.window = window

    def _check(self) -> None:
        check_real(self.coverage, "coverage", 0, 1)
        check_real(self.step, "step", 1e-10, 1)
        check_count(self.window, "window")

    def _begin(self, X: Any, y: Any, sample_weight: Any) -> None:
        self.conformal_scores_ = np.zeros(0)
        self.level_ = 1.0 - self.coverage
        self.n_sets_ = self._n_missed = 0

    def _observe(self, X: Any, y: Any) -> Floats:
        before = before_each(probabilities_by_rank(self.estimator_, X))
        ranks = encode_labels(self.estimator_, y, len(before))
        scores: Floats = before[np.arange(ranks.size), ranks]
        return scores

    def _follow(self, observed: Floats, X: Any, y: Any, sample_weight: Any) -> None:
        missed = observed > self._bound()
        gain = min(self.step * missed.size, MAX_CHANGE)
        # Sets are not empty: a level above 1 would not shrink them further.
        self.level_ = min(1.0, self.level_ + gain * (1.0 - self.coverage - missed.mean()))
        self.conformal_scores_ = np.append(self.conformal_scores_, observed)[-self.window :]
        self.n_sets_ += missed.size
        self._n_missed += int(missed.sum())

    @property
    def coverage_(self) -> float:
        """Fraction of the sets so far that had the true rank; NaN without any."""
        self._fitted()
        return 1.0 - self._n_missed / self.n_sets_ if self.n_sets_ else float("nan")

    def _bound(self) -> float:
        return conformal_quantile(self.conformal_scores_, min(1.0, 1.0 - self.level_))

    def predict_set(self, X: RowsLike) -> NDArray[Any]:
        """Predict an interval of ranks for each row.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray, shape (n_samples, 2)
            Lowest and highest label of each set. A set starts with the most probable rank and is
            extended by the more probable neighbour.
        """
        table = probabilities_by_rank(self._fitted(), X)
        return sets_of_ranks(table, self._bound(), self.ranks_)
