"""Propensities: examination of each position relative to the first."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.arguments import RowsLike
from rankcore._core.numbers import Floats, as_vector
from rankcore._core.params import check_option
from rankcore._ext.clicks import position_pass
from rankcore.clicks._counts import Counts, Pairs, clicks, count
from rankcore.clicks._maximum import MARGIN
from rankcore.clicks.log import Log
from rankcore.clicks.models import Z
from rankcore.clicks.position_model import check_linked, fit_positions, listed, not_linked
from rankcore.ranking.click_pairs import theta_at

METHODS = ("swap", "allpairs", "em", "regression-em", "judged")
# Passes end when no probability changes by more than this, or after this number.
TOL = 1e-6
PASSES = 5000
# Passes of regression-EM, each of which fits a classifier.
ROUNDS = 50
# Variance of relevance at a position below which it is constant up to rounding.
ROUNDING = 1e-12


class Classifier(Protocol):
    """A classifier of scikit-learn with probabilities and weights."""

    def fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Learn from weighted rows."""

    def predict_proba(self, X: Any) -> Any:
        """Predict the probabilities of both classes."""


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
class Judged:
    """Documents of known relevance, for ``method="judged"`` of `propensities`.

    Parameters
    ----------
    qid, docid : array-like of int or str, shape (n_rows,)
        Query and document of each judgment.
    relevance : array-like of float, shape (n_rows,)
        Probability of relevance, from 0 to 1, such as the grade divided by the top grade.
    """

    qid: ArrayLike
    docid: ArrayLike
    relevance: ArrayLike


