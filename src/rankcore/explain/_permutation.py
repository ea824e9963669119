"""Permutation importance of features, by the change of a measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from rankcore._core.arguments import RowsLike
from rankcore._core.explained_model import ExplainedModel
from rankcore._core.frames import frame_of
from rankcore._core.inputs import n_rows_of
from rankcore._core.labels import as_labels, encode, words_of
from rankcore._core.numbers import Floats
from rankcore._core.params import check_count, check_option, check_real
from rankcore._core.queries import Queries, group_rows, take_queries
from rankcore.explain._results import ExplanationResult, signed
from rankcore.metrics.evaluation import evaluate
from rankcore.metrics.names import greater_is_better
from rankcore.metrics.scorers import ranking_scores
from rankcore.metrics.significance import bootstrap_interval
from rankcore.metrics.tables import Table

if TYPE_CHECKING:
    from pandas import DataFrame

SCOPES = ("within", "among")
# The measure of predicted ranks, which is a mean over rows; all others are means over queries.
RANK_LOSS = "rank_loss"


@dataclass(frozen=True, repr=False)
class PermutationImportance(ExplanationResult):
    """Change of a measure when a feature is shuffled.

    Attributes
    ----------
    feature_names : list of str
    changes : ndarray of float64, shape (n_features,)
        The measure with the feature shuffled minus that without shuffling: mean over queries (for
        ``rank_loss`` over rows) and draws.
    low, high : ndarray of float64, shape (n_features,)
        Confidence interval of the change, over queries or rows (bootstrap, percentiles).
    per_query : ndarray of float64, shape (n_features, n_queries), or None
        Mean change over draws in each query; None for ``rank_loss``.
    n_units : int
        Number of queries or rows that the measure is a mean of.
    measure : str
    baseline : float
        The measure without shuffling.
    scope : {"within", "among"}
        Whether values were shuffled within each query, or among all rows; without queries "among".
    n_repeats : int
    confidence_level : float
    """

    feature_names: list[str]
    changes: Floats
    low: Floats
    high: Floats
    per_query: Floats | None
    n_units: int
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
        is_loss = self.measure == RANK_LOSS or not greater_is_better(self.measure)
        harm = self.changes if is_loss else -self.changes
        return np.argsort(-harm, kind="stable")

    @property
    def where(self) -> str:
        """How values were shuffled, for captions."""
        return "within queries" if self.scope == "within" else "among all rows"

    @property
    def used(self) -> NDArray[np.bool_]:
        """Features whose shuffling changed the measure of a query or row."""
        return (self.changes != 0) | (self.low != 0) | (self.high != 0)

    def headline(self) -> str:
        """Write a caption: the measure, and how values were shuffled."""
        return (
            f"{self.measure} is {self.baseline:.4f}; its change when a feature is shuffled "
            f"{self.where}, mean of {self.n_repeats} draws"
        )

    def to_frame(self) -> DataFrame:
        """Convert to a pandas DataFrame, one row per feature, in descending order of importance.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed.
        """
        import pandas

        columns = {"change": self.changes, "low": self.low, "high": self.high}
        table = pandas.DataFrame(columns, pandas.Index(self.feature_names, name="feature"))
        return table.iloc[self.order]

    def tables(self) -> list[Table]:
        """Tabulate features in descending order of importance."""
        listed = self.order[: self._listed]
        rows = [
            (
                self.feature_names[j],
                signed(self.changes[j]),
                f"[{self.low[j]:+.4f}, {self.high[j]:+.4f}]",
            )
            for j in listed
        ]
        level = f"{self.confidence_level:.0%} interval"
        left = self.changes.size - len(rows)
        units = "rows" if self.per_query is None else "queries"
        caption = f"intervals over {self.n_units} {units}"
        caption += f"; {left} features that matter less are not listed" if left else ""
        return [Table(("feature", "change", level), rows, caption)]


def permutation_importance(
    model: BaseEstimator,
    X: RowsLike,
    y: ArrayLike,
    *,
    qid: ArrayLike | str | None = None,
    metric: str | None = None,
    scope: Literal["within", "among"] = "within",
    n_repeats: int = 5,
    features: Sequence[int] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    feature_names: Sequence[str] | None = None,
    random_state: int = 0,
) -> PermutationImportance:
    """Compute the change of a measure when the values of a feature are shuffled.

    It supports every learner that predicts ranks or orders rows, including kernels and votes.

    Parameters
    ----------
    model : estimator
        A fitted learner of this package, or a pipeline or search that ends in one. Features are
        then the columns of its input, and the words of texts.
    X : array-like, scipy sparse or frame, shape (n, n_features)
        Rows; held-out ones measure importance on unseen data.
    y : array-like, shape (n,)
        True labels: numbers, or those of the fit, which count as ranks from 0 if they are text.
    qid : array-like, shape (n,), or str, optional
        The query of each row, or a column of a frame X. None: all rows are of one query.
    metric : str, optional
        A measure of `rankcore.metrics.evaluate`, or, for ordinal learners, "rank_loss": the mean
        distance of `predict` from the true rank. None: "rank_loss" for an ordinal learner without
        ``qid``, else "ndcg@10".
    scope : {"within", "among"}
        Shuffle values within each query, which measures the effect of the feature on the order of
        documents; or among all rows, which includes its effect as a property of queries, for
        learners with interactions.
    n_repeats : int
        Draws per feature.
    features : sequence of int, optional
        Numbers of the features to shuffle; None: all.
    confidence_level : float
    n_resamples : int
        Bootstrap samples of queries or rows.
    feature_names : sequence of str, optional
        One name for each feature; None: the names of the input's columns.
    random_state : int
        Seed. The permutation of feature j in draw r does not depend on the other features.

    Returns
    -------
    PermutationImportance

    Raises
    ------
    ValueError, TypeError
        On bad input, or if a step mixes columns: `sklearn.inspection.permutation_importance`
        shuffles the columns of any pipeline, by ``model.score``.

    Notes
    -----
    ``n_repeats`` predictions per feature that the model uses. Draws are averaged within
    queries (for ``rank_loss`` within rows) before these are resampled, so the interval is over
    queries or rows.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y, qid = rc.datasets.make_letor(30, 10, random_state=0)
    >>> model = rc.RankSVM().fit(X, y, qid=qid)
    >>> found = rc.explain.permutation_importance(model, X, y, qid=qid)
    >>> bool((found.changes <= found.high).all())
    True
    """
    explained = ExplainedModel(model, feature_names)
    check_option(scope, "scope", SCOPES)
    check_count(n_repeats, "n_repeats")
    check_real(confidence_level, "confidence_level", 1e-6, 1 - 1e-6)
    X, qid = take_queries(X, qid, None, explained.query_column)
    rows = explained.transformed(X)
    n = n_rows_of(rows)
    d = len(explained.features)
    ranks = getattr(explained.learner, "ranks_", None)
    if metric is None:
        metric = "ndcg@10" if ranks is None or qid is not None else RANK_LOSS
    queries = group_rows(qid, n)
    wanted = np.arange(d) if features is None else np.asarray(features, dtype=np.int64)
    if wanted.ndim != 1 or not ((wanted >= 0) & (wanted < d)).all() or not wanted.size:
        raise ValueError(f"features must be column numbers from 0 to {d - 1}; got {features!r}")
    measured = _measure(explained, metric, y, qid, n)
    whole = measured(rows)
    defined = ~np.isnan(whole)
    if not defined.any():
        raise ValueError(f"{metric} is defined in no query: each lacks relevant documents")
    columns = Columns(rows)
    n_units = int(defined.sum())
    by_query = metric != RANK_LOSS
    per_query = np.zeros((wanted.size, n_units)) if by_query else None
    used = explained.used
    resampled = np.random.default_rng([int(random_state), d])
    changes, low, high = np.zeros((3, wanted.size))
    for i, j in enumerate(wanted.tolist()):
        if not used[j]:
            continue  # its values do not affect predictions
        unit_changes = np.zeros(n_units)
        for r in range(n_repeats):
            rng = np.random.default_rng([int(random_state), j, r])
            source = _permutation(queries, n, scope, rng)
            shuffled = measured(columns.permuted(explained.features[j].columns, source))
            unit_changes += (shuffled - whole)[defined] / n_repeats
        low[i], high[i] = bootstrap_interval(
            unit_changes, int(n_resamples), float(confidence_level), resampled
        )
        changes[i] = unit_changes.mean()
        if per_query is not None:
            per_query[i] = unit_changes
    return PermutationImportance(
        [explained.names[j] for j in wanted.tolist()],
        changes,
        low,
        high,
        per_query,
        n_units,
        metric,
        float(whole[defined].mean()),
        "among" if qid is None else scope,
        int(n_repeats),
        float(confidence_level),
    )


def _measure(
    explained: ExplainedModel, metric: str, y: Any, qid: Any, n: int
) -> Callable[[Any], Floats]:
    """Return a function that measures preprocessed rows, by query or by row."""
    learner = explained.learner
    ranks: Any = getattr(learner, "ranks_", None)
    words = words_of(learner)
    truth = y if words is None else encode(as_labels(y, n)[0], words)
    if metric != RANK_LOSS:

        def by_query(X: Any) -> Floats:
            scores = ranking_scores(learner, X, qid)
            return evaluate(truth, scores, qid=qid, metrics=[metric]).per_query[metric]

        return by_query
    if ranks is None:
        raise ValueError(
            f'metric="{RANK_LOSS}" requires an ordinal learner, which predicts ranks; got '
            f"{type(learner).__name__}: use a ranking measure, such as ndcg@10"
        )
    true = np.asarray(as_labels(y, n)[0] if words is None else truth, dtype=np.float64)

    def by_row(X: Any) -> Floats:
        predicted = learner.predict(X)
        numbers = predicted if words is None else encode(predicted, words)
        return np.abs(np.asarray(numbers, dtype=np.float64) - true)

    return by_row


def _permutation(
    queries: Queries, n: int, scope: str, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the row from which each row gets its shuffled value."""
    if scope == "among":
        return rng.permutation(n)
    rows = np.arange(n) if queries.rows is None else queries.rows
    number = np.repeat(np.arange(queries.ids.size), np.diff(queries.bounds))
    # A random order within each query: sort by query and random keys.
    source = np.empty(n, dtype=np.int64)
    source[rows] = rows[np.lexsort((rng.random(n), number))]
    return source


class Columns:
    """Copies of rows in which the columns of one feature at a time are permuted."""

    def __init__(self, X: Any) -> None:
        self._X = X
        self._frame = frame_of(X)
        self._by_column: Any = X.tocsc() if hasattr(X, "tocsr") else None

    def permuted(self, columns: list[int], source: NDArray[np.int64]) -> Any:
        """Return the rows, with some columns from other rows."""
        if self._by_column is not None:  # move stored values to other rows of their column
            X = self._by_column.copy()
            to = np.empty(source.size, dtype=X.indices.dtype)
            to[source] = np.arange(source.size, dtype=X.indices.dtype)
            for j in columns:
                first, last = X.indptr[j : j + 2]
                rows = to[X.indices[first:last]]
                order = np.argsort(rows, kind="stable")
                X.indices[first:last] = rows[order]
                X.data[first:last] = X.data[first:last][order]
            return X.tocsr()
        if self._frame is not None:
            return self._frame.permuted(columns, source)
        X = np.array(self._X)
        X[:, columns] = X[source][:, columns]
        return X
