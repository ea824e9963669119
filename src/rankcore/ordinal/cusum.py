"""CuSum Rank: a task for each step between ranks, and scores as cumulative sums."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from rankcore._core.concurrency import consistent_read
from rankcore._core.declaration import Declaration
from rankcore._core.docs import documented, parameters
from rankcore._core.numbers import check_scores
from rankcore._core.params import check_declared
from rankcore._ext import ordinal as kernels
from rankcore._ext.rows import Rows, project_many
from rankcore.ordinal._base import OnlineOrdinalClassifier
from rankcore.ordinal._parameters import (
    AveragingParams,
    CuSumRuleParams,
    EpochParams,
    InterceptParams,
)
from rankcore.ordinal._projecting import LatentScoreMixin, cumulated

__all__ = ["CuSumRank"]


class CuSumClassifier(CuSumRuleParams, LatentScoreMixin):
    """CuSum Rank with or without a kernel. Not public."""

    def _check_weighable(self) -> None:
        if self.update == "pa":
            raise ValueError(
                "update='pa' does not support weights, as its loss determines the step: use "
                "'pa1' or 'pa2', whose C is multiplied by the weight, or omit the weights"
            )

    def _scoring_facts(self) -> dict[str, str | int]:
        return {"decision": self.decision, "tie": self.tie_break}

    @abstractmethod
    def _tasks(self, rows: Rows) -> np.ndarray:
        """Scores of the tasks."""

    @abstractmethod
    def _cumulated(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Cumulative scores of the ranks, and the ranks of maximum score."""

    def _projected(self, rows: Rows) -> np.ndarray:
        return self._cumulated(rows)[0][:, -1]

    def _scored(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        # Validated again: set_params may have changed it since the fit.
        check_declared(self, "decision")
        if self.decision == "cusum":
            return self._cumulated(rows)
        # In descending order, the cumulative sum of the tasks' scores is maximal at the number of
        # non-negative ones.
        tasks = self._tasks(rows)
        return cumulated(-np.sort(-tasks, axis=1)), (tasks >= 0).sum(axis=1, dtype=np.int32)


@parameters
class CuSumParameters(CuSumRuleParams, InterceptParams, AveragingParams, EpochParams):
    """Parameters of `CuSumRank`."""


@documented()
class CuSumRank(CuSumParameters, CuSumClassifier, OnlineOrdinalClassifier):
    """CuSum Rank: a task "rank above j" for each j, and their cumulative sums as scores.

    The score of a rank is the sum of the scores of the tasks below it; the predicted rank is the
    one of maximum score. A mistake moves the tasks between the true rank and the predicted one.
    PRank has one direction for all ranks; here each task has its own.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_classes - 1, n_features)
        Weights of the tasks (a copy).
    intercept_ : ndarray of float64, shape (n_classes - 1,)
        Intercepts of the tasks (a copy): their scores are ``X @ coef_.T + intercept_``.

    Notes
    -----
    The update of [1]_, and its passive-aggressive form with the loss ``delta * |y - z|`` of the
    paper's text (its figure prints ``delta``); steps as in [2]_. An update costs O(non-zeros
    * distance in ranks), a prediction O(non-zeros * n_classes); the model has (n_classes - 1) *
    (n_features
    + 1) numbers, twice that with ``average``. The weight of a row multiplies its perceptron step,
    and C of "pa1" and "pa2"; "pa" does not support weights. Averages count each learned row once.

    If unit weights separate every task of every example by d, and R is the maximum length of a row
    with its constant, the total rank loss of "perceptron" and of "pa" is at most ``R**2 / d**2``;
    with a margin m, the total loss of the rivals is at most ``(R**2 + 2 * m) / d**2``.

    Plain form: ``tests/reference/cusum.py``, ``cusum``.

    References
    ----------
    .. [1] R. L. Milidiú and R. H. S. Rocha. "Cumulative Sum Ranking". arXiv:1911.11255, 2019.
    .. [2] K. Crammer et al. "Online Passive-Aggressive Algorithms". JMLR 2006.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y = [[0, 0], [0, 1], [1, 1], [1, 0]], [1, 2, 2, 3]  # not separable by one direction
    >>> model = rc.CuSumRank.published(max_iter=4).fit(X, y)
    >>> model.predict(X)
    array([1, 2, 2, 3])
    >>> model.coef_, model.intercept_
    (array([[ 1.,  1.],
           [ 1., -1.]]), array([-1., -1.]))
    """

    _declaration: ClassVar = Declaration(
        guide="ordinal",
        learns_from="labels",
        weights="steps",
        instances=lambda: [
            CuSumRank(decision="count", random_state=0),
            CuSumRank(update="pa1", C=0.1, average=False, random_state=0),
        ],
    )

    _form = "tasks"
    _model_class = kernels.CuSumModel
    _merges = True

    @property
    @consistent_read
    def coef_(self) -> np.ndarray:
        """Weights of the tasks, shape (n_classes - 1, n_features)."""
        return self._parameters()[0].T.copy()

    @property
    @consistent_read
    def intercept_(self) -> np.ndarray:
        """Intercepts of the tasks, shape (n_classes - 1,)."""
        return -self._parameters()[1]

    def _cumulated(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        weights, thresholds = self._parameters()
        check_declared(self, "tie_break")
        scores = np.empty((rows.n_rows, thresholds.size + 1))
        ranks = np.empty(rows.n_rows, dtype=np.int32)
        kernels.cusum_ranks(
            rows, weights.reshape(-1), thresholds, self.tie_break == "low", scores, ranks
        )
        return check_scores(scores), ranks

    def _tasks(self, rows: Rows) -> np.ndarray:
        weights, thresholds = self._parameters()
        tasks = np.empty((rows.n_rows, thresholds.size))
        project_many(rows, weights.reshape(-1), tasks)
        return check_scores(tasks) - thresholds
