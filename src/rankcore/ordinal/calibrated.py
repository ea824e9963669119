"""Probabilities of ranks, and sets of ranks with guaranteed coverage, from any ordinal learner."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from rankcore._core.doc_links import Documented
from rankcore._core.inputs import as_labels, as_rows, check_classes, encode, find_classes
from rankcore._core.numbers import Floats, as_weights
from rankcore._core.params import check_option, check_real
from rankcore.metrics.ordinal import accuracy_within, quadratic_weighted_kappa, rank_loss
from rankcore.ordinal._curves import fit_cumulative, fit_isotonic
from rankcore.ordinal._neighbours import before_each, conformal_quantile
from rankcore.ordinal.prank import PRank

METHODS = ("cumulative", "isotonic")
LOSSES = ("absolute", "zero_one", "squared", "kappa")


class CalibratedOrdinal(Documented, ClassifierMixin, BaseEstimator):
    """Probabilities of ranks, fitted to held-out latent scores of an ordinal learner.

    The learner is fitted to all but one part of the rows, in turn; the latent scores (`project`)
    of the parts that were held out, each on the scale of the scores of the rows that were
    learned from, are what the probabilities are fitted to. Then the learner is fitted to all rows.

    Parameters
    ----------
    estimator : ordinal learner, or a pipeline that ends in one, default=PRank()
        Copied, not changed. A `sklearn.frozen.FrozenEstimator` around a fitted one is not fitted
        again: the rows given to `fit` must then be others than it has learned from.
    method : {"cumulative", "isotonic"}, default="cumulative"
        Cumulative logits, ``P(rank <= r) = 1 / (1 + exp(slope * score - threshold[r]))``, or one
        isotonic regression for each threshold, which requires some hundreds of rows per rank.
    cv : int, splitter or iterable of splits, default=5
        The parts; of an int, stratified by label and shuffled.
    loss : {"absolute", "zero_one", "squared", "kappa"}, default="absolute"
        What `predict` minimises in expectation: the distance in ranks, mistakes, the squared
        distance, or one minus the quadratic weighted kappa of all predictions.
    random_state : int, Generator, RandomState or None, default=0
        Of the parts.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Lowest rank first.
    estimator_ : estimator
        Fitted to all rows.
    curves_ : object
        The probabilities as a function of the score on its scale.
    center_, scale_ : float
        Mean and standard deviation of the scores of the rows that ``estimator_`` has learned from.
    costs_ : ndarray of float64, shape (n_classes, n_classes)
        What a prediction (column) costs where a rank is true (row).
    conformal_scores_ : ndarray of float64, shape (n,)
        Only after `conformalize`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        If X had names.

    Notes
    -----
    Each row of `predict_proba` adds up to 1, and the probability of at least a rank rises with
    the score. Around the most probable rank, cumulative logits of thresholds at similar distances
    fall to both sides; ranks far narrower than their neighbours, and isotonic curves, may have
    more than one peak. Isotonic curves may say 0 and 1, where a logarithmic loss is infinite.

    Costs ``cv`` + 1 fits of the learner, and an optimisation over n_classes numbers (O(n) for a
    step) or n_classes - 1 sorts.

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
    array([[0.04, 0.17, 0.32, 0.34, 0.13],
           [0.95, 0.04, 0.01, 0.  , 0.  ]])
    >>> model.conformalize(X[400:500], y[400:500]).predict_set(X[500:503], coverage=0.9)
    array([[1, 4],
           [1, 2],
           [2, 5]])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: str = "cumulative",
        cv: Any = 5,
        loss: str = "absolute",
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.loss = loss
        self.random_state = random_state

    def fit(self, X: Any, y: Any, classes: Any = None, *, sample_weight: Any = None) -> Self:
        """Fit the learner, and probabilities to its scores of held-out rows.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
            Ordered labels.
        classes : array-like, shape (n_classes,), optional
            Every label, lowest rank first; needed for strings.
        sample_weight : array-like, shape (n_samples,), optional
            Weights of the rows, for the learner and for the probabilities.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            On bad input or parameters, or for a learner without `project` or `decision_function`.
            A failed fit leaves the estimator as it was.
        """
        check_option(self.method, "method", METHODS)
        check_option(self.loss, "loss", LOSSES)
        rows = as_rows(X)
        labels, declared = as_labels(y, rows.n_rows)
        known = classes if classes is not None else declared
        known = find_classes(labels) if known is None else check_classes(known)
        ranks = encode(labels, known)
        weights = as_weights(sample_weight, "sample_weight", {"row": labels.size})
        estimator = PRank() if self.estimator is None else self.estimator
        task = _Fits(estimator, _sliceable(X), labels, known, weights)
        if type(estimator).__name__ == "FrozenEstimator":
            fitted = estimator
            scores = latent_scores(fitted, X)
            center, scale = _moments(scores)
            held_out = np.arange(labels.size)
            scores = (scores - center) / scale
        else:
            found = [task.held_out(part) for part in self._parts(X, labels)]
            held_out = np.concatenate([part for part, _ in found])
            scores = np.concatenate([one for _, one in found])
            fitted = task.fit(np.arange(labels.size))
            center, scale = _moments(latent_scores(fitted, X))
        fit_curves = fit_cumulative if self.method == "cumulative" else fit_isotonic
        curves = fit_curves(
            scores,
            ranks[held_out],
            known.size,
            None if weights is None else weights[held_out],
        )
        probabilities = curves.probabilities(scores)
        named = BaseEstimator()
        validate_data(named, X, skip_check_array=True, reset=True)
        # In one go, so that Ctrl-C finds the old model or the new one.
        kept = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        self.__dict__ = kept | {
            **vars(named),
            "n_features_in_": rows.n_features,
            "classes_": known,
            "estimator_": fitted,
            "curves_": curves,
            "center_": center,
            "scale_": scale,
            "costs_": _costs(self.loss, probabilities),
        }
        return self

    def _parts(self, X: Any, labels: NDArray[Any]) -> list[tuple[Any, Any]]:
        from sklearn.model_selection import StratifiedKFold, check_cv

        cv = self.cv
        if isinstance(cv, int) and not isinstance(cv, bool):
            if cv < 2:
                raise ValueError(f"cv must be at least 2; found {cv}")
            seed = self.random_state
            if isinstance(seed, np.random.Generator):
                seed = int(seed.integers(2**31))
            fewest = int(np.unique(labels, return_counts=True)[1].max())
            if fewest < cv:
                raise ValueError(
                    f"cv={cv} parts require {cv} rows of some label; the most there are is {fewest}"
                )
            with warnings.catch_warnings():  # a label may be rarer than there are parts
                warnings.filterwarnings("ignore", "The least populated class", UserWarning)
                parts = StratifiedKFold(cv, shuffle=True, random_state=seed)
                return list(parts.split(np.zeros(labels.size), labels))
        return list(check_cv(cv, labels, classifier=True).split(X, labels))

    # ---------------------------------------------------------------- predicting

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each rank.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray of float64, shape (n_samples, n_classes)
            Lowest rank first; rows add up to 1.
        """
        check_is_fitted(self)
        scores = (latent_scores(self.estimator_, X) - self.center_) / self.scale_
        found: Floats = self.curves_.probabilities(scores)
        return found

    def predict_cumulative_proba(self, X: Any) -> Floats:
        """Probability of at most each rank.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray of float64, shape (n_samples, n_classes)
            Rising along rows, to 1.
        """
        found = np.minimum(np.cumsum(self.predict_proba(X), axis=1), 1.0)
        found[:, -1] = 1.0
        return found

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of least expected loss; the lowest of equals.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray, shape (n_samples,)
            Of the dtype of ``classes_``.
        """
        expected = self.predict_proba(X) @ self.costs_
        found: NDArray[Any] = self.classes_[expected.argmin(axis=1)]
        return found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """How good predictions are by the loss they minimise; greater is better.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
        sample_weight : array-like, shape (n_samples,), optional

        Returns
        -------
        float
            Minus the mean distance in ranks ("absolute") or its square ("squared"), accuracy
            ("zero_one"), or the quadratic weighted kappa ("kappa").
        """
        predicted = encode(self.predict(X), self.classes_)
        ranks = encode(as_labels(y, predicted.size)[0], self.classes_)
        if self.loss == "kappa":
            every = np.arange(self.classes_.size)
            return quadratic_weighted_kappa(
                ranks, predicted, labels=every, sample_weight=sample_weight
            )
        if self.loss == "absolute":
            return 0.0 - rank_loss(ranks, predicted, sample_weight=sample_weight)
        if self.loss == "zero_one":
            return accuracy_within(ranks, predicted, 0, sample_weight=sample_weight)
        squared = (ranks - predicted).astype(np.float64) ** 2
        return 0.0 - float(np.average(squared, weights=sample_weight))

    # ---------------------------------------------------------------- sets with a guarantee

    def conformalize(self, X: Any, y: Any) -> Self:
        """Measure on further rows how large sets of ranks must be (split conformal prediction).

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
            Rows that `fit` has not seen, drawn as those will be that `predict_set` is asked of.
        y : array-like, shape (n_samples,)

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For labels that are not among ``classes_``.
        """
        probabilities = self.predict_proba(X)
        ranks = encode(as_labels(y, len(probabilities))[0], self.classes_)
        self.conformal_scores_ = before_each(probabilities)[np.arange(ranks.size), ranks]
        return self

    def predict_set(self, X: Any, coverage: float = 0.9) -> NDArray[Any]:
        """Neighbouring ranks, among which the true one is with at least a given probability.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        coverage : float, default=0.9
            Between 0 and 1.

        Returns
        -------
        ndarray, shape (n_samples, 2)
            The lowest and the highest label of each set. Sets grow from the most probable rank to
            the more probable neighbour.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `conformalize`.

        Notes
        -----
        If the rows are exchangeable with the n rows of `conformalize`, the true rank is in its
        set with a probability of at least ``coverage``, on average over rows. It is at most
        ``1 / (n + 1)`` more, unless the most probable rank alone is right more often: no set is
        empty. Rows of equal scores (votes) may add to it, too. O(n_samples * n_classes) beyond
        `predict_proba`.
        """
        check_is_fitted(self, "conformal_scores_")
        check_real(coverage, "coverage", 0, 1)
        bound = conformal_quantile(self.conformal_scores_, coverage)
        inside = before_each(self.predict_proba(X)) <= bound
        low = inside.argmax(axis=1)
        high = inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
        return np.column_stack([self.classes_[low], self.classes_[high]])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # Classes without an order, as in scikit-learn's checks, do not lie along one score.
        tags.classifier_tags.poor_score = True
        return tags


