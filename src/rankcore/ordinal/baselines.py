"""Baselines for PRank: least squares, and ranks as unordered classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from rankcore._core.arguments import ClassWeight, Measures, Seed
from rankcore._core.concurrency import consistent_read
from rankcore._core.declaration import Declaration
from rankcore._core.numbers import check_scores
from rankcore._core.params import Constraints, Real
from rankcore._ext import ordinal as kernels
from rankcore._ext.rows import Rows, project_many
from rankcore.ordinal.base import OnlineOrdinalClassifier
from rankcore.ordinal.parameters import resolved_half_life
from rankcore.ordinal.projecting import cumulated, direction, project, projections
from rankcore.ordinal.scale import (
    ANY_HALF_LIFE,
    OF_FORGETTING,
    OF_INTERCEPTS,
    OF_UNITS,
    SCALE,
    BuiltIn,
)

__all__ = ["MulticlassPerceptron", "WidrowHoff"]


class WidrowHoff(OnlineOrdinalClassifier):
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
    coef_ : ndarray of float64, shape (n_features,)
        Weights (a copy).
    intercept_ : float
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
    _built_in: ClassVar[BuiltIn] = {**OF_INTERCEPTS, **OF_UNITS, **OF_FORGETTING}
    _weights_are = "factors"
    _merges = True

    _constraints: ClassVar[Constraints] = {
        "eta0": Real(1e-100, 1e100),
        "half_life": ANY_HALF_LIFE,
        "intercept_scaling": SCALE,
    }

    coef_ = direction
    half_life_ = resolved_half_life
    project = project

    def __init__(
        self,
        eta0: float = 0.3,
        step: Literal["normalized", "constant"] = "normalized",
        *,
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
        self.eta0 = eta0
        self.step = step
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

    def _lengths(self, share: Callable[[], float]) -> int:
        return 1  # each example moves the intercept

    @property
    @consistent_read
    def intercept_(self) -> float:
        """The intercept."""
        return float(self._parameters()[1][0])

    def _projected(self, rows: Rows) -> np.ndarray:
        return check_scores(projections(self, rows) + self._parameters()[1][0])

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


class MulticlassPerceptron(OnlineOrdinalClassifier):
    """Multiclass perceptron, with one weight vector per rank.

    A baseline that ignores the order of the labels.

    Parameters
    ----------
    update : {"worst", "uniform"}, default="uniform"
        Ranks from which the row is subtracted on a mistake: the predicted rank or, in equal shares,
        all that score at least as high as the true one.
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
    coef_ : ndarray of float64, shape (n_classes, n_features)
        Weights in the order of ``classes_`` (a copy); they sum to 0.
    intercept_ : ndarray of float64, shape (n_classes,)
        Intercepts in the order of ``classes_`` (a copy).
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
    _built_in: ClassVar[BuiltIn] = {**OF_INTERCEPTS, **OF_UNITS, **OF_FORGETTING}
    _weights_are = "factors"
    _merges = True
    _form = "classes"
    _published: ClassVar[dict[str, Any]] = {"update": "worst", "fit_intercept": False}

    _constraints: ClassVar[Constraints] = {
        "half_life": ANY_HALF_LIFE,
        "intercept_scaling": SCALE,
    }

    half_life_ = resolved_half_life

    def __init__(
        self,
        update: Literal["worst", "uniform"] = "uniform",
        *,
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
        """Weights in the order of ``classes_``, shape (n_classes, n_features)."""
        return self._parameters()[0][:, np.argsort(self.ranks_)].T.copy()

    @property
    @consistent_read
    def intercept_(self) -> np.ndarray:
        """Intercepts in the order of ``classes_``, shape (n_classes,)."""
        return self._parameters()[1][np.argsort(self.ranks_)]

    def _scored(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        weights, intercepts = self._parameters()
        scores = np.empty((rows.n_rows, weights.shape[1]))
        project_many(rows, weights.reshape(-1), scores)
        scores = check_scores(scores + intercepts)
        return scores, scores.argmax(axis=1)
