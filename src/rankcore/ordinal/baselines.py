"""Baselines for PRank: least squares, and ranks as unordered classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np

from rankcore._core.concurrency import consistent_read
from rankcore._core.declaration import Declaration
from rankcore._core.docs import documented, parameters
from rankcore._core.numbers import check_scores
from rankcore._core.params import Constraints, Real
from rankcore._ext import ordinal as kernels
from rankcore._ext.rows import Rows, project, project_many
from rankcore.ordinal._base import OnlineOrdinalClassifier
from rankcore.ordinal._parameters import AveragingParams, EpochParams, InterceptParams
from rankcore.ordinal._projecting import LatentScoreMixin, cumulated

__all__ = ["MulticlassPerceptron", "WidrowHoff"]


@parameters
class WidrowHoffParameters(InterceptParams, AveragingParams, EpochParams):
    """Parameters of `WidrowHoff`."""

    eta0: float = 0.3
    step: Literal["normalized", "constant"] = "normalized"


@documented()
class WidrowHoff(WidrowHoffParameters, LatentScoreMixin, OnlineOrdinalClassifier):
    """Online least squares on the ranks, rounded: the Widrow-Hoff (LMS) rule.

    Each example, even if ranked correctly, moves the weights along the row to reduce the error of
    its score. A baseline in the paper of PRank.

    Parameters
    ----------
    eta0 : float, default=0.3
        Step size. "normalized" steps reduce the error of the row by this factor, and are stable
        below 2 for rows of any length. "constant" steps are stable only below 2 divided by the
        squared length of the rows, including the constant.
    step : {"normalized", "constant"}, default="normalized"
        Whether ``eta0`` is divided by the squared length of the row ("constant": not, as in the
        paper).

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        Weights (a copy).
    intercept_ : float

    Notes
    -----
    ``project`` returns the real score, on the scale 1 .. n_classes; ``predict`` rounds it, halves
    up, and clips it to the ranks. An update and a prediction cost O(non-zeros). Normalised steps
    are those of [2]_, and do not depend on the scale of X. The score may round to a declared rank
    that no training row has, between two others.

    An example of weight w is learned like w successive examples: if one step leaves the share r of
    its error, a weighted one leaves r ** w. A step that overshoots (r < 0) is multiplied by the
    weight instead.

    Plain form: ``tests/reference/rivals.py``, ``widrow_hoff``.

    References
    ----------
    .. [1] B. Widrow and M. E. Hoff. "Adaptive switching circuits". 1960.
    .. [2] J. Nagumo and A. Noda. "A learning method for system identification". IEEE Transactions
       on Automatic Control 12, 1967.

    Examples
    --------
    >>> import rankcore as rc
    >>> model = rc.WidrowHoff(max_iter=200, random_state=0).fit([[0.0], [0.5], [1.0]], [1, 2, 3])
    >>> model.predict([[0.1], [0.4], [2.0]])
    array([1, 2, 3])
    """

    _declaration: ClassVar = Declaration(
        guide="ordinal",
        learns_from="labels",
        weights="steps",
        instances=lambda: [WidrowHoff(random_state=0)],
    )

    _overflow_hint = (
        "rows are too long, or constant steps too large for them: scale X, use "
        "step='normalized', or lower eta0"
    )
    _published: ClassVar[dict[str, Any]] = {"eta0": 0.1, "step": "constant"}
    _one_direction = True
    _form = "rounded"
    _model_class = kernels.WidrowHoffModel
    _merges = True

    _constraints: ClassVar[Constraints] = {"eta0": Real(1e-100, 1e100)}

    def _lengths(self, share: Callable[[], float]) -> int:
        return 1  # each example moves the intercept

    @property
    @consistent_read
    def coef_(self) -> np.ndarray:
        """Weights of the features, shape (n_features,)."""
        return self._parameters()[0].copy()

    @property
    @consistent_read
    def intercept_(self) -> float:
        """The intercept."""
        return float(self._parameters()[1][0])

    def _projected(self, rows: Rows) -> np.ndarray:
        weights, intercept = self._parameters()
        scores = np.empty(rows.n_rows)
        project(rows, weights, scores)
        return check_scores(scores + intercept[0])

    def _ranks(self, rows: Rows) -> np.ndarray:
        return self._rounded(self._projected(rows))

    def _rounded(self, scores: np.ndarray) -> np.ndarray:
        ranks = np.empty(scores.size, dtype=np.int32)
        kernels.rounded_ranks(scores, self.ranks_.size, ranks)
        return ranks

    def _scored(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        # Rounding is thresholding halfway between the ranks.
        scores = self._projected(rows)
        return cumulated(scores[:, None] - np.arange(1.5, self.ranks_.size)), self._rounded(scores)


@parameters
class MulticlassParameters(InterceptParams, AveragingParams, EpochParams):
    """Parameters of `MulticlassPerceptron`."""

    update: Literal["worst", "uniform"] = "uniform"


@documented()
class MulticlassPerceptron(MulticlassParameters, OnlineOrdinalClassifier):
    """Multiclass perceptron, with one weight vector per rank.

    A baseline that ignores the order of the labels.

    Parameters
    ----------
    update : {"worst", "uniform"}, default="uniform"
        Ranks from which the row is subtracted on a mistake: the predicted rank or, in equal shares,
        all that score at least as high as the true one.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_classes, n_features)
        Weights in the order of ``classes_`` (a copy); they sum to 0.
    intercept_ : ndarray of float64, shape (n_classes,)
        Intercepts in the order of ``classes_`` (a copy).

    Notes
    -----
    Ultraconservative updates after [1]_; ties are won by the lowest rank. An update and a
    prediction cost O(non-zeros * n_classes). A weight multiplies the step of an example.

    Plain form: ``tests/reference/rivals.py``, ``multiclass``.

    References
    ----------
    .. [1] K. Crammer and Y. Singer. "Ultraconservative Online Algorithms for Multiclass Problems".
       JMLR 2003.

    Examples
    --------
    >>> import rankcore as rc
    >>> model = rc.MulticlassPerceptron(random_state=0).fit([[1, 0], [0, 1], [1, 1]], [3, 1, 2])
    >>> model.predict([[1, 0], [0, 1], [1, 1]])
    array([3, 1, 2])
    """

    _declaration: ClassVar = Declaration(
        guide="ordinal",
        learns_from="labels",
        weights="steps",
        instances=lambda: [MulticlassPerceptron(random_state=0)],
    )

    _model_class = kernels.MulticlassModel
    _merges = True
    _form = "classes"
    _published: ClassVar[dict[str, Any]] = {"update": "worst", "fit_intercept": False}

    @property
    @consistent_read
    def coef_(self) -> np.ndarray:
        """Weights in the order of ``classes_``, shape (n_classes, n_features)."""
        return self._parameters()[0][:, self._ranks_of_columns()].T.copy()

    @property
    @consistent_read
    def intercept_(self) -> np.ndarray:
        """Intercepts in the order of ``classes_``, shape (n_classes,)."""
        return self._parameters()[1][self._ranks_of_columns()]

    def _scored(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        weights, intercepts = self._parameters()
        scores = np.empty((rows.n_rows, weights.shape[1]))
        project_many(rows, weights.reshape(-1), scores)
        scores = check_scores(scores + intercepts)
        return scores, scores.argmax(axis=1)