class _Fits:
    """Copies of a learner, fitted to parts of the rows."""

    def __init__(
        self,
        estimator: Any,
        X: Any,
        labels: NDArray[Any],
        classes: NDArray[Any],
        weights: Floats | None,
    ) -> None:
        self.estimator, self.X, self.labels = estimator, X, labels
        self.classes, self.weights = classes, weights

    def fit(self, rows: NDArray[Any]) -> Any:
        """A copy that has learned from some rows."""
        copied = clone(self.estimator)
        steps = getattr(copied, "steps", None)
        prefix = "" if steps is None else f"{steps[-1][0]}__"
        given: dict[str, Any] = {f"{prefix}classes": self.classes}
        if self.weights is not None:
            given[f"{prefix}sample_weight"] = self.weights[rows]
        return copied.fit(_taken(self.X, rows), self.labels[rows], **given)

    def held_out(self, part: tuple[Any, Any]) -> tuple[NDArray[Any], Floats]:
        """Rows held out of a part, and their scores on the scale of those learned from."""
        learned, held_out = (np.asarray(rows) for rows in part)
        fitted = self.fit(learned)
        center, scale = _moments(latent_scores(fitted, _taken(self.X, learned)))
        return held_out, (latent_scores(fitted, _taken(self.X, held_out)) - center) / scale


