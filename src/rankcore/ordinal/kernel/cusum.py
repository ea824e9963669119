"""CuSum Rank in dual form."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar, Literal

import numpy as np

from rankcore._core.arguments import Gamma
from rankcore._core.concurrency import consistent_read
from rankcore._core.declaration import Declaration
from rankcore._core.docs import documented, parameters
from rankcore._core.params import check_declared
from rankcore._ext.kernel_learners import KernelCuSumModel
from rankcore._ext.rows import Rows
from rankcore.ordinal._parameters import (
    AveragingParams,
    CuSumRuleParams,
    EpochParams,
    InterceptParams,
)
from rankcore.ordinal._projecting import cumulated
from rankcore.ordinal.cusum import CuSumClassifier
from rankcore.ordinal.kernel._base import KernelClassifier
from rankcore.ordinal.kernel._dual import BudgetParams

__all__ = ["KernelCuSumRank"]


@parameters
class KernelCuSumParameters(
    CuSumRuleParams, InterceptParams, AveragingParams, BudgetParams, EpochParams
):
    """Parameters of `KernelCuSumRank`."""

    update: Literal["perceptron", "pa", "pa1", "pa2"] = "pa1"
    C: float = 10.0
    margin: float = 1.0
    gamma: Gamma = "half"
    _: KW_ONLY
    max_iter: int = 20


@documented()
class KernelCuSumRank(KernelCuSumParameters, CuSumClassifier, KernelClassifier):
    """CuSum Rank with a kernel: a non-linear task for each step between ranks.

    `CuSumRank` in the feature space of a kernel. A misranked row becomes a support vector of the
    tasks between its true rank and the rival.

    Parameters
    ----------
    C
        With "rbf" and "pa1" it acts below about 1 only: the default is "pa" there. Smaller values
        suit noisy labels.
    intercept_scaling
        The squared length of a row is ``K(x, x)``, plus the square of this value with an intercept.
    budget
        Applies to the coefficients of all tasks together.

    Attributes
    ----------
    dual_coef_ : ndarray of float64, shape (n_classes - 1, n_support)
        Coefficients of the tasks (a copy): their scores are
        ``K(X, support_vectors_) @ dual_coef_.T + intercept_``.
    intercept_ : ndarray of float64, shape (n_classes - 1,)
        Intercepts of the tasks (a copy).

    Notes
    -----
    Figure 5 of [1]_ for this task, with the missing index of the example, and the inconsistent sign
    corrected. Costs as `KernelPRank`, plus O(n_support * n_classes) per row.

    Weights as in `CuSumRank`.

    Plain form: ``tests/reference/kernel.py``, ``kernel_cusum``.

    References
    ----------
    .. [1] R. L. Milidiú and R. H. S. Rocha. "Cumulative Sum Ranking". arXiv:1911.11255, 2019.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y = [[0, 0], [1, 1], [0, 1], [1, 0]], [1, 1, 2, 3]
    >>> model = rc.KernelCuSumRank(gamma=1.0, max_iter=20).fit(X, y)
    >>> model.predict(X)
    array([1, 1, 2, 3])
    """

    _declaration: ClassVar = Declaration(
        guide="kernels",
        learns_from="labels",
        weights="steps",
        instances=lambda: [
            KernelCuSumRank(budget=20, budget_policy="projectron", random_state=0),
            KernelCuSumRank(kernel="linear", max_iter=2, random_state=0),
        ],
    )

    _model_class = KernelCuSumModel
    _published: ClassVar[dict[str, Any]] = {
        "margin": 0.0,
        "update": "perceptron",
        "C": 1.0,
        "gamma": "scale",
    }

    @property
    @consistent_read
    def intercept_(self) -> np.ndarray:
        """Intercepts of the tasks, shape (n_classes - 1,)."""
        return -self._cuts()

    def _tasks(self, rows: Rows) -> np.ndarray:
        return self._outputs(rows) - self._cuts()

    def _rule(self) -> dict[str, str | int]:
        return {"rule": "tasks", **self._scoring_facts()}

    def _cumulated(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        check_declared(self, "tie_break")
        scores = cumulated(self._tasks(rows))
        if self.tie_break == "low":
            return scores, scores.argmax(axis=1)
        return scores, scores.shape[1] - 1 - scores[:, ::-1].argmax(axis=1)
