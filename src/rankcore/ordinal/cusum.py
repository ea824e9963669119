"""CuSum Rank: a task for each step between ranks, and scores as cumulative sums."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from rankcore._core.arguments import ClassWeight, Measures, Seed
from rankcore._core.concurrency import consistent_read
from rankcore._core.declaration import Declaration
from rankcore._core.numbers import check_scores
from rankcore._core.params import Constraints, Real, check_declared
from rankcore._ext import ordinal as kernels
from rankcore._ext.rows import Rows, project_many
from rankcore.ordinal.base import OnlineOrdinalClassifier
from rankcore.ordinal.parameters import resolved_half_life
from rankcore.ordinal.projecting import cumulated, project
from rankcore.ordinal.scale import (
    ANY_HALF_LIFE,
    OF_FORGETTING,
    OF_INTERCEPTS,
    OF_UNITS,
    SCALE,
    BuiltIn,
)

__all__ = ["CuSumRank"]


def check_weighable(learner: Any) -> None:
    """Raise if the updates do not support weights."""
    if learner.update == "pa":
        raise ValueError(
            "update='pa' does not support weights, as its loss determines the step: use "
            "'pa1' or 'pa2', whose C is multiplied by the weight, or omit the weights"
        )


def facts_of_decision(learner: Any) -> dict[str, str | int]:
    """Return the parameters of the decision between ranks."""
    return {"decision": learner.decision, "tie": learner.tie_break}


def total_scores(learner: Any, rows: Rows) -> np.ndarray:
    """Return the sum of the scores of all tasks."""
    scores: np.ndarray = learner._cumulated(rows)[0]
    return scores[:, -1]


def scores_by_tasks(learner: Any, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Return a score for each rank and the predicted ranks, by the scores of tasks."""
    # Validated again: set_params may have changed it since the fit.
    check_declared(learner, "decision")
    if learner.decision == "cusum":
        scores: np.ndarray
        scores, ranks = learner._cumulated(rows)
        return scores, ranks
    # In descending order, the cumulative sum of the tasks' scores is maximal at the number of
    # non-negative ones.
    tasks: np.ndarray = learner._tasks(rows)
    return cumulated(-np.sort(-tasks, axis=1)), (tasks >= 0).sum(axis=1, dtype=np.int32)