def latent_scores(model: Any, X: Any) -> Floats:
    """One number per row that rises with the rank.

    Parameters
    ----------
    model : estimator
        Fitted; an ordinal learner, or a pipeline that ends in one.
    X : array-like or scipy sparse, shape (n_samples, n_features)

    Returns
    -------
    ndarray of float64, shape (n_samples,)
        What `project` returns. Of a learner without it, the mean rank by the scores of
        `decision_function`, less their mean.

    Raises
    ------
    TypeError
        If it has neither.
    """
    model = (
        getattr(model, "estimator", model) if type(model).__name__ == "FrozenEstimator" else model
    )
    steps = getattr(model, "steps", None)
    if steps is not None:
        X = model[:-1].transform(X) if len(steps) > 1 else X
        model = steps[-1][1]
    if hasattr(model, "project"):
        return np.asarray(model.project(X), dtype=np.float64)
    if not hasattr(model, "decision_function"):
        raise TypeError(
            "estimator must be an ordinal learner, with project or decision_function; found "
            f"{type(model).__name__}"
        )
    scores = np.asarray(model.decision_function(X), dtype=np.float64)
    if scores.ndim == 1:
        return scores
    ranks = np.arange(scores.shape[1])
    found: Floats = scores @ (ranks - ranks.mean())
    return found


def _moments(scores: Floats) -> tuple[float, float]:
    """Mean and standard deviation; 1 for scores that are all the same."""
    return float(scores.mean()), float(scores.std()) or 1.0


def _costs(loss: str, probabilities: Floats) -> Floats:
    """What a prediction (column) costs where a rank is true (row)."""
    ranks = np.arange(probabilities.shape[1], dtype=np.float64)
    distance = np.abs(ranks[:, None] - ranks)
    if loss == "absolute":
        return distance
    if loss == "zero_one":
        return (distance > 0).astype(np.float64)
    if loss == "squared":
        return distance**2
    # One minus kappa is a quotient of two sums over rows: the squared distances, and those that
    # chance would have. Dinkelbach (1967): the least quotient is the number for which the least
    # difference of the first and as often the second is 0; each row is then on its own.
    mean = probabilities.mean(axis=0) @ ranks
    spread = probabilities.mean(axis=0) @ (ranks - mean) ** 2
    by_chance = (ranks - mean) ** 2 + spread
    quotient = 0.0
    for _ in range(100):
        costs = distance**2 - quotient * by_chance
        chosen = (probabilities @ costs).argmin(axis=1)
        squared = np.take_along_axis(probabilities @ distance**2, chosen[:, None], axis=1)
        chance = by_chance[chosen].sum()
        found = float(squared.sum() / chance) if chance > 0 else 1.0
        if found == quotient:
            break
        quotient = found
    return distance**2 - quotient * by_chance


def _sliceable(X: Any) -> Any:
    from scipy.sparse import issparse

    if issparse(X):
        return X.tocsr()
    return X if hasattr(X, "iloc") or hasattr(X, "shape") else np.asarray(X)


def _taken(X: Any, rows: NDArray[Any]) -> Any:
    from sklearn.utils import _safe_indexing

    return X if rows.size == X.shape[0] and rows[0] == 0 else _safe_indexing(X, rows)
