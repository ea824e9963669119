"""Ordinal logistic regression, online: probabilities of ranks from the first row on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.arguments import ClassWeight, Measures, RowsLike, Seed
from rankcore._core.concurrency import consistent_read
from rankcore._core.declaration import Declaration
from rankcore._core.fitted import check_fitted
from rankcore._core.model_spec import Field, ModelSpec, read_fields
from rankcore._core.numbers import Floats
from rankcore._core.params import Real, check_declared
from rankcore._core.scoring import Scoring
from rankcore._ext.logistic import LogisticModel
from rankcore._ext.rows import Rows
from rankcore.ordinal.base import OnlineOrdinalClassifier
from rankcore.ordinal.curves import CumulativeLogits, expected_costs, with_absent
from rankcore.ordinal.decisions import CheapestRanks, cheapest
from rankcore.ordinal.parameters import resolved_half_life
from rankcore.ordinal.projecting import (
    ascending_thresholds,
    direction,
    project,
    projections,
    scores_along,
)
from rankcore.ordinal.scale import ANY_HALF_LIFE, OF_FORGETTING, OF_UNITS

__all__ = ["OrdinalLogistic"]


class OrdinalLogistic(CheapestRanks, OnlineOrdinalClassifier):
    """Ordinal logistic regression: one direction and thresholds, with probabilities of ranks.

    Learned by averaged stochastic steps, a row at a time, so that probabilities are available on
    streams and sparse rows without cross-validation.

    Parameters
    ----------
    eta0 : float, default=2.0
        Length of a step, which is divided by the mean squared length of the first 64 rows and by
        the square root of the number of thresholds. Larger values learn faster and average over
        larger fluctuations.
    step : {"decreasing", "constant"}, default="decreasing"
        Whether steps decrease with the fourth root of the number of rows, as suits rows of one
        distribution (they have the length of constant ones at row 256), or are constant, as suits
        streams that change.
    average : bool, default=True
        Predict with the average of the parameters after every example instead of the last ones.
        Usually much better, at about 1.5 times the training cost.
    half_life : float or "auto", optional
        Number of learned rows after which a row has half its weight in averages, at least 1, so
        that these follow a stream that changes. By default all rows weigh the same. "auto" chooses
        after each row among the last parameters, this average, and half-lives of 30, 200 and 1,500
        rows, by their losses on recent rows before these were learned.
    loss : {"absolute", "zero_one", "squared"}, default="absolute"
        Loss whose expectation `predict` minimises: the distance in ranks (minimised by the median),
        mistakes (by the most probable rank), or the squared distance.
    max_iter : int, default=20
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
        The direction (a copy).
    thresholds_ : ndarray of float64, shape (n_classes - 1,)
        Ascending (a copy): ``P(rank <= r | x) = 1 / (1 + exp(x @ coef_ - thresholds_[r]))``.
    conformal_scores_ : ndarray of float64, shape (n,)
        Calibration scores, only after `conformalize`; removed by `partial_fit`.
    costs_ : ndarray of float64, shape (n_classes, n_classes)
        Cost of a prediction (column) for a true rank (row). That of a rank without rows is so high
        that it is not predicted.
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
    The loss of a row is the sum over the thresholds of the logistic loss of being on the right side
    (all-threshold loss of [1]_), which is convex. Each step follows its gradient for one row; the
    average over all rows [2]_ approaches the minimum, where thresholds ascend. Learned ones are
    sorted. For two classes this is logistic regression.

    A step costs O(non-zeros + n_classes), probabilities O(non-zeros + n_classes); the model has
    n_features + n_classes - 1 numbers, twice that with ``average``. The weight of a row multiplies
    its step. ``fit`` divides weights by their mean, as the minimum of the loss does not depend on
    it, so that counts of equal rows are weights, too; ``partial_fit`` takes them as they are, and
    large ones overshoot. Averages count each learned row once. There is no regularisation beside
    the number of passes. Ranks of ``classes`` without rows have small probabilities, about 1e-7 if
    the scores of rows change little after they are learned, larger after short fits with long
    steps. Those of the other ranks are as without them.

    Plain form: ``tests/reference/logistic.py``, ``ordinal_logistic``.

    References
    ----------
    .. [1] J. D. M. Rennie and N. Srebro. "Loss Functions for Preference Levels: Regression with
       Discrete Ordered Labels". IJCAI Workshop on Advances in Preference Handling, 2005.
    .. [2] B. T. Polyak and A. B. Juditsky. "Acceleration of Stochastic Approximation by Averaging".
       SIAM Journal on Control and Optimization 30, 1992.

    Examples
    --------
    >>> import numpy as np, rankcore as rc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = np.clip(np.round(X.sum(axis=1) + rng.normal(size=2000)) + 3, 1, 5).astype(int)
    >>> model = rc.OrdinalLogistic(random_state=0).fit(X[:1000], y[:1000])
    >>> model.predict_proba(X[1000:1002]).round(1)
    array([[0.7, 0.2, 0.1, 0. , 0. ],
           [0.9, 0.1, 0. , 0. , 0. ]])
    >>> model.partial_fit(X[1000:], y[1000:]).t_
    21000
    """

    _declaration: ClassVar = Declaration(
        guide="probabilities",
        learns_from="labels",
        weights="steps",
        instances=lambda: [OrdinalLogistic(random_state=0)],
    )

    _overflow_hint = "rows are too long, or eta0 is too large: scale X, or lower it"
    _form = "thresholds"
    _model_class = LogisticModel
    _merges = True
    _one_direction = True
    _weights_are = "shares"
    _built_in: ClassVar = {"average": bool, **OF_UNITS, **OF_FORGETTING}
    _constraints: ClassVar = {"eta0": Real(1e-100, 1e100), "half_life": ANY_HALF_LIFE}

    coef_ = direction
    thresholds_ = ascending_thresholds
    half_life_ = resolved_half_life
    project = project
    _projected = projections

    def __init__(
        self,
        *,
        eta0: float = 2.0,
        step: Literal["decreasing", "constant"] = "decreasing",
        average: bool = True,
        half_life: float | str | None = None,
        loss: Literal["absolute", "zero_one", "squared"] = "absolute",
        max_iter: int = 20,
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
        self.average = average
        self.half_life = half_life
        self.loss = loss
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

    # ---------------------------------------------------------------- learning

    def partial_fit(
        self,
        X: RowsLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        grow: bool = False,
    ) -> Self:
        """Learn from further examples, in the order given, each visited once.

        Chunks fed in order give the same model, to the bit, whatever their sizes; with
        ``standardize=False`` it is that of one ``fit`` with ``max_iter=1`` and ``shuffle=False``
        over all of them. Sets of `conformalize` have no guarantee for a changed
        model, and end.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
            Finite.
        y : array-like, shape (n_samples,)
            Labels among ``classes``.
        classes : array-like, shape (n_classes,), optional
            Every label, lowest rank first. Required in the first call unless its y has them all;
            later calls may repeat them.
        sample_weight : array-like, shape (n_samples,), optional
            Non-negative factors of the steps of the rows.
        grow : bool, default=False
            Accept rows with further columns, after those of the model, and further ranks, before
            and after its own in ``classes``. It goes on as if all rows before had had 0 there, and
            the ranks had been declared: to the bit for sparse rows, and for others but for the
            rounding of sums. A row that overflows, or an interrupt, does not remove them again.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            On bad input, a label or a number of features that differs from the first call, or a
            change of ``average``: the estimator is then unchanged. If a row overflows the model,
            or the call is interrupted, the rows before are learned, except by a first call, which
            leaves the estimator unfitted.
        """
        before = self.t_ if "_state" in vars(self) else 0
        try:
            return super().partial_fit(X, y, classes, sample_weight=sample_weight, grow=grow)
        finally:
            if "_state" in vars(self) and self.t_ != before:
                self.__dict__.pop("conformal_scores_", None)

    # ---------------------------------------------------------------- predicting

    @property
    @consistent_read
    def costs_(self) -> Floats:  # type: ignore[override]
        """Cost of a prediction (column) for a true rank (row), shape (n_classes, n_classes)."""
        check_declared(self, "loss")
        occurring = np.flatnonzero(self._fitted_state().model["ranks"])
        return expected_costs(self.loss, np.zeros((1, self.ranks_.size)), occurring)

    def _parameters(self) -> tuple[np.ndarray, np.ndarray]:
        model = self._fitted_state().model
        weights, occurring, thresholds, extremes = model.parameters()
        if occurring.size == 0:  # all rows had the weight 0: equal probabilities
            ranks = np.arange(1, model.n_ranks)
            return weights, np.log(ranks / (model.n_ranks - ranks))
        logits = CumulativeLogits(thresholds, 1.0)
        curves = with_absent(logits, extremes, occurring, model.n_ranks)
        return weights, curves.thresholds

    def _curves(self) -> CumulativeLogits:
        return CumulativeLogits(self._parameters()[1], 1.0)

    def _of_scores(self, scores: Floats) -> Floats:
        return self._curves().probabilities(scores)

    def _table(self, rows: Rows) -> Floats:
        """Return the probability of each rank, lowest first."""
        weights, thresholds = self._parameters()  # once: for one row it takes most of the time
        return CumulativeLogits(thresholds, 1.0).probabilities(scores_along(weights, rows))

    def _probabilities(self, X: Any) -> Floats:
        check_fitted(self)
        return self._table(self._more_rows(X))

    def _turning_points(self) -> Floats:
        return self._curves().turning_points()

    def _ranks(self, rows: Rows) -> np.ndarray:
        return cheapest(self._table(rows), self.costs_)

    def _scored(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        table = self._table(rows)
        costs = self.costs_
        return -(table @ costs), cheapest(table, costs)

    # ---------------------------------------------------------------- files

    def _scoring(self, arrays: Mapping[str, NDArray[Any]]) -> Scoring:
        weights, thresholds = self._parameters()
        parts = {"weights": weights, "thresholds": thresholds, "costs": self.costs_}
        parts |= {"moments": np.array([1.0, 0.0, 1.0]), **self._curves().to_arrays()}
        return Scoring("calibrated", parts, {"of": self._form})

    def _describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        facts, arrays = super()._describe()
        if hasattr(self, "conformal_scores_"):
            arrays["conformal_scores"] = self.conformal_scores_
        return facts, arrays

    def _restore(self, spec: ModelSpec) -> None:
        super()._restore(spec)
        if "conformal_scores" in spec.arrays:
            form = {"conformal_scores": Field(("rows",))}
            self.conformal_scores_ = read_fields(spec.arrays, form)["conformal_scores"]
