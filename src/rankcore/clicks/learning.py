"""Weighted pairs and graded labels from clicks, to train rankers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc
from sklearn.utils.validation import check_is_fitted

from rankcore._core.numbers import Floats
from rankcore._core.params import check_real
from rankcore.clicks._counts import Pairs
from rankcore.clicks._ids import Codes, as_ids
from rankcore.clicks.log import Log, windows
from rankcore.clicks.models import ClickModel
from rankcore.clicks.propensity import Propensities
from rankcore.datasets.judgments import Qrels
from rankcore.ranking._click_pairs import TAU, theta_at


def click_pairs(
    log: Log,
    qid: ArrayLike,
    docid: ArrayLike,
    propensity: Propensities | ArrayLike,
    *,
    tau: float = TAU,
    trust: ArrayLike | None = None,
) -> tuple[NDArray[np.int64], Floats]:
    """Weighted pairs for any ranker: each clicked document against every other of its list.

    Parameters
    ----------
    log : ClickLog or windows of one
    qid, docid : array-like of int or str, shape (n_rows,)
        Query and document of each row of X. Impressions of others are left out.
    propensity : Propensities or array-like of float, shape (n_positions,)
        Examination by position. Ones take clicks for votes as they are.
    tau : float, default=0.01
        Propensities below this count as this: a click weighs 1 / tau at most.
    trust : array-like of float, shape (n_positions,), optional
        Probabilities by position of a click on a document that is not relevant, so that a document
        of relevance r is clicked with probability propensity * r + trust.

    Returns
    -------
    pairs : ndarray of int64, shape (n_pairs, 2)
        Rows of winner and loser: ``pairs`` of the ``fit`` of a ranker.
    weights : ndarray of float64, shape (n_pairs,)
        Its ``pairs_weight``.

    Raises
    ------
    ValueError
        If no document of the rows was clicked beside another, or a position has no propensity.

    Notes
    -----
    The weight of a pair is the sum over the sessions that show both of (click - trust) /
    propensity of the first, which in expectation is their number times its relevance [1]_ [2]_;
    pairs of a sum up to 0 are left out. The loss of the pairs bounds the rank of relevant documents
    by the hinge of `RankSVM`, or the exponential of `RankBoost`. Documents below the end of a list
    take part in nothing: nobody could click them.

    O(clicks * length of lists), or O(impressions * length) with ``trust``.

    References
    ----------
    .. [1] T. Joachims, A. Swaminathan and T. Schnabel. "Unbiased Learning-to-Rank with Biased
       Feedback". WSDM 2017.
    .. [2] A. Vardasbi, H. Oosterhuis and M. de Rijke. "When Inverse Propensity Scoring does not
       Work: Affine Corrections for Unbiased Learning to Rank". CIKM 2020.

    Examples
    --------
    >>> from rankcore.clicks import ClickLog, click_pairs
    >>> log = ClickLog(["q"] * 3, [*"abc"], [1, 2, 3], [0, 0, 1])
    >>> pairs, weights = click_pairs(log, ["q"] * 3, [*"abc"], [1.0, 0.5, 0.25])
    >>> pairs.tolist(), weights
    ([[2, 0], [2, 1]], array([4., 4.]))
    """
    check_real(tau, "tau", 0.0, 1.0)
    by_position = propensity.theta if isinstance(propensity, Propensities) else propensity
    known, row = _index(qid, docid)
    n_rows = row.size
    keys, sums = np.zeros(0, dtype=np.int64), np.zeros(0)
    for window in windows(log):
        theta = np.maximum(theta_at(by_position, window.position), tau)
        if (theta <= 0).any():
            raise ValueError("propensities of 0 require tau above 0")
        votes = window.clicked.astype(np.float64)
        if trust is not None:
            votes -= theta_at(trust, window.position)
        place = known.of(window)
        one, other = _beside(window.bounds, (place >= 0) & (votes != 0), place >= 0)
        more = row[place[one]] * n_rows + row[place[other]]
        keys, of = np.unique(np.concatenate([keys, more]), return_inverse=True)
        of_all = np.concatenate([sums, (votes / theta)[one]])
        sums = np.bincount(of, of_all, keys.size).astype(np.float64)
    kept = sums > 0
    if not kept.any():
        raise ValueError(
            "no document of the rows was clicked beside another; are qid and docid the ids of the "
            "log?"
        )
    winners, losers = np.divmod(keys[kept], n_rows)
    return np.stack([winners, losers], axis=1), sums[kept]


def _index(qid: ArrayLike, docid: ArrayLike) -> tuple[Pairs, NDArray[np.int64]]:
    """Documents of queries as users give them, and the row of each."""
    codes = {"query": Codes("query"), "document": Codes("document")}
    query = codes["query"].number(as_ids("qid", qid).tolist()).astype(np.int64)
    document = codes["document"].number(as_ids("docid", docid).tolist()).astype(np.int64)
    if query.size != document.size:
        raise ValueError(
            f"qid and docid must have the same length; found {query.size} and {document.size}"
        )
    row = np.lexsort((document, query))
    query, document = query[row], document[row]
    if ((query[1:] == query[:-1]) & (document[1:] == document[:-1])).any():
        raise ValueError("qid and docid must name each document of a query once")
    return Pairs(codes, query, document), row


def _beside(
    bounds: NDArray[np.int64], ones: NDArray[np.bool_], others: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Impressions, each with every other one of its session."""
    one = np.flatnonzero(ones)
    session = np.searchsorted(bounds, one, side="right") - 1
    sizes = np.diff(bounds)[session]
    ends = np.cumsum(sizes)
    n = int(sizes.sum())
    other = np.arange(n) - np.repeat(ends - sizes - bounds[session], sizes)
    one = np.repeat(one, sizes)
    kept = (one != other) & others[other]
    return one[kept], other[kept]


