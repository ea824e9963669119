"""Global importance of features, by their contributions to scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from rankcore._core.arguments import RowsLike
from rankcore._core.explained_model import ExplainedModel
from rankcore._core.inputs import n_rows_of, take_rows
from rankcore._core.numbers import Floats, largest
from rankcore._core.queries import group_rows, take_queries
from rankcore.explain._results import ExplanationResult
from rankcore.metrics.tables import Table

if TYPE_CHECKING:
    from pandas import DataFrame

# Rows of the background for trees with interactions: each row is compared with each of them.
_BACKGROUND = 100
# Maximum number of contributions in memory.
_VALUES = 2**24


@dataclass(frozen=True, repr=False)
class GlobalImportance(ExplanationResult):
    """Mean absolute contribution of each feature to the scores.

    Attributes
    ----------
    feature_names : list of str
    importances : ndarray of float64, shape (n_features,)
        Mean absolute contribution over rows.
    n_rows : int
    per_query : bool
        Whether rows were compared only with those of their query.
    """

    feature_names: list[str]
    importances: Floats
    n_rows: int
    per_query: bool

    _listed = 20
    _plot = "plot_importances"

    def __repr__(self) -> str:
        used = np.count_nonzero(self.importances)
        return f"<GlobalImportance: {used} of {self.importances.size} features>"

    def headline(self) -> str:
        """Count the features with nonzero importance."""
        used = np.count_nonzero(self.importances)
        return f"{used} of {self.importances.size} features affect the scores of {self.n_rows} rows"

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

        table = pandas.DataFrame(
            {"importance": self.importances}, pandas.Index(self.feature_names, name="feature")
        )
        return table.sort_values("importance", ascending=False, kind="stable")

    def tables(self) -> list[Table]:
        """Tabulate features in descending order of importance."""
        total = self.importances.sum() or 1.0
        listed = largest(self.importances, self._listed)
        sizes = [(self.feature_names[j], self.importances[j]) for j in listed]
        others = np.count_nonzero(self.importances) - len(listed)
        if others:
            sizes.append((f"{others} others", total - self.importances[listed].sum()))
        rows = [(name, f"{size:.4g}", f"{size / total:.1%}") for name, size in sizes]
        compared = "the other rows of its query" if self.per_query else "the background"
        caption = f"mean absolute contribution; each row is compared with {compared}"
        return [Table(("feature", "importance", "share"), rows, caption)]


def global_importance(
    model: BaseEstimator,
    X: RowsLike,
    *,
    qid: ArrayLike | str | None = None,
    background: RowsLike | None = None,
    feature_names: Sequence[str] | None = None,
    random_state: int = 0,
) -> GlobalImportance:
    """Compute the mean absolute contribution of each feature; comparable between all learners.

    Parameters
    ----------
    model : estimator
        A fitted learner with ``contributions``, or a pipeline or search that ends in one. Features
        are then the columns of its input, and the words of texts: the columns that steps make of
        one column, such as a category, are one feature.
    X : array-like, scipy sparse or frame, shape (n, n_features)
        Rows of training or other data.
    qid : array-like, shape (n,), or str, optional
        The query of each row, or a column of a frame X. Rows are then compared with those of their
        query: a feature that is constant in a query contributes 0 there, because it cannot
        order the documents.
    background : array-like or scipy sparse, shape (n_background, n_features), optional
        Rows to compare with, if there is no ``qid``. None: the rows themselves; for trees with
        interactions, a random sample of at most 100.
    feature_names : sequence of str, optional
        One name for each feature; None: the names of the input's columns.
    random_state : int
        Seed of the sample.

    Returns
    -------
    GlobalImportance

    Raises
    ------
    TypeError
        If the score is not a sum over features, or a step mixes columns.
    ValueError
        On bad input, or both ``qid`` and ``background``.

    Notes
    -----
    The importance of a feature is its mean absolute contribution to the scores of these rows,
    relative to the mean of the background, on the scale of scores. In contrast,
    ``feature_importances_`` of boosted learners are shares of the training gain.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y, qid = rc.datasets.make_letor(30, 10, random_state=0)
    >>> model = rc.RankSVM().fit(X, y, qid=qid)
    >>> rc.explain.global_importance(model, X, qid=qid).importances.shape
    (136,)
    """
    explained = ExplainedModel(model, feature_names)
    X, qid = take_queries(X, qid, None, explained.query_column)
    n = n_rows_of(X)
    if qid is not None:
        if background is not None:
            raise ValueError("qid and background exclude each other: rows have one background")
        queries = group_rows(qid, n)
        sums = np.zeros(len(explained.names))
        for first, last in pairwise(queries.bounds.tolist()):
            places = np.arange(first, last)
            rows = take_rows(X, places if queries.rows is None else queries.rows[places])
            sums += np.abs(explained.dense(rows, rows)[0]).sum(axis=0)
        return GlobalImportance(explained.names, sums / n, n, True)
    if background is None:
        background = X
        if not explained.additive and n > _BACKGROUND:
            drawn = np.random.default_rng(random_state).choice(n, _BACKGROUND, replace=False)
            background = take_rows(X, np.sort(drawn))
    sums = np.zeros(len(explained.names))
    step = max(1, _VALUES // sums.size)  # contributions are dense, unlike rows of texts
    for first in range(0, n, step):
        block = X if step >= n else take_rows(X, np.arange(first, min(first + step, n)))
        sums += np.abs(explained.dense(block, background)[0]).sum(axis=0)
    return GlobalImportance(explained.names, sums / n, n, False)
