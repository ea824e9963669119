"""Probabilities of ranks on a stream, from the scores that rows had before they were learned."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from rankcore._core.arguments import RowsLike
from rankcore._core.numbers import Floats
from rankcore._core.params import check_count
from rankcore.online.wrapper import StreamWrapper, encode_labels
from rankcore.ordinal import prank
from rankcore.ordinal.calibrated import CalibratedOrdinal

# Probabilities are fitted again when this fraction of their rows is new.
RENEWED = 0.1


class OnlineCalibration(StreamWrapper):
    """Probabilities of ranks for an online learner, which follow a stream.

    Each chunk is scored before it is learned. Probabilities are fitted to the scores of the latest
    rows, as `rankcore.CalibratedOrdinal` fits them to scores of held-out folds.

    Parameters
    ----------
    estimator : learner with partial_fit, optional
        With `project` or `decision_function`. Copied, not changed. None: ``PRank()``.
    method : {"cumulative", "isotonic"}, default="cumulative"
        As of `rankcore.CalibratedOrdinal`.
    loss : {"absolute", "zero_one", "squared", "kappa"}, default="absolute"
        Loss whose expectation `predict` minimises, as of `rankcore.CalibratedOrdinal`.
    window : int, default=2000
        Number of the latest rows to which probabilities are fitted.

    Attributes
    ----------
    estimator_ : estimator
        The learner.
    model_ : CalibratedOrdinal
        The learner with its probabilities, for `rankcore.save` and exports.
    ranks_, classes_ : ndarray, shape (n_classes,)
        Labels, lowest rank first, and in ascending order.

    Notes
    -----
    Rows of the first call are scored after they are learned. Scores are measured from the mean of
    the thresholds that the learner has at the time, if it has some, so that a number that is added
    to a column does not change probabilities. They are divided by their deviation
    over about the latest ``window`` rows, as those of perceptrons grow. Probabilities are fitted
    again, by Newton's method, when a tenth of the rows in the window is new. Memory: two numbers
    for each of these.

    Examples
    --------
    >>> import numpy as np, rankcore as rc
    >>> rng = np.random.default_rng(0)
    >>> model = rc.online.OnlineCalibration(rc.PRank())
    >>> for step in range(100):
    ...     X = rng.normal(size=(20, 3))
    ...     y = np.digitize(X.sum(axis=1) + rng.normal(size=20), [-2, 0, 2])
    ...     model = model.partial_fit(X, y, classes=range(4))
    >>> model.predict_proba([[1, 1, 1], [0, 0, 0]]).round(1)
    array([[0. , 0. , 0.2, 0.8],
           [0. , 0.4, 0.5, 0. ]])
    """

    model_: CalibratedOrdinal
    _recent: _Recent

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        *,
        method: Literal["cumulative", "isotonic"] = "cumulative",
        loss: Literal["absolute", "zero_one", "squared", "kappa"] = "absolute",
        window: int = 2000,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.loss = loss
        self.window = window

    def _check(self) -> None:
        check_count(self.window, "window")
        CalibratedOrdinal(self.estimator, method=self.method, loss=self.loss)._check_params()

    def _begin(self, X: Any, y: Any, sample_weight: Any) -> None:
        model = CalibratedOrdinal(self.estimator, method=self.method)
        model.estimator_, model.ranks_ = self.estimator_, self.ranks_
        self.model_, self._recent = model, _Recent()
        self._follow(self._observe(X, y), X, y, sample_weight)

    def _observe(self, X: Any, y: Any) -> Floats:
        return self.model_.project(X) - _origin(self.estimator_)

    def _follow(self, observed: Floats, X: Any, y: Any, sample_weight: Any) -> None:
        ranks = encode_labels(self.estimator_, y, observed.size).astype(np.int32)
        recent, other_method = self._recent, self.model_.method != self.method
        self.model_.set_params(method=self.method, loss=self.loss)
        recent.add(observed, ranks, self.window)
        if other_method or recent.n_new >= RENEWED * recent.ranks.size:
            self.model_._fit_scores(recent.scores, recent.ranks, recent.center, recent.scale)
            recent.n_new = 0
        self.model_.center_ = _origin(self.estimator_) + recent.center
        self.model_.scale_ = recent.scale

    def _default(self) -> BaseEstimator:
        return prank.PRank()

    def predict(self, X: RowsLike) -> NDArray[Any]:
        """Predict the label of minimum expected loss.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray, shape (n_samples,)
        """
        self._fitted()
        return self.model_.predict(X)

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
        self._fitted()
        return self.model_.predict_proba(X)


def _origin(learner: Any) -> float:
    """Return the mean threshold, which moves with the scores; 0 without thresholds."""
    # Thresholds divide projections as those of PRank; scores of voting learners are mean ranks.
    if getattr(type(learner), "_projected", None) is not prank.PRank._projected:
        return 0.0
    return float(np.mean(learner.thresholds_))


class _Recent:
    """Standardised scores of the latest rows, with their ranks."""

    def __init__(self) -> None:
        self.scores = np.zeros(0)
        self.ranks = np.zeros(0, dtype=np.int32)
        self.moments = np.zeros(2)  # running means of scores and of their squares
        self.n_seen = self.n_new = 0

    @property
    def center(self) -> float:
        """Running mean of the scores."""
        return float(self.moments[0])

    @property
    def scale(self) -> float:
        """Running deviation of the scores; 1 if it is 0."""
        mean, square = self.moments
        return float(np.sqrt(max(square - mean**2, 0.0))) or 1.0

    def add(self, scores: Floats, ranks: NDArray[np.int32], window: int) -> None:
        """Add the rows of a chunk; keep those of the window."""
        self.n_seen += scores.size
        self.n_new += scores.size
        gain = min(1.0, scores.size / min(self.n_seen, window))
        self.moments += gain * (np.array([scores.mean(), (scores**2).mean()]) - self.moments)
        scaled = (scores - self.center) / self.scale
        self.scores = np.append(self.scores, scaled)[-window:]
        self.ranks = np.append(self.ranks, ranks)[-window:]