@dataclass(frozen=True)
class ClickJudgments:
    """Graded labels with confidence, from a click model: see `to_judgments`.

    Attributes
    ----------
    qid, docid : ndarray, shape (n_pairs,)
        Ids of documents of queries.
    grade : ndarray of int64, shape (n_pairs,)
        From 0.
    relevance : ndarray of float64, shape (n_pairs,)
        What the grade is of, a probability.
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
        """Labels and weights for rows of X.

        Parameters
        ----------
        qid, docid : array-like of int or str, shape (n_rows,)
            Query and document of each row.

        Returns
        -------
        y : ndarray of int64, shape (n_rows,)
            Grades; 0 for documents without one.
        weight : ndarray of float64, shape (n_rows,)
            Confidences, as ``sample_weight`` of a fit; 0 for documents without one.
        """
        row = self._pairs.rows(qid, docid)
        return np.append(self.grade, 0)[row], np.append(self.confidence, 0.0)[row]

    def qrels(self) -> Qrels:
        """The grades as judgments.

        Returns
        -------
        rankcore.datasets.Qrels
        """
        return Qrels(self.qid, self.docid, self.grade)


def to_judgments(model: ClickModel, *, thresholds: ArrayLike | None = None) -> ClickJudgments:
    """Graded labels with confidence from a fitted click model, for any other learner.

    Parameters
    ----------
    model : PositionBasedModel, CascadeModel, DynamicBayesianModel or ClickRates
        Relevance is the attraction of a document, times its satisfaction in a
        `DynamicBayesianModel`; of `ClickRates` by document the rate.
    thresholds : array-like of float, shape (n_grades - 1,), optional
        Ascending: a document has as many grades as thresholds that its relevance reaches. None: a
        fifth, two, three and four fifths of the relevance that 5% of the examinations exceed.

    Returns
    -------
    ClickJudgments

    Notes
    -----
    The confidence is that of the posterior of Jeffreys' prior, given as many observations as have
    the variance of the estimate.

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
            raise ValueError(f"thresholds must ascend between 0 and 1; found {thresholds!r}")
    grade = np.searchsorted(edges, relevance, side="right")
    bounds = np.concatenate([[0.0], np.minimum(edges, 1.0), [1.0]])
    a, b = relevance * trials + 0.5, (1.0 - relevance) * trials + 0.5
    confidence = betainc(a, b, bounds[grade + 1]) - betainc(a, b, bounds[grade])
    pairs = model._pairs
    return ClickJudgments(pairs.query_ids, pairs.document_ids, grade, relevance, confidence, pairs)
