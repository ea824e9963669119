"""Weighted pairs and graded labels from clicks, to train rankers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc
from sklearn.utils.validation import check_is_fitted

from rankcore._core.ids import numbered
from rankcore._core.numbers import Floats, ranges
from rankcore._core.params import check_real
from rankcore.clicks._counts import Pairs
from rankcore.clicks.log import Log, windows
from rankcore.clicks.models import ClickModel
from rankcore.clicks.propensity import Propensities
from rankcore.datasets.judgments import Qrels
from rankcore.ranking.click_pairs import check_pairs, theta_at, trust_of

# Prior variance of a difference of relevance, as a fraction of the variance of a click.
EXAMINATIONS = 10.0
# Sums over impressions that differ by less than this are equal up to rounding.
ROUNDING = 1e-9


def click_pairs(
    log: Log,
    qid: ArrayLike,
    docid: ArrayLike,
    propensity: Propensities | ArrayLike,
    *,
    tau: float = 1e-4,
) -> tuple[NDArray[np.int64], Floats]:
    """Make weighted pairs of documents for any ranker, the more clicked document first.

    Parameters
    ----------
    log : ClickLog or windows of one
    qid, docid : array-like of int or str, shape (n_rows,)
        Query and document of each row of X. Other impressions are ignored.
    propensity : Propensities or array-like of float, shape (n_positions,)
        Probability of examination by position. With ones, clicks are used without correction.
        With `Propensities` that have ``trust``, clicks by trust are subtracted: the affine
        correction.
    tau : float, default=0.0001
        Minimum of propensities, which are clipped to it; must be above 0 if a propensity is 0.

    Returns
    -------
    pairs : ndarray of int64, shape (n_pairs, 2)
        Rows of winner and loser, for ``pairs`` of a ranker's ``fit``.
    weights : ndarray of float64, shape (n_pairs,)
        Weights, for ``pairs_weight``.

    Raises
    ------
    ValueError
        If no document of the rows was clicked more than another shown document of its query, a
        position has no propensity, or there may be more than 100,000,000 pairs.

    Notes
    -----
    A document has e examinations, the sum of the propensities of its impressions, and relevance r,
    the sum of click - trust, divided by e, within 0 and 1. Its expectation is the true relevance at
    any positions [1]_ [2]_, and it is less noisy than a sum of clicks divided by propensities. A
    pair with relevance r above s, and e and f examinations, has the weight ::

        (r - s) h / (h + 10),  h = e f / (e + f)

    This is the posterior mean of the difference given the clicks, with a normal prior whose
    variance is a tenth of that of a click. Pairs of rarely examined documents have small weights,
    even if the propensities of their clicks are low; with many clicks the weight approaches r - s,
    and pairs of equal relevance are omitted, as are documents that were not shown.

    O(impressions + pairs of clicked and shown documents of a query). Memory: about 100 bytes per
    pair; the labels of `to_judgments` need no pairs. Plain form:
    ``tests/clicks/test_click_learning.py``, ``plain_pairs``.

    References
    ----------
    .. [1] T. Joachims, A. Swaminathan and T. Schnabel. "Unbiased Learning-to-Rank with Biased
       Feedback". WSDM 2017.
    .. [2] A. Vardasbi, H. Oosterhuis and M. de Rijke. "When Inverse Propensity Scoring does not
       Work: Affine Corrections for Unbiased Learning to Rank". CIKM 2020.

    Examples
    --------
    >>> from rankcore.clicks import ClickLog, click_pairs
    >>> log = ClickLog(["q"] * 3, [*"abc"], [1, 2, 3], [0, 1, 0])
    >>> pairs, weights = click_pairs(log, ["q"] * 3, [*"abc"], [1.0, 1.0, 0.25])
    >>> pairs.tolist(), weights.round(4)
    ([[1, 0], [1, 2]], array([0.0476, 0.0196]))
    """
    check_real(tau, "tau", 0.0, 1.0)
    by_position: Any = getattr(propensity, "theta", propensity)
    trust = trust_of(propensity)
    codes, query, document = numbered(qid, docid)
    row = np.lexsort((document, query))
    query, document = query[row], document[row]
    if ((query[1:] == query[:-1]) & (document[1:] == document[:-1])).any():
        raise ValueError("qid and docid must name each document of a query once")
    pairs_of_rows = Pairs(codes, query.astype(np.int64), document.astype(np.int64))
    examined, clicks = np.zeros(row.size), np.zeros(row.size)
    for window in windows(log):
        theta = np.maximum(theta_at(by_position, window.position), tau)
        if (theta <= 0).any():
            raise ValueError("propensities of 0 require tau above 0")
        votes = window.clicked.astype(np.float64)
        if trust is not None:
            votes -= theta_at(trust, window.position)
        place = pairs_of_rows.of(window)
        kept = place >= 0
        examined += np.bincount(place[kept], theta[kept], row.size)
        clicks += np.bincount(place[kept], votes[kept], row.size)
    shown = examined > 0
    relevance = np.clip(clicks / np.where(shown, examined, 1.0), 0.0, 1.0)
    bounds = np.flatnonzero(np.diff(pairs_of_rows.query, prepend=-1, append=-1))
    clicked = np.add.reduceat(relevance > 0, bounds[:-1], dtype=np.int64)
    check_pairs(clicked, np.diff(bounds))
    first, other = _beside(bounds, relevance > 0, shown)
    more = relevance[first] - relevance[other] > ROUNDING
    if not more.any():
        raise ValueError(
            "no document of the rows was clicked more than another one of its query: pass qid and "
            "docid as the log has them"
        )
    first, other = first[more], other[more]
    both = examined[first] * examined[other] / (examined[first] + examined[other])
    weights = (relevance[first] - relevance[other]) * (both / (both + EXAMINATIONS))
    return np.stack([row[first], row[other]], axis=1), weights


def _beside(
    bounds: NDArray[np.int64], ones: NDArray[np.bool_], others: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pair each position with every other position of its query."""
    first = np.flatnonzero(ones)
    query = np.searchsorted(bounds, first, side="right") - 1
    sizes = np.diff(bounds)[query]
    other = ranges(bounds[query], sizes)
    first = np.repeat(first, sizes)
    kept = (first != other) & others[other]
    return first[kept], other[kept]