@dataclass(frozen=True)
class Propensities:
    """Propensities by position, and clicks by trust: the result of `propensities`.

    A document of relevance r at position p is clicked with probability theta[p - 1] * r +
    trust[p - 1].

    Attributes
    ----------
    theta : ndarray of float64, shape (n_positions,)
        Examination relative to the first position with impressions; NaN at positions without.
    interval : ndarray of float64, shape (n_positions, 2)
        95% intervals; NaN if unknown.
    method : str
    trust : ndarray of float64, shape (n_positions,), or None
        Probability by position of a click on a document that is not relevant. None: 0.

    Raises
    ------
    ValueError
        If ``trust`` does not have a probability for each position.

    Examples
    --------
    >>> from rankcore.clicks import Propensities
    >>> Propensities([1.0, 0.5], trust=[0.1, 0.02]).at([2, 1])
    array([0.5, 1. ])
    """

    theta: Floats
    interval: Floats = field(default_factory=lambda: np.empty((0, 2)))
    method: str = "given"
    trust: Floats | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "theta", as_vector(self.theta, "theta"))
        if not len(self.interval):  # as by default
            object.__setattr__(self, "interval", np.full((self.theta.size, 2), np.nan))
        if self.trust is None:
            return
        trust = as_vector(self.trust, "trust")
        estimated = ~np.isnan(self.theta)
        if trust.shape != self.theta.shape or not ((trust >= 0) & (trust <= 1))[estimated].all():
            raise ValueError(
                "trust must have a probability for each position, from 0 to 1: the fraction of "
                "clicks on documents known to be irrelevant, shown at positions drawn at random"
            )
        object.__setattr__(self, "trust", trust)

    def at(self, position: ArrayLike) -> Floats:
        """Return the propensity of each position.

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
    method: Literal["swap", "allpairs", "em", "regression-em", "judged"] = "em",
    *,
    features: Features | None = None,
    judged: Judged | None = None,
) -> Propensities:
    """Estimate propensities: examination of each position relative to the first.

    Parameters
    ----------
    log : ClickLog or windows of one
    method : {"swap", "allpairs", "em", "regression-em", "judged"}, default="em"
        "swap": the ratio of clicks at each position to those at the first one, for documents of
        queries that were shown at both [1]_, by the estimator of Mantel and Haenszel. "allpairs":
        the same for all pairs of positions, fitted together [2]_. "em": the likelihood of
        `PositionBasedModel`. "regression-em": the same with attraction as a function of
        ``features`` [3]_, for logs that never show a document of a query at two positions.
        "judged": least squares of clicks on the relevance of documents that are judged, at each
        position: the slope is the propensity, the intercept is ``trust`` [4]_.
    features : Features, optional
        Required by "regression-em".
    judged : Judged, optional
        Required by "judged".

    Returns
    -------
    Propensities

    Raises
    ------
    ValueError
        If the log does not identify them: two positions are linked by clicked documents of a query
        that were shown at both, or, by "judged", judged documents at a position do not differ in
        relevance. The message names the positions and suggests what to log.

    Notes
    -----
    All methods except "judged" assume that a click requires examination of the position and,
    independently, attraction by the document. "swap" and "allpairs" compare the same documents, and
    so do not estimate attraction; they are also consistent for few impressions of many documents,
    where "em" estimates a parameter for each. Standard errors of "swap" are those of Greenland and
    Robins (1985).

    "judged" is for users who also click documents that are not relevant at positions they trust.
    Clicks alone do not identify trust: relevance higher by d everywhere, and trust lower by theta d
    at each position, explain the same clicks. Documents of equal relevance should be alike at all
    positions, as they are at positions drawn at random. Standard errors are robust to unequal
    variances.

    References
    ----------
    .. [1] T. Joachims, A. Swaminathan and T. Schnabel. "Unbiased Learning-to-Rank with Biased
       Feedback". WSDM 2017.
    .. [2] A. Agarwal, I. Zaitsev, X. Wang, C. Li, M. Najork and T. Joachims. "Estimating Position
       Bias without Intrusive Interventions". WSDM 2019.
    .. [3] X. Wang, N. Golbandi, M. Bendersky, D. Metzler and M. Najork. "Position Bias Estimation
       for Unbiased Learning to Rank in Personal Search". WSDM 2018.
    .. [4] A. Vardasbi, H. Oosterhuis and M. de Rijke. "When Inverse Propensity Scoring does not
       Work: Affine Corrections for Unbiased Learning to Rank". CIKM 2020.

    Examples
    --------
    >>> from rankcore.clicks import ClickLog, propensities
    >>> log = ClickLog(["q"] * 8, [*"ab" * 2, *"ba" * 2], [1, 2] * 4, [1, 0, 1, 1, 0, 0, 1, 1])
    >>> propensities(log, method="swap").theta.round(2)
    array([1.  , 0.67])
    """
    check_option(method, "method", METHODS)
    for name, argument, of in [
        ("features", features, "regression-em"),
        ("judged", judged, "judged"),
    ]:
        if (argument is None) != (method != of):
            raise ValueError(
                f"{name} and method={of!r} require each other; got method={method!r} and "
                f"{name}={'None' if argument is None else '...'}"
            )
    counts = count(log, clicks, 2)
    if not counts.events[:, 1].any():
        raise ValueError("the log has no clicks")
    trust = None
    if features is not None:
        theta = _regression(counts, features)
        spread = np.full(theta.size, np.nan)
    elif judged is not None:
        theta, spread, trust = _affine(counts, judged)
    else:
        estimate = {"swap": _swap, "allpairs": _all_pairs, "em": _maximum}[method]
        theta, spread = estimate(counts)
    # 95% intervals, from standard errors of logarithms.
    interval = theta[:, None] * np.exp(Z * np.stack([-spread, spread], axis=1))
    return Propensities(theta, interval, method, trust)


def _maximum(counts: Counts) -> tuple[Floats, Floats]:
    """Maximise the likelihood; return propensities and their logarithms' standard errors."""
    check_linked(counts)
    positions, _ = fit_positions(counts, 0.0, TOL, PASSES)
    return positions.examination, positions.errors(counts)[0] / positions.examination