class CuSumRank(OnlineOrdinalClassifier):
    """CuSum Rank: a task "rank above j" for each j, and their cumulative sums as scores.

    The score of a rank is the sum of the scores of the tasks below it; the predicted rank is the
    one of maximum score. A mistake moves the tasks between the true rank and the predicted one.
    PRank has one direction for all ranks; here each task has its own.

    Parameters
    ----------
    update : {"perceptron", "pa", "pa1", "pa2"}, default="perceptron"
        Length of a step: 1, or passive-aggressive: the smallest with which the true rank beats its
        rival by the loss ("pa"), at most C ("pa1"), or damped by C ("pa2").
    C : float, default=1.0
        Aggressiveness of "pa1" and "pa2": smaller values give shorter steps.
    delta : float, default=1.0
        Score by which passive-aggressive updates require a rank to be beaten, per rank of loss. It
        has no effect on the predictions of "pa", whose weights are proportional to it.
    pa_loss : {"absolute", "zero_one"}, default="absolute"
        Loss of the passive-aggressive updates: ``delta`` times the distance in ranks, or ``delta``.
    margin : float, default=0.0
        In training the rival is the rank of maximum score plus margin times distance from the true
        rank, so that correct ranks must also win by a margin. Passive-aggressive updates do not
        change rivals that are beaten by the loss.
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
    average : bool, default=True
        Predict with the average of the parameters after every example instead of the last ones.
        Usually much better, at about 1.5 times the training cost.
    half_life : float or "auto", optional
        Number of learned rows after which a row has half its weight in averages, at least 1, so
        that these follow a stream that changes. By default all rows weigh the same. "auto" chooses
        after each row among the last parameters, this average, and half-lives of 30, 200 and 1,500
        rows, by their losses on recent rows before these were learned.
    max_iter : int, default=10
        Passes over the data in ``fit``.
    standardize : "auto" or False, default="auto"
        Learn from columns that are centred and divided by their deviation, those of the weighted
        rows of ``fit`` or, in `partial_fit`, of all rows up to the current one. The model is
        converted: it predicts, and is saved and exported, for rows as they are. Rows of which at
        most an eighth of the values are not 0, and columns of 0 and 1, are left alone. Without an
        intercept columns are divided by their root mean square. Constants that are "auto" follow
        from the standardised rows, of a stream from the first 16. False learns from rows as they
        are.
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
    coef_ : ndarray of float64, shape (n_classes - 1, n_features)
        Weights of the tasks (a copy).
    intercept_ : ndarray of float64, shape (n_classes - 1,)
        Intercepts of the tasks (a copy): their scores are ``X @ coef_.T + intercept_``.
    half_life_ : float
        The half-life in use: the parameter or, of "auto", the present choice. 0 stands for the last
        parameters, infinity for an average in which all rows weigh the same.
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
    _built_in: ClassVar[BuiltIn] = {**OF_INTERCEPTS, **OF_UNITS, **OF_FORGETTING}
    _weights_are = "factors"
    _model_class = kernels.CuSumModel
    _merges = True

    _constraints: ClassVar[Constraints] = {
        "C": Real(1e-100, 1e100),
        "delta": Real(1e-100, 1e100),
        "margin": Real(0, 1e100),
        "half_life": ANY_HALF_LIFE,
        "intercept_scaling": SCALE,
    }

    half_life_ = resolved_half_life
    project = project
    _check_weighable = check_weighable
    _scoring_facts = facts_of_decision
    _projected = total_scores
    _scored = scores_by_tasks

    def __init__(
        self,
        update: Literal["perceptron", "pa", "pa1", "pa2"] = "perceptron",
        C: float = 1.0,
        delta: float = 1.0,
        pa_loss: Literal["absolute", "zero_one"] = "absolute",
        margin: float = 0.0,
        *,
        tie_break: Literal["high", "low"] = "high",
        decision: Literal["cusum", "count"] = "cusum",
        fit_intercept: bool = True,
        intercept_scaling: float | str = "auto",
        average: bool = True,
        half_life: float | str | None = None,
        max_iter: int = 10,
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
        self.update = update
        self.C = C
        self.delta = delta
        self.pa_loss = pa_loss
        self.margin = margin
        self.tie_break = tie_break
        self.decision = decision
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.average = average
        self.half_life = half_life
        self.max_iter = max_iter
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
    def coef_(self) -> np.ndarray:
        """Weights of the tasks, shape (n_classes - 1, n_features)."""
        return self._parameters()[0].T.copy()

    @property
    @consistent_read
    def intercept_(self) -> np.ndarray:
        """Intercepts of the tasks, shape (n_classes - 1,)."""
        return -self._parameters()[1]

    def _cumulated(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return cumulative scores of the ranks, and the ranks of maximum score."""
        weights, thresholds = self._parameters()
        check_declared(self, "tie_break")
        scores = np.empty((rows.n_rows, thresholds.size + 1))
        ranks = np.empty(rows.n_rows, dtype=np.int32)
        kernels.cusum_ranks(
            rows, weights.reshape(-1), thresholds, self.tie_break == "low", scores, ranks
        )
        return check_scores(scores), ranks

    def _tasks(self, rows: Rows) -> np.ndarray:
        """Return the scores of the tasks."""
        weights, thresholds = self._parameters()
        tasks = np.empty((rows.n_rows, thresholds.size))
        project_many(rows, weights.reshape(-1), tasks)
        return check_scores(tasks) - thresholds
