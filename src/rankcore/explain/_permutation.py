"""Permutation importance of features, by the change of a measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from rankcore._core.arguments import RowsLike
from rankcore._core.contributions import used_features
from rankcore._core.inputs import n_rows_of
from rankcore._core.labels import as_labels, encode
from rankcore._core.numbers import Floats
from rankcore._core.params import check_count, check_option, check_real
from rankcore._core.queries import Queries, group_rows
from rankcore._ext.held_signals import raise_signals
from rankcore.explain._subject import Shown, Subject, signed
from rankcore.metrics.evaluation import evaluate
from rankcore.metrics.names import greater_is_better
from rankcore.metrics.scorers import ranking_scores
from rankcore.metrics.significance import bootstrap_interval
from rankcore.metrics.tables import Table
from rankcore.ranking._queries import take_queries

SCOPES = ("within", "among")


@dataclass(frozen=True, repr=False)
class PermutationImportance(Shown):
    """Change of a measure when a feature is shuffled.

    Attributes
    ----------
    feature_names : list of str
    changes : ndarray of float64, shape (n_features,)
        The measure with the feature shuffled minus that without shuffling: mean over queries and
        draws.
    low, high : ndarray of float64, shape (n_features,)
        Confidence interval of the change, over queries (bootstrap, percentiles).
    per_query : ndarray of float64, shape (n_features, n_queries)
        Mean change over draws in each query.
    measure : str
    baseline : float
        The measure without shuffling.
    scope : {"within", "among"}
        Whether values were shuffled within each query, or among all rows.
    n_repeats : int
    confidence_level : float
    """

    feature_names: list[str]
    changes: Floats
    low: Floats
    high: Floats
    per_query: Floats
    measure: str
    baseline: float
    scope: str
    n_repeats: int
    confidence_level: float

    _listed = 20
    _plot = "plot_importances"

    def __repr__(self) -> str:
        return f"<PermutationImportance: {self.measure}, {self.changes.size} features>"

    @property
    def order(self) -> NDArray[np.int64]:
        """Features in descending order of the loss from shuffling them."""
        harm = -self.changes if greater_is_better(self.measure) else self.changes
        return np.argsort(-harm, kind="stable")

    def headline(self) -> str:
        """Caption: the measure, and how values were shuffled."""
        where = "within queries" if self.scope == "within" else "among all rows"
        return (
            f"{self.measure} is {self.baseline:.4f}; its change when a feature is shuffled "
            f"{where}, mean of {self.n_repeats} draws"
        )

    def tables(self) -> list[Table]:
        """Features in descending order of importance."""
        listed = self.order[: self._listed]
        columns = (self.changes[listed], self.low[listed], self.high[listed])
        rows = [
            (self.feature_names[j], signed(change), f"[{low:+.4f}, {high:+.4f}]")
            for j, change, low, high in zip(listed, *columns, strict=True)
        ]
        level = f"{self.confidence_level:.0%} interval"
        left = self.changes.size - len(rows)
        caption = f"intervals over {self.per_query.shape[1]} queries"
        caption += f"; {left} features that matter less are not listed" if left else ""
        return [Table(("feature", "change", level), rows, caption)]


def permutation_importance(
    model: BaseEstimator,
    X: RowsLike,
    y: ArrayLike,
    *,
    qid: ArrayLike | str | None = None,
    metric: str = "ndcg@10",
    scope: Literal["within", "among"] = "within",
    n_repeats: int = 5,
    features: Sequence[int] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    feature_names: Sequence[str] | None = None,
    random_state: int = 0,
) -> PermutationImportance:
    """Compute the change of a ranking measure when the values of a feature are shuffled.

    It supports every learner that orders rows, including kernels and votes.

    Parameters
    ----------
    model : estimator
        A fitted learner of this package, or a pipeline or search that ends in one.
    X : array-like, scipy sparse or frame, shape (n, n_features)
        Rows; held-out ones measure importance on unseen data.
    y : array-like, shape (n,)
        True labels: numbers, or those of the fit, which count as ranks from 0 if they are text.
    qid : array-like, shape (n,), or str, optional
        The query of each row, or a column of a frame X. None: all rows are of one query.
    metric : str
        A measure of `rankcore.metrics.evaluate`.
    scope : {"within", "among"}
        Shuffle values within each query, which measures the effect of the feature on the order of
        documents; or among all rows, which includes its effect as a property of queries, for
        learners with interactions.
    n_repeats : int
        Draws per feature.
    features : sequence of int, optional
        Columns to shuffle; None: all.
    confidence_level : float
    n_resamples : int
        Bootstrap samples of queries.
    feature_names : sequence of str, optional
        None: the names of the model.
    random_state : int
        Seed. The permutation of feature j in draw r does not depend on the other features.

    Returns
    -------
    PermutationImportance

    Raises
    ------
    ValueError, TypeError
        On bad input.

    Notes
    -----
    ``n_repeats`` predictions per feature that the model uses. Draws are averaged within
    queries before queries are resampled, so the interval is over queries.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y, qid = rc.datasets.make_letor(30, 10, random_state=0)
    >>> model = rc.RankSVM().fit(X, y, qid=qid)
    >>> found = rc.explain.permutation_importance(model, X, y, qid=qid)
    >>> bool((found.changes <= found.high).all())
    True
    """
    subject = Subject(model, feature_names)
    check_option(scope, "scope", SCOPES)
    check_count(n_repeats, "n_repeats")
    check_real(confidence_level, "confidence_level", 1e-6, 1 - 1e-6)
    X, qid = take_queries(X, qid, None)
    rows = subject.transformed(X)
    n, d = n_rows_of(rows), subject.inner.n_features_in_
    known = getattr(subject.inner, "ranks_", None)
    if known is not None and known.dtype.kind not in "biuf":
        y = encode(as_labels(y, n)[0], known)
    queries = group_rows(qid, n)
    wanted = np.arange(d) if features is None else np.asarray(features, dtype=np.int64)
    if wanted.ndim != 1 or not ((wanted >= 0) & (wanted < d)).all() or not wanted.size:
        raise ValueError(f"features must be column numbers from 0 to {d - 1}; found {features!r}")

    def measured(X: Any) -> Floats:
        scores = ranking_scores(subject.inner, X, qid)
        return evaluate(y, scores, qid=qid, metrics=[metric]).per_query[metric]

    whole = measured(rows)
    defined = ~np.isnan(whole)
    if not defined.any():
        raise ValueError(f"{metric} is defined in no query: each lacks relevant documents")
    columns = Columns(rows)
    changes = np.zeros((wanted.size, int(defined.sum())))
    used = used_features(subject.scoring, d)
    for i, j in enumerate(wanted.tolist()):
        if not used[j]:
            continue  # its values do not affect scores
        for r in range(n_repeats):
            raise_signals()
            rng = np.random.default_rng([int(random_state), j, r])
            shuffled = measured(columns.permuted(j, _permutation(queries, n, scope, rng)))
            changes[i] += (shuffled - whole)[defined] / n_repeats
    resampled = np.random.default_rng([int(random_state), d])
    intervals = [
        bootstrap_interval(of_feature, int(n_resamples), float(confidence_level), resampled)
        for of_feature in changes
    ]
    low, high = np.array(intervals).T
    return PermutationImportance(
        [subject.names[j] for j in wanted.tolist()],
        changes.mean(axis=1),
        low,
        high,
        changes,
        metric,
        float(whole[defined].mean()),
        scope,
        int(n_repeats),
        float(confidence_level),
    )


def _permutation(
    queries: Queries, n: int, scope: str, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Row from which each row gets its shuffled value."""
    if scope == "among":
        return rng.permutation(n)
    rows = np.arange(n) if queries.rows is None else queries.rows
    number = np.repeat(np.arange(queries.ids.size), np.diff(queries.bounds))
    # A random order within each query: sort by query and random keys.
    source = np.empty(n, dtype=np.int64)
    source[rows] = rows[np.lexsort((rng.random(n), number))]
    return source


class Columns:
    """Copies of rows in which one column at a time is permuted."""

    def __init__(self, X: Any) -> None:
        self._X = X
        self._by_column: Any = X.tocsc() if hasattr(X, "tocsr") else None

    def permuted(self, j: int, source: NDArray[np.int64]) -> Any:
        """The rows, with column j from other rows."""
        if self._by_column is not None:  # move stored values to other rows of their column
            X = self._by_column.copy()
            first, last = X.indptr[j : j + 2]
            to = np.empty(source.size, dtype=X.indices.dtype)
            to[source] = np.arange(source.size, dtype=X.indices.dtype)
            rows = to[X.indices[first:last]]
            order = np.argsort(rows, kind="stable")
            X.indices[first:last] = rows[order]
            X.data[first:last] = X.data[first:last][order]
            return X.tocsr()
        if hasattr(self._X, "iloc"):
            X = self._X.copy()
            X.isetitem(j, self._X.iloc[source, j].to_numpy())
            return X
        if hasattr(self._X, "with_columns"):  # polars
            name = self._X.columns[j]
            return self._X.with_columns(self._X[name].gather(source).alias(name))
        X = np.array(self._X)
        X[:, j] = X[source, j]
        return X
