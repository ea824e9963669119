"""Cross-validation: folds of whole queries for rankers, and string labels with ranks."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline

from rankcore._core.arguments import Folds, RowsLike, Seed
from rankcore._core.frames import as_series
from rankcore._core.inputs import n_rows_of, take_rows
from rankcore._core.labels import as_grades, as_relevance
from rankcore._core.params import as_generator, check_flag, check_integer
from rankcore._core.queries import (
    Queries,
    group_rows,
    query_means,
    query_numbers,
    take_queries,
    whole_folds,
)
from rankcore._core.warning import warns_once
from rankcore.metrics.conventions import Convention
from rankcore.metrics.names import greater_is_better
from rankcore.metrics.scorers import make_scorer, ranking_scores
from rankcore.metrics.tables import Table, Tabular, fold_table
from rankcore.ranking.base import Ranker
from rankcore.ranking.pairs import weights_of_rows

__all__ = ["QueryKFold", "QueryScores", "cross_val_predict", "cross_validate_queries"]


class QueryKFold:
    """K-fold cross-validation that keeps queries whole.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at most the number of queries.
    shuffle : bool, default=False
        Distribute queries over folds in a random order. Otherwise cyclically, in order of first
        appearance, so that each fold has queries from all parts of the data.
    stratify : bool, default=False
        Distribute queries evenly by their mean label, so that, for example, queries without
        relevant documents are in all folds. Requires y.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the shuffling.

    Notes
    -----
    ``split`` takes the queries as ``qid`` or, as in scikit-learn's searches without metadata
    routing, as ``groups``. With routing, ``qid`` is passed to learner, splitter and scorer. Sizes
    of folds differ by at most one query.

    Examples
    --------
    >>> import numpy as np, rankcore as rc
    >>> X, qid = np.zeros((6, 1)), ["a", "a", "b", "b", "b", "c"]
    >>> [test.tolist() for _, test in rc.model_selection.QueryKFold(3).split(X, qid=qid)]
    [[0, 1], [2, 3, 4], [5]]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = False,
        stratify: bool = False,
        random_state: Seed | None = None,
    ) -> None:
        check_integer(n_splits, "n_splits", 2)
        check_flag(shuffle, "shuffle")
        check_flag(stratify, "stratify")
        if random_state is not None and not shuffle:
            raise ValueError("random_state requires shuffle=True; got False")
        self.n_splits = int(n_splits)
        self.shuffle = shuffle
        self.stratify = stratify
        self.random_state = random_state

    def split(
        self,
        X: object,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        qid: ArrayLike | str | None = None,
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Generate training and test rows for each fold.

        Parameters
        ----------
        X : array-like, shape (n_samples, ...)
            Only its length is used; a DataFrame may have the queries in a column named "qid".
        y : array-like of numbers, shape (n_samples,), optional
            Labels, for ``stratify``.
        groups, qid : array-like, shape (n_samples,), or str
            The query of each row, under either name; a string names a column of a DataFrame X.

        Yields
        ------
        train, test : ndarray of int64
            Row numbers in ascending order.

        Raises
        ------
        ValueError
            Without queries, with fewer queries than folds, or without labels to stratify by.
        """
        if qid is None:
            qid = groups
        if qid is None or isinstance(qid, str):
            _, qid = take_queries(X, qid, None)
        n = n_rows_of(X)
        if qid is None:
            raise ValueError(
                "QueryKFold requires the query of each row: split(X, y, qid=qid). In a search call "
                "sklearn.set_config(enable_metadata_routing=True) and fit(X, y, qid=qid), "
                "or pass X as a DataFrame with a column named 'qid'"
            )
        queries = group_rows(qid, n)
        fold_of = self._folds(queries, y)
        fold_of_row = fold_of[query_numbers(queries)]
        for fold in range(self.n_splits):
            test = fold_of_row == fold
            yield np.flatnonzero(~test), np.flatnonzero(test)

    def _folds(self, queries: Queries, y: Any) -> NDArray[np.int64]:
        """Return the fold of each query."""
        n = queries.ids.size
        if n < self.n_splits:
            raise ValueError(f"n_splits={self.n_splits} must be at most the number of queries, {n}")
        order = np.arange(n)
        if self.shuffle:
            as_generator(self.random_state).shuffle(order)
        if self.stratify:
            if y is None:
                raise ValueError("stratify=True requires y; got None")
            means = query_means(as_relevance(y, int(queries.bounds[-1])), queries)
            order = order[np.argsort(means[order], kind="stable")]
        folds = np.empty(n, dtype=np.int64)
        folds[order] = np.arange(n) % self.n_splits
        return folds

    def get_n_splits(
        self, X: object | None = None, y: object = None, groups: object = None, **_: Any
    ) -> int:
        """Return the number of folds; the arguments have no effect."""
        return self.n_splits

    def get_metadata_routing(self) -> Any:
        """Return the routing request for ``qid``."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        for name in ("qid", "groups"):
            request.split.add_request(param=name, alias=True)
        return request

    def __repr__(self) -> str:
        """Return the source text of the constructor call."""
        return (
            f"QueryKFold({self.n_splits}, shuffle={self.shuffle}, stratify={self.stratify}, "
            f"random_state={self.random_state!r})"
        )


@dataclass(frozen=True)
class QueryScores(Tabular):
    """Result of `cross_validate_queries`; displays as a table in a notebook.

    Attributes
    ----------
    names : list of str
        Names of the measures.
    values : ndarray of float64, shape (n_folds, n_metrics)
        Values on the held-out folds; losses are not negated.
    fit_seconds : ndarray of float64, shape (n_folds,)
    estimators : list
        Fitted models, one per fold.
    """

    names: list[str]
    values: NDArray[np.float64]
    fit_seconds: NDArray[np.float64]
    estimators: list[Any]

    def mean(self) -> dict[str, float]:
        """Return the mean of each measure over folds."""
        return dict(zip(self.names, self.values.mean(axis=0).tolist(), strict=True))

    def table(self) -> Table:
        """Return the table with a row for each fold and for the mean."""
        caption = "on the queries of each fold, fitted to the other folds"
        return fold_table(self.names, self.values, caption)

    _table = table


@warns_once
def cross_validate_queries(
    estimator: BaseEstimator,
    X: RowsLike,
    y: ArrayLike,
    qid: ArrayLike | str | None = None,
    *,
    metrics: str | Sequence[str] = ("ndcg@10", "map"),
    cv: Folds = 5,
    convention: str | Convention | None = None,
    fit_params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
) -> QueryScores:
    """Cross-validate a ranker over whole queries.

    Parameters
    ----------
    estimator : estimator
        A ranker, an ordinal learner, a pipeline that ends in one, or anything with ``fit`` and
        ``predict``. Steps that request ``qid`` receive it. A ranker of LightGBM or XGBoost, alone
        or at the end of a pipeline, receives ``group``, with the rows of a query together.
    X : array-like or scipy sparse, shape (n_samples, n_features)
        A DataFrame may have the queries in a column named "qid".
    y : array-like, shape (n_samples,)
        Labels: numbers; or words in the order of ``classes`` of the learner or of an ordered
        categorical.
    qid : array-like, shape (n_samples,), or str
        The query of each row, or the name of a column of a DataFrame X.
    metrics : str or sequence of str, default=("ndcg@10", "map")
        Names of measures of `rankcore.metrics.evaluate`, each with at most one cut-off.
    cv : int, splitter or iterable, default=5
        Number of folds of a `QueryKFold`, a splitter, or pairs of training and test rows.
    convention : str or Convention, optional
        Convention of the measures.
    fit_params : dict, optional
        Further arguments of ``fit``; those with the length of X are sliced with the rows.
        ``sample_weight`` may have the weights of queries, in order of first appearance. Rankers
        of LightGBM and XGBoost take only ``sample_weight``.
    n_jobs : int, optional
        Number of processes; None is 1, -1 one per processor.

    Returns
    -------
    QueryScores

    Raises
    ------
    ValueError, TypeError
        If input is invalid, or a fold divides a query.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y, qid = rc.datasets.make_letor(40, 20, random_state=0)
    >>> ranker = rc.PairwisePerceptron(random_state=0)
    >>> scores = rc.model_selection.cross_validate_queries(ranker, X, y, qid, cv=4)
    >>> scores.names, scores.values.shape
    (['ndcg@10', 'map'], (4, 2))
    """
    X, qid = take_queries(X, qid, None)
    if qid is None:
        raise ValueError("cross_validate_queries requires qid, the query of each row; got None")
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    scorers = {name: make_scorer(name, convention=convention) for name in names}
    results = _fit_folds(
        estimator, X, as_series(y), qid, scoring=scorers, cv=cv, params=fit_params, n_jobs=n_jobs
    )
    values = np.column_stack(
        [results[f"test_{name}"] * (1 if greater_is_better(name) else -1) for name in names]
    )
    return QueryScores(names, values, results["fit_time"], results["estimator"])


def _fit_folds(
    estimator: Any,
    X: Any,
    y: Any,
    qid: Any,
    *,
    scoring: Any,
    cv: Folds,
    params: dict[str, Any] | None,
    n_jobs: int | None,
) -> dict[str, Any]:
    """Fit and score on folds of whole queries, as `sklearn.model_selection.cross_validate`."""
    import sklearn
    from sklearn.model_selection import cross_validate

    queries = group_rows(qid, n_rows_of(X))
    numbers = query_numbers(queries)
    arguments = dict(params or {})
    if arguments.get("sample_weight") is not None:
        arguments["sample_weight"] = weights_of_rows(arguments["sample_weight"], queries)
    splitter = QueryKFold(int(cv)) if isinstance(cv, Integral) else check_cv(cv)
    with warnings.catch_warnings():  # divided queries are detected below
        warnings.filterwarnings("ignore", message="The groups parameter is ignored")
        folds = [*whole_folds(splitter.split(X, y, numbers), queries, numbers)]
    with sklearn.config_context(enable_metadata_routing=True):
        fits: dict[str, Any] = cross_validate(
            _by_qid(estimator),
            X,
            y,
            scoring=scoring,
            cv=folds,
            params={"qid": numbers, **arguments},
            n_jobs=n_jobs,
            return_estimator=True,
            return_indices=True,
            error_score="raise",
        )
    fits["estimator"] = [*map(_as_given, fits["estimator"])]
    return fits


class _ByGroup(BaseEstimator):
    """A ranker that takes the sizes of queries as ``group``, for callers that have ``qid``."""

    __metadata_request__fit: ClassVar[dict[str, Any]] = {"qid": True, "sample_weight": True}

    def __init__(self, ranker: Any) -> None:
        self.ranker = ranker

    def fit(self, X: Any, y: Any, *, qid: Any, sample_weight: Any = None) -> Self:
        """Fit the ranker to the rows, sorted by query."""
        queries = group_rows(qid, n_rows_of(X))
        more = {}
        if sample_weight is not None:
            weights = np.asarray(sample_weight)
            if queries.rows is not None:
                weights = weights[queries.rows]
            # XGBoost weighs queries, LightGBM rows.
            by_query = type(self.ranker).__module__.startswith("xgboost")
            more["sample_weight"] = weights[queries.bounds[:-1]] if by_query else weights
        y = np.asarray(as_grades(y, None)[0])
        if queries.rows is not None:
            X, y = take_rows(X, queries.rows), y[queries.rows]
        self.fitted_ = clone(self.ranker).fit(X, y, group=np.diff(queries.bounds), **more)
        return self

    def predict(self, X: Any) -> Any:
        """Return the scores of the fitted ranker."""
        return self.fitted_.predict(X)


def _by_qid(estimator: Any) -> Any:
    """Wrap a ranker that takes ``group``, alone or in a pipeline, so that it takes ``qid``."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return Pipeline([*estimator.steps[:-1], (name, _by_qid(last))])
    takes_qid = isinstance(estimator, Ranker) or "group" not in signature(estimator.fit).parameters
    return estimator if takes_qid else _ByGroup(estimator)


def _as_given(fitted: Any) -> Any:
    """Undo `_by_qid` in a fitted estimator."""
    if isinstance(fitted, Pipeline):
        name, last = fitted.steps[-1]
        return Pipeline([*fitted.steps[:-1], (name, _as_given(last))])
    return fitted.fitted_ if isinstance(fitted, _ByGroup) else fitted


def _ranks_documents(estimator: Any) -> bool:
    """Return whether an estimator, or the last step of a pipeline, learns from queries."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return isinstance(estimator, Ranker) or isinstance(_by_qid(estimator), _ByGroup)


@warns_once
def cross_val_predict(
    estimator: BaseEstimator,
    X: RowsLike,
    y: ArrayLike,
    *,
    qid: ArrayLike | str | None = None,
    groups: ArrayLike | None = None,
    cv: Folds | None = None,
    n_jobs: int | None = None,
    params: dict[str, Any] | None = None,
    method: str = "predict",
) -> NDArray[Any]:
    """Predict each row by a model that was not fitted to it, with unchanged labels.

    As `sklearn.model_selection.cross_val_predict`, which however replaces strings by numbers in
    alphabetical order, so that the order of the ranks is lost. Queries stay whole: the scores of
    several rankers are comparable by `rankcore.metrics.compare`, query by query.

    Parameters
    ----------
    estimator : estimator
        A classifier, an ordinal learner, a ranker (also of LightGBM or XGBoost, as in
        `cross_validate_queries`), or a pipeline or search around one.
    X : array-like or scipy sparse, shape (n_samples, n_features)
        For a ranker, a DataFrame may have the queries in a column named "qid".
    y : array-like, shape (n_samples,)
        Labels.
    qid : array-like, shape (n_samples,), or str, optional
        The query of each row, or the name of a column of a DataFrame X. Required for rankers.
    groups : array-like, shape (n_samples,), optional
        Groups for the splitter, without queries.
    cv : int, splitter or iterable, optional
        Folds that hold out each row exactly once; by default five: of whole queries (`QueryKFold`),
        or without queries stratified by label.
    n_jobs : int, optional
        Number of processes; None is 1, -1 one per processor.
    params : dict, optional
        Further arguments of ``fit``; those with the length of X are sliced with the rows.
    method : str, default="predict"
        Method of the fitted models: ``"predict"``, ``"predict_proba"``, ``"decision_function"`` ...
        With queries, ``"predict"`` is the score that orders documents: that of ``project`` for an
        ordinal learner.

    Returns
    -------
    ndarray, shape (n_samples,) or (n_samples, n_classes)
        Results by row. Columns are those of ``classes_`` of a model fitted to all rows; a class
        that a model lacks has probability 0, or in other methods the minimum finite number.

    Raises
    ------
    ValueError
        If a row is not held out exactly once, results of the models have different forms, a
        ranker has no queries, or a fold divides one.

    Examples
    --------
    >>> import numpy as np, rankcore as rc
    >>> X = np.linspace(-1, 1, 90).reshape(-1, 1)
    >>> y = np.repeat(["bad", "ok", "good"], 30)
    >>> learner = rc.CalibratedOrdinal(classes=["bad", "ok", "good"])
    >>> table = rc.model_selection.cross_val_predict(learner, X, y, method="predict_proba")
    >>> table[[0, 45, 89]].argmax(axis=1)  # columns: bad, good, ok
    array([0, 2, 1])

    Are two rankers different on the same held-out queries?

    >>> X, y, qid = rc.datasets.make_letor(40, 20, random_state=0)
    >>> rankers = {"svm": rc.RankSVM(), "boost": rc.RankBoost(20)}
    >>> scores = {
    ...     name: rc.model_selection.cross_val_predict(ranker, X, y, qid=qid)
    ...     for name, ranker in rankers.items()
    ... }
    >>> [one.measure for one in rc.metrics.compare(scores, y, qid=qid)]
    ['ndcg@10', 'map']
    """
    import sklearn
    from sklearn.model_selection import cross_validate

    y = as_series(y)
    if qid is not None or _ranks_documents(estimator):
        X, qid = take_queries(X, qid, None)
        if qid is None:
            raise ValueError(
                "cross_val_predict requires qid= for a ranker, the query of each row; got None"
            )
        if groups is not None:
            raise ValueError("groups must be None with qid, as folds are of whole queries")
        queries = query_numbers(group_rows(qid, n_rows_of(X)))
        fits = _fit_folds(
            estimator,
            X,
            y,
            qid,
            scoring=_NoScore(),
            cv=5 if cv is None else cv,
            params=params,
            n_jobs=n_jobs,
        )
    else:
        fits = cross_validate(
            estimator,
            X,
            y,
            groups=groups,
            scoring=_NoScore(),
            cv=cv,
            n_jobs=n_jobs,
            params=params,
            return_estimator=True,
            return_indices=True,
            error_score="raise",
        )
    parts = fits["indices"]["test"]
    models = fits["estimator"]
    rows = np.concatenate(parts)
    n = n_rows_of(X)
    if not np.array_equal(np.sort(rows), np.arange(n)):
        raise ValueError("cv must hold out each row in one part; use cross_validate for others")
    results = []
    for model, part in zip(models, parts, strict=True):
        held_out = take_rows(X, part)
        if qid is not None and method == "predict":
            with sklearn.config_context(enable_metadata_routing=True):
                results.append(np.asarray(ranking_scores(model, held_out, queries[part])))
        else:
            results.append(np.asarray(getattr(model, method)(held_out)))
    if method != "predict" and any(result.ndim == 2 for result in results):
        results = _same_columns(results, models, method)
    table = np.concatenate(results)
    return table[np.argsort(rows)]


class _NoScore:
    """A scorer for calls of `cross_validate` that need only the models."""

    def __call__(self, estimator: Any, X: Any, y: Any, **_: Any) -> float:
        return 0.0

    def get_metadata_routing(self) -> Any:
        """Return the routing request for ``qid``, which learners without queries do not take."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.score.add_request(param="qid", alias=True)
        return request


def _same_columns(results: list[Any], models: list[Any], method: str) -> list[Any]:
    """Give all tables the same columns: a class of any model each."""
    classes = [model.classes_ for model in models]
    all_classes = np.unique(np.concatenate(classes))
    if all(own_classes.size == all_classes.size for own_classes in classes):
        return results
    extended = []
    for table, of_model in zip(results, classes, strict=True):
        if table.ndim == 1:
            raise ValueError(
                f"the training rows of a fold have only the labels {of_model.tolist()} of "
                f"{all_classes.tolist()}, for which {method} has one column: pass all labels as "
                "classes= "
                "of the learner"
            )
        least = 0.0 if method == "predict_proba" else np.finfo(table.dtype).min
        whole = np.full((len(table), all_classes.size), least)
        whole[:, np.searchsorted(all_classes, of_model)] = table
        extended.append(whole)
    return extended
