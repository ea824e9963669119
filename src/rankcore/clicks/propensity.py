"""Propensities: examination of each position relative to the first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from rankcore._core.arguments import RowsLike
from rankcore._core.numbers import Floats
from rankcore._core.params import check_option
from rankcore._ext.clicks import position_pass
from rankcore.clicks._counts import Counts, Pairs, clicks, count
from rankcore.clicks._maximum import MARGIN
from rankcore.clicks.log import Log
from rankcore.clicks.models import Z
from rankcore.clicks.position_model import (
    check_linked,
    fit_positions,
    not_linked,
)
from rankcore.ranking._click_pairs import theta_at

METHODS = ("swap", "allpairs", "em", "regression-em")
# Passes end when no probability changes by more than this, or after this number.
TOL, PASSES = 1e-6, 5000
# Passes of regression-EM, each of which fits a classifier.
ROUNDS = 50


class Classifier(Protocol):
    """A classifier of scikit-learn with probabilities and weights."""

    def fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Learn from weighted rows."""

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of both classes."""


@dataclass(frozen=True)
class Features:
    """Features of documents of queries, for ``method="regression-em"`` of `propensities`.

    Parameters
    ----------
    X : array-like or scipy sparse, shape (n_rows, n_features)
        Features of each row, in a form that the classifier accepts.
    qid, docid : array-like of int or str, shape (n_rows,)
        Query and document of each row; all clicked documents are required.
    classifier : object, optional
        Object with ``fit(X, y, sample_weight)`` and ``predict_proba(X)``. None: scikit-learn's
        ``LogisticRegression``.
    """

    X: RowsLike
    qid: ArrayLike
    docid: ArrayLike
    classifier: Classifier | None = None


@dataclass(frozen=True)
class Propensities:
    """Propensities by position: the result of `propensities`.

    Attributes
    ----------
    theta : ndarray of float64, shape (n_positions,)
        Examination relative to the first position with impressions; NaN at positions without.
    interval : ndarray of float64, shape (n_positions, 2)
        95% intervals; NaN if the method has none.
    method : str
    """

    theta: Floats
    interval: Floats
    method: str

    def at(self, position: ArrayLike) -> Floats:
        """Propensity of each position.

        Parameters
        ----------
        position : array-like of int, from 1

        Returns
        -------
        ndarray of float64

        Raises
        ------
        ValueError
            For positions that are not in the log.
        """
        return theta_at(self.theta, position)


def propensities(
    log: Log,
    method: Literal["swap", "allpairs", "em", "regression-em"] = "em",
    *,
    features: Features | None = None,
) -> Propensities:
    """Estimate propensities: examination of each position relative to the first.

    Parameters
    ----------
    log : ClickLog or windows of one
    method : {"swap", "allpairs", "em", "regression-em"}, default="em"
        "swap": the ratio of clicks at each position to those at the first one, for documents of
        queries that were shown at both [1]_, by the estimator of Mantel and Haenszel. "allpairs":
        the same for all pairs of positions, fitted together [2]_. "em": the likelihood of
        `PositionBasedModel`. "regression-em": the same with attraction as a function of
        ``features`` [3]_, for logs that never show a document of a query at two positions.
    features : Features, optional
        Required by "regression-em".

    Returns
    -------
    Propensities

    Raises
    ------
    ValueError
        If the log does not identify them: two positions are linked by clicked documents of a query
        that were shown at both. The message names the positions and suggests what to log.

    Notes
    -----
    All methods assume that a click requires examination of the position and, independently,
    attraction by the document. "swap" and "allpairs" compare the same documents, and so do not
    estimate attraction; they are also consistent for few impressions of many documents, where "em"
    estimates a parameter for each. Standard errors of "swap" are those of Greenland and Robins
    (1985).

    References
    ----------
    .. [1] T. Joachims, A. Swaminathan and T. Schnabel. "Unbiased Learning-to-Rank with Biased
       Feedback". WSDM 2017.
    .. [2] A. Agarwal, I. Zaitsev, X. Wang, C. Li, M. Najork and T. Joachims. "Estimating Position
       Bias without Intrusive Interventions". WSDM 2019.
    .. [3] X. Wang, N. Golbandi, M. Bendersky, D. Metzler and M. Najork. "Position Bias Estimation
       for Unbiased Learning to Rank in Personal Search". WSDM 2018.

    Examples
    --------
    >>> from rankcore.clicks import ClickLog, propensities
    >>> log = ClickLog(["q"] * 8, [*"ab" * 2, *"ba" * 2], [1, 2] * 4, [1, 0, 1, 1, 0, 0, 1, 1])
    >>> propensities(log, method="swap").theta.round(2)
    array([1.  , 0.67])
    """
    check_option(method, "method", METHODS)
    if (features is None) != (method != "regression-em"):
        raise ValueError(
            "features and method='regression-em' require each other; found "
            f"method={method!r} and features={'None' if features is None else '...'}"
        )
    counts = count(log, clicks, 2)
    if not counts.events[:, 1].any():
        raise ValueError("the log has no clicks")
    if features is not None:
        theta = _regression(counts, features)
        return Propensities(theta, np.full((theta.size, 2), np.nan), method)
    estimate: dict[str, Callable[[Counts], tuple[Floats, Floats]]] = {
        "swap": _swap,
        "allpairs": _all_pairs,
        "em": _maximum,
    }
    theta, spread = estimate[method](counts)
    interval = theta[:, None] * np.exp(Z * np.stack([-spread, spread], axis=1))
    return Propensities(theta, interval, method)


def _maximum(counts: Counts) -> tuple[Floats, Floats]:
    """Maximum-likelihood propensities, and standard errors of their logarithms."""
    check_linked(counts)
    found, _ = fit_positions(counts, 0.0, TOL, PASSES)
    return found.examination, found.errors(counts)[0] / found.examination


def _swap(counts: Counts) -> tuple[Floats, Floats]:
    """Mantel-Haenszel ratio to the first position, and standard errors of its logarithm."""
    shown, clicked = _tables(counts)
    places = np.flatnonzero(shown.sum(axis=0))
    n_positions = shown.shape[1]
    theta, spread = np.full(n_positions, np.nan), np.full(n_positions, np.nan)
    pivot = int(places[0])
    theta[pivot], spread[pivot] = 1.0, 0.0
    n1, c1 = _column(shown, pivot), _column(clicked, pivot)
    apart = []
    for p in places[1:].tolist():
        n2, c2 = _column(shown, p), _column(clicked, p)
        both = (n1 > 0) & (n2 > 0)
        a, b, m, n = c2[both], c1[both], n2[both], n1[both]
        above, below = float((a * n / (m + n)).sum()), float((b * m / (m + n)).sum())
        if above <= 0 or below <= 0:
            apart.append(p + 1)
            continue
        theta[p] = above / below
        total = (m * n * (a + b) - a * b * (m + n)) / (m + n) ** 2
        spread[p] = np.sqrt(total.sum() / (above * below))
    if apart:
        raise ValueError(not_linked(pivot + 1, np.array(apart)))
    return theta, spread


def _all_pairs(counts: Counts) -> tuple[Floats, Floats]:
    """The likelihood of clicks of all pairs of positions, each on documents shown at both."""
    check_linked(counts)
    shown, clicked = _tables(counts)
    places = np.flatnonzero(shown.sum(axis=0)).tolist()
    cells: list[tuple[int, int, int, float, float]] = []
    for i, p in enumerate(places):
        n1, c1 = _column(shown, p), _column(clicked, p)
        for r in places[i + 1 :]:
            n2, c2 = _column(shown, r), _column(clicked, r)
            both = (n1 > 0) & (n2 > 0)
            a, b, m, n = c1[both], c2[both], n1[both], n2[both]
            # Documents are weighted as in the ratio of Mantel and Haenszel.
            weight = m * n / (m + n)
            first, second = float((a / m * weight).sum()), float((b / n * weight).sum())
            total = float(weight.sum())
            if total > 0:
                cells.append((p, r, 0, total - first, first))
                cells.append((p, r, 1, total - second, second))
    table = np.array(cells)
    pair = np.arange(len(cells) // 2).repeat(2)
    position = np.where(table[:, 2] == 0, table[:, 0], table[:, 1])
    pseudo = Counts(
        Pairs(counts.pairs.codes, pair[::2], pair[::2]),
        pair.astype(np.int32),
        position.astype(np.int32),
        np.ascontiguousarray(table[:, 3:]),
    )
    found, _ = fit_positions(pseudo, 0.0, TOL, PASSES)
    # A document counts in several pairs of positions, so that this has no standard errors.
    return found.examination, np.full(found.examination.size, np.nan)


def _tables(counts: Counts) -> tuple[Any, Any]:
    """Impressions and clicks as sparse columns: documents of queries by position."""
    return (
        counts.table(counts.events.sum(axis=1)).tocsc(),
        counts.table(counts.events[:, 1]).tocsc(),
    )


def _column(table: Any, place: int) -> Floats:
    return np.asarray(table[:, [place]].toarray()).ravel()


def _regression(counts: Counts, features: Features) -> Floats:
    """Propensities with attraction by a classifier of the features."""
    from sklearn.linear_model import LogisticRegression

    classifier = features.classifier or LogisticRegression(max_iter=1000)
    pairs = counts.pairs
    pair = pairs.rows(features.qid, features.docid)
    row = np.full(pairs.query.size, -1)
    row[pair[pair >= 0]] = np.flatnonzero(pair >= 0)
    clicked = counts.by_pair()[:, 1] > 0
    if (lost := np.flatnonzero((row < 0) & clicked)).size:
        at = int(lost[0])
        raise ValueError(
            f"features have no row for {lost.size} clicked documents, the first of which is "
            f"document {pairs.document_ids[at].item()!r} of query {pairs.query_ids[at].item()!r}"
        )
    kept = row[counts.pair] >= 0
    cells = Counts(pairs, counts.pair[kept], counts.position[kept], counts.events[kept])
    given: Any = features.X
    X = given.tocsr() if hasattr(given, "tocsr") else np.asarray(given)
    X = X[np.maximum(row, 0)]
    of_position, trials = cells.by_position(), cells.by_pair().sum(axis=1)
    shown = of_position.sum(axis=1)
    theta = np.clip(of_position[:, 1] / np.maximum(shown, 1.0), 0.0, 1.0)
    theta = np.clip(theta / theta.max(), 0.05, 0.95)
    gamma = np.full(trials.size, 0.5)
    examined, attracted = np.empty(theta.size), np.empty(trials.size)
    for _ in range(ROUNDS):
        position_pass(cells.pair, cells.position, cells.events, theta, gamma, examined, attracted)
        gamma = _attraction(classifier, X, attracted, trials)
        before, theta = theta, np.clip(examined / np.maximum(shown, 1.0), 0.0, 1.0 - MARGIN)
        if np.abs(theta - before).max() < 1e-5:
            break
    return np.where(shown > 0, theta / theta[np.flatnonzero(shown)[0]], np.nan)


def _attraction(classifier: Classifier, X: Any, attracted: Floats, trials: Floats) -> Floats:
    """Attraction by a classifier of soft labels: each row once as either class, weighted."""
    rows = np.tile(np.arange(trials.size), 2)
    weights = np.concatenate([attracted, np.maximum(trials - attracted, 0.0)])
    kept = weights > 0
    y = np.repeat([1, 0], trials.size)
    classifier.fit(X[rows[kept]], y[kept], sample_weight=weights[kept])
    found = np.asarray(classifier.predict_proba(X), dtype=np.float64)[:, 1]
    return np.clip(found, MARGIN, 1.0 - MARGIN)
