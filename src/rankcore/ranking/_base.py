"""Shared base of the rankers: rows in queries, scores, and the quality of a ranking."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import RegressorTags
from sklearn.utils.validation import check_is_fitted

from rankcore._core.arguments import RowsLike
from rankcore._core.concurrency import reads
from rankcore._core.doc_links import Documented
from rankcore._core.eval_sets import as_eval_sets, as_metrics, measure_names
from rankcore._core.fitted import keep_names
from rankcore._core.model_spec import Specified
from rankcore._core.params import Constrained, option, optional
from rankcore._core.queries import Queries, query_numbers
from rankcore._core.state import LearnerState
from rankcore._ext.rows import Rows
from rankcore.ranking._queries import (
    as_relevance,
    queries_of,
    query_weights,
    take_queries,
    warn_of_one_query,
)
from rankcore.ranking._validation import Validation, check_metric, measure

# What `score` measures.
SCORE = "ndcg@10"


@dataclass
class ModelState(LearnerState):
    """A model that scores rows, and the log of its fit."""

    model: Any  # with a method ``score`` that takes `Rows`


class Ranker(Specified, Constrained, Documented, BaseEstimator):
    """A learner that gives each row a score by which its query is ordered. Not public.

    A subclass provides ``fit``, ``_scores``, ``_figures`` (the names of the figures in its log)
    and, once fitted, ``_state`` and ``_largest_query``: rows of the largest query it learned from,
    0 if it was given no queries.
    """

    _constraints: ClassVar = {"balance": optional(option("query")), "eval_metric": check_metric}
    n_features_in_: int
    early_stopping_rounds: int | None
    eval_metric: Any
    _figures: tuple[str, ...]
    _allows_nan = False
    _largest_query: int

    @abstractmethod
    def _scores(self, rows: Rows, queries: Queries) -> NDArray[np.float64]:
        """Implement `predict`."""

    # scikit-learn hands these on by itself, with metadata routing.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {
        "qid": True,
        "eval_X": True,
        "eval_y": True,
        "eval_qid": True,
    }
    __metadata_request__partial_fit: ClassVar[dict[str, Any]] = {"qid": True}
    __metadata_request__predict: ClassVar[dict[str, Any]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, Any]] = {"qid": True}

    @reads
    def predict(
        self, X: RowsLike, *, qid: ArrayLike | str | None = None, group: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Scores; within a query, bigger is better.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        qid : array-like, shape (n_samples,), or str, optional
            The query of each row. Only models that vote on ranks look at it. A string names a
            column of a frame X; without qid a column named "qid" is taken.
        group : array-like of int, optional
            Sizes of queries whose rows follow each other, instead of ``qid``.

        Returns
        -------
        ndarray of float64, shape (n_samples,)
        """
        check_is_fitted(self)
        rows, queries = self._rows_in_queries(X, qid, group, "predict" if self._by_rank() else None)
        return self._scores(rows, queries)

    @reads
    def predict_rank(
        self, X: RowsLike, *, qid: ArrayLike | None = None, group: ArrayLike | None = None
    ) -> NDArray[np.int64]:
        """Places within the query: 1 is the best.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        qid : array-like, shape (n_samples,), optional
            The query of each row, in any order, or a column as in `predict`. None: all rows are
            of one query.
        group : array-like of int, optional
            Sizes of queries whose rows follow each other, instead of ``qid``.

        Returns
        -------
        ndarray of int64, shape (n_samples,)
            1 .. n_q in each query; of equal scores, the row that comes first is placed first.
        """
        check_is_fitted(self)
        rows, queries = self._rows_in_queries(X, qid, group, "predict_rank")
        order = np.lexsort((-self._scores(rows, queries), query_numbers(queries)))
        places = np.empty(rows.n_rows, dtype=np.int64)
        # `order` goes through the queries one after the other, as their bounds do.
        starts = np.repeat(queries.bounds[:-1], np.diff(queries.bounds))
        places[order] = np.arange(rows.n_rows) - starts + 1
        return places

    @reads
    def score(
        self,
        X: RowsLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        qid: ArrayLike | str | None = None,
        group: ArrayLike | None = None,
    ) -> float:
        """NDCG at 10 of the scores, averaged over queries; higher is better.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        y : array-like of numbers, shape (n_samples,)
            True labels, higher for more relevant.
        sample_weight : array-like, optional
            Weights of the queries in the mean: shape (n_queries,), in order of first appearance;
            or of the rows, shape (n_samples,), of which a query weighs the mean.
        qid : array-like, shape (n_samples,), or str
            The query of each row, or a column as in `predict`. A model that learned from queries
            needs them.
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
        X, qid = take_queries(X, qid, group)
        if self._largest_query and qid is None and group is None:
            raise ValueError(
                "this model learned from queries: score requires qid (in a search, turn on "
                "sklearn.set_config(enable_metadata_routing=True) and give fit qid=qid, or give X "
                "as a frame with a column named 'qid')"
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
        """Rows for a fitted model, and their queries; ``method`` warns of what has none."""
        X, qid = take_queries(X, qid, group)
        rows = self._more_rows(X)
        if method is not None and qid is None and group is None:
            warn_of_one_query(rows.n_rows, self._largest_query, method)
        return rows, queries_of(qid, group, rows.n_rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._allows_nan
        tags.target_tags.required = True
        # scikit-learn's kind of learners of a real number per row; its tools look at `predict`.
        tags.estimator_type = "regressor"
        # The score is not on the scale of the labels, which R^2 requires.
        tags.regressor_tags = RegressorTags(poor_score=True)
        return tags

    def _validation(
        self, X: Any, n_features: int, in_queries: bool, held_out: tuple[Any, ...]
    ) -> list[Validation]:
        """Held-out sets of rows, of the features of X."""
        eval_set, eval_X, eval_y, eval_qid, eval_group = held_out
        more = {"eval_qid": eval_qid, "eval_group": eval_group}
        sets = as_eval_sets(eval_set, eval_X, eval_y, more)
        names = copy(self)  # not a new one: a subclass may require parameters
        keep_names(names, X)
        names.n_features_in_ = n_features
        metrics = as_metrics(self.eval_metric)
        called = measure_names(metrics, len(sets))
        found = []
        for (one_X, one_y, of), of_set in zip(sets, called, strict=True):
            qid, group = of["eval_qid"], of["eval_group"]
            one_X, qid = take_queries(one_X, qid, group)
            if in_queries and qid is None and group is None:
                raise ValueError(
                    "this fit learns from queries: eval_set requires eval_qid, the query of each "
                    "of its rows, or eval_group"
                )
            one = names._more_rows(one_X)
            found.append(
                Validation(
                    one,
                    as_relevance(one_y, one.n_rows),
                    queries_of(qid, group, one.n_rows),
                    metrics,
                    of_set,
                )
            )
            found[-1].check()
        return found

    def _shadow(self, X: Any, n_features: int, largest: int, state: LearnerState) -> Self:
        """A copy of this estimator, fitted with a state: what it will be if all goes well."""
        shadow = copy(self)
        shadow.__dict__.pop("best_iteration_", None)  # of an earlier fit
        keep_names(shadow, X)
        shadow.n_features_in_, shadow._largest_query, shadow._state = n_features, largest, state
        return shadow

    @property
    @reads
    def history_(self) -> dict[str, list[Any]]:
        """Figures of each pass, round or step, and measures on held-out rows: ``valid_ndcg@10``."""
        return self._fitted_state().history(self._figures)
