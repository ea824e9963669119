"""Base class of rankers: queries, prediction and scoring."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import RegressorTags
from sklearn.utils.validation import check_is_fitted

from rankcore._core.arguments import EvalSet, RowsLike
from rankcore._core.concurrency import consistent_read
from rankcore._core.eval_sets import as_metrics, measure_names
from rankcore._core.fitted import keep_names
from rankcore._core.frames import frame_of
from rankcore._core.labels import WORDS, are_words, as_grades, as_relevance, check_words
from rankcore._core.model_spec import SerializableMixin
from rankcore._core.monitor import Callback
from rankcore._core.numbers import Floats
from rankcore._core.params import Constraints
from rankcore._core.queries import (
    QUERY_COLUMN,
    Queries,
    has_column,
    queries_of,
    query_numbers,
    query_weights,
    take_queries,
    warn_of_one_query,
)
from rankcore._core.sources import RowBlocks
from rankcore._core.state import LearnerState
from rankcore._ext.rows import Rows
from rankcore.ranking.click_pairs import (
    PropensitiesLike,
    weigh_clicks,
    with_columns,
    with_positions,
)
from rankcore.ranking.data import HeldOut, RankingData, held_out_sets
from rankcore.ranking.validation import METRICS, Validation, measure

# Measure of `Ranker.score`.
SCORE = "ndcg@10"


@dataclass
class ModelState(LearnerState):
    """A model that scores rows, and the log of its fit."""

    model: Any  # with a method ``score`` that takes `Rows`


class Ranker(SerializableMixin, BaseEstimator):
    """Base class of rankers, which score rows to order those of each query. Not public.

    Subclasses provide ``_fit``, ``_scores``, ``_statistics`` (names of the statistics in the log)
    and, once fitted, ``_state`` and ``_largest_query``: the number of rows of the largest training
    query, 0 if none were given.
    """

    _constraints: ClassVar[Constraints] = {"eval_metric": METRICS, "classes": WORDS}
    n_features_in_: int
    classes: ArrayLike | None
    early_stopping_rounds: int | None
    eval_metric: Any
    _statistics: tuple[str, ...]
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

    def fit(
        self,
        X: RowsLike | RowBlocks,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | str | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        pairs: ArrayLike | None = None,
        pairs_weight: ArrayLike | None = None,
        eval_set: EvalSet | None = None,
        eval_X: RowsLike | Sequence[RowsLike] | None = None,
        eval_y: ArrayLike | Sequence[ArrayLike] | None = None,
        eval_qid: ArrayLike | Sequence[ArrayLike] | None = None,
        eval_group: ArrayLike | Sequence[ArrayLike] | None = None,
        callbacks: Iterable[Callback] | None = None,
        position: ArrayLike | None = None,
        propensity: ArrayLike | PropensitiesLike | None = None,
    ) -> Self:
        """Fit a new model or, with ``warm_start``, continue the current one.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
            Finite; for `RankBoost`, NaN is missing. CSR and C-ordered float32 or float64 arrays are
            not copied: do not change them before the call returns, nor in callbacks. With
            ``kernel="precomputed"`` of `RankSVM`, the kernel matrix, shape (n_samples, n_samples).
            Rows on disk, from `rankcore.datasets.open_rows`, include their labels and queries:
            `RankBoost` uses a row cache, `RankSVM` reads all rows into memory.
        y : array-like, shape (n_samples,)
            Labels, higher for more relevant: any real numbers, from 0 to 60 with a ``pair_weight``
            of NDCG; or words in the order of ``classes`` or of an ordered categorical. Optional
            with ``pairs``.
        qid : array-like, shape (n_samples,), or str, optional
            Query of each row, of any type and in any order, or the name of a column of a DataFrame
            X; by default, a column named "qid" if X has one. None: all rows belong to one query.
        group : array-like of int, optional
            Sizes of queries with contiguous rows, instead of ``qid``.
        sample_weight : array-like, optional
            Weights of rows, shape (n_samples,); or of queries, in order of first appearance, shape
            (n_queries,), which are those of all of their rows. Rows of weight 0 are left out. With
            ``balance="query"`` the weight of a query is the mean of its rows' positive weights, in
            ``fit`` relative to that of all rows, and its pairs share it in proportion to the
            products of their rows' weights. With ``balance=None`` the weight of a pair is this
            product.
        pairs : array-like of int, shape (n_pairs, 2), optional
            Rows of the winner and the loser of each pair to learn from, instead of labels.
        pairs_weight : array-like, shape (n_pairs,), optional
            Weights of ``pairs``.
        eval_set : (X, y), or a list of such pairs, optional
            Held-out rows, measured by ``eval_metric`` after each pass, round or step.
        eval_X, eval_y : array-like, or lists of them, optional
            ``eval_set`` as two arguments, of which a pipeline can transform the first
            (``transform_input=["eval_X"]``).
        eval_qid, eval_group : array-like, or lists of them, optional
            Queries of the held-out rows, as ``qid`` or ``group``; required if the fit has queries.
        callbacks : iterable of callables, optional
            Called after each pass, round or step with a `rankcore.callbacks.Iteration`; the fit
            ends when one returns True.
        position : array-like of int, shape (n_samples,), optional
            Position of each row in its list, from 1, if rows are impressions, y has clicks and qid
            sessions. Without ``propensity``, linear rankers learn an effect of each position in
            addition to the features, which predictions and measures of held-out rows omit:
            ``position_effect_``.
        propensity : array-like of float or Propensities, optional
            Examination probability of each position or, without ``position``, of each row. The fit
            then uses the pairs of each clicked row and every other row of its session, with weight
            y / max(propensity, 0.01). The weight of a session is the sum of its pairs' weights.
            With `rankcore.clicks.Propensities` that have ``trust``, y - trust replaces y, and a row
            with a negative weight loses against every other row.
            Where documents are shown in several sessions, `rankcore.clicks.click_pairs` adds up
            their clicks: its pairs are fewer and less noisy.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If input or parameters are invalid, no query has two documents with different labels,
            or a kernel matrix requires more than ``memory_limit``. A failed or interrupted fit does
            not change the estimator.
        """
        self._check_params()
        column = self._column_of_fit(qid)
        held_out = held_out_sets(eval_set, eval_X, eval_y, eval_qid, eval_group, column)
        y, words = self._graded(y, X, unused=pairs is not None)
        held_out = self._graded_sets(held_out, words, labelled=y is not None and pairs is None)
        data = RankingData(X, y, qid, group, sample_weight, pairs, pairs_weight, held_out, column)
        fitted = self._with_names(column, words)
        if propensity is not None:
            balanced = getattr(self, "balance", None) == "query"
            data = weigh_clicks(data, propensity, position, weigh_queries=balanced)
        elif position is not None:
            fitted._fit_with_positions(data, position, callbacks)
            self._replace_with(fitted)
            return self
        fitted._fit(data, callbacks)
        fitted.__dict__.pop("position_effect_", None)  # of an earlier fit
        self._replace_with(fitted)
        return self

    def _column_of_fit(self, qid: Any) -> str | None:
        """Return the column of queries: the argument or, to continue, that of the previous fit."""
        if isinstance(qid, str):
            return qid
        return vars(self).get("query_column_") if getattr(self, "warm_start", False) else None

    def _with_names(self, column: str | None, words: NDArray[Any] | None) -> Self:
        """Return a copy with the column of queries and the words of a fit, if there are any."""
        named = copy(self)
        for name, value in (("query_column_", column), ("grades_", words)):
            named.__dict__.pop(name, None)  # of an earlier fit
            if value is not None:
                named.__dict__[name] = value
        return named

    def _graded(
        self, y: Any, X: Any, *, unused: bool = False, continues: bool | None = None
    ) -> tuple[Any, NDArray[Any] | None]:
        """Return the labels of a fit as numbers, and the words that they replace, lowest first.

        ``unused`` labels are those of a fit that learns listed pairs. A model that ``continues``,
        by default with ``warm_start``, keeps its words.
        """
        words = None if self.classes is None else check_words(self.classes)
        if words is not None and isinstance(X, RowBlocks):
            raise ValueError("labels of rows on disk are numbers, which are grades: omit classes")
        if continues is None:
            continues = bool(getattr(self, "warm_start", False))
        before = vars(self).get("grades_")
        begun = continues and self.__sklearn_is_fitted__()
        if begun and words is None:
            words = before
        name = type(self).__name__
        if y is not None and not unused:
            y, words = as_grades(y, words, name)
        same = words is before or (
            words is not None and before is not None and np.array_equal(words, before)
        )
        if begun and not same:
            previous = "numbers" if before is None else f"the words {before.tolist()}, lowest first"
            raise ValueError(
                f"{name} continues a model whose labels are {previous}; got "
                f"{'numbers' if words is None else words.tolist()}: pass the same labels, or fit "
                "a new model"
            )
        return y, words

    def _graded_sets(
        self, held_out: Sequence[HeldOut], words: NDArray[Any] | None, *, labelled: bool = True
    ) -> list[HeldOut]:
        """Replace labels of held-out rows that are words by grades.

        If the labels of the fit are numbers, so must be these, as words need not be on the scale of
        the numbers. A fit to listed pairs may be without, and is not ``labelled``.
        """
        name = type(self).__name__
        if (
            labelled
            and words is None
            and any(are_words(held_out_rows.y) for held_out_rows in held_out)
        ):
            raise ValueError(
                f"{name}: labels of the eval_set must be numbers, as y's are; got words: pass "
                "both as words, or both as numbers"
            )
        return [
            replace(held_out_rows, y=as_grades(held_out_rows.y, words, name)[0])
            for held_out_rows in held_out
        ]

    @abstractmethod
    def _fit(self, data: RankingData, callbacks: Iterable[Callback] | None) -> None:
        """Implement `fit`, after the parameters are checked."""

    def _fit_with_positions(
        self, data: RankingData, position: ArrayLike, callbacks: Iterable[Callback] | None
    ) -> Self:
        """Fit with an effect of each position, which is no part of the model."""
        self._check_positions()
        if callbacks is not None:
            raise ValueError(
                "position without propensity excludes callbacks, which would find effects of "
                "positions in the model: omit callbacks, or pass propensity"
            )
        wide, places = with_positions(data, position)
        form = take_queries(data.X, data.qid, data.group, data.column)[0]
        like = copy(self)
        keep_names(like, form)
        # Held-out rows have a zero for each position: they are measured without its effect.
        held_out = [
            replace(held_out_rows, X=with_columns(like._more_rows(held_out_rows.X), places.size))
            for held_out_rows in data.held_out
        ]
        self._fit(replace(wide, held_out=held_out), None)
        n_features = self.n_features_in_ - places.size
        if hasattr(self, "coef_"):
            effect = np.full(int(places.max()), np.nan)
            effect[places - 1] = self.coef_[n_features:]
            self.position_effect_ = effect
        self._keep_features(n_features)
        keep_names(self, form)
        self.n_features_in_ = n_features
        return self

    def _check_positions(self) -> None:
        """Raise ValueError unless the learner supports effects of positions."""
        raise ValueError(
            f"{type(self).__name__} requires propensity with position: only PairwisePerceptron and "
            "RankSVM without a kernel learn effects of positions"
        )

    def _keep_features(self, n_features: int) -> None:
        """Remove all but the first ``n_features`` features from the model."""
        raise NotImplementedError

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
            DataFrame X; by default, that of the fit or "qid" is used if X has one.
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
    def predict_rank(
        self, X: RowsLike, *, qid: ArrayLike | None = None, group: ArrayLike | None = None
    ) -> NDArray[np.int64]:
        """Predict ranks within each query, from 1, the best.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        qid : array-like, shape (n_samples,), optional
            Query of each row, in any order, or a column as in `predict`. None: all rows belong to
            one query.
        group : array-like of int, optional
            Sizes of queries with contiguous rows, instead of ``qid``.

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
    def score(
        self,
        X: RowsLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        qid: ArrayLike | str | None = None,
        group: ArrayLike | None = None,
    ) -> float:
        """Return the mean NDCG@10 of the predicted scores over queries.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
            True labels, higher for more relevant: numbers, or words if the model was fitted to
            these.
        sample_weight : array-like, optional
            Weights of queries in the mean, shape (n_queries,), in order of first appearance; or of
            rows, shape (n_samples,): the weight of a query is the mean of its rows'.
        qid : array-like, shape (n_samples,), or str
            Query of each row, or a column as in `predict`. Required if the model was fitted on
            queries.
        group : array-like of int, optional
            Sizes of queries with contiguous rows, instead of ``qid``.

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
        rows, queries = self._rows_in_queries(X, qid, group, "score")
        y, _ = as_grades(y, vars(self).get("grades_"))
        labels = as_relevance(y, rows.n_rows)
        weights = query_weights(sample_weight, queries)
        return measure(SCORE, labels, self._scores(rows, queries), queries, weights)

    def _by_rank(self) -> bool:
        """Return whether a row's score depends on the other rows of its query."""
        return False

    def _rows_in_queries(
        self, X: Any, qid: Any, group: Any, method: str | None
    ) -> tuple[Rows, Queries]:
        """Validate rows and queries for a fitted model; with ``method``, warn without queries."""
        X, qid = self._take_queries(X, qid, group)
        without = qid is None and group is None
        if method == "score" and without and self._largest_query:
            raise ValueError(
                "score requires qid, as this model was fitted on queries (in a search, set "
                "sklearn.set_config(enable_metadata_routing=True) and pass qid to fit, or pass X "
                f"as a DataFrame with a column named {self._query_column!r})"
            )
        rows = self._more_rows(X)
        if method is not None and without:
            warn_of_one_query(rows.n_rows, self._largest_query, method)
        return rows, queries_of(qid, group, rows.n_rows)

    def _take_queries(self, X: Any, qid: Any, group: Any) -> tuple[Any, Any]:
        """Return X without a column of queries, and qid; the fit may have named the column."""
        return take_queries(X, qid, group, vars(self).get("query_column_"))

    @property
    def _query_column(self) -> str:
        """The column of queries in frames to predict."""
        column: str = vars(self).get("query_column_", QUERY_COLUMN)
        return column

    def _more_rows(self, X: Any) -> Rows:
        """Validate rows for a fitted model, without a column of queries."""
        frame, column = frame_of(X), self._query_column
        learned = column in getattr(self, "feature_names_in_", ())
        if frame is not None and has_column(frame, column) and not learned:
            X = frame.without(column)
        return super()._more_rows(X)

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
        self, X: Any, n_features: int, in_queries: bool, held_out: Sequence[HeldOut]
    ) -> list[Validation]:
        """Return checked evaluation sets, with the features of X."""
        names = copy(self)
        keep_names(names, X)
        names.n_features_in_ = n_features
        metrics = as_metrics(self.eval_metric)
        called = measure_names(metrics, len(held_out))
        sets = []
        for held_out_rows, of_set in zip(held_out, called, strict=True):
            if in_queries and held_out_rows.qid is None and held_out_rows.group is None:
                raise ValueError(
                    "eval_set requires eval_qid, the query of each of its rows, or eval_group, as "
                    "the fit has queries"
                )
            rows = names._more_rows(held_out_rows.X)
            labels = as_relevance(held_out_rows.y, rows.n_rows)
            queries = queries_of(held_out_rows.qid, held_out_rows.group, rows.n_rows)
            sets.append(Validation(rows, labels, queries, metrics, of_set))
            sets[-1].check()
        return sets

    @property
    @consistent_read
    def history_(self) -> dict[str, list[Any]]:
        """Statistics of each pass, round or step, and measures of held-out rows."""
        return self._fitted_state().history(self._statistics)
