"""CuSum Rank in dual form."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from rankcore._core.arguments import ClassWeight, Gamma, KernelLike, Measures, Seed
from rankcore._core.concurrency import reads
from rankcore._core.params import STEP_RULES, check_declared
from rankcore._core.state import OnlineState
from rankcore._ext.kernel_learners import KernelCuSumState
from rankcore._ext.rows import Rows
from rankcore.ordinal._decisions import cumulated
from rankcore.ordinal.cusum import CuSumClassifier
from rankcore.ordinal.kernel._base import KernelClassifier
from rankcore.ordinal.kernel._pool import DualState, Zeros
from rankcore.ordinal.kernel.prank import mean_lists

__all__ = ["KernelCuSumRank"]


class KernelCuSumRank(CuSumClassifier, KernelClassifier):
    """CuSum Rank with a kernel: a non-linear task for each step between ranks.

    `CuSumRank` in the feature space of a kernel. A row ranked wrongly becomes a support
    vector of the tasks between its true rank and the rival.

    Parameters
    ----------
    kernel, gamma, degree, coef0
        As in `KernelPRank`.
    update, C, delta, pa_loss, margin, average, tie_break, decision, fit_intercept, \
intercept_scaling
        As in `CuSumRank`, with a margin of 1 by default; the squared length of a row is
        ``K(x, x)``, and with an intercept as much more as ``intercept_scaling`` squared.
    budget, budget_policy, decay, projection_tol
        As in `KernelPRank`; coefficients of all tasks count together.
    max_iter, shuffle, tol, early_stopping_rounds, eval_metric, class_weight, n_jobs, \
random_state, verbose, classes
        As in `KernelPRank`.

    Attributes
    ----------
    dual_coef_ : ndarray of float64, shape (n_classes - 1, n_support)
        Coefficients of the tasks (a copy): their scores are
        ``K(X, support_vectors_) @ dual_coef_.T + intercept_``.
    intercept_ : ndarray of float64, shape (n_classes - 1,)
        Of the tasks (a copy).
    classes_, ranks_, support_, support_vectors_, gamma_, n_features_in_, feature_names_in_, \
n_iter_, \
best_iteration_, t_, history_, loss_curve_
        As in `KernelPRank`.

    Notes
    -----
    Figure 5 of [1]_ for this task, with the example's index that it leaves out and one sign where
    it has two. Costs as `KernelPRank`, and O(n_support * n_classes) per row more.

    Weights are those of `CuSumRank`.

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

    _published: ClassVar[dict[str, Any]] = {"margin": 0.0}

    def __init__(
        self,
        kernel: KernelLike = "rbf",
        gamma: Gamma = "scale",
        degree: int = 2,
        coef0: float = 1.0,
        update: Literal["perceptron", "pa", "pa1", "pa2"] = "perceptron",
        C: float = 1.0,
        delta: float = 1.0,
        pa_loss: Literal["absolute", "zero_one"] = "absolute",
        margin: float = 1.0,
        average: bool = True,
        tie_break: Literal["high", "low"] = "high",
        decision: Literal["cusum", "count"] = "cusum",
        fit_intercept: bool = True,
        intercept_scaling: float | str = "auto",
        budget: int | None = None,
        budget_policy: Literal[
            "oldest", "random", "smallest", "forgetron", "norma", "projectron"
        ] = "oldest",
        decay: float = 0.01,
        projection_tol: float = 1e-6,
        max_iter: int = 10,
        shuffle: bool = True,
        tol: float | None = None,
        early_stopping_rounds: int | None = None,
        eval_metric: Measures = "rank_loss",
        class_weight: ClassWeight | None = None,
        n_jobs: int | None = None,
        random_state: Seed | None = None,
        verbose: int = 0,
        classes: ArrayLike | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.update = update
        self.C = C
        self.delta = delta
        self.pa_loss = pa_loss
        self.margin = margin
        self.average = average
        self.tie_break = tie_break
        self.decision = decision
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.budget = budget
        self.budget_policy = budget_policy
        self.decay = decay
        self.projection_tol = projection_tol
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.tol = tol
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.classes = classes

    @property
    @reads
    def intercept_(self) -> np.ndarray:
        """Intercepts of the tasks, shape (n_classes - 1,)."""
        return -self._cuts()

    def _rule_arrays(self, n_ranks: int, zeros: Zeros) -> tuple[dict[str, np.ndarray], int]:
        names = ["", "_sums"] if self.average else [""]
        arrays = {f"thresholds{name}": zeros(n_ranks - 1) for name in names}
        return arrays | self._other_arrays(n_ranks, zeros), n_ranks - 1

    def _bind(self, state: OnlineState, *pool: Any) -> Any:
        return KernelCuSumState(
            state.others,
            *pool,
            self.C,
            self.delta,
            self.margin,
            self.tie_break == "low",
            STEP_RULES.index(self.update),
            self.pa_loss == "zero_one",
            state.others["scale"][0],
        )

    def _cuts(self) -> np.ndarray:
        return np.asarray(self._fitted_state().mean("thresholds"))

    def _output_lists(self, state: DualState) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return mean_lists(state)

    def _tasks(self, rows: Rows) -> np.ndarray:
        return self._outputs(rows) - self._cuts()

    def _rule(self) -> dict[str, str | int]:
        return {"rule": "tasks", "decision": self.decision, "tie": self.tie_break}

    def _cumulated(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        check_declared(self, "tie_break")
        scores = cumulated(self._tasks(rows))
        if self.tie_break == "low":
            return scores, scores.argmax(axis=1)
        return scores, scores.shape[1] - 1 - scores[:, ::-1].argmax(axis=1)