def _swap(counts: Counts) -> tuple[Floats, Floats]:
    """Return Mantel-Haenszel ratios to the first position, and errors of their logarithms."""
    shown, clicked = _tables(counts)
    places = np.flatnonzero(shown.sum(axis=0))
    n_positions = shown.shape[1]
    theta = np.full(n_positions, np.nan)
    spread = np.full(n_positions, np.nan)
    pivot = int(places[0])
    theta[pivot] = 1.0
    spread[pivot] = 0.0
    apart = []
    for p in places[1:].tolist():
        both = _shown_at_both(shown, clicked, pivot, p)
        n, b = both.shown_first, both.clicks_first
        m, a = both.shown_second, both.clicks_second
        above = float((a * n / (m + n)).sum())
        below = float((b * m / (m + n)).sum())
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
    """Maximise the likelihood of clicks on documents shown at both of two positions, all pairs."""
    check_linked(counts)
    shown, clicked = _tables(counts)
    places = np.flatnonzero(shown.sum(axis=0)).tolist()
    cells: list[tuple[int, float, float]] = []
    for p, r in combinations(places, 2):
        both = _shown_at_both(shown, clicked, p, r)
        m, a = both.shown_first, both.clicks_first
        n, b = both.shown_second, both.clicks_second
        # Documents are weighted as in the ratio of Mantel and Haenszel.
        weight = m * n / (m + n)
        first = float((a / m * weight).sum())
        second = float((b / n * weight).sum())
        total = float(weight.sum())
        if total > 0:
            cells += [(p, total - first, first), (r, total - second, second)]
    table = np.array(cells)
    pair = np.arange(len(cells) // 2).repeat(2)
    pseudo = Counts(
        Pairs(counts.pairs.codes, pair[::2], pair[::2]),
        pair.astype(np.int32),
        table[:, 0].astype(np.int32),
        np.ascontiguousarray(table[:, 1:]),
    )
    positions, _ = fit_positions(pseudo, 0.0, TOL, PASSES)
    # A document counts in several pairs of positions, so that this has no standard errors.
    return positions.examination, np.full(positions.examination.size, np.nan)


def _tables(counts: Counts) -> tuple[Any, Any]:
    """Return impressions and clicks as sparse columns: documents of queries by position."""
    shown = counts.events.sum(axis=1)
    return counts.table(shown).tocsc(), counts.table(counts.events[:, 1]).tocsc()


@dataclass(frozen=True)
class _ShownAtBoth:
    """Impressions and clicks of the documents that were shown at both of two positions."""

    shown_first: Floats
    clicks_first: Floats
    shown_second: Floats
    clicks_second: Floats


def _shown_at_both(shown: Any, clicked: Any, first: int, second: int) -> _ShownAtBoth:
    """Find the documents that were shown at both positions, in the tables of `_tables`."""
    shown_first = _column(shown, first)
    shown_second = _column(shown, second)
    both = (shown_first > 0) & (shown_second > 0)
    return _ShownAtBoth(
        shown_first=shown_first[both],
        clicks_first=_column(clicked, first)[both],
        shown_second=shown_second[both],
        clicks_second=_column(clicked, second)[both],
    )


def _column(table: Any, position: int) -> Floats:
    return np.asarray(table[:, [position]].toarray()).ravel()


def _regression(counts: Counts, features: Features) -> Floats:
    """Estimate propensities, with attraction predicted by a classifier of the features."""
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
    matrix: Any = features.X
    X = matrix.tocsr() if hasattr(matrix, "tocsr") else np.asarray(matrix)
    X = X[np.maximum(row, 0)]
    position_events = cells.by_position()
    trials = cells.by_pair().sum(axis=1)
    shown = position_events.sum(axis=1)
    theta = np.clip(position_events[:, 1] / np.maximum(shown, 1.0), 0.0, 1.0)
    theta = np.clip(theta / theta.max(), 0.05, 0.95)
    gamma = np.full(trials.size, 0.5)
    examined = np.empty(theta.size)
    attracted = np.empty(trials.size)
    for _ in range(ROUNDS):
        position_pass(cells.pair, cells.position, cells.events, theta, gamma, examined, attracted)
        gamma = _attraction(classifier, X, attracted, trials)
        before = theta
        theta = np.clip(examined / np.maximum(shown, 1.0), 0.0, 1.0 - MARGIN)
        if np.abs(theta - before).max() < 1e-5:
            break
    return np.where(shown > 0, theta / theta[np.flatnonzero(shown)[0]], np.nan)


def _affine(counts: Counts, judged: Judged) -> tuple[Floats, Floats, Floats]:
    """Regress clicks on relevance; return slopes, errors of their logarithms, and intercepts."""
    cells = _judged_cells(counts, judged)
    place, n = cells.place, cells.impressions
    c, r = cells.clicks, cells.relevance
    n_positions = int(counts.position.max()) + 1

    def sums(values: Floats) -> Floats:
        return np.bincount(place, values, n_positions).astype(np.float64)

    with np.errstate(divide="ignore", invalid="ignore"):
        total = sums(n)
        rate = sums(c) / total
        mean = sums(n * r) / total
        off = r - mean[place]
        square = sums(n * off**2)
        slope = np.where(square > ROUNDING * total, sums(c * off) / square, np.nan)
        trust = rate - slope * mean
        p = trust[place] + slope[place] * r
        variance = sums(off**2 * (c * (1 - p) ** 2 + (n - c) * p**2)) / square**2
    shown = np.flatnonzero(np.bincount(counts.position))
    if (bad := shown[~(slope[shown] > 0)] + 1).size:
        raise ValueError(
            f"judged documents do not identify the propensities of positions {listed(bad)}: there, "
            "more relevant ones must be shown beside less relevant ones, and clicked more; judge "
            "more documents, or show judged ones at positions drawn at random"
        )
    first = shown[0]
    relative = variance / slope**2
    spread = np.sqrt(relative + relative[first])
    spread[first] = 0.0
    return slope / slope[first], spread, np.clip(trust, 0.0, 1.0)


@dataclass(frozen=True)
class _JudgedCells:
    """Judged documents at positions."""

    place: NDArray[np.int32]  # from 0
    impressions: Floats
    clicks: Floats
    relevance: Floats


def _judged_cells(counts: Counts, judged: Judged) -> _JudgedCells:
    """Select the cells of judged documents."""
    relevance = as_vector(judged.relevance, "relevance")
    pair = counts.pairs.rows(judged.qid, judged.docid)
    if relevance.size != pair.size or not ((relevance >= 0) & (relevance <= 1)).all():
        raise ValueError("judged requires a relevance from 0 to 1 for each qid and docid")
    is_judged = pair >= 0
    relevance_of_pair = np.full(counts.pairs.query.size, np.nan)
    relevance_of_pair[pair[is_judged]] = relevance[is_judged]
    if np.unique(pair[is_judged]).size < np.count_nonzero(is_judged):
        raise ValueError("judged must name each document of a query once")
    r = relevance_of_pair[counts.pair]
    kept = ~np.isnan(r)
    if not kept.any():
        raise ValueError("no judged document is in the log: pass qid and docid as the log has them")
    return _JudgedCells(
        place=counts.position[kept],
        impressions=counts.events[kept].sum(axis=1),
        clicks=counts.events[kept, 1],
        relevance=r[kept],
    )


def _attraction(classifier: Classifier, X: Any, attracted: Floats, trials: Floats) -> Floats:
    """Predict attraction by a classifier; soft labels are two weighted copies of each row."""
    rows = np.tile(np.arange(trials.size), 2)
    weights = np.concatenate([attracted, np.maximum(trials - attracted, 0.0)])
    kept = weights > 0
    y = np.repeat([1, 0], trials.size)
    classifier.fit(X[rows[kept]], y[kept], sample_weight=weights[kept])
    attraction = np.asarray(classifier.predict_proba(X), dtype=np.float64)[:, 1]
    return np.clip(attraction, MARGIN, 1.0 - MARGIN)