@dataclass(frozen=True)
class ClickJudgments:
    """Graded labels with confidence, from a click model: see `to_judgments`.

    Attributes
    ----------
    qid, docid : ndarray, shape (n_pairs,)
        Ids of documents of queries.
    grade : ndarray of int64, shape (n_pairs,)
        Grades, from 0.
    relevance : ndarray of float64, shape (n_pairs,)
        Estimated relevance, a probability.
    confidence : ndarray of float64, shape (n_pairs,)
        Probability that the relevance is within the bounds of the grade.
    """

    qid: NDArray[Any]
    docid: NDArray[Any]
    grade: NDArray[np.int64]
    relevance: Floats
    confidence: Floats
    _pairs: Pairs

    def __repr__(self) -> str:
        return f"ClickJudgments({self.grade.size} documents, grades 0 to {self.grade.max()})"

    def labels(self, qid: ArrayLike, docid: ArrayLike) -> tuple[NDArray[np.int64], Floats]:
        """Look up labels and weights for rows of X.

        Parameters
        ----------
        qid, docid : array-like of int or str, shape (n_rows,)
            Query and document of each row.

        Returns
        -------
        y : ndarray of int64, shape (n_rows,)
            Grades; 0 for documents without a grade.
        weight : ndarray of float64, shape (n_rows,)
            Confidences, for ``sample_weight`` of a fit; 0 for documents without a grade.
        """
        row = self._pairs.rows(qid, docid)
        return np.append(self.grade, 0)[row], np.append(self.confidence, 0.0)[row]

    def qrels(self) -> Qrels:
        """Convert grades to relevance judgments.

        Returns
        -------
        rankcore.datasets.Qrels
        """
        return Qrels(self.qid, self.docid, self.grade)


def to_judgments(model: ClickModel, *, thresholds: ArrayLike | None = None) -> ClickJudgments:
    """Derive graded labels with confidence from a fitted click model, for any learner.

    Parameters
    ----------
    model : PositionBasedModel, CascadeModel, DynamicBayesianModel or ClickRates
        Relevance is the attraction of a document, times its satisfaction in a
        `DynamicBayesianModel`; of `ClickRates` by document the rate.
    thresholds : array-like of float, shape (n_grades - 1,), optional
        Ascending thresholds; the grade is the number of thresholds that the relevance reaches.
        None: 1/5, 2/5, 3/5 and 4/5 of the relevance that 5% of the examinations exceed.

    Returns
    -------
    ClickJudgments

    Notes
    -----
    The confidence is a probability under the posterior of Jeffreys' prior, for the number of
    observations that has the variance of the estimate.

    Examples
    --------
    >>> from rankcore.clicks import ClickLog, ClickRates, to_judgments
    >>> log = ClickLog(["q"] * 6, [*"ababab"], [1, 2] * 3, [1, 0, 1, 0, 1, 1])
    >>> found = to_judgments(ClickRates(smoothing=0).fit(log), thresholds=[0.5])
    >>> found.grade, found.confidence.round(2)
    (array([1, 0]), array([0.97, 0.71]))
    """
    check_is_fitted(model)
    relevance, trials = model._evidence()
    relevance = np.nan_to_num(relevance)
    if thresholds is None:
        order = np.argsort(relevance)
        below = np.cumsum(trials[order])
        top = relevance[order[np.searchsorted(below, 0.95 * below[-1])]]
        edges = np.arange(1, 5) / 5 * (top if top > 0 else 1.0)
    else:
        edges = np.asarray(thresholds, dtype=np.float64)
        if edges.ndim != 1 or not ((edges > 0) & (edges < 1)).all() or (np.diff(edges) <= 0).any():
            raise ValueError(f"thresholds must ascend between 0 and 1; got {thresholds!r}")
    grade = np.searchsorted(edges, relevance, side="right")
    bounds = np.concatenate([[0.0], np.minimum(edges, 1.0), [1.0]])
    a = relevance * trials + 0.5
    b = (1.0 - relevance) * trials + 0.5
    confidence = betainc(a, b, bounds[grade + 1]) - betainc(a, b, bounds[grade])
    pairs = model._pairs
    return ClickJudgments(pairs.query_ids, pairs.document_ids, grade, relevance, confidence, pairs)
