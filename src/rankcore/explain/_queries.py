"""Explanation of the top of a query's ranking."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from rankcore._core.arguments import RowsLike
from rankcore._core.explained_model import ExplainedModel
from rankcore._core.ids import as_column
from rankcore._core.inputs import n_rows_of, take_rows
from rankcore._core.numbers import Floats, largest
from rankcore._core.params import check_count
from rankcore._core.queries import group_rows, take_queries
from rankcore.explain._results import ExplanationResult, signed, typical
from rankcore.metrics.tables import Table


@dataclass(frozen=True, repr=False)
class QueryExplanation(ExplanationResult):
    """Ranking of the documents of a query, with contributions.

    Attributes
    ----------
    query : object
        Id of the query; None without qid.
    rows : ndarray of int, shape (n_documents,)
        Rows of X, best first; equal scores in the order of X.
    names : list of str
        Names of the documents.
    labels : ndarray, shape (n_documents,), or None
        Given labels.
    scores : ndarray of float64, shape (n_documents,)
    feature_names : list of str
    values : ndarray, shape (n_documents, n_features)
        float64, or objects if some features are categories.
    contributions : ndarray of float64, shape (n_documents, n_features)
        Contribution of each feature to a document's score, relative to the mean of the query.
    top_k : int
    decided : ndarray of float64, shape (n_features,)
        The mean contribution in the first k documents minus that in the other documents; the sum
        over features is the difference of the mean scores.
    categorical : list of int
        Features whose values are categories.
    score_name : str
        What the score is; of `OrdinalBoost` the log-odds of the highest rank against the lowest.
    """

    query: Any
    rows: NDArray[np.int64]
    names: list[str]
    labels: NDArray[Any] | None
    scores: Floats
    feature_names: list[str]
    values: NDArray[Any]
    contributions: Floats
    top_k: int
    decided: Floats
    categorical: list[int]
    score_name: str = "score"

    _plot = "plot_query"
    _strongest = 3  # features named for each document

    def __repr__(self) -> str:
        return f"<QueryExplanation: {self.rows.size} documents, top {self.top_k}>"

    @property
    def title(self) -> str:
        """Name of the query, for titles."""
        return "the query" if self.query is None else f"query {self.query}"

    def headline(self) -> str:
        """Summarise the difference between the top and the rest."""
        gap = self.scores[: self.top_k].mean() - self.scores[self.top_k :].mean()
        return (
            f"{self.title}: {self.rows.size} documents; the mean {self.score_name} of the first "
            f"{self.top_k} is {gap:.4f} above that of the others"
        )

    def tables(self) -> list[Table]:
        """Tabulate the documents, and features by their effect on the top of the ranking."""
        k = self.top_k
        listed = largest(self.decided, self._listed)
        features = [
            (
                self.feature_names[j],
                typical(self.values[:k, j], j in self.categorical),
                typical(self.values[k:, j], j in self.categorical),
                signed(self.decided[j]),
            )
            for j in listed
        ]
        others = np.flatnonzero(self.decided).size - len(listed)
        if others:
            rest = float(self.decided.sum() - self.decided[listed].sum())
            features.append((f"{others} others", "", "", signed(rest)))
        what = "mean or most frequent" if self.categorical else "mean"
        headings = ["feature", f"{what}, top {k}", f"{what}, others", "adds"]
        top = Table(headings, features, f"contributions to the first {k} minus the others")
        documents = []
        for place, name in enumerate(self.names[: max(k, self._listed)]):
            parts = self.contributions[place]
            strongest = ", ".join(
                f"{self.feature_names[j]} {signed(parts[j])}"
                for j in largest(parts, self._strongest)
            )
            label = [] if self.labels is None else [str(self.labels[place])]
            documents.append((str(place + 1), name, *label, f"{self.scores[place]:.4f}", strongest))
        label = [] if self.labels is None else ["label"]
        more = self.rows.size - len(documents)
        caption = f"and {more} more" if more else "all documents"
        headings = ["place", "document", *label, "score", "relative to the mean of the query"]
        return [top, Table(headings, documents, caption, n_names=2)]


def query(
    model: BaseEstimator,
    X: RowsLike,
    qid: ArrayLike | str | None = None,
    *,
    which: Hashable | None = None,
    y: ArrayLike | None = None,
    docid: ArrayLike | None = None,
    top_k: int = 10,
    feature_names: Sequence[str] | None = None,
) -> QueryExplanation:
    """Explain which features decided the top of a query's ranking.

    Parameters
    ----------
    model : estimator
        A fitted learner with ``contributions``, or a pipeline or search that ends in one. Features
        are then the columns of its input, and the words of texts: the columns that steps make of
        one column, such as a category, are one feature.
    X : array-like, scipy sparse or frame, shape (n, n_features)
        The documents of one query, or of several.
    qid : array-like, shape (n,), or str, optional
        The query of each row, or a column of a frame X. None: all rows are of one query.
    which : object, optional
        The query to explain; required if there are several.
    y : array-like, shape (n,), optional
        Labels to show.
    docid : array-like, shape (n,), optional
        Names of documents. None: their rows in X, from 0.
    top_k : int
        Number of documents in the top; at most all but one.
    feature_names : sequence of str, optional
        One name for each feature; None: the names of the input's columns.

    Returns
    -------
    QueryExplanation

    Raises
    ------
    TypeError
        If the score is not a sum over features, or a step mixes columns.
    ValueError
        If there is no such query, it has one document, or on bad input.

    Notes
    -----
    The background of contributions are the documents of the query. A feature that is
    constant in the query contributes 0, because it cannot order them.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y, qid = rc.datasets.make_letor(20, 10, random_state=0)
    >>> model = rc.RankBoost(20).fit(X, y, qid=qid)
    >>> found = rc.explain.query(model, X, qid, which=qid[0], y=y, top_k=3)
    >>> gap = found.scores[:3].mean() - found.scores[3:].mean()
    >>> bool(abs(found.decided.sum() - gap) < 1e-12)
    True
    """
    explained = ExplainedModel(model, feature_names)
    check_count(top_k, "top_k")
    X, qid = take_queries(X, qid, None, explained.query_column)
    rows = _rows_of_query(qid, which, n_rows_of(X))
    if rows.size < 2:
        raise ValueError(f"a query of one document has no order to explain; got {rows.size} row")
    for name, values in {"y": y, "docid": docid}.items():
        if values is not None and n_rows_of(values) != n_rows_of(X):
            raise ValueError(
                f"X and {name} must have the same length; got {n_rows_of(X)} and "
                f"{n_rows_of(values)}"
            )
    documents = take_rows(X, rows)
    parts, base = explained.dense(documents, documents)
    scores = base + parts.sum(axis=1)
    order = np.argsort(-scores, kind="stable")
    k = min(int(top_k), rows.size - 1)
    rows, parts = rows[order], parts[order]
    names = rows if docid is None else as_column(docid, "docid")[rows]
    return QueryExplanation(
        which if which is not None or qid is None else np.asarray(qid)[rows[0]],
        rows,
        [*map(str, names.tolist())],
        None if y is None else np.asarray(y)[rows],
        scores[order],
        explained.names,
        explained.values(documents)[order],
        parts,
        k,
        parts[:k].mean(axis=0) - parts[k:].mean(axis=0),
        [j for j, feature in enumerate(explained.features) if feature.is_categorical],
        explained.score_name(),
    )


def _rows_of_query(qid: Any, which: Any, n: int) -> NDArray[np.int64]:
    if qid is None:
        if which is not None:
            raise ValueError(f"which={which!r} names a query, which requires qid; got qid=None")
        return np.arange(n)
    queries = group_rows(qid, n)
    ids = queries.ids.tolist()
    if which is None:
        if len(ids) > 1:
            raise ValueError(
                f"qid has {len(ids)} queries, among them {', '.join(map(repr, ids[:3]))}: pass "
                "which= one to explain"
            )
        return np.arange(n)
    if which not in ids:
        raise ValueError(f"there is no query {which!r}; qid has {', '.join(map(repr, ids[:10]))}")
    i = ids.index(which)
    places = np.arange(queries.bounds[i], queries.bounds[i + 1])
    return places if queries.rows is None else queries.rows[places]
