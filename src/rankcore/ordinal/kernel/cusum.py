"""CuSum Rank in dual form."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from rankcore._core.arguments import ClassWeight, Gamma, KernelLike, Measures, Seed
from rankcore._core.concurrency import consistent_read
from rankcore._core.declaration import Declaration
from rankcore._core.params import Constraints, Real, check_declared
from rankcore._ext.kernel_learners import KernelCuSumModel
from rankcore._ext.rows import Rows
from rankcore.ordinal.cusum import (
    check_weighable,
    facts_of_decision,
    scores_by_tasks,
    total_scores,
)
from rankcore.ordinal.kernel._base import KernelClassifier
from rankcore.ordinal.kernel.dual import outputs
from rankcore.ordinal.projecting import cumulated, thresholds_of
from rankcore.ordinal.scale import OF_INTERCEPTS, OF_UNITS, SCALE, BuiltIn

__all__ = ["KernelCuSumRank"]


class KernelCuSumRank(KernelClassifier):
    """CuSum Rank with a kernel: a non-linear task for each step between ranks.

    `CuSumRank` in the feature space of a kernel. A misranked row becomes a support vector of the
    tasks between its true rank and the rival.

    Parameters
    ----------
    kernel : {"rbf", "poly", "linear", "precomputed"} or callable, default="rbf"
        As in scikit-learn's ``SVC``. A callable takes two blocks of rows, as arrays or CSR like X,
        and returns their kernel values, shape (n_rows_1, n_rows_2). With "precomputed" X holds the
        kernel values of each row with all learned rows; in ``partial_fit`` the column of a row is
        its number in the stream.
    gamma : {"scale", "half", "auto"} or float, default="half"
        Parameter of "rbf" and "poly". "scale" is ``1 / (n_features * X.var())``, of standardised
        rows or, where these are left alone, of the X of the first call; "half" is half of that, for
        a wider kernel; "auto" is ``1 / n_features``.
    degree : int, default=2
        Degree of "poly", ``(gamma * x.z + coef0) ** degree``.
    coef0 : float, default=1.0
        Constant of "poly".
    update : {"perceptron", "pa", "pa1", "pa2"}, default="pa1"
        Length of a step: 1, or passive-aggressive: the smallest with which the true rank beats its
        rival by the loss ("pa"), at most C ("pa1"), or damped by C ("pa2").
    C : float, default=10.0
        Aggressiveness of "pa1" and "pa2": smaller values give shorter steps.
        With "rbf" and "pa1" it acts below about 1 only: the default is "pa" there. Smaller values
        suit noisy labels.
    delta : float, default=1.0
        Score by which passive-aggressive updates require a rank to be beaten, per rank of loss. It
        has no effect on the predictions of "pa", whose weights are proportional to it.
    pa_loss : {"absolute", "zero_one"}, default="absolute"
        Loss of the passive-aggressive updates: ``delta`` times the distance in ranks, or ``delta``.
    margin : float, default=1.0
        In training the rival is the rank of maximum score plus margin times distance from the true
        rank, so that correct ranks must also win by a margin. Passive-aggressive updates do not
        change rivals that are beaten by the loss.
    max_iter : int, default=20
        Passes over the data in ``fit``.
    tie_break : {"high", "low"}, default="high"
        Rule for ties between best ranks.
    decision : {"cusum", "count"}, default="cusum"
        Predict the rank of maximum score, or the number of tasks of non-negative score. Training
        always uses the former.
    fit_intercept : bool, default=True
        Whether there are intercepts. X is not augmented.
    intercept_scaling : "auto" or float, default="auto"
        Value of the equivalent constant feature of each intercept. "auto" is twice the root mean
        square length of the rows of the first call (once for `WidrowHoff`), with its square rounded
        to a power of two. The papers have 1.
        The squared length of a row is ``K(x, x)``, plus the square of this value with an intercept.
    average : bool, default=True
        Predict with the average of the parameters after every example instead of the last ones.
        Usually much better, at about 1.5 times the training cost.
    budget : int, optional
        Maximum number of support vectors. By default all are kept: memory grows with the number of
        mistakes.
        Applies to the coefficients of all tasks together.
    budget_policy : {"oldest", "random", "smallest", "forgetron", "norma", "projectron"}, \
