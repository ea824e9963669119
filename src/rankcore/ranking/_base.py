"""Base class of rankers: queries, prediction and scoring."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import RegressorTags
from sklearn.utils.validation import check_is_fitted

from rankcore._core.arguments import RowsLike
from rankcore._core.concurrency import consistent_read
from rankcore._core.docs import documented
from rankcore._core.eval_sets import as_metrics, measure_names
from rankcore._core.fitted import keep_names
from rankcore._core.model_spec import Specified
from rankcore._core.numbers import Floats
from rankcore._core.params import Constraints
from rankcore._core.queries import Queries, query_numbers
from rankcore._core.state import LearnerState
from rankcore._ext.rows import Rows
from rankcore.ranking._queries import (
    as_relevance,
    held_out_sets,
    queries_of,
    query_weights,
    take_queries,
    warn_of_one_query,
)
from rankcore.ranking._validation import METRICS, Validation, measure

# Measure of `Ranker.score`.
SCORE = "ndcg@10"


@dataclass
class ModelState(LearnerState):
    """A model that scores rows, and the log of its fit."""

    model: Any  # with a method ``score`` that takes `Rows`


class Ranker(Specified, BaseEstimator):
    """Base class of rankers, which score rows to order those of each query. Not public.

    Subclasses provide ``fit``, ``_scores``, ``_figures`` (names of the figures in the log) and,
    once fitted, ``_state`` and ``_largest_query``: the number of rows of the largest training
    query, 0 if none were given.

    Parameters
    ----------
    eval_metric : str, callable or list of them, default="ndcg@10"
        Measures on the ``eval_set`` after each pass, round or step: names known to
        `rankcore.metrics.evaluate`, or functions of labels, scores and qid (higher is better).
        Named losses are minimised. The first of a list is used for early stopping.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    """

    _constraints: ClassVar[Constraints] = {"eval_metric": METRICS}
    n_features_in_: int
    early_stopping_rounds: int | None
    eval_metric: Any
    _figures: tuple[str, ...]
    _allows_nan = False
    _largest_query: int

    @abstractmethod
    def _scores(self, rows: Rows, queries: Queries) -> Floats:
        """Implement `predict`."""

    # Arguments that scikit-learn's metadata routing passes on by default.
    __metadata_request__fit: ClassVar[dict[str, Any]] = dict.fromkeys(
        ("qid", "sample_weight", "eval_X", "eval_y", "eval_qid"), True
    )
    __metadata_request__partial_fit: ClassVar[dict[str, Any]] = {"qid": True}
    __metadata_request__predict: ClassVar[dict[str, Any]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, Any]] = {"qid": True, "sample_weight": True}

    @consistent_read
    def predict(
        self, X: RowsLike, *, qid: ArrayLike | str | None = None, group: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Predict scores; within a query, higher is better.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        qid : array-like, shape (n_samples,), or str, optional
            Query of each row, used only by models that vote on ranks. A string names a column of a
            DataFrame X; by default, a column named "qid" is used if X has one.
        group : array-like of int, optional
            Sizes of queries with contiguous rows, instead of ``qid``.

        Returns
        -------
        ndarray of float64, shape (n_samples,)
        """
        check_is_fitted(self)
        rows, queries = self._rows_in_queries(X, qid, group, "predict" if self._by_rank() else None)
        return self._scores(rows, queries)

    @consistent_read
    @documented(predict)
    def predict_rank(
        self, X: RowsLike, *, qid: ArrayLike | None = None, group: ArrayLike | None = None
    ) -> NDArray[np.int64]:
        """Predict ranks within each query, from 1, the best.

        Parameters
        ----------
        qid : array-like, shape (n_samples,), optional
            Query of each row, in any order, or a column as in `predict`. None: all rows belong to
            one query.

        Returns
        -------
        ndarray of int64, shape (n_samples,)
            1 .. n_q in each query; ties are in the order of the rows.
        """
        check_is_fitted(self)
        rows, queries = self._rows_in_queries(X, qid, group, "predict_rank")
        order = np.lexsort((-self._scores(rows, queries), query_numbers(queries)))
        places = np.empty(rows.n_rows, dtype=np.int64)
        starts = np.repeat(queries.bounds[:-1], np.diff(queries.bounds))
        places[order] = np.arange(rows.n_rows) - starts + 1
        return places

    @consistent_read
    @documented(predict)
    def score(
        self,
        X: RowsLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        qid: ArrayLike | str | None = None,
        group: ArrayLike | None = None,
    ) -> float:
        """Mean NDCG@10 of the predicted scores over queries.

        Parameters
        ----------
        y : array-like of numbers, shape (n_samples,)
            True labels, higher for more relevant.
        sample_weight : array-like, optional
            Weights of queries in the mean, shape (n_queries,), in order of first appearance; or of
            rows, shape (n_samples,): the weight of a query is the mean of its rows'.
        qid : array-like, shape (n_samples,), or str
            Query of each row, or a column as in `predict`. Required if the model was fitted on
            queries.

        Returns
        -------
        float
            Mean NDCG@10, by the default convention of `rankcore.metrics`.

        Raises
        ------
        ValueError
            If the model was fitted on queries and none are given, or input is invalid.
        """
        check_is_fitted(self)
        X, qid = take_queries(X, qid, group)
        if self._largest_query and qid is None and group is None:
            raise ValueError(
                "score requires qid, as this model was fitted on queries (in a search, set "
                "sklearn.set_config(enable_metadata_routing=True) and pass qid to fit, or pass X "
                "as a DataFrame with a column named 'qid')"
            )
        rows, queries = self._rows_in_queries(X, qid, group, "score")
        labels = as_relevance(y, rows.n_rows)
        weights = query_weights(sample_weight, queries)
        return measure(SCORE, labels, self._scores(rows, queries), queries, weights)

    def _by_rank(self) -> bool:
        """Whether a score depends on the other rows of its query."""
        return False

    def _rows_in_queries(
        self, X: Any, qid: Any, group: Any, method: str | None
    ) -> tuple[Rows, Queries]:
        """Rows for a fitted model, and their queries; with ``method``, warn if there are none."""
        X, qid = take_queries(X, qid, group)
        rows = self._more_rows(X)
        if method is not None and qid is None and group is None:
            warn_of_one_query(rows.n_rows, self._largest_query, method)
        return rows, queries_of(qid, group, rows.n_rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._allows_nan
        tags.input_tags.pairwise = getattr(self, "kernel", None) == "precomputed"
        tags.target_tags.required = True
        # scikit-learn calls `predict` of estimators of this type.
        tags.estimator_type = "regressor"
        # R^2 requires scores on the scale of the labels.
        tags.regressor_tags = RegressorTags(poor_score=True)
        return tags

    def _validation(
        self, X: Any, n_features: int, in_queries: bool, held_out: tuple[Any, ...]
    ) -> list[Validation]:
        """Checked evaluation sets, with the features of X."""
        sets = held_out_sets(held_out)
        names = copy(self)
        keep_names(names, X)
        names.n_features_in_ = n_features
        metrics = as_metrics(self.eval_metric)
        called = measure_names(metrics, len(sets))
        found = []
        for (one_X, one_y, qid, group), of_set in zip(sets, called, strict=True):
            if in_queries and qid is None and group is None:
                raise ValueError(
                    "eval_set requires eval_qid, the query of each of its rows, or eval_group, as "
                    "the fit has queries"
                )
            rows = names._more_rows(one_X)
            labels, queries = as_relevance(one_y, rows.n_rows), queries_of(qid, group, rows.n_rows)
            found.append(Validation(rows, labels, queries, metrics, of_set))
            found[-1].check()
        return found

    @property
    @consistent_read
    def history_(self) -> dict[str, list[Any]]:
        """Figures of each pass, round or step, and measures of held-out rows."""
        return self._fitted_state().history(self._figures)
