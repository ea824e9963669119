"""Rules in Python: online learners of ordered labels with a user-defined update."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.arguments import ClassWeight, Measures, Seed
from rankcore._core.numbers import Floats, check_scores
from rankcore._core.params import Constraints
from rankcore._core.scoring import Scoring, no_scoring
from rankcore._ext.rows import Rows
from rankcore.ordinal._rule_loop import RuleLearner, RuleModel, row_of
from rankcore.ordinal.projecting import (
    ascending_thresholds,
    direction,
    project,
    projections,
    ranks_along,
    resolved_scale,
    scores_by_thresholds,
)
from rankcore.ordinal.scale import OF_THRESHOLDS, SCALE

__all__ = ["PythonRule", "PythonScoreRule"]


class PythonRule(RuleLearner):
    """Base class of user-defined rules in Python with one direction and thresholds.

    A subclass defines ``update``, which learns one row; passes, held-out rows, early stopping,
    averages, weights, callbacks, interrupts and the scikit-learn interface are those of `PRank`.
    Rules in Python are slow; they are meant for testing a variant before it is compiled.

    Parameters
    ----------
    threshold_scale : "auto" or float, default="auto"
        Value of the equivalent constant feature of the thresholds, which are its square times
        ``steps``. "auto" is twice the root mean square length of the rows of the first call.
    average : bool, default=True
        Predict with the average of the parameters after every example instead of the last ones.
        Usually much better, at about 1.5 times the training cost.
    max_iter : int, default=10
        Passes over the data in ``fit``.
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
        same total.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the shuffling. The same seed gives the same model on every platform.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.
    classes : array-like, shape (n_classes,), optional
        All labels, lowest rank first; required for strings. By default the order of an ordered
        categorical, or the distinct numbers of y in ascending order.

    Attributes
    ----------
    thresholds_ : ndarray of float64, shape (n_classes - 1,)
        Ascending (a copy). A rule may leave them in any order, which does not change the number of
        thresholds that a projection reaches.
    coef_ : ndarray of float64, shape (n_features,)
        The direction (a copy).
    threshold_scale_ : float
        The resolved ``threshold_scale``: the given value, or the choice of "auto".
    parameters_ : dict of str to ndarray
        Copies of all arrays of ``start``, as used in predictions.
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

    See Also
    --------
    PythonScoreRule : Rules with a score for each rank.

    Notes
    -----
    Parameters of a subclass are those of its ``__init__``, which passes all others on: ``def
    __init__(self, margin=1.0, **params): super().__init__(**params); self.margin = margin``.

    ``update`` runs on a copy of the estimator that has the arrays of `start` as attributes. They
    can be changed in place or replaced by arrays of the same shape; setting any other attribute
    raises AttributeError, as a failed fit could not restore it.

    ``contributions``, `rankcore.explain`, `CalibratedOrdinal` and `rankcore.export` work as for
    `PRank`. `rankcore.save` raises an error, as a model file cannot hold code. Use joblib or
    pickle, which require the module of the class. The guide ``docs/own_rule.md`` shows how to
    convert a rule to a Cython kernel.

    Plain form: ``tests/reference/margin_prank.py``, ``margin_prank``.

    Examples
    --------
    PRank with a margin:

    >>> import numpy as np
    >>> import rankcore as rc
    >>> class MarginPRank(rc.PythonRule):
    ...     def __init__(self, margin=1.0, **params):
    ...         super().__init__(**params)
    ...         self.margin = margin
    ...
    ...     def update(self, x, rank):
    ...         sides = np.where(np.arange(self.steps.size) < rank, 1, -1)
    ...         moves = sides * (sides * (x @ self.weights - self.thresholds) <= self.margin)
    ...         self.weights += moves.sum() * x
    ...         self.steps -= moves
    >>> X = [[1, 0], [0, 1], [1, 1], [2, 0]]
    >>> model = MarginPRank(margin=0.5, random_state=0).fit(X, [3, 1, 2, 3])
    >>> model.predict(X)
    array([3, 1, 2, 3])
    """

    _checked = (*RuleLearner._checked, "threshold_scale")
    _built_in: ClassVar = OF_THRESHOLDS
    _constraints: ClassVar[Constraints] = {"threshold_scale": SCALE}
    _form = "thresholds"
    _one_direction = True

    coef_ = direction
    thresholds_ = ascending_thresholds
    threshold_scale_ = resolved_scale
    project = project
    _projected = projections
    _ranks = ranks_along
    _scored = scores_by_thresholds

    def __init__(
        self,
        threshold_scale: Literal["auto"] | float = "auto",
        *,
        average: bool = True,
        max_iter: int = 10,
        shuffle: bool = True,
        tol: float | None = None,
        early_stopping_rounds: int | None = None,
        eval_metric: Measures = "rank_loss",
        class_weight: ClassWeight | None = None,
        random_state: Seed | None = None,
        verbose: int = 0,
        classes: ArrayLike | None = None,
    ) -> None:
        self.threshold_scale = threshold_scale
        self.average = average
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.tol = tol
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.classes = classes

    def start(self, n_features: int, n_ranks: int) -> dict[str, NDArray[Any]]:
        """Create the arrays of a new model.

        A subclass may add arrays, or make ``steps`` float64 for steps that are not integers.

        Parameters
        ----------
        n_features, n_ranks : int

        Returns
        -------
        dict of str to ndarray of float64 or int64
            ``weights``, shape (n_features,), float64, and ``steps``, shape (n_ranks - 1,), int64:
            integer steps keep the thresholds in order.
        """
        return {"weights": np.zeros(n_features), "steps": np.zeros(n_ranks - 1, dtype=np.int64)}

    @property
    def thresholds(self) -> Floats:
        """In ``update``: the thresholds, ``scale`` times ``steps``. Change ``steps`` instead."""
        return np.asarray(self.scale * self.steps, dtype=np.float64)

    def rank_of(self, x: Floats) -> int:
        """Return a row's rank by the current arrays, from 0, in ``update``; -1 if it overflows.

        Parameters
        ----------
        x : ndarray of float64, shape (n_features,)

        Returns
        -------
        int
            The number of thresholds that its projection reaches.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            score = x @ self.weights
        return int(np.count_nonzero(score >= self.thresholds)) if np.isfinite(score) else -1

    def _new_model(self, n_features: int, n_ranks: int) -> RuleModel:
        model = super()._new_model(n_features, n_ranks)
        for name, shape in (("weights", (n_features,)), ("steps", (n_ranks - 1,))):
            array = model.arrays.get(name)
            if array is None or array.shape != shape:
                raise ValueError(
                    f"start must return an array {name!r} of shape {shape}; got "
                    f"{None if array is None else array.shape}"
                )
        return model

    def _parameters(self) -> tuple[np.ndarray, np.ndarray]:
        means = self._means()
        # The order does not change the number of thresholds reached; a search requires ascending
        # ones.
        scale = float(self._fitted_state().model["scale"][0])
        return means["weights"], np.sort(scale * means["steps"])


