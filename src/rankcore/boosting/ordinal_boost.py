"""The estimator `OrdinalBoost`: gradient boosting for the tasks of ordered labels.

Parameters, ``fit``, predictions and documentation; the rounds are in `_ordinal_rounds`, their loop
in `_ordinal_training`, the model in `ordinal_model`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from rankcore._core.arguments import ClassWeight, EvalSet, Measures, RowsLike, Seed
from rankcore._core.concurrency import consistent_read
from rankcore._core.declaration import Declaration
from rankcore._core.eval_sets import as_eval_sets
from rankcore._core.fitted import check_fitted
from rankcore._core.labels import as_columns, check_classes, declared_labels, first_ranks
from rankcore._core.model_spec import Field, ModelSpec, SerializableMixin, read_fields
from rankcore._core.monitor import Callback, Monitor, as_callbacks
from rankcore._core.numbers import Floats
from rankcore._core.params import Checked, Constraints
from rankcore._core.scoring import Scoring
from rankcore._core.sources import MemoryRows, RowBlocks, check_alone
from rankcore._ext.rows import Rows
from rankcore.boosting._boosted import (
    begin_state,
    categorical_mask,
    category_labels,
    check_columns,
    continues,
    describe,
    encoded_rows,
    read_blocks,
    restore,
    split_constraints,
    staged_scores,
    tree_rows,
    wrong_settings,
)
from rankcore.boosting._ordinal_rounds import MemoryOrdinalRounds, TrainingRows, first_biases
from rankcore.boosting._ordinal_training import (
    STATISTICS,
    HeldOutTables,
    OrdinalRoundLearner,
    check_measures,
)
from rankcore.boosting._streamed_bins import DiskRows
from rankcore.boosting._training import train_rounds
from rankcore.boosting.categories import Categories
from rankcore.boosting.ordinal_model import MAX_RANKS, Form, OrdinalSum
from rankcore.boosting.params import GROWTH, check_leaves
from rankcore.ordinal.decisions import CheapestRanks, cheapest
from rankcore.ordinal.projecting import margins
from rankcore.ordinal.validation import held_out_labels
from rankcore.ordinal.weights import CLASS_WEIGHT, row_weights
from rankcore.ranking.base import ModelState

__all__ = ["OrdinalBoost"]


# Tasks and links that go together: scores of a vector may cross, which cumulative logits may not.
FORMS = (("vector", "adjacent"), ("shared", "adjacent"), ("shared", "cumulative"))


class OrdinalBoost(CheapestRanks, SerializableMixin, ClassifierMixin, BaseEstimator):
    """Gradient boosting of ordered labels: trees for the tasks of CuSum Rank.

    Task j is whether the rank is at least j. Its score is s_j = g_j - b_j, where g_j is a sum of
    trees of task j and b_j a bias, or s_j = f - b_j, with a sum f that all tasks share.
    Probabilities of ranks are those of adjacent categories, log(p_j / p_{j-1}) = s_j, or of
    cumulative logits.

    Parameters
    ----------
    n_estimators : int, default=100
        Maximum number of rounds.
    learning_rate : float, default=0.1
        Factor of the values of leaves, in (0, 1].
    max_leaf_nodes : int or None, default=31
        Maximum number of leaves of a tree; the leaf with the largest gain is split first. None:
        limited by ``max_depth`` only.
    tasks : {"vector", "shared"}, default="vector"
        Tree of a round. "vector": its leaves have a value for each g_j, and its splits follow
        derivatives along a random direction of the tasks. "shared": its leaves have a value for f,
        which treats ranks as positions on a line; exports of one score and contributions to it
        require this form. With two classes both have one score.
    link : {"adjacent", "cumulative"}, default="adjacent"
        Probabilities of ranks: adjacent categories, or cumulative logits, P(rank >= j) = 1 / (1 +
        exp(-s_j)). "cumulative" requires ``tasks="shared"``, since the scores of a vector may
        cross.
    loss : {"absolute", "zero_one", "squared", "kappa"}, default="absolute"
        Loss whose expectation `predict` minimises: the distance in ranks (minimised by the median),
        mistakes (by the most probable rank), the squared distance, or one minus the quadratic
        weighted kappa of all predictions.
        Trees do not depend on it.
    max_depth : int, optional
        Maximum depth of a tree.
    min_samples_leaf : int or "auto", default="auto"
        Minimum number of rows in a leaf. ``"auto"`` is 20, or a fifth of the rows if they are fewer
        than 100.
    l2_leaf : float, default=1.0
        Added to the sum of second derivatives in a leaf; it shrinks the values of leaves with small
        weight most.
    max_bins : int or None, default=255
        Maximum number of bins of a feature, 2 to 255; neighbouring values share a bin where there
        are more. None: every threshold is tried.
    missing : {"learn", "zero"}, default="learn"
        Missing values are NaN, and with "zero" also 0, stored or not. Each split learns which child
        they take.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Categorical features: columns of a frame of pandas, polars or Arrow with a categorical
        dtype ("from_dtype"), or a mask, numbers or names of columns. Values are integers from 0 to
        65535, with at most ``max_bins`` distinct ones in the training rows; values below 0 are
        missing. Columns of a frame may hold strings. Categories that are not in the training rows
        are missing. Not with ``missing="zero"``.
    monotonic_cst : array-like of int, shape (n_features,), or dict, optional
        Monotone constraints: 1, no P(rank >= j) may decrease with the feature; -1, none may
        increase; 0, no constraint. A dict maps names of features to these.
    subsample : float, default=1.0
        Fraction of the rows used in each round.
    max_features : float, default=1.0
        Fraction of the features, in (0, 1], that are drawn for the split of each node. A node that
        none of them splits stays a leaf; the root then tries the others.
    class_weight : {"balanced"} or dict, optional
        Weight of the rows of each label; "balanced" is n_samples / (n_classes * rows of the label).
    early_stopping_rounds : int, optional
        Stop after this many consecutive rounds that do not improve ``eval_metric`` on the
        ``eval_set``, and keep the rounds up to the best one.
    eval_metric : str, callable or list of them, default="ranked_probability_score"
        Measures on the ``eval_set`` after each round: "ranked_probability_score" (or "rps"),
        "brier_score", "log_loss", those of `PRank`, or functions of true and predicted labels
        (higher is better). The first of a list is used for early stopping.
    warm_start : bool, default=False
        Whether ``fit`` continues the current model, up to ``n_estimators`` rounds in total.
    n_jobs : int, optional
        Number of threads, which share the features. None: 1, -1: one per processor. The model does
        not depend on it.
    random_state : int, RandomState instance, Generator or None, default=None
        Seed of the draws of rows, features and, with ``tasks="vector"``, directions. If None, and
        all rows and features are used, the draws are the same in each fit.
    verbose : int, default=0
        Print one line every ``verbose`` rounds; 0 prints none.
    classes : array-like, shape (n_classes,), optional
        All labels, lowest rank first. Required for strings, unless y is an ordered categorical.

    Attributes
    ----------
    biases_ : ndarray of float64, shape (n_classes - 1,)
        Bias b_j of each rank except the lowest.
    feature_importances_ : ndarray of float64, shape (n_features,)
        Fraction of each feature in the sum of the gains of all splits.
    history_ : dict of lists
        Per round: ``log_loss``, the mean loss on the training rows; and, with an ``eval_set``, each
        ``eval_metric``, as ``valid_ranked_probability_score``.
    costs_ : ndarray of float64, shape (n_classes, n_classes)
        Cost of a prediction (column) for a true rank (row).
    conformal_scores_ : ndarray of float64, shape (n,)
        Calibration scores, only after `conformalize`.
    classes_ : ndarray, shape (n_classes,)
        Labels in ascending order, as the columns of results.
    ranks_ : ndarray, shape (n_classes,)
        Labels, lowest rank first.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    is_categorical_ : ndarray of bool, shape (n_features_in_,), or None
        Mask of categorical features; None if there are none.
    categories_ : dict of int to list
        Categories of each categorical DataFrame column, in the order of their codes from 0.
    n_iter_ : int
        Number of rounds, including those after the best one.
    best_iteration_ : int
        Number, from 1, of the round with the best value of the first ``eval_metric``; only with an
        ``eval_set``. With ``early_stopping_rounds`` the model ends at this round; otherwise it
        keeps all rounds.

    Notes
    -----
    The loss is minus the log-likelihood, convex in all scores. Let A be minus its first derivative
    with respect to a score, and H the second derivative, summed over the rows of a leaf. The value
    of the leaf is A / (H + l2_leaf), and splits maximise the sum of A^2 / (H + l2_leaf). For the
    choice of splits only, A and H of each row are rounded to 32-bit integers, so that sums are
    exact and trees do not depend on the order of rows or on ``n_jobs``. No leaf has H below .001.

    With "vector", A and H for splits are derivatives along the direction, whose components are
    normally distributed. The values of a leaf are the Newton step with the matrix of second
    derivatives of its rows and a normal prior of precision l2_leaf for the mean over tasks, and 5
    l2_leaf for differences from the mean.

    Initial biases give the fractions of the ranks. With "shared" tasks of three or more ranks,
    biases are those of maximum likelihood after each round, with a weak prior around the initial
    ones. Ranks of ``classes`` without rows of positive weight have a probability of about 1e-7, and
    the others are learned without them; "shared" adjacent categories keep their places on the line.

    With ``monotonic_cst`` every s_j is exactly monotone; probabilities are monotone up to rounding.

    A round costs one pass over the rows, O(n_samples * n_classes), with "vector" O(n_samples *
    n_classes^2), and at most O(stored values * depth / 2) for each tree. Memory beyond X: 2 bytes
    per value of dense X and 9 to 10 of sparse X, 24 per row and score, 30 per row, and 8 for each
    bin of every leaf.

    Plain form: ``tests/reference/ordinal_boosting.py``, ``probabilities``, ``loss``,
    ``best_gain`` and ``newton_values``.

    References
    ----------
    .. [1] A. Agresti. "Analysis of Ordinal Categorical Data". Wiley, 2010.
    .. [2] J. H. Friedman. "Greedy Function Approximation: A Gradient Boosting Machine". Annals of
       Statistics 29, 2001.

    Examples
    --------
    >>> import numpy as np, rankcore as rc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> y = np.digitize(X[:, 0] * np.sign(X[:, 1]) + 0.3 * rng.normal(size=600), [-1, 0, 1])
    >>> model = rc.OrdinalBoost(30).fit(X[:500], y[:500])
    >>> bool(model.score(X[500:], y[500:]) > -0.4)  # minus the mean distance in ranks
    True
    >>> model.predict_proba(X[500:]).shape
    (100, 4)
    """

    _declaration: ClassVar = Declaration(
        guide="ordinal_boost",
        learns_from="labels",
        weights="loss",
        scale_invariant=True,
        instances=lambda: [
            OrdinalBoost(3, random_state=0),
            OrdinalBoost(3, tasks="shared", random_state=0),
        ],
    )

    _constraints: ClassVar[Constraints] = {
        **GROWTH,
        "class_weight": CLASS_WEIGHT,
        "eval_metric": Checked(check_measures, "names of measures or functions"),
    }
    best_iteration_: int
    _state: ModelState
    _categories: Categories | None = None
    _statistics = STATISTICS
    # scikit-learn's metadata routing passes these on.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"eval_X": True, "eval_y": True}

    def __init__(
        self,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_leaf_nodes: int | None = 31,
        tasks: Literal["vector", "shared"] = "vector",
        link: Literal["adjacent", "cumulative"] = "adjacent",
        loss: Literal["absolute", "zero_one", "squared", "kappa"] = "absolute",
        max_depth: int | None = None,
        min_samples_leaf: Literal["auto"] | int = "auto",
        l2_leaf: float = 1.0,
        max_bins: int | None = 255,
        missing: Literal["learn", "zero"] = "learn",
        categorical_features: Literal["from_dtype"] | ArrayLike | None = "from_dtype",
        monotonic_cst: ArrayLike | Mapping[str, int] | None = None,
        subsample: float = 1.0,
        max_features: float = 1.0,
        class_weight: ClassWeight | None = None,
        early_stopping_rounds: int | None = None,
        eval_metric: Measures = "ranked_probability_score",
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Seed | None = None,
        verbose: int = 0,
        classes: ArrayLike | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.tasks = tasks
        self.link = link
        self.loss = loss
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_leaf = l2_leaf
        self.max_bins = max_bins
        self.missing = missing
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.subsample = subsample
        self.max_features = max_features
        self.class_weight = class_weight
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.classes = classes

    def _check_together(self) -> None:
        check_leaves(self)
        if (self.tasks, self.link) not in FORMS:
            raise ValueError(
                f"link='cumulative' requires tasks='shared'; got tasks={self.tasks!r}, whose "
                "scores may cross"
            )

    # ---------------------------------------------------------------- learning
    def fit(
        self,
        X: RowsLike | RowBlocks,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        eval_set: EvalSet | None = None,
        eval_X: RowsLike | Sequence[RowsLike] | None = None,
        eval_y: ArrayLike | Sequence[ArrayLike] | None = None,
        callbacks: Iterable[Callback] | None = None,
    ) -> Self:
        """Fit a new model or, with ``warm_start``, continue the current one.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
            NaN is missing. CSR and C-ordered float32 or float64 are not copied: do not change them
            before the call returns. Or rows on disk, from `rankcore.datasets.open_rows`, which have
            their own labels. Those of a row cache are binned, and need not fit into memory.
        y : array-like, shape (n_samples,)
            Ordered labels of any type; numbers are in their own order.
        classes : array-like, shape (n_classes,), optional
            Every label, lowest rank first; by default the parameter ``classes``. Strings require
            one of the two, or an ordered categorical, whose order scikit-learn's tools may drop.
        sample_weight : array-like, shape (n_samples,), optional
            Non-negative weights of the rows: factors of their loss, as they are. A mean below 0.01
            is warned of: ``l2_leaf`` then outweighs the loss.
        eval_set : (X, y), or a list of such pairs, optional
            Held-out rows, measured by ``eval_metric`` after each round.
        eval_X, eval_y : array-like, or lists of them, optional
            The same as two arguments; a pipeline can transform the first
            (``transform_input=["eval_X"]``).
        callbacks : iterable of callables, optional
            Called after each round with a `rankcore.callbacks.Iteration`; the fit ends
            after one returns True.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            On bad input or parameters. A failed or interrupted fit leaves the estimator unchanged.
        """
        self._check_params()
        listed = as_callbacks(callbacks)
        source, categories = self._source(X, y, sample_weight)
        fitted, training = self._begin(source, categories, classes)
        sets = as_eval_sets(eval_set, eval_X, eval_y, {})
        held_out = held_out_labels(
            sets, fitted._more_rows, fitted.ranks_, self.eval_metric, HeldOutTables
        )
        monitor = Monitor(fitted, held_out, listed)
        splits = split_constraints(fitted, source.given)
        made = MemoryOrdinalRounds(self, training, fitted._state.model, splits)
        with closing(made) as rounds:
            learner = OrdinalRoundLearner(fitted, rounds, training.occurring, bool(listed))
            train_rounds(learner, source, monitor)
            fitted.costs_ = learner.costs()
        self._replace_with(fitted)
        return self

    def _source(self, X: Any, y: Any, sample_weight: Any) -> tuple[MemoryRows, Categories | None]:
        """Return the rows of a fit, and their categorical features."""
        rows_of_fit = X
        if isinstance(X, RowBlocks):
            check_alone(y=y, sample_weight=sample_weight)
            X, y, _ = read_blocks(self, X)
            if isinstance(X, DiskRows):
                return MemoryRows(rows_of_fit, X, y), None
        rows, categories = tree_rows(self, X)
        return MemoryRows(rows_of_fit, rows, y, sample_weight=sample_weight), categories

    def _begin(
        self, source: MemoryRows, categories: Categories | None, classes: ArrayLike | None
    ) -> tuple[Self, TrainingRows]:
        """Return a fitted copy, new or to continue, and the rows that it learns from."""
        window, rows = source.window, source.window.rows
        ranks, labels = first_ranks(
            window.labels, rows.n_rows, declared_labels(self, classes), type(self).__name__
        )
        weights = row_weights(
            window.sample_weight,
            self.class_weight,
            ranks,
            labels,
            all_rows=True,
            meaning="factors",
        )
        state = self._begin_state(rows.n_features, ranks, labels, weights)
        fitted = self._fitted_copy(source.given, rows.n_features, state, ranks_=labels)
        fitted._categories = categories
        check_columns(self, fitted)
        return fitted, TrainingRows.of(rows, ranks, weights, state.model.form)

    def _begin_state(
        self,
        n_features: int,
        ranks: NDArray[np.int32],
        labels: NDArray[Any],
        weights: Floats | None,
    ) -> ModelState:
        """Return a state without rounds, or the state to continue."""
        if labels.size > MAX_RANKS:
            raise ValueError(f"y has {labels.size} classes; at most {MAX_RANKS} are supported")
        form = Form(int(labels.size), self.tasks, self.link)
        zero_missing = self.missing == "zero"
        settings = {"zero_missing": zero_missing, "tasks": self.tasks, "link": self.link}
        if continues(self) and not np.array_equal(self.ranks_, labels):
            raise ValueError(
                f"warm_start requires the labels {self.ranks_.tolist()} of the model that it "
                f"continues; got {labels.tolist()}: pass them as classes="
            )

        def new() -> OrdinalSum:
            biases = first_biases(ranks, weights, form)
            return OrdinalSum.empty(form, n_features, zero_missing, biases)

        return begin_state(self, settings, n_features, int(self.n_estimators), new)

    # ---------------------------------------------------------------- files

    def _describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        facts, arrays = describe(self, STATISTICS)
        arrays |= {"classes": self.ranks_, "costs": self.costs_}
        if hasattr(self, "conformal_scores_"):
            arrays["conformal_scores"] = self.conformal_scores_
        return facts, arrays

    def _scoring(self, arrays: Mapping[str, NDArray[Any]]) -> Scoring:
        return self._state.model.scoring(arrays)

    def _restore(self, spec: ModelSpec) -> None:
        restore(self, spec, STATISTICS, self._restored_model)

    def _restored_model(self, spec: ModelSpec, n_features: int, zero_missing: bool) -> OrdinalSum:
        arrays, settings = spec.arrays, spec.facts["settings"]
        tasks, link = settings.get("tasks"), settings.get("link")
        classes = check_classes(arrays["classes"])
        if (tasks, link) not in FORMS or len(settings) != 3 or classes.size > MAX_RANKS:
            raise wrong_settings(self, settings)
        n = classes.size
        fields = {"costs": Field((n, n)), "conformal_scores": Field(("rows",))}
        checked = read_fields(arrays, {name: fields[name] for name in fields if name in arrays})
        self.ranks_, self.costs_ = classes, checked["costs"]
        if "conformal_scores" in checked:
            self.conformal_scores_ = checked["conformal_scores"]
        return OrdinalSum.from_arrays(arrays, Form(n, tasks, link), n_features, zero_missing)

    def _fit_summary(self) -> dict[str, Any]:
        log = self._state.log
        return {
            "classes": self.ranks_.tolist(),
            "rounds": len(log),
            "log_loss": log[-1][0] if log else None,
        }

    def _summary(self) -> dict[str, Any]:
        n_trees = len(self._state.model.together())
        return {"classes": self.ranks_.tolist(), "trees": n_trees, "rounds": self.n_iter_}

    # ---------------------------------------------------------------- attributes

    @property
    def biases_(self) -> Floats:
        """Bias b_j of each rank but the lowest."""
        return self._fitted_state().model.biases[-1].copy()

    @property
    def is_categorical_(self) -> NDArray[np.bool_] | None:
        """Mask of categorical features, shape (n_features,); None if there are none."""
        return categorical_mask(self)

    @property
    def categories_(self) -> dict[int, list[Any]]:
        """Categories of each data frame column, in the order of their codes."""
        return category_labels(self)

    @property
    def feature_importances_(self) -> Floats:
        """Fraction of each feature in the sum of the gains of all splits."""
        return self._fitted_state().model.importances()

    @property
    def n_iter_(self) -> int:
        """Number of rounds."""
        return len(self._fitted_state().log)

    @property
    def history_(self) -> dict[str, list[float]]:
        """Mean loss after each round, and measures of held-out rows."""
        return self._fitted_state().history(STATISTICS)

    # ---------------------------------------------------------------- predicting

    def _as_rows(self, X: Any) -> Rows:
        return encoded_rows(self, X)

    def _scores(self, X: Any) -> Floats:
        """Score rows by sums of trees; shape (n_scores, n_rows)."""
        return self._state.model.score(self._more_rows(X))

    @consistent_read
    def _probabilities(self, X: Any) -> Floats:
        check_fitted(self)
        model: OrdinalSum = self._state.model
        return model.probabilities(self._scores(X))

    def decision_function(self, X: RowsLike) -> Floats:
        """Compute how far the expected loss of each label is below that of the best other label.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray of float64, shape (n_samples, n_classes), or (n_samples,) for two classes
            Above 0 for the predicted label, at most 0 for all others, so that `predict` is their
            argmax. Columns are in the order of ``classes_``; for two classes there is only the
            value of ``classes_[1]``, above 0 if it is predicted.
        """
        table = self._probabilities(X)
        scores = -(table @ self.costs_)
        ranks: NDArray[Any] = cheapest(table, self.costs_)
        return margins(scores, ranks, np.argsort(self.ranks_))

    def staged_predict(self, X: RowsLike) -> Iterator[NDArray[Any]]:
        """Yield the predicted labels after each round.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Yields
        ------
        ndarray, shape (n_samples,)
            The last is equal to `predict`. With ``loss="kappa"`` the costs are those of the last
            round.
        """
        for n, scores in staged_scores(self, X):
            table = self._state.model.probabilities(scores, n)
            yield self.ranks_[cheapest(table, self.costs_)]

    def staged_predict_proba(self, X: RowsLike) -> Iterator[Floats]:
        """Yield the probability of each rank after each round.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Yields
        ------
        ndarray of float64, shape (n_samples, n_classes)
            Columns in the order of ``classes_``. The last is equal to `predict_proba`.
        """
        for n, scores in staged_scores(self, X):
            yield as_columns(self.ranks_, self._state.model.probabilities(scores, n))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
