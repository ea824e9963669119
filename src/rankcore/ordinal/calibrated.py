"""Probabilities of ranks, and sets of ranks with guaranteed coverage, from any ordinal learner."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from rankcore._core.arguments import Folds, RowsLike, Seed
from rankcore._core.concurrency import replace_state
from rankcore._core.contributions import Contributions
from rankcore._core.declaration import Declaration
from rankcore._core.labels import as_labels, check_classes, declared_labels, encode, ranks_among
from rankcore._core.model_spec import Field, ModelSpec, SerializableMixin, read_fields
from rankcore._core.numbers import Floats, as_weights
from rankcore._core.preprocessing import is_frozen, split_pipeline, transformed, unwrap_frozen
from rankcore._core.scoring import CALIBRATION, Scoring, no_scoring
from rankcore._core.warning import warns_once
from rankcore._ext.rows import Rows
from rankcore.ordinal.base import OnlineOrdinalClassifier
from rankcore.ordinal.curves import (
    expected_costs,
    fit_cumulative,
    fit_isotonic,
    restored_curves,
)
from rankcore.ordinal.cusum import CuSumRank
from rankcore.ordinal.decisions import CheapestRanks
from rankcore.ordinal.held_out import (
    HeldOutFits,
    HeldOutScores,
    accepts_nan,
    last_step,
    latent_scores,
    parts_of,
    sliceable,
)
from rankcore.ordinal.oap import OAPVoting
from rankcore.ordinal.prank import PRank
from rankcore.ordinal.weights import row_weights


class CalibratedOrdinal(
    CheapestRanks,
    SerializableMixin,
    ClassifierMixin,
    BaseEstimator,
):
    """Probabilities of ranks, fitted to held-out latent scores of an ordinal learner.

    Copies of the learner are fitted to all folds but one. Probabilities are fitted to the latent
    scores (`project`) of the held-out folds, each standardised by the scores of its training rows.
    Then the learner is fitted to all rows.

    Parameters
    ----------
    estimator : ordinal learner, or a pipeline that ends in one, optional
        Copied, not changed. None: ``PRank()``. A fitted learner in a
        `sklearn.frozen.FrozenEstimator` is not fitted again; the rows given to `fit` must then not
        be those it was fitted to.
    method : {"cumulative", "isotonic"}, default="cumulative"
        Cumulative logits, ``P(rank <= r) = 1 / (1 + exp(slope * score - threshold[r]))``, or the
        mean of these and one isotonic regression for each threshold, with a weight of the logits of
        80 rows per rank.
    cv : int, splitter or iterable of splits, default=5
        Cross-validation folds; for an int, stratified by label and shuffled. Splitters get the
        ranks of the labels, 0 for the lowest.
    loss : {"absolute", "zero_one", "squared", "kappa"}, default="absolute"
        Loss whose expectation `predict` minimises: the distance in ranks (minimised by the median),
        mistakes (by the most probable rank), the squared distance, or one minus the quadratic
        weighted kappa of all predictions.
    random_state : int, Generator, RandomState or None, default=0
        Seed of the folds.
    classes : array-like, shape (n_classes,), optional
        All labels, lowest rank first; by default the ``classes`` of the estimator.

    Attributes
    ----------
    estimator_ : estimator
        Learner fitted to all rows.
    curves_ : object
        Probabilities as a function of the standardised score.
    center_, scale_ : float
        Mean and standard deviation of the scores of the training rows of ``estimator_``.
    n_features_in_ : int
        Number of features, unless X is a list of texts.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    costs_ : ndarray of float64, shape (n_classes, n_classes)
        Cost of a prediction (column) for a true rank (row). That of a rank without rows is so high
        that it is not predicted.
    conformal_scores_ : ndarray of float64, shape (n,)
        Calibration scores, only after `conformalize`.
    classes_ : ndarray, shape (n_classes,)
        Labels in ascending order, as the columns of results.
    ranks_ : ndarray, shape (n_classes,)
        Labels, lowest rank first.

    Notes
    -----
    Each row of `predict_proba` adds up to 1, and the probability of at least a given rank increases
    with the score. With cumulative logits whose thresholds have similar distances, probabilities
    decrease on both sides of the most probable rank; with very narrow ranks, or isotonic curves,
    there may be several local maxima. Where two isotonic curves meet, a probability may be small,
    but not 0.

    Costs ``cv`` + 1 fits of the learner, and an optimisation over n_classes numbers (O(n) per step)
    or n_classes - 1 sorts. Memory: a copy of the training rows of a fold; none with a
    ``FrozenEstimator``, which is therefore suitable for rows that do not fit into memory twice.

    Ranks of ``classes`` without rows of positive weight have a probability of about 1e-7, and those
    of the other ranks are as without them.

    References
    ----------
    .. [1] P. McCullagh. "Regression Models for Ordinal Data". JRSS B 42, 1980.
    .. [2] B. Zadrozny, C. Elkan. "Transforming Classifier Scores into Accurate Multiclass
       Probability Estimates". KDD 2002.
    .. [3] V. Vovk, A. Gammerman, G. Shafer. Algorithmic Learning in a Random World. 2005.

    Examples
    --------
    >>> import numpy as np, rankcore as rc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> y = np.clip(np.round(X.sum(axis=1) + rng.normal(size=600)) + 3, 1, 5).astype(int)
    >>> model = rc.CalibratedOrdinal(rc.PRank(random_state=0)).fit(X[:400], y[:400])
    >>> model.predict_proba(X[400:402]).round(2)
    array([[0.05, 0.17, 0.32, 0.33, 0.13],
           [0.95, 0.04, 0.01, 0.  , 0.  ]])
    >>> model.conformalize(X[400:500], y[400:500]).predict_set(X[500:503], coverage=0.9)
    array([[1, 4],
           [1, 2],
           [2, 5]])
    """

    _declaration: ClassVar = Declaration(
        guide="probabilities",
        learns_from="labels",
        weights="loss",
        instances=lambda: [
            CalibratedOrdinal(CuSumRank(random_state=0)),
            CalibratedOrdinal(OAPVoting(5, random_state=0), method="isotonic", loss="kappa"),
        ],
    )

    # scikit-learn's metadata routing passes these on.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"groups": True}

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        *,
        method: Literal["cumulative", "isotonic"] = "cumulative",
        cv: Folds = 5,
        loss: Literal["absolute", "zero_one", "squared", "kappa"] = "absolute",
        random_state: Seed | None = 0,
        classes: ArrayLike | None = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.loss = loss
        self.random_state = random_state
        self.classes = classes

    @warns_once
    def fit(
        self,
        X: RowsLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the learner, and probabilities to its scores on held-out rows.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
            Or another input of a pipeline, such as a list of texts or a data frame.
        y : array-like, shape (n_samples,)
            Ordered labels.
        classes : array-like, shape (n_classes,), optional
            Every label, lowest rank first; by default the parameter ``classes``. Strings require
            one of the two, or an ordered categorical, whose order scikit-learn's tools may drop.
        sample_weight : array-like, shape (n_samples,), optional
            Weights of the rows, for the learner and for the probabilities, whose loss they
            multiply.
        groups : array-like, shape (n_samples,), optional
            Group of each row, for example its user or author. Passed to ``cv``, such as a
            `sklearn.model_selection.GroupKFold`; for an int, the rows of a group are in one fold.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            On bad input or parameters, or for a learner without `project` or `decision_function`. A
            failed fit leaves the estimator unchanged.
        """
        self._check_params()
        estimator = PRank() if self.estimator is None else self.estimator
        sliced, n_rows = sliceable(X, estimator)
        labels, declared_order = as_labels(y, n_rows)
        declared = self._declared_within(estimator, classes)
        ordered_labels = ranks_among(labels, declared_order, declared, type(self).__name__)
        ranks = encode(labels, ordered_labels)
        weights = as_weights(sample_weight, "sample_weight", {"row": labels.size})
        weights_by_row = row_weights(
            weights, None, ranks, ordered_labels, all_rows=True, meaning="factors"
        )
        fits = HeldOutFits(estimator, sliced, labels, ordered_labels, weights)
        if is_frozen(estimator):
            held_out = fits.frozen()
        else:
            parts = parts_of(self.cv, self.random_state, X, ranks, groups)
            held_out = fits.cross_validated(parts)
        named = BaseEstimator()
        validate_data(named, X, skip_check_array=True, reset=True)
        held_out_weights = None if weights_by_row is None else weights_by_row[held_out.rows]
        self._become_fitted(
            vars(named), ordered_labels, held_out, ranks[held_out.rows], held_out_weights
        )
        return self

    def _become_fitted(
        self,
        named: dict[str, Any],
        ordered_labels: NDArray[Any],
        held_out: HeldOutScores,
        ranks: NDArray[np.int32],
        weights: Floats | None,
    ) -> None:
        """Fit probabilities to scores of rows with these ranks, and replace the model at once.

        An interrupted fit leaves the old or the new model. ``named`` describes the features.
        """
        fit_curves = fit_cumulative if self.method == "cumulative" else fit_isotonic
        curves = fit_curves(held_out.scores, ranks, ordered_labels.size, weights)
        seen = ranks if weights is None else ranks[weights > 0]
        costs = expected_costs(self.loss, curves.probabilities(held_out.scores), seen)
        kept = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        attributes = kept | {
            **named,
            "ranks_": ordered_labels,
            "estimator_": held_out.fitted,
            "curves_": curves,
            "center_": held_out.center,
            "scale_": held_out.scale,
            "costs_": costs,
        }
        replace_state(self, attributes)

    def _fit_scores(
        self, scores: Floats, ranks: NDArray[np.int32], center: float, scale: float
    ) -> None:
        """Fit probabilities to scores of rows with these ranks, for the learner as it is.

        Scores are standardised: those of `project` minus ``center``, divided by ``scale``.
        """
        names = ("n_features_in_", "feature_names_in_")
        learner = self.estimator_
        named = {name: getattr(learner, name) for name in names if hasattr(learner, name)}
        held_out = HeldOutScores(learner, center, scale, np.arange(scores.size), scores)
        self._become_fitted(named, self.ranks_, held_out, ranks, None)

    def _declared_within(self, estimator: Any, argument: Any) -> NDArray[Any] | None:
        """Return the labels declared to this estimator, or else to the inner one."""
        declared = declared_labels(self, argument)
        inside = last_step(unwrap_frozen(estimator))
        if declared is None and isinstance(inside, OnlineOrdinalClassifier | CheapestRanks):
            declared = getattr(inside, "ranks_", None) if is_frozen(estimator) else None
            declared = declared_labels(inside) if declared is None else declared
        return declared

    # ---------------------------------------------------------------- predicting

    def _of_scores(self, scores: Floats) -> Floats:
        return self.curves_.probabilities((scores - self.center_) / self.scale_)

    def _turning_points(self) -> Floats:
        return self.curves_.turning_points() * self.scale_ + self.center_

    def project(self, X: RowsLike) -> Floats:
        """Compute the latent score of the estimator, from which probabilities follow.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray of float64, shape (n_samples,)
            Result of the estimator's `project`; without it, the mean rank under the scores of
            `decision_function`, minus their mean.
        """
        check_is_fitted(self)
        return latent_scores(self.estimator_, X, self.ranks_)

    # ---------------------------------------------------------------- files

    _PARTS = ("estimator",)

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in self.__dict__

    def _describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = {"costs": self.costs_, "classes": self.ranks_, **self.curves_.to_arrays()}
        arrays["moments"] = np.array([self.curves_.slope, self.center_, self.scale_])
        if hasattr(self, "conformal_scores_"):
            arrays["conformal_scores"] = self.conformal_scores_
        # Texts have no columns.
        return ({} if hasattr(self, "n_features_in_") else {"texts": True}), arrays

    def _spec(self) -> ModelSpec:
        whole = unwrap_frozen(self.estimator_)
        learner = last_step(whole)
        if not isinstance(learner, SerializableMixin):
            raise TypeError(
                f"a model file holds learners of rankcore; the estimator is a "
                f"{type(learner).__name__}: use pickle or joblib"
            )
        of = learner._spec()
        facts, arrays = self._describe()
        n_features = getattr(self, "n_features_in_", learner.n_features_in_)
        scoring, parts = _calibrated(of.scoring, arrays), {"estimator": (whole, of)}
        return ModelSpec(facts, arrays, n_features, self._feature_names(), scoring, parts)

    def _restore(self, spec: ModelSpec) -> None:
        whole = spec.parts["estimator"][0]
        learner = last_step(whole)
        classes = check_classes(spec.arrays["classes"])
        if not np.array_equal(getattr(learner, "ranks_", classes), classes):
            raise ValueError("the labels of CalibratedOrdinal must be those of its estimator")
        k = classes.size
        fields = {"moments": Field((3,)), "costs": Field((k, k)), "conformal_scores": Field(("n",))}
        declared = {name: field for name, field in fields.items() if name in spec.arrays}
        checked = read_fields(spec.arrays, declared)
        slope, self.center_, self.scale_ = checked["moments"].tolist()
        if slope < 0 or self.scale_ <= 0:
            raise ValueError("the array moments must have a slope >= 0 and a scale > 0")
        self.curves_ = restored_curves(spec.arrays, k, slope)
        self.ranks_, self.costs_ = classes, checked["costs"]
        if not spec.facts.get("texts", False):
            self.n_features_in_ = spec.n_features
        if "conformal_scores" in checked:
            self.conformal_scores_ = checked["conformal_scores"]
        estimator: Any = self.estimator
        if is_frozen(estimator):
            self.estimator = self.estimator_ = type(estimator)(whole)
        else:
            self.estimator_ = whole

    def contributions(
        self, X: RowsLike, background: RowsLike | None = None, *, output: Hashable | None = None
    ) -> Contributions:
        """Compute contributions of features to `project`; see `contributions` of the estimator.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        background : array-like or scipy sparse, shape (n_background, n_features), optional
            Rows to compare with, such as other documents of the query, or a sample of the training
            data. None: a row of zeros, so that zeros contribute nothing.
        output : label, optional
            Rank to explain, for learners with a score for each rank. Required for
            `MulticlassPerceptron`. For `CuSumRank` the default is the score of ``project``. For
            `OrdinalBoost` with a score for each task, the score is the log-odds of this rank (by
            default the highest) against the lowest. None: the score of ``predict`` or ``project``.

        Returns
        -------
        Contributions
            ``values``, shape (n_samples, n_features), and ``base``, the mean score of the
            background. The values are sparse if X is and there is no background.

        Raises
        ------
        TypeError
            If the score is not a sum over features: for kernels that are not linear, votes and
            combined ranks.
        ValueError
            If input is invalid, or ``output`` is unknown, missing or not supported.
        """
        check_is_fitted(self)
        front, learner = split_pipeline(unwrap_frozen(self.estimator_))
        self._check_projects(learner)
        X = transformed(front, X)
        background = None if background is None else transformed(front, background)
        return learner.contributions(X, background, output=output)

    def _contributed(
        self,
        rows: Rows,
        background: Rows | None,
        output: Any,
        features: NDArray[np.int64] | None = None,
    ) -> tuple[Any, float]:
        learner: Any = split_pipeline(unwrap_frozen(self.estimator_))[1]
        self._check_projects(learner)
        return learner._contributed(rows, background, output, features)

    @staticmethod
    def _check_projects(learner: Any) -> None:
        """Raise TypeError unless the calibrated score is that of the learner's contributions."""
        if not (isinstance(learner, SerializableMixin) and hasattr(learner, "project")):
            raise TypeError(
                f"CalibratedOrdinal of a {type(learner).__name__} calibrates margins, which are "
                "not sums over features: use rankcore.explain.permutation_importance, or calibrate "
                "a learner with project, such as PRank"
            )

    def _fit_summary(self) -> dict[str, Any]:
        return dict(last_step(unwrap_frozen(self.estimator_))._fit_summary())

    def _summary(self) -> dict[str, Any]:
        learner = last_step(unwrap_frozen(self.estimator_))
        return {"estimator": type(learner).__name__, **learner._summary()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.estimator is not None and accepts_nan(self.estimator)
        # Classes without an order, as in scikit-learn's checks, do not lie along one score.
        tags.classifier_tags.poor_score = True
        return tags


def _calibrated(of: Scoring | None, arrays: Mapping[str, NDArray[Any]]) -> Scoring:
    """Fit the curves from a learner's score to probabilities."""
    assert of is not None
    if of.form in ("none", "classes", "ordinal_trees"):
        reason = of.facts.get("reason", "probabilities that follow from a score for each rank")
        return no_scoring(str(reason))
    if of.form == "calibrated":  # of a learner with probabilities of its own
        of = of.of_score
    own = {name: arrays[name] for name in CALIBRATION if name in arrays}
    return Scoring("calibrated", {**of.arrays, **own}, {**of.facts, "of": of.form})