class PythonScoreRule(RuleLearner):
    """Base class of user-defined rules in Python with a score for each rank.

    A subclass defines ``start``, which creates the arrays; ``scores``, which scores a row; and
    ``update``, which learns one. Everything else is as in `PythonRule`.

    Parameters
    ----------
    average : bool, default=True
        Predict with the average of the parameters after every example instead of the last ones.
        Usually much better, at about 1.5 times the training cost.
    max_iter : int, default=10
        Passes over the data in ``fit``.
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
        same total.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the shuffling. The same seed gives the same model on every platform.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.
    classes : array-like, shape (n_classes,), optional
        All labels, lowest rank first; required for strings. By default the order of an ordered
        categorical, or the distinct numbers of y in ascending order.

    Attributes
    ----------
    parameters_ : dict of str to ndarray
        Copies of all arrays of ``start``, as used in predictions.
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

    See Also
    --------
    PythonRule : Rules with one direction and thresholds, which require only ``update``.

    Notes
    -----
    The rank of maximum score is predicted, the lowest of ties. ``contributions``, `rankcore.export`
    and `rankcore.save` raise an error, because rows are scored by Python code.

    Plain form: ``tests/reference/rivals.py``, ``multiclass``.

    Examples
    --------
    The multiclass perceptron:

    >>> import numpy as np
    >>> import rankcore as rc
    >>> class Perceptron(rc.PythonScoreRule):
    ...     def start(self, n_features, n_ranks):
    ...         return {"W": np.zeros((n_ranks, n_features))}
    ...
    ...     def scores(self, x):
    ...         return self.W @ x
    ...
    ...     def update(self, x, rank):
    ...         predicted = self.rank_of(x)
    ...         self.W[rank] += x
    ...         self.W[predicted] -= x
    >>> X = [[1, 0], [0, 1], [1, 1]]
    >>> Perceptron(random_state=0).fit(X, [3, 1, 2]).predict(X)
    array([3, 1, 2])
    """

    def __init__(
        self,
        *,
        average: bool = True,
        max_iter: int = 10,
        shuffle: bool = True,
        tol: float | None = None,
        early_stopping_rounds: int | None = None,
        eval_metric: Measures = "rank_loss",
        class_weight: ClassWeight | None = None,
        random_state: Seed | None = None,
        verbose: int = 0,
        classes: ArrayLike | None = None,
    ) -> None:
        self.average = average
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.tol = tol
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.classes = classes

    @abstractmethod
    def scores(self, x: Floats) -> ArrayLike:
        """Compute the score of each rank for a row, by the current arrays.

        Parameters
        ----------
        x : ndarray of float64, shape (n_features,)

        Returns
        -------
        array-like, shape (n_ranks,)
        """

    def rank_of(self, x: Floats) -> int:
        """Return a row's rank by the current arrays, from 0, in ``update``; -1 if it overflows.

        Parameters
        ----------
        x : ndarray of float64, shape (n_features,)

        Returns
        -------
        int
            The lowest rank of maximum score.
        """
        scores = self._checked_scores(x)
        return int(scores.argmax()) if np.isfinite(scores).all() else -1

    def _checked_scores(self, x: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.asarray(self.scores(x), dtype=np.float64)
        if scores.shape != (self.n_ranks,):
            raise ValueError(
                f"scores must return one number per rank, shape {(self.n_ranks,)}; got shape "
                f"{scores.shape}"
            )
        return scores

    def _scoring(self, arrays: Mapping[str, np.ndarray]) -> Scoring:
        return no_scoring(f"Python code scores the rows of {type(self).__name__}")

    def _scored(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        rule = self._working_copy(self._fitted_state().model)
        rule.__dict__ |= self._means()
        every = [rule._checked_scores(row_of(rows, row)) for row in range(rows.n_rows)]
        scores = check_scores(np.array(every))
        return scores, scores.argmax(axis=1)
