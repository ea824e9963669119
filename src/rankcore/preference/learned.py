"""Preferences learned from graded queries: the first of two stages."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils.validation import check_is_fitted, validate_data

from rankcore._core.arguments import RowsLike
from rankcore._core.declaration import Declaration
from rankcore._core.doc_links import guide_link
from rankcore._core.inputs import check_matrix
from rankcore._core.labels import as_relevance
from rankcore._core.numbers import Floats
from rankcore._core.params import COUNT, Constraints, Function, Options, check_params
from rankcore._core.queries import queries_of, query_numbers, warn_without_qid
from rankcore.preference.forms import Degrees, Indexed, Places, from_scores
from rankcore.preference.methods import mean_degrees
from rankcore.ranking.base import SCORE
from rankcore.ranking.validation import measure

# Pairs per block when degrees are computed.
_BLOCK = 1 << 15


class PairwisePreference(BaseEstimator):
    """A preference between rows, learned from queries with graded rows, and a ranker by it.

    The two stages of Balcan et al. (2008) and Ailon and Mohri (2010): `fit` learns h from pairs,
    `comparator` returns it for functions that order items by a preference, and `predict` orders the
    rows of queries.

    Parameters
    ----------
    estimator : classifier or ranker
        Any scikit-learn classifier, for pair features with the class 1 if the first row should
        precede the second, else 0; or a ranker with ``fit(X, y, qid=...)`` and ``predict(X)``.
    features : {"difference", "concatenation"} or callable, default="difference"
        Features of a pair of rows. A function takes two matrices of shape (m, n_features) and
        returns one of m rows. Ignored for a ranker.
    max_pairs : int or None, default=1000
        Maximum number of pairs per query to learn from, drawn at random. None: all.
    random_state : int or numpy Generator, optional
        Seed of the draw of pairs.

    Attributes
    ----------
    estimator_ : object
        The fitted estimator.
    n_features_in_ : int
    n_pairs_ : int
        Number of pairs learned from, each in both orders. 0 for a ranker.

    Notes
    -----
    A classifier's g(u, v), its probability of class 1 or else its decision, is made consistent as
    (g(u, v) + 1 - g(v, u)) / 2. With a ranker the row with the higher score is preferred; equal
    scores give 1/2. All pairs of a query with different labels are used: memory is proportional to
    twice their number times the number of pair features.

    Plain form: ``tests/reference/preference.py``, ``quicksort_orders``;
    ``tests/reference/preference.py``, ``degree_order``.

    Examples
    --------
    >>> import rankcore as rc
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from rankcore.preference import PairwisePreference, quicksort_rank
    >>> X, y, qid = rc.datasets.make_letor(20, 10, random_state=0)
    >>> classifier = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    >>> model = PairwisePreference(classifier, random_state=0).fit(X, y, qid=qid)
    >>> round(model.degree(X[0], X[1]) + model.degree(X[1], X[0]), 12)
    1.0
    >>> first = quicksort_rank(range(10), model.comparator(X[:10]), top_k=3, random_state=0)
    """

    _declaration: ClassVar = Declaration(guide="preference", learns_from="comparisons")

    _constraints: ClassVar[Constraints] = {
        "features": Options("difference", "concatenation") | Function(),
        "max_pairs": COUNT | None,
    }
    _doc_link_module, _doc_link_template = "rankcore", guide_link

    estimator_: Any
    n_features_in_: int
    n_pairs_: int

    def __init__(
        self,
        estimator: BaseEstimator,
        *,
        features: Literal["difference", "concatenation"] | Callable[[Any, Any], Any] = "difference",
        max_pairs: int | None = 1000,
        random_state: int | np.random.Generator | None = None,
    ):
        self.estimator = estimator
        self.features = features
        self.max_pairs = max_pairs
        self.random_state = random_state

    def fit(
        self,
        X: RowsLike,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
    ) -> Self:
        """Learn from the pairs of rows of a query with different labels.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        y : array-like of numbers, shape (n_samples,)
            Labels, higher is better.
        qid : array-like, shape (n_samples,), optional
            The query of each row. None: all rows are of one query, which causes a warning if there
            is no ``group`` either.
        group : array-like of int, optional
            Sizes of queries with consecutive rows, instead of ``qid``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If no query has rows of different labels, or for unknown options. A failed fit leaves
            the estimator unchanged.
        """
        check_params(self)
        check_matrix(X)
        fitted = copy(self)
        fitted._fit(validate_data(fitted, X, accept_sparse="csr", dtype=np.float64), y, qid, group)
        self.__dict__ = dict(vars(fitted))  # at once: a failed fit changes nothing
        return self

    def _fit(self, X: Any, y: Any, qid: Any, group: Any) -> None:
        labels = as_relevance(y, X.shape[0])
        if qid is None and group is None:
            warn_without_qid()
        queries = queries_of(qid, group, X.shape[0])
        if not is_classifier(self.estimator):
            self.n_pairs_ = 0
            self.estimator_ = clone(self.estimator).fit(X, labels, qid=query_numbers(queries))
            return
        rng = np.random.default_rng(self.random_state)
        better, worse = [], []
        all_rows = np.arange(labels.size) if queries.rows is None else np.asarray(queries.rows)
        for rows in np.split(all_rows, queries.bounds[1:-1]):
            i, j = np.nonzero(labels[rows][:, None] > labels[rows])
            if self.max_pairs is not None and i.size > self.max_pairs:
                drawn = np.sort(rng.choice(i.size, self.max_pairs, replace=False))
                i, j = i[drawn], j[drawn]
            better.append(rows[i])
            worse.append(rows[j])
        first, second = np.concatenate(better), np.concatenate(worse)
        if first.size == 0:
            raise ValueError(
                "there is nothing to learn: no query has rows with different labels, in "
                f"n_samples={labels.size}"
            )
        # Both orders: a classifier that favours the first row would not be consistent.
        one, other = np.concatenate([first, second]), np.concatenate([second, first])
        classes = np.repeat([1, 0], first.size)
        self.n_pairs_ = int(first.size)
        self.estimator_ = clone(self.estimator).fit(self._pairs(X, one, other), classes)

    def degree(self, u: ArrayLike, v: ArrayLike) -> float:
        """Return the degree to which one row should precede another.

        Parameters
        ----------
        u, v : array-like, shape (n_features,)

        Returns
        -------
        float
            In [0, 1]; ``degree(u, v) + degree(v, u)`` is 1.
        """
        X = self._more_rows(np.stack([np.asarray(u), np.asarray(v)]))
        return float(self._preference(X)(np.array([0]), np.array([1]))[0])

    def comparator(self, X: RowsLike) -> Indexed:
        """Return a preference between the rows of a matrix, for functions such as `quicksort_rank`.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n, n_features)

        Returns
        -------
        Indexed
            Preference of the items that the rows describe. A ranker scores them once.
        """
        rows = self._more_rows(X)
        return Indexed(self._preference(rows), rows.shape[0])

    def predict(
        self, X: RowsLike, *, qid: ArrayLike | None = None, group: ArrayLike | None = None
    ) -> Floats:
        """Score rows by their order in their query; higher is better.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        qid : array-like, shape (n_samples,), optional
            The query of each row. None: all rows are of one query.
        group : array-like of int, optional
            Sizes of queries with consecutive rows, instead of ``qid``.

        Returns
        -------
        ndarray of float64, shape (n_samples,)
            The mean degree to which a row should precede the other rows of its query, 1/2 in a
            query of one row. Scores of different queries are not comparable.
        """
        matrix = self._more_rows(X)
        n = matrix.shape[0]
        queries = queries_of(qid, group, n)
        rows = np.arange(n) if queries.rows is None else np.asarray(queries.rows)
        scores, degrees = np.full(n, 0.5), self._preference(matrix)
        for mine in np.split(rows, queries.bounds[1:-1]):
            if mine.size > 1:
                i, j = np.triu_indices(mine.size, 1)
                scores[mine] = mean_degrees(i, j, degrees(mine[i], mine[j]), mine.size)
        return scores

    def score(
        self,
        X: RowsLike,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
    ) -> float:
        """Return NDCG at 10 of the order, averaged over queries; higher is better.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        y : array-like of numbers, shape (n_samples,)
            Labels, higher is better.
        qid : array-like, shape (n_samples,), optional
            The query of each row. None: all rows are of one query.
        group : array-like of int, optional
            Sizes of queries with consecutive rows, instead of ``qid``.

        Returns
        -------
        float
        """
        scores = self.predict(X, qid=qid, group=group)
        queries = queries_of(qid, group, scores.size)
        return measure(SCORE, as_relevance(y, scores.size), scores, query_numbers(queries))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _more_rows(self, X: Any) -> Any:
        check_is_fitted(self, "estimator_")
        check_matrix(X)
        return validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)

    def _pairs(self, X: Any, i: Places, j: Places) -> Any:
        """Return the features of pairs of rows."""
        if callable(self.features):
            return self.features(X[i], X[j])
        if self.features == "difference":
            return X[i] - X[j]
        return sp.hstack([X[i], X[j]], "csr") if sp.issparse(X) else np.hstack([X[i], X[j]])

    def _preference(self, X: Any) -> Callable[[Places, Places], Degrees]:
        """Return a function with consistent degrees of pairs of rows."""
        if is_classifier(self.estimator_):
            return lambda i, j: self._degrees(X, i, j)
        return from_scores(self.estimator_.predict(X)).function

    def _degrees(self, X: Any, i: Places, j: Places) -> Degrees:
        degrees = np.empty(i.size)
        for start in range(0, i.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            forth = self._first_precedes(self._pairs(X, i[part], j[part]))
            back = self._first_precedes(self._pairs(X, j[part], i[part]))
            degrees[part] = (forth + 1.0 - back) / 2
        return degrees

    def _first_precedes(self, pairs: Any) -> Floats:
        if hasattr(self.estimator_, "predict_proba"):
            return np.asarray(self.estimator_.predict_proba(pairs))[:, 1]
        return np.asarray(self.estimator_.predict(pairs), dtype=np.float64)