default="oldest"
        Support vector to remove beyond the budget: the oldest; a random one; the one of minimum
        ``|coefficient| * sqrt(K(x, x))``; the oldest, after shrinking all as the bound of the
        Forgetron requires; the oldest, with all shrunk by ``decay`` at every example; or none: a
        row near the span of the support vectors, or beyond the budget, is projected onto this span,
        and added to their coefficients. No policy changes the thresholds. `KernelPRank` has the
        sources.
    decay : float, default=0.01
        Share of each coefficient that "norma" removes per example.
    projection_tol : float, default=1e-6
        "projectron" projects a row onto the span of the support vectors if the square of its
        distance from the span is at most this share of ``K(x, x)``.
    n_jobs : int, optional
        Threads for kernel values; -1 for all processors. The result does not depend on it.
    standardize : "auto" or False, default="auto"
        Learn from columns that are centred and divided by their deviation, those of the weighted
        rows of ``fit`` or, in `partial_fit`, of all rows up to the current one. The model is
        converted: it predicts, and is saved and exported, for rows as they are. Rows of which at
        most an eighth of the values are not 0, and columns of 0 and 1, are left alone. Without an
        intercept columns are divided by their root mean square. Constants that are "auto" follow
        from the standardised rows, of a stream from the first 16. False learns from rows as they
        are.
        ``gamma`` and support vectors refer to standardised columns, whose means and deviations the
        model keeps. Values of a precomputed kernel are left alone; other kernels than "linear"
        centre columns also without an intercept.
    shuffle : bool, default=True
        Visit the rows in a new random order in each pass.
    tol : float, optional
        Stop after 5 successive passes whose mean rank loss is not lower than the best one by more
        than this, or after a pass without mistakes. By default all ``max_iter`` passes are made.
    early_stopping_rounds : int, optional
        Stop after this many successive passes that do not improve ``eval_metric`` on the
        ``eval_set``, and keep the model of the best pass.
    eval_metric : str, callable or list of them, default="rank_loss"
        Measures on held-out rows after each pass: ``"rank_loss"``, ``"accuracy"``,
        ``"quadratic_weighted_kappa"``, ``"macro_rank_loss"``, ``"max_rank_loss"``,
        ``"accuracy_within"``, or a function of true and predicted labels (higher is better). The
        first of a list is used for early stopping.
    class_weight : "balanced" or dict of label to weight, optional
        Weights of the labels, multiplied with those of the rows; "balanced" gives each label the
        same total. See Notes for the meaning of a weight.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the shuffling. The same seed gives the same model on every platform.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.
    classes : array-like, shape (n_classes,), optional
        All labels, lowest rank first; required for strings. By default the order of an ordered
        categorical, or the distinct numbers of y in ascending order.

    Attributes
    ----------
    dual_coef_ : ndarray of float64, shape (n_classes - 1, n_support)
        Coefficients of the tasks (a copy): their scores are
        ``K(Z, support_vectors_) @ dual_coef_.T + intercept_``, with the standardised rows Z.
    intercept_ : ndarray of float64, shape (n_classes - 1,)
        Intercepts of the tasks (a copy).
    support_ : ndarray of int64, shape (n_support,)
        Row numbers of the support vectors, counted over all calls of ``partial_fit``.
    support_vectors_ : ndarray or CSR, shape (n_support, n_features)
        Support vectors (a copy), standardised; as they are, and float32 if X was, where rows are
        left alone. Empty with ``kernel="precomputed"``.
    mean_, scale_ : ndarray of float64, shape (n_features_in_,)
        Mean that is subtracted from each column, 0 if none is, and deviation by which it is
        divided, or 1 (copies). The kernel takes ``(X - mean_) / scale_``.
    gamma_ : float
        The resolved ``gamma``.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    n_iter_ : int
        Number of passes, including those after the best one.
    best_iteration_ : int
        Number, from 1, of the pass with the best value of the first ``eval_metric``; the model has
        its parameters. Only with ``early_stopping_rounds``.
    t_ : int
        Examples learned from, over all passes.
    history_ : dict of lists
        Per pass: ``examples``, ``mistakes``, ``rank_loss`` and ``average_rank_loss``; with an
        ``eval_set`` also each measure on it, as ``valid_rank_loss``.
    update_loss_curve_ : ndarray, shape (n_points, 2)
        Examples seen and time-averaged rank loss while learning: each example is predicted by the
        last parameters before it is learned. `predict` loses less if it uses others (averages,
        votes).
    classes_ : ndarray, shape (n_classes,)
        Labels in ascending order, as the columns of results.
    ranks_ : ndarray, shape (n_classes,)
        Labels, lowest rank first.

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
    _built_in: ClassVar[BuiltIn] = {**OF_INTERCEPTS, **OF_UNITS}
    _weights_are = "factors"
    _published: ClassVar[dict[str, Any]] = {
        "margin": 0.0,
        "update": "perceptron",
        "C": 1.0,
        "gamma": "scale",
    }

    _constraints: ClassVar[Constraints] = {
        "C": Real(1e-100, 1e100),
        "delta": Real(1e-100, 1e100),
        "margin": Real(0, 1e100),
        "intercept_scaling": SCALE,
    }

    _check_weighable = check_weighable
    _scoring_facts = facts_of_decision
    _projected = total_scores
    _scored = scores_by_tasks

    def __init__(
        self,
        kernel: KernelLike = "rbf",
        gamma: Gamma = "half",
        degree: int = 2,
        coef0: float = 1.0,
        update: Literal["perceptron", "pa", "pa1", "pa2"] = "pa1",
        C: float = 10.0,
        delta: float = 1.0,
        pa_loss: Literal["absolute", "zero_one"] = "absolute",
        margin: float = 1.0,
        *,
        max_iter: int = 20,
        tie_break: Literal["high", "low"] = "high",
        decision: Literal["cusum", "count"] = "cusum",
        fit_intercept: bool = True,
        intercept_scaling: float | str = "auto",
        average: bool = True,
        budget: int | None = None,
        budget_policy: Literal[
            "oldest", "random", "smallest", "forgetron", "norma", "projectron"
        ] = "oldest",
        decay: float = 0.01,
        projection_tol: float = 1e-06,
        n_jobs: int | None = None,
        standardize: Literal["auto", False] = "auto",
        shuffle: bool = True,
        tol: float | None = None,
        early_stopping_rounds: int | None = None,
        eval_metric: Measures = "rank_loss",
        class_weight: ClassWeight | None = None,
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
        self.max_iter = max_iter
        self.tie_break = tie_break
        self.decision = decision
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.average = average
        self.budget = budget
        self.budget_policy = budget_policy
        self.decay = decay
        self.projection_tol = projection_tol
        self.n_jobs = n_jobs
        self.standardize = standardize
        self.shuffle = shuffle
        self.tol = tol
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.classes = classes

    @property
    @consistent_read
    def intercept_(self) -> np.ndarray:
        """Intercepts of the tasks, shape (n_classes - 1,)."""
        return -thresholds_of(self)

    def _tasks(self, rows: Rows) -> np.ndarray:
        return outputs(self, rows) - thresholds_of(self)

    def _rule(self) -> dict[str, str | int]:
        return {"rule": "tasks", **self._scoring_facts()}

    def _cumulated(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        check_declared(self, "tie_break")
        scores = cumulated(self._tasks(rows))
        if self.tie_break == "low":
            return scores, scores.argmax(axis=1)
        return scores, scores.shape[1] - 1 - scores[:, ::-1].argmax(axis=1)
