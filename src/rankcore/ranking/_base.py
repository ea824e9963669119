"""What the rankers share: rows in queries, scores, and how good a ranking is."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from rankcore._core.concurrency import reads
from rankcore._core.inputs import as_labels, as_rows
from rankcore._core.model_spec import Specified
from rankcore._core.numbers import refuse_mask
from rankcore._core.queries import Queries, group_rows, query_numbers
from rankcore._core.state import LearnerState
from rankcore._ext.rows import Rows
from rankcore.ranking._watch import Validation, measure

# What `score` measures.
SCORE = "ndcg@10"


@dataclass
class ModelState(LearnerState):
    """A model that scores rows, and the log of its fit.

    Attributes
    ----------
    model : object
        With a method ``score`` that takes `Rows`.
    """

    model: Any


class Ranker(Specified, BaseEstimator):
    """A learner that gives each row a score by which its query is ordered. Not public.

    A subclass provides ``fit``, ``_scores``, ``_figures`` (the names of the figures in its log)
    and, once fitted, ``_state`` and ``_with_qid``: whether it learned from queries.
    """

    n_features_in_: int
    early_stopping_rounds: int | None
    eval_metric: Any
    _figures: tuple[str, ...]
    _with_qid: bool

    def _scores(self, rows: Rows, queries: Queries) -> NDArray[np.float64]:
        """What `predict` returns."""
        raise NotImplementedError

    @reads
    def predict(self, X: Any, *, qid: Any = None, group: Any = None) -> NDArray[np.float64]:
        """Scores; within a query, bigger is better.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        qid : array-like, shape (n_samples,), optional
            The query of each row. Only models that vote on ranks look at it.
        group : array-like of int, optional
            Sizes of queries whose rows follow each other, instead of ``qid``.

        Returns
        -------
        ndarray of float64, shape (n_samples,)
        """
        check_is_fitted(self)
        rows = self._more_rows(X)
        return self._scores(rows, queries_of(qid, group, rows.n_rows))

    @reads
    def predict_rank(self, X: Any, *, qid: Any = None, group: Any = None) -> NDArray[np.int64]:
        """Places within the query: 1 is the best.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        qid : array-like, shape (n_samples,), optional
            The query of each row, in any order. None: all rows are of one query.
        group : array-like of int, optional
            Sizes of queries whose rows follow each other, instead of ``qid``.

        Returns
        -------
        ndarray of int64, shape (n_samples,)
            1 .. n_q in each query; of equal scores, the row that comes first is placed first.
        """
        check_is_fitted(self)
        rows = self._more_rows(X)
        queries = queries_of(qid, group, rows.n_rows)
        order = np.lexsort((-self._scores(rows, queries), query_numbers(queries)))
        places = np.empty(rows.n_rows, dtype=np.int64)
        # `order` goes through the queries one after the other, as their bounds do.
        starts = np.repeat(queries.bounds[:-1], np.diff(queries.bounds))
        places[order] = np.arange(rows.n_rows) - starts + 1
        return places

    @reads
    def score(self, X: Any, y: Any, *, qid: Any = None, group: Any = None) -> float:
        """NDCG at 10 of the scores, averaged over queries; greater is better.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        y : array-like of numbers, shape (n_samples,)
            True labels, greater for more relevant.
        qid : array-like, shape (n_samples,)
            The query of each row. A model that learned from queries needs them.
        group : array-like of int, optional
            Sizes of queries whose rows follow each other, instead of ``qid``.

        Returns
        -------
        float
            By the default convention of `rankcore.metrics`.

        Raises
        ------
        ValueError
            If the model learned from queries and none are given, or on bad input.
        """
        check_is_fitted(self)
        if self._with_qid and qid is None and group is None:
            raise ValueError(
                "this model learned from queries: score requires qid (in a search, "
                "set_score_request(qid=True) and enable_metadata_routing pass it on)"
            )
        rows = self._more_rows(X)
        queries = queries_of(qid, group, rows.n_rows)
        labels = as_relevance(y, rows.n_rows)
        return measure(SCORE, labels, self._scores(rows, queries), queries)

    def _as_rows(self, X: Any) -> Rows:
        """Check a feature matrix."""
        return as_rows(X)

    def _more_rows(self, X: Any) -> Rows:
        """Rows for a fitted model: as many features, under the same names."""
        if hasattr(X, "columns") or hasattr(self, "feature_names_in_"):
            validate_data(self, X, skip_check_array=True, reset=False)
        rows = self._as_rows(X)
        if rows.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {rows.n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _validation(
        self, X: Any, rows: Rows, eval_set: Any, eval_qid: Any, eval_group: Any
    ) -> Validation | None:
        """Held-out rows, of the features of X."""
        if eval_set is None and self.early_stopping_rounds is not None:
            raise ValueError("early_stopping_rounds requires eval_set; found eval_set=None")
        names = copy(self)  # not a new one: a subclass may require parameters
        validate_data(names, X, skip_check_array=True, reset=True)
        names.n_features_in_ = rows.n_features
        return as_validation(eval_set, eval_qid, eval_group, self.eval_metric, names._more_rows)

    def _shadow(self, X: Any, n_features: int, with_qid: bool, state: LearnerState) -> Self:
        """A copy of this estimator, fitted with a state: what it will be if all goes well."""
        shadow = copy(self)
        shadow.__dict__.pop("best_iteration_", None)  # of an earlier fit
        validate_data(shadow, X, skip_check_array=True, reset=True)  # feature names
        shadow.n_features_in_, shadow._with_qid, shadow._state = n_features, with_qid, state
        return shadow

    def _become(self, fitted: Self) -> None:
        """Take over what a fit has made, and nothing of an earlier one.

        In one go, so that Ctrl-C finds the old model or the new one.
        """
        self.__dict__ = dict(vars(fitted))

    def _metric_name(self) -> str:
        """What ``history_`` calls the measure on held-out rows."""
        if isinstance(self.eval_metric, str):
            return self.eval_metric
        name: str = getattr(self.eval_metric, "__name__", "validation")
        return "validation" if name in self._figures else name

    @property
    @reads
    def history_(self) -> dict[str, list[Any]]:
        """Figures of each pass, round or step, and the measure on held-out rows after it."""
        return self._fitted_state().history(self._figures)


def as_relevance(y: Any, n_rows: int) -> NDArray[np.float64]:
    """Labels as numbers.

    Parameters
    ----------
    y : array-like, shape (n_rows,)
    n_rows : int

    Returns
    -------
    ndarray of float64, shape (n_rows,)

    Raises
    ------
    ValueError
        If there are too few, NaN or infinite ones, they are not numbers, or integers that float64
        does not have.
    """
    labels, _ = as_labels(y, n_rows)
    if labels.dtype.kind not in "biuf":
        raise ValueError(
            f"a ranker needs labels that are numbers, greater for more relevant; found dtype "
            f"{labels.dtype}"
        )
    numbers = labels.astype(np.float64)
    if labels.dtype.kind in "iu" and np.abs(numbers).max() > 2**53:
        lost = numbers.astype(object) != labels
        if lost.any():
            raise ValueError(
                f"a ranker takes labels as float64, which cannot represent {labels[lost.argmax()]} "
                "exactly: number the levels"
            )
    return numbers


def queries_of(qid: Any, group: Any, n_rows: int) -> Queries:
    """Rows by query, from ids or from sizes.

    Parameters
    ----------
    qid : array-like, shape (n_rows,), or None
    group : array-like of int, or None
        Sizes of queries whose rows follow each other.
    n_rows : int

    Returns
    -------
    Queries
        One query if both are None.

    Raises
    ------
    ValueError
        If both are given, or they do not fit the rows.
    """
    if group is None:
        return group_rows(qid, n_rows)
    if qid is not None:
        raise ValueError("found both qid and group, which have the same meaning: give one")
    refuse_mask(group, "group")
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise ValueError(f"group must list the sizes of the queries; found {group!r}")
    total = sum(sizes.tolist())  # of integers that do not overflow
    if total != n_rows:
        raise ValueError(f"the sizes in group add up to {total}, but there are {n_rows} rows")
    sizes = sizes.astype(np.int64)
    return group_rows(np.repeat(np.arange(sizes.size), sizes), n_rows)


def as_validation(
    eval_set: Any,
    eval_qid: Any,
    eval_group: Any,
    metric: Any,
    more_rows: Callable[[Any], Rows],
) -> Validation | None:
    """The validation set of a fit.

    Parameters
    ----------
    eval_set : (X, y), or a list of one such pair, or None
    eval_qid, eval_group : array-like, or a list of one, or None
    metric : str or callable
    more_rows : callable
        Checks X.

    Returns
    -------
    Validation or None
    """
    if eval_set is None:
        if eval_qid is not None or eval_group is not None:
            raise ValueError("eval_qid and eval_group require eval_set; found eval_set=None")
        return None
    if isinstance(eval_set, list):
        if len(eval_set) != 1:
            raise ValueError(f"eval_set must be one pair (X, y); found {len(eval_set)}")
        eval_set = eval_set[0]
        eval_qid, eval_group = _only(eval_qid), _only(eval_group)
    if not isinstance(eval_set, tuple) or len(eval_set) != 2:
        raise TypeError("eval_set must be a pair (X, y), or a list of one such pair")
    rows = more_rows(eval_set[0])
    labels = as_relevance(eval_set[1], rows.n_rows)
    return Validation(rows, labels, queries_of(eval_qid, eval_group, rows.n_rows), metric)


def _only(values: Any) -> Any:
    """The array in a list of one array, as LightGBM and XGBoost want them; others as they are."""
    if isinstance(values, list) and len(values) == 1 and np.ndim(values[0]) == 1:
        return values[0]
    return values
